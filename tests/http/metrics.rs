//! `GET /metrics` of a whole daemon, and of snapshots made by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::float_cmp,
    reason = "a test that cannot go on must fail; counts are exact"
)]

use callsheet::catalog::{Snapshot, Visibility};
use callsheet::model::{Finding, FindingCode, Health, Isolated, ScenarioState, ToolCounts};
use jiff::Timestamp;
use serde_json::json;

use crate::support::daemon::{Daemon, Home, NEVER, PATIENCE, Scenario};
use crate::support::listener::Listener;
use crate::support::offers::{inputs, offer, put, standing, tool};
use crate::support::scrape::Scrape;
use crate::support::serving::{self, health, serve, snapshot};

async fn scrape(daemon: &Daemon) -> Scrape {
    Scrape::parse(&daemon.get("/metrics").await)
}

/// A daemon that asks `notes` only when it is told to.
async fn quiet(home: &Home, notes: &Scenario) -> Daemon {
    let mut config = home.config(&[notes]);
    (config.refresh.min_interval, config.refresh.max_interval) = (NEVER, NEVER);
    Daemon::ready(config).await
}

#[tokio::test]
async fn a_daemon_counts_what_it_does() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let daemon = quiet(&home, &notes).await;
    let before = scrape(&daemon).await;
    assert_eq!(before.value("callsheet_scenarios{state=\"live\"}"), 1.0);
    assert_eq!(
        before.value("callsheet_scenario_up{scenario=\"notes\"}"),
        1.0
    );
    assert_eq!(before.value("callsheet_fetches_total{outcome=\"ok\"}"), 1.0);
    assert_eq!(
        before.value("callsheet_fetch_duration_seconds_count{outcome=\"ok\"}"),
        1.0
    );
    assert_eq!(
        before.value("callsheet_listings_total{outcome=\"manifest\"}"),
        1.0
    );
    assert!(before.value("callsheet_fetch_received_bytes_total") > 100.0);
    assert_eq!(before.value("callsheet_tools_published"), 2.0);
    assert_eq!(before.value("callsheet_config_valid"), 1.0);
    assert!(before.value("callsheet_config_applied_timestamp_seconds") > 1.7e9);
    for healthy in ["callsheet_ready", "callsheet_state_writable"] {
        assert_eq!(before.value(healthy), 1.0, "{healthy}");
    }
    assert_eq!(before.value("callsheet_isolated"), 0.0);

    let off = json!({"scope": "global", "target": "tool:notes/add", "enabled": false});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &off)
            .await
            .status,
        200
    );
    let after = scrape(&daemon).await;
    assert_eq!(after.value("callsheet_tools_published"), 1.0);
    assert_eq!(
        after.value("callsheet_tools_withheld{reason=\"disabled\"}"),
        1.0
    );
    let changes = [
        "callsheet_catalog_revision_timestamp_seconds",
        "callsheet_snapshots_published_total",
    ];
    assert!(
        changes
            .iter()
            .all(|name| after.value(name) > before.value(name)),
        "{}",
        after.text
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_confirmed_manifest_and_a_lost_scenario_are_told_apart() {
    let home = Home::new();
    let mut notes = Scenario::of("notes", &["add"]).await;
    let mut config = home.config(&[&notes]);
    // The next asks are conditional ones on schedule.
    config.health.grace = std::time::Duration::ZERO;
    let daemon = Daemon::ready(config).await;
    let not_modified = "callsheet_fetches_total{outcome=\"not-modified\"}";
    daemon
        .until("/metrics", |answer| {
            Scrape::parse(answer).value(not_modified) >= 1.0
        })
        .await;
    notes.stop().await;
    daemon.until_state("notes", "down").await;
    let lost = scrape(&daemon).await;
    assert_eq!(lost.value("callsheet_scenario_up{scenario=\"notes\"}"), 0.0);
    assert_eq!(lost.value("callsheet_scenarios{state=\"down\"}"), 1.0);
    assert_eq!(
        lost.value("callsheet_tools_withheld{reason=\"withdrawn\"}"),
        1.0
    );
    assert!(lost.value("callsheet_fetches_total{outcome=\"refused\"}") >= 3.0);
    assert!(lost.value("callsheet_listings_total{outcome=\"unanswered\"}") >= 3.0);
    let fetched =
        |outcome: &str| lost.value(&format!("callsheet_fetches_total{{outcome=\"{outcome}\"}}"));
    assert_eq!(
        fetched("not-modified"),
        lost.value("callsheet_listings_total{outcome=\"unchanged\"}")
    );
    daemon.stop().await;
}

#[tokio::test]
async fn requests_count_by_route_and_never_by_path() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let daemon = quiet(&home, &notes).await;
    for number in 0..20 {
        daemon.get(&format!("/api/v1/tools/none-{number}")).await;
        daemon
            .get(&format!("/api/v1/scenarios/none-{number}"))
            .await;
        daemon.get(&format!("/none/{number}")).await;
        daemon.send(&format!("BREW{number}"), "/api/v1/tools").await;
        serving::ask(daemon.address, "GET", "/", &[("host", "evil.example")], "").await;
    }
    for _ in 0..3 {
        daemon.get("/api/v1/tools").await;
    }
    daemon.get("/dashboard/scenarios/notes/now").await;
    let etag = daemon.get("/api/v1/tools").await.header("etag").to_owned();
    serving::ask(
        daemon.address,
        "GET",
        "/api/v1/tools",
        &[("if-none-match", &etag)],
        "",
    )
    .await;
    serving::ask(daemon.address, "HEAD", "/api/v1/tools", &[], "").await;
    let scraped = scrape(&daemon).await;
    let answered = |route: &str, method: &str, status: &str| {
        let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
        scraped.value(&format!("callsheet_http_requests_total{{{labels}}}"))
    };
    assert_eq!(answered("/api/v1/tools/{*name}", "GET", "404"), 20.0);
    assert_eq!(answered("/api/v1/scenarios/{name}", "GET", "404"), 20.0);
    assert_eq!(
        answered("/dashboard/scenarios/{name}/now", "GET", "200"),
        1.0
    );
    assert_eq!(answered("unmatched", "GET", "404"), 20.0);
    assert_eq!(answered("refused", "GET", "403"), 20.0);
    assert_eq!(answered("/api/v1/tools", "GET", "200"), 4.0);
    assert_eq!(answered("/api/v1/tools", "GET", "304"), 1.0);
    assert_eq!(answered("/api/v1/tools", "HEAD", "200"), 1.0);
    assert_eq!(
        scraped.value("callsheet_http_request_duration_seconds_count{route=\"/api/v1/tools\"}"),
        26.0
    );
    // 20 strange methods are one series.
    assert_eq!(
        scraped.count("callsheet_http_requests_total"),
        9,
        "{}",
        scraped.text
    );
    assert_eq!(
        scraped.value("callsheet_view_requests_total{outcome=\"miss\"}"),
        1.0
    );
    assert_eq!(
        scraped.value("callsheet_view_requests_total{outcome=\"repeated\"}"),
        5.0
    );
    daemon.stop().await;
}

