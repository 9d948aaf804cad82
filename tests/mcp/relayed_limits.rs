//! The limits of requests that are relayed are those of calls: the memory that they hold, and the
//! wait for a permit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::calls::{ExecuteError, RelayRequest, RelayResponse, Requester};
use callsheet::catalog::ViewQuery;
use callsheet::model::{FindingCode, JsonText};
use callsheet::protocols::RelayMethod;
use callsheet::runtime::{Clock, Stop, StopTrigger, Tasks};
use serde_json::json;

use crate::hostile_calls::Cancels;
use crate::relayed::{all, offering};
use crate::support::callee::PATIENCE;
use crate::support::house::{House, scenario};
use crate::support::mcp_client::McpClient;
use crate::support::mcp_server::{Answer, Came, McpServer, modern};

/// A server whose resources have the sizes in their addresses; one of them is never answered.
async fn server() -> McpServer {
    let mut own = offering(
        modern(&json!([])),
        all(),
        &[
            "test://100000",
            "test://180000",
            "test://400000",
            "test://stuck",
        ],
    );
    McpServer::start(move |came: &Came| {
        let uri = came.message["params"]["uri"].as_str().unwrap_or_default();
        match (came.method(), uri.strip_prefix("test://")) {
            ("resources/read", Some("stuck")) => Answer::Silence,
            ("resources/read", Some(bytes)) => {
                let text = "x".repeat(bytes.parse().unwrap_or_default());
                came.result(&json!({"contents": [{"uri": uri, "text": text}]}))
            }
            _ => own(came),
        }
    })
    .await
}

/// Reads a resource for a caller that cancels by this stop.
async fn read(house: &House, params: JsonText, stop: Stop) -> Result<RelayResponse, ExecuteError> {
    let request = RelayRequest {
        scenario: scenario("docs"),
        method: RelayMethod::ReadResource,
        params,
        resumed: None,
        scope: ViewQuery::default(),
        requester: Requester::full_access(),
    };
    house
        .app
        .calls()
        .relay(request, Some(Arc::new(Cancels(stop))))
        .await
}

fn params(uri: &str) -> JsonText {
    JsonText::parse(&json!({"uri": uri}).to_string()).unwrap()
}

#[tokio::test]
async fn what_is_relayed_holds_its_bytes_in_the_budget_until_it_is_answered() {
    let server = server().await;
    let house = House::with(&[("docs", server.url())], |config| {
        config.server.held_bytes = 1 << 20;
    })
    .await;
    let client = McpClient::modern(house.serve().await, json!({}));
    let (_, refused) = client
        .request("resources/read", json!({"uri": "test://400000"}))
        .await;
    assert_eq!(refused["error"]["code"], -31_010, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("is left out") && message.contains("`server.held_bytes`"),
        "{message}"
    );
    // Each has room only if the one before is free again.
    for _ in 0..3 {
        let (_, answer) = client
            .request("resources/read", json!({"uri": "test://100000"}))
            .await;
        let text = answer["result"]["contents"][0]["text"].as_str();
        assert_eq!(text.map(str::len), Some(100_000), "{answer}");
    }
    // A share of results has 301 KB, so there is room for one that is held once.
    let (_, answer) = client
        .request("resources/read", json!({"uri": "test://180000"}))
        .await;
    let text = answer["result"]["contents"][0]["text"].as_str();
    assert_eq!(text.map(str::len), Some(180_000), "{}", answer["error"]);
    let (_trigger, stop) = StopTrigger::new();
    let refused = read(&house, params(&"x".repeat(400_000)), stop)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), "memory_share_full", "{refused}");
    assert_eq!(server.of("resources/read").len(), 5, "it was not sent");
    house.finish().await;
}

#[tokio::test]
async fn what_is_relayed_does_not_wait_for_its_permit_when_its_caller_cancelled() {
    let server = server().await;
    let house = House::with(&[("docs", server.url())], |config| {
        config.calls.concurrency = 1;
    })
    .await;
    let house = Arc::new(house);
    let begin = |uri: &str| {
        let (trigger, stop) = StopTrigger::new();
        let house = Arc::clone(&house);
        let params = params(uri);
        (
            trigger,
            Tasks::new().spawn(async move { read(&house, params, stop).await }),
        )
    };
    let (first, sent) = begin("test://stuck");
    server.until("resources/read", 1).await;
    let (second, waiting) = begin("test://100000");
    let waits = async {
        while house.app.calls().waiting() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap();
    second.stop();
    let refused = waiting.await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), "unavailable");
    assert!(refused.to_string().contains("cancelled"), "{refused}");
    assert_eq!(house.app.calls().waiting(), 0);
    first.stop();
    assert!(sent.await.unwrap().is_err());
    assert_eq!(server.of("resources/read").len(), 1);
    Arc::into_inner(house).unwrap().finish().await;
}

/// A list of 8 MB with millions of elements that are no resources was read by a thread that serves
/// requests: two such servers kept all of them for seconds.
#[test]
fn a_long_list_of_resources_holds_no_other_work_up() {
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let server = elsewhere.block_on(async {
        let mut own = offering(modern(&json!([])), all(), &[]);
        McpServer::start(move |came: &Came| match came.method() {
            "resources/list" => {
                let elements = format!("{}0", "0,".repeat(4_000_000));
                let id = &came.message["id"];
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","resources":[{elements}]}}}}"#
                );
                let json = "application/json".to_owned();
                Answer::With("content-type", json, Box::new(Answer::Text(200, text)))
            }
            _ => own(came),
        })
        .await
    });
    let own = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    own.block_on(async {
        let clock = Clock::system();
        let longest = Arc::new(Mutex::new(Duration::ZERO));
        let measured = Arc::clone(&longest);
        let beside = Tasks::new().spawn(async move {
            loop {
                let before = clock.now();
                clock.sleep(Duration::from_millis(10)).await;
                let took = clock.now() - before;
                let mut longest = measured.lock().unwrap();
                *longest = took.max(*longest);
            }
        });
        let house = House::of(&[("docs", server.url())]).await;
        let findings = house.app.snapshot().findings.clone();
        let mut left_out = findings
            .iter()
            .filter(|finding| finding.code == FindingCode::OfferLeftOut);
        let counted = left_out.any(|finding| finding.message.starts_with("3999"));
        assert!(counted, "{findings:?}");
        beside.abort();
        let longest = *longest.lock().unwrap();
        assert!(longest < Duration::from_secs(3), "{longest:?}");
        house.finish().await;
    });
}
