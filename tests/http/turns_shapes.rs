//! Responses as client libraries, servers and models really write them: parts of a response,
//! streams, errors, and calls that are not as they should be.

use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool};
use crate::support::house::House;
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

struct Stage {
    callee: Callee,
    house: House,
    address: std::net::SocketAddr,
}

/// A scenario whose tool `look` gives back its arguments.
async fn stage() -> Stage {
    let callee = Callee::echo(manifest("files", &[tool("look")])).await;
    let house = House::of(&[("files", callee.url())]).await;
    let address = house.serve().await;
    Stage {
        callee,
        house,
        address,
    }
}

impl Stage {
    async fn turn(&self, format: &str, body: &Value) -> Answer {
        ask(
            self.address,
            "POST",
            &format!("/api/v1/turns?format={format}"),
            &[JSON],
            &body.to_string(),
        )
        .await
    }

    /// The same for one that is complete at once.
    async fn complete(&self, format: &str, body: &Value) -> Value {
        let answer = self.turn(format, body).await;
        assert_eq!(answer.status, 200, "{format} {body}: {answer:?}");
        answer.json()
    }
}

fn statuses(turn: &Value) -> Vec<&str> {
    turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect()
}

fn chat(calls: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

#[tokio::test]
async fn a_response_without_a_call_is_complete_at_once() {
    let stage = stage().await;
    for (format, body) in [
        // A prompt that was blocked, as the API and as the Python library write it.
        (
            "gemini",
            json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "gemini-3-pro"}),
        ),
        (
            "gemini",
            json!({"candidates": null, "prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": null}),
        ),
        ("gemini", json!({"usageMetadata": {"promptTokenCount": 3}})),
        (
            "gemini",
            json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}),
        ),
        ("gemini", json!({"role": "model", "parts": null})),
        ("bedrock", json!({"role": "assistant", "content": []})),
        (
            "bedrock",
            json!({"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}),
        ),
        ("anthropic", json!({"role": "assistant", "content": []})),
        (
            "anthropic",
            json!({"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}),
        ),
        (
            "openai-responses",
            json!({"type": "message", "role": "assistant", "content": []}),
        ),
        (
            "openai-responses",
            json!({"object": "response", "error": null, "output": []}),
        ),
        (
            "openai",
            json!({"role": "assistant", "content": null, "refusal": "no", "tool_calls": [], "function_call": null}),
        ),
        (
            "ollama",
            json!({"message": {"role": "assistant", "content": "hi", "tool_calls": null}, "done": true}),
        ),
        (
            "cohere",
            json!({"message": {"role": "assistant", "content": []}, "finish_reason": "COMPLETE"}),
        ),
        (
            "mistral",
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]}),
        ),
        ("calls", json!({"calls": []})),
    ] {
        let answered = stage.complete(format, &body).await;
        assert_eq!(answered["calls"], json!([]), "{format} {body}");
        assert_eq!(answered["messages"], json!([]), "{format} {body}");
    }
    stage.house.finish().await;
}

