//! The log of calls and states: it outlives restarts and recoveries, within its bounds, and no call
//! depends on it.

use std::fs;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::calls::{LogEntry, LogPage, LogWanted};
use callsheet::config::Config;
use callsheet::model::{ScenarioName, ScenarioState};
use callsheet::runtime::Clock;
use callsheet::state::{Decision, LogKind, Restored, StateError, StateStore, Write, sqlite};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::support::callee::{Callee, PATIENCE, answer, done, manifest, tool};
use crate::support::house::{House, request};
use crate::support::scrape::Scrape;
use crate::support::serving::ask;

/// A tool that succeeds or fails, as its arguments say.
async fn files() -> Callee {
    Callee::start(manifest("files", &[tool("read")]), |ran| async move {
        match ran.arguments["fail"].as_str() {
            None => done(&json!("fine")),
            Some(why) => answer(
                200,
                &json!({"success": false, "error": why, "code": "broken"}),
            ),
        }
    })
    .await
}

fn page(house: &House, kind: LogKind) -> LogPage {
    house.app.calls().log(&LogWanted {
        kinds: vec![kind],
        limit: 100,
        ..LogWanted::default()
    })
}

/// The outcomes of the calls in the log, with their errors.
fn outcomes(house: &House) -> Vec<(String, Option<String>)> {
    let of = |line: &LogEntry| match line {
        LogEntry::Call(call) => (call.call.outcome.to_string(), call.call.error.clone()),
        _ => panic!("only calls were wanted"),
    };
    page(house, LogKind::Call).lines.iter().map(of).collect()
}

/// The states in the log, the oldest first.
fn states(house: &House) -> Vec<Option<ScenarioState>> {
    let of = |line: &LogEntry| match line {
        LogEntry::State(state) => state.change.to,
        _ => panic!("only states were wanted"),
    };
    page(house, LogKind::State).lines.iter().map(of).collect()
}

#[tokio::test]
async fn a_restart_keeps_calls_with_their_errors_and_states_in_order() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    house.call("read", &json!({})).await.unwrap();
    house
        .call("read", &json!({"fail": "no such page"}))
        .await
        .unwrap();
    let before = page(&house, LogKind::Call);
    let house = house.restart().await;
    let expected = [
        ("ok".to_owned(), None),
        ("failed".to_owned(), Some("no such page".to_owned())),
    ];
    assert_eq!(outcomes(&house), expected);
    house.call("read", &json!({})).await.unwrap();
    let after = page(&house, LogKind::Call);
    assert_eq!(
        after.lines[1].line(),
        before.lines[1].line(),
        "a line keeps its number"
    );
    assert!(after.lines[2].line() > before.last, "numbers go on");
    assert!(states(&house).contains(&Some(ScenarioState::Live)));
    house.finish().await;
}

#[tokio::test]
async fn a_call_has_the_id_under_which_its_caller_followed_it_also_after_a_restart() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let address = house.serve().await;
    let json = [("content-type", "application/json")];
    let call = json!({"tool_name": "read", "arguments": {}, "call_id": "my-call-0001"}).to_string();
    assert_eq!(
        ask(address, "POST", "/api/v1/tools/execute", &json, &call)
            .await
            .status,
        200
    );
    house.call("read", &json!({})).await.unwrap();
    let ids = async |address| {
        let log = ask(address, "GET", "/api/v1/log?kind=call", &[], "")
            .await
            .json();
        log["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["call"]["call_id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(address).await, [json!("my-call-0001"), json!(null)]);
    let house = house.restart_with(|_| ()).await;
    let address = house.serve().await;
    assert_eq!(ids(address).await, [json!("my-call-0001"), json!(null)]);
    house.finish().await;
}

