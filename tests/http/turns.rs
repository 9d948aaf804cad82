//! `POST /api/v1/turns`: what each vendor's response comes to, over HTTP.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::callee::{Callee, Ran, answer, done, manifest, tool, tool_with};
use crate::support::house::House;
use crate::support::mcp_server::{self, McpServer, modern};
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");
/// Every format that turns know.
const FORMATS: [&str; 9] = [
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "bedrock",
    "mistral",
    "cohere",
    "ollama",
    "calls",
];

/// A scenario whose tools give back their path, fail, and greet.
async fn files() -> Callee {
    let path =
        json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let on = json!({"enabled_by_default": true});
    let tools = [
        tool_with("read_text", &path, &on),
        tool("break_disk"),
        tool("say_hello"),
    ];
    Callee::start(manifest("files", &tools), |ran: Ran| async move {
        match ran.tool.as_str() {
            "break_disk" => answer(
                200,
                &json!({"success": false, "error": "it did not work", "code": "no_disk"}),
            ),
            "say_hello" => done(&json!("hello")),
            _ => done(&ran.arguments),
        }
    })
    .await
}

async fn turn(address: std::net::SocketAddr, query: &str, body: &str) -> Answer {
    ask(
        address,
        "POST",
        &format!("/api/v1/turns?format={query}"),
        &[JSON],
        body,
    )
    .await
}

fn statuses(turn: &Value) -> Vec<&str> {
    turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect()
}

