//! OpenAI Responses `tools`: flat functions. Without `strict` the server tries a schema strictly
//! and falls back.
//!
//! Deferred functions have `defer_loading`, and `tool_search` ends the list (its documentation,
//! guide "Tool search": both are needed). Of a deferred function the model sees the name and the
//! description from the beginning.

use super::limits::{self, FormatLimits};
use super::strict::{self, Strict};
use super::vendor::{Deferral, Piece, Vendor};
use super::{EndMark, FormatOptions, chat};
use crate::json::write::ObjectWriter;

/// `format=openai-responses`.
pub(super) static FORMAT: Vendor = Vendor {
    as_is: None,
    variants: &[
        (
            FormatOptions {
                strict: true,
                cache: false,
                deferring: false,
            },
            &STRICT,
        ),
        (
            FormatOptions {
                strict: false,
                cache: false,
                deferring: true,
            },
            &DEFERRING,
        ),
        (
            FormatOptions {
                strict: true,
                cache: false,
                deferring: true,
            },
            &STRICT_DEFERRING,
        ),
    ],
    ..shape("openai-responses", &limits::OPENAI_RESPONSES, None)
};

/// No bound of its own is known: deferred functions count among those of the array.
const SEARCH: Deferral = Deferral {
    most: usize::MAX,
    search: EndMark::Behind(r#",{"type":"tool_search"}"#),
    name: "tool_search",
};

static STRICT: Vendor = shape(
    "openai-responses+strict",
    &limits::OPENAI_RESPONSES,
    Some(&strict::OPENAI),
);
static DEFERRING: Vendor = Vendor {
    deferral: Some(SEARCH),
    ..shape(
        "openai-responses+defer",
        &limits::OPENAI_RESPONSES_DEFERRING,
        None,
    )
};
static STRICT_DEFERRING: Vendor = Vendor {
    deferral: Some(SEARCH),
    ..shape(
        "openai-responses+strict+defer",
        &limits::OPENAI_RESPONSES_DEFERRING,
        Some(&strict::OPENAI),
    )
};

const fn shape(
    id: &'static str,
    limits: &'static FormatLimits,
    strict: Option<&'static Strict>,
) -> Vendor {
    Vendor {
        write: function,
        strict,
        ..chat::like(id, limits)
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
    if piece.deferred {
        function.flag("defer_loading", true);
    }
    function.end()
}
