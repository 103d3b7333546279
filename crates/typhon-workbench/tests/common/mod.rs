//! A server in this process, and the least of a browser: requests byte by byte, so that they can be forged.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a panic is what a test fails with")]

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};
use typhon_workbench::{Options, Server};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Running {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    pub(crate) token: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }
}

pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name)
}

/// Waits for something that comes soon, or else the test fails.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what} did not come");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Running {
    /// A server with copies of corpus files in its root folder, opened.
    pub(crate) fn with(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::copy(corpus(file), folder.path().join(file)).unwrap();
        }
        Self::at(folder, files)
    }

    /// A server over a folder, with some of its files opened.
    pub(crate) fn at(folder: TempDir, files: &[&str]) -> Self {
        let root = folder.path().to_owned();
        let server = Server::bind(Options {
            port: Some(0),
            first_port: 0,
            root: root.clone(),
            source_roots: vec![root.clone()],
            memory_bytes: 128 << 20,
            index_files: true,
            ui_folder: Some(root.clone()),
            cache_folder: Some(root.join("cache")),
            settings_file: Some(root.join("config/workbench.json")),
        })
        .unwrap();
        for file in files {
            server.open(&root.join(file)).unwrap();
        }
        let port = server.port();
        let token = server.url(None).rsplit_once("token=").unwrap().1.to_owned();
        let ends = Arc::new(AtomicBool::new(false));
        let of_thread = ends.clone();
        let thread = thread::spawn(move || server.run(move || of_thread.load(Ordering::Relaxed)).unwrap());
        let running = Self { folder, port, token, ends, thread: Some(thread) };
        for at in 1..=files.len() {
            eventually("an index", || {
                let state = running.get(&format!("/sessions/{at}")).json();
                (state["state"]["is"] == "ready").then_some(())
            });
        }
        running
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request as it stands and reads the answer to its end.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses may close before it has read everything.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no answer to {}", String::from_utf8_lossy(request).lines().next().unwrap_or_default())
        });
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head[9..12].parse().unwrap();
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    /// A request with exactly these headers.
    pub(crate) fn with_headers(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{lines}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// A request as the page makes it; the path is below `/api/v1`.
    pub(crate) fn send(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let host = format!("127.0.0.1:{}", self.port);
        let (origin, bearer) = (format!("http://{host}"), format!("Bearer {}", self.token));
        let headers = [
            ("Host", host.as_str()),
            ("Origin", &origin),
            ("Authorization", &bearer),
            ("Sec-Fetch-Site", "same-origin"),
        ];
        self.with_headers(method, &format!("/api/v1{path}"), &headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, b"")
    }

    /// A WebSocket, before its first message.
    pub(crate) fn upgraded(&self, origin: &str) -> Result<WebSocket<TcpStream>, String> {
        use tungstenite::client::IntoClientRequest;
        let mut request = format!("ws://127.0.0.1:{}/api/v1/ws", self.port).into_client_request().unwrap();
        request.headers_mut().insert("Origin", origin.parse().unwrap());
        tungstenite::client(request, self.connect())
            .map(|(socket, _)| socket)
            .map_err(|error| error.to_string())
    }

    /// A WebSocket that was welcomed.
    pub(crate) fn socket(&self) -> WebSocket<TcpStream> {
        let mut socket = self.upgraded(&format!("http://127.0.0.1:{}", self.port)).unwrap();
        say(&mut socket, &serde_json::json!({ "type": "hello", "token": self.token }));
        assert_eq!(heard(&mut socket, "welcome")["type"], "welcome");
        socket
    }

    pub(crate) fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn say(socket: &mut WebSocket<TcpStream>, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

/// The next message of a type; others are passed over.
pub(crate) fn heard(socket: &mut WebSocket<TcpStream>, kind: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["type"] == kind {
                return message;
            }
        }
    }
}
