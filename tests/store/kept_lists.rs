//! The lists of the run before, given out while a daemon still starts: the very same bytes, or nothing.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use callsheet::Callsheet;
use callsheet::app::Opened;
use callsheet::catalog::NamingStyle;
use callsheet::config::Config;
use callsheet::provide::ToolDefinition;
use callsheet::runtime::{Clock, Tasks};
use callsheet::state::lists;
use rusqlite::Connection;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::daemon::{Home, PATIENCE, Scenario, names_of, tool};
use crate::support::serving::{Answer, ask};

/// What is asked for, with its `Accept-Encoding`.
const ASKED: [(&str, &str); 4] = [
    ("/api/v1/tools", "identity"),
    ("/api/v1/tools?format=openai", "identity"),
    ("/api/v1/tools?chat_id=7&include_disabled=true", "identity"),
    ("/api/v1/tools", "gzip"),
];

async fn get(address: SocketAddr, (target, coding): (&str, &str)) -> Answer {
    ask(address, "GET", target, &[("accept-encoding", coding)], "").await
}

/// A daemon whose listener was opened before it was started.
struct Run {
    app: Arc<Callsheet>,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

async fn opened(config: Config) -> (Opened, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (Callsheet::builder(config).open(listener).await.unwrap(), address)
}

async fn started((opened, address): (Opened, SocketAddr)) -> Run {
    let app = Arc::new(opened.start().await.unwrap());
    let served = Arc::clone(&app);
    let serving = Tasks::new().spawn(async move { served.serve_opened().await.unwrap() });
    Run { app, address, serving }
}

impl Run {
    async fn until_tools(&self, names: &[&str]) {
        let mut reader = self.app.reader();
        let deadline = Clock::system().now() + PATIENCE;
        while names_of(&get(self.address, ASKED[0]).await.json()) != names {
            tokio::time::timeout_at(deadline, reader.changed()).await.expect("the list comes").unwrap();
        }
    }

