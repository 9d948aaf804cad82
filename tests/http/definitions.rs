//! Definitions over HTTP: the lists that models get, calls, and what explains them.

use callsheet::protocols::definitions::Definition;
use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool};
use crate::support::house::House;
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

fn rating(name: &str) -> Definition {
    let schema = json!({"type": "object", "description": "Rates a text", "required": ["text"], "properties": {
        "_tool": {"type": "string", "const": name}, "text": {"type": "string"},
        "_output": {"type": "object", "properties": {"stars": {"type": "number"}}}}});
    Definition::from_schema(Some(name), schema).unwrap()
}

async fn house(ratings: &Callee) -> House {
    let defined = |config: &mut callsheet::config::Config| {
        config.definitions = vec![rating("rate"), rating("guess")];
    };
    let house = House::with(&[("ratings", ratings.url())], defined).await;
    let definitions = "definitions".parse().unwrap();
    house
        .until("defined", |snapshot| {
            snapshot.catalog.entry(&definitions).is_some()
        })
        .await;
    house
}

async fn execute(address: std::net::SocketAddr, body: Value) -> Answer {
    ask(
        address,
        "POST",
        "/api/v1/tools/execute",
        &[JSON],
        &body.to_string(),
    )
    .await
}

#[tokio::test]
async fn a_latent_call_is_answered_over_http_or_told_what_is_missing() {
    let ratings = Callee::echo(manifest("ratings", &[tool("rate")])).await;
    let house = house(&ratings).await;
    let address = house.serve().await;
    let call = |arguments: Value| json!({"tool_name": "guess", "arguments": arguments});
    let answer = execute(
        address,
        call(json!({"text": "good", "_output": {"stars": 4}})),
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["result"], json!({"stars": 4}));
    assert_eq!(answer.json()["attempts"], 0);
    assert_eq!(answer.json().get("definition"), None);
    let missing = execute(address, call(json!({"text": "good"}))).await;
    assert_eq!(missing.status, 400);
    assert_eq!(missing.json()["code"], "output_missing");
    let unfit = execute(
        address,
        call(json!({"text": "good", "_output": {"stars": "many"}})),
    )
    .await;
    assert_eq!(unfit.status, 400);
    assert_eq!(unfit.json()["code"], "invalid_output");
    assert_eq!(unfit.json()["violations"][0]["pointer"], "/_output/stars");
    let explicit = execute(
        address,
        json!({"tool_name": "rate", "arguments": {"text": "good"}}),
    )
    .await
    .json();
    assert_eq!(explicit["result"], json!({"text": "good"}));
    assert_eq!(explicit["definition"], "definitions/rate");
    assert_eq!(explicit["scenario"], "ratings");
    assert_eq!(explicit["name"], "rate");
    house.finish().await;
}