#[tokio::test]
async fn an_outage_stays_in_the_log_after_the_recovery_and_a_restart() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let name: ScenarioName = "files".parse().unwrap();
    for decision in [Decision::Blocked, Decision::Trusted] {
        house
            .app
            .engine()
            .decide(name.clone(), Some(decision))
            .await
            .unwrap();
    }
    house
        .until("live again", |snapshot| {
            snapshot.health[&name].state == ScenarioState::Live
        })
        .await;
    let house = house.restart().await;
    let states = states(&house);
    let blocked = states
        .iter()
        .position(|state| *state == Some(ScenarioState::Blocked))
        .unwrap();
    assert!(
        states[blocked..].contains(&Some(ScenarioState::Live)),
        "{states:?}"
    );
    house.finish().await;
}

#[tokio::test]
async fn bounds_hold_by_number_and_zero_keeps_no_call_on_disk_either() {
    let callee = files().await;
    let house = House::with(&[("files", callee.url())], |config| config.calls.recent = 2).await;
    for marker in ["marker-one", "marker-two", "marker-three"] {
        house.call("read", &json!({"fail": marker})).await.unwrap();
    }
    assert_eq!(outcomes(&house).len(), 2);
    let path = house.folder().join("state.db");
    let house = house.restart_with(|config| config.calls.recent = 0).await;
    assert!(outcomes(&house).is_empty());
    house
        .call("read", &json!({"fail": "marker-four"}))
        .await
        .unwrap();
    let folder = house.close().await;
    let stored = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(
        !stored.contains("marker-"),
        "a deleted call is still in the file"
    );
    drop(folder);
}

#[tokio::test]
async fn what_is_older_than_the_log_keeps_goes_from_the_disk_too_without_another_call() {
    let callee = files().await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.calls.log_keep = Duration::from_millis(1);
    })
    .await;
    house.call("read", &json!({})).await.unwrap();
    let stored = stored_lines(&house);
    until("no line is left", || {
        outcomes(&house).is_empty()
            && stored("SELECT count(*) FROM log").is_some_and(|lines| lines == 0)
    })
    .await;
    house.finish().await;
}

/// A reader of numbers from the database of a running daemon.
fn stored_lines(house: &House) -> impl Fn(&str) -> Option<i64> + use<> {
    let path = house.folder().join("state.db");
    move |query| {
        let database = rusqlite::Connection::open(&path).ok()?;
        database.busy_timeout(Duration::from_secs(20)).ok()?;
        database.query_row(query, [], |row| row.get(0)).ok()
    }
}

/// Waits until something holds.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let clock = Clock::system();
    let deadline = clock.now() + PATIENCE;
    while !holds() {
        assert!(clock.now() < deadline, "{what}");
        clock.sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn numbers_go_on_after_all_lines_were_deleted_and_readers_find_them_by_number() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let address = house.serve().await;
    for _ in 0..3 {
        house.call("read", &json!({})).await.unwrap();
    }
    let get = async |path: &str| ask(address, "GET", path, &[], "").await.json();
    let first = get("/api/v1/log?kind=call&limit=2").await;
    assert_eq!(first["last_call"], 3, "{first}");
    let last = first["last"].as_u64().unwrap();
    let line = first["lines"][0]["line"].as_u64().unwrap();
    assert_eq!(first["more"], true, "{first}");
    let earlier = get(&format!("/api/v1/log?kind=call&before={line}")).await;
    assert_eq!(
        earlier["lines"].as_array().map(Vec::len),
        Some(1),
        "{earlier}"
    );
    assert_eq!(earlier["more"], false, "{earlier}");
    let later = get(&format!("/api/v1/log?kind=call&after={line}")).await;
    assert_eq!(later["lines"].as_array().map(Vec::len), Some(1), "{later}");
    let far = get("/api/v1/log?after=9007199254740991").await;
    assert_eq!(far["lines"].as_array().map(Vec::len), Some(0), "{far}");
    let refused = ask(
        address,
        "GET",
        "/api/v1/log?before=9007199254740992",
        &[],
        "",
    )
    .await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let house = house
        .restart_with(|config| {
            config.calls.recent = 0;
            config.calls.log_states = 0;
        })
        .await;
    let house = house.restart().await;
    house.call("read", &json!({})).await.unwrap();
    let page = page(&house, LogKind::Call);
    assert_eq!(page.last_call, 4);
    assert_eq!(page.lines.len(), 1);
    assert!(page.lines[0].line() > last);
    house.finish().await;
}

