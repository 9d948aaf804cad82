//! OpenAI Responses `tools`: flat functions. Without `strict` the server tries a schema strictly and falls back.

use super::limits;
use super::schema;
use super::strict::{self, Strict};
use super::vendor::{Piece, Vendor};
use super::write::ObjectWriter;
use super::{EndMark, Options};

/// `format=openai-responses`.
pub(super) static FORMAT: Vendor =
    Vendor { variants: &[(Options { strict: true, cache: false }, &STRICT)], ..shape("openai-responses", None) };

static STRICT: Vendor = shape("openai-responses+strict", Some(&strict::OPENAI));

const fn shape(id: &'static str, strict: Option<&'static Strict>) -> Vendor {
    Vendor {
        id,
        limits: &limits::OPENAI_RESPONSES,
        steps: schema::COMMON,
        write: function,
        frame: ("[", "]"),
        nothing: None,
        cached: EndMark::None,
        strict,
        variants: &[],
    }
}

fn function(piece: &Piece<'_>) -> Vec<u8> {
    let mut function = ObjectWriter::after(Vec::new());
    function
        .text("type", "function")
        .text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("parameters", piece.schema);
    if piece.strict {
        function.flag("strict", true);
    }
    function.end()
}
