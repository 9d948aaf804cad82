//! A database that an earlier version of the program wrote is opened, and all of it is found.
//!
//! The files in `fixtures/state` are named for the program and the schema that wrote them. Each was
//! written by that program, with two scenarios, preferences, a decision, a waiting approval and a
//! running operation.

use std::fs;
use std::path::{Path, PathBuf};

use callsheet::model::{ApprovalState, OperationState, PeerIdentity, PublishedName, Settings};
use callsheet::runtime::Clock;
use callsheet::state::{Decision, Restored, sqlite};
use rusqlite::Connection;
use serde_json::Value;

use crate::support::daemon::{Daemon, Home, configured, names_of};

/// The last program that kept lists of the previous run, with triggers for them.
const SCHEMA_7: &str = "callsheet-0.1.0-schema-7.db";
/// When that file was written: what waits in it has not expired.
const THEN: &str = "2026-11-23T02:40:00Z";

/// A copy of the file as the state of `home`, with the lists that its program kept beside it.
fn copied(home: &Home) -> [PathBuf; 2] {
    let lists = [".lists", ".lists.new"]
        .map(|ending| PathBuf::from(format!("{}{ending}", home.state().display())));
    fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures/state")
            .join(SCHEMA_7),
        home.state(),
    )
    .unwrap();
    for path in &lists {
        fs::write(path, "callsheet lists\n").unwrap();
    }
    lists
}

fn version(path: &Path) -> i64 {
    Connection::open(path)
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

fn set(restored: &Restored, scope: &str, target: &str) -> Settings {
    restored
        .preferences
        .get(&scope.parse().unwrap(), &target.parse().unwrap())
        .unwrap()
        .clone()
}

#[tokio::test]
async fn everything_in_a_database_of_schema_7_is_found() {
    let home = Home::new();
    let lists = copied(&home);
    let path = home.state();
    assert_eq!(version(&path), 7);
    let store = sqlite::open(&path, Clock::system()).unwrap();
    let restored = store.load().await.unwrap();
    drop(store);

    assert_eq!(restored.findings, []);
    let manifests: Vec<_> = restored
        .manifests
        .iter()
        .map(|one| (one.scenario.as_str(), one.url.as_str()))
        .collect();
    assert_eq!(
        manifests,
        [
            ("kitchen", "http://127.0.0.1:15101/"),
            ("pantry", "http://127.0.0.1:15102/")
        ]
    );
    let kitchen: Value = serde_json::from_str(&restored.manifests[0].document).unwrap();
    assert_eq!(kitchen["tools"][0]["name"], "brew");

    assert_eq!(restored.preferences.iter().count(), 3);
    assert_eq!(
        set(&restored, "global", "tool:pantry/stock").enabled,
        Some(false)
    );
    let stir = set(&restored, "chat:7", "tool:kitchen/stir");
    assert_eq!(stir.alias, Some(PublishedName::alias("whisk").unwrap()));
    assert_eq!(stir.priority, Some(3));
    assert_eq!(
        set(&restored, "global", "scenario:kitchen").pinned,
        Some(true)
    );

    let [(noisy, ruling)] = &restored.decisions[..] else {
        panic!("{:?}", restored.decisions)
    };
    let party = PeerIdentity {
        identity: None,
        origin: Some("http://localhost:15103".into()),
    };
    assert_eq!(noisy.as_str(), "noisy");
    assert_eq!(ruling.decision, Decision::Blocked);
    assert_eq!(ruling.party, party);
    assert_eq!(ruling.source.as_deref(), Some("static"));

    let [approval] = &restored.approvals[..] else {
        panic!("{:?}", restored.approvals)
    };
    assert_eq!(approval.tool.to_string(), "kitchen/brew".to_owned());
    assert_eq!(approval.state, ApprovalState::Waiting);
    assert_eq!(&*approval.name, "brew");
    assert_eq!(approval.access, None, "it belongs to every access");
    assert_eq!(approval.arguments.get(), r#"{"cups":2}"#);
    let [operation] = &restored.operations[..] else {
        panic!("{:?}", restored.operations)
    };
    assert_eq!(operation.tool.to_string(), "pantry/restock".to_owned());
    assert_eq!(operation.state, OperationState::Running);
    assert_eq!(operation.reference.get(), r#""order-7""#);
    let mut usage: Vec<_> = restored
        .usage
        .iter()
        .map(|(tool, usage)| (tool.to_string(), usage.calls))
        .collect();
    usage.sort();
    assert_eq!(
        usage,
        [
            ("kitchen/stir".to_owned(), 1),
            ("pantry/restock".to_owned(), 1)
        ]
    );
    assert_eq!(
        restored.revision.unwrap().1,
        "2026-11-23T02:34:14.980674917Z".parse().unwrap()
    );

    // What only the earlier program used is gone.
    assert!(version(&path) > 7);
    assert!(lists.iter().all(|path| !path.exists()));
    let left = "SELECT (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'),
                       (SELECT count(*) FROM meta WHERE key = 'content'),
                       (SELECT count(*) FROM pragma_table_info('manifests') WHERE name = 'outline')";
    let left: [i64; 3] = Connection::open(&path)
        .unwrap()
        .query_row(left, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
        .unwrap();
    assert_eq!(left, [0, 0, 0]);
}

#[tokio::test]
async fn a_database_of_schema_7_is_published_before_any_scenario_answers() {
    let home = Home::new();
    copied(&home);
    let mut config = home.config(&[]);
    // Nothing listens at these ports of this address.
    let scenarios = [("kitchen", 15101), ("pantry", 15102), ("noisy", 15103)];
    config.scenarios = scenarios
        .map(|(name, port)| configured(name, ([127, 9, 9, 9], port).into()))
        .into();
    let daemon = Daemon::at(config, Clock::following(THEN.parse().unwrap())).await;
    assert_eq!(daemon.tools("").await, ["brew", "stir", "order", "restock"]);
    assert_eq!(
        daemon.tools("?chat_id=7").await,
        ["brew", "whisk", "order", "restock"]
    );
    assert_eq!(
        daemon.json("/api/v1/scenarios/noisy").await["state"],
        "blocked"
    );
    let approvals = daemon.json("/api/v1/approvals").await;
    assert_eq!(approvals["waiting"], 1);
    assert_eq!(approvals["approvals"][0]["tool"], "brew");
    let operations = daemon.json("/api/v1/operations").await;
    assert_eq!(operations["operations"][0]["tool"], "restock");
    assert_eq!(
        names_of(&daemon.json("/api/v1/tools?include_disabled=true").await).len(),
        5
    );
    assert_eq!(daemon.findings("state-repaired").await, [] as [Value; 0]);
    daemon.stop().await;
}
