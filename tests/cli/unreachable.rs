//! No daemon, or something else, at the address.

use crate::support::command::{self, Home, Scenario, nobody, tool};

/// Every command that speaks to a daemon.
const REMOTE: [&[&str]; 12] = [
    &["tools"],
    &["tools", "--format", "openai"],
    &["scenarios"],
    &["scenarios", "notes"],
    &["explain", "add_note"],
    &["prefs", "list"],
    &["prefs", "set", "scenario:notes", "--enabled", "false"],
    &["prefs", "reset", "scenario:notes"],
    &["refresh"],
    &["refresh", "notes"],
    &["block", "notes"],
    &["forget", "notes"],
];

#[test]
fn nobody_there_is_told_with_the_next_step() {
    let home = Home::new();
    let url = nobody();
    for args in REMOTE {
        let error = home.run(&[args, &["--url", &url][..]].concat()).failed(3);
        let lines: Vec<&str> = error.lines().collect();
        assert!(
            lines[0].starts_with(&format!("error: no daemon answers at {url}: ")),
            "{args:?}: {error}"
        );
        assert_eq!(
            lines[1],
            "  hint: start one with `callsheet serve`, or name another with `--url` or `CALLSHEET_URL`"
        );
        assert_eq!(lines.len(), 2);
    }
}

#[test]
fn what_is_no_daemon_is_told_apart() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::new();
    for args in REMOTE {
        let error = home
            .run(&[args, &["--url", &notes.url][..]].concat())
            .failed(3);
        let expected = format!("error: {} is not a callsheet daemon: ", notes.url);
        assert!(
            error.starts_with(&expected) && error.contains("\n  hint: "),
            "{args:?}: {error}"
        );
    }
}

#[test]
fn a_port_that_is_only_known_when_it_runs_is_found_in_the_runtime_folder() {
    let home = Home::with("");
    let error = home.run(&["tools"]).failed(3);
    assert!(
        error.starts_with("error: no daemon of this user runs"),
        "{error}"
    );
    let daemon = home.serve(&[]);
    assert!(home.run(&["tools"]).ok().starts_with("no tools; "));
    let mut by_variable = home.command(&["tools"]);
    let out = command::run(by_variable.env("CALLSHEET_URL", &daemon.url)).ok();
    assert!(
        out.starts_with("no tools; `callsheet scenarios` lists"),
        "{out}"
    );
}
