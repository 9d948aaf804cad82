//! What an upstream is besides sending: how it is reached, and what is known of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::cache_policy;
use super::connector::Route;
use super::credentials::Attempt;
use super::destination::Destination;
use super::{Address, HttpFreshness, HttpResponse, Upstream};
use crate::model::Secret;
use crate::runtime::tasks::BodyStep;
use crate::runtime::{Clock, Tasks};
use crate::transports::TransportError;

impl Upstream {
    /// Connects to `dial`, if given, instead of looking up the host name of the address. An address
    /// without a host name is used as it is.
    #[must_use]
    pub fn with_dial(self, dial: Option<SocketAddr>) -> Self {
        let connections = &self.client.connections;
        let connections = dial.map_or_else(
            || Arc::clone(connections),
            |dial| connections.dialling(dial),
        );
        Self {
            connections,
            ..self
        }
    }

    /// Connects to where a judged host is reached.
    #[must_use]
    pub fn with_destination(self, destination: Destination) -> Self {
        match destination {
            Destination::Address(address) => self.with_dial(Some(address)),
            Destination::Proxy => {
                let connections = self.client.connections.by(Route::Proxy);
                Self {
                    connections,
                    ..self
                }
            }
        }
    }

    /// The operator named the host, so that a proxy may be used.
    #[must_use]
    pub(super) fn named(self) -> Self {
        let connections = Arc::clone(&self.client.named_connections);
        Self {
            connections,
            ..self
        }
    }

    /// A call of a tool that does not say how long it may take may take so long.
    #[must_use]
    pub fn with_call_timeout(self, call_timeout: Option<Duration>) -> Self {
        Self {
            call_timeout,
            ..self
        }
    }

    /// Limits the bytes read of an answer to a GET, where that is less than the general limit.
    #[must_use]
    pub fn with_max_body(self, max_body: Option<usize>) -> Self {
        Self { max_body, ..self }
    }

    /// Masks these secrets in answers, which the caller puts into requests by itself.
    #[must_use]
    pub(crate) fn hiding<'a>(self, secrets: impl Iterator<Item = &'a Secret>) -> Self {
        self.credentials.also_sends(secrets);
        self
    }

    /// How long a call may take of a tool that does not say so, if that was said.
    pub fn call_timeout(&self) -> Option<Duration> {
        self.call_timeout
    }

    /// The identity of this daemon for other daemons, if it is set.
    pub fn own_id(&self) -> Option<&str> {
        self.client.own_id.get().map(AsRef::as_ref)
    }

    /// Reads time.
    pub fn clock(&self) -> Clock {
        self.client.clock
    }

    /// What runs the reading of large answers beside the async threads.
    pub fn tasks(&self) -> &Tasks {
        &self.client.tasks
    }

    /// How far work on an answer or an event is when it is read. Where secrets are masked, that was
    /// its first step.
    pub(crate) fn decode_step(&self) -> BodyStep {
        if self.credentials.mask().is_empty() {
            BodyStep::First
        } else {
            BodyStep::Further
        }
    }

    /// How long an answer may be used. For a 304 this is what the 304 itself says; use
    /// [`HttpFreshness::renewing`] to add what it left out.
    pub fn freshness(&self, answer: &HttpResponse) -> HttpFreshness {
        cache_policy::freshness(&answer.head, self.client.settings.load().rules)
    }

    /// The base address without credentials, for people.
    pub fn shown(&self) -> String {
        self.address.to_string()
    }

    /// Begins a request to an address of this origin with its credentials. `is_repeatable` says
    /// whether it may be sent again after they were refused.
    pub(super) async fn attempt(
        &self,
        to: &Address,
        is_repeatable: bool,
    ) -> Result<Attempt<'_>, TransportError> {
        Attempt::begin(&self.credentials, to, is_repeatable).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::http::{Client, ClientLimits};

    /// What was begun is finished first, so it must not wait with what has just come.
    #[tokio::test]
    async fn an_answer_that_was_masked_is_read_as_one_that_was_begun() {
        let second = Duration::from_secs(1);
        let limits = ClientLimits {
            connect: second,
            whole: second,
            max_body: 1,
            max_redirects: 0,
        };
        let client = Client::new(limits, 1, second, Clock::system(), Tasks::new());
        let base = "http://127.0.0.1:9/".parse().unwrap();
        let upstream = client.upstream(base).unwrap();
        assert_eq!(upstream.decode_step(), BodyStep::First);
        let secret = Secret::new("a-secret-of-the-test");
        let upstream = upstream.hiding([secret].iter());
        assert_eq!(upstream.decode_step(), BodyStep::Further);
    }
}
