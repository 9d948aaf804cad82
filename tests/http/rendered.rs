//! Pages and other answers that take long to write: they never hold the threads that serve
//! requests, and beyond a short queue they are refused.

use std::time::Duration;

use callsheet::config;
use callsheet::model::{ScenarioState, Secret};
use callsheet::runtime::Tasks;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::support::offers::inputs;
use crate::support::serving;

/// So many answers are written or wait at once, but for those of operators.
const PLACES: usize = 58;
/// The same of operators beside that.
const OPERATORS_PLACES: usize = 9;
const REQUESTS: usize = 100;
/// No answer takes this long unless it waits for one that cannot come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests such an answer while no thread can write one.
fn answered_beside(target: &str) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all();
    runtime.build().unwrap().block_on(async {
        let health = vec![serving::health("a", ScenarioState::Live)];
        let server = serving::serve(serving::snapshot(
            &inputs(&[("a", &["x", "y"])]),
            health,
            Vec::new(),
        ))
        .await;
        let known = ["/healthz", "/api/v1/tools", "/api/v1/tools/set"];
        for path in known {
            assert_eq!(server.get(path).await.status, 200, "{path}");
        }
        let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
        let tasks = Tasks::new();
        let blocked = tasks.spawn_blocking(move || held.recv().is_err());
        let mut answers: FuturesUnordered<_> = (0..REQUESTS).map(|_| server.get(target)).collect();
        for _ in PLACES..REQUESTS {
            let answer = tokio::time::timeout(PATIENCE, answers.next())
                .await
                .expect("it is refused")
                .unwrap();
            assert_eq!(answer.status, 503, "{answer:?}");
            // A page has no header for that; its text says it.
            assert_eq!(
                answer.headers.contains_key("retry-after"),
                target.starts_with("/api/"),
                "{answer:?}"
            );
        }
        for path in known {
            assert_eq!(server.get(path).await.status, 200, "{path} beside {target}");
        }
        drop(release);
        assert!(blocked.await.unwrap());
        for _ in 0..PLACES {
            assert_eq!(answers.next().await.unwrap().status, 200);
        }
    });
}

#[test]
fn pages_that_wait_to_be_written_let_other_requests_pass() {
    for target in ["/docs", "/dashboard/tools", "/api/modules"] {
        answered_beside(target);
    }
}

/// Without the queue, the findings of many tools are collected for all requests at once.
#[test]
fn findings_that_wait_to_be_collected_let_other_requests_pass() {
    for target in ["/api/v1/findings", "/api/v1/scenarios/a"] {
        answered_beside(target);
    }
}

#[test]
fn a_tool_set_is_written_once_for_a_snapshot_and_lets_other_requests_pass() {
    answered_beside("/api/v1/tools/set?chat_id=7");
}

/// Each difference is found in two whole definitions.
#[test]
fn pins_that_wait_to_be_compared_let_other_requests_pass() {
    answered_beside("/api/v1/pins");
}

/// Without the queue, the definitions of many large tools were in memory for all requests at once.
#[test]
fn searches_explanations_and_histories_that_wait_let_other_requests_pass() {
    for target in [
        "/api/v1/tools/search?q=x&format=native",
        "/api/v1/tools/x/explain",
        "/api/v1/tools/x/history",
    ] {
        answered_beside(target);
    }
}

/// An operator's page waits for no page of other clients.
#[test]
fn operators_have_places_and_turns_of_their_own_among_those_that_wait() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all();
    runtime.build().unwrap().block_on(async {
        let token = "0123456789abcdef-topsecret";
        let configured = config::ServerConfig {
            operator_token: Some(Secret::new(token)),
            ..serving::configured()
        };
        let first = serving::snapshot(&inputs(&[("a", &["x", "y"])]), Vec::new(), Vec::new());
        let server = serving::serve_configured(first, 1 << 20, configured).await;
        let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
        let tasks = Tasks::new();
        let blocked = tasks.spawn_blocking(move || held.recv().is_err());
        let mut answers: FuturesUnordered<_> = (0..REQUESTS).map(|_| server.get("/docs")).collect();
        for _ in PLACES..REQUESTS {
            assert_eq!(answers.next().await.unwrap().status, 503);
        }
        let bearer = format!("Bearer {token}");
        let operators = [("authorization", bearer.as_str())];
        let mut pages: FuturesUnordered<_> = (0..=OPERATORS_PLACES)
            .map(|_| server.ask("GET", "/docs", &operators, ""))
            .collect();
        // All others have their places then.
        assert_eq!(pages.next().await.unwrap().status, 503);
        drop(release);
        assert!(blocked.await.unwrap());
        let mut before = 0;
        let page = loop {
            tokio::select! {
                page = pages.next() => break page.unwrap(),
                _ = answers.next() => before += 1,
            }
        };
        assert_eq!(page.status, 200);
        assert!(
            before < PLACES / 2,
            "{before} pages of others were written before"
        );
    });
}

/// A page that kept its thread while another thread makes a list for it would never be answered
/// here.
#[test]
fn pages_that_wait_for_lists_and_checks_leave_their_threads_to_these() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let answered = runtime.block_on(async {
        let server = serving::serve_inputs(&inputs(&[("a", &["x", "y"])])).await;
        let mut answered = Vec::new();
        for target in [
            "/dashboard/tools/formats",
            "/dashboard/findings",
            "/dashboard/findings/now",
        ] {
            let part = [("hx-request", "true")];
            let answer = tokio::time::timeout(PATIENCE, server.ask("GET", target, &part, "")).await;
            answered.push(answer.map(|answer| answer.status).ok());
        }
        answered
    });
    // Waits for no thread that a page holds.
    runtime.shutdown_background();
    assert_eq!(answered, [Some(200); 3]);
}
