//! What the tools of callsheet itself have in common: how their arguments are read, and what they
//! answer.

use serde::Deserialize;
use serde_json::{Value, json};

/// What a tool of callsheet itself answers.
pub(super) struct OwnAnswer {
    /// For a model.
    pub(super) text: String,
    /// For a program.
    pub(super) value: Value,
}

impl OwnAnswer {
    /// A value whose text is its JSON.
    pub(super) fn of_value(value: Value) -> Self {
        Self {
            text: value.to_string(),
            value,
        }
    }

    /// The result of the call.
    pub(super) fn into_result(self) -> String {
        let content = json!([{"type": "text", "text": self.text}]);
        json!({"resultType": "complete", "content": content, "structuredContent": self.value})
            .to_string()
    }
}

/// The arguments of a tool, or what is wrong with them.
pub(super) fn read<'a, T: Deserialize<'a>>(tool: &str, arguments: &'a str) -> Result<T, String> {
    // An array would be read as the members in their order.
    if !arguments.starts_with('{') {
        return Err(format!("the arguments of `{tool}` must be a JSON object"));
    }
    serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments of `{tool}` cannot be read: {error}"))
}
