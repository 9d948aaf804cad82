//! The list of the JSON-RPC methods at `/rpc`: `{"tools": [{name, description, inputSchema}]}`,
//! with the version of each definition.
//!
//! Schemas are those of `format=mcp`. A tool without parameters has exactly the schema that the
//! protocol's document gives such a tool.

use callsheet_provide::json_rpc::input_schema;

use super::Format;
use super::mcp;
use super::vendor::{Piece, Vendor};
use crate::json::write::ObjectWriter;

static LIST: Vendor = Vendor {
    id: "json-rpc",
    write: tool,
    frame: (r#"{"tools":["#, "]}"),
    ..mcp::BASE
};

/// The format of the list.
pub(crate) fn json_rpc_tools() -> &'static dyn Format {
    &LIST
}

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    let mut tool = ObjectWriter::after(Vec::new());
    tool.text("name", piece.tool.name.as_str());
    tool.text("description", piece.description.unwrap_or_default());
    tool.raw("inputSchema", input_schema(piece.schema));
    tool.text("definition_version", &piece.tool.tool.version().short());
    tool.end()
}
