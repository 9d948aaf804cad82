//! callsheet inside a program: its own tools, sources and protocols beside everything else.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use callsheet::catalog::ViewQuery;
use callsheet::config::{Config, StaticScenario};
use callsheet::discovery::{Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceTrust};
use callsheet::events::{Event, Next, SubscribeRequest};
use callsheet::model::{ScenarioState, SourceId, Target};
use callsheet::native::{NativeError, NativeTools};
use callsheet::protocols::{
    ConnectError, Fits, ListError, ListRequest, Listing, Protocol, ProtocolId, Session,
    tool_discovery,
};
use callsheet::provide::ToolDefinition;
use callsheet::runtime::tasks::Finish;
use callsheet::runtime::{Clock, Stop};
use callsheet::transports::Transports;
use callsheet::transports::http::Upstream;
use callsheet::{Callsheet, app::Builder};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use url::Url;

use crate::support::assert_empty;
use crate::support::upstream_server::{UpstreamServer, answer};

/// How long anything that is waited for may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Names one address.
struct One(&'static str, Url, Option<String>);

impl Source for One {
    fn id(&self) -> SourceId {
        SourceId::EMBEDDED
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        Box::pin(async move {
            let Self(name, url, protocol) = *self;
            let endpoint = Endpoint {
                name: name.parse().ok(),
                protocol,
                ..Endpoint::at(url, SourceTrust::Trusted)
            };
            let endpoints = [(EndpointId(name.into()), endpoint)].into();
            out.send_replace(EndpointSet {
                initial_scan_done: true,
                endpoints,
                findings: Vec::new(),
            });
            stop.wait().await;
            Ok(())
        })
    }
}

/// A family whose scenarios answer the names of their tools, one on a line.
struct Lines;

impl Protocol for Lines {
    fn id(&self) -> ProtocolId {
        "lines"
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Http(_) => Fits::Probe { at: "/names" },
            Target::Stdio(_) | Target::InProcess(_) | Target::Bundle(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        Box::pin(async move {
            let Target::Http(target) = target else {
                return Err(ConnectError::NotThisProtocol("no HTTP".into()));
            };
            Ok(Arc::new(Names(transports.http(target)?)) as _)
        })
    }
}

/// One scenario of that family.
struct Names(Upstream);

impl Session for Names {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            let answer = self.0.get("/names", None).await?;
            let text = String::from_utf8_lossy(&answer.body);
            let tools: Vec<_> = text
                .lines()
                .map(|name| json!({ "name": name, "metadata": { "enabled_by_default": true } }))
                .collect();
            let manifest = json!({ "protocol_version": "1.0", "scenario": { "name": "lines" }, "tools": tools });
            let decoded = tool_discovery::decode(manifest.to_string().as_bytes(), &request.accept)?;
            let manifest = decoded.manifest;
            let findings = decoded.findings;
            let quarantined = decoded.quarantined;
            Ok(Listing::Manifest {
                manifest,
                findings,
                quarantined,
                validity: self.0.freshness(&answer).into(),
            })
        })
    }
}

fn dice() -> NativeTools {
    let definition = ToolDefinition::new("throw", "Throws one die").unwrap();
    NativeTools::new("dice", "Throws dice", Clock::system())
        .unwrap()
        .tool(definition, |given: Value| async move {
            let sides = given["sides"].as_u64().ok_or("`sides` is not a number")?;
            Ok::<_, &str>(json!(sides))
        })
}

fn builder(folder: &TempDir) -> Builder {
    Callsheet::builder(Config::for_state(folder.path().join("state.db")))
}

/// The published names once these are in the list.
async fn listed(app: &Callsheet, wanted: &[&str]) {
    let mut reader = app.reader();
    let names = || -> Vec<String> {
        app.view(&ViewQuery::default())
            .tools()
            .map(|tool| tool.name.to_string())
            .collect()
    };
    let ended = tokio::time::timeout(PATIENCE, async {
        while names() != wanted {
            reader.changed().await.unwrap();
        }
    });
    assert!(
        ended.await.is_ok(),
        "{:?} instead of {wanted:?}; findings {:?}",
        names(),
        app.snapshot().findings
    );
}

async fn names_server() -> UpstreamServer {
    UpstreamServer::answering(|request| match request.target() {
        "/names" => answer("200 OK", &["Connection: close"], b"read\nwrite\n"),
        _ => answer("404 Not Found", &["Connection: close"], b"nothing"),
    })
    .await
}

