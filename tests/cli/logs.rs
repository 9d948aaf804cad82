//! `callsheet logs`: the latest calls and what happened to scenarios, once and as it happens.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::list_commands::on_a_terminal;
use crate::support::command::{Home, Running, Scenario, json, office, tool, until};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");

fn call(home: &Home, daemon: &Running, name: &str) -> Option<i32> {
    home.run(&[
        "call",
        "--url",
        &daemon.url,
        "--chat",
        "7",
        name,
        "--text",
        "a secret",
    ])
    .code
}

#[test]
fn recent_calls_are_told_with_tool_caller_duration_and_outcome() {
    let (home, daemon, _scenarios) = office();
    let logs = |args: &[&str]| {
        home.run(&[&["logs", "--url", &daemon.url], args].concat())
            .ok()
    };
    let before = logs(&[]);
    assert!(
        before.contains("  notes: connecting -> live (up to date)"),
        "{before}"
    );
    assert!(!before.contains(" ms "), "{before}");
    assert_eq!(
        call(&home, &daemon, "add_note"),
        Some(1),
        "what `provide` serves cannot be called"
    );
    assert_eq!(call(&home, &daemon, "send_mail"), Some(6));
    let after = logs(&[]);
    let line = |tool: &str| {
        after
            .lines()
            .find(|line| line.contains(tool))
            .unwrap_or_else(|| panic!("{after}"))
    };
    let caller = format!("(by callsheet/{}, chat 7)", env!("CARGO_PKG_VERSION"));
    assert!(line("notes/add_note: ").contains(&caller), "{after}");
    assert!(line("notes/add_note: ").contains(" ms ("), "{after}");
    assert!(
        line("mail/send_mail: ").contains(": approval required in "),
        "{after}"
    );
    assert!(!after.contains("a secret"), "{after}");
    assert!(
        after.lines().map(|line| &line[..19]).is_sorted(),
        "in the order of time: {after}"
    );
    assert_eq!(
        logs(&["--scenario", "mail"])
            .lines()
            .filter(|line| line.contains("notes"))
            .count(),
        0
    );
    assert_eq!(
        logs(&["--last", "1"])
            .lines()
            .filter(|line| line.contains(" ms "))
            .count(),
        1
    );
    assert_eq!(
        logs(&["--tool", "mail/send_mail"])
            .lines()
            .filter(|line| line.contains(" ms "))
            .count(),
        1
    );
    let failed = logs(&["--failed", "--since", "1h"]);
    assert!(
        failed.contains("notes/add_note: ") && !failed.contains("->"),
        "{failed}"
    );
    let answer = json(&logs(&["--json"]));
    assert_eq!(answer["last"], 2, "{answer}");
    for _ in 0..20 {
        call(&home, &daemon, "add_note");
    }
    let calls = |args: &[&str]| {
        logs(args)
            .lines()
            .filter(|line| line.contains(" ms ("))
            .count()
    };
    assert_eq!(calls(&[]), 20);
    assert_eq!(calls(&["--since", "1h"]), 22, "all of that time");
    assert_eq!(calls(&["--since", "1h", "--last", "5"]), 5);
    let answer = json(&logs(&["--json", "--last", "50"]));
    assert_eq!(answer["calls"][1]["id"], "mail/send_mail", "{answer}");
    assert!(answer["calls"][1]["approval_id"].is_string(), "{answer}");
}

#[test]
fn calls_and_changes_are_followed_until_ctrl_c() {
    let (home, daemon, _scenarios) = office();
    let command = home.command(&[
        "logs",
        "--follow",
        "--json",
        "--last",
        "5",
        "--url",
        &daemon.url,
    ]);
    let mut logs = Running::start(command, "{\"event\":\"snapshot\"");
    call(&home, &daemon, "add_note");
    let called = json(&logs.line(|line| line.contains("\"called\"")));
    assert_eq!(called["data"]["id"], "notes/add_note");
    assert_eq!(called["data"]["chat_id"], "7");
    home.run(&["block", "notes", "--url", &daemon.url]).ok();
    let changed = json(&logs.line(|line| line.contains("\"event\":\"scenario\"")));
    assert_eq!(changed["data"]["to"], "blocked");
    logs.signal("INT");
    assert_eq!(logs.ended(), (Some(0), String::new()));
    // For people, each in one line.
    let text = home.command(&[
        "logs",
        "--follow",
        "--last",
        "5",
        "--scenario",
        "mail",
        "--url",
        &daemon.url,
    ]);
    let mut logs = Running::start(text, "2");
    call(&home, &daemon, "mail/search");
    let line = logs.line(|line| line.contains("mail/search: "));
    assert!(line.contains(" ms (by callsheet/"), "{line}");
    home.run(&["block", "mail", "--url", &daemon.url]).ok();
    logs.line(|line| line.ends_with("  mail: live -> blocked (an operator blocked it)"));
    logs.signal("INT");
    assert_eq!(logs.ended(), (Some(0), String::new()));
}

