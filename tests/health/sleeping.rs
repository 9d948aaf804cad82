//! Programs that sleep, of a protocol that the test plays: no process is started, and the test says
//! what each lists and how it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::calls::track::FollowUp;
use callsheet::config::Config;
use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{JsonText, ScenarioState, StdioTarget, Target};
use callsheet::protocols::{
    Call, CallError, CallIo, ConnectError, Fits, ListError, ListRequest, Listing, Outcome,
    Protocol, ProtocolId, RunningCall, Session, Validity, tool_discovery,
};
use callsheet::runtime::Clock;
use callsheet::transports::{TransportError, Transports};
use futures_util::future::{BoxFuture, ready};
use jiff::SignedDuration;
use serde_json::json;

use crate::support::callee::tool_with;
use crate::support::house::House;

const WORKS: &str = "works";

/// The programs. Clones are the same.
#[derive(Clone, Default)]
struct Works(Arc<Mutex<WorksState>>);

/// What happened to them, and how they behave, by their commands.
#[derive(Default)]
struct WorksState {
    /// How often each was connected to.
    connected: BTreeMap<String, usize>,
    /// Those that run.
    running: BTreeSet<String>,
    /// Those whose lists may not be stored.
    unstored: BTreeSet<String>,
    /// Those that give no list any more.
    broken: BTreeSet<String>,
    /// Whether their operations are over.
    is_done: bool,
}

struct WorkSession {
    works: Works,
    command: String,
    clock: Clock,
}

impl Works {
    fn connected(&self, command: &str) -> usize {
        let state = self.0.lock().unwrap();
        state.connected.get(command).copied().unwrap_or_default()
    }

    fn is_running(&self, command: &str) -> bool {
        self.0.lock().unwrap().running.contains(command)
    }

    fn place(house: &House, command: &str) {
        let url = "http://127.0.0.1:1/".parse().unwrap();
        let endpoint = Endpoint {
            target: Some(Target::from(StdioTarget::new(command))),
            protocol: Some(WORKS.to_owned()),
            ..Endpoint::at(url, SourceTrust::Trusted)
        };
        house.place_endpoint(command, endpoint);
    }
}

impl Protocol for Works {
    fn id(&self) -> ProtocolId {
        WORKS
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Stdio(_) => Fits::Named,
            Target::Http(_) | Target::InProcess(_) | Target::Bundle(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let Target::Stdio(program) = target else {
            panic!("{target}")
        };
        let command = program.command().to_owned();
        let mut state = self.0.lock().unwrap();
        *state.connected.entry(command.clone()).or_default() += 1;
        assert!(state.running.insert(command.clone()), "two of {command}");
        let session = WorkSession {
            works: self.clone(),
            command,
            clock: transports.clock(),
        };
        Box::pin(ready(Ok(Arc::new(session) as _)))
    }
}

impl Drop for WorkSession {
    fn drop(&mut self) {
        self.works.0.lock().unwrap().running.remove(&self.command);
    }
}

impl Session for WorkSession {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        let behaviour = json!({
            "status_polling": {"status_tool": "look", "operation_id_field": "id", "status_tool_id_param": "id",
                "poll_interval_seconds": 1},
            "completion_conditions": {"status_field": "status", "success_values": ["done"], "result_field": "status"},
        });
        let on = json!({"enabled_by_default": true});
        let starts = json!({"enabled_by_default": true, "async_behavior": behaviour});
        let none = json!({"type": "object", "properties": {}});
        let takes =
            json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
        let tools = [
            tool_with("begin", &none, &starts),
            tool_with("look", &takes, &on),
            tool_with("ping", &none, &on),
        ];
        let manifest =
            json!({"protocol_version": "1.0", "scenario": {"name": "works"}, "tools": tools});
        let listed = || {
            let state = self.works.0.lock().unwrap();
            if state.broken.contains(&self.command) {
                let broken = TransportError::Broken {
                    url: self.command.clone(),
                    message: "it is gone".to_owned(),
                };
                return Err(broken.into());
            }
            let decoded = tool_discovery::decode(manifest.to_string().as_bytes(), &request.accept)?;
            Ok(Listing::Manifest {
                manifest: decoded.manifest,
                findings: decoded.findings,
                quarantined: decoded.quarantined,
                validity: Validity {
                    may_store: !state.unstored.contains(&self.command),
                    ..Validity::made_here(self.clock, Duration::from_secs(3600))
                },
            })
        };
        Box::pin(ready(listed()))
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        _io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        let is_done = self.works.0.lock().unwrap().is_done;
        let result = match &*call.tool {
            "begin" => json!({"id": "r-1"}),
            "look" if is_done => json!({"status": "done"}),
            "look" => json!({"status": "at work"}),
            _ => json!("pong"),
        };
        let outcome = Outcome::done(JsonText::parse(&result.to_string()).unwrap());
        let running = (&*call.tool == "begin").then(RunningCall::default);
        Box::pin(ready(Ok(Outcome { running, ..outcome })))
    }
}

