//! The Tool Discovery Protocol (version 1.0) in its four spellings: the protocol text's own,
//! protojson, protojson with every field written out, and Go structs. All of them become one model
//! in the protocol's own spelling; `spelling.rs` says how each is recognised and what changes.
//!
//! What is kept true here:
//!
//! - A malformed category, and a malformed or too large tool, is left out with a finding; so is a
//!   bad time stamp. Of too many tools or categories the first by name are taken.
//! - An unreadable version, a broken scenario object, broken JSON, or a too large member beside the
//!   tools makes the whole document unusable.
//! - Unknown members are passed on as they came. In a protojson document their own names become
//!   `snake_case` like every other name there, but their values do not change.
//! - No tree of values is built where the text is enough. A part that would take too much memory is
//!   malformed (`document/budget.rs`).
//!
//! Read in this order:
//!
//! 1. This file (the session), `decode.rs`, `head.rs`, `spelling.rs`.
//! 2. `tool.rs`, `metadata.rs`, `interner.rs` (one tool); `restored.rs` (a stored manifest).
//! 3. `call.rs` (a call and its answer).
//! 4. `daemon_chain.rs`, `follow.rs` (scenarios that are callsheet daemons).
//! 5. `inspect.rs`, `author_names.rs`, `sent_pointer.rs`, `unknown_keys.rs` (for authors).
//!
//! This module never decides about preferences, published names, or whether a schema makes sense.

mod author_names;
mod call;
pub(in crate::protocols) mod daemon_chain;
mod decode;
mod follow;
pub(super) mod head;
pub(super) mod inspect;
mod interner;
mod metadata;
mod restored;
mod sent_pointer;
mod spelling;
mod tool;
pub(super) mod unknown_keys;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::decoding::decode_manifest;
use super::document::{budget, envelope, first, flaw};
use super::fetch::{Fetched, fetch, upstream};
use super::sent_document::SentDocument;
use super::{
    Call, CallError, CallIo, ConnectError, Fits, Hint, ListError, ListRequest, Listing, Outcome,
    Protocol, ProtocolId, Session,
};
use crate::lint;
use crate::model::{Finding, Manifest, Target};
use crate::transports::Transports;
use crate::transports::http::Upstream;

use follow::DaemonEvents;

pub use author_names::AuthorNames;
pub use decode::{decode, decode_within};
pub(super) use decode::{first_by_name, quarantine, second};
pub use inspect::{Inspected, inspect};
pub use restored::restored;
pub(super) use tool::name as tool_name;

/// The id of this protocol, as the configuration and answers have it.
pub const ID: ProtocolId = "tool-discovery";
/// Where the manifest is, below the base address.
pub const PATH: &str = "/api/v1/tools";

/// The Tool Discovery Protocol; see the module documentation.
#[derive(Debug)]
pub struct ToolDiscovery;

impl Protocol for ToolDiscovery {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Http(_) => Fits::Probe { at: PATH },
            Target::Stdio(_) | Target::InProcess(_) | Target::Bundle(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let session = upstream(target, transports)
            .map(|upstream| Arc::new(ToolDiscoverySession::new(upstream)) as _);
        Box::pin(ready(session))
    }

    fn is_connectionless(&self) -> bool {
        true
    }
}

/// A scenario that speaks the protocol at an address. It remembers only whether a daemon wrote its
/// list, because the events of a daemon can be followed.
#[derive(Debug)]
pub struct ToolDiscoverySession {
    upstream: Upstream,
    events: DaemonEvents,
}

impl ToolDiscoverySession {
    /// A session for the scenario at this address.
    pub fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            events: DaemonEvents::default(),
        }
    }
}

impl Session for ToolDiscoverySession {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            let upstream = &self.upstream;
            let (body, validity) = match fetch(upstream, PATH, request).await? {
                Fetched::Unchanged(validity) => return Ok(Listing::Unchanged(validity)),
                Fetched::Document(body, validity) => (body, validity),
            };
            let length = body.len();
            let request = request.clone();
            let from = upstream.clone();
            let work = move || read(&body, &request, from.own_id());
            let (is_of_a_daemon, decoded) = decode_manifest(upstream.tasks(), length, work).await?;
            self.events.listed(is_of_a_daemon);
            let Decoded {
                manifest,
                findings,
                quarantined,
            } = decoded?;
            Ok(Listing::Manifest {
                manifest,
                findings,
                quarantined,
                validity,
            })
        })
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        _io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(call::call(&self.upstream, call))
    }

    fn masked(&self, text: String) -> String {
        self.upstream.masked(text)
    }

    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        self.events.hints(&self.upstream)
    }

    fn document(&self) -> Option<(Upstream, &'static str)> {
        Some((self.upstream.clone(), PATH))
    }
}

/// Reads a document: whether a daemon wrote it, and what it says for this daemon, whose id is
/// `own_id`, with findings whose pointers are those of the document.
fn read(
    body: &[u8],
    request: &ListRequest,
    own_id: Option<&str>,
) -> Result<(bool, Result<Decoded, ListError>), ListError> {
    let mut decoded = decode_within(body, &request.accept, request.bounds)?;
    let is_of_a_daemon = daemon_chain::is_of_a_daemon(&decoded.manifest);
    if let Err(error) = daemon_chain::follow(&mut decoded, own_id) {
        return Ok((is_of_a_daemon, Err(error)));
    }
    if let Some(document) =
        SentDocument::parse(head::object_text(body)?, sent_pointer::sent_pointer)
    {
        if request.judged != Some(decoded.manifest.digest) {
            decoded.manifest.sent_findings =
                document.lint(&decoded.manifest, lint::check_manifest, &decoded.findings);
        }
        document.place(&mut decoded.findings);
    }
    Ok((is_of_a_daemon, Ok(decoded)))
}

/// A decoded document.
#[derive(Debug)]
pub struct Decoded {
    /// The well-formed part.
    pub manifest: Manifest,
    /// What was left out or is unusual (the scenario is not filled in). At most 100 findings of
    /// each code, then one finding with the number of the others.
    pub findings: Vec<Finding>,
    /// How many tools were left out as malformed, too large, or too many.
    pub quarantined: usize,
}
