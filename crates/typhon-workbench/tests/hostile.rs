//! Broken and malicious peers: whatever they send, they harm nobody but themselves.

#![allow(clippy::unwrap_used, reason = "a panic is what a test fails with")]

mod common;

use common::{Running, eventually, heard, say};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};
use typhon_analysis::tile::{CONTENT_SPANS, CONTENT_TICKS, LaneRows, TileRequest};

const ANTHILL: &str = "anthill.typhon-trace";
const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;

/// A frame as a page sends it, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..=125 => bytes.push(MASKED | short as u8),
        long => {
            bytes.push(MASKED | 126);
            bytes.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads until the server closes the connection.
fn is_closed(socket: &mut WebSocket<TcpStream>) -> bool {
    let mut rest = Vec::new();
    socket.get_mut().read_to_end(&mut rest).is_ok() || rest.is_empty()
}

#[test]
fn f7_broken_frames_end_their_connection_and_no_other() {
    let server = Running::with(&[ANTHILL]);
    let mut good = server.socket();
    let huge = |bytes: u64| [&[FIN | 2, MASKED | 127][..], &bytes.to_be_bytes(), &[0; 4]].concat();
    let broken: [(&str, Vec<u8>); 12] = [
        ("a reserved opcode", frame(FIN | 3, b"x")),
        ("a reserved control opcode", frame(FIN | 11, b"x")),
        ("reserved bits", frame(FIN | 0x70 | 1, b"x")),
        ("a continuation of nothing", frame(FIN, b"x")),
        ("a text inside of a text", [frame(1, b"a"), frame(FIN | 1, b"b")].concat()),
        ("a ping in pieces", frame(9, b"x")),
        ("a ping of more than 125 bytes", frame(FIN | 9, &[0; 126])),
        ("a frame without a mask", vec![FIN | 1, 2, b'{', b'}']),
        ("text that is no UTF-8", frame(FIN | 1, &[0xFF, 0xFE])),
        ("8 EiB announced", huge(1 << 63)),
        ("1 GiB announced", huge(1 << 30)),
        ("bytes that are no frame", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in broken {
        let mut socket = server.socket();
        socket.get_mut().write_all(&bytes).unwrap();
        assert!(is_closed(&mut socket), "{what}");
        good.send(Message::text(r#"{"type":"nothing"}"#)).unwrap();
        assert_eq!(heard(&mut good, "error")["problem"]["code"], "bad-request", "{what}");
    }
}

#[test]
fn f7_a_message_in_a_thousand_pieces_is_one_message() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    let text = format!("{}{:1000}", r#"{"type":"nothing"}"#, "");
    let pieces: Vec<Vec<u8>> = text
        .bytes()
        .enumerate()
        .map(|(at, byte)| {
            let opcode = if at == 0 { 1 } else { 0 };
            frame(if at + 1 == text.len() { FIN | opcode } else { opcode }, &[byte])
        })
        .collect();
    // A ping between the pieces is allowed.
    socket.get_mut().write_all(&pieces[..500].concat()).unwrap();
    socket.get_mut().write_all(&frame(FIN | 9, b"still there?")).unwrap();
    socket.get_mut().write_all(&pieces[500..].concat()).unwrap();
    assert_eq!(heard(&mut socket, "error")["problem"]["code"], "bad-request");
}

#[test]
fn f7_websockets_are_connections_for_as_long_as_they_are_open() {
    let server = Running::with(&[ANTHILL]);
    let mut open = Vec::new();
    let origin = format!("http://127.0.0.1:{}", server.port);
    while open.len() < 40 {
        let Ok(mut socket) = server.upgraded(&origin) else { break };
        say(&mut socket, &json!({ "type": "hello", "token": server.token }));
        open.push(socket);
    }
    assert!(open.len() <= 32, "{} WebSockets", open.len());
    let mut first = open.remove(0);
    first.close(None).unwrap();
    drop(first);
    eventually("room", || server.upgraded(&origin).ok());
}

#[test]
fn f7_huge_and_endless_heads_are_refused() {
    let server = Running::with(&[ANTHILL]);
    let host = format!("127.0.0.1:{}", server.port);
    let large = "x".repeat(1 << 20);
    let many: String = (0..10_000).map(|at| format!("X-{at}: y\r\n")).collect();
    for (what, request) in [
        ("a long header", format!("GET /api/v1/health HTTP/1.1\r\nHost: {host}\r\nX: {large}\r\n\r\n")),
        ("many headers", format!("GET /api/v1/health HTTP/1.1\r\nHost: {host}\r\n{many}\r\n")),
        ("a long path", format!("GET /{large} HTTP/1.1\r\nHost: {host}\r\n\r\n")),
        ("a long method", format!("{large} / HTTP/1.1\r\nHost: {host}\r\n\r\n")),
    ] {
        let mut stream = server.connect();
        // The server may close before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let is_refused = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
        assert!(is_refused, "{what}: {}", String::from_utf8_lossy(&answer));
        assert_eq!(server.get("/health").status, 200, "{what}");
    }
}

#[test]
fn f7_two_requests_in_one_and_false_lengths_are_told_apart_or_refused() {
    let server = Running::with(&[ANTHILL]);
    let host = format!("127.0.0.1:{}", server.port);
    let head = format!("POST /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n");
    for (what, headers) in [
        ("two lengths", "Content-Length: 4\r\nContent-Length: 5\r\n"),
        ("a length and chunks", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        ("a negative length", "Content-Length: -1\r\n"),
        ("a length beyond counting", "Content-Length: 99999999999999999999\r\n"),
        ("an unknown encoding", "Transfer-Encoding: gzip\r\n"),
    ] {
        let answer = server.raw(format!("{head}{headers}Connection: close\r\n\r\n0\r\n\r\n").as_bytes());
        assert!(matches!(answer.status, 400 | 401 | 413 | 501), "{what}: {}", answer.status);
    }
}

/// Every lane from its first row on, at a level at which the whole trace is a few tiles.
fn request(server: &Running) -> TileRequest {
    let meta = server.get("/sessions/1/meta").json();
    let lane = |lane: &serde_json::Value| lane["id"].as_u64().unwrap() as u32;
    let lanes = meta["lanes"].as_array().unwrap().iter().map(lane);
    TileRequest {
        level: 16,
        content: CONTENT_SPANS | CONTENT_TICKS,
        tile_count: 64,
        lanes: lanes.map(|lane| LaneRows { lane, first_row: 0, row_count: 64 }).collect(),
        ..TileRequest::default()
    }
}

#[test]
fn a_storm_of_cancelled_requests_leaves_room_for_the_last_one() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    let first = request(&server);
    for id in 1..=5_000u32 {
        socket.send(Message::binary(TileRequest { request_id: id, ..first.clone() }.encode())).unwrap();
        if id % 2 == 0 {
            say(&mut socket, &json!({ "type": "cancel", "viewId": 0 }));
        }
    }
    // The last one is not cancelled, and it comes whole.
    socket.send(Message::binary(TileRequest { request_id: 5_001, ..first }.encode())).unwrap();
    loop {
        let Message::Binary(bytes) = socket.read().unwrap() else { continue };
        let last = &bytes[bytes.len() - 32..];
        if last[6] == 255 && last[8..12] == 5_001u32.to_le_bytes() {
            break;
        }
    }
}

#[test]
fn pages_that_read_nothing_keep_nobody_from_reading() {
    let server = Running::with(&[ANTHILL]);
    let first = request(&server);
    let stuck: Vec<WebSocket<TcpStream>> = (0..8)
        .map(|_| {
            let mut socket = server.socket();
            for view in 0..50 {
                let request = TileRequest { request_id: u32::from(view) + 1, view, ..first.clone() };
                socket.send(Message::binary(request.encode())).unwrap();
            }
            socket
        })
        .collect();
    let answer = eventually("an answer", || {
        let answer = server.send(
            "POST",
            "/sessions/1/tiles",
            &TileRequest { request_id: 1, ..first.clone() }.encode(),
        );
        (answer.status == 200).then_some(answer)
    });
    assert!(answer.body.len() > 32);
    drop(stuck);
    server.end();
}

#[test]
fn filters_beyond_measure_are_refused_at_once() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    let many = |term: &str, count: usize| vec![term; count].join("|");
    for (what, filter) in [
        ("a million parentheses", "(".repeat(1_000_000)),
        ("a thousand parentheses", "(".repeat(1_000)),
        ("a million negations", "!".repeat(1_000_000)),
        ("more regular expressions than memory", many(r"name~\w{60}", 80_000)),
        ("as many within the limit of bytes", many(r"name~\w{60}", 5_000)),
        ("a hundred thousand times", many("ts>1us", 100_000)),
        ("a thousand and one times", many("ts>1us", 1_001)),
        ("a long needle", "n".repeat(1_000_000)),
        ("a long key", format!("{}=1", "n".repeat(60_000))),
        ("a regular expression without end", format!("name~{}", "(a{1000}".repeat(60))),
    ] {
        let body = json!({ "text": filter }).to_string();
        for path in ["/sessions/1/filters", "/sessions/1/filters/check"] {
            let started = Instant::now();
            let answer = server.send("POST", path, body.as_bytes());
            assert_eq!((answer.status, answer.json()["code"].as_str()), (400, Some("filter")), "{what}");
            assert!(started.elapsed() < Duration::from_secs(10), "{what}: {:?}", started.elapsed());
        }
        say(&mut socket, &json!({ "type": "filter", "requestId": 1, "session": "1", "text": filter }));
        assert_eq!(heard(&mut socket, "filterFailed")["problem"]["code"], "filter", "{what}");
    }
}

#[test]
fn a_thousand_searches_at_a_time_have_answers_or_are_given_up() {
    let server = Running::with(&[ANTHILL]);
    let texts = ["dur>1ms", "kind=SchedulerChunk slot=1", "tick=20..30", "field.systemIdx=1", "(", "n~"];
    let searched = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..100 {
            let (server, searched) = (&server, &searched);
            scope.spawn(move || {
                for at in 0..10 {
                    let text = texts[(client + at) % texts.len()];
                    let body = json!({ "text": text }).to_string();
                    if client % 4 == 0 {
                        // Nobody waits for the answer.
                        let head = format!(
                            "POST /api/v1/sessions/1/filters HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n",
                            server.port
                        );
                        let bearer = format!("Authorization: Bearer {}\r\n", server.token);
                        let length = body.len();
                        let request = format!("{head}{bearer}Content-Length: {length}\r\n\r\n{body}");
                        let _ = server.connect().write_all(request.as_bytes());
                        continue;
                    }
                    let answer = server.send("POST", "/sessions/1/filters", body.as_bytes());
                    assert!(matches!(answer.status, 201 | 400 | 503), "{text}: {}", answer.status);
                    searched.fetch_add(usize::from(answer.status == 201), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(searched.into_inner() > 0);
    let last = eventually("a search", || {
        let answer = server.send("POST", "/sessions/1/filters", br#"{"text":"dur>1ms"}"#);
        (answer.status == 201).then_some(answer)
    });
    let id = &last.json()["filterId"];
    assert_eq!(server.get(&format!("/sessions/1/search?filter={id}&count=1")).status, 200);
    server.end();
}

#[test]
fn searches_that_are_called_off_make_room_for_the_next() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    for round in 1..=300u32 {
        let text = format!("self>{round}us name~o");
        say(&mut socket, &json!({ "type": "filter", "requestId": round, "session": "1", "text": text }));
        match round % 3 {
            0 => say(&mut socket, &json!({ "type": "cancelFilter", "requestId": round })),
            // In the midst of it.
            1 if round % 50 == 1 => {
                drop(socket);
                socket = server.socket();
            }
            _ => {}
        }
    }
    say(&mut socket, &json!({ "type": "filter", "requestId": 1_000, "session": "1", "text": "dur>1ms" }));
    while heard(&mut socket, "filterReady")["requestId"] != 1_000 {}
}
