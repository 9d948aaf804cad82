//! Traces for an OpenTelemetry collector, with the feature `otlp`: the real binary against a
//! collector on loopback.

#![cfg(all(unix, feature = "otlp"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use support::command::{Home, Scenario, nobody, tool, until};

const PASSWORD: &str = "hunter2-password";

/// What a collector got: the heads and the bodies of requests.
type Got = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Takes whatever comes until the test ends.
fn collector() -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let got = Got::default();
    let kept = Arc::clone(&got);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let kept = Arc::clone(&kept);
            thread::spawn(move || while take(&stream, &kept).is_some() {});
        }
    });
    (url, got)
}

/// Takes one request.
fn take(stream: &TcpStream, got: &Got) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 0 && line != "\r\n" {
        head.push_str(&line.to_ascii_lowercase());
        line.clear();
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    got.lock().unwrap().push((head, body));
    let mut stream = stream;
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n",
        )
        .ok()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn asks_and_requests_are_traced_without_secrets() {
    let (url, got) = collector();
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let address = notes
        .url
        .replacen("http://", &format!("http://admin:{PASSWORD}@"), 1);
    let home = Home::naming(&[("notes", &address)]);
    let mut daemon = home.serve(&["--otlp", &url]);
    assert_eq!(daemon.get("/api/v1/scenarios/notes").0, 200);
    daemon.signal("TERM");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    until("the traces came", || !got.lock().unwrap().is_empty());
    let got = got.lock().unwrap();
    assert!(
        got.iter()
            .all(|(head, _)| head.starts_with("post /v1/traces http/1.1")),
        "{got:?}"
    );
    assert!(
        got[0].0.contains("content-type: application/x-protobuf"),
        "{}",
        got[0].0
    );
    let all: Vec<u8> = got.iter().flat_map(|(_, body)| body.clone()).collect();
    for text in [
        "service.name",
        "callsheet",
        "ask",
        "notes",
        "manifest",
        "request",
        "/api/v1/scenarios/{name}",
    ] {
        assert!(
            holds(&all, text),
            "{text} is missing in {}",
            String::from_utf8_lossy(&all)
        );
    }
    assert!(!holds(&all, PASSWORD));
}

#[test]
fn a_collector_that_is_not_there_holds_nothing_up() {
    let home = Home::new();
    home.write("callsheet.toml", "server.listen = \"127.0.0.1:0\"\n");
    let mut daemon = home.serve(&["--otlp", &nobody()]);
    assert_eq!(daemon.get("/api/v1/tools").0, 200);
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
}