#[tokio::test]
async fn changes_of_states_are_kept_up_to_their_own_number() {
    let callee = files().await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.calls.log_states = 2;
    })
    .await;
    let name: ScenarioName = "files".parse().unwrap();
    house.call("read", &json!({})).await.unwrap();
    for decision in [Decision::Blocked, Decision::Trusted, Decision::Blocked] {
        house
            .app
            .engine()
            .decide(name.clone(), Some(decision))
            .await
            .unwrap();
    }
    let latest = Some(ScenarioState::Blocked);
    until("the last change is in the log", || {
        states(&house).last() == Some(&latest)
    })
    .await;
    assert_eq!(states(&house).len(), 2);
    assert_eq!(
        outcomes(&house).len(),
        1,
        "calls have a number of their own"
    );
    let house = house
        .restart_with(|config| config.calls.log_states = 0)
        .await;
    assert!(states(&house).is_empty());
    let stored = stored_lines(&house);
    until("no state is stored", || {
        stored("SELECT count(*) FROM log WHERE kind = 'state'") == Some(0)
    })
    .await;
    house.finish().await;
}

#[tokio::test]
async fn calls_do_not_wait_for_a_store_that_is_blocked_and_lines_without_room_are_counted() {
    let callee = files().await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.calls.recent = 10_000;
    })
    .await;
    let address = house.serve().await;
    let mut database = rusqlite::Connection::open(house.folder().join("state.db")).unwrap();
    database.busy_timeout(Duration::from_secs(20)).unwrap();
    let blocks = database
        .transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
        .unwrap();
    for _ in 0..5 {
        house.call("read", &json!({})).await.unwrap();
    }
    assert_eq!(
        outcomes(&house).len(),
        5,
        "the log in memory has them at once"
    );
    // More than can wait to be stored.
    for _ in 0..5_000 {
        assert_eq!(
            house.refusal(request("no-such-tool", &json!({}))).await,
            "unknown_tool"
        );
    }
    let log = ask(address, "GET", "/api/v1/log?limit=1", &[], "")
        .await
        .json();
    assert!(log["dropped"].as_u64().unwrap() > 0, "{log}");
    let scrape =
        Scrape::parse(&ask(address, "GET", "/metrics", &[("accept", "text/plain")], "").await);
    assert!(scrape.value("callsheet_log_lines_total{outcome=\"dropped\"}") > 0.0);
    let stored = stored_lines(&house);
    drop(blocks);
    until("what waited is stored", || {
        stored("SELECT count(*) FROM log WHERE kind = 'call'") > Some(1_000)
    })
    .await;
    house.finish().await;
}

#[tokio::test]
async fn calls_go_on_while_the_log_cannot_be_stored_and_a_finding_says_so() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let address = house.serve().await;
    let database = rusqlite::Connection::open(house.folder().join("state.db")).unwrap();
    database.busy_timeout(Duration::from_secs(20)).unwrap();
    database.execute_batch("DROP TABLE log").unwrap();
    house.call("read", &json!({})).await.unwrap();
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let scrape =
            Scrape::parse(&ask(address, "GET", "/metrics", &[("accept", "text/plain")], "").await);
        if scrape.value("callsheet_log_lines_total{outcome=\"failed\"}") >= 1.0 {
            break;
        }
        assert!(Clock::system().now() < deadline, "no line failed");
    }
    let findings = ask(address, "GET", "/api/v1/findings", &[], "")
        .await
        .json()
        .to_string();
    assert!(
        findings.contains("the log of calls and states cannot be stored"),
        "{findings}"
    );
    let log = ask(address, "GET", "/api/v1/log?kind=call", &[], "")
        .await
        .json();
    assert_eq!(log["lines"][0]["call"]["outcome"], "ok", "{log}");
    assert!(log["dropped"].as_u64().unwrap() >= 1, "{log}");
    house.call("read", &json!({})).await.unwrap();
    house.finish().await;
}

