//! Servers that answer what nobody requested, or more than anybody reads: the call gets its own
//! answer, and later calls get theirs.

use std::sync::Arc;

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{StdioTarget, Target};
use callsheet::protocols::{CallIo, Cancelled};
use callsheet::runtime::{Stop, StopTrigger, Tasks};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::callee::PATIENCE;
use crate::support::house::{House, request, scenario};
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};

/// A program that floods its standard error, answers twice, answers requests that were never sent,
/// answers calls after they were cancelled, and in lines that are too long or never end.
const PROGRAM: &str = r#"
import json, sys
def out(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
def text(id, text):
    out({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
for _ in range(100000):
    sys.stderr.write("e" * 200 + "\n")
held = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        out({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "hold", "large", "endless")]
        out({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}})
    elif method == "tools/call" and message["params"]["name"] == "hold":
        held = id
    elif method == "tools/call" and message["params"]["name"] == "large":
        text(id, "x" * (17 << 20))
    elif method == "tools/call" and message["params"]["name"] == "endless":
        while True:
            sys.stdout.write("x" * (1 << 20))
    elif method == "tools/call":
        text(999999, "for nobody")
        text(str(id), "another id")
        if held is not None:
            text(held, "late")
        text(id, message["params"]["arguments"]["say"])
        text(id, "again")
    elif id is not None:
        out({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}})
"#;

/// A caller that cancels.
pub(crate) struct Cancels(pub(crate) Stop);

impl CallIo for Cancels {
    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        let stop = self.0.clone();
        Box::pin(async move {
            stop.wait().await;
            Cancelled::ByCaller
        })
    }
}

/// What the tool says.
async fn said(house: &House, text: &str) -> String {
    let outcome = house
        .call("echo", &json!({"say": text}))
        .await
        .unwrap()
        .outcome;
    outcome.result.unwrap().get().to_owned()
}

/// A house with the program.
async fn program() -> House {
    let house = House::of(&[]).await;
    let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
    let target = Target::from(StdioTarget::new("python3").with_args(["-c", PROGRAM]));
    house.place_endpoint(
        "child",
        Endpoint {
            target: Some(target),
            ..endpoint
        },
    );
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("child")).is_some()
        })
        .await;
    house
}

#[tokio::test]
async fn a_line_that_is_too_long_costs_its_call_and_one_without_an_end_its_process() {
    let house = program().await;
    let Err(failed) = house.call("large", &json!({})).await else {
        panic!("the answer is too long")
    };
    assert!(
        failed.to_string().contains("16 MiB") || failed.to_string().contains("16777216"),
        "{failed}"
    );
    assert_eq!(said(&house, "same process").await, "\"same process\"");
    assert_eq!(
        house.refusal(request("endless", &json!({}))).await,
        "too_large"
    );
    let stopped = house
        .until_health("child", "says why", |health| {
            health
                .last_error
                .as_ref()
                .is_some_and(|error| format!("{error:?}").contains("a line of more than 256 MiB"))
        })
        .await;
    assert!(
        stopped.catalog.entry(&scenario("child")).is_some(),
        "its tools stay"
    );
    while house
        .call("echo", &json!({"say": "next process"}))
        .await
        .is_err()
    {}
    house.finish().await;
}

#[tokio::test]
async fn answers_that_come_twice_late_or_for_nobody_reach_no_other_call() {
    let house = program().await;
    // A flood of errors is kept in part only.
    let errors = house.route("child").unwrap().session.recent_errors();
    assert!((1..=100).contains(&errors.len()), "{} lines", errors.len());

    assert_eq!(said(&house, "one").await, "\"one\"");
    assert_eq!(said(&house, "two").await, "\"two\"");
    let (trigger, stop) = StopTrigger::new();
    let app = Arc::clone(&house.app);
    let holding = Tasks::new().spawn(async move {
        app.calls()
            .execute_for(request("hold", &json!({})), Some(Arc::new(Cancels(stop))))
            .await
    });
    let under_way = async {
        while house.app.calls().under_way(&scenario("child")) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, under_way).await.unwrap();
    trigger.stop();
    assert!(holding.await.unwrap().is_err());
    let failures = house
        .app
        .calls()
        .breaker(&scenario("child"))
        .unwrap()
        .failures;
    assert_eq!(
        failures, 0,
        "that its caller cancelled it says nothing of the program"
    );
    assert_eq!(said(&house, "three").await, "\"three\"");
    house.finish().await;
}

