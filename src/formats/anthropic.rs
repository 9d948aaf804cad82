//! Anthropic Messages `tools`. With `cache=true` the last tool carries `cache_control`, so that the prompt cache ends behind the tools.

use super::limits;
use super::schema;
use super::strict::{self, Strict};
use super::vendor::{Piece, Vendor};
use super::write::ObjectWriter;
use super::{EndMark, Options};

/// `format=anthropic`.
pub(super) static FORMAT: Vendor = Vendor {
    variants: &[
        (Options { strict: false, cache: true }, &CACHED),
        (Options { strict: true, cache: false }, &STRICT),
        (Options { strict: true, cache: true }, &STRICT_CACHED),
    ],
    ..shape("anthropic", EndMark::None, None)
};

const MARK: EndMark = EndMark::InLast(r#","cache_control":{"type":"ephemeral"}"#);

static CACHED: Vendor = shape("anthropic+cache", MARK, None);
static STRICT: Vendor = shape("anthropic+strict", EndMark::None, Some(&strict::ANTHROPIC));
static STRICT_CACHED: Vendor = shape("anthropic+strict+cache", MARK, Some(&strict::ANTHROPIC));

const fn shape(id: &'static str, cached: EndMark, strict: Option<&'static Strict>) -> Vendor {
    Vendor {
        id,
        limits: &limits::ANTHROPIC,
        steps: schema::COMMON,
        write: tool,
        frame: ("[", "]"),
        nothing: None,
        cached,
        strict,
        variants: &[],
    }
}

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    let mut tool = ObjectWriter::after(Vec::new());
    tool.text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("input_schema", piece.schema);
    if piece.strict {
        tool.flag("strict", true);
    }
    tool.end()
}
