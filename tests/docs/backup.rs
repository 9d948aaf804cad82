//! The backup that `docs/operations.md` describes: a copy of the state file of a stopped daemon.

use std::fs;

use crate::support::command::{Home, json};

/// Where the state file is below a home folder.
const STATE: &str = ".state/callsheet/state.db";

#[test]
fn a_copied_state_file_restores_preferences() {
    let home = Home::with("");
    let mut daemon = home.serve(&[]);
    let target = "tool:notes/add_note";
    home.run(&["prefs", "set", target, "--enabled", "false", "--url", &daemon.url]).ok();
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
    assert!(!home.path(&format!("{STATE}-wal")).exists(), "after a clean stop one file has everything");

    let restored = Home::with("");
    fs::create_dir_all(restored.path(STATE).parent().unwrap()).unwrap();
    fs::copy(home.path(STATE), restored.path(STATE)).unwrap();
    let daemon = restored.serve(&[]);
    let listed = json(&restored.run(&["prefs", "list", "--json", "--url", &daemon.url]).ok());
    let preference = &listed["preferences"][0];
    assert_eq!((&preference["target"], &preference["enabled"]), (&target.into(), &false.into()), "{listed}");
}
