//! Arguments that a tool wants in headers too: `x-mcp-header` in its input schema (MCP 2026-07-28,
//! Streamable HTTP).
//!
//! This module judges the annotations and writes the headers of a call. It changes no schema.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName};
use serde_json::Value;

use super::request::header_value;

/// The member of a property that names its header.
const ANNOTATION: &str = "x-mcp-header";
/// The largest whole number that every JSON reader keeps.
const SAFE_INTEGER: i64 = (1 << 53) - 1;
/// The deepest nesting of properties that is looked at.
const PROPERTY_LEVELS_MAX: usize = 32;

/// For each tool the arguments that go into headers.
pub(super) type HeaderTable = BTreeMap<Arc<str>, Vec<HeaderParam>>;

/// One argument that goes into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderParam {
    header: HeaderName,
    /// The names of the members that lead to it.
    path: Vec<String>,
}

/// The arguments that a tool with this input schema wants in headers. The error says which
/// annotation is invalid, and why.
pub(super) fn annotations(schema: &str) -> Result<Vec<HeaderParam>, String> {
    if !schema.contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let mut names = HashSet::new();
    visit(&schema, &mut Vec::new(), &mut found, &mut names)?;
    let reachable = found.len();
    if count(&schema, 0) > reachable {
        return Err(format!(
            "`{ANNOTATION}` is allowed on properties only, not below `items`, `anyOf` and the like"
        ));
    }
    Ok(found)
}

fn visit(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderParam>,
    names: &mut HashSet<String>,
) -> Result<(), String> {
    if path.len() > PROPERTY_LEVELS_MAX {
        return Ok(());
    }
    if let Some(annotation) = schema.get(ANNOTATION).filter(|_| !path.is_empty()) {
        let name = annotation.as_str().filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| format!("`{ANNOTATION}` of `{}` is not a name", path.join(".")))?;
        let header = format!("mcp-param-{name}").parse::<HeaderName>();
        let header = header
            .map_err(|_| format!("`{ANNOTATION}` {name:?} cannot be the name of a header"))?;
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(format!("two properties have the `{ANNOTATION}` {name:?}"));
        }
        let kind = schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !matches!(kind, "string" | "integer" | "boolean") {
            return Err(format!(
                "`{ANNOTATION}` {name:?} is of a property that is not a string, integer or boolean"
            ));
        }
        found.push(HeaderParam {
            header,
            path: path.clone(),
        });
    }
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        path.push(name.clone());
        visit(property, path, found, names)?;
        path.pop();
    }
    Ok(())
}

/// How many annotations a schema has, wherever they are. A property may be called like the
/// annotation, so only texts count.
fn count(schema: &Value, depth: usize) -> usize {
    if depth > 4 * PROPERTY_LEVELS_MAX {
        return 0;
    }
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match value {
                Value::String(_) if name == ANNOTATION => 1,
                _ => count(value, depth + 1),
            })
            .sum(),
        Value::Array(items) => items.iter().map(|item| count(item, depth + 1)).sum(),
        _ => 0,
    }
}

/// The headers of a call with these arguments. An argument that is absent or `null` has none.
pub(super) fn of_call(params: &[HeaderParam], arguments: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if params.is_empty() {
        return headers;
    }
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
        return headers;
    };
    for param in params {
        if let Some(text) = param.text(&arguments) {
            headers.insert(param.header.clone(), header_value(&text));
        }
    }
    headers
}

/// An argument that a schema wants in a header, as a server compares it with that header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderArgument {
    pub(crate) header: HeaderName,
    /// Where it stands in the arguments, for people.
    pub(crate) path: String,
    /// Its text. `None` if it is absent or `null`: then it has no header.
    pub(crate) value: Option<String>,
}

/// The arguments that a tool with this input schema wants in headers; none if an annotation is
/// invalid.
pub(crate) fn header_arguments(schema: &str, arguments: &str) -> Vec<HeaderArgument> {
    let params = annotations(schema).unwrap_or_default();
    if params.is_empty() {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let found = params.into_iter().map(|param| HeaderArgument {
        value: param.text(&arguments),
        path: param.path.join("."),
        header: param.header,
    });
    found.collect()
}

impl HeaderParam {
    /// The text of its value in these arguments.
    fn text(&self, arguments: &Value) -> Option<String> {
        match self
            .path
            .iter()
            .try_fold(arguments, |value, name| value.get(name))?
        {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => {
                let whole = number
                    .as_i64()
                    .filter(|whole| whole.unsigned_abs() <= SAFE_INTEGER.unsigned_abs());
                whole.map(|whole| whole.to_string())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_into_the_headers_that_the_schema_names() {
        let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Count"}}}}}"#;
        let params = annotations(schema).unwrap();
        let headers = of_call(&params, r#"{"region":"eu","deep":{"n":7}}"#);
        assert_eq!(headers["mcp-param-region"], "eu");
        assert_eq!(headers["mcp-param-count"], "7");
        assert!(of_call(&params, r#"{"region":null,"deep":{"n":1.5}}"#).is_empty());
        assert_eq!(
            of_call(&params, r#"{"region":"ö"}"#)["mcp-param-region"],
            "=?base64?w7Y=?="
        );
    }

    #[test]
    fn invalid_annotations_are_refused_with_the_reason() {
        for (properties, part) in [
            (
                r#"{"a":{"type":"number","x-mcp-header":"A"}}"#,
                "not a string, integer or boolean",
            ),
            (r#"{"a":{"type":"string","x-mcp-header":""}}"#, "not a name"),
            (
                r#"{"a":{"type":"string","x-mcp-header":"a b"}}"#,
                "name of a header",
            ),
            (
                r#"{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}"#,
                "two properties",
            ),
            (
                r#"{"a":{"type":"array","items":{"type":"string","x-mcp-header":"X"}}}"#,
                "properties only",
            ),
        ] {
            let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
            let error = annotations(&schema).unwrap_err();
            assert!(error.contains(part), "{properties}: {error}");
        }
        assert_eq!(
            annotations(r#"{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}"#),
            Ok(Vec::new())
        );
    }
}
