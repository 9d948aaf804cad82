//! The only HTTP client for scenarios: sends requests within limits, and judges how long an answer
//! may be used.
//!
//! ```text
//! Upstream -> client (GET) | post (call) | exchange (POST, streams) | sse (events)
//!               `-> credentials -> connections -> connector (proxy, tls) -> interim -> the server
//! answer   <- cache_policy <- status | failure <- body, within its limit <-----------'
//! ```
//!
//! What is kept true here:
//!
//! - A redirect is followed within the origin only: by a GET, and by an exchange where it keeps the
//!   method and the body. `post` follows none. Credentials go to their origin and nowhere else.
//! - A call is not repeated once a byte of it may have been sent, unless its protocol says that it
//!   may be: then once, with renewed credentials, after the server refused the first ones.
//! - Limits count the bytes of a body after decoding, and what comes before the head of an answer.
//! - A host that a server named is looked up once, and the address that was checked is dialled.
//! - Only public https hosts that the operator named, or whose names the rules of a caller admit,
//!   are reached through a proxy, which looks them up itself.
//! - Polls keep no idle connections. hyper's types stay inside.
//!
//! Read in this order:
//!
//! 1. [`address`] (what may be requested), this file and `upstream.rs` ([`Upstream`]), [`client`],
//!    [`post`], [`exchange`], [`sse`], `settings.rs`.
//! 2. `connections.rs`, `connector.rs`, `resolver.rs`, [`destination`], `proxy.rs`, `tls.rs`,
//!    `interim.rs`.
//! 3. [`body`], `status.rs`, `failure.rs` with `connect_error.rs`, [`cache_policy`] with
//!    `http_date.rs`.
//! 4. [`credentials`].
//!
//! It never decodes a manifest and keeps no cache of bodies; the engine keeps what is needed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;

use crate::transports::TransportError;

pub mod address;
pub mod body;
pub mod cache_policy;
pub mod client;
mod connect_error;
mod connections;
mod connector;
pub mod credentials;
pub mod destination;
pub mod exchange;
mod failure;
mod http_date;
mod interim;
pub mod post;
mod proxy;
mod resolver;
mod settings;
pub mod sse;
mod status;
pub(crate) mod tls;
mod upstream;

pub use address::Address;
pub use cache_policy::{CacheRules, CacheScope, HttpFreshness, HttpValidators, ResponseHead};
pub use client::Client;
pub use exchange::{PollTurn, StreamedResponse};
pub use post::{CallLimits, Unanswered};
pub use proxy::{InvalidProxy, ProxyAddress, ProxyRules};
pub use settings::ClientLimits;
pub use sse::{EventLimits, EventStream, ServerEvent};
pub(crate) use sse::{EventParser, ResumePoint};

use connect_error::BoxError;
use connections::Connections;
use credentials::{Challenge, Credentials};

/// One scenario's address, ready for requests. Cheap to clone. Clones send one GET at a time, while
/// calls run side by side.
#[derive(Debug, Clone)]
pub struct Upstream {
    client: Arc<Client>,
    /// Those of the client, or those to a socket address of its own.
    connections: Arc<Connections>,
    address: Address,
    /// Shown with every request, within the origin.
    credentials: Credentials,
    call_timeout: Option<Duration>,
    /// The most bytes of a body that are read, where that is less than the general limit.
    max_body: Option<usize>,
    turn: Arc<Mutex<()>>,
}

/// The address without what may be secret in it.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// An answer with its whole body.
#[derive(Debug)]
pub struct HttpResponse {
    /// Status, headers and times.
    pub head: ResponseHead,
    /// The body after content decoding; empty for a 304.
    pub body: Bytes,
}

impl HttpResponse {
    /// When the scenario wants the next request, if it says so (`Retry-After`, RFC 9110 section
    /// 10.2.3): between a second and ten minutes.
    pub fn retry_after(&self) -> Option<Duration> {
        status::retry_after(&self.head.headers, self.head.received_at)
    }

    /// Why the server refused, if it wants a credential.
    pub fn challenge(&self) -> Option<Challenge> {
        Challenge::parse(self.head.status, &self.head.headers)
    }

    /// The error for an answer that is no success, from this address.
    pub fn refused(&self, url: String) -> TransportError {
        status::refused(url, &self.head, &self.body)
    }
}
