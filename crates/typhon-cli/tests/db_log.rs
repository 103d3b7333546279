//! `typhon db log`: whole logs, damaged ones, foreign ones, logs that are open, and what all of them look like.
#![cfg(unix)]

mod common;

use common::{Run, arg, command, schema, typhon};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::{TempDir, tempdir};
use typhon_log::format::FrameKind;
use typhon_log::{Draft, FenceEnd, Options, Store};
use typhon_store::PoolIo;
use typhon_sync::Deadline;

fn open(directory: &Path) -> Store {
    let options = Options { segment_bytes: 16 << 10, ..Options::small() };
    let opening = Store::open(Arc::new(PoolIo::new()), directory, options, b"state").expect("opens");
    opening.start(b"state").expect("starts")
}

/// Four commits of 3000 bytes in two segments, then a fence, then a change of the catalog.
fn sample() -> (TempDir, PathBuf) {
    let folder = tempdir().expect("a temporary folder");
    let directory = folder.path().join("wal");
    let log = open(&directory);
    for byte in 0..4 {
        let body = [byte; 3000];
        let mut draft = Draft::commit(&body);
        (draft.uow, draft.records) = (7, 2);
        log.commit(&draft, Deadline::INFINITE).expect("durable");
    }
    log.append(&Draft::fence_part(9, b"part"), Deadline::INFINITE).expect("appended");
    let end = FenceEnd { fence: 9, tick: 1, parts: 1, records: 1 }.encode();
    log.append(&Draft::fence_end(&end), Deadline::INFINITE).expect("appended");
    let catalog = Draft::other(FrameKind::Catalog, 0, b"catalog").expect("no sequence number");
    log.commit(&catalog, Deadline::INFINITE).expect("durable");
    drop(log);
    (folder, directory)
}

fn segment(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016}.wal"))
}

fn change(path: &Path, at: usize, bytes: &[u8]) {
    let mut content = fs::read(path).expect("readable");
    content[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).expect("writable");
}

/// The document of a run with this exit code, checked against its schema.
#[track_caller]
fn document(path: &Path, code: i32, options: &[&str]) -> Value {
    let mut args = vec!["db", "log", arg(path), "--json"];
    args.extend(options);
    let document = typhon(&args).expect(code).json();
    schema::check(&document, "db-log.json");
    document
}

fn codes(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("a list");
    findings.iter().map(|finding| finding["code"].as_str().expect("a text")).collect()
}

const WHOLE: &str = "\
SOUND  DIRECTORY
  database STORE  open 1  anchor written 2 times
  base 4096  next sequence number 6  state 5 B

FILE                  STATE    OPEN  FIRST LSN    SIZE  BLOCKS  FRAMES
0000000000000001.wal  current     1       4096  16 KiB       3       3
0000000000000002.wal  current     1      13192  16 KiB       2       4

  LSN  KIND       SEQ  UOW  FLAGS  RECORDS      BODY  BLOCK
 7128  Commit       1    7   0x00        2  2.93 KiB  0000000000000001.wal @ 0x00001000
10160  Commit       2    7   0x00        2  2.93 KiB  0000000000000001.wal @ 0x00002000
13192  Commit       3    7   0x00        2  2.93 KiB  0000000000000001.wal @ 0x00003000
16224  Commit       4    7   0x00        2  2.93 KiB  0000000000000002.wal @ 0x00001000
16264  FencePart    9    0   0x00        0       4 B  0000000000000002.wal @ 0x00002000
16320  FenceEnd     5    0   0x00        0      24 B  0000000000000002.wal @ 0x00002000
16360  Catalog      0    0   0x00        0       7 B  0000000000000002.wal @ 0x00002000

  7 frames in 5 blocks behind the base, 11.8 KiB of bodies
  the log ends at 16360: nothing follows
";

/// The text, with what is different in every log replaced.
fn text(run: &Run, directory: &Path) -> String {
    let store = regex::Regex::new("[0-9a-f]{32}").expect("a pattern");
    store.replace_all(&run.stdout.replace(arg(directory), "DIRECTORY"), "STORE").into_owned()
}

