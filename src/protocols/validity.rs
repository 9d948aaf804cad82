//! How long a listing may be used, whatever said so: caching over HTTP, a protocol's own lifetime,
//! or being inside this process.
//!
//! A session judges what its scenario said and gives the verdict in these terms. The engine never
//! sees a header.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::runtime::Clock;
use crate::transports::http::HttpFreshness;

/// How long a listing may be used, and what the next one begins with.
#[derive(Debug, Clone)]
pub struct Validity {
    /// When it was received, monotonic.
    pub received: Instant,
    /// When it was received, wall time.
    pub received_at: Timestamp,
    /// From the request to the answer.
    pub took: Duration,
    /// How old it was then, as far as the connection says; `fresh_for` is less by it.
    pub age: Duration,
    /// Fresh for so long after it was received.
    pub fresh_for: Duration,
    /// Usable for so long after it was received while listing fails; `None` where that has no end.
    pub usable_for: Option<Duration>,
    /// Whether it may be kept on disk.
    pub may_store: bool,
    /// When the scenario says that its list changed last.
    pub modified: Option<Timestamp>,
    /// What the session wants to have back with the next request.
    pub validators: Validators,
}

/// What a session remembers of a listing for the next request of the same list: its own business,
/// opaque to everything else.
#[derive(Clone, Default)]
pub struct Validators(Remembered);

/// What is remembered, and for how long.
#[derive(Clone, Default)]
enum Remembered {
    #[default]
    Nothing,
    /// Until the process ends.
    InMemory(Arc<dyn Any + Send + Sync>),
    /// Also over restarts, beside the manifest in the store.
    Stored(Arc<str>),
}

impl Validity {
    /// The validity of what this process made itself just now. It is never stored.
    pub fn made_here(clock: Clock, fresh_for: Duration) -> Self {
        Self {
            received: clock.now(),
            received_at: clock.wall(),
            took: Duration::ZERO,
            age: Duration::ZERO,
            fresh_for,
            usable_for: None,
            may_store: false,
            modified: None,
            validators: Validators::default(),
        }
    }

    /// Until when it counts as fresh.
    pub fn fresh_until(&self) -> Instant {
        self.received + self.fresh_for
    }

    /// Until when it may be used while listing fails, if that ends.
    pub fn usable_until(&self) -> Option<Instant> {
        Some(self.received + self.usable_for?)
    }
}

/// What caching over HTTP says.
impl From<HttpFreshness> for Validity {
    fn from(fresh: HttpFreshness) -> Self {
        Self {
            received: fresh.received,
            received_at: fresh.received_at,
            took: fresh.took,
            age: fresh.age(),
            fresh_for: fresh.lifetime,
            usable_for: fresh
                .usable_until()
                .map(|until| until.saturating_duration_since(fresh.received)),
            may_store: !fresh.no_store,
            modified: fresh.validators.last_modified.as_ref().and_then(date),
            // The whole of it: a 304 is completed by the answer that it renews.
            validators: if fresh.validators.any() {
                Validators::new(fresh)
            } else {
                Validators::default()
            },
        }
    }
}

fn date(value: &HeaderValue) -> Option<Timestamp> {
    httpdate::parse_http_date(value.to_str().ok()?)
        .ok()?
        .try_into()
        .ok()
}

impl Validators {
    /// Remembers this until the process ends.
    pub fn new<T: Any + Send + Sync>(remembered: T) -> Self {
        Self(Remembered::InMemory(Arc::new(remembered)))
    }

    /// Remembers this text also over restarts, where the manifest is stored. The protocol that
    /// wrote it has to refuse a text that it cannot read, or that an earlier version wrote by other
    /// rules.
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self(Remembered::Stored(text.into()))
    }

    /// What is remembered until the process ends, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        match &self.0 {
            Remembered::InMemory(remembered) => remembered.downcast_ref(),
            Remembered::Nothing | Remembered::Stored(_) => None,
        }
    }

    /// The text that is remembered over restarts.
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Remembered::Stored(text) => Some(text),
            Remembered::Nothing | Remembered::InMemory(_) => None,
        }
    }

    /// Whether anything is remembered, so that the next request may be answered by "unchanged".
    pub fn any(&self) -> bool {
        !matches!(self.0, Remembered::Nothing)
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Validators({})",
            if self.any() { "some" } else { "none" }
        )
    }
}
