//! Gemini `tools`: one element with `functionDeclarations`, each with `parametersJsonSchema`.
//!
//! A tool without parameters has no schema at all: an object without properties is refused ("should
//! be non-empty for OBJECT type").

use serde_json::Value;

use super::EndMark;
use super::limits;
use super::schema::keywords::{self, Vocabulary};
use super::schema::{Context, SIMPLE, Transform, TransformError, join, steps};
use super::vendor::{Piece, Vendor};
use crate::json::write::ObjectWriter;

const STEPS: [Transform; SIMPLE.len() + 2] = join(
    SIMPLE,
    &steps![supported_keywords, super::schema::required::known_required],
);

/// `format=gemini`.
pub(super) static FORMAT: Vendor = Vendor {
    id: "gemini",
    limits: &limits::GEMINI,
    steps: &STEPS,
    write: declaration,
    frame: (r#"[{"functionDeclarations":["#, "]}]"),
    empty_list: Some("[]"),
    cached: EndMark::None,
    strict: None,
    deferral: None,
    as_is: None,
    variants: &[],
};

/// The documentation of JSON Schema in `responseJsonSchema`, without what was folded before.
/// `format` is not taken for all types.
const VOCABULARY: Vocabulary = Vocabulary {
    target: "gemini",
    at_root: &[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "propertyOrdering",
    ],
    elsewhere: &[
        "type",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
    ],
    takes,
};

/// An `enum` of texts and numbers only.
fn takes(keyword: &str, value: &Value) -> bool {
    let plain = |value: &Value| value.is_string() || value.is_number();
    keyword != "enum"
        || value
            .as_array()
            .is_some_and(|values| values.iter().all(plain))
}

fn supported_keywords(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    keywords::keep(schema, context, &VOCABULARY)
}

fn declaration(piece: &Piece<'_>) -> Vec<u8> {
    let mut declaration = ObjectWriter::after(Vec::new());
    declaration
        .text("name", piece.tool.name.as_str())
        .optional("description", piece.description);
    let schema: Option<Value> = serde_json::from_str(piece.schema).ok();
    let properties = schema
        .as_ref()
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    if properties.is_none_or(|properties| !properties.is_empty()) {
        declaration.raw("parametersJsonSchema", piece.schema);
    }
    declaration.end()
}
