//! The outgoing shapes of a view: one file each.
//!
//! ```text
//! ViewTool -> latent -> schema: steps -> limits, strict -> write -> Encoded (bytes, findings)
//!                         `-> notes on what was lost ------------------------------^
//! bytes of all tools + frame + end mark -> a list       (joined by `views`)
//! ```
//!
//! What is kept true here:
//!
//! - A format is pure: a tool in, bytes out, and a finding for each part that it could not express.
//! - A tool that the target is known to refuse is left out of that format alone, with a finding:
//!   one bad tool would cost the whole request.
//! - A vendor is data: a row of [`limits`] with the source of each number, a list of [`schema`]
//!   transforms, and a writer of a few lines.
//! - A list of a format for LLMs ([`Format::for_llm`]) has no disabled or internal tools; `views`
//!   sees to that.
//!
//! Read in this order:
//!
//! 1. This file ([`Format`], [`FORMATS`]), `limits.rs`, `vendor.rs`, `openai.rs` (one whole
//!    vendor).
//! 2. [`schema`]; `strict.rs` (strict modes), `latent.rs` and `lost_output.rs` (results).
//! 3. The other vendors: `openai_responses.rs`, `anthropic.rs`, `gemini.rs`, `bedrock.rs`,
//!    `chat.rs` (Mistral, Cohere), `ollama.rs`, `calls.rs`.
//! 4. `signature.rs`: a tool in one line, in no vendor's shape.
//! 5. For other programs: `native.rs` (another daemon), `mcp.rs` with `mcp_tools.rs`,
//!    `json_rpc.rs`.
//!
//! To add one: a file here, a row in [`limits`], a line in [`FORMATS`], expected files under
//! `fixtures/expected/<format>/`.
//!
//! It never chooses tools; the view does.

use jiff::Timestamp;

use crate::model::{Category, Finding, FindingCode, ViewTool};

mod anthropic;
mod bedrock;
mod calls;
mod chat;
mod gemini;
mod json_rpc;
mod latent;
pub mod limits;
mod lost_output;
mod mcp;
mod mcp_tools;
pub mod native;
mod ollama;
pub mod openai;
mod openai_responses;
pub mod schema;
mod signature;
mod strict;
mod vendor;

pub(crate) use json_rpc::json_rpc_tools;
pub use limits::FormatLimits;
pub(crate) use mcp_tools::{
    CALL_TOOL, DESCRIBE_TOOLS, FIND_TOOLS, GET_OPERATION, McpToolList, mcp_name, mcp_tools,
    search_tools_bytes,
};
pub use signature::signature;
pub use strict::Spent;

/// The options of a format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// `strict=true`: the vendor holds the LLM to the schemas.
    pub strict: bool,
    /// `cache=true`: the end of the list is marked for the vendor's prompt cache.
    pub cache: bool,
    /// `defer=...`: tools may be marked as deferred, and the vendor's own tool that searches them
    /// is in the list.
    pub deferring: bool,
}

/// When the vendor shows a tool to the LLM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// From the beginning.
    AtOnce,
    /// Once the LLM has searched for it. Only for formats with [`Format::max_deferred`].
    Deferred,
}

/// What marks the end of a list for a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndMark {
    /// No mark.
    None,
    /// Members behind those of the last tool, each with a comma before it.
    InLast(&'static str),
    /// An element behind the last tool, with a comma before it.
    Behind(&'static str),
}

/// One tool in a format.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Its JSON text. `None` if this format must leave the tool out; a finding has the reason.
    pub json: Option<Vec<u8>>,
    /// What was left out or changed.
    pub findings: Vec<Finding>,
}

/// The text around the tools.
#[derive(Debug, Clone)]
pub struct ListHead<'a> {
    /// When the revision came to be.
    pub generated_at: Timestamp,
    /// The id of the daemon that writes the list, if it has one. Readers detect by it which tools
    /// came through which daemon.
    pub own_id: Option<&'a str>,
    /// The groupings of the tools in the view, ids unique, in order.
    pub categories: Vec<&'a Category>,
}

/// The bytes before and after the tools; between two tools stands a comma.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFrame {
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
    fn limits(&self) -> &FormatLimits;

    /// Whether its list is for LLMs: then tools marked as internal and disabled tools are never in
    /// it.
    fn for_llm(&self) -> bool;

    /// The steps that a tool's schema goes through for it, in order; none where it is passed on as
    /// it is.
    fn steps(&self) -> &'static [schema::Transform] {
        &[]
    }

    /// One tool.
    fn encode(&self, tool: &ViewTool) -> Encoded;

    /// One tool of a request whose tools before it have used up what `spent` says; it grows by what
    /// this one uses up.
    fn encode_within(&self, tool: &ViewTool, _loading: Loading, _spent: &mut Spent) -> Encoded {
        self.encode(tool)
    }

    /// How many bytes a tool takes at most that is loaded at once, whatever comes before it in the
    /// list; `None` if it must be left out.
    fn max_bytes(&self, tool: &ViewTool) -> Option<usize> {
        self.encode(tool).json.map(|json| json.len())
    }

    /// How many tools of one request may be deferred; `None` if the format has no deferring.
    fn max_deferred(&self) -> Option<usize> {
        None
    }

    /// Whether the result for a tool depends on those before it in the list.
    fn request_wide(&self) -> bool {
        false
    }

    /// The text around the tools.
    fn frame(&self, head: &ListHead<'_>) -> ListFrame;

    /// The whole list when it has no tools, where an empty frame would not do.
    fn without_tools(&self) -> Option<&'static str> {
        None
    }

    /// What marks the end of a list that has tools, `deferred` of which are deferred.
    fn end_mark(&self, _deferred: usize) -> EndMark {
        EndMark::None
    }

    /// The same format with these options, under an id of its own; `None` if it has no such
    /// options.
    fn variant(&self, _options: FormatOptions) -> Option<&'static dyn Format> {
        None
    }
}

/// Every format there is; the first is the default.
pub const FORMATS: &[&dyn Format] = &[
    &native::NativeFormat,
    &openai::OpenAiFormat,
    &openai_responses::FORMAT,
    &anthropic::FORMAT,
    &gemini::FORMAT,
    &bedrock::FORMAT,
    &chat::MISTRAL,
    &chat::COHERE,
    &ollama::FORMAT,
    &mcp::FORMAT,
    &calls::FORMAT,
];

/// The format with this id.
pub fn by_id(id: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.id() == id)
}

/// The format with these options; `None` if it has no such options.
pub fn with_options(
    format: &'static dyn Format,
    options: FormatOptions,
) -> Option<&'static dyn Format> {
    if options == FormatOptions::default() {
        Some(format)
    } else {
        format.variant(options)
    }
}

/// A finding about a tool that a format leaves out.
fn quarantined(tool: &ViewTool, message: impl Into<String>) -> Finding {
    Finding::new(FindingCode::ToolQuarantined, message)
        .of_scenario(&tool.id.scenario)
        .of_tool(tool.id.tool.clone())
}

/// A finding about a part of `tool` that a format could not express.
fn lossy(tool: &ViewTool, message: impl Into<String>) -> Finding {
    Finding::new(FindingCode::Lossy, message)
        .of_scenario(&tool.id.scenario)
        .of_tool(tool.id.tool.clone())
}