#[tokio::test]
async fn one_choice_of_several_may_be_sent_as_it_is() {
    let stage = stage().await;
    let call =
        json!([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    let choice = json!({"index": 1, "finish_reason": "tool_calls", "message": chat(&call)});
    for format in ["openai", "mistral"] {
        assert_eq!(statuses(&stage.complete(format, &choice).await), ["result"]);
    }
    let candidate = json!({"content": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}, "finishReason": "STOP", "index": 1});
    assert_eq!(
        statuses(&stage.complete("gemini", &candidate).await),
        ["result"]
    );
    let answer = stage.turn("anthropic", &choice).await;
    assert_eq!(answer.json()["looks_like"], "openai", "{answer:?}");
    stage.house.finish().await;
}

#[tokio::test]
async fn what_is_no_whole_message_is_refused_with_what_to_send() {
    let stage = stage().await;
    let anthropic = json!([{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]);
    let openai =
        json!([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    let gemini = json!([{"functionCall": {"name": "look", "args": {}}}]);
    let bedrock = json!([{"toolUse": {"toolUseId": "b1", "name": "look", "input": {}}}]);
    let thinking = json!([{"type": "thinking", "thinking": "hm", "signature": "x"}, anthropic[0]]);
    for part in [&anthropic, &openai, &gemini, &bedrock, &thinking] {
        // The output of Responses is a list too, and none of these.
        for format in [
            "anthropic",
            "openai",
            "openai-responses",
            "gemini",
            "bedrock",
        ] {
            let answer = stage.turn(format, part).await;
            assert_eq!(answer.status, 400, "{format} {part}: {answer:?}");
            assert_eq!(answer.json()["code"], "unknown_format", "{format} {part}");
            assert!(
                answer
                    .problem()
                    .contains("or the assistant's message in it"),
                "{answer:?}"
            );
        }
    }
    for (format, body, words) in [
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "overloaded_error"}}),
            "an error of the vendor",
        ),
        (
            "openai",
            json!({"error": {"message": "no such model", "code": 404}}),
            "an error of the vendor",
        ),
        (
            "ollama",
            json!({"error": "model not found"}),
            "an error of the vendor",
        ),
        (
            "openai",
            json!({"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}),
            "as `tools`",
        ),
        (
            "openai",
            json!({"choices": [{"message": {"role": "assistant", "function_call": {"name": "look"}}}]}),
            "as `tools`",
        ),
    ] {
        let answer = stage.turn(format, &body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(answer.json()["code"], "malformed_response", "{body}");
        assert!(answer.problem().contains(words), "{answer:?}");
    }
    assert_eq!(stage.callee.ran().len(), 0);
    stage.house.finish().await;
}

#[tokio::test]
async fn parts_of_streams_are_refused_in_every_form_and_a_joined_stream_is_a_response() {
    let stage = stage().await;
    let piece = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]});
    for (format, body) in [
        ("openai", piece.clone()),
        ("mistral", piece.clone()),
        ("openai", json!([piece.clone(), piece])),
        (
            "anthropic",
            json!([{"type": "message_start", "message": {}}, {"type": "content_block_start", "index": 0}]),
        ),
        (
            "openai-responses",
            json!([{"type": "response.created", "response": {}}]),
        ),
        (
            "bedrock",
            json!([{"messageStart": {"role": "assistant"}}, {"contentBlockDelta": {"delta": {}}}]),
        ),
        (
            "bedrock",
            json!({"contentBlockStart": {"start": {"toolUse": {"name": "look"}}}}),
        ),
        (
            "ollama",
            json!([{"message": {"role": "assistant"}, "done": false}, {"message": {}, "done": true}]),
        ),
        (
            "gemini",
            json!([{"candidates": [{"content": {"parts": []}}]}]),
        ),
        (
            "cohere",
            json!({"type": "tool-call-delta", "index": 0, "delta": {}}),
        ),
    ] {
        let answer = stage.turn(format, &body).await;
        assert_eq!(answer.status, 400, "{format} {body}: {answer:?}");
        assert_eq!(answer.json()["code"], "stream", "{format} {body}");
    }
    // As helpers that join chunks leave it: with the index and without a type.
    let joined = json!([{"index": 0, "id": "c1", "type": null, "function": {"name": "look", "arguments": "{\"a\":1}"}}]);
    let answered = stage
        .complete(
            "openai",
            &json!({"choices": [{"index": 0, "message": chat(&joined)}]}),
        )
        .await;
    assert_eq!(answered["messages"][0]["content"], "{\"a\":1}");
    // Arguments of Anthropic that were joined as text, and none at all.
    let input =
        |input: Value| json!({"type": "tool_use", "id": "t1", "name": "look", "input": input});
    for (written, seen) in [
        (json!("{\"a\":1}"), json!({"a": 1})),
        (json!(""), json!({})),
        (Value::Null, json!({})),
    ] {
        let answered = stage
            .complete(
                "anthropic",
                &json!({"role": "assistant", "content": [input(written)]}),
            )
            .await;
        let content = answered["messages"][0]["content"][0]["content"]
            .as_str()
            .unwrap();
        assert_eq!(serde_json::from_str::<Value>(content).unwrap(), seen);
    }
    stage.house.finish().await;
}