    async fn stop(self) {
        self.app.stop();
        self.serving.await.unwrap();
        Arc::into_inner(self.app).expect("only the test and the ended server held it").finish().await;
    }
}

/// Waits until the file of lists is there and has all of these in it.
async fn kept(home: &Home, parts: &[&str]) -> Vec<u8> {
    let (clock, place) = (Clock::system(), lists::beside(&home.state()));
    let deadline = clock.now() + PATIENCE;
    loop {
        let bytes = fs::read(&place).unwrap_or_default();
        let head = String::from_utf8_lossy(&bytes).into_owned();
        if !bytes.is_empty() && parts.iter().all(|part| head.contains(part)) {
            return bytes;
        }
        assert!(clock.now() < deadline, "{} never had {parts:?}", place.display());
        clock.sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A stopped daemon whose lists are kept, the scenario that it asks, its configuration, and what it answered last.
async fn stopped() -> (Home, Scenario, Config, Vec<Answer>) {
    let home = Home::new();
    let kitchen = Scenario::start("kitchen", [tool("brew").category("drinks"), tool("stir")]).await;
    let config = home.config(&[&kitchen]);
    let first = opened(config.clone()).await;
    assert!(!first.0.answers(), "there is nothing yet");
    let run = started(first).await;
    run.until_tools(&["brew", "stir"]).await;
    let off = json!({"scope": "chat:7", "target": "tool:kitchen/stir", "enabled": false}).to_string();
    let json = [("content-type", "application/json")];
    assert_eq!(ask(run.address, "PUT", "/api/v1/preferences", &json, &off).await.status, 200);
    let mut answers = Vec::new();
    for asked in ASKED {
        answers.push(get(run.address, asked).await);
    }
    kept(&home, &["format=openai", "chat_id=7", "gzip"]).await;
    run.stop().await;
    (home, kitchen, config, answers)
}

/// The same headers and bytes, but for what each answer has of its own.
fn assert_same(answer: &Answer, before: &Answer) {
    let plain = |answer: &Answer| {
        let mut headers = answer.headers.clone();
        headers.remove("date");
        let mut headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        headers.sort();
        (answer.status, headers)
    };
    assert_eq!(plain(answer), plain(before));
    assert!(answer.body == before.body, "{:?}", answer.body.len());
}

#[tokio::test]
async fn a_list_that_is_too_large_to_be_prepared_whole_is_kept_as_it_was_sent() {
    let home = Home::new();
    let long = |name: String| ToolDefinition::new(name, "It does what its name says. ".repeat(280)).unwrap();
    let start = |name: &'static str| Scenario::start(name, (0..90).map(move |at| long(format!("{name}_{at:02}"))));
    let mut scenarios = [start("cellar").await, start("kitchen").await, start("library").await];
    let mut config = home.config(&scenarios.each_ref());
    config.views.max_bytes = 1 << 20;
    let run = started(opened(config.clone()).await).await;
    let names = ["cellar", "kitchen", "library"].map(|name| (0..90).map(move |at| format!("{name}_{at:02}")));
    let names: Vec<String> = names.into_iter().flatten().collect();
    run.until_tools(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let before = get(run.address, ASKED[0]).await;
    assert!(before.body.len() > 2 << 20, "{}", before.body.len());
    kept(&home, &["library_89"]).await;
    run.stop().await;
    for scenario in &mut scenarios {
        scenario.stop().await;
    }
    let (opened, address) = opened(config).await;
    assert!(opened.answers());
    assert_same(&get(address, ASKED[0]).await, &before);
    // What it promised is what the store gives.
    let run = started((opened, address)).await;
    assert_same(&get(address, ASKED[0]).await, &before);
    run.stop().await;
}

#[tokio::test]
async fn what_was_asked_for_lately_is_answered_before_anything_is_started() {
    let (_home, mut kitchen, config, before) = stopped().await;
    kitchen.stop().await;
    let (opened, address) = opened(config).await;
    assert!(opened.answers());
    for (asked, before) in ASKED.into_iter().zip(&before) {
        assert_same(&get(address, asked).await, before);
        let known = [("accept-encoding", asked.1), ("if-none-match", before.header("etag"))];
        let again = ask(address, "GET", asked.0, &known, "").await;
        assert_eq!((again.status, again.body.len()), (304, 0));
        assert_eq!(again.header("etag"), before.header("etag"));
    }
    // Everything else waits.
    let others = ["/api/v1/tools?format=anthropic", "/api/v1/tools/brew", "/api/v1/scenarios", "/healthz"];
    let tasks = Tasks::new();
    let others = others.map(|target| tasks.spawn(async move { ask(address, "GET", target, &[], "").await }));
    let foreign =
        tasks.spawn(async move { ask(address, "GET", "/api/v1/tools", &[("host", "evil.example")], "").await });
    assert_eq!(get(address, ASKED[0]).await.status, 200);
    assert!(others.iter().all(|other| !other.is_finished()) && !foreign.is_finished());

    let run = started((opened, address)).await;
    for other in others {
        assert_eq!(tokio::time::timeout(PATIENCE, other).await.unwrap().unwrap().status, 200);
    }
    assert_eq!(tokio::time::timeout(PATIENCE, foreign).await.unwrap().unwrap().status, 403);
    for (asked, before) in ASKED.into_iter().zip(&before) {
        assert_same(&get(address, asked).await, before);
    }
    run.stop().await;
}

#[tokio::test]
async fn what_was_kept_of_another_configuration_is_not_given_out() {
    let (home, kitchen, config, _) = stopped().await;
    let changes: [fn(&mut Config); 4] = [
        |config| config.naming = NamingStyle::Always,
        |config| config.scenarios.clear(),
        |config| config.discovery.mdns.id = Some("another-daemon".to_owned()),
        |config| config.protocol.accept = callsheet::model::Accept::read(">=1.0, <1.5").unwrap(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut other = config.clone();
        change(&mut other);
        assert!(!opened(other).await.0.answers(), "change {at}");
    }
    let mut moved = config.clone();
    moved.server.max_body += 1;
    assert!(opened(moved).await.0.answers(), "it changes no list");
    drop((home, kitchen));
}

#[tokio::test]
async fn what_was_changed_since_is_not_hidden_by_what_was_kept() {
    let (home, kitchen, config, _) = stopped().await;
    let place = lists::beside(&home.state());
    let old = fs::read(&place).unwrap();
    // By the daemon itself.
    let run = started(opened(config.clone()).await).await;
    let off = json!({"scope": "global", "target": "tool:kitchen/stir", "enabled": false}).to_string();
    let json = [("content-type", "application/json")];
    assert_eq!(ask(run.address, "PUT", "/api/v1/preferences", &json, &off).await.status, 200);
    run.stop().await;
    fs::write(&place, &old).unwrap();
    let (again, address) = opened(config.clone()).await;
    assert!(!again.answers());
    let run = started((again, address)).await;
    assert_eq!(names_of(&get(run.address, ASKED[0]).await.json()), ["brew"]);
    let bytes = kept(&home, &[]).await;
    if bytes == old {
        // Written anew within a moment.
        let (clock, deadline) = (Clock::system(), Clock::system().now() + PATIENCE);
        while fs::read(&place).unwrap() == old {
            assert!(clock.now() < deadline, "never kept again");
            clock.sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    run.stop().await;

    // By hand, in each of the tables.
    for change in [
        "UPDATE manifests SET document = replace(document, '\"brew\"', '\"steep\"')",
        "UPDATE preferences SET enabled = 1 WHERE scope = 'global'",
        "DELETE FROM preferences WHERE scope = 'global'",
        "INSERT INTO decisions (scenario, decision, updated_at) VALUES ('kitchen', 'blocked', '2026-01-01T00:00:00Z')",
        "DELETE FROM decisions",
        "DELETE FROM manifests",
    ] {
        let (was, database) = (fs::read(&place).unwrap(), Connection::open(home.state()).unwrap());
        // As if the lists had been kept of what is there now.
        let name: String =
            database.query_row("SELECT value FROM meta WHERE key = 'content'", [], |row| row.get(0)).unwrap();
        assert_eq!(database.execute(change, []).unwrap(), 1, "{change}");
        let after: String =
            database.query_row("SELECT value FROM meta WHERE key = 'content'", [], |row| row.get(0)).unwrap();
        assert_ne!(name, after, "{change}");
        drop(database);
        assert!(!opened(config.clone()).await.0.answers(), "{change}");
        assert!(fs::read(&place).unwrap() == was, "nobody mends it");
    }
    drop(kitchen);
}

#[tokio::test]
async fn a_torn_file_is_passed_over_and_written_anew() {
    let (home, kitchen, config, before) = stopped().await;
    let place: PathBuf = lists::beside(&home.state());
    let whole = fs::read(&place).unwrap();
    for at in [0, 20, 60, whole.len() / 2, whole.len() - 1] {
        fs::write(&place, &whole[..at]).unwrap();
        assert!(!opened(config.clone()).await.0.answers(), "cut to {at}");
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&place, &changed).unwrap();
        assert!(!opened(config.clone()).await.0.answers(), "byte {at}");
    }
    let run = started(opened(config.clone()).await).await;
    assert_same(&get(run.address, ASKED[0]).await, &before[0]);
    kept(&home, &["callsheet lists"]).await;
    run.stop().await;
    fs::remove_file(&place).unwrap();
    assert!(!opened(config).await.0.answers(), "it is gone");
    drop(kitchen);
}
