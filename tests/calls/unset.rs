//! A model that is held to a strict mode sends `null` for what it leaves out, and is never refused
//! for it.

use std::net::SocketAddr;
use std::path::Path;

use callsheet::calls::{unset, validate};
use callsheet::formats::{self, FormatOptions};
use callsheet::model::{ApprovalPolicy, JsonText, SettingsPatch};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::strategy::Just;
use serde_json::{Map, Value, json};

use crate::support::callee::{Callee, PATIENCE, manifest, tool_with};
use crate::support::house::House;
use crate::support::mcp_client::McpClient;
use crate::support::serving::ask;
use crate::support::view_tools::tool;

/// Calls that a server answers over HTTP.
async fn post(address: SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    let answer = ask(
        address,
        "POST",
        path,
        &[("content-type", "application/json")],
        &body.to_string(),
    )
    .await;
    (
        answer.status,
        serde_json::from_slice(&answer.body).unwrap_or_default(),
    )
}

async fn weather(needs_approval: bool) -> (Callee, House, SocketAddr) {
    let parameters = json!({"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}}}});
    let metadata = json!({"enabled_by_default": true, "requires_approval": needs_approval});
    let callee = Callee::echo(manifest(
        "weather",
        &[tool_with("forecast", &parameters, &metadata)],
    ))
    .await;
    let house = House::of(&[("weather", callee.url())]).await;
    let address = house.serve().await;
    (callee, house, address)
}

/// A name of nearly 1 MB in each of 100 pointers took 100 MB for each call, and ended the daemon.
#[tokio::test]
async fn what_is_taken_out_below_a_long_name_is_named_by_the_nearest_place() {
    let item = json!({"type": "object", "properties": {"unit": {"type": "string"}}});
    let parameters = json!({"type": "object", "properties": {},
        "additionalProperties": {"type": "array", "items": item}});
    let metadata = json!({"enabled_by_default": true, "requires_approval": false});
    let callee = Callee::echo(manifest(
        "weather",
        &[tool_with("forecast", &parameters, &metadata)],
    ))
    .await;
    let house = House::of(&[("weather", callee.url())]).await;
    let address = house.serve().await;
    let mut arguments = Map::new();
    arguments.insert("near".to_owned(), json!([{"unit": null}]));
    arguments.insert("x".repeat(500_000), json!(vec![json!({"unit": null}); 200]));
    let body = json!({"tool_name": "forecast", "arguments": arguments});

    let (status, answer) = post(address, "/api/v1/tools/execute", &body).await;

    assert_eq!(status, 200);
    let adjusted = answer["adjusted"].as_array().unwrap();
    assert_eq!(adjusted[0], "/near/0/unit");
    assert_eq!(adjusted.len(), 100);
    assert!(adjusted[1..].iter().all(|pointer| pointer == ""));
    let sent = callee.ran().remove(0).arguments;
    assert!(sent.to_string().len() > 500_000 && !sent.to_string().contains("null"));
    house.finish().await;
}

/// Each of many items was compared with each of many parts of a schema: two such calls kept the
/// threads that serve requests for minutes.
#[tokio::test]
async fn many_values_and_many_parts_of_a_schema_hold_no_call_up() {
    let parts = vec![json!({}); 30_000];
    let branches = vec![json!({"x": 0, "allOf": [false]}); 6_000];
    let all = json!({"type": "object", "properties": {"v": {"items": {"allOf": parts}}}});
    let any = json!({"type": "object", "properties": {"v": {"anyOf": branches}}});
    let metadata = json!({"enabled_by_default": true, "requires_approval": false});
    let tools = [
        tool_with("all", &all, &metadata),
        tool_with("any", &any, &metadata),
    ];
    let callee = Callee::echo(manifest("weather", &tools)).await;
    let house = House::of(&[("weather", callee.url())]).await;
    let address = house.serve().await;
    let mut items = vec![json!({}); 100_000];
    items.push(Value::Null);
    let mut members: Map<String, Value> =
        (0..60_000).map(|at| (at.to_string(), json!(0))).collect();
    members.insert("none".to_owned(), Value::Null);
    for (tool, value) in [("all", Value::from(items)), ("any", members.into())] {
        let body = json!({"tool_name": tool, "arguments": {"v": value}});
        let answering =
            tokio::time::timeout(PATIENCE, post(address, "/api/v1/tools/execute", &body));
        let (status, answer) = answering.await.expect("an answer");
        assert!(status == 200 || status == 400, "{tool}: {status} {answer}");
    }
    house.finish().await;
}

#[tokio::test]
async fn nulls_for_optional_members_are_taken_out_before_the_call_is_checked_and_sent() {
    let (callee, house, address) = weather(false).await;
    let execute = async |arguments: Value| -> Value {
        let body = json!({"tool_name": "forecast", "arguments": arguments});
        post(address, "/api/v1/tools/execute", &body).await.1
    };

    let answer = execute(json!({"city": "Oslo", "unit": null, "place": {"lat": null}})).await;

    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(
        answer["adjusted"],
        json!(["/unit", "/place/lat"]),
        "{answer}"
    );
    assert_eq!(
        callee.ran()[0].arguments,
        json!({"city": "Oslo", "place": {}})
    );
    let answer = execute(json!({"city": null})).await;
    assert_eq!(answer["success"], false, "a required one stays: {answer}");
    assert_eq!(
        answer.get("adjusted"),
        None,
        "a required one stays: {answer}"
    );
    let answer = execute(json!({"city": "Oslo"})).await;
    assert!(answer.get("adjusted").is_none(), "{answer}");
    house.finish().await;
}

/// As a text, in the name of the first consumer's scenario, from an embedding program and from an
/// MCP client.
#[tokio::test]
async fn nulls_are_taken_out_on_every_way_in() {
    let (callee, house, address) = weather(false).await;
    let sent = json!({"city": "Oslo", "unit": null});

    let as_text = json!({"tool_name": "forecast", "arguments": sent.to_string()});
    let inbox =
        json!({"scenario": "weather", "tool_name": "forecast", "arguments": sent, "chat_id": "7"});
    for body in [as_text, inbox] {
        let (status, answer) = post(address, "/api/v1/tools/execute", &body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["adjusted"], json!(["/unit"]), "{answer}");
    }
    assert_eq!(
        house.call("forecast", &sent).await.unwrap().adjusted,
        ["/unit"]
    );
    let client = McpClient::legacy(address, "2025-06-18", json!({})).await;
    let result = client
        .result("tools/call", json!({"name": "forecast", "arguments": sent}))
        .await;
    assert_eq!(
        result["_meta"],
        json!({"callsheet/adjusted": ["/unit"]}),
        "{result}"
    );
    assert_eq!(result.get("isError"), None, "{result}");

    let ran: Vec<_> = callee.ran().into_iter().map(|ran| ran.arguments).collect();
    assert_eq!(ran, vec![json!({"city": "Oslo"}); 4]);
    house.finish().await;
}

#[tokio::test]
async fn nulls_are_taken_out_before_an_approval_is_shown() {
    let (callee, house, address) = weather(true).await;
    let body = json!({"tool_name": "forecast", "arguments": {"city": "Oslo", "unit": null}});
    let (status, answer) = post(address, "/api/v1/tools/execute", &body).await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["adjusted"], json!(["/unit"]), "{answer}");
    let id = answer["approval_id"].as_str().unwrap();
    let shown = house.app.calls().approvals().unwrap().get(id).unwrap();
    assert_eq!(shown.arguments.get(), r#"{"city":"Oslo"}"#);

    // The same call without what was taken out is the same call.
    let again = json!({"tool_name": "forecast", "arguments": {"city": "Oslo"}});
    let (_, again) = post(address, "/api/v1/tools/execute", &again).await;
    assert_eq!(again["approval_id"], json!(id), "{again}");
    assert_eq!(again.get("adjusted"), None, "{again}");

    let approve = format!("/api/v1/approvals/{id}/approve");
    let (status, decided) = post(address, &approve, &json!({})).await;
    assert_eq!(status, 200, "{decided}");
    assert_eq!(callee.ran()[0].arguments, json!({"city": "Oslo"}));
    house.finish().await;
}

/// Every tool that real scenarios offer, called by a model that leaves out all it may.
#[tokio::test]
async fn no_tool_of_a_real_scenario_refuses_what_a_strict_list_makes_a_model_send() {
    let corpus = std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        Into::into,
    );
    let Ok(files) = std::fs::read_dir(corpus.join("vrooli")) else {
        return;
    };
    let on = SettingsPatch {
        enabled: Some(Some(true)),
        approval: Some(Some(ApprovalPolicy::Skip)),
        ..SettingsPatch::default()
    };
    let mut calls = 0;
    let mut adjusted = 0;
    for file in files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
    {
        let callee =
            Callee::echo(serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap()).await;
        let house = House::of(&[("real", callee.url())]).await;
        house.prefer("global", "scenario:real", on.clone()).await;
        let address = house.serve().await;
        for format in ["openai", "openai-responses"] {
            let list = format!("/api/v1/tools?format={format}&strict=true&max_tools=0");
            let list: Value =
                serde_json::from_slice(&ask(address, "GET", &list, &[], "").await.body).unwrap();
            for tool in list.as_array().unwrap() {
                let tool = tool.get("function").unwrap_or(tool);
                if tool["strict"] != json!(true) {
                    continue;
                }
                let schema = &tool["parameters"];
                let sent = obeying(schema, schema, &mut std::iter::repeat(LAST));
                let body = json!({"tool_name": tool["name"], "arguments": sent});
                let (status, answer) = post(address, "/api/v1/tools/execute", &body).await;
                assert!(
                    (200..300).contains(&status),
                    "{} with {sent}: {answer}",
                    tool["name"]
                );
                calls += 1;
                adjusted += usize::from(answer.get("adjusted").is_some());
            }
        }
        house.finish().await;
    }
    assert!(
        calls > 100 && adjusted > 50,
        "{calls} calls, {adjusted} of them adjusted"
    );
}

/// A schema of one value, with its depth bounded.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": "string", "enum": ["a", "b"]})),
        Just(json!({"const": "c"})),
        Just(json!({"$ref": "#/$defs/name"})),
        Just(json!({"$ref": "#/$defs/place"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            object(inner.clone()),
            object(inner.clone()).prop_map(|whole| json!({"allOf": [whole]})),
            // As Pydantic writes what is optional.
            inner
                .clone()
                .prop_map(|inner| json!({"anyOf": [inner, {"type": "null"}]})),
            inner.clone().prop_map(
                |items| json!({"anyOf": [{"type": "array", "items": items}, {"type": "null"}]})
            ),
            prop::collection::vec(object(inner.clone()), 1..3)
                .prop_map(|all| json!({"anyOf": all})),
            prop::collection::vec(object(inner), 1..3).prop_map(|all| {
                let branches = all.into_iter().enumerate().map(|(at, mut branch)| {
                    branch["properties"]["kind"] =
                        json!({"type": "string", "enum": [format!("k{at}")]});
                    branch["required"]
                        .as_array_mut()
                        .unwrap()
                        .push("kind".into());
                    branch
                });
                json!({"oneOf": branches.collect::<Vec<_>>()})
            }),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (
        prop::collection::vec((inner, any::<bool>()), 1..4),
        any::<bool>(),
    )
        .prop_map(|(members, is_closed)| {
            let mut properties = Map::new();
            let mut required = Vec::new();
            for (at, (schema, is_required)) in members.into_iter().enumerate() {
                properties.insert(format!("p{at}"), schema);
                required.extend(is_required.then(|| Value::from(format!("p{at}"))));
            }
            let mut object =
                json!({"type": "object", "properties": properties, "required": required});
            if is_closed {
                object["additionalProperties"] = json!(false);
            }
            object
        })
}

/// Chooses the last alternative, which is `null` for what is optional.
const LAST: u8 = u8::MAX;

/// A value that a strict schema allows; `choices` decides among the possible ones.
fn obeying(root: &Value, schema: &Value, choices: &mut impl Iterator<Item = u8>) -> Value {
    let choice = choices.next().unwrap_or_default();
    let pick = |among: usize| {
        if choice == LAST {
            among - 1
        } else {
            usize::from(choice) % among
        }
    };
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return obeying(
            root,
            root.pointer(target.trim_start_matches('#')).unwrap(),
            choices,
        );
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        return obeying(root, &branches[pick(branches.len())], choices);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[pick(values.len())].clone();
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    match kinds[pick(kinds.len())].as_str().unwrap_or_default() {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Value::Object(
                properties
                    .map(|(name, schema)| (name.clone(), obeying(root, schema, choices)))
                    .collect(),
            )
        }
        "array" => (0..choice % 3)
            .map(|_| obeying(root, &schema["items"], choices))
            .collect(),
        "string" => "x".into(),
        "integer" | "number" => 7.into(),
        "boolean" => true.into(),
        _ => Value::Null,
    }
}

proptest! {
    #[test]
    fn what_a_strict_mode_offers_is_never_refused(
        root in object(schemas()),
        choices in prop::collection::vec(any::<u8>(), 64),
    ) {
        let mut root = root;
        root["$defs"] = json!({"name": {"type": "string"}, "place": {"type": "object", "required": ["lat"],
            "properties": {"lat": {"type": "number"}, "label": {"$ref": "#/$defs/name"}}}});
        let options = FormatOptions { strict: true, ..FormatOptions::default() };
        for id in ["openai", "openai-responses"] {
            let format = formats::with_options(formats::by_id(id).unwrap(), options).unwrap();
            let encoded = format.encode(&tool("s", "t", &root.to_string())).json.unwrap();
            let encoded: Value = serde_json::from_slice(&encoded).unwrap();
            let encoded = encoded.get("function").unwrap_or(&encoded);
            if encoded["strict"] != json!(true) {
                continue;
            }
            let strict = &encoded["parameters"];
            let sent = obeying(strict, strict, &mut choices.iter().copied());
            let schema = JsonText::parse(&root.to_string()).unwrap();
            let arguments = JsonText::parse(&sent.to_string()).unwrap();
            let left = unset::without_unset(&schema, &arguments).map_or(arguments, |left| left.arguments);
            let verdict = validate::check(&schema, &left);
            assert!(matches!(verdict, validate::ArgumentVerdict::Fits), "{schema:?} {sent} {left:?}: {verdict:?}");
        }
    }
}
