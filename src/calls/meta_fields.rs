//! The meta fields of the Tool Protocol in the arguments of a call: taken out, because they are no
//! arguments.
//!
//! A tool that has a parameter of that name gets it. Everything else keeps its bytes. The constants
//! of a call are judged here; whether arguments or a result fit is not.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Violation;
use crate::json::members::MemberTexts;
use crate::model::{Execution, JsonText, META_FIELDS, ViewTool};

/// The arguments of a call, and its meta fields.
#[derive(Debug)]
pub(super) struct SplitArguments {
    /// The text of one JSON object, without meta fields.
    pub(super) arguments: JsonText,
    /// The result that the caller's model produced.
    pub(super) output: Option<JsonText>,
    /// Why the model made the call.
    pub(super) reasoning: Option<String>,
    /// The tool that the call names.
    called: Option<Value>,
    /// The activity that the call names.
    activity: Option<Value>,
}

impl SplitArguments {
    /// How the constants of a call of `tool`, by this name, differ from what `format=calls` says of
    /// the tool. A constant that is left out is none.
    pub(super) fn other_constants(&self, tool: &ViewTool, name: &str) -> Vec<Violation> {
        let own = tool.name.as_str();
        let id = tool.id.to_string();
        let activity = tool.activity();
        // In an earlier list, a tool that runs its own calls may have had another name.
        let is_own = matches!(tool.execution, Execution::Own | Execution::ActivityOf(_));
        let differs = |given: &Option<Value>, allowed: &[&str]| {
            given
                .as_ref()
                .is_some_and(|given| given.as_str().is_none_or(|given| !allowed.contains(&given)))
        };
        let violation = |pointer: &str, message: String| Violation {
            pointer: pointer.to_owned(),
            message,
        };
        let mut found = Vec::new();
        if differs(&self.called, &[own, name, &id]) {
            found.push(violation(
                "/_tool",
                format!("must be \"{own}\", the tool that is called"),
            ));
        }
        let known = [activity, name, own, &id];
        if differs(&self.activity, if is_own { &known } else { &known[..1] }) {
            let message = if activity.is_empty() {
                "must be \"\": no program runs this tool now, so give its result as `_output`"
                    .to_owned()
            } else {
                format!("must be \"{activity}\", which runs this tool now")
            };
            found.push(violation("/_activity", message));
        }
        found
    }
}

/// A schema, as far as it lists parameters.
#[derive(Default, Deserialize)]
struct ListedParameters {
    #[serde(default)]
    properties: Map<String, Value>,
}

/// Takes the meta fields out of arguments, unless they are parameters of the tool.
pub(super) fn split(tool: &ViewTool, arguments: JsonText) -> SplitArguments {
    let plain = |arguments| SplitArguments {
        arguments,
        output: None,
        reasoning: None,
        called: None,
        activity: None,
    };
    // Without an escape, a member's name stands in the text as it is.
    if !arguments.get().contains("\"_") && !arguments.get().contains("\\u005") {
        return plain(arguments);
    }
    let Ok(members) = MemberTexts::parse(arguments.get()) else {
        return plain(arguments);
    };
    let listed: ListedParameters =
        serde_json::from_str(tool.tool.parameters.get()).unwrap_or_default();
    let is_meta = |name: &str| META_FIELDS.contains(&name) && !listed.properties.contains_key(name);
    if !members.names().any(is_meta) {
        return plain(arguments);
    }
    let field = |name: &str| {
        members
            .get(name)
            .filter(|text| is_meta(name) && *text != "null")
    };
    let constant =
        |name: &str| field(name).map(|text| serde_json::from_str(text).unwrap_or_default());
    SplitArguments {
        output: field("_output").map(JsonText::known),
        reasoning: field("_reasoningForCall").and_then(|text| serde_json::from_str(text).ok()),
        called: constant("_tool"),
        activity: constant("_activity"),
        arguments: JsonText::known(members.filtered(|name| !is_meta(name))),
    }
}

/// The arguments with a result as their first member, as a latent call is kept.
pub(super) fn with_output(arguments: &JsonText, output: &JsonText) -> JsonText {
    let inner = arguments
        .get()
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or_default();
    let comma = if inner.trim().is_empty() { "" } else { "," };
    JsonText::known(format!(r#"{{"_output":{}{comma}{inner}}}"#, output.get()))
}

/// The result within the arguments of a latent call.
pub(super) fn output(arguments: &JsonText) -> Option<JsonText> {
    MemberTexts::parse(arguments.get())
        .ok()?
        .get("_output")
        .map(JsonText::known)
}
