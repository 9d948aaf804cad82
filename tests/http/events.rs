//! `GET /api/v1/events` of a whole daemon: what one real change is told as, and what is told to
//! whom.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use callsheet::model::{Permission, Profile};
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, Scenario, configured, tool};
use crate::support::listener::{Listener, ask};
use crate::support::scripted::{self, Reply, Scripted};

const CATALOG: &str = "?kind=catalog";

async fn prefer(daemon: &Daemon, preference: Value) {
    let answer = daemon
        .send_json("PUT", "/api/v1/preferences", &preference)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn a_stream_begins_with_a_snapshot() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let mail = Scenario::of("mail", &["find"]).await;
    let mut config = home.config(&[&notes, &mail]);
    config.events.keep_alive = Duration::from_millis(30);
    let daemon = Daemon::ready(config).await;
    let answer = ask(daemon.address, "", &[]).await;
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        ["content-type", "cache-control", "x-accel-buffering"].map(header),
        ["text/event-stream", "no-store", "no"]
    );
    let mut listener = Listener::of(answer);
    let first = listener.next().await;
    assert_eq!(first.event, "snapshot");
    assert_eq!(first.texts("names"), ["mail__find", "add", "notes__find"]);
    let list = daemon.get("/api/v1/tools").await;
    assert_eq!(first.data["revision"], list.header("callsheet-revision"));
    assert_eq!(first.data["generated_at"], list.json()["generated_at"]);
    let states: Vec<_> = first.data["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["name"], &one["state"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("mail"), &json!("live")),
            (&json!("notes"), &json!("live"))
        ]
    );
    let open = daemon.json("/api/v1/findings?code=name-collision").await;
    assert_eq!(
        first.data["findings"],
        open["findings"].as_array().unwrap().len()
    );
    // Then it is silent, and shows that it lives.
    listener.until_comments(3).await;

    let (_, narrow) =
        Listener::begin(daemon.address, "?scenario=mail&format=openai&max_tools=5").await;
    assert_eq!(narrow.texts("names"), ["mail__find"]);
    assert_eq!(narrow.data["scenarios"].as_array().unwrap().len(), 1);
    assert_eq!(narrow.data["findings"], 1);
    daemon.stop().await;
}

#[tokio::test]
async fn one_real_change_is_one_event_and_one_that_is_none_is_none() {
    let home = Home::new();
    let server = Scripted::start(restamped("first"));
    let mut config = home.config(&[]);
    config.refresh.min_interval = Duration::from_millis(20);
    config.refresh.max_interval = Duration::from_millis(40);
    config.scenarios = vec![configured(
        "notes",
        SocketAddr::from(([127, 0, 0, 1], server.port())),
    )];
    let daemon = Daemon::ready(config).await;
    let (mut listener, _) = Listener::begin(daemon.address, "").await;
    let mut polls = server.count();
    for about in ["second", "third"] {
        // Each of these answers is stamped anew and in another order.
        server.until_asked(polls + 4).await;
        server.script(restamped(about));
        let event = listener.next().await;
        assert_eq!(event.event, "catalog", "{event:?}");
        assert_eq!(event.texts("changed"), ["add"]);
        assert_eq!(event.reason("add"), "its scenario changed its description");
        assert!(event.texts("added").is_empty());
        assert!(event.texts("removed").is_empty());
        assert!(event.texts("scenarios").is_empty());
        assert_eq!(
            event.data["revision"],
            daemon
                .get("/api/v1/tools")
                .await
                .header("callsheet-revision")
        );
        polls = server.count();
    }
    server.until_asked(polls + 4).await;
    // What the scenario says of itself is in no list, but in the revision.
    let mut manifest = scripted::manifest("notes", &["find", "add"]);
    manifest["tools"][1]["description"] = json!("third");
    manifest["scenario"]["version"] = json!("2.0.0");
    server.say(Reply::json(&manifest));
    let event = listener.next().await;
    assert_eq!(event.event.as_str(), "catalog");
    assert_eq!(event.texts("scenarios"), vec!["notes"]);
    assert!(event.texts("changed").is_empty());
    daemon.stop().await;
}

/// Answers that are stamped anew and in another order each time; `about` describes one of the
/// tools.
fn restamped(
    about: &'static str,
) -> impl FnMut(&crate::support::scripted::Request) -> Reply + Send + 'static {
    let mut times = 0;
    move |_| {
        times += 1;
        let names = if times % 2 == 0 {
            ["add", "find"]
        } else {
            ["find", "add"]
        };
        let mut manifest = scripted::manifest("notes", &names);
        for tool in manifest["tools"].as_array_mut().unwrap() {
            if tool["name"] == "add" {
                tool["description"] = json!(about);
            }
        }
        manifest["generated_at"] = json!(format!("2026-02-03T04:05:{:02}Z", times % 60));
        Reply::json(&manifest)
    }
}