#[tokio::test]
async fn events_and_their_readers_are_counted() {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add"]).await;
    let daemon = quiet(&home, &notes).await;
    let (mut reader, _) = Listener::begin(daemon.address, "?kind=catalog").await;
    let (second, _) = Listener::begin(daemon.address, "?kind=catalog").await;
    assert_eq!(
        scrape(&daemon).await.value("callsheet_event_subscribers"),
        2.0
    );
    drop(second);
    daemon
        .send_json(
            "PUT",
            "/api/v1/preferences",
            &json!({"scope": "global", "target": "tool:notes/add", "enabled": false}),
        )
        .await;
    reader.next_of("catalog").await;
    // Whoever went is noticed soon.
    let gone = async {
        loop {
            let scraped = scrape(&daemon).await;
            if scraped.value("callsheet_event_subscribers") == 1.0 {
                return scraped;
            }
            tokio::task::yield_now().await;
        }
    };
    let scraped = tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("he is noticed to be gone");
    assert_eq!(
        scraped.value("callsheet_events_sent_total{event=\"snapshot\"}"),
        2.0
    );
    assert!(scraped.value("callsheet_events_sent_total{event=\"catalog\"}") >= 1.0);
    assert_eq!(scraped.value("callsheet_events_dropped_total"), 0.0);
    daemon.stop().await;
}

