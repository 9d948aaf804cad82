//! Anthropic Messages `tools`. With `cache=true` the last tool carries `cache_control`, so that the
//! prompt cache ends behind the tools.
//!
//! Deferred tools have `defer_loading`, and the vendor's own tool that searches them ends the list.
//! It then carries `cache_control`: a deferred tool must not (recorded: "cannot have both
//! `defer_loading=true` and `cache_control` set").

use super::limits;
use super::schema;
use super::strict::{self, Strict};
use super::vendor::{Deferral, Piece, Vendor};
use super::{EndMark, FormatOptions};
use crate::json::write::ObjectWriter;

/// `format=anthropic`.
pub(super) static FORMAT: Vendor = Vendor {
    as_is: None,
    variants: &[
        (
            FormatOptions {
                strict: false,
                cache: true,
                deferring: false,
            },
            &CACHED,
        ),
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
                strict: true,
                cache: true,
                deferring: false,
            },
            &STRICT_CACHED,
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
                strict: false,
                cache: true,
                deferring: true,
            },
            &CACHED_DEFERRING,
        ),
        (
            FormatOptions {
                strict: true,
                cache: false,
                deferring: true,
            },
            &STRICT_DEFERRING,
        ),
        (
            FormatOptions {
                strict: true,
                cache: true,
                deferring: true,
            },
            &STRICT_CACHED_DEFERRING,
        ),
    ],
    ..shape("anthropic", EndMark::None, None)
};

const MARK: EndMark = EndMark::InLast(r#","cache_control":{"type":"ephemeral"}"#);
/// Their SDK: `ToolSearchToolBm25_20251119`; 10,000 is the documented bound of what it searches.
const SEARCH: Deferral = Deferral {
    most: 10_000,
    search: EndMark::Behind(
        r#",{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#,
    ),
    name: "tool_search_tool_bm25",
};
const CACHED_SEARCH: Deferral = Deferral {
    search: EndMark::Behind(
        r#",{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25","cache_control":{"type":"ephemeral"}}"#,
    ),
    ..SEARCH
};

static CACHED: Vendor = shape("anthropic+cache", MARK, None);
static STRICT: Vendor = shape("anthropic+strict", EndMark::None, Some(&strict::ANTHROPIC));
static STRICT_CACHED: Vendor = shape("anthropic+strict+cache", MARK, Some(&strict::ANTHROPIC));
static DEFERRING: Vendor = Vendor {
    deferral: Some(SEARCH),
    ..shape("anthropic+defer", EndMark::None, None)
};
static CACHED_DEFERRING: Vendor = Vendor {
    deferral: Some(CACHED_SEARCH),
    ..shape("anthropic+cache+defer", MARK, None)
};
static STRICT_DEFERRING: Vendor = Vendor {
    deferral: Some(SEARCH),
    ..shape(
        "anthropic+strict+defer",
        EndMark::None,
        Some(&strict::ANTHROPIC),
    )
};
static STRICT_CACHED_DEFERRING: Vendor = Vendor {
    deferral: Some(CACHED_SEARCH),
    ..shape(
        "anthropic+strict+cache+defer",
        MARK,
        Some(&strict::ANTHROPIC),
    )
};

const fn shape(id: &'static str, cached: EndMark, strict: Option<&'static Strict>) -> Vendor {
    Vendor {
        id,
        limits: &limits::ANTHROPIC,
        steps: schema::COMMON,
        write: tool,
        frame: ("[", "]"),
        empty_list: None,
        cached,
        strict,
        deferral: None,
        as_is: None,
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
    if piece.deferred {
        tool.flag("defer_loading", true);
    }
    tool.end()
}
