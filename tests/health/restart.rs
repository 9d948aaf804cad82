//! Restarts and moves: what is taken as one, what is not, and what follows from it.

use std::fs;
use std::time::Duration;

use callsheet::events::{Event, Next, SubscribeRequest};
use callsheet::model::ScenarioState;
use callsheet::runtime::Clock;
use serde_json::json;

use crate::support::in_process::{health, listed};
use crate::support::scripted::{Gate, PATIENCE, Reply, Scripted, manifest};
use crate::support::sources::{OFTEN, Processes, process_file};
use crate::support::watched::{HOUR, Setting, ms, one, setting};

/// Only what the processes folder names, asked once an hour unless something happens.
fn following(processes: &Processes) -> Setting {
    setting([]).seldom().with(|config| {
        config.discovery.vrooli.enabled = true;
        config.discovery.vrooli.path = Some(processes.path.clone());
        config.discovery.vrooli.rescan_interval = OFTEN;
        config.health.grace = HOUR;
    })
}

/// Answers 304 to whoever knows what it said.
fn validating(
    tools: &'static [&'static str],
) -> impl FnMut(&crate::support::scripted::Request) -> Reply + Send {
    move |request| match request.header("if-none-match") {
        Some(_) => Reply::status("304 Not Modified"),
        None => Reply::tools("files", tools).header("ETag: \"v1\""),
    }
}

