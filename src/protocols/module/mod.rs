//! The module protocol: programs that offer their tools at `GET /manifest`, run them at `POST /execute` and say at `GET /health` that they
//! live.
//!
//! A manifest names its module and lists tools called `module.tool`, each with a list of parameters and the level of permission that its
//! user needs. It has no version, no categories and no time stamp. Parameters become an object schema, in their order; the level goes
//! into the metadata as `required_permission`.
//!
//! What a bad part costs: a malformed or too large tool costs itself (with a finding), a document without a list of tools costs the
//! document. Members that nobody knows are passed on; those of a parameter are keywords of its schema (`items`, `default`, ...).
//!
//! Never here: an opinion about who may use a tool, or about published names.

mod call;
mod decode;
mod inspect;
mod parameters;

use futures_util::future::BoxFuture;

use super::fetch::{Fetched, fetch, read};
use super::tool_discovery::Decoded;
use super::{Call, CallError, Known, ListError, Listing, Outcome, Protocol, ProtocolId};
use crate::model::Accept;
use crate::transports::http::Upstream;

pub use call::told;
pub use decode::{decode, decode_within};
pub use inspect::{inspect, is_module};

/// The protocol's id.
pub const ID: ProtocolId = "module";
/// Where the manifest is, below the base address.
pub const PATH: &str = "/manifest";
/// Where a module says that it lives.
pub const HEALTH_PATH: &str = "/health";

/// See the module.
#[derive(Debug)]
pub struct Module;

impl Protocol for Module {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn path(&self) -> &'static str {
        PATH
    }

    /// Versions are no matter here: whatever is accepted, a module has none.
    fn list<'a>(
        &'a self,
        upstream: &'a Upstream,
        _accept: &'a Accept,
        known: Option<&'a Known>,
    ) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            let (body, freshness) = match fetch(upstream, PATH, known).await? {
                Fetched::Unchanged(freshness) => return Ok(Listing::Unchanged(freshness)),
                Fetched::Document(body, freshness) => (body, freshness),
            };
            let bounds = upstream.bounds();
            let decoded = read(upstream, body.len(), move || decode_within(&body, bounds)).await?;
            let Decoded { manifest, findings, quarantined } = decoded;
            Ok(Listing::Manifest { manifest, findings, quarantined, freshness })
        })
    }

    fn call<'a>(&'a self, upstream: &'a Upstream, call: &'a Call) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(call::call(upstream, call))
    }
}
