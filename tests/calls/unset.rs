//! A model that is held to a strict mode sends `null` for what it leaves out, and is never refused for it.

use callsheet::calls::{unset, validate};
use callsheet::formats::{self, FormatOptions};
use callsheet::model::JsonText;
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::strategy::Just;
use serde_json::{Map, Value, json};

use crate::support::callee::{Callee, manifest, tool_with};
use crate::support::house::House;
use crate::support::serving::ask;
use crate::support::view_tools::tool;

#[tokio::test]
async fn nulls_for_optional_members_are_taken_out_before_the_call_is_checked_and_sent() {
    let parameters = json!({"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}}}});
    let metadata = json!({"enabled_by_default": true, "requires_approval": false});
    let callee = Callee::echo(manifest("weather", &[tool_with("forecast", &parameters, &metadata)])).await;
    let house = House::of(&[("weather", callee.url())]).await;
    let address = house.serve().await;
    let execute = async |arguments: Value| -> Value {
        let body = json!({"tool_name": "forecast", "arguments": arguments}).to_string();
        let headers = [("content-type", "application/json")];
        let answer = ask(address, "POST", "/api/v1/tools/execute", &headers, &body).await;
        serde_json::from_slice(&answer.body).unwrap()
    };

    let answer = execute(json!({"city": "Oslo", "unit": null, "place": {"lat": null}})).await;

    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(answer["adjusted"], json!(["/unit", "/place/lat"]), "{answer}");
    assert_eq!(callee.ran()[0].arguments, json!({"city": "Oslo", "place": {}}));
    let answer = execute(json!({"city": null})).await;
    assert_eq!(answer["success"], false, "a required one stays: {answer}");
    assert_eq!(answer.get("adjusted"), None, "a required one stays: {answer}");
    let answer = execute(json!({"city": "Oslo"})).await;
    assert!(answer.get("adjusted").is_none(), "{answer}");
    house.finish().await;
}

/// A schema of one value, with its depth bounded.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": "string", "enum": ["a", "b"]})),
        Just(json!({"$ref": "#/$defs/name"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            object(inner.clone()),
            prop::collection::vec(object(inner), 1..3).prop_map(|all| {
                let branches = all.into_iter().enumerate().map(|(at, mut branch)| {
                    branch["properties"]["kind"] = json!({"type": "string", "enum": [format!("k{at}")]});
                    branch["required"].as_array_mut().unwrap().push("kind".into());
                    branch
                });
                json!({"anyOf": branches.collect::<Vec<_>>()})
            }),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((inner, any::<bool>()), 1..4).prop_map(|members| {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (at, (schema, is_required)) in members.into_iter().enumerate() {
            properties.insert(format!("p{at}"), schema);
            required.extend(is_required.then(|| Value::from(format!("p{at}"))));
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    })
}

/// A value that a strict schema allows; `choices` decides among the possible ones.
fn obeying(root: &Value, schema: &Value, choices: &mut impl Iterator<Item = u8>) -> Value {
    let choice = usize::from(choices.next().unwrap_or_default());
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return obeying(root, root.pointer(target.trim_start_matches('#')).unwrap(), choices);
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        return obeying(root, &branches[choice % branches.len()], choices);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[choice % values.len()].clone();
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    match kinds[choice % kinds.len()].as_str().unwrap_or_default() {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Value::Object(properties.map(|(name, schema)| (name.clone(), obeying(root, schema, choices))).collect())
        }
        "array" => (0..choice % 3).map(|_| obeying(root, &schema["items"], choices)).collect(),
        "string" => "x".into(),
        "integer" => 7.into(),
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
        root["$defs"] = json!({"name": {"type": "string"}});
        let options = FormatOptions { strict: true, ..FormatOptions::default() };
        let format = formats::with_options(formats::by_id("openai").unwrap(), options).unwrap();
        let encoded: Value = serde_json::from_slice(&format.encode(&tool("s", "t", &root.to_string())).json.unwrap()).unwrap();
        if encoded["function"]["strict"] == json!(true) {
            let strict = &encoded["function"]["parameters"];
            let sent = obeying(strict, strict, &mut choices.into_iter());
            let (schema, arguments) = (JsonText::parse(&root.to_string()).unwrap(), JsonText::parse(&sent.to_string()).unwrap());
            let left = unset::without_unset(&schema, &arguments).map_or(arguments, |left| left.arguments);
            let verdict = validate::check(&schema, &left);
            assert!(matches!(verdict, validate::ArgumentVerdict::Fits), "{schema:?} {sent} {left:?}: {verdict:?}");
        }
    }
}