#[test]
fn a_whole_log_as_text() {
    let (_folder, directory) = sample();
    let run = typhon(&["db", "log", arg(&directory)]).expect(0);
    assert_eq!(text(&run, &directory), WHOLE);
    assert!(run.stderr.is_empty(), "{}", run.stderr);
}

#[test]
fn a_whole_log_as_json() {
    let (_folder, directory) = sample();
    let found = document(&directory, 0, &[]);
    assert_eq!(found["verdict"], "sound");
    assert_eq!((&found["base"], &found["end"], &found["nextTsn"]), (&4096.into(), &16360.into(), &6.into()));
    assert_eq!((&found["tail"]["state"], &found["tail"]["offset"]), (&"end".into(), &0x3000.into()));
    assert_eq!((&found["anchor"]["generation"], &found["anchor"]["stateBytes"]), (&2.into(), &5.into()));
    let kinds: Vec<_> =
        found["frames"].as_array().expect("a list").iter().map(|frame| frame["kind"].clone()).collect();
    assert_eq!(kinds, ["Commit", "Commit", "Commit", "Commit", "FencePart", "FenceEnd", "Catalog"]);
    let frame = &found["frames"][3];
    assert_eq!((&frame["seq"], &frame["uow"], &frame["records"]), (&4.into(), &7.into(), &2.into()));
    assert_eq!((&frame["file"], &frame["blockOffset"]), (&"0000000000000002.wal".into(), &4096.into()));
    assert_eq!((&found["files"][1]["frames"], &found["files"][1]["header"]["id"]), (&4.into(), &2.into()));
}

#[test]
fn limit_tail_and_from_choose_frames_and_the_rest_is_counted() {
    let (_folder, directory) = sample();
    let lsns = |options: &[&str]| -> Vec<u64> {
        let found = document(&directory, 0, options);
        assert_eq!(found["framesTotal"], 7);
        let frames = found["frames"].as_array().expect("a list");
        frames.iter().map(|frame| frame["lsn"].as_u64().expect("a number")).collect()
    };
    assert_eq!(lsns(&["--limit", "2"]), [7128, 10160]);
    assert!(lsns(&["--limit", "0"]).is_empty());
    assert_eq!(lsns(&["--tail", "2"]), [16320, 16360]);
    assert_eq!(lsns(&["--from", "16264"]), [16320, 16360]);
    assert_eq!(lsns(&["--from", "10159", "--limit", "1"]), [10160]);
    let shown = typhon(&["db", "log", arg(&directory), "--limit", "2"]).expect(0).stdout;
    assert!(shown.contains("(5 not shown: --limit, --tail, --from)"), "{shown}");
    for wrong in [vec!["--limit", "1", "--tail", "1"], vec!["--limit", "1000001"], vec!["--from", "-1"]] {
        let mut args = vec!["db", "log", arg(&directory)];
        args.extend(wrong);
        typhon(&args).expect(64);
    }
}

#[test]
fn a_torn_tail_is_a_notice_and_damage_before_it_is_loss() {
    let (_folder, directory) = sample();
    change(&segment(&directory, 2), 0x2000 + 97, b"x");
    let found = document(&directory, 1, &[]);
    assert_eq!((codes(&found), &found["tail"]["state"]), (vec!["torn-tail"], &"torn".into()));
    assert_eq!((&found["framesTotal"], &found["findings"][0]["offset"]), (&4.into(), &0x2000.into()));
    let shown = typhon(&["db", "log", arg(&directory)]).expect(1).stdout;
    assert!(shown.starts_with("SOUND, WITH NOTICES") && shown.contains("@ 0x00002000"), "{shown}");

    change(&segment(&directory, 1), 0x2000 + 2000, b"x");
    let found = document(&directory, 3, &[]);
    assert_eq!((found["verdict"].as_str(), &found["framesTotal"]), (Some("data-loss"), &1.into()));
    assert!(codes(&found).contains(&"damage"), "{found}");
    assert!(found["findings"][0]["message"].as_str().expect("a text").contains("restore from a backup"));
}