#[test]
fn with_the_operators_token_the_text_names_callers_and_errors_as_json_does() {
    let token = "an-operator-token-of-this-test";
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let scenario = format!("[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n", notes.url);
    let home = Home::with(&format!("server.operator_token = \"{token}\"\n{scenario}"));
    let daemon = home.serve(&[]);
    let head = format!(
        "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nUser-Agent: operators-script/1.0\r\n"
    );
    let body = r#"{"tool_name": "notes/add_note", "arguments": {"text": "x"}}"#;
    // What `provide` serves cannot be called.
    daemon.send("POST /api/v1/tools/execute", &head, body);
    let known = json(&home.run(&["logs", "--json", "--url", &daemon.url]).ok());
    assert_eq!(known["calls"][0]["withheld"], false, "{known}");
    let error = known["calls"][0]["error"].as_str().unwrap().to_owned();
    let has_all =
        |line: &str| line.contains(" (by operators-script/1.0): ") && line.ends_with(&error);
    let text = home.run(&["logs", "--url", &daemon.url]).ok();
    assert!(text.lines().any(has_all), "{text}");
    assert!(!text.contains("the rest needs"), "{text}");
    let follow = [
        "logs",
        "--follow",
        "--last",
        "1",
        "--tool",
        "notes/add_note",
        "--url",
        &daemon.url,
    ];
    let mut logs = Running::start(home.command(&follow), "2");
    daemon.send("POST /api/v1/tools/execute", &head, body);
    let line = logs.line(|line| line.contains("notes/add_note"));
    assert!(has_all(&line), "{line}");
    logs.signal("INT");
    logs.ended();
    // Without the token.
    home.write("other.toml", &scenario);
    let text = home
        .run(&["logs", "--config", "other.toml", "--url", &daemon.url])
        .ok();
    assert!(
        text.contains(" (the rest needs the operator token)") && !text.contains("operators-script"),
        "{text}"
    );
}

#[test]
fn filters_hold_for_what_follows_and_none_is_none() {
    let (home, daemon, _scenarios) = office();
    call(&home, &daemon, "add_note");
    let none = home.run(&["logs", "-n", "0", "--url", &daemon.url]).ok();
    assert_eq!(none, "", "no line was wanted");
    let answer = json(
        &home
            .run(&["logs", "-n", "0", "--json", "--url", &daemon.url])
            .ok(),
    );
    assert_eq!(
        answer["lines"].as_array().map(Vec::len),
        Some(0),
        "{answer}"
    );
    assert_eq!(
        answer["calls"].as_array().map(Vec::len),
        Some(0),
        "{answer}"
    );
    let answer = json(
        &home
            .run(&[
                "logs",
                "--json",
                "--tool",
                "notes/add_note",
                "--url",
                &daemon.url,
            ])
            .ok(),
    );
    assert_eq!(
        answer["calls"].as_array().map(Vec::len),
        Some(1),
        "{answer}"
    );
    let answer = json(
        &home
            .run(&[
                "logs",
                "--json",
                "--tool",
                "mail/search",
                "--url",
                &daemon.url,
            ])
            .ok(),
    );
    assert_eq!(
        answer["calls"].as_array().map(Vec::len),
        Some(0),
        "{answer}"
    );

    let follow = [
        "logs",
        "--follow",
        "--tool",
        "mail/search",
        "--last",
        "0",
        "--json",
        "--url",
        &daemon.url,
    ];
    let mut json_lines = Running::start(home.command(&follow), "{\"event\":\"snapshot\"");
    let follow = [
        "logs",
        "--follow",
        "--tool",
        "mail/search",
        "--url",
        &daemon.url,
    ];
    call(&home, &daemon, "mail/search");
    let mut lines = Running::start(home.command(&follow), "2");
    call(&home, &daemon, "add_note");
    home.run(&["block", "notes", "--url", &daemon.url]).ok();
    call(&home, &daemon, "mail/search");
    let first = lines.line(|_| true);
    assert!(first.contains("mail/search: "), "{first}");
    let called = json(&json_lines.line(|_| true));
    assert_eq!(called["data"]["id"], "mail/search", "{called}");
    let called = json(&json_lines.line(|_| true));
    assert_eq!(called["data"]["id"], "mail/search", "{called}");
    for logs in [&mut lines, &mut json_lines] {
        logs.signal("INT");
        assert_eq!(logs.ended(), (Some(0), String::new()));
    }
}

