//! Sessions: one per scenario as long as it is the same process, whose hints trigger listings,
//! whose calls talk to their callers, and whose end leads to a new one. The protocol is one of the
//! test's own; everything else is the whole program.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::catalog::Snapshot;
use callsheet::discovery::SourceTrust;
use callsheet::engine::CallReport;
use callsheet::model::{ApprovalPolicy, Health, JsonText, ScenarioState, SettingsPatch};
use callsheet::protocols::{
    CallIo, CallLog, CallProgress, CallerOffers, Cancelled, InputWanted, LogLevel,
};
use callsheet::runtime::{Clock, Stop, StopTrigger};
use callsheet::state::Decision;
use futures_util::future::BoxFuture;
use serde_json::json;
use url::Url;

use crate::support::callee::PATIENCE;
use crate::support::house::{House, request, scenario};
use crate::support::scripted_session::Script;

fn place(name: &str) -> Url {
    format!("local:{name}").parse().unwrap()
}

/// A program with this one scenario, which is listed. No schedule lists it again within a test.
async fn house(script: &Script) -> House {
    house_after(script, Duration::from_millis(150)).await
}

/// The same with this back-off.
async fn house_after(script: &Script, backoff: Duration) -> House {
    let protocol = script.protocol();
    let house = House::speaking(protocol, |config| {
        config.refresh.backoff_base = backoff;
        config.refresh.backoff_max = backoff * 2;
        config.refresh.forced_gap = Duration::from_millis(1);
        config.calls.reroute_wait = PATIENCE;
    });
    let house = house.await;
    house.place("actor", place("actor"), SourceTrust::Trusted);
    house
        .until("listed", |snapshot| {
            health(snapshot).is_some_and(|health| health.state != ScenarioState::Connecting)
        })
        .await;
    house
}

fn health(snapshot: &Snapshot) -> Option<&Arc<Health>> {
    snapshot.health.get(&scenario("actor"))
}

fn is(snapshot: &Snapshot, state: ScenarioState) -> bool {
    health(snapshot).is_some_and(|health| health.state == state)
}

async fn until_names(house: &House, wanted: &[&str]) {
    house.until("the names", |_| house.names() == wanted).await;
}