#[test]
fn a_missing_segment_a_foreign_one_and_a_foreign_version_have_their_codes() {
    let (_folder, directory) = sample();
    let (_other, foreign) = sample();
    fs::copy(segment(&foreign, 1), segment(&directory, 8)).expect("copied");
    assert_eq!(codes(&document(&directory, 2, &[])), ["foreign-database"]);
    fs::write(segment(&directory, 9), "%PDF-1.7 a report").expect("written");
    assert_eq!(codes(&document(&directory, 2, &[])), ["foreign-database", "foreign-file"]);
    fs::remove_file(segment(&directory, 1)).expect("removed");
    assert!(codes(&document(&directory, 3, &[])).contains(&"segment-missing"));

    let (_folder, directory) = sample();
    let mut bytes = fs::read(segment(&directory, 2)).expect("readable");
    bytes[4] = 9;
    let crc = crc32c(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&crc);
    fs::write(segment(&directory, 2), bytes).expect("written");
    let found = document(&directory, 4, &[]);
    assert_eq!(codes(&found), ["foreign-version"]);
    assert!(found["findings"][0]["message"].as_str().expect("a text").contains("version 9"), "{found}");
    assert_eq!(found["framesTotal"], 3, "what can be read is shown");
}

const CUT: &str = "\
DATA LOSS  DIRECTORY
  segment-cut  0000000000000002.wal @ 0x00002000: has 8192 of its 16384 bytes: \
it was cut off, and what was in the rest is lost. Nothing was changed: restore from a backup, or accept the loss \
with the option `truncate_damage`
  database STORE  open 1  anchor written 2 times
  base 4096  next sequence number 5  state 5 B

FILE                  STATE    OPEN  FIRST LSN    SIZE  BLOCKS  FRAMES
0000000000000001.wal  current     1       4096  16 KiB       3       3
0000000000000002.wal  current     1      13192   8 KiB       1       1

  LSN  KIND    SEQ  UOW  FLAGS  RECORDS      BODY  BLOCK
 7128  Commit    1    7   0x00        2  2.93 KiB  0000000000000001.wal @ 0x00001000
10160  Commit    2    7   0x00        2  2.93 KiB  0000000000000001.wal @ 0x00002000
13192  Commit    3    7   0x00        2  2.93 KiB  0000000000000001.wal @ 0x00003000
16224  Commit    4    7   0x00        2  2.93 KiB  0000000000000002.wal @ 0x00001000

  4 frames in 4 blocks behind the base, 11.7 KiB of bodies
  the log ends at 16224: nothing follows
";

