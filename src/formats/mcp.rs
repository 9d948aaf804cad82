//! MCP: the result of `tools/list` as of revision 2026-07-28.
//!
//! The tools of a view depend on the client, so the list is private. A schema that is valid by
//! draft 2020-12 is passed on byte for byte, and so are the other members that a server of the
//! protocol gave its tool. Approval is no hint of the protocol: it stands under `_meta`.

use super::EndMark;
use super::limits;
use super::lost_output::lost_output;
use super::schema::{
    Transform, items, noise, plain, references, root, steps, upgrade, valid, well_formed,
};
use super::vendor::{Piece, Vendor};
use crate::json::soundness::is_sound;
use crate::json::write::ObjectWriter;
use crate::model::{DEFINITION_VERSION, Extra, JsonText, META, Tool, client_member};

const STEPS: &[Transform] = &steps![
    noise::drop_noise,
    well_formed::well_formed,
    upgrade::to_2020,
    items::array_items,
    root::object_root,
    plain::no_booleans,
    references::local_references,
];

macro_rules! frame_open {
    () => {
        r#"{"resultType":"complete","tools":["#
    };
}

/// A list may be kept for 60 seconds, the time between two polls of the scenarios.
macro_rules! frame_close {
    () => {
        r#"],"ttlMs":60000,"cacheScope":"private"}"#
    };
}

pub(super) use {frame_close, frame_open};

/// The text around the tools.
pub(super) const FRAME: (&str, &str) = (frame_open!(), frame_close!());

/// What all lists of the protocol have in common.
pub(super) const BASE: Vendor = Vendor {
    id: "mcp",
    limits: &limits::MCP,
    steps: STEPS,
    write: tool,
    frame: FRAME,
    empty_list: None,
    cached: EndMark::None,
    strict: None,
    deferral: None,
    variants: &[],
    as_is: Some(valid::is_2020),
};

/// `format=mcp`.
pub(super) static FORMAT: Vendor = BASE;

/// The members of a tool that the model does not know and the protocol does, with the first byte of
/// their values. They come from scenarios that speak MCP themselves.
const PASSED_ON: [(&str, u8); 4] = [
    ("title", b'"'),
    (OUTPUT, b'{'),
    ("annotations", b'{'),
    ("icons", b'['),
];

/// The member with the schema of the results, in whatever spelling its scenario wrote it.
const OUTPUT: &str = "outputSchema";

/// The schema of the results, if every reader can read it.
fn output(tool: &Tool) -> Option<&str> {
    tool.output()
        .filter(|_| lost_output(tool).is_none())
        .map(JsonText::get)
}

fn tool(piece: &Piece<'_>) -> Vec<u8> {
    named(piece, piece.tool.name.as_str())
}

/// One tool under this name.
pub(super) fn named(piece: &Piece<'_>, name: &str) -> Vec<u8> {
    let offered = &piece.tool.tool;
    let needs_approval = piece.tool.effective.requires_approval;
    let mut tool = ObjectWriter::after(Vec::new());
    tool.text("name", name)
        .optional("description", piece.description)
        .raw("inputSchema", piece.schema);
    for (name, first) in PASSED_ON {
        let json = if name == OUTPUT {
            output(offered)
        } else {
            member(&offered.extra, name, first)
        };
        if let Some(json) = json {
            tool.raw(name, json);
        } else if name == "annotations" && offered.facts.idempotent {
            tool.raw(name, r#"{"idempotentHint":true}"#);
        }
    }
    let mut own = vec![format!(
        r#""{DEFINITION_VERSION}":"{}""#,
        offered.version().short()
    )];
    own.extend(needs_approval.then(|| APPROVAL.to_owned()));
    own.extend(
        member(&offered.extra, "via", b'[').map(|chain| format!(r#""callsheet/via":{chain}"#)),
    );
    let own = own.join(",");
    let meta = member(&offered.extra, META, b'{').map(|meta| client_member(META, meta));
    match meta.as_deref() {
        None => {
            tool.raw("_meta", &format!("{{{own}}}"));
        }
        Some(meta) => {
            let rest = meta.trim_start_matches('{').trim_start();
            let comma = if rest == "}" { "" } else { "," };
            tool.raw("_meta", &format!("{{{own}{comma}{rest}"));
        }
    }
    tool.end()
}

/// Marks a tool whose calls need approval. Beside it stand the daemons that a tool came through.
const APPROVAL: &str = r#""callsheet/requires-approval":true"#;

/// A member of the tool, if it is of the kind that the protocol has there and every reader can read
/// it.
fn member<'a>(extra: &'a Extra, name: &str, first: u8) -> Option<&'a str> {
    let (_, json) = extra.iter().find(|(own, _)| &**own == name)?;
    Some(json.get()).filter(|json| json.as_bytes().first() == Some(&first) && is_sound(json))
}