#[tokio::test]
async fn arguments_and_results_are_kept_only_where_the_operator_says_so() {
    const TOKEN: &str = "0123456789abcdef-topsecret";
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let marked = json!({"path": format!("marker-{}", "x".repeat(100))});
    house.call("read", &marked).await.unwrap();
    let address = house.serve().await;
    let off = ask(address, "GET", "/api/v1/log?kind=call", &[], "")
        .await
        .json();
    assert_eq!(off["payloads"], "off", "{off}");
    assert!(off["lines"][0].get("payload").is_none(), "{off}");

    let keeping = |config: &mut callsheet::config::Config| {
        config.calls.log_payloads = 40;
        config.server.operator_token = Some(callsheet::model::Secret::new(TOKEN));
    };
    let house = house.restart_with(keeping).await;
    house.call("read", &marked).await.unwrap();
    let house = house.restart_with(keeping).await;
    let address = house.serve().await;
    for headers in [
        &[][..],
        &[("authorization", "Bearer 0123456789abcdef-hash")],
    ] {
        let withheld = ask(address, "GET", "/api/v1/log?kind=call", headers, "")
            .await
            .json();
        assert_eq!(withheld["payloads"], "withheld", "{withheld}");
        assert!(withheld["lines"][1].get("payload").is_none(), "{withheld}");
        assert!(!withheld.to_string().contains("marker-"), "{withheld}");
    }
    let bearer = format!("Bearer {TOKEN}");
    let shown = ask(
        address,
        "GET",
        "/api/v1/log?kind=call",
        &[("authorization", &bearer)],
        "",
    )
    .await
    .json();
    assert_eq!(shown["payloads"], "shown", "{shown}");
    assert!(
        shown["lines"][0].get("payload").is_none(),
        "it was not kept then: {shown}"
    );
    let text = marked.to_string();
    let arguments = json!({"text": &text[..40], "bytes": text.len(), "cut": true});
    let result = json!({"text": "\"fine\"", "bytes": 6, "cut": false});
    assert_eq!(
        shown["lines"][1]["payload"],
        json!({"arguments": arguments, "result": result}),
        "{shown}"
    );
    let calls = ask(
        address,
        "GET",
        "/api/v1/calls",
        &[("authorization", &bearer)],
        "",
    )
    .await
    .json();
    assert!(!calls.to_string().contains("marker-"), "{calls}");

    let page = String::from_utf8(
        ask(address, "GET", "/dashboard/calls/latest", &[], "")
            .await
            .body,
    )
    .unwrap();
    assert!(
        !page.contains("marker-") && page.contains("shown to operators only"),
        "{page}"
    );
    let page = ask(
        address,
        "GET",
        "/dashboard/calls/latest",
        &[("authorization", &bearer)],
        "",
    )
    .await;
    let page = String::from_utf8(page.body).unwrap();
    assert!(
        page.contains("marker-") && page.contains(&format!("the first 40 of {} bytes", text.len())),
        "{page}"
    );

    let path = house.folder().join("state.db");
    let house = house.restart().await;
    assert_eq!(outcomes(&house).len(), 2, "the calls themselves stay");
    let folder = house.close().await;
    let stored = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(
        !stored.contains("marker-"),
        "what is not kept any more is still in the file"
    );
    drop(folder);
}

