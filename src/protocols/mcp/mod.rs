//! The Model Context Protocol: servers over HTTP, over HTTP+SSE, or as child processes, in every
//! revision from 2024-11-05 to 2026-07-28.
//!
//! ```text
//! over_http | stdio | sse --negotiate--> McpServer (connection, server)
//!    list -> listing (pages) -> decode, offers -> Manifest        hints -> "list again"
//!    call -> call -> request -> exchange <-> http + stream_messages | lines -> call_result
//!                                  `-> notes, inputs -> the caller
//! ```
//!
//! What is kept true here:
//!
//! - The revision is negotiated with each server alone, so an old server does not affect others.
//!   What is remembered of it is only tried first.
//! - A call that may have run is not repeated. A lost session over HTTP is begun anew.
//! - A list is whole, or its listing failed. Prompts and resources that cannot be listed do not
//!   affect the tools.
//! - Schemas and unknown members are kept as they came. No reference in a schema is fetched, and no
//!   annotation is trusted.
//!
//! Read in this order:
//!
//! 1. This file, `session.rs`, `setup.rs`, `patience.rs`; `revision.rs`, `eras.rs`, `negotiate.rs`,
//!    `server.rs` (greetings).
//! 2. The ways: `over_http.rs`, `http.rs`, `stream_messages.rs`; `stdio.rs`, `sse.rs`, `lines.rs`;
//!    `connection.rs`.
//! 3. One request: `request.rs`, `exchange.rs`, `deadline.rs`, `notes.rs`, `inputs.rs`.
//! 4. Lists: `listing.rs`, `decode.rs`, `offers.rs`, `headers.rs`, `through_daemons.rs`.
//! 5. `call.rs`, `call_result.rs`, `relay.rs`; `hints.rs`, `updates.rs`, `update_signals.rs`;
//!    `inspect.rs`.

mod call;
mod call_result;
mod connection;
mod deadline;
mod decode;
mod eras;
mod exchange;
mod headers;
mod hints;
mod http;
mod inputs;
mod inspect;
mod lines;
mod listing;
mod negotiate;
mod notes;
mod offers;
mod over_http;
mod patience;
mod relay;
mod request;
mod revision;
mod server;
mod session;
mod setup;
mod sse;
mod stdio;
mod stream_messages;
mod through_daemons;
mod update_signals;
mod updates;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use self::eras::{Era, Eras};
use self::revision::McpRevision;
use self::session::Way;
use super::{ConnectError, Fits, Protocol, ProtocolId, Session};
use crate::model::Target;
use crate::transports::Transports;

pub(super) use decode::decode_list;
pub(crate) use headers::{HeaderArgument, header_arguments};
pub use patience::Patience;
pub(crate) use request::header_value;
pub(crate) use revision::REVISIONS;
pub use session::McpSession;
pub(crate) use through_daemons::VIA;

/// The id of this protocol, as the configuration and answers have it.
pub const ID: ProtocolId = "mcp";
/// How a probe describes where it looks.
const AT: &str = "its address";
/// The last parts of paths at which MCP is expected first.
const USUAL_PATHS: [&str; 2] = ["mcp", "sse"];

/// The Model Context Protocol; see the module documentation.
#[derive(Debug)]
pub struct Mcp {
    eras: Arc<Eras>,
    patience: Patience,
}

impl Default for Mcp {
    fn default() -> Self {
        Self::with_patience(Patience::default())
    }
}

impl Protocol for Mcp {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Http(target) => {
                let last = target
                    .url
                    .path()
                    .trim_end_matches('/')
                    .rsplit('/')
                    .next()
                    .unwrap_or_default();
                if USUAL_PATHS.contains(&last) {
                    Fits::ProbeFirst { at: AT }
                } else {
                    Fits::Probe { at: AT }
                }
            }
            Target::Stdio(_) => Fits::ProbeFirst { at: "its output" },
            Target::InProcess(_) | Target::Bundle(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let session = self.session(target, transports);
        Box::pin(ready(session.map(|session| session as Arc<dyn Session>)))
    }

    /// The server is greeted by the first request that needs it.
    fn is_connectionless(&self) -> bool {
        true
    }

    fn recall(&self, target: &Target, version: &str) {
        if let Some(revision) = McpRevision::parse(version) {
            self.eras.recall(target, Era::of(revision));
        }
    }

    /// Servers name themselves after their program; people name the entry.
    fn names_scenarios(&self) -> bool {
        false
    }

    /// A probe sends requests that do more than look.
    fn is_probed_untrusted(&self) -> bool {
        false
    }
}

impl Mcp {
    /// The protocol with other limits for the first answers of programs.
    pub fn with_patience(patience: Patience) -> Self {
        Self {
            eras: Arc::default(),
            patience,
        }
    }

    /// A session with the server at a target. Sends nothing yet.
    ///
    /// # Errors
    /// The target cannot be reached at all, or is inside this program.
    pub fn session(
        &self,
        target: &Target,
        transports: &Transports,
    ) -> Result<Arc<McpSession>, ConnectError> {
        let way = match target {
            Target::Http(http) => Way::Http(transports.http(http)?),
            Target::Stdio(program) => Way::Stdio(Arc::clone(program)),
            Target::InProcess(_) | Target::Bundle(_) => {
                return Err(ConnectError::NotThisProtocol(format!(
                    "{target} is inside this program"
                )));
            }
        };
        Ok(Arc::new(McpSession::new(
            target,
            way,
            transports,
            Arc::clone(&self.eras),
            self.patience,
        )))
    }
}
