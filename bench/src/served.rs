//! A Workbench server in a process of its own, and the least of a page that asks it.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};
use typhon_analysis::tile::{Content, Entries, FRAME_HEADER_BYTES, Tile, TileRequest};

use crate::peak_memory_bytes;

/// Longer than any answer takes; whoever waits so long has met a fault.
const PATIENCE: Duration = Duration::from_secs(120);

/// `typhon ui` over one file. Dropping it ends the process.
#[derive(Debug)]
pub struct Served {
    process: Child,
    started: Instant,
    port: u16,
    token: String,
}

/// A page's WebSocket.
#[derive(Debug)]
pub struct Page {
    socket: WebSocket<TcpStream>,
    last_request: u32,
}

/// What came of a tile request.
#[derive(Debug, Default)]
pub struct Answer {
    /// The frames, without the last.
    pub tiles: Vec<Tile>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// From the request's first byte to the answer's last.
    pub time: Duration,
    /// What the server says that it took.
    pub server_time: Duration,
}

impl Served {
    /// Starts the program and waits until it has said where it listens.
    ///
    /// # Errors
    /// When the program cannot be started or ends at once.
    pub fn start(program: &Path, file: &Path) -> Result<Self, Box<dyn Error>> {
        let started = Instant::now();
        let mut process = Command::new(program)
            .args(["ui", "--no-browser", "--json"])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("{}: {error}; cargo build --release -p typhon-cli", program.display())
            })?;
        let mut line = String::new();
        let read = process.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        read.ok_or("no output")??;
        let said: Value = serde_json::from_str(&line).map_err(|_| format!("typhon ui said {line:?}"))?;
        let port = said["port"].as_u64().and_then(|port| u16::try_from(port).ok()).ok_or("no port")?;
        let url = said["url"].as_str().ok_or("no address")?;
        let token = url.split_once("#token=").ok_or("no token")?.1.to_owned();
        Ok(Self { process, started, port, token })
    }

    /// Time since the program was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Largest resident set of the server so far, bytes.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        peak_memory_bytes(&self.process.id().to_string())
    }

    /// Asks for something below `/api/v1`.
    ///
    /// # Errors
    /// When the answer is not 200 with JSON.
    pub fn get(&self, path: &str) -> Result<Value, Box<dyn Error>> {
        self.ask("GET", path, "")
    }

    /// Sends a body to something below `/api/v1`.
    ///
    /// # Errors
    /// When the answer is not a 2xx with JSON.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        self.ask("POST", path, &body.to_string())
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value, Box<dyn Error>> {
        let (host, token) = (format!("127.0.0.1:{}", self.port), &self.token);
        let mut stream = self.connect()?;
        write!(
            stream,
            "{method} /api/v1{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        if !head.starts_with("HTTP/1.1 2") {
            return Err(format!("{path}: {body}").into());
        }
        Ok(serde_json::from_str(body)?)
    }

    fn connect(&self) -> Result<TcpStream, Box<dyn Error>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Opens a page's WebSocket and waits to be welcomed.
    ///
    /// # Errors
    /// When the server does not take it.
    pub fn page(&self) -> Result<Page, Box<dyn Error>> {
        let mut request = format!("ws://127.0.0.1:{}/api/v1/ws", self.port).into_client_request()?;
        request.headers_mut().insert("Origin", format!("http://127.0.0.1:{}", self.port).parse()?);
        let (mut socket, _) = tungstenite::client(request, self.connect()?)?;
        let hello = serde_json::json!({ "type": "hello", "token": self.token });
        socket.send(Message::text(hello.to_string()))?;
        let mut page = Page { socket, last_request: 0 };
        while page.hear()?["type"] != "welcome" {}
        Ok(page)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing to do about a failure.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Page {
    /// The next message of text.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn hear(&mut self) -> Result<Value, Box<dyn Error>> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }

    /// Searches as the page does; the time until the first hits came, if they came before the rest, and until all were known.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn search(&mut self, text: &str) -> Result<(Option<Duration>, Duration), Box<dyn Error>> {
        self.last_request += 1;
        let (started, mut first) = (Instant::now(), None);
        let ask = serde_json::json!({ "type": "filter", "requestId": self.last_request, "session": "1", "text": text });
        self.socket.send(Message::text(ask.to_string()))?;
        loop {
            let said = self.hear()?;
            match said["type"].as_str() {
                Some("filterHits") => first = Some(started.elapsed()),
                Some("filterReady") => return Ok((first, started.elapsed())),
                Some("filterFailed") => return Err(said["problem"].to_string().into()),
                _ => {}
            }
        }
    }

    /// Asks for tiles and takes every frame apart.
    ///
    /// # Errors
    /// When the server refuses or sends something that is no frame.
    pub fn tiles(&mut self, mut request: TileRequest) -> Result<Answer, Box<dyn Error>> {
        self.last_request += 1;
        request.request_id = self.last_request;
        let (started, mut answer) = (Instant::now(), Answer::default());
        let mut messages = Vec::new();
        self.socket.send(Message::binary(request.encode()))?;
        while !messages.last().is_some_and(|bytes: &tungstenite::Bytes| has_end(bytes)) {
            match self.socket.read()? {
                Message::Binary(bytes) => messages.push(bytes),
                Message::Text(text) if text.contains("tileFailed") => return Err(text.to_string().into()),
                _ => {}
            }
        }
        answer.time = started.elapsed();
        for frame in messages.iter().flat_map(|bytes| frames(bytes)) {
            let tile = Tile::decode(frame)?;
            answer.bytes += frame.len() as u64;
            if tile.request_id != request.request_id {
                return Err("an answer to another request".into());
            }
            match tile.content {
                Content::End if tile.lane as usize != answer.tiles.len() => {
                    return Err(format!("{} tiles, not {}", answer.tiles.len(), tile.lane).into());
                }
                Content::End => answer.server_time = Duration::from_micros(tile.tile),
                _ => answer.tiles.push(tile),
            }
        }
        Ok(answer)
    }
}

impl Answer {
    /// Has it ticks?
    pub fn has_ticks(&self) -> bool {
        self.tiles.iter().any(|tile| matches!(&tile.entries, Entries::Ticks(ticks) if !ticks.is_empty()))
    }

    /// Spans, instants and values in it.
    pub fn entries(&self) -> usize {
        self.tiles.iter().map(Tile::entry_count).sum()
    }
}

/// The frames of a message. What is behind the last whole one is given as it is.
fn frames(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<FRAME_HEADER_BYTES>();
        let entry_bytes = head.map_or(0, |head| if head[6] == Content::Ticks as u8 { 32 } else { 16 });
        let count = head.map_or(0, |head| u32::from_le_bytes([head[28], head[29], head[30], head[31]]));
        let length = (FRAME_HEADER_BYTES + count as usize * entry_bytes).min(rest.len());
        let (frame, behind) = rest.split_at(length);
        rest = behind;
        (!frame.is_empty()).then_some(frame)
    })
}

/// Is the frame in it that ends an answer?
fn has_end(bytes: &[u8]) -> bool {
    frames(bytes).any(|frame| frame.get(6) == Some(&(Content::End as u8)))
}
