//! The life of a scenario as health shows it: connecting, live, stale, down and back, and what
//! becomes of its tools.

use std::time::Duration;

use callsheet::model::{FindingCode, ScenarioState};

use crate::support::assert_empty;
use crate::support::in_process::{findings, health, listed, name};
use crate::support::scripted::{Reply, Scripted};
use crate::support::watched::{HOUR, ms, one, setting};

/// Fresh for as long as the test takes, and yet asked soon again: the configuration's
/// `max_interval` sees to that.
fn good(tools: &[&str]) -> Reply {
    Reply::tools("files", tools).header("Cache-Control: max-age=600")
}

#[tokio::test]
async fn a_scenario_connects_when_it_begins_to_answer() {
    let mut server = Scripted::absent();
    server.say(good(&["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = HOUR)
        .start()
        .await;
    let mut early = Vec::new();
    let tried = sheet.until_health("files", "was tried", |health| {
        early.push((
            health.failures_in_a_row,
            health.state,
            health.reason.clone(),
        ));
        health.failures_in_a_row >= 4
    });
    let tried = tried.await;
    for (failures, state, reason) in early {
        // Without tools to keep there is no grace to wait for.
        let expected = if failures < 3 {
            ScenarioState::Connecting
        } else {
            ScenarioState::Down
        };
        assert_eq!(state, expected, "after {failures} failures");
        assert!(
            failures == 0 || reason.contains("connection refused by http://"),
            "{reason}"
        );
    }
    let [lost] = &findings(&tried, FindingCode::Withdrawn)[..] else {
        panic!("one finding expected")
    };
    assert!(
        lost.message
            .starts_with("down, and its tools were never listed: connection refused by"),
        "{lost:?}"
    );
    let shown = health(&tried, "files");
    assert_eq!(shown.last_error.as_ref().unwrap().kind, "refused");
    assert!(
        shown.last_success.is_none() && shown.protocol.is_none() && shown.freshness.is_none(),
        "{shown:?}"
    );

    server.open();
    let live = sheet.until_state("files", ScenarioState::Live).await;
    let shown = health(&live, "files");
    assert_eq!(listed(&live), ["read"]);
    assert_eq!(shown.failures_in_a_row, 0);
    assert_eq!(shown.last_error.as_ref(), None);
    assert_eq!(shown.protocol, Some("tool-discovery"));
    assert_eq!(shown.version.as_deref(), Some("1.0.0"));
    // It never answered before, so nothing restarted.
    assert_eq!(shown.restarts, 0);
    assert_empty!(findings(&live, FindingCode::Withdrawn));
}

#[tokio::test]
async fn within_grace_a_failing_scenario_keeps_its_tools() {
    let mut server = Scripted::saying(good(&["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = HOUR)
        .start()
        .await;
    let live = sheet.until_state("files", ScenarioState::Live).await;
    server.close().await;

    // Two failures say nothing yet while up to date.
    let mut early = Vec::new();
    let failing = sheet.until_health("files", "fails", |health| {
        early.push((health.failures_in_a_row, health.state));
        health.failures_in_a_row >= 5
    });
    let failing = failing.await;
    for (failures, state) in early {
        let expected = if failures < 3 {
            ScenarioState::Live
        } else {
            ScenarioState::Stale
        };
        assert_eq!(state, expected, "after {failures} failures");
    }
    let shown = health(&failing, "files");
    assert!(
        shown
            .reason
            .starts_with("the last 5 polls failed: connection refused by http://"),
        "{}",
        shown.reason
    );
    assert_eq!(listed(&failing), ["read"]);
    assert_eq!(
        failing.catalog.revision(),
        live.catalog.revision(),
        "health never enters the revision"
    );
    assert_empty!(findings(&failing, FindingCode::Withdrawn));
}

#[tokio::test]
async fn after_three_failures_and_grace_its_tools_go_and_their_names_stay() {
    let mut server = Scripted::saying(good(&["read", "write"]));
    let other = Scripted::saying(Reply::tools("desk", &["read"]));
    let scenarios = [("files", server.url()), ("desk", other.url())];
    let sheet = setting(scenarios)
        .with(|config| config.health.grace = ms(1))
        .start()
        .await;
    let all = ["desk__read", "files__read", "write"];
    let live = sheet.until_listed(&all).await;
    server.close().await;

    let mut failures = 0;
    let down = sheet.until_health("files", "down", |health| {
        failures = health.failures_in_a_row;
        assert!(
            health.state != ScenarioState::Down || failures >= 3,
            "down after {failures} failures"
        );
        health.state == ScenarioState::Down
    });
    let down = down.await;
    // The other one is not renamed because this one failed.
    assert_eq!(listed(&down), ["desk__read"]);
    assert_ne!(down.catalog.revision(), live.catalog.revision());
    let [withdrawn] = &findings(&down, FindingCode::Withdrawn)[..] else {
        panic!("one finding expected")
    };
    assert_eq!(withdrawn.scenario, Some(name("files")));
    assert!(
        withdrawn.message.contains("its 2 tools are withdrawn"),
        "{withdrawn:?}"
    );
    assert!(
        withdrawn
            .message
            .contains("polls failed: connection refused by http://"),
        "{withdrawn:?}"
    );
    let shown = health(&down, "files");
    assert_eq!(shown.tools.published, 0);
    assert_eq!(shown.last_error.as_ref().unwrap().kind.as_str(), "refused");

    server.open();
    let back = sheet.until_listed(&all).await;
    assert_eq!(
        health(&back, "files").state,
        ScenarioState::Live,
        "back at the first good answer"
    );
    assert_eq!(
        health(&back, "files").restarts,
        1,
        "it was refused and then open"
    );
    assert_empty!(findings(&back, FindingCode::Withdrawn));
    assert_eq!(back.catalog.revision(), live.catalog.revision());
    assert_eq!(back.generated_at, live.generated_at);
}

/// No further poll comes that could show it.
/// Such an answer is out of date as soon as it is there.
#[tokio::test]
async fn a_good_answer_brings_a_scenario_back_also_if_it_may_not_be_kept() {
    let mut server =
        Scripted::saying(Reply::tools("files", &["read"]).header("Cache-Control: no-cache"));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = ms(1))
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.close().await;
    sheet.until_state("files", ScenarioState::Down).await;
    server.open();
    sheet.until_listed(&["read"]).await;
    sheet.until_state("files", ScenarioState::Stale).await;
}

#[tokio::test]
async fn the_end_of_grace_alone_withdraws_the_tools() {
    let mut polls = 0;
    let server = Scripted::start(move |_| {
        polls += 1;
        match polls {
            1 => good(&["read"]),
            2 | 3 => Reply::status("503 Service Unavailable"),
            _ => Reply::status("503 Service Unavailable").header("Retry-After: 3600"),
        }
    });
    let grace = ms(2000);
    let sheet = one("files", &server)
        .with(|config| config.health.grace = grace)
        .start()
        .await;
    let failed = sheet
        .until_health("files", "failed", |health| health.failures_in_a_row == 3)
        .await;
    assert_eq!(health(&failed, "files").state, ScenarioState::Stale);
    assert_eq!(listed(&failed), vec!["read".to_owned()]);
    let down = sheet.until_state("files", ScenarioState::Down).await;
    let shown = health(&down, "files");
    assert_eq!(shown.failures_in_a_row, 3, "{shown:?}");
    assert_eq!(server.count(), 4, "{shown:?}");
    assert!(listed(&down).is_empty(), "{shown:?}");
    let waited =
        Duration::try_from(shown.since.duration_since(shown.last_success.unwrap())).unwrap();
    assert!(
        waited >= grace,
        "expected at least {grace:?} since the last good answer, found {waited:?}"
    );
}

#[tokio::test]
async fn grace_counts_from_the_last_good_answer() {
    let grace = ms(700);
    let mut server = Scripted::saying(good(&["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = grace)
        .start()
        .await;
    sheet.until_state("files", ScenarioState::Live).await;
    server.close().await;
    let down = sheet.until_state("files", ScenarioState::Down).await;
    let shown = health(&down, "files");
    let waited =
        Duration::try_from(shown.since.duration_since(shown.last_success.unwrap())).unwrap();
    assert!(waited + ms(5) >= grace, "down after {waited:?}");
}

#[tokio::test]
async fn a_scenario_that_never_answers_is_down_within_grace() {
    let server = Scripted::saying(Reply::status("500 Internal Server Error"));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = HOUR)
        .start()
        .await;
    let down = sheet.until_state("files", ScenarioState::Down).await;
    let shown = health(&down, "files");
    assert_eq!(shown.failures_in_a_row, 3);
    assert_eq!(shown.last_error.as_ref().unwrap().kind.as_str(), "status");
    assert!(shown.reason.contains("HTTP 500"), "{}", shown.reason);
}
