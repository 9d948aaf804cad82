//! The shape of Chat Completions, which Mistral and Cohere share with OpenAI; what differs is a row
//! of limits.

use super::EndMark;
use super::limits::{self, FormatLimits};
use super::schema;
use super::vendor::{Piece, Vendor};
use crate::json::write::ObjectWriter;

/// `format=mistral`.
pub(super) static MISTRAL: Vendor = like("mistral", &limits::MISTRAL);
/// `format=cohere`.
pub(super) static COHERE: Vendor = like("cohere", &limits::COHERE);

/// A vendor of this shape.
pub(super) const fn like(id: &'static str, limits: &'static FormatLimits) -> Vendor {
    Vendor {
        id,
        limits,
        steps: schema::COMPILED,
        write: function,
        frame: ("[", "]"),
        empty_list: None,
        cached: EndMark::None,
        strict: None,
        deferral: None,
        as_is: None,
        variants: &[],
    }
}

/// `{"type":"function","function":{"name","description"?,"parameters"}}`.
pub(super) fn function(piece: &Piece<'_>) -> Vec<u8> {
    let mut function = ObjectWriter::after(br#"{"type":"function","function":"#.to_vec());
    function
        .text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("parameters", piece.schema);
    if piece.strict {
        function.flag("strict", true);
    }
    let mut json = function.end();
    json.push(b'}');
    json
}
