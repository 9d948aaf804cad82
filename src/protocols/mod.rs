//! The families of scenarios: one folder lists and calls one family.
//!
//! A protocol asks through [`Upstream`] only, decodes into the model, and never sees the engine. It keeps no state: what it needs to
//! know from last time comes as [`Known`].
//!
//! To add one: a folder here, a line in [`PROTOCOLS`], fixtures under `fixtures/manifests/<protocol>/`. A program that embeds callsheet
//! brings its own with [`Builder::protocol`](crate::app::Builder::protocol).

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::model::{Accept, Digest, Finding, Manifest};
use crate::transports::http::{AskError, Freshness, Upstream, Validators};

mod call;
mod fetch;
pub mod module;
pub mod probe;
pub mod tool_discovery;

pub use call::{Call, CallError, Fault, Outcome, Running};

/// The id of a protocol, as it is written in the configuration and in answers.
pub type ProtocolId = &'static str;

/// What is remembered of the last good answer of a scenario, for a conditional request.
#[derive(Debug, Clone)]
pub struct Known {
    /// Digest of the manifest in force.
    pub digest: Digest,
    /// `ETag` and `Last-Modified` of the answer it came in. Empty for an unconditional request.
    pub validators: Validators,
}

/// What a listing found.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once per answer and taken apart at once, never stored")]
pub enum Listing {
    /// The known manifest still stands (a 304). Carries the new freshness.
    Unchanged(Freshness),
    /// A manifest, whether or not it differs from the known one (compare digests).
    Manifest {
        /// The well-formed part.
        manifest: Manifest,
        /// What was left out or looked odd. Scenario and tool are filled in; the engine adds no more than the name.
        findings: Vec<Finding>,
        /// How many tools were left out as malformed.
        quarantined: usize,
        /// Until when it counts as fresh, and the validators for next time.
        freshness: Freshness,
    },
}

/// Why a listing failed. The last good manifest stays in force in every case.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The answer did not come, or was no success.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The answer is none of this protocol's at all (a probe goes on with the next protocol).
    #[error("{0}")]
    NotThisProtocol(String),
    /// The answer is of this protocol but cannot be used as a whole.
    #[error("{0}")]
    Malformed(String),
    /// The answer is of this protocol, but its protocol version cannot be read, so neither can the rest.
    #[error("{0}")]
    VersionUnreadable(String),
    /// The protocol version is readable but out of the accepted range.
    #[error("speaks protocol version {seen}, but only {accepted} is accepted")]
    Incompatible {
        /// The version as it wrote it.
        seen: String,
        /// The accepted range.
        accepted: String,
    },
}

/// One family of scenarios.
pub trait Protocol: Send + Sync {
    /// Its id.
    fn id(&self) -> ProtocolId;

    /// Where it asks first, below the base address; for messages.
    fn path(&self) -> &'static str;

    /// Asks for everything the scenario offers. With `known` the request is conditional.
    fn list<'a>(
        &'a self,
        upstream: &'a Upstream,
        accept: &'a Accept,
        known: Option<&'a Known>,
    ) -> BoxFuture<'a, Result<Listing, ListError>>;

    /// Sends one call to the scenario and reads what it answers. Sent once at most: whoever calls decides whether it may be repeated.
    ///
    /// A protocol that only lists need not write this; its tools cannot be called.
    fn call<'a>(&'a self, upstream: &'a Upstream, call: &'a Call) -> BoxFuture<'a, Result<Outcome, CallError>> {
        let _ = (upstream, call);
        let reason = format!("tools of the protocol `{}` can be listed only", self.id());
        Box::pin(std::future::ready(Err(CallError::NotCallable(reason))))
    }
}

/// Makes one protocol.
pub type MakeProtocol = fn() -> Arc<dyn Protocol>;

/// Every protocol there is, in the order in which an unknown endpoint is probed.
pub const PROTOCOLS: &[MakeProtocol] = &[|| Arc::new(tool_discovery::ToolDiscovery), || Arc::new(module::Module)];

/// The protocols of one daemon. Cheap to clone.
#[derive(Clone)]
pub struct Protocols(Arc<[Arc<dyn Protocol>]>);

impl Protocols {
    /// Those of [`PROTOCOLS`].
    pub fn built_in() -> Self {
        Self::with(Vec::new())
    }

    /// The same, with `own` ones before them: they are probed first, and one with the id of another takes its place.
    pub fn with(own: Vec<Arc<dyn Protocol>>) -> Self {
        let built_in = PROTOCOLS.iter().map(|make| make());
        let others: Vec<_> = built_in.filter(|known| own.iter().all(|own| own.id() != known.id())).collect();
        Self(own.into_iter().chain(others).collect())
    }

    /// The protocol with this id.
    pub fn by_id(&self, id: &str) -> Option<Arc<dyn Protocol>> {
        self.0.iter().find(|protocol| protocol.id() == id).cloned()
    }

    /// All of them, in the order in which an unknown endpoint is probed.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Protocol>> {
        self.0.iter()
    }
}

impl fmt::Debug for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|protocol| protocol.id())).finish()
    }
}

impl ListError {
    /// A short, stable word for health: `refused`, `timeout`, `status`, `too-large`, `malformed`, ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ask(error) => error.kind(),
            Self::NotThisProtocol(_) => "unknown-protocol",
            Self::Malformed(_) | Self::VersionUnreadable(_) => "malformed",
            Self::Incompatible { .. } => "incompatible",
        }
    }
}
