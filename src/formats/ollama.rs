//! Ollama `tools`. The server reads a schema into a struct and drops every keyword that the struct
//! lacks, so what it would drop is said in the descriptions. Its Python client drops `anyOf` and
//! the properties of inner objects too, so alternatives of types are said as a list of types, which
//! it keeps.

use serde_json::Value;

use super::EndMark;
use super::chat;
use super::limits;
use super::schema::keywords::{self, Vocabulary};
use super::schema::{Context, SIMPLE, Transform, TransformError, join, required, steps, types};
use super::vendor::Vendor;

const STEPS: [Transform; SIMPLE.len() + 3] = join(
    SIMPLE,
    &steps![
        supported_keywords,
        types::alternatives_to_types,
        required::known_required
    ],
);

/// `format=ollama`.
pub(super) static FORMAT: Vendor = Vendor {
    id: "ollama",
    limits: &limits::OLLAMA,
    steps: &STEPS,
    write: chat::function,
    frame: ("[", "]"),
    empty_list: None,
    cached: EndMark::None,
    strict: None,
    deferral: None,
    as_is: None,
    variants: &[],
};

/// `api/types.go` of August 2026: `ToolFunctionParameters` and `ToolProperty`.
const VOCABULARY: Vocabulary = Vocabulary {
    target: "ollama",
    at_root: &["type", "properties", "required", "items"],
    elsewhere: &[
        "type",
        "description",
        "enum",
        "anyOf",
        "items",
        "properties",
        "required",
    ],
    takes: |_, _| true,
};

fn supported_keywords(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    keywords::keep(schema, context, &VOCABULARY)
}
