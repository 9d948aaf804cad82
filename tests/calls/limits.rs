//! How often, how many at once, how long and how large; what is tried again and what never; and
//! when a scenario is left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callsheet::calls::{BreakerState, ExecuteError, FULL_ACCESS, Request, Requester};
use callsheet::discovery::SourceTrust;
use callsheet::model::{ApprovalPolicy, JsonText, Profile, SettingsPatch};
use callsheet::runtime::Tasks;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use crate::support::callee::{Callee, PATIENCE, answer, done, manifest, text, tool, tool_with};
use crate::support::house::{House, request, scenario};

fn tool_that(name: &str, metadata: &Value) -> Value {
    let mut all = json!({"enabled_by_default": true});
    all.as_object_mut()
        .unwrap()
        .extend(metadata.as_object().unwrap().clone());
    tool_with(name, &json!({"type": "object", "properties": {}}), &all)
}

/// Answers only once it is let go.
async fn gated(tools: &[Value]) -> (Callee, watch::Sender<bool>) {
    let (gate, open) = watch::channel(false);
    let callee = Callee::start(manifest("files", tools), move |_| {
        let mut open = open.clone();
        async move {
            open.wait_for(|open| *open).await.unwrap();
            done(&json!(null))
        }
    })
    .await;
    (callee, gate)
}

#[tokio::test]
async fn a_tool_is_called_as_often_a_minute_as_it_says_in_each_scope() {
    let often = tool_that("often", &json!({"rate_limit_per_minute": 3}));
    let unset = tool_that("unset", &json!({"rate_limit_per_minute": 0}));
    let files = Callee::echo(manifest("files", &[often, unset])).await;
    let house = House::of(&[("files", files.url())]).await;
    for _ in 0..3 {
        assert!(house.call("often", &json!({})).await.is_ok());
    }
    let refused = house.call("often", &json!({})).await.unwrap_err();
    let ExecuteError::RateLimited {
        per_minute: 3,
        wait,
        ..
    } = refused
    else {
        unreachable!("{refused}")
    };
    assert!(
        wait > Duration::from_secs(10) && wait <= Duration::from_secs(20),
        "{wait:?}"
    );
    let chat = Request {
        chat: Some("7".into()),
        ..request("often", &json!({}))
    };
    assert!(
        house.request(chat).await.is_ok(),
        "another scope has its own"
    );
    for _ in 0..10 {
        assert!(house.call("unset", &json!({})).await.is_ok());
    }
    assert_eq!(files.ran().len(), 14);
    house.finish().await;
}

#[tokio::test]
async fn so_many_are_under_way_so_many_wait_and_the_rest_is_told_to_come_later() {
    let (files, gate) = gated(&[tool("read")]).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 2;
        config.calls.queue = 1;
    })
    .await;
    let start = || {
        let app = Arc::clone(&house.app);
        Tasks::new().spawn(async move { app.call(request("read", &json!({}))).await })
    };
    let mut under_way = vec![start(), start()];
    files.until_ran(2).await;
    let waiting = start();
    // Whether the third waits already cannot be seen, but one of the next two is beyond.
    let fourth = start();
    let (first, other) = match futures_util::future::select(waiting, fourth).await {
        futures_util::future::Either::Left((done, other))
        | futures_util::future::Either::Right((done, other)) => (done.unwrap(), other),
    };
    assert_eq!(first.unwrap_err().kind(), "busy");
    for _ in 0..3 {
        assert_eq!(
            house.refusal(request("read", &json!({}))).await,
            "busy",
            "a refused call leaves no place free"
        );
    }
    assert_eq!(house.app.calls().waiting(), 1);
    assert_eq!(files.ran().len(), 2);
    gate.send_replace(true);
    under_way.push(other);
    for call in under_way {
        let answered = tokio::time::timeout(PATIENCE, call)
            .await
            .expect("its turn comes")
            .unwrap();
        assert!(answered.is_ok(), "{answered:?}");
    }
    assert_eq!(files.ran().len(), 3);
    assert_eq!(house.app.calls().waiting(), 0);
    house.finish().await;
}

