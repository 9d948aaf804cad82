//! What a program offers, as JSON-RPC has it.

use serde_json::{Value, json};

use super::identity::{IdentifiedTool, ListIdentity};
use super::schema::input_schema;

/// The list and its identity as JSON texts, made once for each offer.
pub(crate) struct RpcOffer {
    pub(super) list: String,
    pub(super) identity: String,
}

impl RpcOffer {
    /// Of tools in the spelling of the Tool Discovery Protocol.
    pub(crate) fn new(tools: impl Iterator<Item = Value>) -> Self {
        let tools: Vec<Value> = tools.map(|tool| listed(&tool)).collect();
        let schemas: Vec<String> = tools
            .iter()
            .map(|tool| tool["inputSchema"].to_string())
            .collect();
        let identified = tools
            .iter()
            .zip(&schemas)
            .map(|(tool, schema)| IdentifiedTool {
                name: tool["name"].as_str().unwrap_or_default(),
                description: tool["description"].as_str().unwrap_or_default(),
                schema,
            });
        // The members of an identity can always be written.
        let identity =
            serde_json::to_string(&ListIdentity::of(identified.collect())).unwrap_or_default();
        Self {
            list: json!({"tools": tools}).to_string(),
            identity,
        }
    }
}

/// A tool as the list has it.
pub(super) fn listed(tool: &Value) -> Value {
    let schema = tool["parameters"].to_string();
    let schema: Value = serde_json::from_str(input_schema(&schema)).unwrap_or_default();
    json!({"name": tool["name"], "description": tool["description"], "inputSchema": schema})
}
