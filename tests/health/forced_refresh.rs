//! Asking now, past the schedule: what an operator's refresh does, and that whoever waits for it
//! always gets an answer.

use std::time::Duration;

use callsheet::engine::EngineError;
use callsheet::model::ScenarioState;
use callsheet::state::Decision;

use crate::support::in_process::{listed, name};
use crate::support::scripted::{Gate, PATIENCE, Reply, Scripted};
use crate::support::watched::{HOUR, Watched, ms, one, setting};

fn tagged(tools: &[&str]) -> Reply {
    Reply::tools("files", tools)
        .header("ETag: \"v1\"")
        .header("Cache-Control: max-age=600")
}

#[tokio::test]
async fn a_forced_ask_is_unconditional_and_its_outcome_is_published_when_it_returns() {
    let server = Scripted::saying(tagged(&["read"]));
    let sheet = one("files", &server).seldom().start().await;
    sheet.until_listed(&["read"]).await;
    server.say(tagged(&["read", "write"]));
    let shown = sheet.refresh("files").await;
    assert_eq!(server.last().header("if-none-match"), None);
    assert_eq!(shown.state, ScenarioState::Live);
    assert_eq!(shown.tools.published, 2);
    assert_eq!(listed(&sheet.now()), ["read", "write"]);
    assert_eq!(server.count(), 2);

    server.say(Reply::status("500 Internal Server Error"));
    let shown = sheet.refresh("files").await;
    assert_eq!(shown.failures_in_a_row, 1, "a failure is an outcome too");
    assert_eq!(
        shown.state,
        ScenarioState::Live,
        "a failure is an outcome too"
    );
}

