//! Errors with `--json`: one object on standard error, for every command that speaks to a daemon
//! and for those that look for themselves.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::command::{Home, Ran, json, nobody, office, run, until};

/// The only line on standard error, when nothing was printed.
#[track_caller]
fn failed(ran: Ran, code: i32) -> Value {
    let error = json(&ran.failed(code));
    assert_eq!(error["exit_code"], code, "{error}");
    assert!(
        error["error"]
            .as_str()
            .is_some_and(|text| !text.is_empty() && !text.starts_with("error")),
        "{error}"
    );
    error
}

#[test]
fn nobody_there_is_an_object_for_every_client_command() {
    let home = Home::new();
    let url = nobody();
    for args in [
        &["tools"][..],
        &["search", "words"],
        &["scenarios"],
        &["scenarios", "notes"],
        &["explain", "add_note"],
        &["findings"],
        &["logs"],
        &["call", "--json", "--url", &url, "add_note"],
        &["prefs", "list"],
        &["prefs", "set", "scenario:notes", "--enabled", "false"],
        &["prefs", "reset", "scenario:notes"],
        &["approvals"],
        &["approvals", "approve", "abc"],
        &["operations"],
        &["refresh"],
        &["refresh", "notes"],
        &["block", "notes"],
        &["trust", "notes"],
        &["forget", "notes"],
        &["logout", "notes"],
    ] {
        let further: &[&str] = if args[0] == "call" {
            &[]
        } else {
            &["--json", "--url", &url]
        };
        let error = failed(home.run(&[args, further].concat()), 3);
        assert!(
            error["error"]
                .as_str()
                .unwrap()
                .starts_with("no daemon answers at "),
            "{args:?}: {error}"
        );
        assert!(
            error["hint"]
                .as_str()
                .unwrap()
                .contains("`callsheet serve`"),
            "{args:?}: {error}"
        );
        assert_eq!(error.get("problem"), None, "{args:?}: {error}");
    }
}

