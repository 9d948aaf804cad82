//! The module protocol: programs that list their tools at `GET /manifest`, run them at `POST
//! /execute` and report at `GET /health` that they are running.
//!
//! A manifest names its module and lists tools called `module.tool`, each with a list of parameters
//! and the level of permission that its user needs. It has no version, no categories and no time
//! stamp. Parameters become an object schema, in their order. The level goes into the metadata as
//! `required_permission`.
//!
//! Effects of a bad part: a malformed or too large tool is left out with a finding; a document
//! without a list of tools cannot be used. Unknown members are passed on; unknown members of a
//! parameter are keywords of its schema (`items`, `default`, ...).
//!
//! This module never decides which users may use a tool, and it never makes published names.

mod call;
mod decode;
mod inspect;
mod parameters;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::decoding::decode_manifest;
use super::fetch::{Fetched, fetch, upstream};
use super::sent_document::SentDocument;
use super::tool_discovery::Decoded;
use super::tool_discovery::head::object_text;
use super::{
    Call, CallError, CallIo, ConnectError, Fits, ListError, ListRequest, Listing, Outcome,
    Protocol, ProtocolId, Session,
};
use crate::lint;
use crate::model::{Bounds, Digest, Target};
use crate::transports::Transports;
use crate::transports::http::Upstream;

pub use call::error_message;
pub use decode::{decode, decode_within};
pub use inspect::{inspect, is_module};

/// The protocol's id.
pub const ID: ProtocolId = "module";
/// Where the manifest is, below the base address.
pub const PATH: &str = "/manifest";
/// Where a module reports that it is running.
pub const HEALTH_PATH: &str = "/health";

/// The module protocol; see the module documentation.
#[derive(Debug)]
pub struct ModuleProtocol;

impl Protocol for ModuleProtocol {
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
            .map(|upstream| Arc::new(ModuleSession::new(upstream)) as _);
        Box::pin(ready(session))
    }

    fn is_connectionless(&self) -> bool {
        true
    }
}

/// A module at an address. The session keeps no state.
#[derive(Debug)]
pub struct ModuleSession {
    upstream: Upstream,
}

impl ModuleSession {
    /// A session for the module at this address.
    pub fn new(upstream: Upstream) -> Self {
        Self { upstream }
    }
}

impl Session for ModuleSession {
    /// The accepted versions are not used: a module has no version.
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            let (body, validity) = match fetch(&self.upstream, PATH, request).await? {
                Fetched::Unchanged(validity) => return Ok(Listing::Unchanged(validity)),
                Fetched::Document(body, validity) => (body, validity),
            };
            let length = body.len();
            let bounds = request.bounds;
            let judged = request.judged;
            let decoded = decode_manifest(self.upstream.tasks(), length, move || {
                read(&body, bounds, judged)
            })
            .await?;
            let Decoded {
                manifest,
                findings,
                quarantined,
            } = decoded;
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

    fn document(&self) -> Option<(Upstream, &'static str)> {
        Some((self.upstream.clone(), PATH))
    }
}

/// Decodes a document, with what its author should know unless that is known of this manifest.
fn read(body: &[u8], bounds: Bounds, judged: Option<Digest>) -> Result<Decoded, ListError> {
    let mut decoded = decode_within(body, bounds)?;
    let document = SentDocument::parse(object_text(body)?, inspect::as_sent);
    if let Some(document) = document.filter(|_| judged != Some(decoded.manifest.digest)) {
        decoded.manifest.sent_findings =
            document.lint(&decoded.manifest, lint::check_manifest, &decoded.findings);
    }
    Ok(decoded)
}