fn cases(format: &str) -> Vec<Value> {
    let place = format!(
        "{}/fixtures/turns/{format}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_slice(&std::fs::read(place).unwrap()).unwrap()
}

#[tokio::test]
async fn every_vendor_gets_its_results_in_its_own_shape() {
    let files = files().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let listed: BTreeSet<String> =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/turns"))
            .unwrap()
            .map(|file| {
                file.unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
    assert_eq!(
        listed,
        FORMATS.map(str::to_owned).into(),
        "each format has its cases"
    );
    for format in FORMATS {
        for case in cases(format) {
            let about = format!("{format}: {}", case["about"]);
            let answer = turn(address, format, &case["response"].to_string()).await;
            assert_eq!(answer.status, 200, "{about}: {answer:?}");
            let reply = answer.json();
            assert_eq!(json!(statuses(&reply)), case["statuses"], "{about}");
            // Compared as text: the same results are the same bytes.
            assert_eq!(
                reply["messages"].to_string(),
                case["messages"].to_string(),
                "{about}"
            );
            assert_eq!(reply["status"], "complete", "{about}");
        }
    }
    house.finish().await;
}

#[tokio::test]
async fn a_body_of_another_vendor_is_refused_by_its_name() {
    let house = House::of(&[]).await;
    let address = house.serve().await;
    for format in FORMATS {
        for other in FORMATS.iter().filter(|other| **other != format) {
            let response = cases(other)[0]["response"].clone();
            let answer = turn(address, format, &response.to_string()).await;
            // Mistral's responses are those of OpenAI.
            let shared = ["openai", "mistral"];
            if shared.contains(&format) && shared.contains(other) {
                assert_eq!(answer.status, 200, "{other} as {format}: {answer:?}");
                continue;
            }
            assert_eq!(answer.status, 400, "{other} as {format}: {answer:?}");
            assert_eq!(answer.json()["code"], "other_format");
            let like = if *other == "mistral" { "openai" } else { other };
            assert_eq!(answer.json()["looks_like"], like, "{other} as {format}");
            assert!(
                answer.problem().contains(&format!("`{like}`")),
                "{answer:?}"
            );
        }
    }
    house.finish().await;
}

#[tokio::test]
async fn streams_and_what_is_no_response_are_refused_with_the_next_step() {
    let house = House::of(&[]).await;
    let address = house.serve().await;
    for (format, body) in [
        ("openai", "data: {\"choices\":[{\"delta\":{}}]}\n\n"),
        ("anthropic", "event: message_start\ndata: {}\n\n"),
        (
            "ollama",
            "{\"message\":{\"role\":\"assistant\"},\"done\":false}\n{\"message\":{},\"done\":true}\n",
        ),
        (
            "openai",
            r#"{"object":"chat.completion.chunk","choices":[{"delta":{}}]}"#,
        ),
        (
            "anthropic",
            r#"{"type":"content_block_delta","index":0,"delta":{}}"#,
        ),
        ("gemini", r#"[{"candidates":[]},{"candidates":[]}]"#),
    ] {
        let answer = turn(address, format, body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.json()["code"], "stream", "{body}");
        assert!(answer.problem().contains("join it first"), "{answer:?}");
    }
    for (format, body, code) in [
        ("openai", "{}", json!("unknown_format")),
        ("openai", "7", json!("unknown_format")),
        ("openai", "{", Value::Null),
        (
            "anthropic",
            r#"{"role":"assistant","content":[{"type":"tool_use","name":"x","input":{}}]}"#,
            json!("no_call_id"),
        ),
        (
            "openai",
            r#"{"role":"assistant","tool_calls":[{"id":7}]}"#,
            json!("malformed_response"),
        ),
        (
            "openai",
            r#"{"choices":[{"message":{"tool_calls":[{"id":"1","function":{"name":"a"}}]}},{"message":{"tool_calls":[{"id":"2","function":{"name":"a"}}]}}]}"#,
            json!("several_choices"),
        ),
        ("calls", r#"{"calls":[7]}"#, json!("malformed_response")),
        (
            "openai",
            r#"{"response":{"role":"assistant"},"paralel":2}"#,
            Value::Null,
        ),
        (
            "openai",
            r#"{"response":{"role":"assistant"},"parallel":0}"#,
            Value::Null,
        ),
        (
            "openai",
            r#"{"response":{"role":"assistant"},"wait":601}"#,
            Value::Null,
        ),
        (
            "openai",
            r#"{"response":{"role":"assistant"},"approvals":"never"}"#,
            Value::Null,
        ),
        (
            "openai",
            r#"{"response":{"role":"assistant"},"turn_id":"a b"}"#,
            json!("invalid_turn_id"),
        ),
    ] {
        let answer = turn(address, format, body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.json()["code"], code, "{body}");
    }
    let answer = turn(address, "native", "{}").await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.problem().contains("`openai-responses`"),
        "{answer:?}"
    );
    house.finish().await;
}

fn calling(name: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": name, "input": {}}]})
}

#[tokio::test]
async fn names_mean_what_they_meant_in_the_models_list() {
    let files = Callee::echo(manifest("files", &[tool("find"), tool("only")])).await;
    let mails = Callee::echo(manifest("mails", &[tool("find")])).await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let list = ask(address, "GET", "/api/v1/tools?format=anthropic", &[], "").await;
    let revision = list.header("callsheet-revision");
    let etag = list.header("etag");
    house.place(
        "mails",
        mails.url(),
        callsheet::discovery::SourceTrust::Trusted,
    );
    house
        .until("mails", |snapshot| snapshot.catalog.entries().count() == 2)
        .await;

    for known in [revision, etag] {
        let body = json!({"response": calling("find"), "revision": known});
        let reply = turn(address, "anthropic", &body.to_string()).await.json();
        assert_eq!(statuses(&reply), ["result"], "{reply}");
        assert_eq!(reply["calls"][0]["scenario"], "files");
        assert_eq!(reply["is_revision_forgotten"], false);
    }
    // Without it, and with one that is not remembered, the name may mean either.
    for body in [
        json!({"response": calling("find")}),
        json!({"response": calling("find"), "revision": "0123456789abcdef"}),
    ] {
        let reply = turn(address, "anthropic", &body.to_string()).await.json();
        assert_eq!(statuses(&reply), ["refused"], "{reply}");
        assert_eq!(reply["calls"][0]["code"], "ambiguous");
        assert_eq!(
            reply["calls"][0]["candidates"],
            json!(["files__find", "mails__find"])
        );
        let text = reply["messages"][0]["content"][0]["content"]
            .as_str()
            .unwrap();
        assert!(
            text.contains("Call `files__find` or `mails__find` instead"),
            "{text}"
        );
    }
    let forgotten = json!({"response": calling("only"), "revision": "0123456789abcdef"});
    let reply = turn(address, "anthropic", &forgotten.to_string())
        .await
        .json();
    assert_eq!(
        statuses(&reply),
        ["result"],
        "a name that means one tool is called"
    );
    assert_eq!(reply["is_revision_forgotten"], true);
    house.finish().await;
}

#[tokio::test]
async fn a_name_that_no_tool_has_is_the_programs_or_a_mistake() {
    let files = files().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let reply = turn(address, "anthropic", &calling("say_helo").to_string())
        .await
        .json();
    assert_eq!(statuses(&reply), ["not_ours"]);
    assert_eq!(reply["messages"], json!([]));
    let own = json!({"response": calling("say_helo"), "own_tools": []});
    let reply = turn(address, "anthropic", &own.to_string()).await.json();
    assert_eq!(statuses(&reply), ["refused"]);
    let expected = "There is no tool `say_helo`. Did you mean `say_hello`?";
    assert_eq!(reply["messages"][0]["content"][0]["content"], expected);
    let own = json!({"response": calling("say_hello"), "own_tools": ["say_hello"]});
    let reply = turn(address, "anthropic", &own.to_string()).await.json();
    assert_eq!(
        statuses(&reply),
        ["not_ours"],
        "the program's own tool goes first"
    );
    let reply = turn(
        address,
        "anthropic&profile=nobody",
        &calling("say_hello").to_string(),
    )
    .await
    .json();
    assert_eq!(
        reply["calls"][0]["code"], "unknown_profile",
        "the bounds of a call hold"
    );
    assert_eq!(files.ran().len(), 0);
    house.finish().await;
}

#[tokio::test]
async fn images_are_shown_where_the_vendor_takes_them_and_named_elsewhere() {
    let mut own = modern(&json!([mcp_server::tool("draw")]));
    let server = McpServer::start(move |came| match came.method() {
        "tools/call" => came.result(&json!({"resultType": "complete", "content": [
            {"type": "text", "text": "a drawing"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
            {"type": "resource_link", "name": "source", "uri": "file:///a.svg"},
        ]})),
        _ => own(came),
    })
    .await;
    let house = House::of(&[("draws", server.url())]).await;
    let address = house.serve().await;
    let content = turn(address, "anthropic", &calling("draw").to_string())
        .await
        .json()["messages"][0]["content"][0]["content"]
        .take();
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let link = json!({"type": "text", "text": "[resource source: file:///a.svg]"});
    assert_eq!(
        content,
        json!([{"type": "text", "text": "a drawing"}, image, link])
    );

    let chat = json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "draw", "arguments": "{}"}}]});
    let reply = turn(address, "openai", &chat.to_string()).await.json();
    let text = reply["messages"][0]["content"].as_str().unwrap();
    assert!(
        text.contains("[file of type image/png, 9 bytes: it cannot be shown to this model"),
        "{text}"
    );
    let parts = |model: &str| json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "draw"}}]}}], "modelVersion": model});
    for (model, is_shown) in [("gemini-2.5-pro", false), ("gemini-3-pro", true)] {
        let reply = turn(address, "gemini", &parts(model).to_string())
            .await
            .json();
        let response = &reply["messages"][0]["parts"][0]["functionResponse"];
        assert_eq!(
            response["parts"][0]["inlineData"]["mimeType"] == "image/png",
            is_shown,
            "{model}: {response}"
        );
    }
    house.finish().await;
}