#[tokio::test]
async fn a_moved_scenario_is_asked_anew_where_it_is() {
    let processes = Processes::new();
    let old = Scripted::start(validating(&["read"]));
    let new = Scripted::start(validating(&["write"]));
    processes.write_live("files", old.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    processes.write_live("files", new.port());
    let moved = sheet.until_listed(&["write"]).await;
    let shown = health(&moved, "files");
    assert_eq!(shown.restarts, 1);
    assert_eq!(shown.state, ScenarioState::Live);
    assert!(
        shown
            .url
            .as_ref()
            .unwrap()
            .contains(&new.port().to_string()),
        "{shown:?}"
    );
    assert_eq!(
        new.last().header("if-none-match"),
        None,
        "what the old address vouched for says nothing here"
    );
    assert_eq!(old.count(), 1);
    assert_eq!(new.count(), 1);
}

#[tokio::test]
async fn a_scenario_that_started_anew_at_its_address_is_asked_anew() {
    let processes = Processes::new();
    let server = Scripted::start(validating(&["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    let first = sheet.until_listed(&["read"]).await;
    let started =
        process_file(std::process::id(), "files", server.port()).replace("10:00:00Z", "11:30:00Z");
    processes.write("files", "start-api.json", &started);
    let again = sheet
        .until_health("files", "restarted", |health| health.restarts == 1)
        .await;
    assert_eq!(server.count(), 2);
    assert_eq!(server.last().header("if-none-match"), None);
    assert_eq!(again.catalog.revision(), first.catalog.revision());
}

#[tokio::test]
async fn an_answer_from_before_a_move_is_dropped() {
    let processes = Processes::new();
    let gate = Gate::new();
    let old = Scripted::saying(Reply::tools("files", &["read"]).behind(&gate));
    let new = Scripted::saying(Reply::tools("files", &["write"]));
    processes.write_live("files", old.port());
    let sheet = following(&processes).start().await;
    old.until_asked(1).await;
    // Whoever waits for the old answer gets the new one.
    let (shown, ()) = tokio::join!(sheet.refresh("files"), async {
        processes.write_live("files", new.port());
    });
    assert_eq!(
        shown.tools.published, 1,
        "it had not answered before, so nothing restarted"
    );
    assert_eq!(
        shown.restarts, 0,
        "it had not answered before, so nothing restarted"
    );
    assert_eq!(listed(&sheet.now()), ["write"]);
    old.until_left(1).await;
    gate.open();
    sheet.refresh("files").await;
    sheet.until_listed(&["write"]).await;
    assert_eq!(old.count(), 1);
    assert_eq!(new.count(), 2);
}

#[tokio::test]
async fn a_refused_connection_makes_the_next_answer_a_restart() {
    let mut server = Scripted::start(validating(&["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = HOUR)
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.until_asked(3).await;
    assert_eq!(server.last().header("if-none-match"), Some("\"v1\""));
    server.close().await;
    sheet
        .until_health("files", "refused", |health| health.failures_in_a_row >= 2)
        .await;
    let before = server.count();
    server.open();
    server.until_asked(before + 3).await;
    let asked: Vec<_> = server.seen()[before..]
        .iter()
        .map(|seen| seen.request.header("if-none-match").is_some())
        .collect();
    assert_eq!(asked[..3], [false, true, true], "unconditional once");
    let back = sheet
        .until_health("files", "back", |health| health.failures_in_a_row == 0)
        .await;
    assert_eq!(health(&back, "files").restarts, 1);
}

#[tokio::test]
async fn a_failure_that_is_no_refusal_is_no_restart() {
    let server = Scripted::start(validating(&["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = HOUR)
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status("502 Bad Gateway"));
    sheet
        .until_health("files", "failed", |health| health.failures_in_a_row >= 2)
        .await;
    server.script(validating(&["read"]));
    let back = sheet
        .until_health("files", "back", |health| health.failures_in_a_row == 0)
        .await;
    assert_eq!(health(&back, "files").restarts, 0);
    assert_eq!(server.last().header("if-none-match"), Some("\"v1\""));
}

/// A manifest as of a build.
fn build(version: &str, generated_at: &str, tools: &[&str]) -> Reply {
    let mut manifest = manifest("files", tools);
    manifest["scenario"]["version"] = json!(version);
    manifest["generated_at"] = json!(generated_at);
    Reply::json(&manifest)
}

#[tokio::test]
async fn what_an_answer_shows_of_a_restart_counts_once() {
    const NOON: &str = "2026-02-03T12:00:00Z";
    // The second answer, whether it shows a restart, and how it is called.
    let cases = [
        (build("1.1.0", NOON, &["read"]), 1, "another version"),
        (
            build("1.0.0", "2026-02-03T11:59:00Z", &["read", "write"]),
            1,
            "an older stamp on another content",
        ),
        (
            build("1.0.0", "2026-02-03T13:59:00+02:00", &["read", "write"]),
            1,
            "an older stamp, by the instant",
        ),
        (
            build("1.0.0", "2026-02-03T14:30:00+02:00", &["read", "write"]),
            0,
            "a newer stamp, by the instant",
        ),
        (
            build("1.0.0", "2026-02-03T12:00:05Z", &["read", "write"]),
            0,
            "another content",
        ),
        (
            build("1.0.0", "2026-02-03T11:59:00Z", &["read"]),
            0,
            "an older stamp on the same content",
        ),
        (
            build("1.0.0", "2026-02-03T11:59:59.5Z", &["read", "write"]),
            0,
            "less than a second back",
        ),
        (
            build("1.0.0", "yesterday", &["read", "write"]),
            0,
            "no stamp at all",
        ),
    ];
    for (second, restarts, what) in cases {
        let server = Scripted::saying(build("1.0.0", NOON, &["read"]));
        let sheet = one("files", &server).start().await;
        sheet.until_listed(&["read"]).await;
        server.say(second);
        // The one under way may still be the first; those that follow are not, and show nothing
        // new.
        for _ in 0..4 {
            sheet.refresh("files").await;
        }
        assert_eq!(sheet.health("files").restarts, restarts, "{what}");
    }
}

#[tokio::test]
async fn what_was_restored_is_no_sign_of_a_restart() {
    let server = Scripted::saying(build("1.0.0", "2026-02-03T12:00:00Z", &["read"]));
    let sheet = one("files", &server).start().await;
    sheet.until_listed(&["read"]).await;
    let place = sheet.stop().await.1;
    let gate = Gate::new();
    server.say(build("1.1.0", "2026-02-03T11:00:00Z", &["read", "write"]).behind(&gate));
    let sheet = place.setting([("files", server.url())]).start().await;
    assert_eq!(
        listed(&sheet.now()),
        ["read"],
        "the last good answer is there before anyone was asked"
    );
    assert_eq!(sheet.health("files").state, ScenarioState::Connecting);
    gate.open();
    let now = sheet.until_listed(&["read", "write"]).await;
    assert_eq!(
        health(&now, "files").restarts,
        0,
        "it was not watched meanwhile"
    );
}

#[tokio::test]
async fn leaving_and_coming_back_is_no_restart_while_it_answers() {
    let processes = Processes::new();
    let server = Scripted::start(validating(&["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    fs::remove_dir_all(processes.path.join("files")).unwrap();
    let left = sheet
        .until_health("files", "left", |health| {
            health.reason.starts_with("answers, although")
        })
        .await;
    assert_eq!(health(&left, "files").restarts, 0);
    assert_eq!(listed(&left), vec!["read".to_owned()]);
    processes.write_live("files", server.port());
    let back = sheet
        .until_health("files", "is named again", |health| {
            health.reason == "up to date"
        })
        .await;
    assert_eq!(health(&back, "files").restarts, 0);
    assert_eq!(
        server.count(),
        2,
        "asked once more when it left, and not again when it came back"
    );
}

#[tokio::test]
async fn a_second_source_for_the_same_address_is_no_restart() {
    let processes = Processes::new();
    let server = Scripted::start(validating(&["read"]));
    let fixed = Scripted::saying(Reply::tools("fixed", &["other"]));
    processes.write_live("files", server.port());
    processes.write_live("fixed", fixed.port());
    // The list and the folder both name `fixed` at one address, in their own spelling and with
    // their own sign of a start.
    let mut address = fixed.url();
    address.set_host(Some("localhost")).unwrap();
    let sheet = following(&processes)
        .with(|config| {
            let named = callsheet::config::StaticScenario {
                name: crate::support::in_process::name("fixed"),
                target: callsheet::model::Target::at(address),
                protocol: None,
                sleep_after: None,
            };
            config.scenarios.push(named);
        })
        .start()
        .await;
    let now = sheet.until_listed(&["read", "other"]).await;
    assert_eq!(now.health.len(), 2);
    sheet.refresh("fixed").await;
    sheet.refresh("files").await;
    assert_eq!(sheet.health("fixed").restarts, 0);
    assert_eq!(sheet.health("files").restarts, 0);
}

#[tokio::test]
async fn a_scenario_that_its_source_finds_elsewhere_is_live_there_within_two_seconds() {
    let processes = Processes::new();
    let mut old = Scripted::start(validating(&["read"]));
    let new = Scripted::start(validating(&["write"]));
    processes.write_live("files", old.port());
    // The gap and the back-off are the product's own.
    let setting = following(&processes).with(|config| {
        let standard = callsheet::config::RefreshConfig::default();
        config.refresh.forced_gap = standard.forced_gap;
        (config.refresh.backoff_base, config.refresh.backoff_max) =
            (standard.backoff_base, standard.backoff_max);
    });
    let sheet = setting.start().await;
    sheet.until_listed(&["read"]).await;
    old.close().await;
    let clock = Clock::system();
    let before = sheet.health("files").last_restart;
    let began = clock.now();
    processes.write_live("files", new.port());
    let moved = sheet.until_listed(&["write"]).await;
    assert!(clock.now() - began < Duration::from_secs(2));
    let shown = health(&moved, "files");
    assert_eq!(shown.state, ScenarioState::Live);
    assert_eq!(shown.restarts, 1);
    assert_eq!(before, None);
    assert!(
        shown.last_restart >= shown.last_success && shown.last_restart.is_some(),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_scenario_that_refuses_is_probed_instead_of_waited_for() {
    let mut server = Scripted::start(validating(&["read"]));
    let base = ms(100);
    let max = HOUR;
    let setting = one("files", &server).seldom().with(|config| {
        config.health.grace = HOUR;
        (config.refresh.backoff_base, config.refresh.backoff_max) = (base, max);
    });
    let sheet = setting.start().await;
    sheet.until_listed(&["read"]).await;
    server.close().await;
    sheet.refresh("files").await;
    let clock = Clock::system();
    let began = clock.now();
    // At once, twice and four times the base, less a tenth each: the fourth failure comes after six
    // to seven bases.
    sheet
        .until_health("files", "refused", |health| health.failures_in_a_row == 4)
        .await;
    let took = clock.now() - began;
    assert!(took > base * 6 && took < base * 20, "{took:?}");
    server.open();
    let back = sheet
        .until_health("files", "back", |health| health.failures_in_a_row == 0)
        .await;
    assert_eq!(health(&back, "files").restarts, 1);
    assert_eq!(server.last().header("if-none-match"), None);
    assert!(health(&back, "files").last_restart.is_some());
}

#[tokio::test]
async fn what_an_answer_shows_is_confirmed_by_one_more_ask() {
    const NOON: &str = "2026-02-03T12:00:00Z";
    let server = Scripted::saying(build("1.0.0", NOON, &["read"]).header("ETag: \"v1\""));
    let other = Scripted::saying(Reply::tools("other", &["note"]));
    let sheet = setting([("files", server.url()), ("other", other.url())])
        .seldom()
        .start()
        .await;
    sheet.until_listed(&["read", "note"]).await;
    // Two builds behind one address: each answer is another's.
    let mut polls = 0;
    server.script(move |_| {
        polls += 1;
        build(&format!("1.{polls}.0"), NOON, &["read"]).header("ETag: \"v2\"")
    });
    sheet.refresh("files").await;
    server.until_asked(3).await;
    let shown = sheet
        .until_health("files", "confirmed", |health| health.restarts == 2)
        .await;
    assert_eq!(health(&shown, "files").version.as_deref(), Some("1.2.0"));
    assert_eq!(server.last().header("if-none-match"), None);
    let before = health(&shown, "files").next_attempt.unwrap();
    sheet.refresh("other").await;
    assert_eq!(server.count(), 3, "not in a loop");
    assert_eq!(
        sheet.health("files").next_attempt.unwrap(),
        before,
        "not in a loop"
    );
    assert!(before.duration_since(Clock::system().wall()).as_secs() > 3000);
}

#[tokio::test]
async fn what_was_modified_before_shows_a_restart() {
    let dated = |date: &str, tools: &[&str]| {
        Reply::tools("files", tools).header(&format!("Last-Modified: {date}"))
    };
    let noon = "Tue, 03 Feb 2026 12:00:00 GMT";
    let eleven = "Tue, 03 Feb 2026 11:00:00 GMT";
    for (second, restarts) in [
        (dated(eleven, &["read", "write"]), 1),
        (dated(eleven, &["read"]), 0),
        (dated(noon, &["read", "write"]), 0),
    ] {
        let server = Scripted::saying(dated(noon, &["read"]));
        let sheet = one("files", &server).start().await;
        sheet.until_listed(&["read"]).await;
        server.say(second);
        for _ in 0..4 {
            sheet.refresh("files").await;
        }
        assert_eq!(sheet.health("files").restarts, restarts);
    }
}

#[tokio::test]
async fn stamps_and_order_that_change_with_every_answer_are_never_told() {
    let mut polls = 0;
    let shuffled = move |tools: &[&str]| {
        polls += 1;
        let mut tools = tools.to_vec();
        let by = polls % tools.len();
        tools.rotate_left(by);
        let mut manifest = manifest("files", &tools);
        manifest["generated_at"] = json!(format!(
            "2026-02-03T04:{:02}:{:02}Z",
            polls / 60 % 60,
            polls % 60
        ));
        Reply::json(&manifest).header(&format!("ETag: \"{polls}\""))
    };
    let mut first = shuffled;
    let server = Scripted::start(move |_| first(&["copy", "read", "write"]));
    let sheet = one("files", &server).start().await;
    let before = sheet.until_state("files", ScenarioState::Live).await;
    let mut subscription = sheet
        .app
        .subscribe(SubscribeRequest::default())
        .await
        .unwrap();
    let mut next = async || {
        tokio::time::timeout(PATIENCE, subscription.next())
            .await
            .unwrap()
    };
    assert!(
        matches!(next().await, Next::Message(message) if matches!(message.event, Event::Snapshot(_)))
    );
    server.until_asked(20).await;
    assert_eq!(sheet.now().catalog.revision(), before.catalog.revision());
    assert_eq!(sheet.now().generated_at, before.generated_at);
    assert_eq!(sheet.health("files").restarts, 0);
    // So the first thing that is told at all is a real change.
    let mut second = shuffled;
    server.script(move |_| second(&["copy", "move", "read", "write"]));
    let Next::Message(message) = next().await else {
        panic!("a message expected")
    };
    let Event::Catalog(change) = &message.event else {
        panic!("{message:?}")
    };
    assert_eq!(change.difference.added.len(), 1);
}
