//! The parameters of a tool whose result the caller's model produces: with `_output`, which takes
//! that result.
//!
//! `format=calls` writes the field itself, beside its other meta fields.

use serde_json::{Map, Value, json};

use super::schema::{COMPILED, Transform, TransformError, apply, inline, join, required, steps};
use crate::model::{JsonText, Tool};

/// The steps for the schema of results, whose members are the tool's own. What refers to its own
/// definitions has them in their places afterwards.
pub(super) const OUTPUT_STEPS: [Transform; COMPILED.len() + 2] =
    join(COMPILED, &steps![inline::inline, required::known_required]);

/// The parameter for the result.
const OUTPUT: &str = "_output";
/// What a model reads where the schema of the result has no description of its own.
const DESCRIPTION: &str = "The result of this call, which you produce: no program runs this tool.";

/// The schema of the parameters with `_output`, as the tool declares its result. Fails where the
/// tool has such a parameter of its own, and where the schema of the result refers to what cannot
/// stand within another one.
pub(super) fn parameters(tool: &Tool) -> Result<JsonText, TransformError> {
    let unreadable = |error: serde_json::Error| TransformError::Unreadable(error.to_string());
    let mut schema: Map<String, Value> =
        serde_json::from_str(tool.parameters.get()).map_err(unreadable)?;
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties
        .as_object_mut()
        .filter(|properties| !properties.contains_key(OUTPUT))
    else {
        return Err(TransformError::Unsupported(format!(
            "a latent tool with a parameter `{OUTPUT}` of its own"
        )));
    };
    properties.insert(OUTPUT.to_owned(), output(tool)?);
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(names) = required.as_array_mut() {
        names.push(OUTPUT.into());
    }
    Ok(JsonText::known(Value::Object(schema).to_string()))
}

/// The schema of the result, which stands at another place than it was written for.
fn output(tool: &Tool) -> Result<Value, TransformError> {
    let Some(declared) = tool.output() else {
        return Ok(json!({"description": DESCRIPTION}));
    };
    let applied = apply(declared, &OUTPUT_STEPS)?;
    let unreadable = |error: serde_json::Error| TransformError::Unreadable(error.to_string());
    let mut schema: Value = serde_json::from_str(&applied.json).map_err(unreadable)?;
    if let Some(members) = schema.as_object_mut() {
        members
            .entry("description")
            .or_insert_with(|| DESCRIPTION.into());
    }
    Ok(schema)
}
