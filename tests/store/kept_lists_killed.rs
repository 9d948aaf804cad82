//! A daemon that is killed again and again, and whose first answer after each start is what was acknowledged last: whether it comes from the
//! lists that were kept or from what is stored.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

use std::fs;

use serde_json::json;

use crate::support::command::{Home, Running, Scenario, json, tool, until};
use crate::support::torn::send;

const LISTENS: &str = "callsheet listens on ";
const STATE: &str = ".state/callsheet/state.db";

fn started(home: &Home) -> Running {
    Running::start(home.command(&["serve"]), LISTENS)
}

/// The names in the list, and its entity tag.
fn list(daemon: &Running) -> (Vec<String>, String) {
    let (status, head, body) = daemon.ask("/api/v1/tools");
    assert_eq!(status, 200);
    let names = json(std::str::from_utf8(&body).unwrap())["tools"].as_array().unwrap().clone();
    let names = names.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let etag = head.lines().find_map(|line| line.to_lowercase().strip_prefix("etag: ").map(str::to_owned));
    (names, etag.unwrap())
}

#[test]
fn the_first_list_after_a_kill_is_the_one_that_was_acknowledged_last() {
    let kitchen = Scenario::start("kitchen", vec![tool("brew", "Brews", "drinks"), tool("stir", "Stirs", "drinks")]);
    let home = Home::naming(&[("kitchen", &kitchen.url)]);
    let kept = callsheet::state::lists::beside(&home.path(STATE));
    let mut daemon = started(&home);
    until("the list is there", || list(&daemon).0 == ["brew", "stir"]);
    // Nobody asks for anything that could mend a wrong list.
    kitchen.stop();
    for round in 0..8 {
        let before = fs::read(&kept).unwrap_or_default();
        let off = round % 2 == 0;
        let body = json!({"scope": "global", "target": "tool:kitchen/stir", "enabled": !off});
        assert_eq!(send(&daemon.url, "PUT", "/api/v1/preferences", Some(&body)).unwrap().status, 200);
        let acknowledged = list(&daemon);
        assert_eq!(acknowledged.0.len(), if off { 1 } else { 2 }, "round {round}");
        // In every other pair of rounds it is killed before the lists can be kept, so that those that are there are old.
        let wait = round % 4 < 2;
        if wait {
            until("the lists are kept", || fs::read(&kept).unwrap_or_default() != before);
        }
        daemon.signal("KILL");
        assert_eq!(daemon.ended().0, None, "killed, not ended");
        daemon = started(&home);
        let first = list(&daemon);
        assert_eq!(first.0, acknowledged.0, "round {round}");
        // Since when a list stands is stored behind it.
        assert!(!wait || first.1 == acknowledged.1, "round {round}: {first:?}");
        until("all of it is there", || send(&daemon.url, "GET", "/healthz", None).is_ok());
        assert_eq!(list(&daemon), first, "round {round}, once it has started");
    }
}
