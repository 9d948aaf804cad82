//! MCP: the result of `tools/list` as of revision 2026-07-28.
//!
//! The tools of a view depend on the client, so the list is private. Approval is no hint of the
//! protocol: it stands under `_meta`.

use super::EndMark;
use super::limits;
use super::schema::{Transform, items, noise, plain, references, root, steps, upgrade, well_formed};
use super::vendor::{Piece, Vendor};
use super::write::ObjectWriter;

const STEPS: &[Transform] = &steps![
    noise::drop_noise,
    well_formed::well_formed,
    upgrade::to_2020,
    items::array_items,
    root::object_root,
    plain::no_booleans,
    references::local_references,
];

/// `format=mcp`. A list may be kept for 60 seconds, the time between two polls of the scenarios.
pub(super) static FORMAT: Vendor = Vendor {
    id: "mcp",
    limits: &limits::MCP,
    steps: STEPS,
    write: tool,
    frame: (r#"{"resultType":"complete","tools":["#, r#"],"ttlMs":60000,"cacheScope":"private"}"#),
    nothing: None,
    cached: EndMark::None,
    strict: None,
    deferral: None,
    variants: &[],
};

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    let mut tool = ObjectWriter::after(Vec::new());
    tool.text("name", piece.tool.name.as_str())
        .optional("description", piece.description)
        .raw("inputSchema", piece.schema);
    if piece.tool.tool.facts.idempotent {
        tool.raw("annotations", r#"{"idempotentHint":true}"#);
    }
    if piece.tool.effective.requires_approval {
        tool.raw("_meta", r#"{"callsheet/requires-approval":true}"#);
    }
    tool.end()
}
