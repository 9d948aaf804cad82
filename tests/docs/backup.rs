//! The backup that `docs/operations.md` describes, by the commands that it prints.

use std::fs;

use crate::markdown::Document;
use crate::support::command::{Home, json};

/// Runs a command as the page prints it, on a line of its own.
fn run_printed(home: &Home, command: &str) {
    let page = Document::read("docs/operations.md").text;
    assert!(
        page.lines().any(|line| line == command),
        "docs/operations.md does not print `{command}`"
    );
    home.run(&command.split(' ').skip(1).collect::<Vec<_>>())
        .ok();
}

#[test]
fn a_backup_of_a_running_daemon_restores_preferences_elsewhere() {
    let home = Home::with("");
    let daemon = home.serve(&[]);
    let target = "tool:notes/add_note";
    home.run(&[
        "prefs",
        "set",
        target,
        "--enabled",
        "false",
        "--url",
        &daemon.url,
    ])
    .ok();
    run_printed(&home, "callsheet state export backup.db");

    let restored = Home::with("");
    fs::copy(home.path("backup.db"), restored.path("backup.db")).unwrap();
    run_printed(&restored, "callsheet state import backup.db");
    let daemon = restored.serve(&[]);
    let listed = json(
        &restored
            .run(&["prefs", "list", "--json", "--url", &daemon.url])
            .ok(),
    );
    let preference = &listed["preferences"][0];
    assert_eq!(preference["target"], target, "{listed}");
    assert_eq!(preference["enabled"], false, "{listed}");
}
