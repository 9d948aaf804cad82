//! Forgetting by an operator: which scenarios it ends, what goes with them, and what comes back.

use std::fs;

use callsheet::discovery::Endpoint;
use callsheet::engine::{EngineError, Forgotten};
use callsheet::model::{FindingCode, ScenarioState, SourceId};

use crate::support::assert_empty;
use crate::support::found::{self, announced};
use crate::support::in_process::{findings, health, listed, name};
use crate::support::scripted::{Reply, Scripted};
use crate::support::sources::{OFTEN, Processes};
use crate::support::watched::{HOUR, ms, one, setting};

/// A daemon with one scenario, `pantry`, that was found, was trusted, and is removed now: its
/// server is closed, and it is not announced any more.
struct Removed {
    home: found::Home,
    server: Scripted,
    daemon: found::Found,
    /// How it was announced.
    announcements: [Endpoint; 1],
}

impl Removed {
    async fn new() -> Self {
        let home = found::Home::new();
        let mut server = Scripted::saying(Reply::tools("pantry", &["stock"]));
        let announcements = [announced("pantry", &server.url(), Some("id-1"))];
        let daemon = home.start(announcements.clone()).await;
        daemon.until_pending("pantry").await;
        daemon.decide("POST", "pantry", "trust").await;
        daemon.until_listed(&["stock"]).await;
        server.close().await;
        daemon.hears([]);
        daemon.until_state("pantry", ScenarioState::Removed).await;
        Self {
            home,
            server,
            daemon,
            announcements,
        }
    }
}

#[tokio::test]
async fn a_removed_scenario_is_forgotten_with_its_names_and_its_stored_manifest() {
    let processes = Processes::new();
    let mut server = Scripted::saying(Reply::tools("files", &["read"]));
    let desk = Scripted::saying(Reply::tools("desk", &["read"]));
    processes.write_live("files", server.port());
    let setting = setting([("desk", desk.url())]).with(|config| {
        config.discovery.vrooli.enabled = true;
        config.discovery.vrooli.path = Some(processes.path.clone());
        config.discovery.vrooli.rescan_interval = OFTEN;
        config.health.grace = HOUR;
    });
    let sheet = setting.start().await;
    sheet.until_listed(&["desk__read", "files__read"]).await;
    server.close().await;
    fs::remove_dir_all(processes.path.join("files")).unwrap();
    let removed = sheet.until_state("files", ScenarioState::Removed).await;
    assert_eq!(
        listed(&removed),
        ["desk__read"],
        "its source dropped it, so its names stay reserved"
    );
    assert_eq!(findings(&removed, FindingCode::Withdrawn).len(), 1);

    let engine = sheet.app.engine().clone();
    let forgotten = engine.forget(name("files")).await.unwrap();
    let expected = Forgotten {
        name: name("files"),
        was: ScenarioState::Removed,
        named_by: None,
        approval_ended: false,
    };
    assert_eq!(forgotten, expected);
    let now = sheet.now();
    assert_eq!(listed(&now), vec!["read".to_owned()]);
    assert!(!now.health.contains_key(&name("files")));
    assert_empty!(findings(&now, FindingCode::Withdrawn));
    let again = engine.forget(name("files")).await.unwrap_err();
    assert!(matches!(again, EngineError::UnknownScenario(_)), "{again}");
    let stored = sheet.stop().await.1.stored().await;
    let names: Vec<_> = stored
        .manifests
        .iter()
        .map(|manifest| manifest.scenario.as_str())
        .collect();
    assert_eq!(names, ["desk"]);
}

#[tokio::test]
async fn a_down_scenario_that_is_still_named_is_known_anew_and_comes_back() {
    let mut server = Scripted::saying(Reply::tools("files", &["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = ms(1))
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    let engine = sheet.app.engine().clone();
    let refused = engine.forget(name("files")).await.unwrap_err();
    assert!(
        matches!(
            &refused,
            EngineError::NotForgettable(_, ScenarioState::Live | ScenarioState::Stale)
        ),
        "{refused}"
    );
    let before = engine.route(&name("files")).unwrap().generation;
    server.close().await;
    sheet.until_state("files", ScenarioState::Down).await;
    let forgotten = engine.forget(name("files")).await.unwrap();
    assert_eq!(forgotten.was, ScenarioState::Down);
    assert_eq!(forgotten.named_by, Some(SourceId::STATIC));
    let now = sheet.now();
    assert!(
        now.catalog.entry(&name("files")).is_none(),
        "what it offered is not known any more"
    );
    let shown = health(&now, "files");
    assert_eq!(shown.state, ScenarioState::Connecting);
    assert_eq!(shown.last_success, None);
    assert_eq!(shown.restarts, 0);
    server.open();
    sheet.until_listed(&["read"]).await;
    // What calls and answers of the one before say is not taken for this one's.
    assert!(engine.route(&name("files")).unwrap().generation > before + 1_000);
}

#[tokio::test]
async fn an_approval_ends_with_its_scenario_though_the_client_does_not_wait_for_it() {
    let Removed {
        home,
        mut server,
        daemon,
        announcements,
    } = Removed::new().await;
    let gone = daemon.until("forgotten", |now| !now.health.contains_key(&name("pantry")));
    let waits = tokio::select! {
        biased;
        _ = gone => false,
        _ = daemon.engine.forget(name("pantry")) => true,
    };
    assert!(!waits, "the client has gone by then");
    server.open();
    daemon.hears(announcements.clone());
    daemon.until_pending("pantry").await;
    daemon.stop().await;
    let daemon = home.start(announcements).await;
    daemon.until_pending("pantry").await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_removed_scenario_takes_the_approval_along_that_it_had() {
    let Removed {
        mut server,
        daemon,
        announcements,
        home: _home,
    } = Removed::new().await;
    let answer = daemon.decide("POST", "pantry", "forget").await;
    assert_eq!(answer["was"], "removed", "{answer}");
    assert_eq!(answer["trust_ended"], true, "{answer}");
    assert!(
        answer["named_by"].is_null() && answer["message"].as_str().unwrap().contains("are free"),
        "{answer}"
    );
    server.open();
    daemon.hears(announcements);
    // It waits again, like any other that was just found.
    daemon.until_pending("pantry").await;
    daemon.stop().await;
}
