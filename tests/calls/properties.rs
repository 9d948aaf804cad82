//! Whatever happens meanwhile (tools come and go, names move between them, scenarios restart at
//! other ports, answers break), no call reaches a scenario other than the owner of its name in the
//! list that the name was taken from, and none runs twice unless that is safe.
//!
//! The sequences are random from a fixed seed; the scenarios are real servers on loopback, and
//! calls run beside everything else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use callsheet::calls::{CallResponse, ExecuteError, Request};
use callsheet::catalog::{View, ViewQuery};
use callsheet::discovery::SourceTrust;
use callsheet::model::{SettingsPatch, ToolId};
use callsheet::runtime::Tasks;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

use crate::support::callee::{Callee, PATIENCE, Ran, done, manifest, tool_with};
use crate::support::house::{House, called, request, switched};

const SCENARIOS: [&str; 3] = ["files", "mails", "notes"];
/// The first of them may be called again safely.
const TOOLS: [&str; 3] = ["list", "read", "write"];
/// Among them names that other tools have.
const ALIASES: [&str; 3] = ["read", "fetch", "files__write"];
const CASES: u32 = 24;

#[derive(Debug, Clone)]
enum Act {
    /// A scenario offers these tools from now on.
    Offer(usize, Vec<&'static str>),
    /// A tool gets an alias, or loses it.
    Alias(usize, &'static str, Option<&'static str>),
    Switch(usize, &'static str, bool),
    /// A scenario restarts at another port; nobody listens at the old one.
    Move(usize),
    /// From now on a scenario runs its tools and breaks its answers, or does not.
    Break(usize, bool),
    /// Somebody fetches the list.
    Take,
    /// Somebody calls a name of a list that was fetched, by their places.
    Call(prop::sample::Index, prop::sample::Index),
    /// Everything under way comes to its end.
    Settle,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = || 0..SCENARIOS.len();
    let tool = || select(TOOLS.to_vec());
    let act = prop_oneof![
        3 => (at(), subsequence(TOOLS.to_vec(), 0..=3)).prop_map(|(at, tools)| Act::Offer(at, tools)),
        3 => (at(), tool(), proptest::option::of(select(ALIASES.to_vec()))).prop_map(|(at, tool, alias)| Act::Alias(at, tool, alias)),
        1 => (at(), tool(), any::<bool>()).prop_map(|(at, tool, on)| Act::Switch(at, tool, on)),
        2 => at().prop_map(Act::Move),
        2 => (at(), any::<bool>()).prop_map(|(at, broken)| Act::Break(at, broken)),
        4 => Just(Act::Take),
        12 => any::<(prop::sample::Index, prop::sample::Index)>().prop_map(|(list, name)| Act::Call(list, name)),
        1 => Just(Act::Settle),
    ];
    prop::collection::vec(act, 10..50)
}

/// A list as somebody fetched it: its revision, and whose tool each name is.
struct List {
    revision: String,
    names: Vec<(String, ToolId)>,
}

struct Play {
    house: House,
    callees: Vec<Callee>,
    broken: Vec<Arc<AtomicBool>>,
    /// Ports that scenarios left, where nobody may listen again.
    left: Vec<TcpSocket>,
    lists: Vec<List>,
    calls: Vec<(ToolId, JoinHandle<Result<CallResponse, ExecuteError>>)>,
    ended: Vec<(ToolId, Result<CallResponse, ExecuteError>)>,
}

fn offered(scenario: &str, tools: &[&str]) -> Value {
    let tool = |name: &&str| {
        let metadata = json!({"enabled_by_default": true, "idempotent": *name == TOOLS[0]});
        tool_with(
            name,
            &json!({"type": "object", "properties": {}}),
            &metadata,
        )
    };
    manifest(scenario, &tools.iter().map(tool).collect::<Vec<_>>())
}

/// Begins an answer and breaks it: the caller cannot know what became of its call.
fn broken_off() -> Response {
    let pieces = futures_util::stream::iter([
        Ok("{\"success\":"),
        Err(std::io::Error::other("broken on purpose")),
    ]);
    Response::new(Body::from_stream(pieces))
}

impl Play {
    async fn begin() -> Self {
        let mut callees = Vec::new();
        let mut broken = Vec::new();
        for name in SCENARIOS {
            let flag = Arc::new(AtomicBool::new(false));
            let breaks = Arc::clone(&flag);
            let run = move |ran: Ran| {
                let breaks = breaks.load(Ordering::SeqCst);
                async move {
                    if breaks {
                        broken_off()
                    } else {
                        done(&json!([name, ran.tool]))
                    }
                }
            };
            callees.push(Callee::start(offered(name, &TOOLS), run).await);
            broken.push(flag);
        }
        let places: Vec<_> = SCENARIOS
            .iter()
            .copied()
            .zip(callees.iter().map(Callee::url))
            .collect();
        let house = House::with(&places, |config| {
            config.refresh.forced_gap = Duration::from_millis(1);
            config.refresh.backoff_base = Duration::from_millis(5);
            config.refresh.backoff_max = Duration::from_millis(20);
            config.calls.reroute_wait = Duration::from_millis(200);
            config.calls.breaker_failures = 1000;
        })
        .await;
        let left = Vec::new();
        let lists = Vec::new();
        let calls = Vec::new();
        let ended = Vec::new();
        let mut play = Self {
            house,
            callees,
            broken,
            left,
            lists,
            calls,
            ended,
        };
        play.take();
        play
    }

    fn take(&mut self) {
        let snapshot = self.house.app.snapshot();
        let query = ViewQuery::default();
        let view = View::select(&snapshot.catalog, &query);
        let names = view
            .tools()
            .map(|tool| (tool.name.to_string(), tool.id.clone()))
            .collect();
        self.lists.push(List {
            revision: snapshot.catalog.revision_for(&query).to_string(),
            names,
        });
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Offer(at, tools) => {
                self.callees[at].lists(offered(SCENARIOS[at], &tools));
                self.house.refresh(SCENARIOS[at]).await;
            }
            Act::Alias(at, tool, alias) => {
                let none = SettingsPatch {
                    alias: Some(None),
                    ..SettingsPatch::default()
                };
                let patch = alias.map_or(none, called);
                self.house
                    .prefer("global", &format!("tool:{}/{tool}", SCENARIOS[at]), patch)
                    .await;
            }
            Act::Switch(at, tool, on) => {
                self.house
                    .prefer(
                        "global",
                        &format!("tool:{}/{tool}", SCENARIOS[at]),
                        switched(on),
                    )
                    .await;
            }
            Act::Move(at) => {
                self.left.push(self.callees[at].move_on().await);
                self.house
                    .place(SCENARIOS[at], self.callees[at].url(), SourceTrust::Trusted);
            }
            Act::Break(at, broken) => self.broken[at].store(broken, Ordering::SeqCst),
            Act::Take => self.take(),
            Act::Call(list, name) => self.call(list.index(self.lists.len()), name),
            Act::Settle => self.settle().await,
        }
    }

    /// Calls a name of a list, beside everything else. Each call is told from the others by its
    /// number.
    fn call(&mut self, list: usize, name: prop::sample::Index) {
        let list = &self.lists[list];
        if list.names.is_empty() {
            return;
        }
        let (name, owner) = name.get(&list.names);
        let number = self.calls.len() + self.ended.len();
        let call = Request {
            revision: Some(list.revision.clone()),
            ..request(name, &json!({"call": number}))
        };
        let app = Arc::clone(&self.house.app);
        self.calls.push((
            owner.clone(),
            Tasks::new().spawn(async move { app.call(call).await }),
        ));
    }

    async fn settle(&mut self) {
        for (owner, call) in self.calls.drain(..) {
            // A call may take the 30 s that a scenario has for its answer, and has to end then.
            let ended = tokio::time::timeout(2 * PATIENCE, call).await;
            let ended = ended
                .unwrap_or_else(|_| panic!("a call of {owner} does not end"))
                .unwrap();
            self.ended.push((owner, ended));
        }
    }

    /// How many calls were answered well, once everything is looked at.
    async fn end(mut self) -> usize {
        self.settle().await;
        let mut runs: BTreeMap<u64, Vec<(&str, String)>> = BTreeMap::new();
        for (callee, scenario) in self.callees.iter().zip(SCENARIOS) {
            for ran in callee.ran() {
                runs.entry(ran.arguments["call"].as_u64().unwrap())
                    .or_default()
                    .push((scenario, ran.tool));
            }
        }
        let mut well = 0;
        for (number, (owner, ended)) in self.ended.iter().enumerate() {
            let runs = runs.remove(&(number as u64)).unwrap_or_default();
            for (scenario, tool) in &runs {
                assert_eq!(
                    *scenario,
                    owner.scenario.as_str(),
                    "call {number}: {ended:?}"
                );
                assert_eq!(**tool, *owner.tool, "call {number}: {ended:?}");
            }
            let most = if *owner.tool == *TOOLS[0] { 2 } else { 1 };
            assert!(
                runs.len() <= most,
                "call {number} of {owner} ran {} times: {ended:?}",
                runs.len()
            );
            match ended {
                Ok(answered) => {
                    assert_eq!(answered.tool.id, *owner, "call {number}");
                    let expected = json!([owner.scenario.as_str(), &*owner.tool]).to_string();
                    assert_eq!(
                        answered.outcome.result.as_ref().unwrap().get(),
                        expected,
                        "call {number}"
                    );
                    well += 1;
                }
                Err(ExecuteError::Failed { error, .. }) if !error.was_sent() => {
                    assert!(runs.is_empty(), "{error}");
                }
                Err(ExecuteError::Failed { .. }) => {}
                Err(refused) => assert!(
                    runs.is_empty(),
                    "call {number} was refused and ran: {refused}"
                ),
            }
        }
        assert!(runs.is_empty(), "calls that nobody made: {runs:?}");
        self.house.finish().await;
        well
    }
}

#[test]
fn no_call_goes_astray_and_none_runs_twice_unasked() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases: CASES,
        max_shrink_iters: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let well = std::cell::Cell::new(0);
    let sent = std::cell::Cell::new(0);
    let outcome = runner.run(&acts(), |acts| {
        let calls = acts
            .iter()
            .filter(|act| matches!(act, Act::Call(..)))
            .count();
        let played = async {
            let mut play = Play::begin().await;
            for act in acts {
                play.act(act).await;
            }
            play.end().await
        };
        let ended = runtime.block_on(async { tokio::time::timeout(4 * PATIENCE, played).await });
        well.set(well.get() + ended.expect("it comes to an end"));
        sent.set(sent.get() + calls);
        Ok(())
    });
    if let Err(TestError::Fail(reason, acts)) = outcome {
        unreachable!("{reason}\n{acts:#?}");
    }
    // Otherwise it would show nothing.
    assert!(
        well.get() * 4 > sent.get(),
        "{} of {} calls were answered well",
        well.get(),
        sent.get()
    );
}
