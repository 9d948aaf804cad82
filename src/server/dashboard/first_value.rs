//! The JSON object that a form begins with, made from the schema of what it asks for.

use serde_json::{Map, Value, json};

/// Lines of a field at least.
const LEAST_ROWS: usize = 5;
/// Lines of a field at most; a longer text scrolls in it.
const MOST_ROWS: usize = 24;

/// Which members of a schema a form begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstMembers {
    /// Those that must be there: the others may be many.
    Required,
    /// All that the schema names.
    All,
}

/// The text of the object, each member with its default or an empty value of its type. A schema
/// that cannot be read gives an empty one.
pub(super) fn first_value(schema: &str, members: FirstMembers) -> String {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let named: Vec<&str> = match members {
        FirstMembers::Required => schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect(),
        FirstMembers::All => schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect(),
    };
    let begun = named
        .into_iter()
        .map(|name| (name.to_owned(), of_property(&schema["properties"][name])));
    serde_json::to_string_pretty(&begun.collect::<Map<_, _>>()).unwrap_or_default()
}

/// The lines of a field in which the whole object is read and written, for browsers in which a
/// field does not grow with its text.
pub(super) fn field_rows(text: &str) -> usize {
    text.lines()
        .count()
        .saturating_add(1)
        .clamp(LEAST_ROWS, MOST_ROWS)
}

fn of_property(property: &Value) -> Value {
    let given = property.get("default").or_else(|| property["enum"].get(0));
    given
        .cloned()
        .unwrap_or_else(|| match property["type"].as_str() {
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
    fn a_field_has_a_line_for_each_of_its_text_within_bounds() {
        assert_eq!(field_rows("{}"), LEAST_ROWS);
        assert_eq!(field_rows(&"line\n".repeat(9)), 10);
        assert_eq!(field_rows(&"line\n".repeat(900)), MOST_ROWS);
    }

    #[test]
    fn members_begin_with_their_default_or_an_empty_value() {
        let schema = json!({"required": ["city", "days", "unit", "wide", "x"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "default": 3}, "unit": {"enum": ["C", "F"]},
            "wide": {"type": "boolean"}, "other": {"type": "string"}}});
        let begun = |members| {
            serde_json::from_str::<Value>(&first_value(&schema.to_string(), members)).unwrap()
        };
        let required = begun(FirstMembers::Required);
        assert_eq!(
            required,
            json!({"city": "", "days": 3, "unit": "C", "wide": false, "x": ""})
        );
        let all = begun(FirstMembers::All);
        assert_eq!(
            all,
            json!({"city": "", "days": 3, "unit": "C", "wide": false, "other": ""})
        );
        for odd in [
            "true",
            "{",
            r#"{"required": 3}"#,
            r#"{"required": [1]}"#,
            r#"{"properties": []}"#,
        ] {
            for members in [FirstMembers::Required, FirstMembers::All] {
                assert_eq!(first_value(odd, members), "{}", "{odd} {members:?}");
            }
        }
    }
}
