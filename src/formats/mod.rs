//! The outgoing shapes of a view: one file each.
//!
//! A format is pure: a tool in, bytes out, and a finding for whatever it could not say. It never chooses tools; that is the view's.
//!
//! To add one: a file here, a line in [`FORMATS`], expected files under `fixtures/expected/<format>/`. A vendor that is picky about
//! JSON Schema is a list of [`schema`] transforms.

use jiff::Timestamp;

use crate::model::{Category, Finding, FindingCode, ViewTool};

pub mod native;
pub mod openai;
pub mod schema;
mod write;

/// What a target accepts. Numbers are data, each with its source beside it in the format's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tools in one request.
    pub max_tools: Option<usize>,
}

/// One tool in a format.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Its JSON text; nothing when this format must leave the tool out (a finding says why).
    pub json: Option<Vec<u8>>,
    /// What was left out or changed.
    pub findings: Vec<Finding>,
}

/// What stands around the tools.
#[derive(Debug, Clone)]
pub struct ListHead<'a> {
    /// When the revision came to be.
    pub generated_at: Timestamp,
    /// The daemon that writes the list, if it has an id: who reads it knows by that what came through whom.
    pub own_id: Option<&'a str>,
    /// The groupings of the tools in the view, ids unique, in order.
    pub categories: Vec<&'a Category>,
}

/// The bytes before and after the tools; between two tools stands a comma.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Before the first tool.
    pub open: Vec<u8>,
    /// After the last tool.
    pub close: Vec<u8>,
}

/// One outgoing shape.
pub trait Format: Sync {
    /// Its id, the value of `format=`.
    fn id(&self) -> &'static str;

    /// What its target accepts.
    fn limits(&self) -> &Limits;

    /// Whether its list is for LLMs: then tools marked as internal and disabled tools are never in it.
    fn for_llm(&self) -> bool;

    /// One tool.
    fn encode(&self, tool: &ViewTool) -> Encoded;

    /// What stands around the tools.
    fn frame(&self, head: &ListHead<'_>) -> Frame;
}

/// Every format there is; the first is the default.
pub const FORMATS: &[&dyn Format] = &[&native::Native, &openai::OpenAi];

/// The format with this id.
pub fn by_id(id: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.id() == id)
}

/// A finding about something of `tool` that a format could not say.
fn lossy(tool: &ViewTool, message: impl Into<String>) -> Finding {
    Finding::new(FindingCode::Lossy, message).of_scenario(&tool.id.scenario).of_tool(tool.id.tool.clone())
}