/// A home with a program that writes its secret to standard error and then behaves like this.
fn home_of_program(behaviour: &str) -> Home {
    let home = Home::with(
        "[[scenarios]]\nname = \"child\"\ncommand = \"./wrapper.sh\"\ncwd = \".\"\n\
         env = { PATH = \"/usr/local/bin:/usr/bin:/bin\", TOKEN = \"topsecret-topsecret-topsecret\" }\n",
    );
    home.write("names", "read\ndie\n");
    let script = format!(
        "#!/bin/sh\necho \"the token is $TOKEN\" >&2\nexec python3 {SERVER} {behaviour} names\n"
    );
    let script = home.write("wrapper.sh", &script);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// The ends of programs in the log of a daemon, once there is one.
fn ends(daemon: &Running) -> Vec<Value> {
    let mut ends = Vec::new();
    until("the end is in the log", || {
        let answer = json(&String::from_utf8_lossy(
            &daemon.get("/api/v1/log?kind=end").1,
        ));
        ends = answer["lines"].as_array().cloned().unwrap_or_default();
        !ends.is_empty()
    });
    ends
}

#[test]
fn why_a_program_ended_is_known_after_its_restart_and_that_of_the_daemon() {
    let home = home_of_program("modern");
    let mut daemon = home.serve(&[]);
    until("its tools are listed", || {
        String::from_utf8_lossy(&daemon.get("/api/v1/tools").1).contains("\"die\"")
    });
    home.run(&["call", "--url", &daemon.url, "die"]);
    let end = ends(&daemon)[0]["end"].clone();
    assert_eq!(end["name"], "child", "{end}");
    assert_eq!(end["reason"], "the process ended with exit code 3", "{end}");
    assert_eq!(end["exit_code"], 3, "{end}");
    assert_eq!(end["signal"], Value::Null, "{end}");
    assert!(end["uptime_ms"].is_u64(), "{end}");
    let stderr = end["stderr"].as_array().unwrap();
    assert_eq!(stderr[0], "the token is ***", "{end}");
    assert_eq!(stderr.last().unwrap(), "it hurts", "{end}");
    // It is there again.
    until("it was started again", || {
        home.run(&["call", "--url", &daemon.url, "child/read"]).code == Some(0)
    });
    let told = |daemon: &Running| {
        let text = home
            .run(&["logs", "child", "--last", "50", "--url", &daemon.url])
            .ok();
        let line = text
            .lines()
            .find(|line| line.contains("  child: after "))
            .unwrap_or_else(|| panic!("{text}"))
            .to_owned();
        assert!(
            line.contains(" the process ended with exit code 3; its last lines on stderr: "),
            "{line}"
        );
        assert!(line.contains("it hurts"), "{line}");
        assert!(!text.contains("topsecret"), "{text}");
        line
    };
    let line = told(&daemon);
    let page = String::from_utf8(daemon.get("/dashboard/scenarios/child").1).unwrap();
    assert!(
        page.contains("program ended") && page.contains("it hurts"),
        "{page}"
    );
    assert!(page.contains("1 end of its program"), "{page}");
    assert_eq!(ends(&daemon).len(), 1, "an end is one line");
    daemon.signal("TERM");
    daemon.ended();
    let daemon = home.serve(&[]);
    assert_eq!(told(&daemon), line);
    let text = home
        .run(&["logs", "--last", "50", "--url", &daemon.url])
        .ok();
    let started = format!("callsheet {} started", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        text.lines().filter(|line| line.contains(&started)).count(),
        2,
        "{text}"
    );
    assert!(
        text.contains(" started (the run before was there until 2"),
        "{text}"
    );
}

#[test]
fn a_program_that_ends_at_its_start_is_in_the_log_too() {
    let home = home_of_program("exits");
    let daemon = home.serve(&[]);
    let end = ends(&daemon)[0]["end"].clone();
    assert_eq!(end["exit_code"], 1, "{end}");
    assert_eq!(
        end["stderr"],
        serde_json::json!(["the token is ***", "no configuration file"]),
        "{end}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_program_wrote_before_its_end_does_not_steer_a_terminal() {
    let home = Home::with(
        "[[scenarios]]\nname = \"loud\"\ncommand = \"/bin/sh\"\nargs = [\"loud.sh\"]\ncwd = \".\"\n",
    );
    home.write(
        "loud.sh",
        "echo 'red\u{9b}31m\u{7f}\u{85}\u{202e}\u{2066}end' >&2\nexit 3\n",
    );
    let daemon = home.serve(&[]);
    assert!(
        ends(&daemon)[0]["end"]["stderr"]
            .to_string()
            .contains('\u{202e}')
    );
    let piped = home.run(&["logs", "--json", "--url", &daemon.url]).ok();
    assert!(
        piped.contains('\u{202e}'),
        "a pipe gets the bytes of the daemon: {piped}"
    );
    for args in [&["logs", "--json"][..], &["logs"], &["logs", "loud"]] {
        let shown = on_a_terminal(&home, &daemon, args);
        let steers = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\r') || matches!(c, '\u{202e}' | '\u{2066}')
        };
        assert!(!shown.contains(steers), "{args:?}: {shown:?}");
        assert!(
            shown.contains("red") && shown.contains("end"),
            "{args:?}: {shown:?}"
        );
        if args.contains(&"--json") {
            assert!(
                json(&shown).to_string().contains("31m\u{202e}"),
                "the same text: {shown:?}"
            );
        }
    }
}