/// The end of a whole block: only the length of the file shows that there was more.
#[test]
fn a_segment_that_was_cut_off_is_loss_and_is_named() {
    let (_folder, directory) = sample();
    let last = segment(&directory, 2);
    fs::OpenOptions::new().write(true).open(&last).and_then(|file| file.set_len(8 << 10)).expect("cut off");
    let run = typhon(&["db", "log", arg(&directory)]).expect(3);
    assert_eq!(text(&run, &directory), CUT);
    let found = document(&directory, 3, &[]);
    assert_eq!((codes(&found), found["verdict"].as_str()), (vec!["segment-cut"], Some("data-loss")));
    let finding = &found["findings"][0];
    assert_eq!(
        (&finding["file"], &finding["offset"], &finding["severity"]),
        (&"0000000000000002.wal".into(), &8192.into(), &"data-loss".into())
    );
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[test]
fn without_a_right_anchor_the_newest_open_is_shown_and_the_verdict_says_so() {
    let (_folder, directory) = sample();
    fs::remove_file(directory.join("anchor")).expect("removed");
    let found = document(&directory, 4, &[]);
    assert_eq!((codes(&found), &found["framesTotal"]), (vec!["anchor-missing"], &7.into()));
    assert_eq!(found["anchor"], Value::Null);
    fs::write(directory.join("anchor"), [0; 8192]).expect("written");
    assert_eq!(codes(&document(&directory, 4, &[])), ["anchor-damaged"]);
}

#[test]
fn one_segment_is_shown_by_itself() {
    let (folder, directory) = sample();
    let found = document(&segment(&directory, 2), 0, &[]);
    assert_eq!((&found["framesTotal"], &found["base"]), (&4.into(), &13192.into()));
    let copy = folder.path().join("copy of a segment");
    fs::copy(segment(&directory, 1), &copy).expect("copied");
    assert_eq!(document(&copy, 0, &[])["files"][0]["name"], "copy of a segment");
    for (path, hint) in [
        (directory.join("anchor"), "name its directory"),
        (common::recording("guide-shard.typhon-trace"), "typhon trace info"),
    ] {
        let found = document(&path, 4, &[]);
        assert!(found["error"].as_str().expect("a text").contains(hint), "{found}");
        let shown = typhon(&["db", "log", arg(&path)]).expect(4).stdout;
        assert!(shown.starts_with("UNOPENABLE") && shown.contains(hint), "{shown}");
    }
}

#[test]
fn what_is_not_there_and_what_is_no_log_are_told_apart() {
    let folder = tempdir().expect("a temporary folder");
    let missing = folder.path().join("missing");
    let run = typhon(&["db", "log", arg(&missing)]).expect(66);
    assert!(run.stdout.is_empty() && run.stderr.contains("missing"), "{}", run.stderr);
    assert_eq!(run.stderr.matches(arg(&missing)).count(), 1, "the file is named once: {}", run.stderr);
    let nothing = "holds no log: there is neither an anchor nor a segment in it";
    let run = typhon(&["db", "log", arg(folder.path())]).expect(4);
    assert_eq!(text(&run, folder.path()), format!("UNOPENABLE  DIRECTORY\n  {nothing}\n"));
    let found = document(folder.path(), 4, &[]);
    assert_eq!(found["error"], nothing);
    for number in ["base", "end", "nextTsn", "anchor", "tail"] {
        assert_eq!(found[number], Value::Null, "there is no {number}");
    }
}

/// The heading has the path, and a finding the name of the file in there.
#[test]
fn a_path_is_said_once() {
    let (_folder, directory) = sample();
    let said_once = |path: &Path, code: i32, line: &str| {
        let run = typhon(&["db", "log", arg(path)]).expect(code);
        assert_eq!(run.stdout.matches(arg(path)).count(), 1, "{}", run.stdout);
        assert_eq!(run.stdout.matches(arg(&directory)).count(), 1, "{}", run.stdout);
        assert!(run.stdout.contains(line), "{line} in {}", run.stdout);
        let message = &document(path, code, &[])["findings"][0]["message"];
        let message = message.as_str().expect("a text");
        assert!(!message.contains(arg(&directory)) && line.contains(&message[..12]), "{line}: {message}");
    };
    let foreign = segment(&directory, 8);
    fs::write(&foreign, "%PDF-1.7 a report").expect("written");
    said_once(&directory, 2, "foreign-file  0000000000000008.wal: is not a file of this log");
    fs::remove_file(foreign).expect("removed");

    let one = segment(&directory, 1);
    let whole = fs::read(&one).expect("readable");
    change(&one, 0x2000 + 2000, b"x");
    said_once(&directory, 3, "damage  0000000000000001.wal @ 0x00003000: damage before byte 12288");
    said_once(&one, 3, "damage  @ 0x00003000: damage before byte 12288");
    fs::remove_file(&one).expect("removed");
    said_once(&directory, 3, "segment-missing  no segment covers position 4096");
    fs::write(&one, whole).expect("written");
    fs::remove_file(directory.join("anchor")).expect("removed");
    said_once(&directory, 4, "anchor-missing  anchor: is missing, but there are segments");
}

/// Nothing reads the padding, so no frame is worse for it; but a log that is sound has zeros there.
#[test]
fn padding_that_is_not_zero_is_a_notice_and_what_may_be_anything_is_none() {
    let (_folder, directory) = sample();
    let (one, two) = (segment(&directory, 1), segment(&directory, 2));
    // Behind the last block of a segment, where there is room for one, and in a spare or a file of the past.
    change(&two, 0x3000, b"an earlier life of the file");
    assert!(codes(&document(&directory, 0, &[])).is_empty());
    // Behind the header, behind the frames of a block, and between two frames: `part` ends at 4 of 8.
    for (file, offset) in [(&one, 64), (&one, 4095), (&one, 0x1000 + 64 + 3032), (&two, 0x2000 + 64 + 36)] {
        let whole = fs::read(file).expect("readable");
        change(file, offset, b"x");
        let found = document(&directory, 1, &[]);
        let finding = &found["findings"][0];
        assert_eq!((codes(&found), &finding["offset"]), (vec!["not-zero"], &offset.into()), "{found}");
        assert_eq!(found["verdict"], "sound-with-notices");
        assert_eq!((&found["framesTotal"], &found["tail"]["state"]), (&7.into(), &"end".into()));
        fs::write(file, whole).expect("written");
    }
    change(&one, 100, b"xyz");
    change(&one, 0x1000 + 64 + 3032, b"x\0y");
    change(&two, 0x2fff, b"x");
    let shown = typhon(&["db", "log", arg(&directory)]).expect(1).stdout;
    for line in [
        "SOUND, WITH NOTICES",
        "  not-zero  0000000000000001.wal @ 0x00000064: 5 bytes beside the frames, in 2 places, should be zero",
        "  not-zero  0000000000000002.wal @ 0x00002fff: 1 byte beside the frames, in 1 place, should be zero",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    // An open takes no notice.
    drop(open(&directory));
}

/// A log of fourteen segments and a foreign file between two of them.
#[test]
fn many_files_are_summed_up_in_text_and_complete_in_json() {
    let (_folder, directory) = sample();
    let log = open(&directory);
    let pin = log.pin(log.watermarks().durable);
    for byte in 0..40 {
        log.commit(&Draft::commit(&[byte; 3000]), Deadline::INFINITE).expect("durable");
    }
    drop(pin);
    drop(log);
    for options in [vec![], vec!["--tail", "1"], vec!["--limit", "0"]] {
        let mut args = vec!["db", "log", arg(&directory)];
        args.extend(&options);
        let shown = typhon(&args).expect(0).stdout;
        let rows: Vec<&str> = shown.lines().filter(|line| line.contains(" current ")).collect();
        assert_eq!(rows.len(), 7, "{shown}");
        let columns: Vec<&str> = rows[3].split_whitespace().collect();
        assert_eq!(columns, ["(8", "more)", "current", "128", "KiB", "24", "24"], "{shown}");
        assert!(
            rows[0].starts_with("0000000000000003.wal") && rows[6].starts_with("0000000000000016.wal"),
            "{shown}"
        );
        let found = document(&directory, 0, &options);
        let files = found["files"].as_array().expect("a list");
        assert_eq!(files.iter().filter(|file| file["state"] == "current").count(), 14);
    }
    // Each state has rows of its own.
    fs::write(segment(&directory, 10), "%PDF-1.7 a report").expect("written");
    let shown = typhon(&["db", "log", arg(&directory)]).expect(3).stdout;
    assert!(shown.contains("0000000000000010.wal  foreign") && !shown.contains("more)"), "{shown}");
    let help = typhon(&["db", "log", "--help"]).expect(0).stdout;
    assert!(help.contains("first and the last three") && help.contains("with --json all are"), "{help}");
    assert!(help.contains("Sound is what an open reads"), "{help}");
}

#[test]
fn a_folder_named_like_a_segment_is_told_and_the_rest_is_shown() {
    let (_folder, directory) = sample();
    for name in ["0000000000000003.wal", "0000000000000009.spare"] {
        fs::create_dir(directory.join(name)).expect("created");
        let found = document(&directory, 2, &[]);
        assert_eq!((codes(&found), &found["framesTotal"]), (vec!["not-a-file"], &7.into()));
        assert_eq!(found["findings"][0]["file"], name);
        let shown = typhon(&["db", "log", arg(&directory)]).expect(2).stdout;
        assert!(shown.starts_with("DIVERGENT") && shown.contains("move it out of the directory"), "{shown}");
        fs::remove_dir(directory.join(name)).expect("empty");
    }
    document(&directory, 0, &[]);
}

/// A pipe that nobody writes into would keep the command for ever.
#[test]
fn what_is_no_file_is_told_and_not_waited_for() {
    let (folder, directory) = sample();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let run = typhon(&["db", "log", arg(&pipe)]).expect(66);
    assert!(run.stderr.contains("pipe") && run.stderr.contains("not a file"), "{}", run.stderr);
    fs::rename(&pipe, directory.join("anchor")).expect("renamed");
    let run = typhon(&["db", "log", arg(&directory)]).expect(66);
    assert!(run.stderr.contains("anchor") && run.stderr.contains("move it away"), "{}", run.stderr);
    assert!(run.stdout.is_empty(), "{}", run.stdout);
}

/// The command as somebody who owns nothing: rights do not bind root.
fn as_nobody(folder: &Path, path: &Path) -> std::process::Output {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    // Where the program is, nobody may be allowed to go.
    let program = folder.join("typhon");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_typhon"), &program).expect("copied");
    }
    let mut command = std::process::Command::new(&program);
    command.args(["db", "log", arg(path)]).current_dir("/");
    if fs::metadata("/proc/self").map_or(0, |data| data.uid()) == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    loop {
        // While another test forks, its child holds what was open here: the program just written, for a moment.
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return output.expect("the binary starts"),
        }
    }
}

