//! How long an answer counts, when it is asked for again, and what an answer that says nothing new
//! changes: nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use callsheet::catalog::{Snapshot, View, ViewQuery};
use callsheet::formats;
use callsheet::model::{FindingCode, Health, ScenarioState};
use callsheet::runtime::Clock;
use callsheet::views::render;
use jiff::SignedDuration;
use serde_json::json;

use crate::support::in_process::{findings, health, listed, name};
use crate::support::scripted::{Gate, Reply, Scripted, manifest};
use crate::support::watched::{HOUR, ms, one, setting};

const STAMP: &str = "Sat, 07 Feb 2026 10:00:00 GMT";

/// How long the manifest in force counts as fresh, in seconds.
fn lifetime(health: &Health) -> f64 {
    let freshness = health.freshness.unwrap();
    freshness
        .fresh_until
        .duration_since(freshness.received_at)
        .as_secs_f64()
}

/// From the manifest in force to the next ask, in seconds.
fn next_in(health: &Health) -> f64 {
    health
        .next_attempt
        .unwrap()
        .duration_since(health.freshness.unwrap().received_at)
        .as_secs_f64()
}

/// The list as it is answered.
fn bytes(snapshot: &Snapshot) -> Vec<u8> {
    let view = View::select(&snapshot.catalog, &ViewQuery::default());
    render(
        &view,
        snapshot.generated_at,
        formats::by_id("native").unwrap(),
    )
    .body
}

#[tokio::test]
async fn a_fresh_answer_is_asked_for_again_when_nine_tenths_are_over() {
    let long =
        Scripted::saying(Reply::tools("long", &["read"]).header("Cache-Control: max-age=600"));
    let short =
        Scripted::saying(Reply::tools("short", &["write"]).header("Cache-Control: no-cache"));
    let scenarios = [("long", long.url()), ("short", short.url())];
    let sheet = setting(scenarios)
        .with(|config| config.refresh.max_interval = HOUR)
        .start()
        .await;
    short.until_asked(6).await;
    assert_eq!(long.count(), 1);
    let now = sheet.until_state("long", ScenarioState::Live).await;
    let shown = health(&now, "long");
    assert!((480.0..=541.0).contains(&next_in(&shown)), "{shown:?}");
    assert!((599.0..=600.0).contains(&lifetime(&shown)), "{shown:?}");
}

/// S0-57: a scenario that stamps its answers, and then gives an old one, has it from something in
/// between. A stamp that never moves, and a clock that is wrong, say no such thing.
#[tokio::test]
async fn an_old_stamp_is_an_age_once_stamps_were_seen_to_advance() {
    let behind = Arc::new(AtomicI64::new(1_000));
    let counted = Arc::new(AtomicI64::new(0));
    let stamped = {
        let behind = Arc::clone(&behind);
        let counted = Arc::clone(&counted);
        Scripted::start(move |_| {
            let mut list = manifest("stamped", &["read"]);
            let stamp =
                Clock::system().wall() - SignedDuration::from_secs(behind.load(Ordering::SeqCst));
            list["generated_at"] = json!(stamp.to_string());
            // A cache on the way counts a part of the age itself.
            let age = format!("Age: {}", counted.load(Ordering::SeqCst));
            Reply::json(&list)
                .header("Cache-Control: max-age=3600")
                .header(&age)
        })
    };
    let fixed = Scripted::start(|_| {
        let mut list = manifest("fixed", &["write"]);
        list["generated_at"] = json!("2024-05-14T13:44:00Z");
        Reply::json(&list).header("Cache-Control: max-age=3600")
    });
    let sheet = setting([("stamped", stamped.url()), ("fixed", fixed.url())])
        .seldom()
        .start()
        .await;
    sheet.until_listed(&["write", "read"]).await;
    for (seconds, age, expected) in [
        (1_000, 0, 3_600.0),
        (2_800, 0, 1_800.0),
        (3_400, 600, 1_200.0),
        (6_000, 0, 0.0),
        (1_000, 0, 3_600.0),
    ] {
        behind.store(seconds, Ordering::SeqCst);
        counted.store(age, Ordering::SeqCst);
        let shown = sheet.refresh("stamped").await;
        let shown = lifetime(&shown);
        // The stamp is read a moment after it was written.
        assert!(
            (expected - 5.0..expected + 1.0).contains(&shown),
            "{seconds} s behind: {shown}"
        );
        let shown = sheet.refresh("fixed").await;
        let shown = lifetime(&shown);
        assert!((3_595.0..=3_600.0).contains(&shown), "{shown}");
    }
}

