//! Approvals at `/mcp`: whose outcome it is, and what the form shows.

use std::net::SocketAddr;

use callsheet::calls::WaitLimits;
use callsheet::model::{ApprovalPolicy, Secret, SettingsPatch};
use serde_json::{Value, json};

use crate::served::served;
use crate::support::house::House;
use crate::support::in_process::PATIENCE;
use crate::support::mcp_client::{META, McpClient};
use crate::support::mcp_server::{McpServer, modern, tool};
use crate::support::serving::ask;

const TOKEN: &str = "0123456789abcdef-topsecret";
const REVISION: &str = "2025-11-25";

/// Has the only tool of the house need approval.
async fn guard(house: &House) {
    let needed = SettingsPatch {
        approval: Some(Some(ApprovalPolicy::Require)),
        ..SettingsPatch::default()
    };
    house.prefer("global", "tool:files/read", needed).await;
}

async fn guarded(server: &McpServer) -> (House, SocketAddr) {
    let (house, address) = served(server).await;
    guard(&house).await;
    (house, address)
}

/// The same tool call each time for the same number.
fn call_of(number: u8) -> Value {
    json!({"name": "files__read", "arguments": {"a": number}})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The id under which a call waits.
async fn waits(client: &McpClient, call: &Value) -> String {
    let waiting = client.result("tools/call", call.clone()).await;
    let until = text(&waiting).split_once(", until ").unwrap_or_default().1;
    let second = until.get(.."2026-03-01 09:30:00 UTC.".len());
    assert!(
        second.is_some_and(|text| text.ends_with(" UTC.")),
        "{until}"
    );
    waiting_id(&waiting).unwrap_or_else(|| panic!("{waiting}"))
}

fn waiting_id(result: &Value) -> Option<String> {
    let id = text(result)
        .split_once("waits for the approval of a person, under the id ")?
        .1;
    id.split_once('.').map(|(id, _)| id.to_owned())
}

/// The outcome of the call with this number is handed out to this client.
async fn gets_outcome(client: &McpClient, number: u8) {
    let done = client.result("tools/call", call_of(number)).await;
    assert_eq!(
        done["structuredContent"],
        json!({"arguments": {"a": number}}),
        "{done}"
    );
}

async fn approve(house: &House, id: &str) {
    house
        .app
        .calls()
        .approve(id, "an operator", WaitLimits::within(PATIENCE))
        .await
        .unwrap();
}

/// The latest call is in the log with what its client was given, and by which approval.
async fn log_names_the_outcome(address: SocketAddr, approval: &str) {
    let log = ask(address, "GET", "/api/v1/calls", &[], "").await.json();
    let call = log["calls"].as_array().unwrap().last().unwrap();
    assert_eq!(call["outcome"], "ok", "{call}");
    assert_eq!(call["approval_id"], approval, "{call}");
    assert_eq!(call["error"], Value::Null, "{call}");
    let note = format!(
        "it was not sent again: its caller was given the outcome of approval {approval}, approved by an operator"
    );
    assert_eq!(call["note"], note, "{call}");
    let page = ask(address, "GET", "/dashboard/calls/latest", &[], "").await;
    let page = String::from_utf8(page.body).unwrap();
    assert!(page.contains(&note), "{page}");
}

/// A client that repeats a rejected call gets the rejection, and the log says the same.
#[tokio::test]
async fn the_log_says_what_a_repeated_call_got() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let client = McpClient::legacy(address, REVISION, json!({})).await;
    let id = waits(&client, &call_of(1)).await;
    house
        .app
        .calls()
        .reject(&id, "Ada", Some("not today"))
        .await
        .unwrap();
    let refused = client.result("tools/call", call_of(1)).await;
    assert!(text(&refused).contains("was rejected by Ada"), "{refused}");
    let log = ask(address, "GET", "/api/v1/calls", &[], "").await.json();
    let call = log["calls"].as_array().unwrap().last().unwrap();
    assert_eq!(call["outcome"], "rejected", "{call}");
    assert!(
        call["note"].as_str().unwrap().ends_with("rejected by Ada"),
        "{call}"
    );
    house.finish().await;
}

#[tokio::test]
async fn an_outcome_belongs_to_the_session_that_made_the_call() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let own = McpClient::legacy(address, REVISION, json!({})).await;
    let other = McpClient::legacy(address, REVISION, json!({})).await;
    let without_session = McpClient::modern(address, json!({}));
    let id = waits(&own, &call_of(1)).await;
    assert_eq!(
        waits(&own, &call_of(1)).await,
        id,
        "the same call of the same session waits once"
    );
    let of_other = waits(&other, &call_of(1)).await;
    assert_ne!(of_other, id);
    approve(&house, &id).await;
    assert_eq!(
        waits(&other, &call_of(1)).await,
        of_other,
        "not its outcome"
    );
    assert_ne!(waits(&without_session, &call_of(1)).await, id);
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {"a": 1}}});
    let answer = ask(
        address,
        "POST",
        "/rpc",
        &[("content-type", "application/json")],
        &rpc.to_string(),
    )
    .await
    .json();
    assert_eq!(answer["error"]["code"], 1001, "{answer}");
    gets_outcome(&own, 1).await;
    log_names_the_outcome(address, &id).await;
    assert_ne!(waits(&own, &call_of(1)).await, id, "it is handed out once");
    assert_eq!(server.of("tools/call").len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_client_that_connects_anew_gets_the_outcome_of_its_call() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let before = McpClient::legacy(address, REVISION, json!({})).await;
    let decided = waits(&before, &call_of(1)).await;
    let waiting = waits(&before, &call_of(2)).await;
    approve(&house, &decided).await;
    assert_eq!(before.end().await, 204);
    let anew = McpClient::legacy(address, REVISION, json!({})).await;
    gets_outcome(&anew, 1).await;
    assert_eq!(
        waits(&anew, &call_of(2)).await,
        waiting,
        "what waits is taken over, too"
    );
    let other = McpClient::legacy(address, REVISION, json!({})).await;
    assert_ne!(
        waits(&other, &call_of(2)).await,
        waiting,
        "and then belongs to the new session"
    );
    approve(&house, &waiting).await;
    gets_outcome(&anew, 2).await;
    house.finish().await;
}