#[tokio::test]
async fn one_caller_leaves_permits_of_a_provider_to_others() {
    let (files, gate) = gated(&[tool("read")]).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 4;
    })
    .await;
    let start = |chat: &str| {
        let app = Arc::clone(&house.app);
        let request = Request {
            chat: Some(chat.to_owned()),
            ..request("read", &json!({}))
        };
        Tasks::new().spawn(async move { app.call(request).await })
    };
    let mut calls: Vec<_> = (0..4).map(|_| start("one")).collect();
    files.until_ran(3).await;
    while house.app.calls().waiting() < 1 {
        tokio::task::yield_now().await;
    }
    calls.push(start("other"));
    files.until_ran(4).await;
    assert_eq!(
        house.app.calls().waiting(),
        1,
        "the fourth of the first caller waits for its own share"
    );
    gate.send_replace(true);
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(files.ran().len(), 5);
    house.finish().await;
}

#[tokio::test]
async fn callers_without_the_token_leave_permits_to_the_operator_though_none_names_a_chat() {
    let (files, gate) = gated(&[tool("read")]).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 4;
    })
    .await;
    let start = |access: &str| {
        let app = Arc::clone(&house.app);
        let request = Request {
            requester: Requester::with_access(access),
            ..request("read", &json!({}))
        };
        Tasks::new().spawn(async move { app.call(request).await })
    };
    let mut calls: Vec<_> = (0..4).map(|_| start("without-token")).collect();
    files.until_ran(3).await;
    while house.app.calls().waiting() < 1 {
        tokio::task::yield_now().await;
    }
    calls.push(start(FULL_ACCESS));
    files.until_ran(4).await;
    assert_eq!(
        house.app.calls().waiting(),
        1,
        "the operator's call does not wait for theirs"
    );
    gate.send_replace(true);
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    house.finish().await;
}

/// A call of `read` in a conversation of its own.
fn read_in(access: &str, chat: &str) -> Request {
    let requester = Requester::with_access(access);
    Request {
        chat: Some(chat.to_owned()),
        requester,
        ..request("read", &json!({}))
    }
}

async fn until_waiting(house: &House, calls: usize) {
    let waits = async {
        while house.app.calls().waiting() != calls {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits)
        .await
        .expect("so many wait");
}

#[tokio::test]
async fn an_eighth_of_the_permits_is_left_to_operators_however_many_conversations_clients_invent() {
    let (files, gate) = gated(&[tool("read")]).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 16;
    })
    .await;
    let start = |access: &str, chat: String| {
        let app = Arc::clone(&house.app);
        let request = read_in(access, &chat);
        Tasks::new().spawn(async move { app.call(request).await })
    };
    let mut calls: Vec<_> = (0..20)
        .map(|chat| start("without-token", format!("invented {chat}")))
        .collect();
    files.until_ran(14).await;
    until_waiting(&house, 6).await;
    assert_eq!(files.ran().len(), 14);
    calls.extend((0..2).map(|chat| start(FULL_ACCESS, format!("own {chat}"))));
    files.until_ran(16).await;
    assert_eq!(
        house.app.calls().waiting(),
        6,
        "operators' calls do not wait"
    );
    gate.send_replace(true);
    for call in calls {
        assert!(
            tokio::time::timeout(PATIENCE, call)
                .await
                .expect("its turn comes")
                .unwrap()
                .is_ok()
        );
    }
    assert_eq!(files.ran().len(), 22);
    house.finish().await;
}

