//! The Tool Discovery Protocol (version 1.0) in its four spellings.
//!
//! Real scenarios write the same protocol in four ways: the protocol text's own, protojson, protojson with every field written out, and
//! Go structs. All become one model in the protocol's own spelling; `spelling` says how each is told and what changes.
//!
//! What a bad part costs: a malformed category, or a malformed or too large tool, costs itself (with a finding), a bad time stamp costs
//! itself; an unreadable version, a broken scenario object, broken JSON, or a too large member beside the tools cost the document. Of too
//! many tools or categories the first by name are taken, and what would take too much memory is malformed (see `budget`). Members that nobody knows are passed on as they came: in a protojson document their own name
//! becomes `snake_case` like every other there, and what they hold is left alone.
//!
//! Never here: an opinion about preferences, published names, or whether a schema makes sense; a tree of values where text will do.

pub(super) mod budget;
mod call;
mod decode;
mod digest;
mod encode;
pub(super) mod envelope;
pub(super) mod first;
pub(super) mod flaw;
pub(super) mod head;
pub(super) mod inspect;
mod metadata;
pub(super) mod node;
mod sent;
mod shared;
mod spelling;
pub(super) mod text;
mod tool;
mod via;

use futures_util::future::BoxFuture;

use super::fetch::{Fetched, fetch, read};
use super::{Call, CallError, Known, ListError, Listing, Outcome, Protocol, ProtocolId};
use crate::model::{Accept, Digest, Finding, Manifest};
use crate::transports::http::Upstream;

pub use decode::{decode, decode_stored, decode_within};
pub(super) use decode::{first_by_name, quarantine, second};
pub use encode::encode;
pub use inspect::{Inspected, inspect};
pub(super) use tool::name as tool_name;

/// The digest of a manifest that was changed after it was decoded.
pub fn digest(manifest: &Manifest) -> Digest {
    digest::of(manifest)
}

/// The protocol's id.
pub const ID: ProtocolId = "tool-discovery";
/// Where the manifest is, below the base address.
pub const PATH: &str = "/api/v1/tools";

/// See the module.
#[derive(Debug)]
pub struct ToolDiscovery;

impl Protocol for ToolDiscovery {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn list<'a>(
        &'a self,
        upstream: &'a Upstream,
        accept: &'a Accept,
        known: Option<&'a Known>,
    ) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            let (body, freshness) = match fetch(upstream, PATH, known).await? {
                Fetched::Unchanged(freshness) => return Ok(Listing::Unchanged(freshness)),
                Fetched::Document(body, freshness) => (body, freshness),
            };
            let (accept, bounds) = (accept.clone(), upstream.bounds());
            let mut decoded = read(upstream, body.len(), move || decode_within(&body, &accept, bounds)).await?;
            via::follow(&mut decoded, upstream.own_id())?;
            let Decoded { manifest, findings, quarantined } = decoded;
            Ok(Listing::Manifest { manifest, findings, quarantined, freshness })
        })
    }

    fn call<'a>(&'a self, upstream: &'a Upstream, call: &'a Call) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(call::call(upstream, call))
    }
}

/// A decoded document.
#[derive(Debug)]
pub struct Decoded {
    /// The well-formed part.
    pub manifest: Manifest,
    /// What was left out or looked odd (scenario not filled in). At most 100 of each code, then one that counts the rest.
    pub findings: Vec<Finding>,
    /// How many tools were left out as malformed, too large, or too many.
    pub quarantined: usize,
}