#[tokio::test]
async fn names_come_and_go_with_their_reasons() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let mail = Scenario::of("mail", &["find"]).await;
    let daemon = Daemon::ready(home.config(&[&notes])).await;
    let (mut listener, _) = Listener::begin(daemon.address, "").await;
    home.write_process("mail", mail.address.port());
    let event = listener.next_of("catalog").await;
    assert_eq!(event.texts("added"), vec!["mail__find", "notes__find"]);
    assert_eq!(event.texts("removed"), vec!["find"]);
    assert_eq!(event.reason("mail__find"), "its scenario is new");
    assert_eq!(event.reason("find"), "published as `notes__find` now");
    assert_eq!(event.reason("notes__find"), "published as `find` before");

    prefer(
        &daemon,
        json!({"scope": "global", "target": "tool:notes/add", "approval": "require"}),
    )
    .await;
    let event = listener.next_of("catalog").await;
    assert_eq!(event.texts("changed"), vec!["add"]);
    assert_eq!(
        event.reason("add"),
        "requires approval now, by global tool:notes/add"
    );
    prefer(
        &daemon,
        json!({"scope": "global", "target": "tool:notes/add", "enabled": false}),
    )
    .await;
    let event = listener.next_of("catalog").await;
    assert_eq!(event.texts("removed"), vec!["add"]);
    assert_eq!(event.reason("add"), "switched off by global tool:notes/add");
    let finding = listener.next_of("finding").await.data;
    assert_eq!(finding["change"], "added");
    assert_eq!(finding["finding"]["code"], "disabled");

    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/mail/block")
            .await
            .status,
        200
    );
    let state = listener.next_of("scenario").await.data;
    assert_eq!(state["name"], "mail");
    assert_eq!(state["from"], "live");
    assert_eq!(state["to"], "blocked");
    assert_eq!(state["reason"], "an operator blocked it");
    let event = listener.next_of("catalog").await;
    assert_eq!(event.texts("removed"), vec!["mail__find", "notes__find"]);
    assert_eq!(event.texts("added"), vec!["find"]);
    assert_eq!(event.reason("mail__find"), "an operator blocked it");
    assert_eq!(event.reason("notes__find"), "published as `find` now");
    notes.offer([tool("add"), tool("find"), tool("sort")]);
    let event = listener.next_of("catalog").await;
    assert_eq!(event.texts("added"), vec!["sort"]);
    assert_eq!(event.reason("sort"), "its scenario offers it now");
    daemon.stop().await;
}

#[tokio::test]
async fn each_asker_is_told_of_its_own_list() {
    let home = Home::new();
    let notes = Scenario::start("notes", [tool("add"), tool("find").category("reading")]).await;
    let mail = Scenario::of("mail", &["send"]).await;
    let mut config = home.config(&[&notes, &mail]);
    let allowed: BTreeSet<_> = ["notes".parse().unwrap()].into();
    let profile = Profile {
        scenarios: Some(allowed),
        permission: Some(Permission::User),
        ..Profile::default()
    };
    config.profiles.insert("narrow".into(), profile);
    let daemon = Daemon::ready(config).await;
    let (mut plain, _) = Listener::begin(daemon.address, CATALOG).await;
    let (mut narrow, first) = Listener::begin(daemon.address, "?kind=catalog&profile=narrow").await;
    assert_eq!(first.texts("names"), ["add", "find"]);
    let (mut reading, first) =
        Listener::begin(daemon.address, "?kind=catalog&category=reading").await;
    assert_eq!(first.texts("names"), ["find"]);
    let (mut one, first) = Listener::begin(daemon.address, "?kind=catalog&max_tools=1").await;
    assert_eq!(first.texts("names"), ["send"]);

    prefer(
        &daemon,
        json!({"scope": "profile:narrow", "target": "tool:notes/add", "enabled": false}),
    )
    .await;
    let event = narrow.next().await;
    assert_eq!(event.texts("removed"), vec!["add"]);
    assert_eq!(
        event.reason("add"),
        "switched off by profile:narrow tool:notes/add"
    );
    prefer(
        &daemon,
        json!({"scope": "profile:narrow", "target": "tool:notes/find", "alias": "look"}),
    )
    .await;
    let event = narrow.next().await;
    assert_eq!(event.texts("removed"), vec!["find"]);
    assert_eq!(event.texts("added"), vec!["look"]);
    let list = daemon.get("/api/v1/tools?profile=narrow").await;
    assert_eq!(event.data["revision"], list.header("callsheet-revision"));

    // The others hear of none of that, and of this only what concerns them.
    prefer(
        &daemon,
        json!({"scope": "global", "target": "scenario:mail", "enabled": false}),
    )
    .await;
    let event = plain.next().await;
    assert_eq!(event.texts("removed"), vec!["send"]);
    assert!(
        event.texts("added").is_empty(),
        "{:?}",
        event.texts("added")
    );
    let event = one.next().await;
    assert_eq!(event.texts("removed"), vec!["send"]);
    assert_eq!(event.texts("added"), vec!["add"]);
    assert_eq!(event.reason("add"), "it fits the filter now");
    prefer(
        &daemon,
        json!({"scope": "global", "target": "category:reading", "approval": "require"}),
    )
    .await;
    assert_eq!(reading.next().await.texts("changed"), ["find"]);
    assert_eq!(narrow.next().await.texts("changed"), ["look"]);
    daemon.stop().await;
}