#[tokio::test]
async fn messages_that_are_none_are_skipped_before_the_answer() {
    let mut own = legacy("2025-11-25", &json!([tool("work")]));
    let server = McpServer::start(move |came: &Came| {
        if came.method() != "tools/call" {
            return own(came);
        }
        let id = &came.message["id"];
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        Answer::Events(vec![
            json!(7),
            json!([]),
            json!({"jsonrpc": "2.0"}),
            json!({"jsonrpc": "2.0", "id": id, "result": {}, "error": {"code": 1, "message": "both"}}),
            json!({"jsonrpc": "2.0", "id": id.to_string(), "result": text("another id")}),
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": id, "progress": "much"}}),
            json!({"jsonrpc": "2.0", "id": id, "result": text("one")}),
            json!({"jsonrpc": "2.0", "id": id, "result": text("two")}),
        ])
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    for _ in 0..2 {
        let outcome = house.call("work", &json!({})).await.unwrap().outcome;
        assert_eq!(outcome.result.unwrap().get(), "\"one\"");
    }
    house.finish().await;
}

#[tokio::test]
async fn what_a_schema_refers_to_is_never_fetched() {
    let elsewhere = McpServer::start(|_| Answer::Json(200, json!({"type": "object"}))).await;
    let reference = format!("{}schema.json", elsewhere.url());
    let schema = json!({"type": "object", "properties": {"a": {"$ref": reference}}});
    let server = McpServer::start(modern(&json!([{"name": "work", "inputSchema": schema}]))).await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(house.names(), ["work"]);
    let _ = house.call("work", &json!({"a": {}})).await;
    assert!(elsewhere.came().is_empty(), "{:?}", elsewhere.came());
    house.finish().await;
}

#[tokio::test]
async fn a_schema_that_is_nested_without_end_costs_at_most_its_scenario() {
    let good = McpServer::start(modern(&json!([tool("good")]))).await;
    let deep = format!("{}{}", r#"{"properties":{"a":"#.repeat(5_000), "{}") + &"}}".repeat(5_000);
    let list = format!(r#"{{"tools":[{{"name":"deep","inputSchema":{deep}}}],"ttlMs":0}}"#);
    let mut own = modern(&json!([]));
    let server = McpServer::start(move |came: &Came| {
        if came.method() == "tools/list" {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{list}}}"#,
                came.message["id"]
            );
            return Answer::With(
                "content-type",
                "application/json".to_owned(),
                Box::new(Answer::Text(200, text)),
            );
        }
        own(came)
    })
    .await;
    let house = House::of(&[("good", good.url())]).await;
    house.place("deep", server.url(), SourceTrust::Trusted);
    let judged = |snapshot: &callsheet::catalog::Snapshot| {
        snapshot.catalog.entry(&scenario("deep")).is_some()
            || snapshot
                .health
                .get(&scenario("deep"))
                .is_some_and(|health| health.last_error.is_some())
    };
    house.until("the verdict", judged).await;
    assert!(
        house.names().contains(&"good".to_owned()),
        "{:?}",
        house.names()
    );
    let outcome = house.call("good", &json!({})).await.unwrap().outcome;
    let result: Value = serde_json::from_str(outcome.result.unwrap().get()).unwrap();
    assert_eq!(result, json!({"arguments": {}}));
    house.finish().await;
}
