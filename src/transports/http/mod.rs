//! The only HTTP client: sends requests to scenarios, within limits, and judges how long an answer
//! may be used.
//!
//! It never decodes a manifest and keeps no cache of bodies; the engine keeps what is needed.
//! hyper's types stay inside.
//!
//! Reading order: [`address`] says which addresses may be requested, [`client`] sends GET requests,
//! [`post`] sends calls, [`exchange`] sends requests whose answers may be streams, [`sse`] follows
//! events, all with [`credentials`] over `connections`, which `connector` opens and `interim`
//! bounds; [`body`] reads the answer's body, and [`cache_policy`] judges the answer.

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
mod connections;
mod connector;
pub mod credentials;
pub mod destination;
pub mod exchange;
mod failure;
mod http_date;
mod interim;
pub mod post;
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
pub use settings::ClientLimits;
pub(crate) use sse::ResumePoint;
pub use sse::{EventLimits, EventStream, ServerEvent};

use connections::Connections;
use connector::BoxError;
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
