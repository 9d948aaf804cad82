//! Starts polls beside the loop, each as a task whose answer comes back as an event. It does not
//! decide when, or which scenario, to poll.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::message::EngineEvent;
use super::poll_task::{CurrentSession, PollMode, PollRequest, poll};
use super::scenario::poll::DuePoll;
use super::scenario::schedule::untrusted_permits;
use crate::config::RefreshConfig;
use crate::metrics::Listings;
use crate::model::{REPORTED_AFTER, ScenarioName};
use crate::protocols::{Protocols, Session};
use crate::runtime::{Clock, Stop, Tasks};
use crate::transports::Transports;

/// A poll may take this many times `refresh.timeout`; in a large fleet it may wait for a permit for
/// much of that time.
const POLL_TIMEOUTS_MAX: u32 = 60;

/// Starts polls.
pub(super) struct Poller {
    transports: Transports,
    protocols: Protocols,
    listings: Arc<Listings>,
    /// Permits for polls of scenarios that wait for approval; however many are found, they do not
    /// delay the others.
    untrusted: Arc<Semaphore>,
    tasks: Tasks,
    events: mpsc::Sender<EngineEvent>,
    /// Ends polls under way: their answers are not needed then.
    stop: Stop,
}

impl Poller {
    /// A poller for these protocols and transports, whose answers go to `events`.
    pub(super) fn new(
        transports: Transports,
        protocols: Protocols,
        listings: Arc<Listings>,
        refresh: &RefreshConfig,
        tasks: Tasks,
        events: mpsc::Sender<EngineEvent>,
        stop: Stop,
    ) -> Self {
        let untrusted = untrusted_permits(refresh);
        Self {
            transports,
            protocols,
            listings,
            untrusted,
            tasks,
            events,
            stop,
        }
    }

    /// Activates another configuration. Polls under way keep their settings.
    pub(super) fn configure(&mut self, before: &RefreshConfig, refresh: &RefreshConfig) {
        if before.concurrency != refresh.concurrency {
            self.untrusted = untrusted_permits(refresh);
        }
    }

    /// Starts a poll, through the scenario's session if there is one.
    pub(super) fn start(
        &self,
        due: DuePoll,
        session: Option<Arc<dyn Session>>,
        refresh: &RefreshConfig,
    ) -> AbortOnDropHandle<()> {
        let DuePoll {
            name,
            generation,
            target,
            protocol,
            request,
            is_untrusted,
            is_asleep,
        } = due;
        let mode = match (session, protocol) {
            (Some(session), Some(protocol)) => PollMode::Session(protocol, session),
            (None, Some(protocol)) => PollMode::Connect(protocol),
            (_, None) if is_untrusted => PollMode::Probe(self.protocols.for_untrusted()),
            (_, None) => PollMode::Probe(self.protocols.clone()),
        };
        let current = CurrentSession::default();
        let waits = report_waits(
            (name.clone(), generation),
            current.clone(),
            self.events.clone(),
            self.transports.clock(),
        );
        let poll_request = PollRequest {
            name,
            generation,
            target,
            mode,
            transports: self.transports.clone(),
            is_asleep,
            longest: refresh.timeout.saturating_mul(POLL_TIMEOUTS_MAX),
            request,
            listings: Arc::clone(&self.listings),
            current,
        };
        let events = self.events.clone();
        let stop = self.stop.clone();
        let untrusted = is_untrusted.then(|| Arc::clone(&self.untrusted));
        // Boxed, because it is large and starting a task moves its future seven times.
        let polling = Box::pin(poll(poll_request));
        AbortOnDropHandle::new(self.tasks.spawn(async move {
            let turn = async {
                let _permit = match &untrusted {
                    // The semaphore is never closed, so a permit always comes.
                    Some(untrusted) => untrusted.acquire().await.ok(),
                    None => None,
                };
                polling.await
            };
            let answered = tokio::select! {
                answered = turn => answered,
                () = waits => return,
                () = stop.wait() => return,
            };
            // Fails only when the loop is gone, and then the answer is not needed.
            let _ = events.send(EngineEvent::Polled(Box::new(answered))).await;
        }))
    }
}

/// How often a poll that takes long is looked at before its request has waited for long.
const LONG_POLL_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reports what a poll waits for, every [`REPORTED_AFTER`]. The time that the poll itself waits for
/// its turn does not count. Ends only with the loop.
async fn report_waits(
    poll: (ScenarioName, u64),
    current: CurrentSession,
    events: mpsc::Sender<EngineEvent>,
    clock: Clock,
) {
    let (name, generation) = poll;
    let mut wait = REPORTED_AFTER;
    loop {
        clock.sleep(wait).await;
        wait = LONG_POLL_CHECK_INTERVAL;
        let Some(awaited) = current.awaited() else {
            continue;
        };
        let missing = REPORTED_AFTER.saturating_sub(awaited.waited);
        if !missing.is_zero() {
            wait = missing;
            continue;
        }
        wait = REPORTED_AFTER;
        let event = EngineEvent::Waits {
            name: name.clone(),
            generation,
            awaited: Box::new(awaited),
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}
