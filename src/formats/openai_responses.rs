//! OpenAI Responses `tools`: flat functions. Without `strict` the server tries a schema strictly and falls back.

use super::EndMark;
use super::limits;
use super::schema;
use super::vendor::{Piece, Vendor};
use super::write::ObjectWriter;

/// `format=openai-responses`.
pub(super) static FORMAT: Vendor = Vendor {
    id: "openai-responses",
    limits: &limits::OPENAI_RESPONSES,
    steps: schema::COMMON,
    write: function,
    frame: ("[", "]"),
    nothing: None,
    cached: EndMark::None,
    variants: &[],
};

fn function(piece: &Piece<'_>) -> Vec<u8> {
    let mut function = ObjectWriter::after(Vec::new());
    function
        .text("type", "function")
        .text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("parameters", piece.schema);
    function.end()
}
