//! The families of scenarios: one folder lists and calls one family.
//!
//! A [`Protocol`] says whether it fits a target, and connects. A [`Session`] is one scenario as
//! long as it is the same process or connection: it lists, calls, gives hints, and ends.
//!
//! ```text
//! Target -> Protocol::connect -> Session
//!   list -> bytes -> document -> decode -> Manifest, findings, Validity
//!   call -> Outcome or CallError           (CallIo: progress, input)
//! ```
//!
//! What is kept true here:
//!
//! - Scenarios are reached through [`Transports`] only. The engine is never seen from here; it
//!   keeps one session per scenario and decides when to list.
//! - A malformed tool costs that tool, with a finding. A document that cannot be used is a failed
//!   listing.
//! - A call is sent at most once, unless it was not sent at all, or the method of a stored tool may
//!   be repeated. Only [`CallError::Unsent`] says that the scenario cannot have seen it.
//! - Log messages and input of a call go to its caller, never to the log of the daemon.
//!
//! Read in this order:
//!
//! 1. `session.rs`, `listing.rs`, `validity.rs`, `call.rs`; `io.rs`, `input.rs`, `call_log.rs`,
//!    `trace.rs` (the caller of a running call).
//! 2. `fetch.rs`, `decoding.rs`, `document`, `meta_fields.rs`, `sent_document.rs` (what several
//!    protocols share), `probe.rs` (which protocol an endpoint speaks).
//! 3. The protocols, small ones first: `definitions`, `json_rpc_tools`, `module`, `bundle`,
//!    `tool_discovery`, `mcp`.
//!
//! To add one: a folder here, a line in [`PROTOCOLS`], fixtures under
//! `fixtures/manifests/<protocol>/`; `docs/protocols.md` says what each method has to do. A program
//! that embeds callsheet brings its own with [`Builder::protocol`](crate::app::Builder::protocol).

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::model::Target;
use crate::transports::Transports;

pub mod bundle;
mod call;
mod call_log;
pub(crate) mod decoding;
pub mod definitions;
mod document;
mod fetch;
mod input;
mod io;
pub mod json_rpc_tools;
mod listing;
pub mod mcp;
mod meta_fields;
pub mod module;
pub mod probe;
mod sent_document;
mod session;
pub mod tool_discovery;
mod trace;
mod validity;

pub use crate::bundles::{CallContext, ContextFunction, context_function, without_context};
pub use call::{Call, CallError, Fault, Outcome, RunningCall};
pub use call_log::{CallLog, LogLevel};
pub use input::{CallerOffers, DeclinedInput, InputMethod, InputRound, InputWanted};
pub(crate) use io::cancelled_by_caller;
pub(crate) use io::run_function;
pub use io::{CallIo, CallProgress, Cancelled, NoCaller};
pub use listing::{ConnectError, Known, ListError, ListRequest, Listing};
pub use session::{EndReason, Hint, Relay, RelayMethod, Session};
pub use trace::TraceContext;
pub use validity::{Validators, Validity};

/// The id of a protocol, as it is written in the configuration and in answers.
pub type ProtocolId = &'static str;

/// Whether a protocol can be spoken at a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// It cannot.
    Never,
    /// It may be, but only the source or the configuration that names the target can say so.
    Named,
    /// One listing finds out, before all protocols that are only possible: the target looks like
    /// it.
    ProbeFirst {
        /// Where that looks, for messages.
        at: &'static str,
    },
    /// One listing finds out.
    Probe {
        /// Where that looks, for messages.
        at: &'static str,
    },
}

/// One family of scenarios.
pub trait Protocol: Send + Sync {
    /// Its id.
    fn id(&self) -> ProtocolId;

    /// Whether it can be spoken at a target. Judges by the target alone and sends no request.
    fn fits(&self, target: &Target) -> Fits;

    /// Makes a session with the scenario at a target, within a time limit of its own.
    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>>;

    /// Whether connecting neither waits nor sends, so that a session can be made at any time.
    fn is_connectionless(&self) -> bool {
        false
    }

    /// Learns which version a scenario spoke before the daemon was started, as its stored list has
    /// it. It may be wrong: the scenario may have changed since. By default unused.
    fn recall(&self, target: &Target, version: &str) {
        let _ = (target, version);
    }

    /// Whether a scenario is expected to be filed under the name that it gives itself.
    fn names_scenarios(&self) -> bool {
        true
    }

    /// Whether an address that was only discovered may be probed before an operator trusts it. Only
    /// for protocols whose probe is a harmless GET.
    fn is_probed_untrusted(&self) -> bool {
        true
    }
}

/// Makes one protocol.
pub type MakeProtocol = fn() -> Arc<dyn Protocol>;

/// Every protocol there is, in the order in which an unknown endpoint is probed.
pub const PROTOCOLS: &[MakeProtocol] = &[
    || Arc::new(tool_discovery::ToolDiscovery),
    || Arc::new(module::ModuleProtocol),
    || Arc::new(mcp::Mcp::default()),
    || Arc::new(json_rpc_tools::JsonRpcTools),
];

/// The protocols of one daemon. Cheap to clone.
#[derive(Clone)]
pub struct Protocols(Arc<[Arc<dyn Protocol>]>);

impl Protocols {
    /// Those of [`PROTOCOLS`].
    pub fn built_in() -> Self {
        Self::with(Vec::new())
    }

    /// The same, with `own` ones before them: they are probed first, and one with the id of another
    /// takes its place.
    pub fn with(own: Vec<Arc<dyn Protocol>>) -> Self {
        let built_in = PROTOCOLS.iter().map(|make| make());
        let others: Vec<_> = built_in
            .filter(|known| own.iter().all(|own| own.id() != known.id()))
            .collect();
        Self(own.into_iter().chain(others).collect())
    }

    /// Those that may be probed at an address that is not trusted yet.
    #[must_use]
    pub fn for_untrusted(&self) -> Self {
        Self(
            self.0
                .iter()
                .filter(|protocol| protocol.is_probed_untrusted())
                .cloned()
                .collect(),
        )
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
        f.debug_list()
            .entries(self.iter().map(|protocol| protocol.id()))
            .finish()
    }
}