/// A snapshot with scenarios in many states, tools that are withheld, a finding, and isolation.
fn varied() -> Snapshot {
    let mut all = inputs(&[("genie", &["run"])]);
    put(
        &mut all,
        offer(
            "files",
            &[tool("get"), tool("read").off(), tool("secret").internal()],
        ),
    );
    put(
        &mut all,
        standing(
            offer("gone", &[tool("a"), tool("b")]),
            Visibility::Withdrawn("3 failures".into()),
        ),
    );
    put(
        &mut all,
        standing(
            offer("waits", &[tool("c")]),
            Visibility::Hidden("pending".into()),
        ),
    );
    let last_success = Some(Timestamp::from_second(1_700_000_000).unwrap());
    let tools = ToolCounts {
        quarantined: 4,
        ..ToolCounts::default()
    };
    let healths = vec![
        Health {
            last_success,
            tools,
            ..health("files", ScenarioState::Live)
        },
        health("gone", ScenarioState::Down),
        health("old", ScenarioState::Incompatible),
        health("locked", ScenarioState::NeedsAuthorization),
        health("former", ScenarioState::Removed),
        health("waits", ScenarioState::Pending),
        health("banned", ScenarioState::Blocked),
    ];
    let mut first = snapshot(
        &all,
        healths,
        vec![Finding::new(FindingCode::StateFailed, "the disk is full")],
    );
    let at = Timestamp::UNIX_EPOCH;
    let window = std::time::Duration::from_secs(15);
    first.isolated = Some(Isolated {
        since: at,
        until: at,
        lost: 2,
        of: 3,
        window,
    });
    first
}

#[tokio::test]
async fn what_a_snapshot_shows_is_derived_from_it() {
    let server = serve(varied()).await;
    let scraped = Scrape::parse(&server.get("/metrics").await);
    for (sample, value) in [
        ("callsheet_tools_published", 2.0),
        ("callsheet_tools_withheld{reason=\"disabled\"}", 1.0),
        ("callsheet_tools_withheld{reason=\"internal\"}", 1.0),
        ("callsheet_tools_withheld{reason=\"quarantined\"}", 4.0),
        ("callsheet_tools_withheld{reason=\"withdrawn\"}", 2.0),
        ("callsheet_tools_withheld{reason=\"hidden\"}", 1.0),
        ("callsheet_scenarios{state=\"pending\"}", 1.0),
        ("callsheet_scenario_incompatible{scenario=\"old\"}", 1.0),
        ("callsheet_scenario_up{scenario=\"old\"}", 0.0),
        (
            "callsheet_scenario_needs_authorization{scenario=\"locked\"}",
            1.0,
        ),
        (
            "callsheet_scenario_needs_authorization{scenario=\"old\"}",
            0.0,
        ),
        ("callsheet_scenarios{state=\"removed\"}", 1.0),
        (
            "callsheet_scenario_last_success_timestamp_seconds{scenario=\"files\"}",
            1.7e9,
        ),
        ("callsheet_isolated", 1.0),
        ("callsheet_state_writable", 0.0),
        ("callsheet_findings{severity=\"error\"}", 1.0),
        ("callsheet_catalog_revision_timestamp_seconds", 1.7e9),
        (
            concat!(
                "callsheet_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"}"
            ),
            1.0,
        ),
    ] {
        assert_eq!(scraped.value(sample), value, "{sample}");
    }
    // Strangers name no series.
    assert!(
        !scraped.text.contains("waits") && !scraped.text.contains("banned"),
        "{}",
        scraped.text
    );
    // Nor do those that are gone: an alarm would go on for a day.
    assert!(!scraped.text.contains("former"), "{}", scraped.text);
    assert_eq!(scraped.count("callsheet_scenario_last_success"), 1);
}

#[tokio::test]
async fn the_format_is_the_one_that_is_liked_better() {
    let server = serving::serve_inputs(&inputs(&[("genie", &["run"])])).await;
    let get = async |accept: &str| {
        serving::ask(server.address, "GET", "/metrics", &[("accept", accept)], "").await
    };
    // Of routes only those are told that were asked.
    get("*/*").await;
    let open = get("application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1").await;
    assert_eq!(
        open.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert_eq!(open.header("vary"), "accept");
    assert_eq!(open.header("cache-control"), "no-store");
    let text = String::from_utf8(open.body.clone()).unwrap();
    assert!(
        text.ends_with("\n# EOF\n") && text.contains("\n# TYPE callsheet_fetches counter\n"),
        "{text}"
    );
    let plain = get("text/plain").await;
    assert_eq!(
        plain.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = String::from_utf8(plain.body.clone()).unwrap();
    assert!(
        !text.contains("# EOF") && text.contains("\n# TYPE callsheet_fetches_total counter\n"),
        "{text}"
    );
    assert_eq!(Scrape::parse(&open).names(), Scrape::parse(&plain).names());
    for foreign in [("host", "evil.example"), ("host", "127.0.0.1@evil")] {
        let refused = serving::ask(server.address, "GET", "/metrics", &[foreign], "").await;
        assert!([400, 403].contains(&refused.status), "{refused:?}");
    }
}