/// A message of this format with one call of `look` for each of these arguments, as the vendor
/// writes arguments.
fn message(format: &str, arguments: &[Value]) -> Value {
    let number = |index: usize| format!("c{index}");
    let each = |make: &dyn Fn(usize, &Value) -> Value| -> Value {
        arguments
            .iter()
            .enumerate()
            .map(|(index, given)| make(index, given))
            .collect()
    };
    match format {
        "anthropic" => {
            let calls = each(
                &|index, given| json!({"type": "tool_use", "id": number(index), "name": "look", "input": given}),
            );
            json!({"role": "assistant", "content": calls})
        }
        "bedrock" => {
            let calls = each(
                &|index, given| json!({"toolUse": {"toolUseId": number(index), "name": "look", "input": given}}),
            );
            json!({"role": "assistant", "content": calls})
        }
        "gemini" => {
            json!({"role": "model", "parts": each(&|_, given| json!({"functionCall": {"name": "look", "args": given}}))})
        }
        "openai-responses" => each(
            &|index, given| json!({"type": "function_call", "call_id": number(index), "name": "look", "arguments": given}),
        ),
        "ollama" => {
            let calls = each(&|_, given| json!({"function": {"name": "look", "arguments": given}}));
            json!({"message": {"role": "assistant", "tool_calls": calls}, "done": true})
        }
        _ => chat(&each(
            &|index, given| json!({"id": number(index), "function": {"name": "look", "arguments": given}}),
        )),
    }
}

const VENDORS: [&str; 8] = [
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "bedrock",
    "mistral",
    "cohere",
    "ollama",
];

#[tokio::test]
async fn every_vendors_odd_arguments_are_read_or_refused_for_that_call_alone() {
    let stage = stage().await;
    let arguments = [
        json!({"a": 1}),
        json!("{\"a\":1}"),
        Value::Null,
        json!(""),
        json!("null"),
        json!([1]),
        json!("[1]"),
        json!("7"),
        json!("look up cats"),
        json!("{\"a\":"),
        json!("{'a': 1}"),
        json!("\"{\\\"a\\\":1}\""),
        json!("{\"a\":1,\"a\":2}"),
        json!(true),
    ];
    let good = 5;
    for format in VENDORS {
        let answered = stage.complete(format, &message(format, &arguments)).await;
        let expected: Vec<&str> = (0..arguments.len())
            .map(|at| if at < good { "result" } else { "refused" })
            .collect();
        assert_eq!(statuses(&answered), expected, "{format}: {answered}");
        for call in &answered["calls"].as_array().unwrap()[good..] {
            assert_eq!(call["code"], "invalid_arguments", "{format}");
            let said = call["error"].as_str().unwrap();
            assert!(said.contains("The tool did not run."), "{format}: {said}");
        }
        // Each of them is answered.
        let written = answered["messages"].to_string();
        assert_eq!(
            written.matches("The tool did not run.").count(),
            arguments.len() - good,
            "{format}: {written}"
        );
    }
    assert_eq!(stage.callee.ran().len(), good * VENDORS.len());
    stage.house.finish().await;
}

#[tokio::test]
async fn calls_without_ids_are_each_answered_where_the_vendor_takes_that() {
    let stage = stage().await;
    let function = |n: u32| json!({"name": "look", "arguments": {"n": n}});
    for id in [json!(""), Value::Null] {
        let calls =
            json!([{"id": id, "function": function(1)}, {"id": id, "function": function(2)}]);
        for (format, named) in [
            ("openai", Some("")),
            ("mistral", id.as_str()),
            ("ollama", None),
        ] {
            let body = if format == "ollama" {
                json!({"message": chat(&calls), "done": true})
            } else {
                json!({"choices": [{"index": 0, "message": chat(&calls)}]})
            };
            let answered = stage.complete(format, &body).await;
            assert_eq!(
                statuses(&answered),
                ["result", "result"],
                "{format}: {answered}"
            );
            let messages = answered["messages"].as_array().unwrap();
            let contents: Vec<&Value> =
                messages.iter().map(|message| &message["content"]).collect();
            assert_eq!(contents, ["{\"n\":1}", "{\"n\":2}"], "{format}");
            assert_eq!(
                messages[0].get("tool_call_id").and_then(Value::as_str),
                named,
                "{format}: {answered}"
            );
        }
        let answer = stage.turn("cohere", &chat(&calls)).await;
        assert_eq!(answer.json()["code"], "no_call_id", "{answer:?}");
        let part = |n: u32| json!({"functionCall": {"id": id, "name": "look", "args": {"n": n}}});
        let answered = stage
            .complete(
                "gemini",
                &json!({"role": "model", "parts": [part(1), part(2)]}),
            )
            .await;
        assert_eq!(statuses(&answered), ["result", "result"], "{answered}");
        let parts = answered["messages"][0]["parts"].as_array().unwrap();
        assert_eq!(
            parts[1]["functionResponse"]["response"]["output"],
            json!({"n": 2})
        );
    }
    stage.house.finish().await;
}

