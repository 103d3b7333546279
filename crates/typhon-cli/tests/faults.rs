//! Exit codes of every kind of fault, damaged files, hostile text.

mod common;

use common::traces::{self, Records, Span};
use common::{arg, command, recording, typhon, typhon_with_stdin};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::{TempDir, tempdir};

struct Files {
    folder: TempDir,
    whole: PathBuf,
}

impl Files {
    fn new() -> Self {
        let folder = tempdir().expect("a temporary folder");
        let whole = traces::small(folder.path());
        Self { folder, whole }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A variation of the whole file.
    fn changed(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
        let mut bytes = std::fs::read(&self.whole).expect("readable");
        change(&mut bytes);
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("writable");
        path
    }
}

fn verify(path: &Path) -> i32 {
    typhon(&["trace", "verify", arg(path)]).code.expect("not killed")
}

/// A file of the reference engine whose header agrees with its records, so that only the missing checksums remain.
#[test]
fn verify_verdicts_are_exit_codes() {
    let files = Files::new();
    assert_eq!(verify(&files.whole), 0);
    let unclosed = files.changed("unclosed", |bytes| bytes[47..87].fill(0));
    assert!(verify(&unclosed) >= 1);
    assert_eq!(verify(&recording("all-kinds.typhon-trace")), 1, "no checksums");
    let cut = files.changed("cut", |bytes| bytes.truncate(bytes.len() - 1));
    assert_eq!(verify(&cut), 3);
    let other = files.changed("other", |bytes| bytes[0] = b'X');
    let run = typhon(&["trace", "verify", arg(&other), "--json"]).expect(4);
    common::schema::check(&run.json(), "verify.json");
    assert_eq!(run.json()["verdict"], "unopenable");
    assert_eq!(verify(&files.changed("version", |bytes| bytes[4] = 11)), 4);
    assert_eq!(verify(&files.changed("short", |bytes| bytes.truncate(100))), 4);
}

#[test]
fn divergent_files_have_code_2() {
    let files = Files::new();
    // Bytes of nothing behind the last section of a reference file disagree with everything, but lose no record.
    let mut bytes = std::fs::read(recording("all-kinds.typhon-trace")).expect("readable");
    bytes.extend_from_slice(b"tail of something else");
    let path = files.path("tail");
    std::fs::write(&path, bytes).expect("writable");
    let run = typhon(&["trace", "verify", arg(&path)]).expect(2);
    assert!(run.stdout.starts_with("DIVERGENT"), "{}", run.stdout);
}

#[test]
fn every_flipped_bit_of_our_own_file_is_reported() {
    let files = Files::new();
    let length = std::fs::read(&files.whole).expect("readable").len();
    // Every bit would take thousands of runs; the library tests do that. Here: a bit in each part of the file.
    for place in (5..length).step_by(length / 24) {
        let flipped = files.changed("flipped", |bytes| bytes[place] ^= 0x10);
        assert!(verify(&flipped) >= 2, "byte {place} of {length}");
    }
}

#[test]
fn usage_faults_are_64() {
    let files = Files::new();
    let file = arg(&files.whole);
    for args in [
        vec!["nonsense"],
        vec!["trace"],
        vec!["trace", "dump"],
        vec!["trace", "dump", file, "--format", "xml"],
        vec!["trace", "dump", file, "--where", "knd=1"],
        vec!["trace", "dump", file, "--range", "5"],
        vec!["trace", "dump", file, "--ticks", "1ms..2ms"],
        vec!["trace", "dump", file, "--kind", "Nothing"],
        vec!["trace", "dump", file, "--limit", "1", "--tail", "1"],
        vec!["trace", "repair", file],
        vec!["trace", "export", file, "-o", "x"],
        vec!["trace", "export", file, "-o", "x", "--to", "trace", "--compress"],
        vec!["kinds", "NoSuchKind"],
        vec!["completions", "tcsh"],
    ] {
        let run = typhon(&args).expect(64);
        assert!(run.stdout.is_empty(), "{args:?}: {}", run.stdout);
        assert!(run.stderr.contains("error") || run.stderr.contains("Usage"), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_wrong_filter_is_pointed_at() {
    let run = typhon(&["trace", "dump", "nowhere", "--where", "slot=2 knd=1"]).expect(64);
    assert_eq!(
        run.stderr,
        "error: unknown key `knd`\n  --where  slot=2 knd=1\n                  ^^^\n  hint  did you mean `kind`?\n"
    );
}

#[test]
fn inputs_that_are_no_traces_are_65() {
    let files = Files::new();
    let old = files.changed("old.typhon-trace", |bytes| bytes[4] = 11);
    let run = typhon(&["trace", "info", arg(&old)]).expect(65);
    assert_eq!(
        run.stderr,
        format!(
            "error: unsupported trace version 11; this build reads version 12\n  file  {}, offset 4\n  \
             hint  re-record, or convert with the version that wrote it\n",
            old.display()
        )
    );
    for (name, change) in [
        ("text", (|bytes| *bytes = b"hello".to_vec()) as fn(&mut Vec<u8>)),
        ("empty", |bytes| bytes.clear()),
        ("header", |bytes| bytes.truncate(206)),
        ("clock", |bytes| bytes[8..16].fill(0)),
    ] {
        let path = files.changed(name, change);
        for command in ["info", "dump"] {
            typhon(&["trace", command, arg(&path)]).expect(65);
        }
        typhon_with_stdin(&["trace", "info", "-"], &std::fs::read(&path).expect("readable")).expect(65);
    }
}

#[test]
fn missing_and_unreadable_inputs_are_66() {
    let files = Files::new();
    for path in [files.path("missing"), files.folder.path().to_owned()] {
        for args in [
            vec!["trace", "info", arg(&path)],
            vec!["trace", "dump", arg(&path)],
            vec!["trace", "verify", arg(&path)],
            vec!["trace", "repair", arg(&path), "-o", "x"],
            vec!["trace", "export", arg(&path), "-o", "x", "--to", "csv"],
        ] {
            let run = typhon(&args).expect(66);
            assert!(run.stderr.contains(arg(&path)), "{}", run.stderr);
        }
    }
}

#[test]
fn outputs_are_never_overwritten_without_force() {
    let files = Files::new();
    let output = files.path("out");
    std::fs::write(&output, "precious").expect("writable");
    for command in [vec!["repair"], vec!["export", "--to", "trace"], vec!["export", "--to", "csv"]] {
        let with = |extra: &[&'static str], target: &Path| {
            let mut args = vec!["trace".to_owned()];
            args.extend(command.iter().map(|&part| part.to_owned()));
            args.extend([arg(&files.whole).to_owned(), "-o".into(), arg(target).to_owned()]);
            args.extend(extra.iter().map(|&part| part.to_owned()));
            typhon(&args)
        };
        with(&[], &output).expect(73);
        assert_eq!(std::fs::read(&output).expect("readable"), b"precious");
        with(&["--force"], &files.whole).expect(73);
        with(&["--force"], files.folder.path()).expect(73);
        with(&[], &files.path("no/such/folder/out")).expect(73);
        with(&["--force"], &output).expect(0);
        assert_ne!(std::fs::read(&output).expect("readable"), b"precious");
        std::fs::write(&output, "precious").expect("writable");
    }
    let names: Vec<_> = std::fs::read_dir(files.folder.path())
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert_eq!(names.len(), 2, "no temporary files are left: {names:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_74() {
    let files = Files::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let status =
        command().args(["trace", "dump", arg(&files.whole)]).stdout(full).stderr(Stdio::null()).status();
    assert_eq!(status.expect("runs").code(), Some(74));
}

#[test]
#[cfg(unix)]
fn a_closed_pipe_ends_quietly() {
    use std::io::Read;
    let mut child = command()
        .args(["trace", "dump", arg(&recording("anthill.typhon-trace")), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = [0; 10];
    child.stdout.take().expect("piped").read_exact(&mut line).expect("a line comes");
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

/// The reader waits for input, so that the signal finds it alive.
#[test]
#[cfg(unix)]
fn signals_give_128_plus_their_number_and_leave_nothing_behind() {
    use std::io::Write;
    let files = Files::new();
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let output = files.path("interrupted.csv");
        let mut child = command()
            .args(["trace", "export", "-", "-o", arg(&output), "--to", "csv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut pipe = child.stdin.take().expect("piped");
        pipe.write_all(&std::fs::read(&files.whole).expect("readable")[..600]).expect("the child reads");
        // The temporary file says that the handlers are installed and the work has begun.
        while std::fs::read_dir(files.folder.path()).expect("a folder").count() < 2 {
            assert!(child.try_wait().expect("a child").is_none(), "ended early");
            std::thread::yield_now();
        }
        let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(killed.expect("kill exists").success());
        assert_eq!(child.wait().expect("a child").code(), Some(code));
        assert_eq!(std::fs::read_dir(files.folder.path()).expect("a folder").count(), 1);
        drop(pipe);
    }
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_blocks() {
    let files = Files::new();
    let length = std::fs::read(&files.whole).expect("readable").len();
    let mut most = 0;
    for cut in (207..length).step_by(23) {
        let path = files.changed("cut", |bytes| bytes.truncate(cut));
        let records = typhon(&["trace", "dump", arg(&path), "--json"]).expect(0).json_lines().len();
        assert!(records >= most, "a longer file has no fewer records");
        most = records;
        let info = typhon(&["trace", "info", arg(&path), "--json"]).expect(0).json();
        common::schema::check(&info, "info.json");
        assert_eq!(info["counts"]["records"], records, "cut at {cut}");
    }
    assert_eq!(most, 7);
}

#[test]
fn damage_is_named_on_standard_error_and_repair_helps() {
    let files = Files::new();
    let cut = files.changed("cut.typhon-trace", |bytes| {
        // Into the last of the blocks with records: its two records are lost.
        let length = bytes.len();
        bytes.truncate(length / 2);
    });
    let run = typhon(&["trace", "dump", arg(&cut), "--json"]).expect(0);
    let fixed = files.path("fixed.typhon-trace");
    let repair = typhon(&["trace", "repair", arg(&cut), "-o", arg(&fixed), "--json"]).expect(3);
    common::schema::check(&repair.json(), "repair.json");
    assert!(!repair.json()["losses"].as_array().expect("a list").is_empty());
    typhon(&["trace", "verify", arg(&fixed)]).expect(0);
    let again = typhon(&["trace", "dump", arg(&fixed), "--json"]).expect(0);
    let without_ids = |run: &common::Run| {
        let strip = |mut line: serde_json::Value| {
            // Source locations stand behind the cut.
            line.as_object_mut().expect("an object").retain(|key, _| key != "event" && key != "site");
            line
        };
        run.json_lines().into_iter().map(strip).collect::<Vec<_>>()
    };
    assert_eq!(without_ids(&run), without_ids(&again));
}

#[test]
fn a_dry_run_writes_nothing_and_says_the_same() {
    let files = Files::new();
    let cut = files.changed("cut", |bytes| bytes.truncate(bytes.len() - 1));
    let dry = typhon(&["trace", "repair", arg(&cut), "--dry-run", "--json"]).json();
    assert_eq!(dry["output"], serde_json::Value::Null);
    let wet = typhon(&["trace", "repair", arg(&cut), "-o", arg(&files.path("out")), "--json"]).json();
    assert_eq!(
        (&dry["records"], &dry["bytes"], &dry["losses"]),
        (&wet["records"], &wet["bytes"], &wet["losses"])
    );
    assert!(files.path("out").exists());
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let folder = tempdir().expect("a temporary folder");
    let name = "evil\x1b]0;owned\x07\u{202e}\n";
    let blocks = [Records::default().instant(&traces::worker(name), 1, 5).span(
        246,
        1,
        7,
        Span { duration: 8, id: 1, site: None, payload: b"\x1b[2Jspan\x9b\0" },
    )];
    let path = traces::trace(&folder.path().join("evil"), &blocks);
    for format in ["text", "csv", "jsonl"] {
        let run = typhon(&["trace", "dump", arg(&path), "--format", format]).expect(0);
        for c in run.stdout.chars().filter(|c| !matches!(c, '\n' | '\r')) {
            assert!(!c.is_control() && c != '\u{202e}', "{format}: {c:?} in {}", run.stdout);
        }
        let lines = run.stdout.lines().count();
        assert_eq!(lines, if format == "jsonl" { 2 } else { 3 }, "{format}: {}", run.stdout);
    }
    let text = typhon(&["trace", "dump", arg(&path)]).expect(0).stdout;
    assert!(text.contains(r"evil\x1b]0;owned\x07\u{202e}\x0a"), "{text}");
    let lines = typhon(&["trace", "dump", arg(&path), "--json"]).expect(0).json_lines();
    assert_eq!(lines[1]["thread"], name, "JSON keeps the text");
}

#[test]
fn hostile_file_names_are_escaped_in_messages() {
    let run = typhon(&["trace", "info", "no\x1b[31msuch"]).expect(66);
    assert!(run.stderr.contains(r"no\x1b[31msuch") && !run.stderr.contains('\x1b'), "{}", run.stderr);
}