#[test]
fn a_refusal_has_the_daemons_problem_document() {
    let (home, daemon, _scenarios) = office();
    let ask = |args: &[&str]| home.run(&[args, &["--json", "--url", &daemon.url]].concat());
    let error = failed(ask(&["scenarios", "nots"]), 1);
    assert_eq!(error["error"], "no scenario is called `nots`");
    assert_eq!(error["hint"], "did you mean notes?");
    assert_eq!(error["problem"]["status"], 404);
    assert_eq!(error["problem"]["candidates"], json(r#"["notes"]"#));
    // The options of `call` stand before the name of the tool.
    let error = failed(
        home.run(&[
            "call",
            "--json",
            "--url",
            &daemon.url,
            "wipe",
            "--text",
            "x",
        ]),
        1,
    );
    assert_eq!(error["problem"]["code"], "disabled");
    let hint = error["hint"].as_str().unwrap();
    assert_eq!(
        hint, "`callsheet prefs set tool:notes/wipe --enabled true` switches it on",
        "{error}"
    );
    let waits = home.run(&[
        "call",
        "--json",
        "--url",
        &daemon.url,
        "send_mail",
        "--text",
        "x",
    ]);
    assert_eq!(waits.code, Some(6));
    let answer = json(&waits.out);
    let error = json(&waits.err);
    assert_eq!(error["approval_id"], answer["approval_id"], "{error}");
    assert_eq!(error["exit_code"], 6);
    // What is no error is a line of JSON too.
    let first = ask(&["tools", "--max", "1"]);
    assert!(
        json(&first.err)["note"]
            .as_str()
            .unwrap()
            .starts_with("3 tools left out"),
        "{first:?}"
    );
}

#[test]
fn wrong_usage_and_wrong_configurations_are_objects() {
    let home = Home::new();
    for args in [
        &["tools", "--json", "--no-such-flag"][..],
        &["search", "--json"],
        &["no-such-command", "--json"],
        &["scenarios", "--json", "--state", "odd"],
        &["scenarios", "--json", "--url", "ftp://x"],
        &["check", "no-such-file", "--json"],
        &["check", "no-such-file", "--format", "json"],
        &["doctor", "--json", "--url", "ftp://x"],
    ] {
        let error = failed(home.run(args), 2);
        assert!(error["hint"].is_string(), "{args:?}: {error}");
    }
    let wrong = Home::new();
    wrong.write("callsheet.toml", "[server]\nlistn = 1\nlisen = 1\n");
    let error = failed(wrong.run(&["config", "show", "--json"]), 4);
    assert_eq!(error["errors"].as_array().unwrap().len(), 2, "{error}");
    assert_eq!(error["errors"][0]["error"], error["error"]);
    // Without the flag it is text as before.
    let text = home.run(&["tools", "--no-such-flag"]).failed(2);
    assert!(
        text.starts_with("error: unexpected argument '--no-such-flag' found"),
        "{text}"
    );
}

/// What the daemon says names routes; the command line says commands.
#[test]
fn hints_of_the_command_line_name_commands() {
    let (home, daemon, _scenarios) = office();
    for (args, hint) in [
        (
            &["approvals", "approve", "zz"][..],
            "`callsheet approvals` lists those that are known",
        ),
        (
            &["operations", "cancel", "zz"],
            "`callsheet operations` lists those that are known",
        ),
        (
            &["call", "wipe", "--text", "x"],
            "`callsheet prefs set tool:notes/wipe --enabled true` switches it on",
        ),
        (
            &["explain", "zebra"],
            "`callsheet tools --all` lists those that are offered now",
        ),
        (
            &["scenarios", "zebra"],
            "`callsheet scenarios` lists those that are known",
        ),
        (
            &["forget", "zebra"],
            "`callsheet scenarios` lists those that are known",
        ),
    ] {
        let mut command = home.command(args);
        let error =
            crate::support::command::run(command.env("CALLSHEET_URL", &daemon.url)).failed(1);
        assert!(
            error.contains(&format!("\n  hint: {hint}\n")),
            "{args:?}: {error}"
        );
        assert!(!error.contains("/api/"), "{args:?}: {error}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let disk = Path::new("/dev/full");
    if !disk.exists() {
        // Only Linux has a full disk as a device.
        return;
    }
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"child\"\ncommand = \"python3\"\nargs = [{server:?}, \"legacy\", \"names\"]\n\
         env = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n"
    ));
    home.write("names", "picture");
    let daemon = home.serve(&[]);
    until("the tool", || {
        home.run(&["tools", "--url", &daemon.url])
            .out
            .contains("picture")
    });
    let into_full = |args: &[&str]| {
        let full = fs::OpenOptions::new().write(true).open(disk).unwrap();
        run(home.command(args).stdout(full))
    };
    let url = daemon.url.as_str();
    for args in [
        &["tools", "--url", url][..],
        &["tools", "--url", url, "--json"],
        &["tools", "--url", url, "--format", "openai"],
        &["call", "--url", url, "picture"],
        &["call", "--json", "--url", url, "picture"],
        &["config", "show"],
        &["man"],
        &["completions", "bash"],
        &["version"],
        &["--help"],
    ] {
        let ran = into_full(args);
        assert_eq!(ran.code, Some(5), "{args:?}: {ran:?}");
        assert!(
            ran.err
                .contains("the output cannot be written: No space left on device"),
            "{args:?}: {ran:?}"
        );
    }
    let error = json(&into_full(&["tools", "--json", "--url", url]).failed(5));
    assert_eq!(error["exit_code"], 5, "{error}");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("make room where it goes"),
        "{error}"
    );
    // The command's own failure decides the exit code.
    home.write("wrong.json", "no manifest");
    let ran = into_full(&["check", "wrong.json"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("the output cannot be written"),
        "{ran:?}"
    );
    // A reader that has read enough is no error.
    let mut closed = home.command(&["tools", "--url", url]);
    let mut child = closed
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
}