#[tokio::test]
async fn forced_asks_join_the_one_under_way() {
    let gate = Gate::new();
    let server = Scripted::saying(tagged(&["read"]).behind(&gate));
    let sheet = one("files", &server).seldom().start().await;
    server.until_asked(1).await;
    let engine = sheet.app.engine();
    let refreshes = (0..20).map(|_| engine.refresh(vec![name("files")]));
    let open = async {
        // Each of them is in the queue before this one is, and this one is taken in before the gate
        // opens.
        assert!(engine.refresh(vec![name("nobody")]).await.is_err());
        gate.open();
    };
    let (healths, ()) = tokio::join!(futures_util::future::join_all(refreshes), open);
    assert!(
        healths
            .into_iter()
            .all(|healths| healths.unwrap()[0].tools.published == 1)
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn between_two_forced_asks_is_the_gap() {
    let gap = ms(300);
    let server = Scripted::saying(tagged(&["read"]));
    let sheet = one("files", &server)
        .seldom()
        .with(|config| config.refresh.forced_gap = gap)
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    sheet.refresh("files").await;
    // Both wait for the same ask.
    tokio::join!(sheet.refresh("files"), sheet.refresh("files"));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for pair in seen.windows(2) {
        // The times are those of arrival; the asks themselves are no nearer.
        assert!(
            pair[1].at - pair[0].at + ms(50) >= gap,
            "{:?}",
            pair[1].at - pair[0].at
        );
    }
}

#[tokio::test]
async fn a_forced_ask_never_postpones_one_that_is_planned() {
    let server = Scripted::saying(Reply::status("500 Internal Server Error"));
    let setting = one("files", &server).with(|config| {
        // After a failure it is asked again soon, long before the gap is over.
        (config.refresh.backoff_base, config.refresh.backoff_max) = (ms(500), ms(500));
        config.refresh.forced_gap = HOUR;
    });
    let sheet = setting.start().await;
    sheet
        .until_health("files", "failed", |health| health.failures_in_a_row == 1)
        .await;
    server.say(tagged(&["read"]));
    assert_eq!(sheet.refresh("files").await.state, ScenarioState::Live);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn refreshing_all_asks_all() {
    let first = Scripted::saying(Reply::tools("first", &["a"]));
    let second = Scripted::saying(Reply::status("500 Internal Server Error"));
    let third = Scripted::saying(Reply::tools("third", &["c"]));
    let scenarios = [
        ("first", first.url()),
        ("second", second.url()),
        ("third", third.url()),
    ];
    let sheet = setting(scenarios).seldom().start().await;
    sheet.until_listed(&["a", "c"]).await;
    sheet
        .app
        .engine()
        .decide(name("third"), Some(Decision::Blocked))
        .await
        .unwrap();
    first.say(Reply::tools("first", &["a", "b"]));
    let healths = sheet.app.engine().refresh(Vec::new()).await.unwrap();
    let names: Vec<_> = healths.iter().map(|health| health.name.as_str()).collect();
    assert_eq!(names, ["first", "second"], "a blocked one is not asked");
    assert_eq!(listed(&sheet.now()), ["a", "b"]);
    assert_eq!(third.count(), 1);
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_by_name() {
    let server = Scripted::saying(tagged(&["read"]));
    let sheet = one("files", &server).seldom().start().await;
    sheet.until_listed(&["read"]).await;
    let engine = sheet.app.engine().clone();
    let refused = engine.refresh(vec![name("nobody")]).await.unwrap_err();
    assert!(
        matches!(&refused, EngineError::UnknownScenario(unknown) if *unknown == name("nobody")),
        "{refused}"
    );
    engine
        .decide(name("files"), Some(Decision::Blocked))
        .await
        .unwrap();
    let refused = engine.refresh(vec![name("files")]).await.unwrap_err();
    assert!(matches!(refused, EngineError::Blocked(_)), "{refused}");
    sheet.stop().await;
    let refused = engine.refresh(vec![name("files")]).await.unwrap_err();
    assert!(matches!(refused, EngineError::Stopping), "{refused}");
}

/// Whoever waits for the next answer is told that the block keeps it from coming.
async fn told_of_the_block(sheet: &Watched, decide: impl Future<Output = ()>) {
    let refresh = sheet.app.engine().refresh(vec![name("files")]);
    let both = async { tokio::join!(refresh, decide) };
    let (healths, ()) = tokio::time::timeout(PATIENCE, both)
        .await
        .expect("whoever waits is answered");
    let refused = healths.unwrap_err();
    assert!(
        matches!(&refused, EngineError::Blocked(blocked) if *blocked == name("files")),
        "{refused}"
    );
}

#[tokio::test]
async fn blocking_answers_whoever_waits_for_the_gap() {
    let server = Scripted::saying(tagged(&["read"]));
    let sheet = one("files", &server)
        .seldom()
        .with(|config| config.refresh.forced_gap = HOUR)
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    // The refresh is taken in first: it waits for the gap, and then for nothing that will ever
    // come.
    let block = async {
        assert!(
            sheet
                .app
                .engine()
                .refresh(vec![name("nobody")])
                .await
                .is_err()
        );
        sheet
            .app
            .engine()
            .decide(name("files"), Some(Decision::Blocked))
            .await
            .unwrap();
    };
    told_of_the_block(&sheet, block).await;
    assert_eq!(
        sheet.app.reader().snapshot().health[&name("files")].state,
        ScenarioState::Blocked
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn blocking_ends_the_ask_under_way() {
    let gate = Gate::new();
    let server = Scripted::saying(tagged(&["read"]).behind(&gate));
    let sheet = one("files", &server).seldom().start().await;
    server.until_asked(1).await;
    let block = async {
        assert!(
            sheet
                .app
                .engine()
                .refresh(vec![name("nobody")])
                .await
                .is_err()
        );
        sheet
            .app
            .engine()
            .decide(name("files"), Some(Decision::Blocked))
            .await
            .unwrap();
    };
    told_of_the_block(&sheet, block).await;
    assert_eq!(
        sheet.app.reader().snapshot().health[&name("files")].state,
        ScenarioState::Blocked
    );
    server.until_left(1).await;
    let ready = tokio::time::timeout(Duration::from_secs(20), sheet.app.readiness().wait()).await;
    assert!(ready.is_ok(), "a blocked scenario is not waited for");

    // Unblocked, it is asked at once, and that is no restart.
    gate.open();
    let sheet = sheet;
    sheet
        .app
        .engine()
        .decide(name("files"), None)
        .await
        .unwrap();
    sheet.until_listed(&["read"]).await;
    assert_eq!(server.count(), 2);
    assert_eq!(sheet.health("files").restarts, 0);
}