fn sleepy(config: &mut Config) {
    config.mcp.sleep_after = Some(Duration::from_millis(50));
    config.refresh.forced_gap = Duration::from_millis(1);
    config.calls.poll_min = Duration::from_millis(5);
}

/// A house with these programs, all of them asleep but those whose lists may not be stored.
async fn asleep(works: &Works, commands: &[&str]) -> House {
    let house = House::speaking(works.clone(), sleepy).await;
    place_all(&house, works, commands).await;
    house
}

async fn place_all(house: &House, works: &Works, commands: &[&str]) {
    for command in commands {
        Works::place(house, command);
    }
    for command in commands {
        let may_sleep = !works.0.lock().unwrap().unstored.contains(*command);
        let state = if may_sleep {
            ScenarioState::Asleep
        } else {
            ScenarioState::Live
        };
        house.until_state(command, state).await;
    }
}

/// Lets another program fall asleep a few times, each of which takes as long as one that no client
/// uses.
async fn let_another_sleep(house: &House) {
    for _ in 0..3 {
        house.call("other/ping", &json!({})).await.unwrap();
        house.until_state("other", ScenarioState::Asleep).await;
    }
}

#[tokio::test]
async fn a_program_with_an_operation_under_way_does_not_sleep() {
    let works = Works::default();
    let house = asleep(&works, &["worker", "other"]).await;
    assert!(!works.is_running("worker"));
    let begun = house.call("worker/begin", &json!({})).await.unwrap();
    let FollowUp::Followed(_) = begun.going else {
        panic!("it is not followed: {:?}", begun.going)
    };
    // The operation is looked at once a second, and the other one sleeps after a fraction of that.
    let_another_sleep(&house).await;
    assert_eq!(house.health("worker").state, ScenarioState::Live);
    assert_eq!(works.connected("worker"), 2);
    works.0.lock().unwrap().is_done = true;
    house.until_state("worker", ScenarioState::Asleep).await;
    assert!(!works.is_running("worker"));
    assert_eq!(works.connected("worker"), 2);
    house.finish().await;
}

#[tokio::test]
async fn a_program_whose_list_may_not_be_stored_does_not_sleep() {
    let works = Works::default();
    works.0.lock().unwrap().unstored.insert("worker".to_owned());
    let house = asleep(&works, &["worker", "other"]).await;
    let_another_sleep(&house).await;
    assert_eq!(house.health("worker").state, ScenarioState::Live);
    assert!(works.is_running("worker"));
    assert_eq!(works.connected("worker"), 1);
    house.finish().await;
}

/// Two of three that run are more than 30 %, and two of ten are not.
#[tokio::test]
async fn programs_that_sleep_are_not_counted_for_isolation() {
    let works = Works::default();
    let awake = ["a", "b", "c"];
    let all = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    works.0.lock().unwrap().unstored = awake.map(str::to_owned).into();
    let house = asleep(&works, &all).await;
    assert!(house.now().isolated.is_none(), "seven fell asleep at once");
    works.0.lock().unwrap().broken = ["a", "b"].map(str::to_owned).into();
    for lost in ["a", "b"] {
        house.refresh(lost).await;
    }
    house.until("cut off", |now| now.isolated.is_some()).await;
    assert_eq!(house.health("j").state, ScenarioState::Asleep);
    house.finish().await;
}

#[tokio::test]
async fn a_clock_that_jumps_starts_a_program_only_if_its_list_is_too_old_by_then() {
    let works = Works::default();
    let (clock, hand) = Clock::with_hand();
    let house = House::speaking_at(clock, works.clone(), |config| {
        sleepy(config);
        config.mcp.relist_after = Duration::from_secs(3600);
    })
    .await;
    place_all(&house, &works, &["worker", "other"]).await;
    for step in [
        SignedDuration::from_mins(30),
        SignedDuration::from_hours(-3),
    ] {
        hand.step(step);
        let_another_sleep(&house).await;
        assert_eq!(works.connected("worker"), 1, "{step}");
        assert_eq!(
            house.health("worker").state,
            ScenarioState::Asleep,
            "{step}"
        );
    }
    // The machine was suspended, which the monotonic clock does not see.
    hand.step(SignedDuration::from_hours(6));
    house
        .until_health("worker", "was listed anew", |health| {
            let listed = health.last_success;
            health.state == ScenarioState::Asleep
                && listed.is_some_and(|at| {
                    clock.wall().duration_since(at) < SignedDuration::from_hours(1)
                })
        })
        .await;
    assert_eq!(works.connected("worker"), 2);
    house.finish().await;
}