#[tokio::test]
async fn the_floor_holds_however_short_the_lifetime_is() {
    let server =
        Scripted::saying(Reply::tools("files", &["read"]).header("Cache-Control: max-age=1"));
    let floor = ms(2500);
    let sheet = one("files", &server)
        .with(|config| (config.refresh.min_interval, config.refresh.max_interval) = (floor, HOUR))
        .start()
        .await;
    sheet.until_state("files", ScenarioState::Live).await;
    let stale = sheet.until_state("files", ScenarioState::Stale).await;
    let shown = health(&stale, "files");
    assert_eq!(shown.reason, "its last answer is out of date");
    assert_eq!(server.count(), 1);
    assert_eq!(listed(&stale), vec!["read".to_owned()]);
    assert!(
        shown.since >= shown.freshness.unwrap().fresh_until,
        "stale when the lifetime is over: {shown:?}"
    );
    assert!((2.5..2.7).contains(&next_in(&shown)), "{shown:?}");
    sheet.until_state("files", ScenarioState::Live).await;
    let seen = server.seen();
    assert!(
        seen[1].at - seen[0].at >= floor,
        "{:?}",
        seen[1].at - seen[0].at
    );
}

#[tokio::test]
async fn a_failed_poll_past_the_lifetime_makes_a_scenario_stale_at_once() {
    for (status, reason) in [
        ("503 Service Unavailable", "the last poll failed: "),
        ("429 Too Many Requests", "its last answer is out of date: "),
    ] {
        let mut polls = 0;
        let server = Scripted::start(move |_| {
            polls += 1;
            match polls {
                1 => Reply::tools("files", &["read"]).header("Cache-Control: max-age=1"),
                _ => Reply::status(status).header("Retry-After: 3600"),
            }
        });
        // A lifetime of the minimum interval is covered until its scheduled poll is answered.
        let sheet = one("files", &server)
            .with(|config| {
                (config.refresh.min_interval, config.refresh.max_interval) = (ms(1000), HOUR);
            })
            .start()
            .await;
        let failed = sheet
            .until_health("files", "refused", |health| health.last_error.is_some())
            .await;
        let shown = health(&failed, "files");
        assert_eq!(shown.state, ScenarioState::Stale, "{shown:?}");
        assert!(
            shown.reason.starts_with(reason),
            "expected `{reason}...`, found {shown:?}"
        );
        assert_eq!(server.count(), 2);
        assert_eq!(listed(&failed), vec!["read".to_owned()]);
    }
}

#[tokio::test]
async fn an_answer_that_says_nothing_counts_for_the_default_lifetime() {
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    let sheet = one("files", &server)
        .with(|config| config.refresh.max_interval = HOUR)
        .start()
        .await;
    let live = sheet.until_state("files", ScenarioState::Live).await;
    assert!((59.0..=60.0).contains(&lifetime(&health(&live, "files"))));
}

