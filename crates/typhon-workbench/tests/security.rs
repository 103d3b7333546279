//! Who gets in, and what they get (brief 11 §6, invariant 11): forged requests, each of which must fail.

#![allow(clippy::unwrap_used, reason = "a panic is what a test fails with")]

mod common;

use common::{Running, corpus, heard, say};
use serde_json::json;
use std::io::Write;
use tungstenite::Message;

/// What a request is forged with: header, value. `HOST`, `ORIGIN` and `TOKEN` stand for the right ones.
type Forged = &'static [(&'static str, &'static str)];

#[test]
fn f2_f3_forged_requests_fail() {
    let server = Running::with(&["all-kinds.typhon-trace"]);
    let fill = |text: &str| {
        text.replace("TOKEN", &server.token)
            .replace("ORIGIN", &format!("http://127.0.0.1:{}", server.port))
            .replace("PORT", &server.port.to_string())
            .replace("HOST", &format!("127.0.0.1:{}", server.port))
    };
    let send = |method: &str, path: &str, headers: Forged| {
        let filled: Vec<(&str, String)> = headers.iter().map(|(name, value)| (*name, fill(value))).collect();
        let filled: Vec<(&str, &str)> = filled.iter().map(|(name, value)| (*name, value.as_str())).collect();
        server
            .with_headers(method, path, &filled, if method == "GET" { b"" } else { br#"{"text":"dur>1us"}"# })
            .status
    };
    const SESSIONS: &str = "/api/v1/sessions";
    const CHECK: &str = "/api/v1/sessions/1/filters/check";
    const RIGHT: (&str, &str) = ("Authorization", "Bearer TOKEN");
    let table: [(&str, &str, &str, Forged, u16); 38] = [
        // What is right, so that the rest fails for its own reason.
        ("right", "GET", SESSIONS, &[("Host", "HOST"), RIGHT], 200),
        ("localhost", "GET", SESSIONS, &[("Host", "localhost:PORT"), RIGHT], 200),
        ("ipv6", "GET", SESSIONS, &[("Host", "[::1]:PORT"), RIGHT], 200),
        ("right post", "POST", CHECK, &[("Host", "HOST"), RIGHT, ("Origin", "ORIGIN")], 200),
        ("health is open", "GET", "/api/v1/health", &[("Host", "HOST")], 200),
        // Host.
        ("no host", "GET", SESSIONS, &[RIGHT], 421),
        ("foreign host", "GET", SESSIONS, &[("Host", "attacker.example"), RIGHT], 421),
        ("foreign host with port", "GET", SESSIONS, &[("Host", "attacker.example:PORT"), RIGHT], 421),
        ("prefix", "GET", SESSIONS, &[("Host", "127.attacker.example:PORT"), RIGHT], 421),
        ("suffix", "GET", SESSIONS, &[("Host", "127.0.0.1:PORT.attacker.example"), RIGHT], 421),
        ("no port", "GET", SESSIONS, &[("Host", "127.0.0.1"), RIGHT], 421),
        ("other port", "GET", SESSIONS, &[("Host", "127.0.0.1:1"), RIGHT], 421),
        ("any address", "GET", SESSIONS, &[("Host", "0.0.0.0:PORT"), RIGHT], 421),
        ("two hosts", "GET", SESSIONS, &[("Host", "HOST"), ("Host", "attacker.example"), RIGHT], 421),
        ("foreign host for the page", "GET", "/", &[("Host", "attacker.example:PORT")], 421),
        ("foreign host for health", "GET", "/api/v1/health", &[("Host", "attacker.example:PORT")], 421),
        // Origin.
        ("post without origin", "POST", CHECK, &[("Host", "HOST"), RIGHT], 403),
        (
            "post of another origin",
            "POST",
            CHECK,
            &[("Host", "HOST"), RIGHT, ("Origin", "http://attacker.example")],
            403,
        ),
        (
            "post of another port",
            "POST",
            CHECK,
            &[("Host", "HOST"), RIGHT, ("Origin", "http://127.0.0.1:1")],
            403,
        ),
        ("post of the null origin", "POST", CHECK, &[("Host", "HOST"), RIGHT, ("Origin", "null")], 403),
        ("post of https", "POST", CHECK, &[("Host", "HOST"), RIGHT, ("Origin", "https://HOST")], 403),
        (
            "origin that goes on",
            "POST",
            CHECK,
            &[("Host", "HOST"), RIGHT, ("Origin", "ORIGIN.attacker.example")],
            403,
        ),
        (
            "origin of another name",
            "POST",
            CHECK,
            &[("Host", "HOST"), RIGHT, ("Origin", "http://localhost:PORT")],
            403,
        ),
        (
            "get of another origin",
            "GET",
            SESSIONS,
            &[("Host", "HOST"), RIGHT, ("Origin", "http://attacker.example")],
            403,
        ),
        ("delete without origin", "DELETE", "/api/v1/sessions/1", &[("Host", "HOST"), RIGHT], 403),
        ("put without origin", "PUT", "/api/v1/settings", &[("Host", "HOST"), RIGHT], 403),
        ("websocket without origin", "GET", "/api/v1/ws", &[("Host", "HOST"), RIGHT], 403),
        // The browser's own word.
        ("cross-site", "GET", SESSIONS, &[("Host", "HOST"), RIGHT, ("Sec-Fetch-Site", "cross-site")], 403),
        ("same-site", "GET", SESSIONS, &[("Host", "HOST"), RIGHT, ("Sec-Fetch-Site", "same-site")], 403),
        (
            "cross-site health",
            "GET",
            "/api/v1/health",
            &[("Host", "HOST"), ("Sec-Fetch-Site", "cross-site")],
            403,
        ),
        // Token.
        ("no token", "GET", SESSIONS, &[("Host", "HOST")], 401),
        ("wrong token", "GET", SESSIONS, &[("Host", "HOST"), ("Authorization", "Bearer 00TOKEN")], 401),
        ("empty token", "GET", SESSIONS, &[("Host", "HOST"), ("Authorization", "Bearer ")], 401),
        ("token without bearer", "GET", SESSIONS, &[("Host", "HOST"), ("Authorization", "TOKEN")], 401),
        ("token in the address", "GET", "/api/v1/sessions?token=TOKEN", &[("Host", "HOST")], 401),
        ("token in a cookie", "GET", SESSIONS, &[("Host", "HOST"), ("Cookie", "token=TOKEN")], 401),
        ("two tokens", "GET", SESSIONS, &[("Host", "HOST"), ("Authorization", "Bearer x"), RIGHT], 401),
        ("unknown address without token", "GET", "/api/v1/nope", &[("Host", "HOST")], 401),
    ];
    for (what, method, path, headers, expected) in table {
        assert_eq!(send(method, &fill(path), headers), expected, "{what}");
    }
    // The session that somebody tried to delete is still there.
    assert_eq!(server.get("/sessions/1").status, 200);
}

#[test]
fn f4_every_answer_has_the_headers() {
    let server = Running::with(&[]);
    std::fs::write(server.path("index.html"), r#"<meta name="typhon-assets" content=""><p>page</p>"#)
        .unwrap();
    std::fs::write(server.path("app.js"), "1").unwrap();
    let host = format!("127.0.0.1:{}", server.port);
    let ask = |path: &str, more: &[(&str, &str)]| {
        server.with_headers("GET", path, &[&[("Host", host.as_str())], more].concat(), b"")
    };
    for path in ["/", "/app.js", "/nothing", "/api/v1/health", "/api/v1/nope"] {
        let head = ask(path, &[]).head.to_lowercase();
        for needed in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(needed), "{path} {needed}\n{head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
    let index = ask("/", &[]);
    assert!(index.head.contains("no-store"));
    let health = ask("/api/v1/health", &[]).json();
    let hash = health["assets"].as_str().unwrap().to_owned();
    assert!(
        String::from_utf8_lossy(&index.body).contains(&format!("content=\"{hash}\"")),
        "the page knows its bundle"
    );
    let script = ask("/app.js", &[]);
    let tag = script.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    assert_eq!((script.status, ask("/app.js", &[("If-None-Match", &tag)]).status), (200, 304));
    std::fs::write(server.path("app.js"), "2").unwrap();
    assert_eq!(ask("/app.js", &[("If-None-Match", &tag)]).status, 200);
    assert_ne!(ask("/api/v1/health", &[]).json()["assets"], hash.as_str(), "another bundle has another hash");
}

#[test]
fn f5_pages_open_and_list_nothing_outside_the_root() {
    let server = Running::with(&["all-kinds.typhon-trace"]);
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.typhon-trace");
    std::fs::copy(corpus("anthill.typhon-trace"), &secret).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, server.path("link.typhon-trace")).unwrap();
    let open = |path: &str| server.send("POST", "/sessions", json!({ "path": path }).to_string().as_bytes());
    assert_eq!(open("all-kinds.typhon-trace").status, 200, "it is open already");
    for path in [
        secret.to_str().unwrap(),
        "/etc/passwd",
        "../../../../etc/passwd",
        "link.typhon-trace",
        "missing",
        "",
        "\0",
        "/dev/zero",
        ".",
    ] {
        let answer = open(path);
        assert_eq!((answer.status, answer.json()["code"].as_str()), (403, Some("not-allowed")), "{path:?}");
    }
    std::fs::write(server.path("text.typhon-trace"), "no trace").unwrap();
    assert_eq!(open("text.typhon-trace").json()["code"], "not-a-trace");
    std::fs::write(server.path("packed.gz"), [0x1F, 0x8B, 8, 8]).unwrap();
    let packed = open("packed.gz").json();
    assert!(packed["detail"].as_str().unwrap().starts_with("packed.gz: not a Typhon trace"), "{packed}");
    assert!(packed["hint"].as_str().unwrap().contains("gunzip -c FILE"), "{packed}");
    for dir in ["/", "..", "../..", "%2e%2e", outside.path().to_str().unwrap()] {
        assert_eq!(server.get(&format!("/files?dir={dir}")).status, 403, "{dir}");
    }
    let listed = server.get("/files").json().to_string();
    assert!(listed.contains("all-kinds.typhon-trace") && !listed.contains("link.typhon-trace"));
    // Neither does the page's folder give anything else.
    let host = format!("127.0.0.1:{}", server.port);
    for path in [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/cache/../../x",
        "/.git/config",
        "/link.typhon-trace",
    ] {
        let answer = server.with_headers("GET", path, &[("Host", &host)], b"");
        assert!(matches!(answer.status, 400 | 404), "{path} {}", answer.status);
    }
}

#[test]
fn f7_bodies_messages_and_connections_are_limited() {
    let server = Running::with(&["all-kinds.typhon-trace"]);
    let answer = server.send("POST", "/sessions/1/tiles", &vec![0; (1 << 20) + 1]);
    assert_eq!((answer.status, answer.json()["code"].as_str()), (413, Some("too-large")));
    let mut socket = server.socket();
    // The socket may be closed while it is being written to.
    let _ = socket.send(Message::binary(vec![0; (1 << 20) + 1]));
    let closed = std::iter::from_fn(|| socket.read().ok()).find_map(|message| match message {
        Message::Close(frame) => frame,
        _ => None,
    });
    if let Some(frame) = closed {
        assert_eq!(u16::from(frame.code), 1009);
    }
    drop(socket);
    let mut held = Vec::new();
    let refused = common::eventually("a refusal", || {
        let mut stream = server.connect();
        stream
            .write_all(
                format!("GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", server.port).as_bytes(),
            )
            .ok()?;
        held.push(stream);
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.get("/health"))).ok()?;
        (answer.status == 503).then_some(answer)
    });
    assert_eq!(refused.json()["code"], "busy");
    assert!(held.len() <= 33, "{} connections", held.len());
    drop(held);
    common::eventually("room", || (server.get("/health").status == 200).then_some(()));
}

#[test]
fn f3_the_websocket_wants_the_token_first() {
    let server = Running::with(&["all-kinds.typhon-trace"]);
    let origin = format!("http://127.0.0.1:{}", server.port);
    assert!(server.upgraded("http://attacker.example").is_err());
    assert!(server.upgraded("null").is_err());
    let code = |first: Option<Message>| {
        let mut socket = server.upgraded(&origin).unwrap();
        if let Some(message) = first {
            socket.send(message).unwrap();
        }
        loop {
            match socket.read().unwrap() {
                Message::Close(frame) => return u16::from(frame.unwrap().code),
                other => assert!(!other.is_text() && !other.is_binary(), "{other} came before the token"),
            }
        }
    };
    assert_eq!(code(None), 4408);
    let wrong = json!({ "type": "hello", "token": "0".repeat(64) }).to_string();
    for first in
        [Message::text(wrong), Message::text("{}"), Message::text("no JSON"), Message::binary(vec![0; 32])]
    {
        assert_eq!(code(Some(first)), 4401);
    }
}

#[test]
fn hostile_requests_get_problems_and_the_server_goes_on() {
    let server = Running::with(&["all-kinds.typhon-trace"]);
    for path in [
        "/sessions/1/event/x",
        "/sessions/1/event/4294967295.4294967295",
        "/sessions/1/event/0.0/children?first=18446744073709551615&count=18446744073709551615",
        "/sessions/1/row/4294967295/0/0",
        "/sessions/1/row/0/65535/0",
        "/sessions/1/row/0/i/18446744073709551615",
        "/sessions/1/row/-1/0/0",
        "/sessions/1/names?from=18446744073709551615",
        "/sessions/1/ticks?first=18446744073709551615&count=0",
        "/sessions/1/ticks?number=9999999",
        "/sessions/1/ticks?fromNs=5&toNs=1",
        "/sessions/1/ticks/slowest?count=18446744073709551615",
        "/sessions/1/ticks/slowest?count=0",
        "/sessions/1/gc?first=18446744073709551615",
        "/sessions/1/stats?by=nothing",
        "/sessions/1/stats?fromNs=9&toNs=1",
        "/sessions/1/stats?filter=77",
        "/sessions/1/stats?fromNs=0&toNs=18446744073709551615&top=18446744073709551615",
        "/sessions/1/top?count=0&fromNs=18446744073709551615",
        "/sessions/1/histogram?key=%00",
        "/sessions/1/search?filter=1&after=0.0",
        "/sessions/1/search",
        "/sessions/1/source?site=65535",
        "/sessions/1/source?site=70000",
        "/sessions/1/nearest?lane=0&row=i&atNs=18446744073709551615",
        "/sessions/4294967296/meta",
        "/sessions/%00/meta",
        "/sessions/1%2f..%2f1/meta",
        "/kinds/../kinds",
        "/",
        "/sessions//meta",
        "/nope",
        "/files?dir=%00",
    ] {
        let answer = server.get(path);
        assert!((200..500).contains(&answer.status), "{path}: {}", answer.status);
        // Errors are documents as well.
        assert_eq!(answer.json().get("status").is_some(), answer.status >= 400, "{path}");
    }
    for (path, body) in [
        ("/sessions", "{"),
        ("/sessions", "[]"),
        ("/sessions", r#"{"path":1}"#),
        ("/sessions/1/filters", r#"{"text":"knd=1"}"#),
        ("/sessions/1/filters", r#"{"text":"name~((((((((((a{1000}){1000}){1000}"}"#),
        ("/sessions/1/tiles", ""),
        ("/sessions/1/tiles", "TYRQ"),
    ] {
        let answer = server.send("POST", path, body.as_bytes());
        assert_eq!(answer.status, 400, "{path} {body}");
    }
    let column = server.send("POST", "/sessions/1/filters/check", br#"{"text":"dur>1us knd=1"}"#).json();
    assert_eq!(
        (&column["code"], &column["column"], &column["length"]),
        (&json!("filter"), &json!(8), &json!(3))
    );
    // Deep nesting and huge texts in a body.
    let deep = format!("{{\"path\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(server.send("POST", "/sessions", deep.as_bytes()).status, 400);
    assert_eq!(server.send("TRACE", "/sessions", b"").status, 405);
    assert_eq!(server.get("/sessions/1").status, 200);
    let mut socket = server.socket();
    for text in [
        "",
        "{}",
        r#"{"type":"helo"}"#,
        r#"{"type":"bind","viewId":70000,"session":"1"}"#,
        r#"{"type":"bind","viewId":1,"session":"9"}"#,
    ] {
        socket.send(Message::text(text)).unwrap();
        assert!(heard(&mut socket, "error")["problem"]["status"].as_u64() >= Some(400), "{text}");
    }
    socket.send(Message::binary(b"TYRQ".to_vec())).unwrap();
    assert_eq!(heard(&mut socket, "error")["problem"]["code"], "bad-request");
    say(&mut socket, &json!({ "type": "filter", "requestId": 1, "session": "1", "text": "knd=1" }));
    assert_eq!(heard(&mut socket, "filterFailed")["problem"]["column"], 0);
}