#[tokio::test]
async fn every_change_of_state_is_told_with_its_reason() {
    let home = Home::new();
    let mut notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    config.health.grace = Duration::from_secs(2);
    let daemon = Daemon::ready(config).await;
    let (mut listener, _) = Listener::begin(daemon.address, "").await;
    notes.stop().await;
    let stale = listener.next().await;
    assert_eq!(stale.event.as_str(), "scenario");
    assert_eq!(stale.data["from"], "live");
    assert_eq!(stale.data["to"], "stale");
    assert!(
        stale.data["reason"].as_str().unwrap().contains("refused"),
        "{stale:?}"
    );
    let down = listener.next().await;
    assert_eq!(down.data["from"], "stale");
    assert_eq!(down.data["to"], "down");
    assert!(
        down.data["failures_in_a_row"].as_u64().unwrap() >= 3,
        "{down:?}"
    );
    // First the state, then the list, then what is to be known of it.
    let gone = listener.next().await;
    assert_eq!(gone.event.as_str(), "catalog");
    assert_eq!(gone.texts("removed"), vec!["add"]);
    assert_eq!(gone.data["reasons"]["add"], down.data["reason"]);
    let finding = listener.next().await;
    assert_eq!(finding.event.as_str(), "finding");
    assert_eq!(finding.data["change"], "added");
    assert_eq!(finding.data["finding"]["code"], "withdrawn");
    assert_eq!(finding.data["finding"]["scenario"], "notes");

    notes.run().await;
    let live = listener.next().await;
    assert_eq!(live.data["from"], "down");
    assert_eq!(live.data["to"], "live");
    assert_eq!(live.data["restarts"], 1);
    let back = listener.next().await;
    assert_eq!(back.texts("added"), vec!["add"]);
    assert!(back.reason("add").starts_with("before: the last "));
    assert_eq!(listener.next().await.data["change"], "removed");
    daemon.stop().await;
}

#[tokio::test]
async fn states_that_come_and_go_within_a_moment_are_told_too() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let daemon = Daemon::ready(home.config(&[&notes])).await;
    let (mut listener, _) = Listener::begin(daemon.address, "?kind=scenario").await;
    for _ in 0..20 {
        for method in ["POST", "DELETE"] {
            assert_eq!(
                daemon
                    .send(method, "/api/v1/scenarios/notes/block")
                    .await
                    .status,
                200
            );
        }
    }
    let mut stands = json!("live");
    for _ in 0..20 {
        // Each begins where the one before it ended: none is missing.
        for expected in ["blocked", "live"] {
            let event = listener.next().await.data;
            assert_eq!(event["from"], stands);
            assert_eq!(event["to"], json!(expected));
            stands = event["to"].clone();
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn findings_of_sources_come_and_go_too() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let other = Scenario::of("other", &["add"]).await;
    let daemon = Daemon::ready(home.config(&[&notes])).await;
    let (mut listener, first) = Listener::begin(daemon.address, "?kind=finding").await;
    assert_eq!(first.data["findings"], 0);
    home.write_process("notes", other.address.port());
    let event = listener.next().await.data;
    assert_eq!(event["change"], "added");
    assert_eq!(event["finding"]["code"], "source-shadowed");
    home.remove_process("notes");
    let event = listener.next().await.data;
    assert_eq!(event["change"], "removed");
    assert_eq!(event["finding"]["code"], "source-shadowed");
    prefer(
        &daemon,
        json!({"scope": "global", "target": "tool:notes/later", "enabled": false}),
    )
    .await;
    let event = listener.next().await.data;
    assert_eq!(event["change"], "added");
    assert_eq!(event["finding"]["code"], "preference-unmatched");
    notes.offer([tool("add"), tool("later")]);
    let changes = [listener.next().await.data, listener.next().await.data];
    let changes: Vec<_> = changes
        .iter()
        .map(|event| (&event["change"], &event["finding"]["code"]))
        .collect();
    assert_eq!(
        changes,
        [
            (&json!("removed"), &json!("preference-unmatched")),
            (&json!("added"), &json!("disabled"))
        ]
    );
    daemon.stop().await;
}