#[tokio::test]
async fn age_is_taken_off_and_a_wrong_one_does_no_harm() {
    let cases = [
        ("590", 9.0..=10.0),
        ("600", 0.0..=0.0),
        ("18446744073709551615", 0.0..=0.0),
        ("old", 599.0..=600.0),
    ];
    for (age, expected) in cases {
        let reply = Reply::tools("files", &["read"]).header("Cache-Control: max-age=600");
        let server = Scripted::saying(reply.header(&format!("Age: {age}")));
        let sheet = one("files", &server).seldom().start().await;
        let now = sheet.until_listed(&["read"]).await;
        let seconds = lifetime(&health(&now, "files"));
        assert!(expected.contains(&seconds), "Age: {age} leaves {seconds} s");
    }
}

#[tokio::test]
async fn what_may_not_be_stored_is_not_in_the_state_file() {
    let secret =
        Scripted::saying(Reply::tools("secret", &["peek"]).header("Cache-Control: no-store"));
    let plain = Scripted::saying(Reply::tools("plain", &["read"]));
    let scenarios = [("secret", secret.url()), ("plain", plain.url())];
    let sheet = setting(scenarios).start().await;
    sheet.until_listed(&["read", "peek"]).await;
    secret.until_asked(3).await;
    assert!(secret.last().header("if-none-match").is_none());
    let stored = sheet.stop().await.1.stored().await;
    let names: Vec<_> = stored
        .manifests
        .iter()
        .map(|manifest| manifest.scenario.as_str())
        .collect();
    assert_eq!(names, ["plain"]);
}

#[tokio::test]
async fn what_may_no_longer_be_stored_leaves_the_state_file_and_may_come_back() {
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    let sheet = one("files", &server).start().await;
    sheet.until_listed(&["read"]).await;
    let place = sheet.stop().await.1;
    assert_eq!(place.stored().await.manifests.len(), 1);

    // The same content, but not to be stored any more: what is stored is not the last good answer,
    // or was forbidden.
    server.say(Reply::tools("files", &["read"]).header("Cache-Control: no-store"));
    let sheet = place.setting([("files", server.url())]).start().await;
    sheet
        .until_health("files", "answered", |health| {
            health.protocol_version.is_some() && health.latency_ms.is_some()
        })
        .await;
    let place = sheet.stop().await.1;
    assert_eq!(place.stored().await.manifests, []);

    // At first as before, then to be stored: that the content is the same does not keep it out.
    let sheet = place.setting([("files", server.url())]).start().await;
    sheet.until_listed(&["read"]).await;
    let polls = server.count();
    server.say(Reply::tools("files", &["read"]).header("Cache-Control: max-age=600"));
    server.until_asked(polls + 1).await;
    sheet.until_state("files", ScenarioState::Live).await;
    let place = sheet.stop().await.1;
    assert_eq!(place.stored().await.manifests.len(), 1);
}

#[tokio::test]
async fn validators_make_the_next_request_conditional_and_a_304_keeps_everything() {
    let server = Scripted::start(|request| {
        let reply = if request.header("if-none-match").is_some() {
            Reply::status("304 Not Modified").header("Cache-Control: max-age=900")
        } else {
            Reply::tools("files", &["read"]).header("Cache-Control: max-age=300")
        };
        reply
            .header("ETag: \"v1\"")
            .header(&format!("Last-Modified: {STAMP}"))
    });
    let sheet = one("files", &server).start().await;
    let first = sheet.until_listed(&["read"]).await;
    assert!((299.0..=300.0).contains(&lifetime(&health(&first, "files"))));
    assert_eq!(server.seen()[0].request.header("if-none-match"), None);
    assert_eq!(server.count(), 1);

    let renewed = sheet
        .until_health("files", "renewed", |health| lifetime(health) > 300.0)
        .await;
    let request = &server.seen()[1].request;
    assert_eq!(request.header("if-none-match"), Some("\"v1\""));
    assert_eq!(request.header("if-modified-since"), Some(STAMP));
    let before = health(&first, "files");
    let after = health(&renewed, "files");
    assert!(after.freshness.unwrap().received_at > before.freshness.unwrap().received_at);
    assert!(after.last_success > before.last_success);
    assert_eq!(
        after.freshness.unwrap().generated_at,
        before.freshness.unwrap().generated_at
    );
    assert_eq!(after.state, ScenarioState::Live);
    assert_eq!(listed(&renewed), listed(&first));
    assert_eq!(bytes(&renewed), bytes(&first));
}