#[tokio::test]
async fn an_eighth_of_the_places_for_calls_that_wait_is_left_to_operators() {
    let (files, gate) = gated(&[tool("read")]).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 2;
        config.calls.queue = 8;
    })
    .await;
    let start = |access: &str, chat: String| {
        let app = Arc::clone(&house.app);
        let request = read_in(access, &chat);
        Tasks::new().spawn(async move { app.call(request).await })
    };
    let mut calls: Vec<_> = (0..8)
        .map(|chat| start("without-token", format!("invented {chat}")))
        .collect();
    files.until_ran(1).await;
    until_waiting(&house, 7).await;
    assert_eq!(
        house.refusal(read_in("without-token", "one more")).await,
        "busy"
    );
    calls.push(start(FULL_ACCESS, "first".to_owned()));
    files.until_ran(2).await;
    calls.push(start(FULL_ACCESS, "second".to_owned()));
    until_waiting(&house, 8).await;
    assert_eq!(
        house.refusal(read_in(FULL_ACCESS, "third")).await,
        "busy",
        "all places are taken"
    );
    gate.send_replace(true);
    for call in calls {
        assert!(
            tokio::time::timeout(PATIENCE, call)
                .await
                .expect("its turn comes")
                .unwrap()
                .is_ok()
        );
    }
    assert_eq!(files.ran().len(), 10);
    house.finish().await;
}

/// A house whose only scenario runs one call of clients without the token at a time, each once the
/// test adds a permit.
async fn house_of_steps() -> (Callee, House, Arc<Semaphore>) {
    let steps = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&steps);
    let files = Callee::start(manifest("files", &[tool("read")]), move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            done(&json!(null))
        }
    })
    .await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 2;
        config
            .profiles
            .insert("work".to_owned(), Profile::default());
    })
    .await;
    (files, house, steps)
}

