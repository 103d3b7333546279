//! What the page lives on: tiles, progress, filters, sessions, under load and when things go wrong.

#![allow(clippy::unwrap_used, reason = "a panic is what a test fails with")]

mod common;

use common::{Running, corpus, eventually, heard, say};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::thread;
use tungstenite::Message;
use typhon_analysis::session::{Cancel, Session, SessionOptions};
use typhon_analysis::tile::{
    CONTENT_INSTANTS, CONTENT_SPANS, CONTENT_TICKS, FRAME_HEADER_BYTES, LaneRows, TileRequest,
};

const ANTHILL: &str = "anthill.typhon-trace";

fn request(server: &Running, request_id: u32, view: u16) -> TileRequest {
    let meta = server.get("/sessions/1/meta").json();
    let lanes = meta["lanes"].as_array().unwrap();
    let rows =
        |lane: &Value| LaneRows { lane: lane["id"].as_u64().unwrap() as u32, first_row: 0, row_count: 64 };
    TileRequest {
        request_id,
        generation: meta["generation"].as_u64().unwrap() as u32,
        level: 20,
        content: CONTENT_SPANS | CONTENT_INSTANTS | CONTENT_TICKS,
        tile_count: 4,
        view,
        lanes: lanes.iter().map(rows).collect(),
        ..TileRequest::default()
    }
}

/// Frames in the order of their bytes, without the last, which tells how long it took.
fn frames(mut bytes: &[u8]) -> (Vec<Vec<u8>>, Option<u32>) {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let entries = u32::from_le_bytes(bytes[28..32].try_into().unwrap()) as usize;
        let (frame, rest) =
            bytes.split_at(FRAME_HEADER_BYTES + entries * if bytes[6] == 4 { 32 } else { 16 });
        bytes = rest;
        if frame[6] == 255 {
            assert!(bytes.is_empty(), "nothing follows the last frame");
            return (found, Some(u32::from_le_bytes(frame[12..16].try_into().unwrap())));
        }
        found.push(frame.to_vec());
    }
    (found, None)
}

fn expected(request: &TileRequest) -> Vec<Vec<u8>> {
    let session = Session::open(&corpus(ANTHILL), SessionOptions::default()).unwrap();
    session.wait();
    let mut bytes = Vec::new();
    let request = TileRequest { generation: session.generation(), ..request.clone() };
    session.tiles(&request, &Cancel::new(), |tile| tile.encode(&mut bytes)).unwrap();
    frames(&bytes).0
}

#[test]
fn tiles_over_http_and_websocket_are_those_of_the_session() {
    let server = Running::with(&[ANTHILL]);
    let request = request(&server, 7, 3);
    let expected = expected(&request);
    assert!(expected.len() > 10);
    let answer = server.send("POST", "/sessions/1/tiles", &request.encode());
    let (found, sent) = frames(&answer.body);
    assert_eq!((found.len(), sent), (expected.len(), Some(expected.len() as u32)));
    assert!(found == expected);
    let mut socket = server.socket();
    say(&mut socket, &json!({ "type": "bind", "viewId": 3, "session": "1" }));
    socket.send(Message::binary(request.encode())).unwrap();
    let mut found = Vec::new();
    loop {
        if let Message::Binary(bytes) = socket.read().unwrap() {
            let (more, sent) = frames(&bytes);
            found.extend(more);
            if sent.is_some() {
                break;
            }
        }
    }
    assert!(found == expected);
}

#[test]
fn a_thousand_requests_at_once_end_with_the_newest_of_each_view() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    const VIEWS: u16 = 10;
    let first = request(&server, 0, 0);
    for id in 1..=1_000u32 {
        let view = (id % u32::from(VIEWS)) as u16;
        socket.send(Message::binary(TileRequest { request_id: id, view, ..first.clone() }.encode())).unwrap();
    }
    let mut open: Vec<u32> = (991..=1_000).collect();
    while !open.is_empty() {
        let Message::Binary(bytes) = socket.read().unwrap() else { continue };
        let (_, sent) = frames(&bytes);
        let id = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
        if sent.is_some() {
            open.retain(|of| *of != id);
        }
    }
    assert_eq!(server.get("/sessions/1").status, 200);
}

