//! Results that vendors take badly: blank ones, files beside errors, files that are none, and those
//! of calls that were approved.

use serde_json::{Value, json};

use crate::support::callee::{Callee, done, manifest, tool};
use crate::support::house::House;
use crate::support::mcp_server::{self, McpServer, modern};
use crate::support::serving::ask;

const JSON: (&str, &str) = ("content-type", "application/json");
const PNG: &str = "iVBORw0KGgo=";

struct Stage {
    house: House,
    address: std::net::SocketAddr,
    _server: McpServer,
}

/// An MCP server whose tool `draw` answers so, and has to be approved if wanted.
async fn drawing(result: Value, is_approved: bool) -> Stage {
    let mut own = modern(&json!([mcp_server::tool("draw")]));
    let server = McpServer::start(move |came| match came.method() {
        "tools/call" => came.result(&result),
        _ => own(came),
    })
    .await;
    let house = House::of(&[("draws", server.url())]).await;
    if is_approved {
        let policy = callsheet::model::ApprovalPolicy::Require;
        let patch = callsheet::model::SettingsPatch {
            approval: Some(Some(policy)),
            ..callsheet::model::SettingsPatch::default()
        };
        house.prefer("global", "tool:draws/draw", patch).await;
    }
    let address = house.serve().await;
    Stage {
        house,
        address,
        _server: server,
    }
}

impl Stage {
    async fn turn(&self, format: &str) -> Value {
        let body = match format {
            "anthropic" => {
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "draw", "input": {}}]})
            }
            "openai-responses" => {
                json!([{"type": "function_call", "call_id": "t", "name": "draw", "arguments": "{}"}])
            }
            "bedrock" => {
                json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "draw", "input": {}}}]})
            }
            _ => {
                json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "draw"}}]}}], "modelVersion": "gemini-3-pro"})
            }
        };
        ask(
            self.address,
            "POST",
            &format!("/api/v1/turns?format={format}"),
            &[JSON],
            &body.to_string(),
        )
        .await
        .json()
    }

    /// What the model gets for the call.
    async fn content(&self, format: &str) -> Value {
        let answered = self.turn(format).await;
        match format {
            "anthropic" => answered["messages"][0]["content"][0].clone(),
            "openai-responses" => answered["messages"][0]["output"].clone(),
            "bedrock" => answered["messages"][0]["content"][0]["toolResult"].clone(),
            _ => answered["messages"][0]["parts"][0]["functionResponse"].clone(),
        }
    }
}

fn image(data: &str) -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": data})
}

fn shown() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
}

#[tokio::test]
async fn a_file_beside_an_error_goes_where_the_vendor_takes_it() {
    let result =
        json!({"isError": true, "content": [{"type": "text", "text": "no such page"}, image(PNG)]});
    let stage = drawing(result, false).await;
    let said = stage.content("anthropic").await;
    assert_eq!(said["is_error"], true);
    let text = said["content"]
        .as_str()
        .expect("only text, which the vendor wants of an error");
    assert!(
        text.starts_with(
            "no such page\n[file of type image/png, 9 bytes: it cannot be shown with an error"
        ),
        "{text}"
    );
    let output = stage.content("openai-responses").await;
    let kinds: Vec<&Value> = output
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["type"])
        .collect();
    assert_eq!(kinds, ["input_text", "input_text", "input_image"]);
    assert_eq!(output[0]["text"], "Error:", "it has no other mark");
    let response = stage.content("gemini").await;
    assert_eq!(response["response"]["error"], "no such page");
    assert_eq!(response["parts"][0]["inlineData"]["data"], PNG);
    stage.house.finish().await;
}

#[tokio::test]
async fn no_blank_text_and_no_file_that_is_none_reaches_a_vendor() {
    let blank = json!({"type": "text", "text": " \n"});
    let stage = drawing(
        json!({"content": [blank, image("iVBOR\nw0KGgo=\n")]}),
        false,
    )
    .await;
    assert_eq!(
        stage.content("anthropic").await["content"],
        json!([shown()])
    );
    stage.house.finish().await;

    let stage = drawing(json!({"content": [blank]}), false).await;
    assert_eq!(stage.content("anthropic").await["content"], "(no output)");
    assert_eq!(
        stage.content("bedrock").await["content"],
        json!([{"text": "(no output)"}])
    );
    stage.house.finish().await;

    for data in ["", "not base64!", "data:image/png;base64,iVBORw0KGgo="] {
        let stage = drawing(json!({"content": [image(data)]}), false).await;
        let content = stage.content("anthropic").await["content"].take();
        assert!(
            content
                .as_str()
                .unwrap()
                .contains("its content is not base64"),
            "{data}: {content}"
        );
        stage.house.finish().await;
    }

    let stage = drawing(json!({"isError": true, "content": []}), false).await;
    let said = stage.content("anthropic").await;
    assert_eq!(said["content"], "the tool failed without a message");
    stage.house.finish().await;
}