#[tokio::test]
async fn a_304_that_says_nothing_keeps_the_stored_lifetime_and_validators() {
    let server = Scripted::start(|request| match request.header("if-none-match") {
        Some(_) => Reply::status("304 Not Modified"),
        None => Reply::tools("files", &["read"])
            .header("Cache-Control: max-age=300")
            .header("ETag: \"v1\""),
    });
    let sheet = one("files", &server).start().await;
    let first = sheet.until_listed(&["read"]).await;
    server.until_asked(4).await;
    let received = |health: &Health| health.freshness.unwrap().received_at;
    let since = received(&health(&first, "files"));
    let later = sheet
        .until_health("files", "renewed", |health| received(health) > since)
        .await;
    let seconds = lifetime(&health(&later, "files"));
    assert!((299.0..=300.0).contains(&seconds), "{seconds}");
    assert!(
        server.seen()[1..]
            .iter()
            .all(|seen| seen.request.header("if-none-match") == Some("\"v1\""))
    );
}

#[tokio::test]
async fn a_restamped_and_shuffled_answer_changes_nothing() {
    let mut polls = 0;
    let server = Scripted::start(move |_| {
        polls += 1;
        let mut manifest = manifest("files", &["read", "write", "list", "move"]);
        manifest["generated_at"] = json!(format!("2026-02-03T04:05:{:02}Z", 6 + polls));
        manifest["tools"]
            .as_array_mut()
            .unwrap()
            .rotate_left(polls % 4);
        Reply::json(&manifest)
    });
    let sheet = one("files", &server).start().await;
    let first = sheet.until_listed(&["list", "move", "read", "write"]).await;
    let stamp = |health: &Health| health.freshness.unwrap().generated_at.unwrap();
    let before = stamp(&health(&first, "files"));
    let later = sheet
        .until_health("files", "stamped anew", |health| {
            stamp(health) > before + Duration::from_secs(2)
        })
        .await;
    assert_eq!(later.catalog.revision(), first.catalog.revision());
    assert_eq!(later.generated_at, first.generated_at);
    assert_eq!(bytes(&later), bytes(&first));
    assert_eq!(health(&later, "files").restarts, 0);

    let stored = sheet.stop().await.1.stored().await;
    let [only] = &stored.manifests[..] else {
        panic!("{stored:?}")
    };
    assert_eq!(only.scenario, name("files"));
    assert!(
        only.document.contains(&before.to_string()),
        "it was stored again: {}",
        only.document
    );
}

#[tokio::test]
async fn what_could_not_be_stored_is_stored_after_the_next_good_answer() {
    let gate = Gate::new();
    let server = Scripted::saying(
        Reply::tools("files", &["read"])
            .header("Cache-Control: no-cache")
            .behind(&gate),
    );
    let setting = one("files", &server);
    let path = setting.config.state.path.clone();
    let sheet = setting.start().await;
    let store = rusqlite::Connection::open(path).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON manifests BEGIN SELECT RAISE(ABORT, 'no room'); END";
    store.execute_batch(refuse).unwrap();
    gate.open();
    let failed = sheet
        .until("a failed save", |now| {
            !findings(now, FindingCode::StateFailed).is_empty()
        })
        .await;
    assert_eq!(
        listed(&failed),
        ["read"],
        "the list does not wait for the store"
    );
    store.execute_batch("DROP TRIGGER refuse").unwrap();
    // The same content again and again, of which the store has nothing yet.
    sheet
        .until("a good save", |now| {
            findings(now, FindingCode::StateFailed).is_empty()
        })
        .await;
    assert_eq!(sheet.stop().await.1.stored().await.manifests.len(), 1);
}