#[test]
fn a_thousand_requests_over_many_connections_are_all_answered_or_refused() {
    let server = Running::with(&[ANTHILL]);
    let request = TileRequest { lanes: Vec::new(), ..request(&server, 1, 0) }.encode();
    let counts: Vec<(u32, u32)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let statuses = (0..50).map(|_| server.send("POST", "/sessions/1/tiles", &request).status);
                    statuses.fold((0, 0), |(good, busy), status| match status {
                        200 => (good + 1, busy),
                        503 => (good, busy + 1),
                        other => panic!("{other}"),
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (good, busy) = counts.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    assert_eq!(good + busy, 1_000);
    assert!(good >= 900, "{good} answered, {busy} refused");
}

#[test]
fn browsers_that_go_away_leave_nothing_behind() {
    let server = Running::with(&[ANTHILL]);
    let request = request(&server, 1, 0).encode();
    for round in 0..100 {
        let mut socket = server.socket();
        socket.send(Message::binary(request.clone())).unwrap();
        say(
            &mut socket,
            &json!({ "type": "filter", "requestId": round, "session": "1", "text": "self>1us" }),
        );
        // No farewell: the connection is just gone.
        drop(socket);
        let mut stream = server.connect();
        let head = format!(
            "POST /api/v1/sessions/1/tiles HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nOrigin: http://127.0.0.1:{}\r\n\
             Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
            server.port,
            server.port,
            server.token,
            request.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&request[..request.len() / (1 + round % 2)]).unwrap();
        drop(stream);
    }
    // There are 32 connections; with one left behind each round there would be no room.
    eventually("room", || (server.get("/sessions/1").status == 200).then_some(()));
    server.end();
}

#[test]
fn filters_report_count_and_are_replaced_by_newer_ones() {
    let server = Running::with(&[ANTHILL]);
    let over_http = server.send("POST", "/sessions/1/filters", br#"{"text":"dur>1ms"}"#);
    assert_eq!(over_http.status, 201);
    let matches = over_http.json()["matches"].clone();
    let mut socket = server.socket();
    say(&mut socket, &json!({ "type": "filter", "requestId": 1, "session": "1", "text": "dur>1ms" }));
    let ready = heard(&mut socket, "filterReady");
    assert_eq!((&ready["matches"], &ready["session"]), (&matches, &json!("1")));
    let id = &ready["filterId"];
    let hits = server.get(&format!("/sessions/1/search?filter={id}&count=1000")).json();
    assert_eq!(
        (&hits["matches"], json!(hits["hits"].as_array().unwrap().len())),
        (&matches, matches.clone())
    );
    // Step by step, forwards and backwards, the same hits.
    let hit = |after: Option<&str>, direction: &str| {
        let after = after.map(|event| format!("&after={event}")).unwrap_or_default();
        server.get(&format!("/sessions/1/search?filter={id}&count=1&direction={direction}{after}")).json()["hits"][0]["event"].clone()
    };
    let all: Vec<&str> =
        hits["hits"].as_array().unwrap().iter().map(|hit| hit["event"].as_str().unwrap()).collect();
    assert_eq!(hit(None, "next"), all[0]);
    assert_eq!(hit(Some(all[4]), "next"), all[5]);
    assert_eq!(hit(Some(all[5]), "previous"), all[4]);
    assert_eq!(hit(None, "previous"), *all.last().unwrap());
    // The first of them come before all are known.
    say(&mut socket, &json!({ "type": "filter", "requestId": 2, "session": "1", "text": "dur>1ms" }));
    let first = heard(&mut socket, "filterHits");
    assert_eq!(first["requestId"], 2);
    let expected: Vec<&Value> = hits["hits"].as_array().unwrap().iter().take(100).collect();
    assert_eq!(first["hits"], json!(expected));
    assert_eq!(heard(&mut socket, "filterReady")["requestId"], 2);
    // Of filters that follow quickly the last one always comes.
    for id in 3..=6 {
        say(&mut socket, &json!({ "type": "filter", "requestId": id, "session": "1", "text": "self>1us" }));
    }
    loop {
        if heard(&mut socket, "filterReady")["requestId"] == 6 {
            break;
        }
    }
    assert_eq!(server.send("DELETE", &format!("/sessions/1/filters/{id}"), b"").status, 204);
    assert_eq!(server.get(&format!("/sessions/1/search?filter={id}")).json()["code"], "unknown");
}

#[test]
fn b6_what_happens_to_the_file_is_told_and_changes_no_answer() {
    type Change = fn(&std::path::Path);
    let changes: [(&str, Change); 4] = [
        ("grown", |path| OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap()),
        ("truncated", |path| OpenOptions::new().write(true).open(path).unwrap().set_len(1_000).unwrap()),
        ("replaced", |path| {
            let new = path.with_extension("new");
            fs::copy(corpus("all-kinds.typhon-trace"), &new).unwrap();
            fs::rename(new, path).unwrap();
        }),
        ("gone", |path| fs::remove_file(path).unwrap()),
    ];
    for (word, change) in changes {
        let server = Running::with(&[ANTHILL]);
        let mut socket = server.socket();
        let paths =
            ["/sessions/1/meta", "/sessions/1/stats?by=name&top=0", "/sessions/1/top", "/sessions/1/ticks"];
        let ask = || paths.map(|path| server.get(path).body);
        let before = ask();
        assert_eq!(server.get("/sessions/1").json()["onDisk"], "same");
        change(&server.path(ANTHILL));
        while heard(&mut socket, "session")["session"]["onDisk"] != word {}
        assert!(ask() == before, "{word}");
        let event = server.get("/sessions/1/event/100.5");
        // What was cut away cannot be read any more, and says so; everything else can.
        if word == "truncated" {
            assert!(matches!(event.status, 422 | 404), "{}", event.status);
        } else {
            assert_eq!(event.status, 200, "{word}");
        }
        // Neither is a count or a part that lacks what was cut away an answer.
        let filter = server.send("POST", "/sessions/1/filters", br#"{"text":"dur>1us"}"#);
        let part = server.send("POST", "/sessions/1/export", b"{}");
        let expected = if word == "truncated" { [422, 422] } else { [201, 200] };
        assert_eq!([filter.status, part.status], expected, "{word}");
        if word != "gone" {
            let path = json!({ "path": ANTHILL }).to_string();
            let again = server.send("POST", "/sessions", path.as_bytes());
            assert!(matches!(again.status, 201 | 422), "{word}: {}", again.status);
        }
    }
}

/// Written over in place, the file has the same number and often more bytes; its header tells that no recorder went on.
#[test]
fn b6_another_recording_written_over_the_file_is_told_from_one_that_grew() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    let mut other = fs::read(corpus("all-kinds.typhon-trace")).unwrap();
    other.resize(fs::metadata(server.path(ANTHILL)).unwrap().len() as usize + 1_000, 0);
    fs::write(server.path(ANTHILL), other).unwrap();
    while heard(&mut socket, "session")["session"]["onDisk"] != "overwritten" {}
}

#[test]
fn sessions_open_close_and_are_told_of() {
    let server = Running::with(&[ANTHILL, "all-kinds.typhon-trace"]);
    fs::copy(corpus("guide-shard.typhon-trace"), server.path("third.typhon-trace")).unwrap();
    let mut socket = server.socket();
    let opened = server.send("POST", "/sessions", br#"{"path":"third.typhon-trace"}"#);
    assert_eq!((opened.status, &opened.json()["id"]), (201, &json!("3")));
    while heard(&mut socket, "session")["session"]["id"] != "3" {}
    assert_eq!(server.get("/sessions").json()["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(server.send("DELETE", "/sessions/3", b"").status, 204);
    assert_eq!(heard(&mut socket, "closed")["session"], "3");
    assert_eq!(server.get("/sessions/3").status, 404);
    // A view that was bound to it gets a problem, not tiles of another session.
    say(&mut socket, &json!({ "type": "bind", "viewId": 1, "session": "2" }));
    // What is said is taken up in order: after this answer the view is bound.
    say(&mut socket, &json!({ "type": "nothing" }));
    heard(&mut socket, "error");
    assert_eq!(server.send("DELETE", "/sessions/2", b"").status, 204);
    assert_eq!(heard(&mut socket, "closed")["session"], "2");
    socket
        .send(Message::binary(TileRequest { lanes: Vec::new(), ..request(&server, 9, 1) }.encode()))
        .unwrap();
    let failed = heard(&mut socket, "tileFailed");
    assert_eq!((&failed["requestId"], &failed["problem"]["code"]), (&json!(9), &json!("unknown")));
}

#[test]
fn bookmarks_follow_the_content_and_settings_keep_what_they_do_not_know() {
    let server = Running::with(&[ANTHILL]);
    let marks = json!({ "bookmarks": [{ "id": "a", "fromNs": 5, "toNs": null, "event": "11.2", "note": "<b>slow</b>" }] });
    assert_eq!(server.send("PUT", "/sessions/1/bookmarks", marks.to_string().as_bytes()).status, 200);
    fs::copy(corpus(ANTHILL), server.path("copy.typhon-trace")).unwrap();
    assert_eq!(server.send("POST", "/sessions", br#"{"path":"copy.typhon-trace"}"#).status, 201);
    assert_eq!(server.get("/sessions/2/bookmarks").json()["bookmarks"], marks["bookmarks"]);
    let large = json!({ "bookmarks": [{ "id": "a", "fromNs": 5, "toNs": null, "event": null, "note": "x".repeat(5_000) }] });
    assert_eq!(server.send("PUT", "/sessions/1/bookmarks", large.to_string().as_bytes()).status, 400);
    fs::create_dir_all(server.path("config")).unwrap();
    fs::write(server.path("config/workbench.json"), r#"{"mine":[1],"theme":"light"}"#).unwrap();
    let set = server.send("PUT", "/settings", br#"{"theme":"dark","new":1}"#).json();
    assert_eq!(set["settings"], json!({ "mine": [1], "theme": "dark", "new": 1 }));
    server.send("PUT", "/settings", br#"{"new":null}"#);
    assert_eq!(server.get("/settings").json()["settings"], json!({ "mine": [1], "theme": "dark" }));
    // A mistake of the user's own is told, not overwritten.
    fs::write(server.path("config/workbench.json"), "{ theme: dark }").unwrap();
    assert_eq!(server.send("PUT", "/settings", br#"{"theme":"dark"}"#).json()["code"], "unreadable");
    assert_eq!(fs::read_to_string(server.path("config/workbench.json")).unwrap(), "{ theme: dark }");
}

#[test]
fn f7_what_cannot_be_kept_is_told_with_the_reason_and_nothing_changes() {
    let server = Running::with(&[ANTHILL]);
    let mark = |at: usize, note: &str| json!({ "id": at.to_string(), "fromNs": at, "toNs": null, "event": null, "note": note });
    let put = |count: usize, note: &str| {
        let marks: Vec<Value> = (0..count).map(|at| mark(at, note)).collect();
        let body = json!({ "bookmarks": marks }).to_string();
        let answer = server.send("PUT", "/sessions/1/bookmarks", body.as_bytes());
        (answer.status, answer.json()["code"].as_str().map(str::to_owned))
    };
    assert_eq!(put(3, "kept").0, 200);
    // Each of them is allowed, all of them are not.
    assert_eq!(put(200, &"x".repeat(4_096)), (413, Some("too-large".to_owned())));
    assert_eq!(server.get("/sessions/1/bookmarks").json()["bookmarks"].as_array().map(Vec::len), Some(3));
    let large = json!({ "text": "x".repeat(300_000) }).to_string();
    assert_eq!(server.send("PUT", "/settings", large.as_bytes()).status, 413);
    // A file where a folder should be: it can be neither made nor written.
    fs::write(server.path("config"), "in the way").unwrap();
    let set = server.send("PUT", "/settings", br#"{"theme":"dark"}"#);
    assert!(set.status >= 500, "{}", set.status);
    fs::remove_file(server.path("config")).unwrap();
    fs::remove_dir_all(server.path("cache/bookmarks")).unwrap();
    fs::write(server.path("cache/bookmarks"), "in the way").unwrap();
    assert!(put(1, "").0 >= 500);
    assert_eq!(server.get("/sessions/1").status, 200);
}

#[test]
fn the_end_of_the_server_is_told() {
    let server = Running::with(&[ANTHILL]);
    let mut socket = server.socket();
    let stop = thread::spawn(move || server.end());
    let code = loop {
        match socket.read().unwrap() {
            Message::Close(frame) => break u16::from(frame.unwrap().code),
            _ => continue,
        }
    };
    assert_eq!(code, 1001);
    stop.join().unwrap();
}