/// Requests these calls one after the other, each with a name of its own and as its caller, and
/// gives the names in the order in which they ran.
async fn order_of(callers: &[(&'static str, Request)]) -> Vec<String> {
    let (files, house, steps) = house_of_steps().await;
    let mut calls = Vec::new();
    for (number, (name, caller)) in callers.iter().enumerate() {
        let arguments = JsonText::parse(&json!({"name": name}).to_string()).unwrap();
        let request = Request {
            arguments,
            ..caller.clone()
        };
        let app = Arc::clone(&house.app);
        calls.push(Tasks::new().spawn(async move { app.call(request).await }));
        files.until_ran(1).await;
        until_waiting(&house, number).await;
    }
    for number in 1..=calls.len() {
        files.until_ran(number).await;
        steps.add_permits(1);
    }
    for call in calls {
        let answered = tokio::time::timeout(PATIENCE, call).await;
        assert!(answered.expect("its turn comes").unwrap().is_ok());
    }
    let ran = files.ran();
    let names = ran
        .iter()
        .map(|ran| ran.arguments["name"].as_str().unwrap().to_owned());
    let names = names.collect();
    house.finish().await;
    names
}

#[tokio::test]
async fn calls_that_wait_get_permits_in_turn_by_profile_and_conversation() {
    let client = |chat: &str| read_in("without-token", chat);
    let of_profile = Request {
        profile: Some("work".to_owned()),
        chat: None,
        ..client("")
    };
    // However many conversations a client invents, one call is before that of another profile.
    let invented = [
        ("a", client("1")),
        ("b", client("2")),
        ("c", client("3")),
        ("d", client("4")),
        ("other", of_profile),
    ];
    assert_eq!(order_of(&invented).await, ["a", "b", "other", "c", "d"]);
    let busy = client("busy");
    let many_of_one = [
        ("a", busy.clone()),
        ("b", busy.clone()),
        ("c", busy.clone()),
        ("d", busy),
        ("other", client("other")),
        ("third", client("third")),
    ];
    let order = order_of(&many_of_one).await;
    assert_eq!(order, ["a", "b", "other", "third", "c", "d"]);
}

#[tokio::test]
async fn a_call_that_stops_waiting_lets_those_behind_it_pass() {
    let (files, house, steps) = house_of_steps().await;
    let start = |chat: &str| {
        let app = Arc::clone(&house.app);
        let request = read_in("without-token", chat);
        Tasks::new().spawn(async move { app.call(request).await })
    };
    let first = start("1");
    files.until_ran(1).await;
    let in_front = start("2");
    until_waiting(&house, 1).await;
    let behind = start("3");
    until_waiting(&house, 2).await;
    in_front.abort();
    until_waiting(&house, 1).await;
    steps.add_permits(2);
    for call in [first, behind] {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(files.ran().len(), 2);
    house.finish().await;
}

#[tokio::test]
async fn clients_never_use_up_the_rate_that_operators_have_of_a_tool() {
    let often = tool_that("often", &json!({"rate_limit_per_minute": 2}));
    let files = Callee::echo(manifest("files", &[often])).await;
    let house = House::of(&[("files", files.url())]).await;
    for access in ["without-token", FULL_ACCESS] {
        let call = || Request {
            requester: Requester::with_access(access),
            ..request("often", &json!({}))
        };
        for _ in 0..2 {
            assert!(house.request(call()).await.is_ok(), "{access}");
        }
        assert_eq!(house.refusal(call()).await, "rate_limited", "{access}");
    }
    house.finish().await;
}

#[tokio::test]
async fn a_turn_that_does_not_come_in_time_is_given_up() {
    let (files, gate) = gated(&[tool("read")]).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.concurrency = 1;
        config.calls.queue_timeout = Duration::from_millis(50);
    })
    .await;
    let app = Arc::clone(&house.app);
    let first = Tasks::new().spawn(async move { app.call(request("read", &json!({}))).await });
    files.until_ran(1).await;
    assert_eq!(house.refusal(request("read", &json!({}))).await, "busy");
    gate.send_replace(true);
    assert!(first.await.unwrap().is_ok());
    assert_eq!(files.ran().len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_call_takes_as_long_as_its_tool_says_and_no_longer_than_any_may() {
    let (files, _gate) = gated(&[
        tool_that("brief", &json!({"timeout_seconds": 1})),
        tool("long"),
    ])
    .await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.max_timeout = Duration::from_millis(1500);
    })
    .await;
    for name in ["brief", "long"] {
        let refused = house.call(name, &json!({})).await.unwrap_err();
        assert_eq!(refused.kind(), "timeout", "{refused}");
        let expected = if name == "brief" { "1s" } else { "1.5s" };
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    assert_eq!(files.ran().len(), 2, "what may have run is not run again");
    house.finish().await;
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit() {
    let files = Callee::start(manifest("files", &[tool("read")]), |ran| async move {
        done(&json!("x".repeat(
            usize::try_from(ran.arguments["size"].as_u64().unwrap()).unwrap()
        )))
    })
    .await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.max_body = 10_000;
    })
    .await;
    assert!(house.call("read", &json!({"size": 9_000})).await.is_ok());
    assert_eq!(
        house
            .refusal(request("read", &json!({"size": 11_000})))
            .await,
        "too_large"
    );
    house.finish().await;
}

/// Drops the connection on the first call and answers the next.
async fn fails_once(metadata: &Value) -> (Callee, House) {
    let files = Callee::start(
        manifest("files", &[tool_that("read", metadata)]),
        |_| async { text(502, "bad gateway") },
    )
    .await;
    let times = Arc::new(AtomicUsize::new(0));
    files.runs(move |ran| {
        let first = times.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                text(502, "bad gateway")
            } else {
                done(&ran.arguments)
            }
        }
    });
    let house = House::of(&[("files", files.url())]).await;
    (files, house)
}

