//! Prompts and resources besides their lists: news of them, and requests in which the client takes
//! part.

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{Profile, StdioTarget, Target};
use serde_json::{Value, json};

use crate::relayed::{all, offering};
use crate::support::callee::PATIENCE;
use crate::support::house::House;
use crate::support::mcp_client::{META, McpClient};
use crate::support::mcp_server::{Answer, McpServer, legacy, modern, tool};

fn notice(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[tokio::test]
async fn a_client_hears_of_the_lists_that_it_wants_to_hear_of() {
    let server = McpServer::start(offering(
        modern(&json!([tool("read")])),
        all(),
        &["test://a"],
    ))
    .await;
    let house = House::of(&[("docs", server.url())]).await;
    let address = house.serve().await;
    let new = McpClient::modern(address, json!({}));
    let wanted =
        json!({"notifications": {"resourcesListChanged": true, "promptsListChanged": true}});
    let mut listening = new
        .follow(&json!("L"), "subscriptions/listen", wanted.clone())
        .await;
    assert_eq!(
        listening.next().await.unwrap()["params"]["notifications"],
        wanted["notifications"]
    );
    let mut of_tools = new
        .follow(
            &json!("T"),
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        )
        .await;
    of_tools.next().await.unwrap();
    let mut older = McpClient::legacy(address, "2025-06-18", json!({}))
        .await
        .listen()
        .await;

    server.until("subscriptions/listen", 1).await;
    let listened = server.of("subscriptions/listen")[0].message["params"]["notifications"].clone();
    let every =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    assert_eq!(
        listened, every,
        "a server need not signal what was not listened for"
    );
    server.script(offering(
        modern(&json!([tool("read")])),
        all(),
        &["test://a", "test://b"],
    ));
    server.push(notice("notifications/resources/list_changed", &json!({})));
    let heard = listening.next().await.unwrap();
    assert_eq!(heard["method"], "notifications/resources/list_changed");
    assert_eq!(
        heard["params"]["_meta"][format!("{META}subscriptionId")],
        "L"
    );
    assert_eq!(
        older.next().await.unwrap()["method"],
        "notifications/resources/list_changed"
    );

    let mut plain = modern(&json!([tool("read"), tool("write")]));
    let mut own = offering(
        modern(&json!([tool("read")])),
        all(),
        &["test://a", "test://b"],
    );
    server.script(move |came| match came.method() {
        "prompts/list" => came.result(&json!({"prompts": []})),
        "tools/list" => plain(came),
        _ => own(came),
    });
    server.push(notice("notifications/prompts/list_changed", &json!({})));
    assert_eq!(
        listening.next().await.unwrap()["method"],
        "notifications/prompts/list_changed"
    );
    assert_eq!(
        of_tools.next().await.unwrap()["method"],
        "notifications/tools/list_changed",
        "and of nothing before"
    );
    let both = [older.next().await.unwrap(), older.next().await.unwrap()]
        .map(|heard| heard["method"].clone());
    let mut both = both.map(|method| method.as_str().unwrap().to_owned());
    both.sort();
    assert_eq!(
        both,
        [
            "notifications/prompts/list_changed",
            "notifications/tools/list_changed"
        ]
    );
    house.finish().await;
}

#[tokio::test]
async fn a_resource_is_followed_once_for_all_its_clients_at_a_server_of_either_era() {
    for is_modern in [true, false] {
        let capabilities = json!({"resources": {"subscribe": true, "listChanged": true}});
        let server = if is_modern {
            McpServer::start(offering(modern(&json!([])), capabilities, &["test://a"])).await
        } else {
            let mut own = offering(
                legacy("2025-11-25", &json!([])),
                capabilities,
                &["test://a"],
            );
            McpServer::start(move |came| match came.method() {
                "resources/subscribe" | "resources/unsubscribe" => came.result(&json!({})),
                _ => own(came),
            })
            .await
        };
        let house = House::of(&[("docs", server.url())]).await;
        let address = house.serve().await;
        server
            .until(
                if is_modern {
                    "subscriptions/listen"
                } else {
                    "GET"
                },
                1,
            )
            .await;
        let new = McpClient::modern(address, json!({}));
        let old = McpClient::legacy(address, "2025-11-25", json!({})).await;
        let wanted =
            json!({"notifications": {"resourceSubscriptions": ["test://none", "test://a"]}});
        let mut listening = new.follow(&json!(5), "subscriptions/listen", wanted).await;
        let acknowledged = listening.next().await.unwrap();
        let honoured = json!({"resourceSubscriptions": ["test://a"]});
        assert_eq!(
            acknowledged["params"]["notifications"], honoured,
            "{is_modern}: {acknowledged}"
        );
        let mut older = old.listen().await;
        assert_eq!(
            old.result("resources/subscribe", json!({"uri": "test://a"}))
                .await,
            json!({})
        );
        let (_, unknown) = old
            .request("resources/subscribe", json!({"uri": "test://none"}))
            .await;
        assert_eq!(unknown["error"]["code"], -32_002);

        server.push(notice(
            "notifications/resources/updated",
            &json!({"uri": "test://a"}),
        ));
        let heard = listening.next().await.unwrap();
        let meta = json!({format!("{META}subscriptionId"): 5});
        assert_eq!(
            heard,
            notice(
                "notifications/resources/updated",
                &json!({"uri": "test://a", "_meta": meta})
            )
        );
        assert_eq!(
            older.next().await.unwrap(),
            notice(
                "notifications/resources/updated",
                &json!({"uri": "test://a"})
            )
        );
        if is_modern {
            let follows = |came: &crate::support::mcp_server::Came| {
                came.message["params"]["notifications"]["resourceSubscriptions"].is_array()
            };
            assert_eq!(
                server
                    .of("subscriptions/listen")
                    .iter()
                    .filter(|came| follows(came))
                    .count(),
                1
            );
        } else {
            assert_eq!(server.of("resources/subscribe").len(), 1);
            assert_eq!(server.of("resources/unsubscribe").len(), 0);
            drop(listening);
            assert_eq!(
                old.result("resources/unsubscribe", json!({"uri": "test://a"}))
                    .await,
                json!({})
            );
            server.until("resources/unsubscribe", 1).await;
        }
        house.finish().await;
    }
}

#[tokio::test]
async fn clients_of_both_eras_give_input_for_a_prompt() {
    let mut own = offering(modern(&json!([])), all(), &[]);
    let server = McpServer::start(move |came| {
        let params = &came.message["params"];
        if came.method() != "prompts/get" || params.get("inputResponses").is_some() {
            return own(came);
        }
        let form = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object"}}});
        came.result(&json!({"resultType": "input_required", "requestState": "inner", "inputRequests": {"who": form}}))
    })
    .await;
    let house = House::with(&[("docs", server.url())], |config| {
        config
            .profiles
            .insert("other".to_owned(), Profile::default());
    })
    .await;
    let address = house.serve().await;
    let given = json!({"action": "accept", "content": {"name": "Ada"}});
    let new = McpClient::modern(address, json!({"elicitation": {}}));
    let params = json!({"name": "docs__greet", "arguments": {"who": "x"}});
    let needs = new.result("prompts/get", params.clone()).await;
    assert_eq!(needs["resultType"], "input_required", "{needs}");
    assert_eq!(needs["inputRequests"]["who"]["params"]["message"], "Who?");
    assert_ne!(needs["requestState"], "inner", "it is sealed");
    let mut again = params.clone();
    again["requestState"] = needs["requestState"].clone();
    again["inputResponses"] = json!({"who": given});
    let mut other = again.clone();
    other["arguments"] = json!({"who": "y"});
    assert_eq!(
        new.request("prompts/get", other).await.1["error"]["code"],
        -32_602,
        "it is good for one request"
    );
    let replayed = new
        .at("/mcp/other")
        .request("prompts/get", again.clone())
        .await
        .1;
    assert_eq!(
        replayed["error"]["code"], -32_602,
        "it is good for one profile: {replayed}"
    );
    assert_eq!(server.of("prompts/get").len(), 1);
    assert_eq!(
        new.result("prompts/get", again).await["resultType"],
        "complete"
    );
    assert_eq!(
        server.of("prompts/get")[1].message["params"]["requestState"],
        "inner"
    );

    let old = McpClient::legacy(address, "2025-11-25", json!({"elicitation": {}})).await;
    let mut got = old.follow(&json!(3), "prompts/get", params).await;
    let asked = got.next().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    old.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": given}))
        .await;
    let answer = got.next().await.unwrap();
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(
        server.of("prompts/get")[3].message["params"]["inputResponses"],
        json!({"who": given})
    );
    house.finish().await;
}

#[tokio::test]
async fn reading_a_resource_shows_progress_and_can_be_cancelled() {
    let mut own = offering(
        legacy("2025-11-25", &json!([])),
        all(),
        &["test://slow", "test://stuck"],
    );
    let server = McpServer::start(move |came| {
        let params = &came.message["params"];
        if came.method() != "resources/read" {
            return own(came);
        }
        if params["uri"] == "test://stuck" {
            return Answer::Stream(Vec::new());
        }
        let token = &params["_meta"]["progressToken"];
        let progress = notice(
            "notifications/progress",
            &json!({"progressToken": token, "progress": 1, "total": 2}),
        );
        let result = json!({"contents": [{"uri": params["uri"], "text": "t"}]});
        Answer::Events(vec![
            progress,
            json!({"jsonrpc": "2.0", "id": came.message["id"], "result": result}),
        ])
    })
    .await;
    let house = House::of(&[("docs", server.url())]).await;
    let address = house.serve().await;
    let old = McpClient::legacy(address, "2025-06-18", json!({})).await;
    for client in [McpClient::modern(address, json!({})), old.clone()] {
        let params = json!({"uri": "test://slow", "_meta": {"progressToken": "p"}});
        let mut read = client.follow(&json!(1), "resources/read", params).await;
        let progress = read.next().await.unwrap();
        assert_eq!(
            progress["params"],
            json!({"progressToken": "p", "progress": 1, "total": 2}),
            "{progress}"
        );
        assert_eq!(
            read.next().await.unwrap()["result"]["contents"][0]["text"],
            "t"
        );
    }
    let reading = old
        .begin(&json!(9), "resources/read", json!({"uri": "test://stuck"}))
        .await;
    server.until("resources/read", 3).await;
    old.send(&notice("notifications/cancelled", &json!({"requestId": 9})))
        .await;
    server.until("notifications/cancelled", 1).await;
    drop(reading);
    house.finish().await;
}

/// A program with one resource and two tools: one changes the resource, the other one ends the
/// program. It sends no update when its resource is followed, and writes down the methods that it
/// gets.
const PROGRAM: &str = r#"
import json, sys
era, log = sys.argv[1:3]
capabilities = {"tools": {}, "resources": {"subscribe": True}}
def out(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
def updated():
    out({"method": "notifications/resources/updated", "params": {"uri": "test://a"}})
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    with open(log, "a") as file:
        file.write(f"{method}\n")
    if method == "server/discover" and era == "modern":
        out({"id": id, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities}})
    elif method == "initialize" and era == "legacy":
        out({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "p", "version": "1"}}})
    elif method == "tools/list":
        out({"id": id, "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("die", "touch")]}})
    elif method == "resources/list":
        out({"id": id, "result": {"resources": [{"uri": "test://a", "name": "a"}]}})
    elif method == "tools/call" and message["params"]["name"] == "die":
        sys.exit(1)
    elif method == "tools/call":
        updated()
        out({"id": id, "result": {"content": []}})
    elif method == "subscriptions/listen":
        pass
    elif method in ("resources/subscribe", "resources/unsubscribe"):
        out({"id": id, "result": {}})
    elif id is not None:
        out({"id": id, "error": {"code": -32601, "message": "no"}})
"#;

#[tokio::test]
async fn a_resource_of_a_program_is_followed_again_when_the_program_was_started_anew() {
    for (era, end) in [
        ("modern", "notifications/cancelled"),
        ("legacy", "resources/unsubscribe"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let house = House::of(&[]).await;
        let program =
            StdioTarget::new("python3").with_args(["-c", PROGRAM, era, &log.display().to_string()]);
        let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
        house.place_endpoint(
            "docs",
            Endpoint {
                target: Some(Target::from(program)),
                ..endpoint
            },
        );
        house
            .until("listed", |now| now.catalog.entries().count() == 1)
            .await;
        let address = house.serve().await;
        let client = McpClient::modern(address, json!({}));
        let wanted = json!({"notifications": {"resourceSubscriptions": ["test://a"]}});
        let mut listening = client
            .follow(&json!(1), "subscriptions/listen", wanted.clone())
            .await;
        assert_eq!(
            listening.next().await.unwrap()["params"]["notifications"],
            wanted["notifications"],
            "{era}"
        );
        assert!(house.call("touch", &json!({})).await.is_ok());
        assert_eq!(listening.next().await.unwrap()["params"]["uri"], "test://a");
        assert!(house.call("die", &json!({})).await.is_err());
        // The new program does not say that the resource changed, and it may have.
        assert_eq!(
            listening.next().await.unwrap()["method"],
            "notifications/resources/updated",
            "{era}"
        );
        assert!(
            !std::fs::read_to_string(&log).unwrap().contains(end),
            "{era}: it is still followed"
        );
        drop(listening);
        let ended = async {
            while !std::fs::read_to_string(&log).unwrap().contains(end) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, ended)
            .await
            .expect("the end of the subscription");
        house.finish().await;
    }
}