#[tokio::test]
async fn native_tools_are_listed_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let tools = dice();
    let app = builder(&folder)
        .native(tools.clone())
        .start()
        .await
        .unwrap();
    listed(&app, &["throw"]).await;
    let id = "dice/throw".parse().unwrap();
    assert_eq!(
        app.run_native(&id, json!({ "sides": 6 })).await,
        Ok(json!(6))
    );
    let failed = app.run_native(&id, json!({})).await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "`throw` failed: `sides` is not a number"
    );
    let unknown = app
        .run_native(&"dice/roll".parse().unwrap(), json!({}))
        .await
        .unwrap_err();
    assert!(matches!(unknown, NativeError::UnknownTool(..)), "{unknown}");
    let elsewhere = app
        .run_native(&"cards/deal".parse().unwrap(), json!({}))
        .await
        .unwrap_err();
    assert!(
        matches!(elsewhere, NativeError::UnknownScenario(_)),
        "{elsewhere}"
    );

    let health = app.snapshot().health.values().next().unwrap().clone();
    assert_eq!(health.state, ScenarioState::Live);
    assert_eq!(health.source, SourceId::EMBEDDED);
    assert_eq!(health.url.as_deref(), Some("local:dice"));

    tools.add(
        ToolDefinition::new("count", "Counts dice").unwrap(),
        |_: Value| async { Ok::<_, Infallible>(json!(1)) },
    );
    app.engine()
        .refresh(vec!["dice".parse().unwrap()])
        .await
        .unwrap();
    listed(&app, &["count", "throw"]).await;
    assert_eq!(app.finish().await, Finish::Clean);
}

#[tokio::test]
async fn native_tools_are_gone_when_the_next_program_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let app = builder(&folder).native(dice()).start().await.unwrap();
    listed(&app, &["throw"]).await;
    app.finish().await;
    let app = builder(&folder).start().await.unwrap();
    assert_eq!(
        app.snapshot().catalog.entries().count(),
        0,
        "nothing of it was stored"
    );
    app.finish().await;
}

#[tokio::test]
async fn a_source_and_a_protocol_of_the_program_work_like_ours() {
    let folder = tempfile::tempdir().unwrap();
    let server = names_server().await;
    for protocol in [Some("lines".to_owned()), None] {
        let source = One("files", server.url(), protocol);
        let app = builder(&folder)
            .source(source)
            .protocol(Lines)
            .start()
            .await
            .unwrap();
        listed(&app, &["read", "write"]).await;
        let health = app.snapshot().health.values().next().unwrap().clone();
        assert_eq!(health.protocol, Some("lines"));
        assert_eq!(health.source, SourceId::EMBEDDED);
        app.finish().await;
    }
}

#[tokio::test]
async fn what_the_program_names_no_other_source_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let ours = names_server().await;
    let theirs = names_server().await;
    let mut config = Config::for_state(folder.path().join("state.db"));
    config.scenarios = vec![StaticScenario {
        name: "files".parse().unwrap(),
        target: callsheet::model::Target::at(theirs.url()),
        protocol: None,
        sleep_after: None,
    }];
    let app = Callsheet::builder(config)
        .source(One("files", ours.url(), None))
        .protocol(Lines)
        .native(dice())
        .start()
        .await
        .unwrap();
    listed(&app, &["throw", "read", "write"]).await;
    let files = app
        .snapshot()
        .health
        .get(&"files".parse::<callsheet::model::ScenarioName>().unwrap())
        .unwrap()
        .clone();
    assert_eq!(files.url.as_deref(), Some(ours.url().as_str()));
    assert_empty!(theirs.requests());
    app.finish().await;
}

#[tokio::test]
async fn a_subscriber_hears_how_things_are_and_what_changes() {
    let folder = tempfile::tempdir().unwrap();
    let tools = dice();
    let app = builder(&folder)
        .native(tools.clone())
        .start()
        .await
        .unwrap();
    listed(&app, &["throw"]).await;
    let mut subscription = app.subscribe(SubscribeRequest::default()).await.unwrap();
    let Next::Message(first) = subscription.next().await else {
        panic!("ended")
    };
    let Event::Snapshot(overview) = &first.event else {
        panic!("{first:?}")
    };
    assert_eq!(
        overview
            .names
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["throw"]
    );

    tools.add(
        ToolDefinition::new("count", "Counts dice").unwrap(),
        |_: Value| async { Ok::<_, Infallible>(json!(1)) },
    );
    app.engine()
        .refresh(vec!["dice".parse().unwrap()])
        .await
        .unwrap();
    let change = tokio::time::timeout(PATIENCE, async {
        loop {
            let Next::Message(message) = subscription.next().await else {
                panic!("ended")
            };
            if let Event::Catalog(change) = &message.event {
                return change
                    .difference
                    .added
                    .iter()
                    .map(|named| named.name.to_string())
                    .collect::<Vec<_>>();
            }
        }
    });
    assert_eq!(change.await.unwrap(), ["count"]);
    app.finish().await;
}

#[tokio::test]
async fn it_runs_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let app = builder(&folder).start().await.unwrap();
    assert_eq!(app.run_until(async {}).await, Finish::Clean);
    let app = builder(&folder).start().await.unwrap();
    app.stop();
    assert_eq!(app.run_until(std::future::pending()).await, Finish::Clean);
}