/// Waits until a call has its turn.
async fn until_a_call_waits(house: &House) {
    let waits = async {
        while house.app.calls().under_way(&scenario("actor")) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap();
}

/// A caller that takes part.
#[derive(Default)]
struct Partner {
    heard: Mutex<Vec<String>>,
    answer: Option<&'static str>,
    cancel: Option<Stop>,
}

impl CallIo for Partner {
    fn offers(&self) -> CallerOffers {
        CallerOffers {
            elicitation_form: true,
            log_level: Some(LogLevel::Info),
            ..CallerOffers::default()
        }
    }

    fn progress(&self, progress: CallProgress) {
        self.heard.lock().unwrap().push(progress.to_string());
    }

    fn log(&self, line: CallLog) {
        self.heard
            .lock()
            .unwrap()
            .push(format!("{}: {}", line.level.as_str(), line.text()));
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        self.heard.lock().unwrap().push(wanted.message());
        let given = self.answer.map(|answer| JsonText::parse(answer).unwrap());
        Box::pin(std::future::ready(given))
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        match self.cancel.clone() {
            Some(cancel) => Box::pin(async move {
                cancel.wait().await;
                Cancelled::ByCaller
            }),
            None => Box::pin(std::future::pending()),
        }
    }
}

#[tokio::test]
async fn a_scenario_has_one_session_for_lists_and_calls() {
    let script = Script::of(&["read"]);
    let house = house(&script).await;
    assert_eq!(house.names(), ["read"]);
    house.refresh("actor").await;
    house.refresh("actor").await;
    let answered = house.call("read", &json!({"a": 1})).await.unwrap();
    assert_eq!(answered.outcome.result.unwrap().get(), "{\"a\":1}");
    assert_eq!(&*answered.url, "local:actor");
    assert_eq!(script.count("connect"), 1);
    assert_eq!(script.count("list"), 3);
    assert_eq!(script.open(), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_hint_has_the_scenario_listed() {
    let script = Script::of(&["read"]);
    script.hints();
    let house = house(&script).await;
    // What changed before the stream stood may have been missed.
    script.until("list", 2).await;
    for tools in [&["read", "write"][..], &["write"], &["copy", "write"]] {
        script.offer(tools);
        script.hint();
        until_names(&house, tools).await;
    }
    assert_eq!(script.count("connect"), 1);
    assert_eq!(script.count("hints"), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_flood_of_hints_costs_a_few_listings() {
    let script = Script::of(&["read"]);
    script.flood();
    let house = house(&script).await;
    script.until("list", 3).await;
    let clock = Clock::system();
    let before = clock.now();
    script.until("list", 5).await;
    let took = clock.now() - before;
    // The time between two doubles: 100 ms, 200 ms, 400 ms, ...
    assert!(took >= Duration::from_secs(1), "{took:?}");
    script.offer(&["write"]);
    until_names(&house, &["write"]).await;
    house.finish().await;
}

/// Their programs hint without end, and have other tools in each list.
#[tokio::test]
async fn scenarios_whose_long_lists_always_change_rest_after_each_and_others_stay_fresh() {
    const TOOLS: usize = 2_000;
    const NAMES: [&str; 3] = ["changing-a", "changing-b", "changing-c"];
    let script = Script::of(&["read"]);
    script.change_always(TOOLS);
    script.flood();
    let house = house(&script).await;
    for name in NAMES {
        house.place(name, place(name), SourceTrust::Trusted);
    }
    house
        .until("all lists", |snapshot| {
            snapshot.catalog.entries().count() == NAMES.len() + 1
        })
        .await;

    let lists_before = script.count("changed list");
    let snapshots_before = house.app.snapshot().sequence;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(20)).await;
    tokio::time::resume();
    let lists = script.count("changed list") - lists_before;
    let snapshots = house.app.snapshot().sequence - snapshots_before;
    // Each rests for 2 s.
    assert!(
        (NAMES.len() * 8..=NAMES.len() * 11).contains(&lists),
        "{lists}"
    );
    // Hints alone have one made every 200 ms at most.
    assert!(
        snapshots <= 20 * 5 + NAMES.len() as u64 * 11 * 2,
        "{snapshots}"
    );
    assert!(
        house
            .app
            .snapshot()
            .health
            .values()
            .all(|health| health.state == ScenarioState::Live)
    );

    script.offer(&["write"]);
    house.refresh("actor").await;
    let snapshot = house.app.snapshot();
    let actor = snapshot.catalog.entry(&scenario("actor")).unwrap();
    assert_eq!(
        actor
            .listed
            .iter()
            .map(|tool| &*tool.id.tool)
            .collect::<Vec<_>>(),
        ["write"]
    );
    house.finish().await;
}

#[tokio::test]
async fn a_hint_does_not_shorten_the_time_that_a_busy_scenario_asked_for() {
    let script = Script::of(&["read"]);
    script.hints();
    let house = house_after(&script, Duration::from_millis(10)).await;
    script.until("list", 2).await;
    script.busy(true);
    script.hint();
    script.until("busy", 1).await;
    let clock = Clock::system();
    let before = clock.now();
    script.offer(&["write"]);
    script.busy(false);
    script.hint();
    until_names(&house, &["write"]).await;
    let took = clock.now() - before;
    assert!(took >= Duration::from_millis(900), "{took:?}");
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_whose_session_ended_is_not_live_for_being_followed_and_calls_do_not_hurry_the_next()
 {
    let script = Script::of(&["read"]);
    script.fresh_for(Duration::ZERO);
    script.hints();
    let house = house_after(&script, Duration::from_secs(3600)).await;
    house
        .until("live", |snapshot| is(snapshot, ScenarioState::Live))
        .await;
    script.end("stopped");
    house
        .until("stale", |snapshot| is(snapshot, ScenarioState::Stale))
        .await;
    let engine = house.app.engine();
    let route = house.route("actor").unwrap();
    assert!(route.ended);
    for _ in 0..5 {
        engine.report_call(&scenario("actor"), &route, CallReport::Refused);
        engine.ping().await.unwrap();
    }
    let planned = health(&house.app.snapshot()).unwrap().next_attempt.unwrap();
    assert!(planned.duration_since(Clock::system().wall()) > jiff::SignedDuration::from_mins(10));
    assert_eq!(script.count("connect"), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_whose_hints_are_followed_is_live_though_its_list_is_fresh_for_no_time() {
    let script = Script::of(&["read"]);
    script.fresh_for(Duration::ZERO);
    let house = house(&script).await;
    house
        .until("stale", |snapshot| is(snapshot, ScenarioState::Stale))
        .await;
    script.hints();
    house.refresh("actor").await;
    house
        .until("live", |snapshot| is(snapshot, ScenarioState::Live))
        .await;
    script.end_hints();
    house
        .until("stale again", |snapshot| is(snapshot, ScenarioState::Stale))
        .await;
    house.finish().await;
}

#[tokio::test]
async fn who_waits_for_approval_has_no_say_in_how_often_it_is_listed() {
    let script = Script::of(&["read"]);
    script.hints();
    let house = House::speaking(script.protocol(), |_| ()).await;
    house.place("actor", place("actor"), SourceTrust::Untrusted);
    script.until("list", 1).await;
    house
        .until("pending", |snapshot| is(snapshot, ScenarioState::Pending))
        .await;
    assert_eq!(script.count("hints"), 0);
    house
        .app
        .engine()
        .decide(scenario("actor"), Some(Decision::Trusted))
        .await
        .unwrap();
    house.refresh("actor").await;
    script.until("hints", 1).await;
    house.finish().await;
}

#[tokio::test]
async fn progress_and_log_lines_reach_the_caller_in_order() {
    let script = Script::of(&["progress"]);
    let house = house(&script).await;
    let partner = Arc::new(Partner::default());
    let answered = house
        .app
        .calls()
        .execute_for(request("progress", &json!({})), Some(partner.clone()))
        .await
        .unwrap();
    assert!(answered.outcome.success);
    assert_eq!(
        *partner.heard.lock().unwrap(),
        ["1 of 2: half", "info: on the way", "2 of 2"]
    );
    // A caller that does not take part gets the same result.
    assert!(
        house
            .call("progress", &json!({}))
            .await
            .unwrap()
            .outcome
            .success
    );
    house.finish().await;
}

#[tokio::test]
async fn a_tool_that_needs_input_asks_the_caller_and_is_refused_where_there_is_none() {
    let script = Script::of(&["input"]);
    let house = house(&script).await;
    let partner = Arc::new(Partner {
        answer: Some("{\"city\":\"Oslo\"}"),
        ..Partner::default()
    });
    let answered = house
        .app
        .calls()
        .execute_for(request("input", &json!({})), Some(partner.clone()))
        .await
        .unwrap();
    assert_eq!(
        answered.outcome.result.unwrap().get(),
        "{\"city\":\"Oslo\"}"
    );
    assert_eq!(*partner.heard.lock().unwrap(), ["Which city?"]);
    let declines = Arc::new(Partner::default());
    let answered = house
        .app
        .calls()
        .execute_for(request("input", &json!({})), Some(declines))
        .await
        .unwrap();
    assert_eq!(answered.outcome.error.as_deref(), Some("declined"));
    let refused = house.call("input", &json!({})).await.unwrap().outcome;
    assert_eq!(refused.error.as_deref(), Some("this caller gives no input"));
    assert_eq!(refused.code.as_deref(), Some("no_input"));
    house.finish().await;
}

#[tokio::test]
async fn a_session_hears_that_a_call_is_cancelled_or_that_its_caller_is_gone() {
    let script = Script::of(&["wait"]);
    let house = house(&script).await;
    let (cancel, cancelled) = StopTrigger::new();
    let partner = Arc::new(Partner {
        cancel: Some(cancelled),
        ..Partner::default()
    });
    let call = house
        .app
        .calls()
        .execute_for(request("wait", &json!({})), Some(partner));
    let cancels = async {
        script.until("waiting", 1).await;
        cancel.stop();
    };
    let (answered, ()) = tokio::join!(call, cancels);
    assert_eq!(
        answered.unwrap().outcome.error.as_deref(),
        Some("it was cancelled")
    );
    assert_eq!(script.count("cancelled"), 1);
    assert_eq!(script.count("gone"), 0);

    let none = json!({});
    let leaves = tokio::select! {
        _ = house.call("wait", &none) => false,
        () = script.until("waiting", 2) => true,
    };
    assert!(leaves, "the caller went away while the call was under way");
    script.until("gone", 1).await;
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_its_caller_cancelled_is_not_tried_again() {
    let script = Script::of(&["breaks"]);
    let house = house(&script).await;
    let (cancel, cancelled) = StopTrigger::new();
    let partner = Arc::new(Partner {
        cancel: Some(cancelled),
        ..Partner::default()
    });
    let call = house
        .app
        .calls()
        .execute_for(request("breaks", &json!({})), Some(partner));
    let cancels = async {
        script.until("sent", 1).await;
        cancel.stop();
    };
    let (answered, ()) = tokio::join!(call, cancels);
    assert_eq!(answered.unwrap_err().kind(), "broken");
    assert_eq!(
        script.count("sent"),
        1,
        "its tool may be called again, but its caller does not want that"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_session_that_ends_by_itself_is_made_anew() {
    let script = Script::of(&["read"]);
    let house = house(&script).await;
    script.refuse(true);
    script.end("the process exited with status 1");
    script.until("refuse", 2).await;
    assert_eq!(house.names(), ["read"], "its tools stay for their grace");
    let revives = async {
        script.until("refuse", 3).await;
        script.refuse(false);
    };
    // The call finds no connection, and waits for the next one.
    let none = json!({});
    let (answered, ()) = tokio::join!(house.call("read", &none), revives);
    assert!(answered.unwrap().outcome.success);
    let back = |snapshot: &Snapshot| {
        is(snapshot, ScenarioState::Live) && health(snapshot).unwrap().restarts == 1
    };
    house.until("back, as a restart", back).await;
    assert_eq!(script.count("connect"), 2);
    assert_eq!(script.open(), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_session_that_ended_by_itself_is_released_before_there_is_another_one() {
    let script = Script::of(&["read"]);
    let house = house_after(&script, Duration::from_secs(3600)).await;
    let route = house.route("actor").unwrap();
    script.end("the process exited with status 1");
    house
        .until("ended", |_| {
            house.route("actor").is_some_and(|route| route.ended)
        })
        .await;
    assert_eq!(script.open(), 1, "a call may be under way");
    drop(route);
    assert_eq!(script.open(), 0);
    assert_eq!(script.count("connect"), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_call_waits_for_the_next_session_though_its_scenario_moves_meanwhile() {
    let script = Script::of(&["read"]);
    let house = house(&script).await;
    script.refuse(true);
    script.end("it moves");
    script.until("refuse", 1).await;
    let moves = async {
        until_a_call_waits(&house).await;
        house.place("actor", place("elsewhere"), SourceTrust::Trusted);
        house
            .until("no way to it", |_| house.route("actor").is_none())
            .await;
        script.refuse(false);
    };
    let none = json!({});
    let (answered, ()) = tokio::join!(house.call("read", &none), moves);
    assert_eq!(&*answered.unwrap().url, "local:elsewhere");
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_begins_while_there_is_no_session_waits_for_the_next_one() {
    let script = Script::of(&["read"]);
    let house = house(&script).await;
    script.refuse(true);
    script.end("it moves");
    house.place("actor", place("elsewhere"), SourceTrust::Trusted);
    house
        .until("no way to it", |_| house.route("actor").is_none())
        .await;
    let connects = async {
        until_a_call_waits(&house).await;
        script.refuse(false);
    };
    let none = json!({});
    let (answered, ()) = tokio::join!(house.call("read", &none), connects);
    let answered = answered.unwrap();
    assert_eq!(&*answered.url, "local:elsewhere");
    assert_eq!(answered.attempts, 1);
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_needs_approval_waits_for_a_session_too() {
    let script = Script::of(&["read"]);
    let house = house_after(&script, Duration::from_millis(10)).await;
    let needed = SettingsPatch {
        approval: Some(Some(ApprovalPolicy::Require)),
        ..SettingsPatch::default()
    };
    house.prefer("global", "tool:actor/read", needed).await;
    script.refuse(true);
    script.end("it moves");
    house.place("actor", place("elsewhere"), SourceTrust::Trusted);
    house
        .until("no way to it", |_| house.route("actor").is_none())
        .await;
    let none = json!({});
    let mut call = Box::pin(house.call("read", &none));
    let refused = script.count("refuse");
    tokio::select! {
        answered = &mut call => panic!("{answered:?}"),
        () = script.until("refuse", refused + 3) => script.refuse(false),
    }
    assert_eq!(call.await.unwrap_err().kind(), "approval_required");
    house.finish().await;
}

#[tokio::test]
async fn calls_that_begin_while_there_is_no_session_do_not_open_the_circuit_breaker() {
    let script = Script::of(&["read"]);
    let house = house(&script).await;
    script.refuse(true);
    script.end("the process exited with status 1");
    script.until("refuse", 1).await;
    let connects = async {
        until_a_call_waits(&house).await;
        script.refuse(false);
    };
    let none = json!({});
    let calls = (0..20).map(|_| house.call("read", &none));
    let (answered, ()) = tokio::join!(futures_util::future::join_all(calls), connects);
    assert!(answered.iter().all(Result::is_ok), "{answered:?}");
    assert_eq!(script.count("unsent"), 0);
    house.finish().await;
}

#[tokio::test]
async fn a_call_for_which_no_session_comes_is_refused_with_what_is_wrong() {
    let script = Script::of(&["read"]);
    let house = House::speaking(script.protocol(), |config| {
        config.refresh.backoff_base = Duration::from_secs(3600);
        config.refresh.backoff_max = Duration::from_secs(3600);
        config.calls.reroute_wait = Duration::from_millis(20);
    });
    let house = house.await;
    house.place("actor", place("actor"), SourceTrust::Trusted);
    until_names(&house, &["read"]).await;
    script.end("the process exited with status 1");
    let why = |snapshot: &Snapshot| {
        health(snapshot)
            .unwrap()
            .last_error
            .as_ref()
            .map(|error| error.kind.clone())
    };
    house
        .until("said why", |snapshot| {
            why(snapshot).as_deref() == Some("ended")
        })
        .await;
    let refused = house.call("read", &json!({})).await.unwrap_err();
    assert_eq!(refused.kind(), "unavailable");
    assert_eq!(refused.status_number(), 503);
    let text = refused.to_string();
    assert!(
        text.contains("within 20ms") && text.contains("the process exited with status 1"),
        "{text}"
    );
    house.finish().await;
}

#[tokio::test]
async fn calls_beyond_those_that_wait_for_a_session_are_refused_at_once() {
    let script = Script::of(&["read"]);
    let house = House::speaking(script.protocol(), |config| {
        config.refresh.backoff_base = Duration::from_secs(3600);
        config.refresh.backoff_max = Duration::from_secs(3600);
        config.calls.reroute_wait = PATIENCE;
        config.calls.concurrency = 1;
    });
    let house = house.await;
    house.place("actor", place("actor"), SourceTrust::Trusted);
    until_names(&house, &["read"]).await;
    script.end("the process exited with status 1");
    house
        .until("ended", |_| {
            house.route("actor").is_some_and(|route| route.ended)
        })
        .await;
    let none = json!({});
    let mut waits = Box::pin(house.call("read", &none));
    tokio::select! {
        answered = &mut waits => panic!("{answered:?}"),
        () = until_a_call_waits(&house) => {}
    }
    let refused = house.call("read", &none).await.unwrap_err();
    assert_eq!(refused.kind(), "unavailable");
    let text = refused.to_string();
    assert!(
        text.contains("other calls wait") && text.contains("the process exited with status 1"),
        "{text}"
    );
    drop(waits);
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_its_caller_cancels_while_it_waits_for_a_session_is_not_sent() {
    let script = Script::of(&["read"]);
    let house = house_after(&script, Duration::from_millis(10)).await;
    script.refuse(true);
    script.end("the process exited with status 1");
    script.until("refuse", 1).await;
    let (cancel, cancelled) = StopTrigger::new();
    let partner = Arc::new(Partner {
        cancel: Some(cancelled),
        ..Partner::default()
    });
    let call = house
        .app
        .calls()
        .execute_for(request("read", &json!({})), Some(partner));
    let cancels = async {
        until_a_call_waits(&house).await;
        cancel.stop();
    };
    let (answered, ()) = tokio::join!(call, cancels);
    let refused = answered.unwrap_err();
    assert_eq!(refused.kind(), "unavailable");
    assert!(
        refused
            .to_string()
            .contains("cancelled the call before it was sent"),
        "{refused}"
    );
    assert_eq!(
        house.app.calls().under_way(&scenario("actor")),
        0,
        "its turn is free"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_its_session_never_ends_is_over_at_last() {
    let script = Script::of(&["stuck"]);
    let house = House::speaking(script.protocol(), |config| {
        config.calls.max_timeout = Duration::from_millis(1);
    })
    .await;
    house.place("actor", place("actor"), SourceTrust::Trusted);
    until_names(&house, &["stuck"]).await;
    let none = json!({});
    // From the moment the session has the call, only timers are waited for, so time can jump to the
    // next one.
    let stops_time = async {
        script.until("stuck", 1).await;
        tokio::time::pause();
    };
    let (answered, ()) = tokio::join!(house.call("stuck", &none), stops_time);
    tokio::time::resume();
    let refused = answered.unwrap_err();
    assert!(
        refused.to_string().contains("no answer within 5.001s"),
        "{refused}"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_session_is_closed_when_its_scenario_moves_is_blocked_or_removed() {
    let script = Script::of(&["read"]);
    let house = house(&script).await;
    house.place("actor", place("elsewhere"), SourceTrust::Trusted);
    script.until("connect", 2).await;
    script.until_open(1).await;
    house
        .app
        .engine()
        .decide(scenario("actor"), Some(Decision::Blocked))
        .await
        .unwrap();
    script.until_open(0).await;
    house
        .app
        .engine()
        .decide(scenario("actor"), None)
        .await
        .unwrap();
    script.until("connect", 3).await;
    script.until_open(1).await;
    script.refuse(true);
    house.remove("actor");
    script.end("stopped");
    script.until_open(0).await;
    house.finish().await;
}
