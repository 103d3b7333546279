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

    fn wait_until_ready(&self) {
        let started = Instant::now();
        while self.get("/sessions/1")["state"]["is"] != "ready" {
            assert!(started.elapsed() < Duration::from_secs(60), "it does not become ready");
            std::thread::sleep(Duration::from_millis(20));
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