#[tokio::test]
async fn an_approved_call_gives_its_files_too() {
    let stage = drawing(
        json!({"content": [{"type": "text", "text": "a drawing"}, image(PNG)]}),
        true,
    )
    .await;
    let answered = stage.turn("anthropic").await;
    assert_eq!(answered["status"], "waiting", "{answered}");
    let approval = answered["calls"][0]["approval_id"].as_str().unwrap();
    let target = format!("/api/v1/approvals/{approval}/approve");
    assert_eq!(
        ask(stage.address, "POST", &target, &[JSON], "{}")
            .await
            .status,
        200
    );
    let target = format!(
        "/api/v1/turns/{}?wait=30",
        answered["turn_id"].as_str().unwrap()
    );
    let answered = ask(stage.address, "GET", &target, &[], "").await.json();
    let content = &answered["messages"][0]["content"][0]["content"];
    assert_eq!(
        *content,
        json!([{"type": "text", "text": "a drawing"}, shown()]),
        "{answered}"
    );
    stage.house.finish().await;
}

/// Approved calls are kept until they are handed out, within a limit.
#[tokio::test]
async fn an_approved_result_that_is_too_large_to_be_kept_says_so() {
    let callee = Callee::start(manifest("files", &[tool("dump")]), |_| async {
        done(&json!("x".repeat(2 << 20)))
    })
    .await;
    let house = House::of(&[("files", callee.url())]).await;
    let policy = callsheet::model::ApprovalPolicy::Require;
    let patch = callsheet::model::SettingsPatch {
        approval: Some(Some(policy)),
        ..callsheet::model::SettingsPatch::default()
    };
    house.prefer("global", "tool:files/dump", patch).await;
    let address = house.serve().await;
    let body = json!({"calls": [{"_tool": "dump"}]}).to_string();
    let answered = ask(
        address,
        "POST",
        "/api/v1/turns?format=calls",
        &[JSON],
        &body,
    )
    .await
    .json();
    let approval = answered["calls"][0]["approval_id"].as_str().unwrap();
    let target = format!("/api/v1/approvals/{approval}/approve");
    assert_eq!(
        ask(address, "POST", &target, &[JSON], "{}").await.status,
        200
    );
    let target = format!(
        "/api/v1/turns/{}?wait=30",
        answered["turn_id"].as_str().unwrap()
    );
    let answered = ask(address, "GET", &target, &[], "").await.json();
    assert_eq!(answered["calls"][0]["status"], "result", "{answered}");
    let said = answered["messages"][0]["_output"].as_str().unwrap();
    assert!(
        said.starts_with("The tool succeeded, but the answer has 2097154 bytes"),
        "{said}"
    );
    house.finish().await;
}

/// Each result is small enough by itself, and all of them together are not.
#[tokio::test]
async fn the_results_of_one_turn_together_are_bounded() {
    let control = "\u{1}".repeat(10_000);
    let callee = Callee::start(manifest("files", &[tool("dump")]), move |_| {
        let control = control.clone();
        async move { done(&json!(control)) }
    })
    .await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.calls.turns.kept_bytes = 1024 * 1024;
    })
    .await;
    let address = house.serve().await;
    let calls: Vec<Value> = (0..20).map(|_| json!({"_tool": "dump"})).collect();
    let body = json!({"calls": calls}).to_string();
    let answer = ask(
        address,
        "POST",
        "/api/v1/turns?format=calls",
        &[JSON],
        &body,
    )
    .await;
    let answered = answer.json();
    let left_out = |call: &&Value| call["code"] == "result_left_out";
    let calls = answered["calls"].as_array().unwrap();
    let count = calls.iter().filter(left_out).count();
    assert_eq!(
        count, 16,
        "four results of 60,002 bytes fit into a quarter of 1 MiB"
    );
    let call = calls.iter().find(left_out).unwrap();
    assert_eq!(call["status"], "result", "the tool ran");
    let said = call["error"].as_str().unwrap();
    assert!(
        said.contains("262144 bytes together. Call it again alone"),
        "{said}"
    );
    house.finish().await;
}

/// The answers of one connection may have some 229,000 bytes, and those of this turn have more.
#[tokio::test]
async fn a_turn_whose_results_are_larger_than_the_share_of_a_connection_is_answered() {
    let callee = Callee::start(manifest("files", &[tool("dump")]), |_| async {
        done(&json!("x".repeat(60_000)))
    })
    .await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.server.held_bytes = 1 << 20;
    })
    .await;
    let address = house.serve().await;
    let calls: Vec<Value> = (0..5).map(|_| json!({"_tool": "dump"})).collect();
    let body = json!({"calls": calls, "parallel": 1}).to_string();
    let answer = ask(
        address,
        "POST",
        "/api/v1/turns?format=calls",
        &[JSON],
        &body,
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.len() > 300_000, "{}", answer.body.len());
    let target = format!(
        "/api/v1/turns/{}",
        answer.json()["turn_id"].as_str().unwrap()
    );
    let again = ask(address, "GET", &target, &[], "").await;
    assert!(again.body == answer.body, "its bytes are free again");
    house.finish().await;
}
