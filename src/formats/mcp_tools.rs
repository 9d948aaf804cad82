//! The list that MCP clients get at `/mcp`: `format=mcp` with the names of that face, and with the
//! tools of callsheet itself where they are wanted.
//!
//! It never decides which of these tools are wanted.

use super::Format;
use super::limits;
use super::mcp::{self, named};
use super::vendor::{Piece, Vendor};
use crate::model::{MCP_NAME_MAX, PublishedName, ViewTool};

/// The tool of callsheet that gives the state of an operation.
pub(crate) const GET_OPERATION: &str = "get_operation";
/// The tool of callsheet that searches the tools of the view.
pub(crate) const FIND_TOOLS: &str = "find_tools";
/// The tool of callsheet that gives whole schemas of tools.
pub(crate) const DESCRIBE_TOOLS: &str = "describe_tools";
/// The tool of callsheet that calls a tool which was found.
pub(crate) const CALL_TOOL: &str = "call_tool";

/// What the list of one client has besides the tools of its view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct McpToolList {
    /// Published names where they are short enough, in place of names that never change.
    pub(crate) published_names: bool,
    /// With the tools that search, describe and call.
    pub(crate) search: bool,
    /// With the tool that gives the state of an operation.
    pub(crate) operations: bool,
}

macro_rules! get_operation {
    () => {
        r#"{"name":"get_operation","description":"Gives the state of a long-running operation, and its result once it is over. The result of the call that began the operation names its id.","inputSchema":{"type":"object","properties":{"operation_id":{"type":"string","description":"The id that the result of the call named."}},"required":["operation_id"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#
    };
}

macro_rules! search_tools {
    () => {
        concat!(
            r#"{"name":"find_tools","description":"Finds tools by what they are for, and gives a line for each. More tools can be called than this list shows: search here first, then call what was found by its name, or through `call_tool`.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in a few words."},"max_tokens":{"type":"integer","minimum":1,"description":"Answer with as many of the best tools as fit in so many tokens; 2000 if it is left out."},"detail":{"enum":["signature","full"],"description":"`full`: whole schemas in place of lines."}},"required":["query"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},"#,
            r#"{"name":"describe_tools","description":"Gives the whole descriptions and schemas of tools.","inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":20,"description":"Names, as `find_tools` gives them."}},"required":["names"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},"#,
            r#"{"name":"call_tool","description":"Calls a tool that `find_tools` found.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool, as `find_tools` gives it."},"arguments":{"type":"object","description":"The arguments, which fit the tool's parameters."}},"required":["name"]}}"#
        )
    };
}

/// The bytes that the tools which search take in a list.
pub(crate) fn search_tools_bytes() -> usize {
    search_tools!().len()
}

/// The lists of one way of naming: plain, with operations, with search, with both.
macro_rules! lists {
    ($id:literal, $write:path) => {
        [
            list($id, $write, mcp::FRAME.0, None),
            list(
                concat!($id, "+operations"),
                $write,
                concat!(mcp::frame_open!(), get_operation!(), ","),
                Some(concat!(
                    mcp::frame_open!(),
                    get_operation!(),
                    mcp::frame_close!()
                )),
            ),
            list(
                concat!($id, "+search"),
                $write,
                concat!(mcp::frame_open!(), search_tools!(), ","),
                Some(concat!(
                    mcp::frame_open!(),
                    search_tools!(),
                    mcp::frame_close!()
                )),
            ),
            list(
                concat!($id, "+search+operations"),
                $write,
                concat!(
                    mcp::frame_open!(),
                    search_tools!(),
                    ",",
                    get_operation!(),
                    ","
                ),
                Some(concat!(
                    mcp::frame_open!(),
                    search_tools!(),
                    ",",
                    get_operation!(),
                    mcp::frame_close!()
                )),
            ),
        ]
    };
}

static ALWAYS: [Vendor; 4] = lists!("mcp:always", qualified);
static ON_COLLISION: [Vendor; 4] = lists!("mcp:on-collision", published);

/// The format of a list.
pub(crate) fn mcp_tools(list: McpToolList) -> &'static dyn Format {
    let lists = if list.published_names {
        &ON_COLLISION
    } else {
        &ALWAYS
    };
    &lists[usize::from(list.operations) + 2 * usize::from(list.search)]
}

/// The name of a tool in a list.
pub(crate) fn mcp_name(tool: &ViewTool, list: McpToolList) -> PublishedName {
    name(tool, list.published_names)
}

/// The same by the way of naming alone.
fn name(tool: &ViewTool, published_names: bool) -> PublishedName {
    let is_wanted = if published_names {
        !is_own(tool.name.as_str())
    } else {
        has_alias(tool)
    };
    if is_wanted && tool.name.as_str().len() <= MCP_NAME_MAX {
        tool.name.clone()
    } else {
        PublishedName::for_mcp(&tool.id)
    }
}

/// Whether this is the name of a tool of callsheet itself.
fn is_own(name: &str) -> bool {
    [GET_OPERATION, FIND_TOOLS, DESCRIBE_TOOLS, CALL_TOOL].contains(&name)
}

/// Whether a preference gave the tool its name: all other names follow from its identity.
fn has_alias(tool: &ViewTool) -> bool {
    let name = &tool.name;
    let id = &tool.id;
    let is_unique = || name.is_reserved() && *name == PublishedName::unique(id);
    !is_own(name.as_str())
        && *name != PublishedName::plain_shared(&id.tool)
        && *name != PublishedName::qualified(id)
        && !is_unique()
}

fn qualified(piece: &Piece<'_>) -> Vec<u8> {
    named(piece, name(piece.tool, false).as_str())
}

fn published(piece: &Piece<'_>) -> Vec<u8> {
    named(piece, name(piece.tool, true).as_str())
}

const fn list(
    id: &'static str,
    write: fn(&Piece<'_>) -> Vec<u8>,
    open: &'static str,
    empty_list: Option<&'static str>,
) -> Vendor {
    Vendor {
        id,
        limits: &limits::MCP,
        write,
        frame: (open, mcp::FRAME.1),
        empty_list,
        ..mcp::BASE
    }
}
