//! The Tool Protocol's composition: one schema with a `calls` array whose items are any of the
//! tools.
//!
//! Meta fields come first: `_tool` (constant), `_activity`, `_reasoningForCall`, `_output`. A call
//! is explicit (an activity runs it, which `_activity` names) or latent (`_activity` is the empty
//! text, and the LLM fills in `_output` itself). The catalog decided which. `_output` is required
//! of latent calls only: an activity makes the result of the others.

use serde_json::{Map, Value, json};

use super::EndMark;
use super::latent::OUTPUT_STEPS;
use super::limits;
use super::schema::{
    COMPILED, Context, Transform, TransformError, apply, inline, join, steps, take,
};
use super::vendor::{Piece, Vendor};
use crate::model::{Execution, META_FIELDS};

const STEPS: [Transform; COMPILED.len() + 3] = join(
    COMPILED,
    &steps![
        inline::inline,
        own_words,
        super::schema::required::known_required
    ],
);

/// `format=calls`.
pub(super) static FORMAT: Vendor = Vendor {
    id: "calls",
    limits: &limits::CALLS,
    steps: &STEPS,
    write: call,
    frame: (
        r#"{"type":"object","properties":{"calls":{"type":"array","items":{"anyOf":["#,
        r#"]}}},"required":["calls"]}"#,
    ),
    // JSON Schema has no empty `anyOf`: without tools no call can be made.
    empty_list: Some(
        r#"{"type":"object","properties":{"calls":{"type":"array","items":{},"maxItems":0}},"required":["calls"]}"#,
    ),
    cached: EndMark::None,
    strict: None,
    deferral: None,
    as_is: None,
    variants: &[],
};

/// Takes out parameters that have the name of a meta field: a call cannot hold both.
#[expect(clippy::unnecessary_wraps, reason = "a transform has this shape")]
fn own_words(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    for name in META_FIELDS {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        if properties
            .and_then(|properties| take(properties, name))
            .is_some()
        {
            let required = schema.get_mut("required").and_then(Value::as_array_mut);
            let message = format_args!(
                "its parameter `{name}` is left out of `calls`: a call has a field of its own by that name"
            );
            if let Some(required) = required {
                required.retain(|known| known != name);
            }
            context.lossy(
                format_args!("/properties/{name}"),
                message,
                "give the parameter another name, without the underscore",
            );
        }
    }
    Ok(())
}

fn call(piece: &Piece<'_>) -> Vec<u8> {
    // The transforms made it an object with properties.
    let mut schema: Map<String, Value> = serde_json::from_str(piece.schema).unwrap_or_default();
    let mut own = match schema.shift_remove("properties") {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let required = schema
        .shift_remove("required")
        .and_then(|names| names.as_array().cloned())
        .unwrap_or_default();
    let output = piece
        .tool
        .tool
        .output()
        .and_then(|schema| apply(schema, &OUTPUT_STEPS).ok());
    let output = output.and_then(|applied| serde_json::from_str(&applied.json).ok());
    let mut properties = Map::new();
    properties.insert("_tool".into(), constant(piece.tool.name.as_str()));
    properties.insert("_activity".into(), constant(piece.tool.activity()));
    properties.insert("_reasoningForCall".into(), json!({"type": "string"}));
    properties.insert("_output".into(), output.unwrap_or_else(|| json!({})));
    properties.append(&mut own);
    let mut names = vec![Value::from("_tool"), "_activity".into()];
    names.extend(required);
    if piece.tool.execution == Execution::Latent {
        names.push("_output".into());
    }
    let mut composed = Map::new();
    composed.insert("type".into(), "object".into());
    let own_text = schema.shift_remove("description");
    if let Some(text) = piece
        .description
        .filter(|text| !text.is_empty())
        .map(Value::from)
        .or(own_text)
    {
        composed.insert("description".into(), text);
    }
    composed.insert("properties".into(), Value::Object(properties));
    composed.insert("required".into(), Value::Array(names));
    for (keyword, value) in schema {
        composed.entry(keyword).or_insert(value);
    }
    Value::Object(composed).to_string().into_bytes()
}

fn constant(text: &str) -> Value {
    json!({"type": "string", "const": text})
}