/// Most clients do not end their session when they crash, but their stream ends.
#[tokio::test]
async fn a_session_is_gone_once_its_stream_is() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let before = McpClient::legacy(address, REVISION, json!({})).await;
    let stream = before.listen().await;
    let id = waits(&before, &call_of(1)).await;
    approve(&house, &id).await;
    let anew = McpClient::legacy(address, REVISION, json!({})).await;
    assert_ne!(
        waits(&anew, &call_of(1)).await,
        id,
        "the session is there as long as its stream is"
    );
    drop(stream);
    let outcome = async {
        loop {
            let answer = anew.result("tools/call", call_of(1)).await;
            if waiting_id(&answer).is_none() {
                return answer;
            }
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, outcome)
        .await
        .expect("the outcome");
    assert_eq!(
        outcome["structuredContent"],
        json!({"arguments": {"a": 1}}),
        "{outcome}"
    );
    house.finish().await;
}

#[tokio::test]
async fn an_outcome_is_handed_out_to_the_access_of_its_call_only() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let house = House::with(&[("files", server.url())], |config| {
        config.server.operator_token = Some(Secret::new(TOKEN));
    })
    .await;
    let address = house.serve().await;
    guard(&house).await;
    let legacy = McpClient::legacy(address, REVISION, json!({})).await;
    for (number, client) in [(1, legacy), (2, McpClient::modern(address, json!({})))] {
        let operator = client.with_token(TOKEN);
        let with_token = waits(&operator, &call_of(number)).await;
        let without_token = waits(&client, &call_of(number)).await;
        assert_ne!(
            without_token, with_token,
            "calls of another access wait by themselves"
        );
        approve(&house, &with_token).await;
        assert_eq!(waits(&client, &call_of(number)).await, without_token);
        gets_outcome(&operator, number).await;
        approve(&house, &without_token).await;
        assert_ne!(
            waits(&operator, &call_of(number)).await,
            without_token,
            "it would be lost for its caller"
        );
        gets_outcome(&client, number).await;
    }
    house.finish().await;
}

/// The answer to a call whose arguments are this text, of a modern client that shows forms.
async fn answer_to(address: SocketAddr, arguments: &str) -> Value {
    let meta = json!({format!("{META}protocolVersion"): "2026-07-28", format!("{META}clientCapabilities"): {"elicitation": {}}});
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"files__read","arguments":{arguments},"_meta":{meta}}}}}"#
    );
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "files__read"),
    ];
    ask(address, "POST", "/mcp", &headers, &body).await.json()["result"].take()
}

/// A person must not approve what the form does not show.
#[tokio::test]
async fn no_form_is_shown_for_a_call_that_it_would_not_show_whole() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let text_of_letter = "Lunch? ".repeat(400);
    let invisible = "\u{202e}".repeat(500);
    for body in [text_of_letter, invisible] {
        let arguments = json!({"to": "ada@example.org", "body": body, "bcc": "evil@example.org"});
        let answer = answer_to(address, &arguments.to_string()).await;
        let id = waiting_id(&answer).unwrap_or_else(|| panic!("{answer}"));
        let next_step =
            format!("It is decided on the dashboard, or by `callsheet approvals approve {id}`");
        assert!(text(&answer).contains(&next_step), "{answer}");
    }
    assert_eq!(server.of("tools/call").len(), 0);
    house.finish().await;
}

#[tokio::test]
async fn a_form_shows_the_parts_of_a_call_whatever_stands_between_them() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = guarded(&server).await;
    let gap = format!("{}{}", "\n".repeat(30), " ".repeat(3_000));
    let arguments =
        format!("{{\"to\":\"ada\",{gap}\"bcc\": \"\u{202e}evil\u{200b}\", \"n\":1.50}}");
    let answer = answer_to(address, &arguments).await;
    let message = &answer["inputRequests"]["input"]["params"]["message"];
    let shown = "{\n  \"to\": \"ada\",\n  \"bcc\": \"<U+202E>evil<U+200B>\",\n  \"n\": 1.50\n}";
    assert_eq!(
        *message,
        format!("The tool `files/read` needs your approval. Its arguments:\n{shown}"),
        "{answer}"
    );
    house.finish().await;
}
