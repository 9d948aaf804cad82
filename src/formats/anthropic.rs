//! Anthropic Messages `tools`. With `cache=true` the last tool carries `cache_control`, so that the prompt cache ends behind the tools.

use super::limits;
use super::schema;
use super::vendor::{Piece, Vendor};
use super::write::ObjectWriter;
use super::{EndMark, Options};

/// `format=anthropic`.
pub(super) static FORMAT: Vendor =
    Vendor { variants: &[(Options { cache: true }, &CACHED)], ..shape("anthropic", EndMark::None) };

static CACHED: Vendor = shape("anthropic+cache", EndMark::InLast(r#","cache_control":{"type":"ephemeral"}"#));

const fn shape(id: &'static str, cached: EndMark) -> Vendor {
    Vendor {
        id,
        limits: &limits::ANTHROPIC,
        steps: schema::COMMON,
        write: tool,
        frame: ("[", "]"),
        nothing: None,
        cached,
        variants: &[],
    }
}

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    let mut tool = ObjectWriter::after(Vec::new());
    tool.text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("input_schema", piece.schema);
    tool.end()
}
