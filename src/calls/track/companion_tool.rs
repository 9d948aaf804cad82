//! Whether a tool can be called with an operation's id alone, and which JSON type the id needs for
//! that. Pure.

use serde_json::{Map, Value};

use super::behaviour::CompanionTool;
use crate::model::{JsonText, Tool};

/// How many further required parameters an error names.
const NAMED: usize = 4;

/// The arguments that name the operation to the tool, or why there are none.
pub(super) fn arguments(
    partner: &CompanionTool,
    tool: &Tool,
    reference: &Value,
) -> Result<JsonText, String> {
    let CompanionTool { tool: name, param } = partner;
    let schema: Value = serde_json::from_str(tool.parameters.get()).unwrap_or_default();
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let others: Vec<String> = required
        .filter(|other| other != param)
        .take(NAMED)
        .map(|other| format!("`{other}`"))
        .collect();
    if !others.is_empty() {
        let others = others.join(", ");
        return Err(format!(
            "its tool `{name}` also requires {others}, but only the operation's id is known"
        ));
    }
    let parameter = schema
        .get("properties")
        .and_then(|properties| properties.get(param));
    let Some(parameter) = parameter else {
        return Err(format!(
            "its tool `{name}` has no parameter `{param}`, which is to take the operation's id"
        ));
    };
    let id = fitting(reference, parameter).ok_or_else(|| {
        format!("its tool `{name}` takes no such id as {reference} for `{param}`")
    })?;
    let members = Map::from_iter([(param.clone(), id)]);
    JsonText::parse(&Value::Object(members).to_string()).map_err(|error| error.to_string())
}

/// The id as a value that the parameter accepts: unchanged where that fits, else a number as a text
/// or a text as a number.
fn fitting(reference: &Value, parameter: &Value) -> Option<Value> {
    let takes = |kind: &str| match parameter.get("type") {
        None => true,
        Some(Value::String(named)) => named == kind,
        Some(Value::Array(named)) => named.iter().any(|named| named == kind),
        Some(_) => false,
    };
    match reference {
        Value::String(text) if takes("string") => Some(Value::String(text.clone())),
        Value::String(text) => {
            let number: Value = text
                .parse::<i64>()
                .map(Value::from)
                .or_else(|_| text.parse::<u64>().map(Value::from))
                .ok()?;
            (takes("integer") || takes("number")).then_some(number)
        }
        Value::Number(number) if takes("number") || (takes("integer") && !number.is_f64()) => {
            Some(reference.clone())
        }
        Value::Number(number) if takes("string") => Some(Value::String(number.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::VersionCell;
    use std::sync::Arc;

    fn arguments_for(parameters: &Value, id: &Value) -> Result<String, String> {
        let tool = Tool {
            name: "get_run".into(),
            description: "".into(),
            category: None,
            parameters: JsonText::parse(&parameters.to_string()).unwrap(),
            metadata: JsonText::parse("{}").unwrap(),
            facts: Arc::default(),
            extra: Box::default(),
            definition: None,
            version: VersionCell::default(),
        };
        let partner = CompanionTool {
            tool: "get_run".into(),
            param: "run_id".into(),
        };
        arguments(&partner, &tool, id).map(|text| text.get().to_owned())
    }

    fn taking(kind: &Value) -> Value {
        json!({"type": "object", "properties": {"run_id": {"type": kind}}, "required": ["run_id"]})
    }

    #[test]
    fn an_id_goes_in_as_the_parameter_takes_it() {
        for (kind, id, sent) in [
            (json!("string"), json!("r-1"), r#"{"run_id":"r-1"}"#),
            (json!("string"), json!("17"), r#"{"run_id":"17"}"#),
            (json!("string"), json!(17), r#"{"run_id":"17"}"#),
            (json!("integer"), json!(17), r#"{"run_id":17}"#),
            (json!("integer"), json!("17"), r#"{"run_id":17}"#),
            (json!("number"), json!(1.5), r#"{"run_id":1.5}"#),
            (json!(["integer", "null"]), json!("17"), r#"{"run_id":17}"#),
        ] {
            assert_eq!(
                arguments_for(&taking(&kind), &id).as_deref(),
                Ok(sent),
                "{kind} {id}"
            );
        }
        let untyped = json!({"type": "object", "properties": {"run_id": {}}});
        assert_eq!(
            arguments_for(&untyped, &json!("17")).as_deref(),
            Ok(r#"{"run_id":"17"}"#)
        );
        for (kind, id) in [
            ("integer", json!("r-1")),
            ("integer", json!(1.5)),
            ("boolean", json!("r-1")),
            ("array", json!(1)),
        ] {
            assert!(
                arguments_for(&taking(&json!(kind)), &id)
                    .unwrap_err()
                    .contains("`run_id`"),
                "{kind} {id}"
            );
        }
    }

    #[test]
    fn a_tool_that_needs_more_than_the_id_cannot_be_asked() {
        let more = json!({"type": "object", "properties": {"run_id": {}, "sandbox_id": {}}, "required": ["run_id", "sandbox_id"]});
        assert!(
            arguments_for(&more, &json!("r"))
                .unwrap_err()
                .contains("also requires `sandbox_id`")
        );
        let other = json!({"type": "object", "properties": {"id": {}}});
        assert!(
            arguments_for(&other, &json!("r"))
                .unwrap_err()
                .contains("no parameter `run_id`")
        );
    }
}
