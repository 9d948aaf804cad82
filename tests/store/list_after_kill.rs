//! A daemon that is killed answers after its next start with the list that was acknowledged last,
//! while no scenario answers.

#![cfg(unix)]

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::json;

use crate::support::command::{Home, Running, Scenario, json, tool, until};
use crate::support::torn::send;

const LISTENS: &str = "callsheet listens on ";
const STATE: &str = ".state/callsheet/state.db";

fn started(home: &Home) -> Running {
    Running::start(home.command(&["serve"]), LISTENS)
}

/// The list: names, entity tag, revision.
fn list(daemon: &Running) -> (Vec<String>, String, String) {
    let (status, head, body) = daemon.ask("/api/v1/tools");
    assert_eq!(status, 200);
    let names = json(std::str::from_utf8(&body).unwrap())["tools"]
        .as_array()
        .unwrap()
        .clone();
    let names = names
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let header = |name: &str| {
        head.lines()
            .find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned))
    };
    (
        names,
        header("etag: ").unwrap(),
        header("callsheet-revision: ").unwrap(),
    )
}

fn stored_revision(home: &Home) -> Option<String> {
    let database = Connection::open(home.path(STATE)).unwrap();
    database
        .query_row("SELECT value FROM meta WHERE key = 'revision'", [], |row| {
            row.get(0)
        })
        .optional()
        .unwrap()
}

#[test]
fn the_first_list_after_a_kill_is_the_one_that_was_acknowledged_last() {
    let kitchen = Scenario::start(
        "kitchen",
        vec![
            tool("brew", "Brews", "drinks"),
            tool("stir", "Stirs", "drinks"),
        ],
    );
    let home = Home::naming(&[("kitchen", &kitchen.url)]);
    let mut daemon = started(&home);
    until("the list is there", || list(&daemon).0 == ["brew", "stir"]);
    let all = list(&daemon).2;
    until("the manifest is stored", || {
        stored_revision(&home).as_ref() == Some(&all)
    });
    kitchen.stop();
    for round in 0..6 {
        let off = round % 2 == 0;
        let body = json!({"scope": "global", "target": "tool:kitchen/stir", "enabled": !off});
        assert_eq!(
            send(&daemon.url, "PUT", "/api/v1/preferences", Some(&body))
                .unwrap()
                .status,
            200
        );
        let acknowledged = list(&daemon);
        assert_eq!(
            acknowledged.0.len(),
            if off { 1 } else { 2 },
            "round {round}"
        );
        // In every other pair of rounds the daemon is killed before the time of the revision can be
        // stored.
        let wait = round % 4 < 2;
        if wait {
            until("the revision is stored", || {
                stored_revision(&home).as_ref() == Some(&acknowledged.2)
            });
        }
        daemon.signal("KILL");
        assert_eq!(daemon.ended().0, None, "killed, not ended");
        daemon = started(&home);
        let first = list(&daemon);
        assert_eq!(first.0, acknowledged.0, "round {round}");
        // The list says since when its revision stands, so its tag is the same only where that was
        // stored.
        assert!(!wait || first == acknowledged, "round {round}: {first:?}");
        assert_eq!(list(&daemon), first, "round {round}, a moment later");
    }
}