#[tokio::test]
async fn of_calls_with_one_id_the_first_decides_who_answers() {
    let stage = stage().await;
    let call = |name: &str| json!({"id": "c1", "function": {"name": name, "arguments": "{}"}});
    let body = |names: [&str; 2]| json!({"response": chat(&json!(names.map(call))), "own_tools": ["mine"]});
    let answered = stage.complete("openai", &body(["look", "mine"])).await;
    assert_eq!(statuses(&answered), ["result", "refused"], "{answered}");
    let content = answered["messages"][0]["content"].as_str().unwrap();
    assert!(
        content.contains("Another call of this message has the same id"),
        "{content}"
    );
    // The program answers the id, so no second answer stands beside it.
    let answered = stage.complete("openai", &body(["mine", "look"])).await;
    assert_eq!(statuses(&answered), ["not_ours", "refused"], "{answered}");
    assert_eq!(answered["messages"], json!([]));
    assert_eq!(stage.callee.ran().len(), 1);
    stage.house.finish().await;
}

#[tokio::test]
async fn a_call_without_a_name_is_a_mistake_of_the_model() {
    let stage = stage().await;
    for (format, body) in [
        (
            "openai",
            chat(&json!([{"id": "c1", "function": {"name": "", "arguments": "{}"}}])),
        ),
        (
            "openai",
            chat(&json!([{"id": "c1", "function": {"arguments": "{}"}}])),
        ),
        (
            "anthropic",
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": " ", "input": {}}]}),
        ),
        (
            "gemini",
            json!({"role": "model", "parts": [{"functionCall": {"args": {}}}]}),
        ),
        (
            "calls",
            json!({"calls": [{"path": "a"}, {"_tool": 7}, {"_tool": "look"}]}),
        ),
    ] {
        let answered = stage.complete(format, &body).await;
        assert_eq!(
            statuses(&answered)[0],
            "refused",
            "{format} {body}: {answered}"
        );
        assert_eq!(answered["calls"][0]["code"], "unknown_tool", "{format}");
        assert!(
            answered["messages"]
                .to_string()
                .contains("The call names no tool"),
            "{format}: {answered}"
        );
    }
    // The other calls of the message run.
    assert_eq!(stage.callee.ran().len(), 1);
    stage.house.finish().await;
}

#[tokio::test]
async fn two_hundred_calls_are_answered_and_the_most_of_them_is_a_limit() {
    let stage = stage().await;
    let arguments: Vec<Value> = (0..200).map(|n| json!({"n": n})).collect();
    for format in VENDORS {
        let answered = stage.complete(format, &message(format, &arguments)).await;
        let statuses = statuses(&answered);
        assert_eq!(
            statuses
                .iter()
                .filter(|status| **status == "result")
                .count(),
            128,
            "{format}"
        );
        assert!(
            statuses[128..].iter().all(|status| *status == "refused"),
            "{format}"
        );
        assert_eq!(answered["calls"][128]["code"], "too_many_calls");
        let written = answered["messages"].to_string();
        assert_eq!(
            written
                .matches("Only the first 128 calls of a message are run")
                .count(),
            72,
            "{format}"
        );
        for n in [0, 127] {
            let at = if format == "gemini" {
                format!("{{\"n\":{n}}}")
            } else {
                format!("{{\\\"n\\\":{n}}}")
            };
            assert_eq!(written.matches(&at).count(), 1, "{format}: {at}");
        }
    }
    assert_eq!(stage.callee.ran().len(), 128 * VENDORS.len());
    stage.house.finish().await;
}