#[test]
fn what_may_not_be_read_is_named_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, directory) = sample();
    let set_mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
    set_mode(folder.path(), 0o755);
    let (one, anchor) = (segment(&directory, 2), directory.join("anchor"));
    for (refused, named, shown, mode) in [
        (&directory, &directory, &directory, 0o755),
        (&one, &directory, &one, 0o644),
        (&one, &one, &one, 0o644),
        (&anchor, &directory, &anchor, 0o644),
    ] {
        set_mode(refused, 0o000);
        let output = as_nobody(folder.path(), named);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(77), "{text}");
        assert!(text.contains(arg(shown)) && text.contains("ermission denied"), "{text}");
        assert!(text.contains("hint  run as the owner") && output.stdout.is_empty(), "{text}");
        set_mode(refused, mode);
    }
    // To look takes the right to read and no more.
    set_mode(&directory, 0o555);
    assert_eq!(as_nobody(folder.path(), &directory).status.code(), Some(0));
    set_mode(&directory, 0o755);
}

/// It is open for writing in this process, and stays untouched.
#[test]
fn a_log_that_is_open_is_shown_and_can_be_written_on() {
    let (_folder, directory) = sample();
    let log = open(&directory);
    for byte in 0..5 {
        log.commit(&Draft::commit(&[byte; 10]), Deadline::INFINITE).expect("durable");
        let found = document(&directory, 0, &[]);
        assert_eq!(found["framesTotal"], u64::from(byte) + 1);
    }
    assert!(log.failure().is_none());
    drop(log);
    drop(open(&directory));
}

