//! The limits of requests that are relayed are those of calls: the memory that they hold, and the
//! wait for a permit.

use std::sync::Arc;

use callsheet::calls::{ExecuteError, RelayRequest, RelayResponse, Requester};
use callsheet::catalog::ViewQuery;
use callsheet::model::JsonText;
use callsheet::protocols::RelayMethod;
use callsheet::runtime::{Stop, StopTrigger, Tasks};
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
