//! From callsheet 0.1.0 to this version: its configuration and its database are taken as they are,
//! and what has another name now is named.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::command::{Home, json, run};

const CONFIG: &str = include_str!("../../fixtures/state/callsheet-0.1.0.toml");
/// Every key of that version with its default; keys without one stand in comments.
const KEYS: &str = include_str!("../../fixtures/contract/default.toml");

/// A home as that version left it.
fn upgraded() -> Home {
    let home = Home::new();
    home.write("callsheet.toml", CONFIG);
    let database =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/state/callsheet-0.1.0-schema-7.db");
    fs::create_dir_all(home.path(".state/callsheet")).unwrap();
    fs::copy(database, home.path(".state/callsheet/state.db")).unwrap();
    home
}

#[test]
fn a_daemon_goes_on_with_what_the_earlier_version_left() {
    let home = upgraded();
    let daemon = home.serve(&[]);
    let ask = |args: &[&str]| json(&home.run(&[args, &["--json"]].concat()).ok());
    let names = |list: &Value| {
        list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&ask(&["tools"])),
        ["brew", "stir", "order", "restock"],
        "its lists"
    );
    assert_eq!(
        names(&ask(&["tools", "--chat", "7"])),
        ["brew", "whisk", "order", "restock"],
        "its preferences"
    );
    assert_eq!(
        names(&ask(&["tools", "--profile", "guest"])),
        ["brew", "stir"],
        "its profiles"
    );
    assert_eq!(
        ask(&["scenarios", "noisy"])["state"],
        "blocked",
        "what operators decided"
    );
    assert_eq!(
        ask(&[
            "findings",
            "--code",
            "state-repaired",
            "--code",
            "state-failed"
        ])["findings"],
        json("[]")
    );
    // The token of the old key is the one that operators show.
    home.run(&["block", "pantry"]).ok();
    let mut stranger = home.command(&["block", "kitchen", "--url", &daemon.url, "--json"]);
    let refused = run(stranger.current_dir("/")).failed(1);
    assert_eq!(json(&refused)["problem"]["status"], 401, "{refused}");
}

#[test]
fn what_has_another_name_is_named_with_both() {
    let home = upgraded();
    let daemon = home.serve(&[]);
    let found = home.run(&["findings", "--code", "config-deprecated"]).ok();
    assert!(
        found.contains("`calls.approval_token`") && found.contains("`server.operator_token`"),
        "{found}"
    );
    let shown = home.run(&["config", "show", "--origin"]).ok();
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("calls.retries = 0 ") && line.contains("callsheet.toml:")),
        "{shown}"
    );
    drop(daemon);
    // Every key of that version is read, also those that stand in comments there.
    let given = |line: &str| {
        line.strip_prefix('#')
            .filter(|rest| !rest.starts_with([' ', '#']))
            .unwrap_or(line)
            .to_owned()
    };
    let all: Vec<String> = KEYS.lines().map(given).collect();
    let home = Home::new();
    home.write("callsheet.toml", &all.join("\n"));
    let shown = home.run(&["config", "show"]).ok();
    assert!(
        shown.contains("agent-manager") && shown.contains("/.vrooli/processes/scenarios"),
        "{shown}"
    );
}
