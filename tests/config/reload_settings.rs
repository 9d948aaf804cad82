//! What other settings do to a running daemon, key by key.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::command::{self, until};
use crate::support::config_file::{Counted, Following, HEAD, file, replace};

#[test]
fn versions_bounds_and_intervals_hold_for_what_is_known_already() {
    let notes = Counted::offering("notes", &["add_note", "find_note"]);
    let entries = file(&[notes.entry("notes")]);
    let following = Following::start(&entries);
    // What is asked again is asked whole, since only that can tell.
    replace(
        &following.path,
        &format!("protocol.accept = \">=2.0\"\n{entries}"),
    );
    until("it is refused", || {
        following.health("notes")["state"] == "incompatible"
    });
    assert_eq!(notes.asked(), 2);
    replace(
        &following.path,
        &format!("refresh.max_tools = 1\n{entries}"),
    );
    following.until_tools(&["add_note"]);
    assert_eq!(following.health("notes")["state"], "live");
    assert_eq!(notes.asked(), 3);
    assert_eq!(following.findings("tools-beyond-limit").len(), 1);

    // An hour until the next ask becomes at most a minute.
    let next = |following: &Following| {
        following.health("notes")["next_attempt"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let late = next(&following);
    replace(
        &following.path,
        &format!("refresh.max_tools = 1\nrefresh.max_interval = \"60s\"\n{entries}"),
    );
    until("it is planned anew", || next(&following) < late);
    replace(
        &following.path,
        &format!(
            "refresh.max_tools = 1\nrefresh.max_interval = \"5ms\"\nrefresh.min_interval = \"1ms\"\n{entries}"
        ),
    );
    until("it is asked often", || notes.asked() > 10);
}

#[test]
fn a_limit_on_answers_holds_from_the_next_one_on() {
    let notes = Counted::offering("notes", &["add_note"]);
    let following = Following::start(&file(&[notes.entry("notes")]));
    replace(
        &following.path,
        &format!(
            "refresh.max_body = 10\nrefresh.connect_timeout = \"2s\"\n{}",
            file(&[notes.entry("notes")])
        ),
    );
    following.until_reloads(1);
    following
        .home
        .run(&["refresh", "notes", "--url", &following.daemon.url]);
    assert_eq!(following.health("notes")["last_error"]["kind"], "too-large");
    assert_eq!(following.tools(), ["add_note"]);
}

#[test]
fn profiles_see_what_they_may_at_once() {
    let notes = Counted::offering("notes", &["add_note"]);
    let mail = Counted::offering("mail", &["send_mail"]);
    let entries = [notes.entry("notes"), mail.entry("mail")];
    let following = Following::start(&file(&entries));
    let seen = |following: &Following| {
        following.json("/api/v1/tools?profile=guest")["tools"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(seen(&following), 2);
    let guest = "[[profiles]]\nname = \"guest\"\nscenarios = [\"notes\"]\n".to_owned();
    replace(&following.path, &file(&[entries.concat(), guest]));
    until("only one is left", || seen(&following) == 1);
    assert_eq!(following.tools().len(), 2);
    assert_eq!(notes.asked(), 1);
    assert_eq!(mail.asked(), 1);
}

#[test]
fn preferences_of_the_file_hold_below_the_stored_ones_and_follow_the_file() {
    let notes = Counted::offering("notes", &["add_note", "find_note"]);
    let off =
        |tool: &str| format!("[[preferences]]\ntarget = \"tool:notes/{tool}\"\nenabled = false\n");
    let following = Following::start(&file(&[
        notes.entry("notes"),
        off("add_note"),
        off("find_note"),
    ]));
    assert_eq!(following.tools(), [] as [&str; 0]);

    following
        .home
        .run(&[
            "prefs",
            "set",
            "tool:notes/add_note",
            "--enabled",
            "true",
            "--url",
            &following.daemon.url,
        ])
        .ok();
    assert_eq!(
        following.tools(),
        ["add_note"],
        "a stored one wins over the same one of the file"
    );
    following
        .home
        .run(&[
            "prefs",
            "reset",
            "tool:notes/add_note",
            "--url",
            &following.daemon.url,
        ])
        .ok();
    assert_eq!(
        following.tools(),
        [] as [&str; 0],
        "a reset brings the one of the file back"
    );
    replace(
        &following.path,
        &file(&[notes.entry("notes"), off("add_note")]),
    );
    until("the file is read", || following.tools() == ["find_note"]);
    assert_eq!(notes.asked(), 1, "a preference needs no poll");
}

#[test]
fn sources_are_switched_on_and_off() {
    let notes = Counted::offering("notes", &["add_note"]);
    let following = Following::start(HEAD);
    let folder = following.home.path("processes/notes");
    fs::create_dir_all(&folder).unwrap();
    let port: u16 = notes.url.rsplit(':').next().unwrap().parse().unwrap();
    let process = json!({"pid": std::process::id(), "phase": "develop", "scenario": "notes", "step": "start-api",
        "port": port, "status": "running"});
    fs::write(folder.join("start-api.json"), process.to_string()).unwrap();
    let on = HEAD.replace("enabled = false", "path = \"processes\"");
    replace(&following.path, &on);
    following.until_tools(&["add_note"]);
    assert_eq!(following.health("notes")["source"], "vrooli");
    // The list names it too, at the same address. It is asked again: only what the list names is
    // shown the token of a login.
    let entry = notes
        .entry("notes")
        .replace("protocol = \"tool-discovery\"\n", "");
    replace(&following.path, &format!("{on}{entry}"));
    until("the list has it", || {
        following.health("notes")["source"] == "static"
    });
    replace(&following.path, &on);
    until("the files have it again", || {
        following.health("notes")["source"] == "vrooli"
    });
    assert_eq!(following.tools().len(), 1);
    // Whoever was found by what is not looked at any more goes, whether or not it would still
    // answer.
    replace(&following.path, HEAD);
    following.until_tools(&[]);
    assert_eq!(
        following.health("notes")["reason"],
        "`vrooli` found it, which the configuration has switched off"
    );
}

#[test]
fn streams_show_that_they_live_as_often_as_is_said_now() {
    let following = Following::start(HEAD);
    replace(
        &following.path,
        &format!("events.keep_alive = \"20ms\"\n{HEAD}"),
    );
    following.until_reloads(1);
    let address = following.daemon.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n\r\n"
    )
    .unwrap();
    // By default there would be one in 15 seconds.
    let lines = BufReader::new(stream).lines().map(|line| line.unwrap());
    assert_eq!(
        lines.filter(|line| line.starts_with(':')).take(5).count(),
        5
    );
}

#[test]
fn a_longer_grace_keeps_what_fails() {
    let notes = Counted::offering("notes", &["add_note"]);
    let often = "refresh.min_interval = \"1ms\"\nrefresh.max_interval = \"50ms\"\nrefresh.backoff_max = \"20ms\"\nrefresh.backoff_base = \"10ms\"\n";
    let text = |rules: &str, url: &str| {
        format!(
            "{often}{rules}{HEAD}{}",
            notes.entry("notes").replace(&notes.url, url)
        )
    };
    let following = Following::start(&text("", &notes.url));
    // It moves to where nobody is, and is kept by the grace.
    let nobody = command::nobody();
    replace(&following.path, &text("", &nobody));
    until("it fails", || {
        following.health("notes")["failures_in_a_row"].as_u64() > Some(5)
    });
    assert_eq!(following.tools(), vec!["add_note".to_owned()]);
    assert_eq!(following.health("notes")["state"], "stale");
    replace(&following.path, &text("health.grace = \"0s\"\n", &nobody));
    following.until_tools(&[]);
    assert_eq!(following.health("notes")["state"], "down");
}

/// A request to block a scenario that is not there: 401 without the token, else 404.
fn blocked(following: &Following, token: &str) -> u16 {
    let address = following.daemon.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api/v1/scenarios/nobody/block HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n"
    );
    let shown = if token.is_empty() {
        String::new()
    } else {
        format!("Authorization: Bearer {token}\r\n")
    };
    write!(
        stream,
        "{head}{shown}Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"
    )
    .unwrap();
    let first = BufReader::new(stream).lines().next().unwrap().unwrap();
    first.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Sends a JSON body with this token; the status and the body of the answer.
#[cfg(unix)]
fn sent(
    following: &Following,
    (method, target): (&str, &str),
    token: &str,
    body: &Value,
) -> (u16, Value) {
    let address = following.daemon.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let shown = if token.is_empty() {
        String::new()
    } else {
        format!("Authorization: Bearer {token}\r\n")
    };
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "{head}{shown}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        serde_json::from_str(body).unwrap(),
    )
}

/// Calls with the rights of an operator keep their results from clients without the token.
#[cfg(unix)]
#[test]
fn a_connection_to_the_socket_loses_the_rights_of_operators_with_a_new_token() {
    let notes = Counted::offering("notes", &["add_note"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let text = |settings: &str| {
        format!(
            "server.rpc_socket = \"{}\"\n{settings}{}",
            path.display(),
            file(&[notes.entry("notes")])
        )
    };
    let following = Following::start(&text(""));
    following.until_tools(&["add_note"]);
    let require =
        json!({"scope": "global", "target": "tool:notes/add_note", "approval": "require"});
    assert_eq!(
        sent(&following, ("PUT", "/api/v1/preferences"), "", &require).0,
        200
    );
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut called = |n: u64| -> String {
        let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "add_note", "arguments": {"n": n}}});
        writeln!(&stream, "{call}").unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        answer["error"]["data"]["approval_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    };
    let before = called(1);
    let token = "0123456789abcdef-one";
    replace(
        &following.path,
        &text(&format!("server.operator_token = \"{token}\"\n")),
    );
    until("the token is needed", || blocked(&following, "") == 401);
    let after = called(2);
    for (id, is_shown) in [(before, false), (after, true)] {
        let approved = sent(
            &following,
            ("POST", &format!("/api/v1/approvals/{id}/approve")),
            token,
            &json!({}),
        );
        assert_eq!(approved.0, 200, "{approved:?}");
        let seen = following.json(&format!("/api/v1/approvals/{id}"));
        assert_eq!(!seen["answer"].is_null(), is_shown, "{seen}");
    }
}

#[test]
fn another_token_holds_at_once_and_its_old_name_is_told() {
    let following = Following::start(HEAD);
    assert_eq!(blocked(&following, ""), 404);
    let one = "0123456789abcdef-one";
    let other = "0123456789abcdef-two";
    replace(
        &following.path,
        &format!("{HEAD}calls.approval_token = \"{one}\"\n"),
    );
    until("the token is needed", || blocked(&following, "") == 401);
    assert_eq!(blocked(&following, one), 404);
    assert_eq!(blocked(&following, other), 401);
    let findings = following.findings("config-deprecated");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        findings[0]["message"],
        "`calls.approval_token` is the old name of `server.operator_token`"
    );
    assert!(
        findings[0]["hint"]
            .as_str()
            .unwrap()
            .starts_with("write `server.operator_token` instead")
    );
    assert!(
        following
            .json("/api/v1/scenarios")
            .get("configuration")
            .is_none(),
        "it is in force as written"
    );

    replace(
        &following.path,
        &format!("{HEAD}server.operator_token = \"{other}\"\n"),
    );
    until("the other token is in force", || {
        blocked(&following, other) == 404
    });
    assert_eq!(blocked(&following, one), 401);
    assert_eq!(blocked(&following, ""), 401);
    until("the finding is gone", || {
        following.findings("config-deprecated").is_empty()
    });
    let log = following.log();
    assert_eq!(
        log.matches("`calls.approval_token` is the old name of `server.operator_token`")
            .count(),
        1,
        "{log}"
    );
    assert!(!log.contains("0123456789abcdef"), "{log}");
}

#[test]
fn an_old_name_is_told_at_the_start() {
    let following = Following::start(&format!(
        "{HEAD}calls.approval_token = \"0123456789abcdef\"\n"
    ));
    until("the finding is there", || {
        following.findings("config-deprecated").len() == 1
    });
    let log = following.log();
    assert_eq!(log.matches("is the old name of").count(), 1, "{log}");
}