#[tokio::test]
async fn a_turn_of_calls_runs_explicit_ones_and_gives_back_what_latent_ones_say() {
    let ratings = Callee::echo(manifest("ratings", &[tool("rate")])).await;
    let house = house(&ratings).await;
    let address = house.serve().await;
    let turn = async |format: &str, body: Value| {
        let target = format!("/api/v1/turns?format={format}");
        let answer = ask(address, "POST", &target, &[JSON], &body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let latent =
        json!({"_tool": "guess", "_activity": "", "text": "good", "_output": {"stars": 4}});
    let explicit = json!({"_tool": "rate", "_activity": "rate", "_reasoningForCall": "they asked", "text": "good",
        "_output": {"stars": 1}});
    let reply = turn("calls", json!({"calls": [latent.clone(), explicit]})).await;
    let statuses = [&reply["calls"][0]["status"], &reply["calls"][1]["status"]];
    assert_eq!(statuses, ["result", "result"], "{reply}");
    assert_eq!(reply["messages"][0], latent, "the call with its own result");
    assert_eq!(
        reply["calls"][1]["definition"], "definitions/rate",
        "{reply}"
    );
    assert_eq!(reply["calls"][0].get("definition"), None, "{reply}");
    // What the model says as the result of an explicit call does not count.
    assert_eq!(reply["messages"][1]["_output"], json!({"text": "good"}));
    assert_eq!(reply["messages"][1]["_reasoningForCall"], "they asked");
    assert_eq!(ratings.ran().len(), 1, "a latent call is sent nowhere");
    assert_eq!(
        ratings.ran()[0].arguments,
        json!({"text": "good"}),
        "no meta field is an argument"
    );

    for (call, code, pointer, words) in [
        (
            json!({"_tool": "guess", "text": "x"}),
            "output_missing",
            "",
            "Call it again with the result as `_output`.",
        ),
        (
            json!({"_tool": "guess", "text": "x", "_output": {"stars": "many"}}),
            "invalid_output",
            "/_output/stars",
            "Correct it and call again.",
        ),
        (
            json!({"_tool": "guess", "_output": {}}),
            "invalid_arguments",
            "",
            "\"text\" is a required property",
        ),
        (
            json!({"_tool": "guess", "_activity": "guess", "text": "x"}),
            "invalid_arguments",
            "/_activity",
            "must be \"\": no program runs this tool now, so give its result as `_output`",
        ),
        (
            json!({"_tool": "rate", "_activity": "", "text": "x", "_output": {"stars": 1}}),
            "invalid_arguments",
            "/_activity",
            "must be \"rate\", which runs this tool now",
        ),
    ] {
        let reply = turn("calls", json!({"calls": [call]})).await;
        let refused = &reply["calls"][0];
        assert_eq!(refused["status"], "refused", "{reply}");
        assert_eq!(refused["code"], code, "{reply}");
        assert_eq!(
            refused["violations"][0]["pointer"]
                .as_str()
                .unwrap_or_default(),
            pointer,
            "{reply}"
        );
        assert!(
            reply["messages"][0]["_error"]
                .as_str()
                .unwrap()
                .contains(words),
            "{reply}"
        );
    }
    let other = execute(
        address,
        json!({"tool_name": "rate", "arguments": {"_tool": "guess", "text": "x"}}),
    )
    .await;
    assert_eq!(
        other.json()["violations"][0]["pointer"],
        "/_tool",
        "{other:?}"
    );
    assert_eq!(ratings.ran().len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn a_latent_call_in_the_shape_of_a_vendor_says_that_its_result_is_missing() {
    let ratings = Callee::echo(manifest("ratings", &[tool("rate")])).await;
    let house = house(&ratings).await;
    let address = house.serve().await;
    let content =
        json!([{"type": "tool_use", "id": "t1", "name": "guess", "input": {"text": "x"}}]);
    let body = json!({"role": "assistant", "content": content}).to_string();
    let answer = ask(
        address,
        "POST",
        "/api/v1/turns?format=anthropic",
        &[JSON],
        &body,
    )
    .await;
    let turn = answer.json();
    let expected = "No program runs `guess`: you produce its result. Call it again with the result as `_output`.";
    assert_eq!(
        turn["messages"][0]["content"][0]["content"], expected,
        "{turn}"
    );
    assert_eq!(ratings.ran().len(), 0);
    house.finish().await;
}

#[tokio::test]
async fn lists_findings_and_explanations_show_what_runs_a_definition() {
    let ratings = Callee::echo(manifest("ratings", &[tool("rate"), tool("read")])).await;
    let house = house(&ratings).await;
    let address = house.serve().await;
    let get = async |target: &str| ask(address, "GET", target, &[], "").await.json();
    let native = get("/api/v1/tools").await;
    let listed: Vec<_> = native["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (&tool["name"], &tool["_activity"]))
        .collect();
    assert_eq!(
        listed,
        [
            (&json!("guess"), &json!("")),
            (&json!("rate"), &json!("rate")),
            (&json!("read"), &Value::Null)
        ]
    );
    let calls = get("/api/v1/tools?format=calls").await;
    let items = calls["properties"]["calls"]["items"]["anyOf"]
        .as_array()
        .unwrap();
    assert_eq!(
        items[0]["required"],
        json!(["_tool", "_activity", "text", "_output"])
    );
    assert_eq!(items[1]["required"], json!(["_tool", "_activity", "text"]));
    for query in [
        "format=openai",
        "format=openai&strict=true",
        "format=anthropic",
        "format=gemini",
        "format=mcp",
    ] {
        let list = get(&format!("/api/v1/tools?{query}")).await.to_string();
        assert!(
            list.contains("\"_output\"") && !list.contains("_tool\""),
            "{query}: {list}"
        );
    }
    let openai = get("/api/v1/tools?format=openai").await;
    let parameters = |at: usize| openai[at]["function"]["parameters"].clone();
    assert_eq!(
        parameters(0)["required"],
        json!(["text", "_output"]),
        "{openai}"
    );
    assert_eq!(
        parameters(0)["properties"]["_output"]["properties"],
        json!({"stars": {"type": "number"}}),
        "{openai}"
    );
    assert_eq!(
        parameters(1)["properties"].get("_output"),
        None,
        "a program runs it: {openai}"
    );
    let bound = get("/api/v1/findings?code=activity-bound").await;
    assert_eq!(bound["findings"][0]["tool"], "rate");
    let explained = get("/api/v1/tools/ratings%2Frate/explain").await;
    assert_eq!(explained["listed"], false);
    assert!(
        explained
            .to_string()
            .contains("it is the activity of definitions/rate"),
        "{explained}"
    );
    let health = get("/api/v1/scenarios/definitions").await;
    assert_eq!(health["state"], "live");
    assert_eq!(health["tools"]["published"], 2);
    // A scenario's own tool is not offered to LLMs beside its definition, and programs find it.
    assert_eq!(
        ask(
            address,
            "GET",
            "/api/v1/tools/ratings%2Frate?format=openai",
            &[],
            ""
        )
        .await
        .status,
        404
    );
    assert_eq!(
        ask(address, "GET", "/api/v1/tools/ratings%2Frate", &[], "")
            .await
            .status,
        200
    );
    house.finish().await;
}