#[tokio::test]
async fn only_what_is_safe_to_repeat_is_repeated() {
    let (files, house) = fails_once(&json!({"idempotent": true})).await;
    let answered = house.call("read", &json!({"a": 1})).await.unwrap();
    assert_eq!(answered.attempts, 2);
    assert_eq!(files.ran().len(), 2);
    house.finish().await;
    let (files, house) = fails_once(&json!({})).await;
    let refused = house.call("read", &json!({"a": 1})).await.unwrap_err();
    let ExecuteError::Failed {
        attempts: 1, error, ..
    } = &refused
    else {
        unreachable!("{refused}")
    };
    assert_eq!(refused.kind(), "bad_answer");
    assert!(error.was_sent());
    assert_eq!(files.ran().len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_tools_own_failure_is_not_repeated() {
    let idempotent = tool_that("read", &json!({"idempotent": true}));
    let files = Callee::start(manifest("files", &[idempotent]), |_| async {
        answer(
            503,
            &json!({"success": false, "error": "not now", "code": "unavailable"}),
        )
    })
    .await;
    let house = House::of(&[("files", files.url())]).await;
    let answered = house.call("read", &json!({})).await.unwrap();
    assert!(!answered.outcome.success);
    assert_eq!(answered.attempts, 1);
    assert_eq!(files.ran().len(), 1);
    assert_eq!(
        house
            .app
            .calls()
            .breaker(&scenario("files"))
            .unwrap()
            .failures,
        0,
        "it works, and says no"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_that_moved_is_called_where_it_is_now() {
    let mut files = Callee::echo(manifest("files", &[tool("read")])).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.reroute_wait = PATIENCE;
    })
    .await;
    assert!(house.call("read", &json!({})).await.is_ok());
    let _old = files.move_on().await;
    // The source hears of it only while the call waits.
    let arguments = json!({"a": 1});
    let (answered, ()) = tokio::join!(house.call("read", &arguments), async {
        let failed = |snapshot: &callsheet::catalog::Snapshot| {
            snapshot
                .health
                .get(&scenario("files"))
                .unwrap()
                .failures_in_a_row
                > 0
        };
        house.until("the refused call had it asked", failed).await;
        house.place("files", files.url(), SourceTrust::Trusted);
    });
    let answered = answered.unwrap();
    assert_eq!(answered.attempts, 2);
    assert_eq!(answered.url.as_str(), files.url().as_str());
    assert_eq!(files.ran().len(), 2, "nothing was sent twice");
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_that_restarted_where_it_was_is_tried_once_more() {
    let mut files = Callee::echo(manifest("files", &[tool("read")])).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.reroute_wait = PATIENCE;
        config.refresh.forced_gap = Duration::from_millis(1);
        config.refresh.backoff_base = Duration::from_millis(20);
    })
    .await;
    files.kill().await;
    let arguments = json!({});
    let (answered, ()) = tokio::join!(house.call("read", &arguments), async {
        let failed = |snapshot: &callsheet::catalog::Snapshot| {
            snapshot
                .health
                .get(&scenario("files"))
                .unwrap()
                .failures_in_a_row
                > 0
        };
        house.until("the refused call had it asked", failed).await;
        files.revive();
    });
    assert_eq!(answered.unwrap().attempts, 2);
    house.finish().await;
}

#[tokio::test]
async fn a_tool_that_keeps_failing_is_left_alone_until_one_call_works() {
    let files = Callee::start(manifest("files", &[tool("read")]), |_| async {
        text(500, "oops")
    })
    .await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.breaker_failures = 2;
        config.calls.breaker_open = Duration::from_millis(300);
    })
    .await;
    let own = || house.app.calls().tool_breakers(&scenario("files"));
    assert_eq!(own(), []);
    assert_eq!(
        house.app.calls().breaker(&scenario("files")),
        None,
        "not called yet"
    );
    for _ in 0..2 {
        assert_eq!(
            house.refusal(request("read", &json!({}))).await,
            "bad_answer"
        );
    }
    assert_eq!(own()[0].status.state, BreakerState::Open);
    assert_eq!(
        house
            .app
            .calls()
            .breaker(&scenario("files"))
            .unwrap()
            .failures,
        0,
        "it was reached"
    );
    let refused = house.call("read", &json!({})).await.unwrap_err();
    let ExecuteError::BreakerOpen {
        tool: Some(tool),
        failures: 2,
        wait,
        ..
    } = refused
    else {
        unreachable!("{refused}")
    };
    assert_eq!(tool.to_string(), "files/read");
    assert!(wait <= Duration::from_millis(300));
    assert_eq!(files.ran().len(), 2, "left alone");
    files.runs(|_| async { done(&json!(1)) });
    let works = tokio::time::timeout(PATIENCE, async {
        while house.app.call(request("read", &json!({}))).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    works.await.unwrap();
    assert_eq!(own(), [], "one tried, and it worked");
    assert_eq!(files.ran().len(), 3, "one tried, and it worked");
    house.finish().await;
}

#[tokio::test]
async fn what_is_under_way_goes_on_when_nobody_listens_any_more() {
    let (files, gate) = gated(&[tool("write")]).await;
    let house = House::of(&[("files", files.url())]).await;
    let app = Arc::clone(&house.app);
    let asker = Tasks::new().spawn(async move { app.call(request("write", &json!({}))).await });
    files.until_ran(1).await;
    asker.abort();
    assert!(asker.await.is_err());
    gate.send_replace(true);
    // Its turn is over when it is, and its outcome is known.
    let ended = tokio::time::timeout(PATIENCE, async {
        while house.app.calls().under_way(&scenario("files")) > 0 {
            tokio::task::yield_now().await;
        }
    });
    ended.await.unwrap();
    assert_eq!(files.ran().len(), 1);
    house.finish().await;
}

/// A switch that was acknowledged holds for calls that still wait.
#[tokio::test]
async fn a_call_that_waited_is_judged_again_when_its_turn_comes() {
    let changes = [
        (
            SettingsPatch {
                enabled: Some(Some(false)),
                ..SettingsPatch::default()
            },
            "disabled",
        ),
        (
            SettingsPatch {
                approval: Some(Some(ApprovalPolicy::Require)),
                ..SettingsPatch::default()
            },
            "approval_required",
        ),
    ];
    for (patch, kind) in changes {
        let (files, gate) = gated(&[tool("read")]).await;
        let house = House::with(&[("files", files.url())], |config| {
            config.calls.concurrency = 1;
        })
        .await;
        let start = || {
            let app = Arc::clone(&house.app);
            Tasks::new().spawn(async move { app.call(request("read", &json!({}))).await })
        };
        let first = start();
        files.until_ran(1).await;
        let second = start();
        let waits = async {
            while house.app.calls().waiting() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waits).await.unwrap();

        house.prefer("global", "tool:files/read", patch).await;
        gate.send_replace(true);

        assert!(first.await.unwrap().is_ok(), "what was sent goes on");
        assert_eq!(second.await.unwrap().unwrap_err().kind(), kind);
        assert_eq!(files.ran().len(), 1, "the second call was not sent");
        house.finish().await;
    }
}

/// The same holds for the repeat of a call that may be repeated.
#[tokio::test]
async fn a_call_is_judged_again_before_it_is_repeated() {
    let (gate, open) = watch::channel(false);
    let idempotent = tool_that("read", &json!({"idempotent": true}));
    let files = Callee::start(manifest("files", &[idempotent]), move |_| {
        let mut open = open.clone();
        async move {
            open.wait_for(|open| *open).await.unwrap();
            text(502, "bad gateway")
        }
    })
    .await;
    let house = House::of(&[("files", files.url())]).await;
    let arguments = json!({});
    let (refused, ()) = tokio::join!(house.call("read", &arguments), async {
        files.until_ran(1).await;
        let off = SettingsPatch {
            enabled: Some(Some(false)),
            ..SettingsPatch::default()
        };
        house.prefer("global", "tool:files/read", off).await;
        gate.send_replace(true);
    });
    let refused = refused.unwrap_err();
    assert_eq!(
        refused.kind(),
        "bad_answer",
        "it was disabled before the repeat: {refused}"
    );
    assert_eq!(
        files.ran().len(),
        1,
        "it was disabled before the repeat: {refused}"
    );
    house.finish().await;
}
