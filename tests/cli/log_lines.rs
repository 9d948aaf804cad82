//! The log as JSON lines: what a machine reads, and what is never in it.

use std::io::{Read, Write};
use std::net::TcpStream;

use callsheet::runtime::fields::FIELDS;
use serde_json::Value;

use crate::support::command::{Home, Running, Scenario, json, nobody, tool, until};

const PASSWORD: &str = "hunter2-password";
const BODY: &str = "marker-in-a-body";
const QUERY: &str = "marker-in-a-query";

/// Everything that was logged while a daemon asked a scenario with credentials, took changes and
/// stopped.
fn logged(args: &[&str]) -> String {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let with_credentials =
        |url: &str| url.replacen("http://", &format!("http://admin:{PASSWORD}@"), 1);
    let home = Home::naming(&[
        ("notes", &with_credentials(&notes.url)),
        ("gone", &with_credentials(&nobody())),
    ]);
    let mut daemon = home.serve(args);
    let changed = put(
        &daemon,
        &format!(
            r#"{{"scope": "chat:{BODY}", "target": "tool:notes/add_note", "enabled": false}}"#
        ),
    );
    assert!(changed.starts_with("HTTP/1.1 200"), "{changed}");
    assert!(put(&daemon, &format!(r#"{{"{BODY}": 1}}"#)).starts_with("HTTP/1.1 400"));
    assert_eq!(daemon.get(&format!("/api/v1/scenarios?{QUERY}=1")).0, 400);
    until("the lost one was asked", || {
        String::from_utf8(daemon.get("/metrics").1)
            .unwrap()
            .contains("seconds_count{outcome=\"refused\"")
    });
    daemon.signal("TERM");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    log
}

fn put(daemon: &Running, body: &str) -> String {
    let address = daemon.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        "PUT /api/v1/preferences HTTP/1.1\r\nContent-Type: application/json\r\nConnection: close";
    write!(
        stream,
        "{head}\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn each_line_is_an_object_with_known_fields() {
    let log = logged(&["--log-format", "json", "--log", "callsheet=trace"]);
    let lines: Vec<Value> = log.lines().map(json).collect();
    let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    for line in &lines {
        for name in ["timestamp", "level", "target"] {
            assert!(line[name].is_string(), "{name}: {line}");
        }
        let members = line.as_object().unwrap().keys().map(String::as_str);
        let of_span = line["span"]
            .as_object()
            .into_iter()
            .flat_map(|span| span.keys().map(String::as_str));
        for name in members.chain(of_span) {
            let own = ["timestamp", "level", "target", "message", "span", "name"].contains(&name);
            assert!(own || known.contains(&name), "{name}: {line}");
        }
    }
    let line_of = |message: &str| lines.iter().find(|line| line["message"] == message);
    let started = line_of("started").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(started["level"], "INFO");
    assert_eq!(started["target"], "callsheet::cli::serve");
    assert!(
        started["configuration"]
            .as_str()
            .unwrap()
            .ends_with("callsheet.toml"),
        "{started}"
    );
    assert_eq!(line_of("stop requested").unwrap()["signal"], "SIGTERM");
    // S4-11 to S4-13, S4-22: who was discovered, with how many tools, and who cannot be asked, and
    // why; each once.
    let known = line_of("tools loaded").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(known["scenario"], "notes");
    assert_eq!(known["tools"], 1);
    assert_eq!(known["level"], "INFO");
    let failing: Vec<_> = lines
        .iter()
        .filter(|line| line["message"] == "fetching tools failed")
        .collect();
    assert_eq!(failing.len(), 1, "{failing:#?}");
    assert_eq!(failing[0]["scenario"], "gone");
    assert_eq!(failing[0]["level"], "WARN");
    assert!(
        failing[0]["error"].as_str().unwrap().contains("refused"),
        "{}",
        failing[0]
    );
}

#[test]
fn no_secret_no_body_and_no_query_is_logged() {
    for format in ["human", "json"] {
        let log = logged(&["--log-format", format, "--log", "callsheet=trace"]);
        assert!(log.contains("started"), "{log}");
        for secret in [PASSWORD, BODY, QUERY] {
            assert!(!log.contains(secret), "{secret}: {log}");
        }
    }
}

#[test]
fn another_format_is_refused() {
    let error = Home::new().run(&["serve", "--log-format", "xml"]).failed(2);
    assert!(error.contains("human") && error.contains("json"), "{error}");
}
