//! Names that were published and are not any more: `explain` says what became of them, also when
//! no earlier list is remembered that had them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, Scenario, tool};

/// More changes than earlier lists are remembered.
const MANY: usize = 70;

async fn set(daemon: &Daemon, settings: Value) {
    let mut body = json!({"scope": "global", "target": "tool:kitchen/brew"});
    body.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let answer = daemon.send_json("PUT", "/api/v1/preferences", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.problem());
}

/// Changes the list so often that no earlier one with former names is remembered.
async fn change_often(daemon: &Daemon) {
    for priority in 1..=MANY {
        set(daemon, json!({ "priority": priority })).await;
    }
}

async fn verdict(daemon: &Daemon, name: &str) -> String {
    let explained = daemon.json(&format!("/api/v1/tools/{name}/explain")).await;
    let verdict = explained["verdict"].as_str().unwrap().to_owned();
    assert_eq!(
        explained["listed"],
        json!(!verdict.starts_with("not")),
        "{explained}"
    );
    assert!(
        !explained["steps"].as_array().unwrap().is_empty(),
        "{explained}"
    );
    verdict
}

#[tokio::test]
async fn names_that_left_the_list_are_explained() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew", "stir"]).await;
    let mut found = Scenario::of("found", &["fold"]).await;
    home.write_process("found", found.address.port());
    let daemon = home.start(&[&kitchen]).await;
    daemon.until_tools(&["fold", "brew", "stir"]).await;
    set(&daemon, json!({ "alias": "make_coffee" })).await;
    daemon.until_tools(&["fold", "make_coffee", "stir"]).await;
    set(&daemon, json!({ "alias": null })).await;
    kitchen.offer([tool("brew")]);
    daemon.until_tools(&["fold", "brew"]).await;
    found.stop().await;
    home.remove_process("found");
    daemon.until_state("found", "removed").await;
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/found/forget")
            .await
            .status,
        200
    );
    daemon.until_tools(&["brew"]).await;
    change_often(&daemon).await;

    let dropped = verdict(&daemon, "stir").await;
    let cause = "not in the list: scenario kitchen does not offer it any more; the list does not have `stir` since 20";
    assert!(dropped.starts_with(cause), "{dropped}");
    // By its identity as well.
    assert_eq!(verdict(&daemon, "kitchen/stir").await, dropped);
    let removed = verdict(&daemon, "fold").await;
    assert!(
        removed.starts_with("not in the list: scenario found is not known any more; "),
        "{removed}"
    );
    let renamed = verdict(&daemon, "make_coffee").await;
    assert!(
        renamed.starts_with("in the list as `brew`, and not as `make_coffee` since 20"),
        "{renamed}"
    );
    // A name that a list has again is not a former one.
    kitchen.offer([tool("brew"), tool("stir")]);
    daemon.until_tools(&["brew", "stir"]).await;
    assert_eq!(verdict(&daemon, "stir").await, "in the list");

    // A collision takes the name from its first owner.
    let bar = Scenario::of("bar", &["brew"]).await;
    home.write_process("bar", bar.address.port());
    daemon
        .until_tools(&["bar__brew", "kitchen__brew", "stir"])
        .await;
    change_often(&daemon).await;
    let several = daemon.get("/api/v1/tools/brew/explain").await;
    assert_eq!(several.status, 409, "{}", several.problem());
    let problem = several.problem();
    assert!(
        problem.starts_with("`brew` was the name of kitchen/brew until 20"),
        "{problem}"
    );
    assert!(
        problem.contains(
            "and it is published as `kitchen__brew` now; several tools are called `brew`"
        ),
        "{problem}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn names_are_remembered_for_a_while_and_the_silent_are_named_then() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew", "stir"]).await;
    let mut silent = Scenario::of("silent", &["fold"]).await;
    silent.stop().await;
    let mut config = home.config(&[&kitchen, &silent]);
    config.health.forget = Duration::ZERO;
    let daemon = Daemon::start(config).await;
    daemon.until_tools(&["brew", "stir"]).await;
    kitchen.offer([tool("brew")]);
    daemon.until_tools(&["brew"]).await;
    change_often(&daemon).await;
    let unknown = daemon.get("/api/v1/tools/stir/explain").await;
    assert_eq!(unknown.status, 404);
    let problem = unknown.problem();
    assert!(
        problem.contains("1 scenario has not answered, and it may be theirs: silent ("),
        "{problem}"
    );
    // A name with its scenario is of no other one.
    for (name, part, is_named) in [
        (
            "silent/fold",
            "its scenario has not answered: silent (",
            true,
        ),
        ("kitchen/fold", "silent", false),
    ] {
        let unknown = daemon.get(&format!("/api/v1/tools/{name}/explain")).await;
        let problem = unknown.problem();
        assert_eq!(problem.contains(part), is_named, "{name}: {problem}");
    }
    daemon.stop().await;
}
