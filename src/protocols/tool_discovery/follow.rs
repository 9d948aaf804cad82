//! Following the events of a callsheet daemon, whose list is a manifest too.
//!
//! The list says by its member `via` which daemon wrote it, and a daemon has `/api/v1/events`. What
//! an event says is not read: it only means that the list changed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::protocols::Hint;
use crate::transports::TransportError;
use crate::transports::http::{EventLimits, EventStream, Upstream};

/// The path of a daemon's events, below its base address.
const PATH: &str = "/api/v1/events?kind=catalog";
/// A daemon shows every 15 seconds that the stream lives, unless it is configured otherwise.
const LIMITS: EventLimits = EventLimits {
    max_event: 4 * 1024,
    silence: Duration::from_secs(120),
    per_minute: 1024 * 1024,
};

/// A daemon whose events cannot be had is not requested for them again before so long.
const SILENCE: Duration = Duration::from_secs(3600);

/// Whether a scenario is a daemon whose events can be followed. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct DaemonEvents(Arc<Mutex<Peer>>);

/// What a scenario is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Peer {
    /// No daemon, as far as its list says.
    #[default]
    Plain,
    /// A daemon.
    Daemon,
    /// A daemon that has no events, or not for this daemon. They are not requested again before
    /// this time.
    Silent {
        /// Then it may be another build.
        until: Instant,
    },
}

/// How far a stream is.
enum FollowStep {
    /// To be opened.
    Closed(Upstream),
    /// It reports changes.
    Live(Box<EventStream>),
}

/// What came of following a stream.
enum Followed {
    /// A hint, and what follows it.
    Hint(Hint, Box<FollowStep>),
    /// The stream ended.
    Ended,
    /// The scenario answers, but not with a stream of events.
    NoStream,
}

impl DaemonEvents {
    /// A list came, which a daemon wrote or not.
    pub(super) fn listed(&self, by_a_daemon: bool) {
        let mut peer = self.peer();
        *peer = match *peer {
            Peer::Silent { until } if by_a_daemon => Peer::Silent { until },
            _ if by_a_daemon => Peer::Daemon,
            _ => Peer::Plain,
        };
    }

    /// It has no events, or not for this daemon.
    fn mark_silent(&self, upstream: &Upstream) {
        *self.peer() = Peer::Silent {
            until: upstream.now() + SILENCE,
        };
    }

    fn peer(&self) -> MutexGuard<'_, Peer> {
        self.0.lock()
    }

    /// Hints from the scenario's events, if it has any.
    pub(super) fn hints(&self, upstream: &Upstream) -> Option<BoxStream<'static, Hint>> {
        match *self.peer() {
            Peer::Daemon => {}
            Peer::Silent { until } if upstream.now() >= until => {}
            Peer::Silent { .. } | Peer::Plain => return None,
        }
        let known = self.clone();
        let upstream = upstream.clone();
        let start = FollowStep::Closed(upstream.clone());
        let hints = unfold(
            (start, known, upstream),
            |(step, known, upstream)| async move {
                match next(step).await {
                    Ok(Followed::Hint(hint, step)) => {
                        return Some((hint, (*step, known, upstream)));
                    }
                    Ok(Followed::Ended) => {}
                    Ok(Followed::NoStream) => known.mark_silent(&upstream),
                    Err(error) => {
                        tracing::debug!(error = %error, "the events of a daemon cannot be followed");
                        if is_final(&error) {
                            known.mark_silent(&upstream);
                        }
                    }
                }
                None
            },
        );
        Some(hints.boxed())
    }
}

/// The next hint.
async fn next(step: FollowStep) -> Result<Followed, TransportError> {
    let (mut stream, hint) = match step {
        FollowStep::Closed(upstream) => match upstream.events(PATH, LIMITS).await? {
            Some(stream) => (Box::new(stream), Hint::Following),
            None => return Ok(Followed::NoStream),
        },
        FollowStep::Live(stream) => (stream, Hint::Changed),
    };
    while let Some(event) = stream.next().await? {
        match event.event.as_str() {
            // The first is a snapshot; a later one stands for changes that were too many.
            "snapshot" | "catalog" => {
                return Ok(Followed::Hint(hint, Box::new(FollowStep::Live(stream))));
            }
            "end" => break,
            _ => {}
        }
    }
    Ok(Followed::Ended)
}

/// Whether a request for events failed in a way in which the next one will fail too: there is no
/// stream, or not for this daemon.
fn is_final(error: &TransportError) -> bool {
    match error {
        TransportError::Status { status, .. } => {
            (400..500).contains(status) && !matches!(status, 408 | 429) || *status == 501
        }
        TransportError::Redirect { .. }
        | TransportError::Address(_)
        | TransportError::TooLarge { .. }
        | TransportError::CommandNotFound { .. }
        | TransportError::NotStarted { .. } => true,
        TransportError::Refused(_)
        | TransportError::Unresolved(_)
        | TransportError::Timeout { .. }
        | TransportError::Broken { .. }
        | TransportError::Proxy { .. }
        | TransportError::ProcessEnded { .. } => false,
        TransportError::Credential { error, .. } => error.needs_operator(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_the_next_request_meets_too_are_final() {
        let url = || "http://h/".to_owned();
        let status = |status| TransportError::Status {
            url: url(),
            status,
            retry_after: None,
            challenge: None,
            said: None,
        };
        for (code, expected) in [
            (401, true),
            (404, true),
            (406, true),
            (408, false),
            (429, false),
            (500, false),
            (501, true),
            (503, false),
        ] {
            assert_eq!(is_final(&status(code)), expected, "{code}");
        }
        assert!(!is_final(&TransportError::Broken {
            url: url(),
            message: "reset".to_owned()
        }));
        assert!(!is_final(&TransportError::Refused(url())));
    }
}
