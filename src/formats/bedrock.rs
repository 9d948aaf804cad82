//! Bedrock Converse `toolConfig`. With `cache=true` a `cachePoint` stands behind the last tool.
//!
//! Converse takes no `toolConfig` without tools (botocore service-2.json: at least one), so a list
//! without tools is `null`: no configuration, which a request leaves out.

use super::limits;
use super::schema;
use super::vendor::{Piece, Vendor};
use super::{EndMark, FormatOptions};
use crate::json::write::ObjectWriter;

/// `format=bedrock`.
pub(super) static FORMAT: Vendor = Vendor {
    as_is: None,
    variants: &[(
        FormatOptions {
            strict: false,
            cache: true,
            deferring: false,
        },
        &CACHED,
    )],
    ..shape("bedrock", EndMark::None)
};

static CACHED: Vendor = shape(
    "bedrock+cache",
    EndMark::Behind(r#",{"cachePoint":{"type":"default"}}"#),
);

const fn shape(id: &'static str, cached: EndMark) -> Vendor {
    Vendor {
        id,
        limits: &limits::BEDROCK,
        steps: schema::COMMON,
        write: tool,
        frame: (r#"{"tools":["#, "]}"),
        empty_list: Some("null"),
        cached,
        strict: None,
        deferral: None,
        as_is: None,
        variants: &[],
    }
}

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    let mut spec = ObjectWriter::after(br#"{"toolSpec":"#.to_vec());
    let mut schema = ObjectWriter::after(Vec::new());
    schema.raw("json", piece.schema);
    spec.text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("inputSchema", &String::from_utf8_lossy(&schema.end()));
    let mut json = spec.end();
    json.push(b'}');
    json
}
