//! `typhon ui` from outside: what it says before a browser opens, that its numbers are those of the other commands, and
//! how it ends.
#![cfg(unix)]

mod common;

use common::{command, repository, typhon};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Ui {
    child: Child,
    port: u64,
    token: String,
}

impl Ui {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut child = command()
            .args(["ui", "--json"])
            .args(args)
            .current_dir(folder)
            .env("TYPHON_CACHE_DIR", folder.join("cache"))
            .env("XDG_CONFIG_HOME", folder.join("config"))
            // Beside other tests and other users of the machine.
            .env("TYPHON_UI_PORT", "42100")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect("a document");
        let url = said["url"].as_str().expect("an address");
        let token =
            url.rsplit_once("token=").expect("a token").1.split('&').next().expect("a token").to_owned();
        Self { port: said["port"].as_u64().expect("a port"), token, child }
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port as u16)).expect("it listens");
        let request = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.port, self.token
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("UTF-8");
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("an answer").1).expect("JSON")
    }

    /// The body of the answer to a POST.
    fn post(&self, path: &str, body: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port as u16)).expect("it listens");
        let host = format!("127.0.0.1:{}", self.port);
        let request = format!(
            "POST /api/v1{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        answer.split_off(end + 4)
    }

    fn wait_until_ready(&self) {
        self.wait_for_all(1);
    }

    fn wait_for_all(&self, sessions: usize) {
        let started = Instant::now();
        for session in 1..=sessions {
            while self.get(&format!("/sessions/{session}"))["state"]["is"] != "ready" {
                assert!(started.elapsed() < Duration::from_secs(120), "it does not become ready");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Ends it by a signal; the exit code.
    fn end(&mut self, signal: &str) -> Option<i32> {
        let sent =
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn b1_what_is_wrong_is_said_before_a_browser_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text.typhon-trace");
    std::fs::write(&text, "no trace").expect("written");
    let (text, missing) = (text.to_str().expect("UTF-8"), folder.path().join("missing.typhon-trace"));
    let missing = missing.to_str().expect("UTF-8");
    let cases: [(&[&str], i32, &str); 9] = [
        (&[missing], 66, "cannot be opened"),
        (&[folder.path().to_str().expect("UTF-8")], 66, "folder"),
        (&[text], 65, "trace"),
        (&["-"], 64, "not a pipe"),
        (&["--root", missing], 66, "no folder"),
        (&["--ui-dir", text], 66, "no folder"),
        (&["--port", "0"], 64, "--port"),
        (&["--memory", "12"], 64, "64M"),
        (&["--nothing"], 64, "--nothing"),
    ];
    for (args, code, said) in cases {
        let run = typhon(&[&["ui", "--no-browser"], args].concat()).expect(code);
        assert!(run.stderr.contains(said), "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{args:?}");
    }
    assert!(!Path::new(missing).exists(), "nothing is created from a typo");
}

#[test]
fn inv6_numbers_are_those_of_trace_stats_and_a_signal_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, signal, code) in [("anthill", "-INT", 130), ("all-kinds", "-TERM", 143)] {
        let file = repository().join(format!("corpus/{name}.typhon-trace"));
        let file = file.to_str().expect("UTF-8");
        let mut ui = Ui::start(folder.path(), &["--no-browser", file]);
        ui.wait_until_ready();
        for by in ["kind", "family", "name", "system", "thread"] {
            for (order, flags) in [("total", &[][..]), ("self", &["--self"][..])] {
                let args = [&["trace", "stats", "--json", "--by", by, "--top", "0", file], flags].concat();
                let expected = typhon(&args).expect(0).json();
                let found = ui.get(&format!("/sessions/1/stats?by={by}&order={order}&top=0"));
                for part in ["by", "window", "rows", "rowCount", "gc"] {
                    assert_eq!(found[part], expected[part], "{name} {by} {order} {part}");
                }
                for part in ["count", "p50Ns", "p95Ns", "p99Ns", "maxNs", "worst"] {
                    assert_eq!(found["ticks"][part], expected["ticks"][part], "{name} {part}");
                }
            }
        }
        // A window, which the command line counts from the first record of the file.
        let zero = ui.get("/sessions/1/meta")["time"]["zeroNs"].as_i64().expect("a number");
        let range = format!("{}ns..{}ns", 2_000_000 + zero, 900_000_000 + zero);
        let expected =
            typhon(&["trace", "stats", "--json", "--top", "0", "--range", &range, file]).expect(0).json();
        let found = ui.get("/sessions/1/stats?top=0&fromNs=2000000&toNs=900000000");
        assert_eq!(
            (&found["rows"], &found["ticks"]["count"]),
            (&expected["rows"], &expected["ticks"]["count"])
        );
        assert_eq!(ui.end(signal), Some(code));
    }
}

#[test]
fn a_part_is_cut_as_the_command_line_cuts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = repository().join("corpus/anthill.typhon-trace");
    let file = file.to_str().expect("UTF-8");
    let ui = Ui::start(folder.path(), &["--no-browser", file]);
    ui.wait_until_ready();
    let zero = ui.get("/sessions/1/meta")["time"]["zeroNs"].as_i64().expect("a number");
    let range = format!("{}ns..{}ns", 200_000_000 + zero, 400_000_000 + zero);
    let by_hand = folder.path().join("part.typhon-trace");
    let by_hand_text = by_hand.to_str().expect("UTF-8");
    typhon(&["trace", "export", file, "-o", by_hand_text, "--to", "trace", "--range", &range]).expect(0);
    let cut = ui.post("/sessions/1/export", r#"{"fromNs":200000000,"toNs":400000000}"#);
    assert!(cut == std::fs::read(&by_hand).expect("written"), "{} bytes", cut.len());
    // And all of it has all events.
    let whole = folder.path().join("whole.typhon-trace");
    std::fs::write(&whole, ui.post("/sessions/1/export", "{}")).expect("written");
    let events =
        |file: &str| typhon(&["trace", "info", "--json", file]).expect(0).json()["counts"]["records"].clone();
    let (copied, original) = (events(whole.to_str().expect("UTF-8")), events(file));
    assert!(copied.as_u64().expect("a number") > 0);
    assert_eq!(copied, original);
}

#[test]
fn fifty_sessions_keep_to_the_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let names: Vec<String> = (0..50).map(|at| format!("{at}.typhon-trace")).collect();
    for name in &names {
        std::fs::copy(repository().join("corpus/anthill.typhon-trace"), folder.path().join(name))
            .expect("copied");
    }
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    for (memory, most_mib) in [("128M", 128), ("256M", 256)] {
        let ui = Ui::start(folder.path(), &[&["--no-browser", "--memory", memory], &files[..]].concat());
        ui.wait_for_all(50);
        for session in 1..=50 {
            assert!(ui.get(&format!("/sessions/{session}/stats?by=name"))["rowCount"].as_u64() > Some(0));
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", ui.child.id())) else { return };
        let peak = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
        let kib: u64 = peak.split_whitespace().nth(1).expect("a number").parse().expect("a number");
        println!("{memory}: {} MiB", kib >> 10);
        assert!(kib >> 10 <= most_mib, "{memory}: {} MiB", kib >> 10);
    }
}

#[test]
fn a_file_that_may_not_be_read_is_refused_in_the_terminal() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("set");
    let file = folder.path().join("a.typhon-trace");
    std::fs::copy(repository().join("corpus/all-kinds.typhon-trace"), &file).expect("copied");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).expect("set");
    let mut ui = command();
    ui.args(["ui", "--no-browser"]).arg(&file).current_dir(folder.path()).env("HOME", folder.path());
    // Root may read everything.
    if std::fs::metadata(folder.path()).expect("there").uid() == 0 {
        ui.uid(65_534).gid(65_534);
    }
    let run = ui.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(77), "{said}");
    assert!(said.contains("a.typhon-trace") && run.stdout.is_empty(), "{said}");
}

