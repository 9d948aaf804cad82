//! The schema of a tool's arguments as a list has it.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The schema of a tool without parameters.
const WITHOUT_PARAMETERS: &str =
    r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// The only members of a schema that describes no parameter. Any other member may allow some.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParameters {
    #[serde(rename = "type")]
    _type: Option<IgnoredAny>,
    properties: Option<NoProperties>,
    #[serde(rename = "required")]
    _required: Option<IgnoredAny>,
    #[serde(rename = "$schema")]
    _schema: Option<IgnoredAny>,
    #[serde(rename = "additionalProperties")]
    additional: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoProperties {}

/// The JSON text of a schema as a list has it: a tool without parameters has exactly the schema
/// that the protocol's document gives such a tool, and any other schema stays as it is.
pub fn input_schema(schema: &str) -> &str {
    if is_without_parameters(schema) {
        WITHOUT_PARAMETERS
    } else {
        schema
    }
}

fn is_without_parameters(schema: &str) -> bool {
    // `additionalProperties: true` is a tool that takes any parameter, and says so.
    serde_json::from_str::<NoParameters>(schema).is_ok_and(|schema| {
        schema.properties.is_none_or(|NoProperties {}| true) && schema.additional != Some(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_schema_that_allows_no_parameter_is_replaced() {
        for without in [
            "{}",
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{},"required":[]}"#,
            WITHOUT_PARAMETERS,
        ] {
            assert_eq!(input_schema(without), WITHOUT_PARAMETERS, "{without}");
        }
        for with in [
            r#"{"type":"object","properties":{"a":{}}}"#,
            r#"{"type":"object","additionalProperties":true}"#,
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"type":"object","patternProperties":{"^x":{}}}"#,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{}}}"##,
        ] {
            assert_eq!(input_schema(with), with);
        }
    }
}
