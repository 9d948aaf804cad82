//! The list of the JSON-RPC methods at `/rpc`: `{"tools": [{name, description, inputSchema}]}`.
//!
//! Schemas are those of `format=mcp`. A tool without parameters has exactly the schema that the
//! protocol's document gives such a tool.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Format;
use super::mcp;
use super::vendor::{Piece, Vendor};
use super::write::ObjectWriter;

/// The schema of a tool without parameters.
const WITHOUT_PARAMETERS: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

static LIST: Vendor = Vendor { id: "json-rpc", write: tool, frame: (r#"{"tools":["#, "]}"), ..mcp::BASE };

/// The format of the list.
pub(crate) fn json_rpc_tools() -> &'static dyn Format {
    &LIST
}

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

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    let schema = if is_without_parameters(piece.schema) { WITHOUT_PARAMETERS } else { piece.schema };
    let mut tool = ObjectWriter::after(Vec::new());
    tool.text("name", piece.tool.name.as_str());
    tool.text("description", piece.description.unwrap_or_default()).raw("inputSchema", schema);
    tool.end()
}

fn is_without_parameters(schema: &str) -> bool {
    // `additionalProperties: true` is a tool that takes any parameter, and says so.
    serde_json::from_str::<NoParameters>(schema)
        .is_ok_and(|schema| schema.properties.is_none_or(|NoProperties {}| true) && schema.additional != Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_schema_that_allows_no_parameter_is_replaced() {
        for without in
            ["{}", r#"{"type":"object"}"#, r#"{"type":"object","properties":{},"required":[]}"#, WITHOUT_PARAMETERS]
        {
            assert!(is_without_parameters(without), "{without}");
        }
        for with in [
            r#"{"type":"object","properties":{"a":{}}}"#,
            r#"{"type":"object","additionalProperties":true}"#,
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"type":"object","patternProperties":{"^x":{}}}"#,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{}}}"##,
        ] {
            assert!(!is_without_parameters(with), "{with}");
        }
    }
}