#[test]
fn a_signal_while_a_file_is_indexed_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.typhon-trace");
    std::fs::copy(repository().join("corpus/anthill.typhon-trace"), &file).expect("copied");
    let mut while_indexing = 0;
    for _ in 0..5 {
        let mut ui = Ui::start(folder.path(), &["--no-browser", "a.typhon-trace"]);
        while_indexing += u32::from(ui.get("/sessions/1")["state"]["is"] == "opening");
        let started = Instant::now();
        assert_eq!(ui.end("-INT"), Some(130));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
    println!("{while_indexing} of 5 while it was indexed");
    let left = std::fs::read_dir(folder.path()).expect("there").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != "a.typhon-trace").collect();
    assert!(left.iter().all(|name| name == "cache" || name == "config"), "{left:?}");
}

#[test]
fn the_memory_can_be_set_by_the_environment() {
    let run = command()
        .args(["ui", "--no-browser"])
        .env("TYPHON_UI_MEMORY", "lots")
        .output()
        .expect("the binary starts");
    assert_eq!(run.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&run.stderr).contains("TYPHON_UI_MEMORY"));
}

#[test]
fn f3_a_browser_gets_the_address_in_a_file_of_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let (browser, seen) = (folder.path().join("browser.sh"), folder.path().join("seen"));
    let script = format!(
        "#!/bin/sh\nstat -c %a \"$1\" > {0}.tmp\ncat \"$1\" >> {0}.tmp\necho \"$@\" >> {0}.tmp\nmv {0}.tmp {0}\n",
        seen.display()
    );
    std::fs::write(&browser, script).expect("written");
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).expect("set");
    let mut ui = {
        let mut child = command()
            .args(["ui", "--json", "--at", "#t=1..2"])
            .current_dir(folder.path())
            .env("TYPHON_BROWSER", &browser)
            .env("TYPHON_CACHE_DIR", folder.path().join("cache"))
            .env("TYPHON_UI_PORT", "42200")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect("a document");
        Ui {
            port: said["port"].as_u64().expect("a port"),
            token: said["url"].as_str().expect("text").to_owned(),
            child,
        }
    };
    let started = Instant::now();
    while !seen.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "the browser was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen = std::fs::read_to_string(seen).expect("read");
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], "600", "only the user can read it");
    assert!(seen.contains(&ui.token.replace('&', "&amp;")), "{seen}");
    let last = lines.last().expect("arguments");
    assert!(last.ends_with(".html") && !last.contains("token"), "the command line tells nothing: {last}");
    assert_eq!(ui.end("-INT"), Some(130));
    assert!(!Path::new(last).exists(), "the file is gone with the run");
}