#[tokio::test]
async fn a_long_result_is_cut_and_kept_for_its_maker() {
    let files = files().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let long = "x".repeat(10_000);
    let response = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "read_text", "input": {"path": long}},
    ]});
    let body = json!({"response": response, "max_result_tokens": 100});
    let reply = turn(address, "anthropic", &body.to_string()).await.json();
    let call = &reply["calls"][0];
    assert_eq!(call["is_cut"], true);
    let id = call["call_id"].as_str().unwrap();
    let text = reply["messages"][0]["content"][0]["content"]
        .as_str()
        .unwrap();
    assert!(
        text.starts_with("{\"path\":\"xxx") && text.len() < 400,
        "{text}"
    );
    assert!(
        text.ends_with(&format!(
            "250 of 10011 bytes; the whole result is kept as {id}]"
        )),
        "{text}"
    );
    let whole = ask(address, "GET", &format!("/api/v1/results/{id}"), &[], "")
        .await
        .json();
    assert_eq!(whole["result"]["path"], long);
    for unknown in ["/api/v1/results/nothing.0", "/api/v1/turns/nothing-here"] {
        assert_eq!(ask(address, "GET", unknown, &[], "").await.status, 404);
    }
    house.finish().await;
}

/// What a model writes takes memory, whatever member it stands in.
#[tokio::test]
async fn all_that_a_turn_keeps_of_its_response_counts() {
    let files = files().await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.turns.kept_bytes = 1024 * 1024;
    })
    .await;
    let address = house.serve().await;
    let long = "x".repeat(300_000);
    for (id, arguments) in [(&*long, "{}".to_owned()), ("c1", format!("[\"{long}\"]"))] {
        let call = json!({"id": id, "type": "function", "function": {"name": "say_hello", "arguments": arguments}});
        let response = json!({"role": "assistant", "tool_calls": [call]}).to_string();
        let mut turns = Vec::new();
        for _ in 0..5 {
            let begun = turn(address, "openai", &response).await;
            assert_eq!(begun.status, 200, "{begun:?}");
            turns.push(format!(
                "/api/v1/turns/{}",
                begun.json()["turn_id"].as_str().unwrap()
            ));
        }
        assert_eq!(
            ask(address, "GET", &turns[0], &[], "").await.status,
            404,
            "the oldest one made room"
        );
        assert_eq!(ask(address, "GET", &turns[4], &[], "").await.status, 200);
    }
    house.finish().await;
}
