//! Sources that never come to an end, and what is remembered of scenarios that are gone.

use std::fs;
use std::time::Duration;

use callsheet::Callsheet;
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, SourceTrust};
use callsheet::model::{ScenarioName, ScenarioState, SourceId};
use tokio::sync::watch;

use crate::support::found::{self, announced};
use crate::support::in_process::listed;
use crate::support::scripted::{PATIENCE, Reply, Scripted};
use crate::support::sources::{ChannelSource, OFTEN, Processes};

fn name(text: &str) -> ScenarioName {
    text.parse().unwrap()
}

/// Names this scenario, or nothing, and has not looked everywhere.
fn unsettled(scenario: Option<&Scripted>) -> EndpointSet {
    let endpoint = |server: &Scripted| Endpoint {
        name: Some("own".parse().unwrap()),
        ..Endpoint::at(server.url(), SourceTrust::Trusted)
    };
    let entry = |server| (EndpointId("own".into()), endpoint(server));
    EndpointSet {
        endpoints: scenario.into_iter().map(entry).collect(),
        ..EndpointSet::default()
    }
}

#[tokio::test]
async fn a_source_that_never_settles_keeps_only_its_own() {
    let processes = Processes::new();
    let mut own = Scripted::saying(Reply::tools("own", &["mine"]));
    let mut files = Scripted::saying(Reply::tools("files", &["read"]));
    processes.write_live("files", files.port());
    let endpoints = watch::Sender::new(unsettled(Some(&own)));
    let mut home = found::Home::new();
    home.config.discovery.mdns.enabled = false;
    home.config.discovery.environment.enabled = false;
    home.config.discovery.vrooli.path = Some(processes.path.clone());
    home.config.discovery.vrooli.rescan_interval = OFTEN;
    let source = ChannelSource(SourceId::EMBEDDED, endpoints.subscribe());
    let sheet = Callsheet::builder(home.config.clone())
        .source(source)
        .start()
        .await
        .unwrap();
    let mut reader = sheet.reader();
    let mut until = async |tools: &[&str]| {
        let listed_so = async {
            while listed(&reader.snapshot()) != tools {
                reader.changed().await.unwrap();
            }
        };
        let came = tokio::time::timeout(PATIENCE, listed_so).await.is_ok();
        assert!(came, "never {tools:?}");
    };
    until(&["read", "mine"]).await;
    own.close().await;
    endpoints.send_replace(unsettled(None));
    files.close().await;
    fs::remove_dir_all(processes.path.join("files")).unwrap();
    // Long before any grace: its source took it back, and it does not answer.
    until(&["mine"]).await;
    let health = &sheet.snapshot().health;
    assert_eq!(health[&name("files")].state, ScenarioState::Removed);
    assert_ne!(health[&name("own")].state, ScenarioState::Removed);
    sheet.finish().await;
}

#[tokio::test]
async fn no_more_are_remembered_than_may_be_known() {
    let mut home = found::Home::new();
    home.config.refresh.max_scenarios = 2;
    let servers: Vec<_> = (0..8)
        .map(|_| Scripted::saying(Reply::tools("any", &["read"])))
        .collect();
    let daemon = home.start([]).await;
    let waits = |round: usize| {
        (0..2)
            .map(move |n| format!("s{round}{n}"))
            .collect::<Vec<_>>()
    };
    for round in 0..4 {
        let names = waits(round);
        // Each of another identity and address: nobody who was here before.
        let here = names.iter().zip(&servers[round * 2..]);
        daemon.hears(here.map(|(name, server)| announced(name, &server.url(), Some(name))));
        for name in &names {
            daemon.until_pending(name).await;
        }
    }
    let now = daemon
        .until("only the last are remembered", |now| now.health.len() <= 4)
        .await;
    let names: Vec<_> = now.health.keys().map(ToString::to_string).collect();
    assert_eq!(names, [waits(2), waits(3)].concat());
    daemon.stop().await;
}

#[tokio::test]
async fn who_waited_under_a_decided_name_and_left_is_not_listed_for_ever() {
    let mut home = found::Home::new();
    home.config.health.forget = Duration::from_millis(200);
    let mut server = Scripted::saying(Reply::tools("pantry", &["stock"]));
    let daemon = home
        .start([announced("pantry", &server.url(), Some("first"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    daemon.until_listed(&["stock"]).await;
    // Another one at its address: the yes was not for them.
    daemon.hears([announced("pantry", &server.url(), Some("second"))]);
    daemon
        .until("another one waits", |now| {
            now.health.values().any(|health| {
                health.state == ScenarioState::Pending
                    && health.party.identity.as_deref() == Some("second")
            })
        })
        .await;
    server.close().await;
    daemon.hears([]);
    let left = daemon
        .until("nobody waits any more", |now| {
            now.health
                .values()
                .all(|health| health.state != ScenarioState::Pending)
        })
        .await;
    let kept = &left.health[&name("pantry")];
    assert_eq!(
        kept.party.identity.as_deref(),
        Some("first"),
        "the decision can still be seen"
    );
    assert!(kept.trusted, "the decision can still be seen");
    daemon.stop().await;
}