#[test]
fn nothing_is_written() {
    let (_folder, directory) = sample();
    let state = || {
        let mut files: Vec<_> = fs::read_dir(&directory)
            .expect("readable")
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let modified = path.metadata().and_then(|data| data.modified()).expect("a time");
                (path.clone(), fs::read(&path).expect("readable"), modified)
            })
            .collect();
        files.sort();
        files
    };
    let before = state();
    typhon(&["db", "log", arg(&directory)]).expect(0);
    typhon(&["db", "log", arg(&segment(&directory, 1))]).expect(0);
    assert!(state() == before);
}

#[test]
fn hostile_names_reach_no_terminal() {
    let (folder, directory) = sample();
    let hostile = folder.path().join("\u{1b}[31m\u{202e}wal\n");
    fs::rename(&directory, &hostile).expect("renamed");
    for args in [vec!["db", "log", arg(&hostile)], vec!["db", "log", arg(&hostile), "--json"]] {
        let run = typhon(&args).expect(0);
        let first = run.stdout.lines().take(3).collect::<String>();
        assert!(!first.contains('\u{1b}') && !first.contains('\u{202e}'), "{first}");
    }
    fs::remove_file(hostile.join("anchor")).expect("removed");
    let run = typhon(&["db", "log", arg(&hostile)]).expect(4);
    assert!(!run.stdout.contains('\u{1b}') && !run.stdout.contains('\u{202e}'), "{}", run.stdout);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let (_folder, directory) = sample();
    let mut child = command()
        .args(["db", "log", arg(&directory)])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the binary ends");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
