//! The meta fields of the Tool Protocol in the arguments of a call: taken out, because they are no
//! arguments.
//!
//! A tool that has a parameter of that name gets it. Everything else keeps its bytes. This module
//! never judges whether arguments or a result fit.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::unset::rewrite;
use crate::model::{JsonText, META_FIELDS, ViewTool};

/// The arguments of a call, and its meta fields.
#[derive(Debug)]
pub(super) struct SplitArguments {
    /// The text of one JSON object, without meta fields.
    pub(super) arguments: JsonText,
    /// The result that the caller's model produced.
    pub(super) output: Option<JsonText>,
    /// Why the model made the call.
    pub(super) reasoning: Option<String>,
}

/// The meta fields that matter here, each with any value.
#[derive(Deserialize)]
struct MetaFields<'a> {
    #[serde(borrow, rename = "_output")]
    output: Option<&'a RawValue>,
    #[serde(rename = "_reasoningForCall")]
    reasoning: Option<Value>,
}

/// A schema, as far as it lists parameters.
#[derive(Default, Deserialize)]
struct ListedParameters {
    #[serde(default)]
    properties: Map<String, Value>,
}

/// Takes the meta fields out of arguments, unless they are parameters of the tool.
pub(super) fn split(tool: &ViewTool, arguments: JsonText) -> SplitArguments {
    let plain = |arguments| SplitArguments { arguments, output: None, reasoning: None };
    // Without an escape, a member's name stands in the text as it is.
    if !arguments.get().contains("\"_") && !arguments.get().contains("\\u005") {
        return plain(arguments);
    }
    let Ok(Value::Object(mut kept)) = serde_json::from_str(arguments.get()) else { return plain(arguments) };
    let listed: ListedParameters = serde_json::from_str(tool.tool.parameters.get()).unwrap_or_default();
    let is_meta = |name: &str| META_FIELDS.contains(&name) && !listed.properties.contains_key(name);
    let before = kept.len();
    kept.retain(|name, _| !is_meta(name));
    if kept.len() == before {
        return plain(arguments);
    }
    let fields = serde_json::from_str::<MetaFields<'_>>(arguments.get()).ok();
    let output = fields.as_ref().and_then(|fields| fields.output).filter(|_| is_meta("_output"));
    let reasoning =
        fields.as_ref().and_then(|fields| fields.reasoning.as_ref()).filter(|_| is_meta("_reasoningForCall"));
    SplitArguments {
        output: output.map(|raw| JsonText::known(raw.get())),
        reasoning: reasoning.and_then(Value::as_str).map(str::to_owned),
        arguments: match rewrite::without_removed(arguments.get(), &Value::Object(kept)) {
            Some(text) => JsonText::known(text),
            None => arguments,
        },
    }
}

/// The arguments with a result as their first member, as a latent call is kept.
pub(super) fn with_output(arguments: &JsonText, output: &JsonText) -> JsonText {
    let inner = arguments.get().strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
    let comma = if inner.trim().is_empty() { "" } else { "," };
    JsonText::known(format!(r#"{{"_output":{}{comma}{inner}}}"#, output.get()))
}

/// The result within the arguments of a latent call.
pub(super) fn output(arguments: &JsonText) -> Option<JsonText> {
    let fields: MetaFields<'_> = serde_json::from_str(arguments.get()).ok()?;
    fields.output.map(|raw| JsonText::known(raw.get()))
}
