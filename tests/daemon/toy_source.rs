//! The recipe for a source, followed outside of callsheet: a declaration, a run, and no other code
//! that knows it.

use std::path::Path;
use std::sync::Arc;

use callsheet::Callsheet;
use callsheet::catalog::ViewQuery;
use callsheet::config::{Config, StaticScenario};
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceTrust};
use callsheet::model::{
    FindingCode, Health, ScenarioName, ScenarioState, SourceAbsence, SourceId, SourceSpec, Target,
};
use callsheet::runtime::Stop;
use callsheet::runtime::tasks::Finish;
use callsheet::state::Decision;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use url::Url;

use crate::support::scripted::{PATIENCE, Reply, Scripted};

/// A list on paper. It comes after the configuration and before the network.
const PAPER: SourceId = SourceId::new(&SourceSpec {
    name: "paper",
    rank: 35,
    found: "on paper",
    absence: SourceAbsence::Decision("it was crossed out"),
    is_announced: false,
    has_entries: false,
});

/// The scenarios that the paper names, with their addresses.
type Names = Vec<(&'static str, Url)>;

struct Paper(watch::Receiver<Names>, SourceTrust);

impl Source for Paper {
    fn id(&self) -> SourceId {
        PAPER
    }

    fn run(
        mut self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        Box::pin(async move {
            loop {
                let endpoint = |named: &(&'static str, Url)| {
                    let endpoint = Endpoint {
                        name: named.0.parse().ok(),
                        ..Endpoint::at(named.1.clone(), self.1)
                    };
                    (EndpointId(named.0.into()), endpoint)
                };
                let endpoints = self.0.borrow_and_update().iter().map(endpoint).collect();
                out.send_replace(EndpointSet {
                    initial_scan_done: true,
                    endpoints,
                    findings: Vec::new(),
                });
                tokio::select! {
                    () = stop.wait() => return Ok(()),
                    Ok(()) = self.0.changed() => {}
                }
            }
        })
    }
}

fn desk() -> Reply {
    Reply::tools("desk", &["write"]).header("Cache-Control: max-age=3600")
}

/// A daemon with this paper and these configured scenarios.
async fn started(folder: &Path, paper: Option<Paper>, configured: &[(&str, Url)]) -> Callsheet {
    let mut config = Config::for_state(folder.join("state.db"));
    config.scenarios = configured
        .iter()
        .map(|entry| StaticScenario {
            name: entry.0.parse().unwrap(),
            target: Target::at(entry.1.clone()),
            protocol: None,
            sleep_after: None,
        })
        .collect();
    let builder = Callsheet::builder(config);
    match paper {
        Some(paper) => builder.source(paper).start().await.unwrap(),
        None => builder.start().await.unwrap(),
    }
}

/// The health of a scenario once it is so.
async fn health(app: &Callsheet, name: &str, fits: impl Fn(&Health) -> bool) -> Arc<Health> {
    let name: ScenarioName = name.parse().unwrap();
    let mut reader = app.reader();
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(health) = reader
                .snapshot()
                .health
                .get(&name)
                .filter(|health| fits(health))
            {
                return Arc::clone(health);
            }
            reader.changed().await.unwrap();
        }
    });
    found
        .await
        .unwrap_or_else(|_| panic!("{:#?}", app.snapshot().health.get(&name)))
}

fn names(app: &Callsheet) -> Vec<String> {
    app.view(&ViewQuery::default())
        .tools()
        .map(|tool| tool.name.to_string())
        .collect()
}

#[tokio::test]
async fn a_source_is_added_by_its_declaration_alone() {
    let folder = tempfile::tempdir().unwrap();
    let on_paper = Scripted::saying(desk());
    let configured = Scripted::saying(desk());
    let (write, read) = watch::channel(vec![("desk", on_paper.url()), ("shelf", on_paper.url())]);
    let paper = Paper(read, SourceTrust::Trusted);
    let app = started(folder.path(), Some(paper), &[("shelf", configured.url())]).await;

    let found = health(&app, "desk", |health| health.state == ScenarioState::Live).await;
    assert_eq!(found.source, PAPER);
    assert_eq!(found.source.to_string(), "paper");
    // The configuration comes first.
    let of_both = health(&app, "shelf", |health| health.state == ScenarioState::Live).await;
    assert_eq!(of_both.source, SourceId::STATIC);
    assert_eq!(of_both.url.as_deref(), Some(configured.url().as_str()));

    write.send_replace(Vec::new());
    let removed = health(&app, "desk", |health| {
        health.state == ScenarioState::Removed
    })
    .await;
    assert_eq!(removed.reason, "it was crossed out");
    assert_eq!(names(&app), ["write"]);
    assert_eq!(app.finish().await, Finish::Clean);
}

#[tokio::test]
async fn what_an_operator_decided_outlives_a_program_without_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Scripted::saying(desk());
    let paper = || {
        let (write, read) = watch::channel(vec![("desk", desk.url())]);
        (write, Paper(read, SourceTrust::Untrusted))
    };
    let (_kept, first) = paper();
    let app = started(folder.path(), Some(first), &[]).await;
    health(&app, "desk", |health| {
        health.state == ScenarioState::Pending
    })
    .await;
    app.engine()
        .decide("desk".parse().unwrap(), Some(Decision::Trusted))
        .await
        .unwrap();
    health(&app, "desk", |health| health.state == ScenarioState::Live).await;
    assert_eq!(app.finish().await, Finish::Clean);

    let app = started(folder.path(), None, &[]).await;
    let without = health(&app, "desk", |_| true).await;
    assert_eq!(without.source, SourceId::UNKNOWN);
    let damage = app
        .snapshot()
        .findings
        .iter()
        .filter(|finding| finding.code == FindingCode::StateRepaired)
        .count();
    assert_eq!(damage, 0, "{:#?}", app.snapshot().findings);
    assert_eq!(app.finish().await, Finish::Clean);

    let (_kept, again) = paper();
    let app = started(folder.path(), Some(again), &[]).await;
    let back = health(&app, "desk", |health| health.state == ScenarioState::Live).await;
    assert!(back.trusted && back.source == PAPER, "{back:#?}");
    assert_eq!(names(&app), ["write"]);
    assert_eq!(app.finish().await, Finish::Clean);
}
