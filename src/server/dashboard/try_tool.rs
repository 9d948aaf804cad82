//! The form on the page of a tool that calls it, as every other client does: approvals, limits and
//! records are the same. `app.js` shows the answer.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::model::ViewTool;

/// The section of one tool.
pub(super) fn section(tool: &ViewTool) -> Markup {
    html! {
        section class="card" aria-labelledby="try-title" {
            h2 id="try-title" { "Try it" }
            form id="try-tool" hx-post="/api/v1/tools/execute" hx-swap="none" hx-disabled-elt="find button" {
                input type="hidden" name="tool_name" value=(tool.id);
                label { "Arguments (JSON)" textarea name="arguments" rows="6" cols="60" spellcheck="false" { (arguments(tool.tool.parameters.get())) } }
                p { button type="submit" class="primary" { "Call" } }
            }
            p class="quiet" { "This is a call like any other: what needs approval waits for it, and the call is recorded." }
            pre id="tried" tabindex="0" aria-label="Answer" aria-live="polite" hidden { code {} }
        }
    }
}

/// Arguments to begin with: what the schema requires, each with its default or an empty value.
fn arguments(schema: &str) -> String {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let begun: Map<String, Value> =
        required.map(|name| (name.to_owned(), beginning(&schema["properties"][name]))).collect();
    serde_json::to_string_pretty(&begun).unwrap_or_default()
}

fn beginning(property: &Value) -> Value {
    let given = property.get("default").or_else(|| property["enum"].get(0));
    given.cloned().unwrap_or_else(|| match property["type"].as_str() {
        Some("integer" | "number") => json!(0),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_begin_with_what_is_required() {
        let schema = json!({"required": ["city", "days", "unit", "wide", "x"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "default": 3}, "unit": {"enum": ["C", "F"]},
            "wide": {"type": "boolean"}, "other": {"type": "string"}}});
        let begun: Value = serde_json::from_str(&arguments(&schema.to_string())).unwrap();
        assert_eq!(begun, json!({"city": "", "days": 3, "unit": "C", "wide": false, "x": ""}));
        for odd in ["true", "{", r#"{"required": 3}"#, r#"{"required": [1]}"#] {
            assert_eq!(arguments(odd), "{}");
        }
    }
}