#[tokio::test]
async fn pages_show_the_same_record_also_after_a_restart() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let name: ScenarioName = "files".parse().unwrap();
    house.call("read", &json!({})).await.unwrap();
    house
        .call("read", &json!({"fail": "no such page"}))
        .await
        .unwrap();
    for decision in [Decision::Blocked, Decision::Trusted] {
        house
            .app
            .engine()
            .decide(name.clone(), Some(decision))
            .await
            .unwrap();
    }
    let house = house.restart().await;
    house
        .until("live again", |snapshot| {
            snapshot.health[&name].state == ScenarioState::Live
        })
        .await;
    let address = house.serve().await;
    let get = async |target: &str| {
        let answer = ask(
            address,
            "GET",
            target,
            &[("accept", "text/html"), ("hx-request", "true")],
            "",
        )
        .await;
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        String::from_utf8(answer.body).unwrap()
    };
    for target in [
        "/dashboard/calls",
        "/dashboard/calls/latest",
        "/dashboard/tool?id=files/read",
        "/dashboard/tool/calls?id=files/read",
    ] {
        let page = get(target).await;
        assert!(page.contains("no such page"), "{target}: {page}");
        let place = |number: u64| page.find(&format!("data-call=\"{number}\"")).unwrap();
        assert!(place(2) < place(1), "the latest is the first: {target}");
    }
    let page = get("/dashboard/scenarios/files").await;
    for part in [
        "band state-blocked",
        "changes of state",
        "an operator blocked it",
        "From the log, which begins",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    house.finish().await;
}

/// A real store, with what it was given to write to the log.
struct WatchedStore {
    store: Arc<dyn StateStore>,
    writes: Mutex<Vec<Write>>,
}

impl StateStore for WatchedStore {
    fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>> {
        self.store.load()
    }

    fn save(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>> {
        self.writes.lock().unwrap().extend(writes.iter().cloned());
        self.store.save(writes)
    }
}

impl WatchedStore {
    /// The numbers of the lines of a kind that were to be deleted.
    fn trims(&self, kind: LogKind) -> Vec<Range<u64>> {
        let writes = self.writes.lock().unwrap();
        let trims = writes.iter().filter_map(|write| match write {
            Write::TrimLog(trimmed, lines) if *trimmed == kind => Some(lines.clone()),
            _ => None,
        });
        trims.collect()
    }
}

#[tokio::test]
async fn the_store_looks_only_at_lines_that_were_dropped_since_and_once_at_each() {
    let callee = files().await;
    let house = House::of(&[("files", callee.url())]).await;
    let path = house.folder().join("another.db");
    let real = sqlite::open(&path, Clock::system()).unwrap();
    let store = Arc::new(WatchedStore {
        store: real,
        writes: Mutex::default(),
    });
    let mut config = Config::for_state(path.clone()).calls;
    config.recent = 2;
    let calls = house.calls_with(config, Arc::clone(&store) as Arc<dyn StateStore>);
    let stored = |query: &str| -> i64 {
        let database = rusqlite::Connection::open(&path).unwrap();
        database.busy_timeout(Duration::from_secs(20)).unwrap();
        database.query_row(query, [], |row| row.get(0)).unwrap()
    };
    for number in 1..=6 {
        calls.execute(request("read", &json!({}))).await.unwrap();
        let count = "SELECT count(*) FROM log WHERE kind = 'call'";
        let line = calls.recent().0.last().unwrap().line;
        let is_stored = format!("SELECT count(*) FROM log WHERE number = {line}");
        until("the call is stored", || stored(&is_stored) == 1).await;
        assert_eq!(
            stored(count),
            number.min(2),
            "what is dropped is deleted with the next line"
        );
    }
    let trims = store.trims(LogKind::Call);
    assert!(
        trims.windows(2).all(|pair| pair[0].end <= pair[1].start),
        "no line is looked at twice: {trims:?}"
    );
    assert!(trims.iter().all(|lines| !lines.is_empty()), "{trims:?}");
    for kind in [LogKind::State, LogKind::End, LogKind::Start] {
        assert_eq!(store.trims(kind), [], "no {} was dropped", kind.as_str());
    }
    calls.close_audit();
    house.finish().await;
}
