//! How many requests there are at once: one for each scenario, and so many over all.

use std::time::Duration;

use callsheet::model::ScenarioState;
use callsheet::runtime::Clock;
use callsheet::runtime::tasks::Finish;

use crate::support::in_process::{listed, name};
use crate::support::scripted::{Gate, Reply, Scripted};
use crate::support::watched::{ms, one, setting};

#[tokio::test]
async fn a_scenario_is_asked_by_one_request_at_a_time() {
    let gate = Gate::new();
    let server = Scripted::saying(
        Reply::tools("files", &["read"])
            .header("Cache-Control: no-cache")
            .behind(&gate),
    );
    let sheet = one("files", &server).start().await;
    server.until_asked(1).await;
    let engine = sheet.app.engine();
    let forced: Vec<_> = (0..8)
        .map(|_| engine.refresh(vec![name("files")]))
        .collect();
    let open = async {
        assert!(engine.refresh(vec![name("nobody")]).await.is_err());
        gate.open();
    };
    let (healths, ()) = tokio::join!(futures_util::future::join_all(forced), open);
    assert!(healths.iter().all(Result::is_ok));
    sheet.until_listed(&["read"]).await;
    // Forced and regular asks one after the other.
    for _ in 0..10 {
        sheet.refresh("files").await;
    }
    assert_eq!(server.most_at_once(), 1);
}

#[tokio::test]
async fn over_all_scenarios_there_are_so_many_requests_at_once() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Scripted::start(move |request| {
        let scenario = request.target().split('/').nth(1).unwrap().to_owned();
        Reply::tools(&scenario, &[&format!("of_{scenario}")]).behind(&held)
    });
    let names: Vec<_> = (0..24).map(|n| format!("s{n:02}")).collect();
    let scenarios = names.iter().map(|name| (name.as_str(), server.below(name)));
    let sheet = setting(scenarios)
        .seldom()
        .with(|config| config.refresh.concurrency = 3)
        .start()
        .await;
    server.until_at_once(3).await;
    gate.open();
    let all = sheet.until("all are live", |now| {
        now.health.len() == 24
            && now
                .health
                .values()
                .all(|health| health.state == ScenarioState::Live)
    });
    assert_eq!(listed(&*all.await).len(), 24);
    assert_eq!(server.most_at_once(), 3);
    assert_eq!(server.count(), 24);
}

#[tokio::test]
async fn one_that_hangs_delays_none_of_the_others() {
    let slow = Scripted::saying(Reply::tools("slow", &["b"]).behind(&Gate::new()));
    let mut gone = Scripted::absent();
    gone.close().await;
    let fast = Scripted::saying(Reply::tools("fast", &["a"]).header("Cache-Control: no-cache"));
    let scenarios = [
        ("slow", slow.url()),
        ("gone", gone.url()),
        ("fast", fast.url()),
    ];
    let sheet = setting(scenarios).start().await;
    sheet.until_listed(&["a"]).await;
    fast.until_asked(5).await;
    assert_eq!(slow.count(), 1);
    assert_eq!(sheet.health("slow").state, ScenarioState::Connecting);
}

#[tokio::test]
async fn stopping_does_not_wait_for_answers() {
    let slow = Scripted::saying(Reply::tools("slow", &["b"]).behind(&Gate::new()));
    let sheet = one("slow", &slow).start().await;
    slow.until_asked(1).await;
    let started = Clock::system().now();
    let (finish, _) = sheet.stop().await;
    assert_eq!(finish, Finish::Clean, "after {:?}", started.elapsed());
    slow.until_left(1).await;
}

#[tokio::test]
async fn an_ask_that_takes_too_long_is_given_up_and_repeated() {
    let slow = Scripted::saying(Reply::tools("files", &["a"]).behind(&Gate::new()));
    let sheet = one("files", &slow)
        .with(|config| config.refresh.timeout = ms(100))
        .start()
        .await;
    let late = sheet
        .until_health("files", "timed out", |health| health.failures_in_a_row >= 2)
        .await;
    let error = late.health[&name("files")].last_error.clone().unwrap();
    assert_eq!(error.kind.as_str(), "timeout", "{error:?}");
    assert!(error.message.contains("within 100ms"), "{error:?}");
    slow.say(Reply::tools("files", &["a"]));
    sheet.until_listed(&["a"]).await;
    assert!(
        tokio::time::timeout(Duration::from_secs(20), slow.until_left(2))
            .await
            .is_ok()
    );
}
