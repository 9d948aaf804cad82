//! What is known of a server before it is greeted.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::eras::Era;
use super::lines::Incoming;
use super::revision::McpRevision;
use crate::model::{Interaction, Target};
use crate::runtime::Tasks;

/// A request that was sent less than this long ago is not what a person waits for.
const JUST_SENT: Duration = Duration::from_secs(1);

/// What is known of a server before it is greeted: from its configuration, and from an earlier
/// connection.
pub(super) struct ServerSetup {
    /// The input that it may request of callers.
    pub(super) interaction: Arc<Interaction>,
    /// The revision that it is greeted in first.
    pub(super) revision: Option<McpRevision>,
    /// The greeting under way.
    pub(super) greeting: GreetingProgress,
    /// For work on long answers.
    pub(super) tasks: Tasks,
}

/// How far a greeting is, for people who wait for it.
#[derive(Default)]
pub(super) struct GreetingProgress(Mutex<Option<GreetingUnderWay>>);

/// Ends a greeting when it is dropped, as the greeting itself may be.
pub(super) struct EndsGreeting<'a>(pub(super) &'a GreetingProgress);

impl Drop for EndsGreeting<'_> {
    fn drop(&mut self) {
        *self.0.now() = None;
    }
}

/// A greeting that has not ended.
#[derive(Clone)]
pub(super) struct GreetingUnderWay {
    pub(super) since: Instant,
    /// The requests that were sent, with the time of each; the last one is waited for.
    pub(super) requests: Vec<(&'static str, Instant)>,
    /// The latest process, if it is a program.
    pub(super) process: Option<GreetedProcess>,
}

/// A process that is greeted.
#[derive(Clone)]
pub(super) struct GreetedProcess {
    pub(super) since: Instant,
    /// What came from it.
    pub(super) incoming: Arc<Incoming>,
}

impl GreetingUnderWay {
    /// The request that is waited for. One that was just sent is not waited for yet.
    pub(super) fn unanswered(&self, now: Instant) -> &'static str {
        let is_waited_for = |(_, sent): &&(&'static str, Instant)| {
            now.saturating_duration_since(*sent) >= JUST_SENT
        };
        let waited_for = self.requests.iter().rev().find(is_waited_for);
        waited_for
            .or(self.requests.first())
            .map_or("initialize", |(request, _)| *request)
    }
}

impl GreetingProgress {
    /// It begins.
    pub(super) fn begin(&self, since: Instant) {
        *self.now() = Some(GreetingUnderWay {
            since,
            requests: Vec::new(),
            process: None,
        });
    }

    /// This request is sent now.
    pub(super) fn sends(&self, request: &'static str, now: Instant) {
        if let Some(under_way) = self.now().as_mut() {
            under_way.requests.push((request, now));
        }
    }

    /// A process was started for it.
    pub(super) fn started(&self, incoming: &Arc<Incoming>, now: Instant) {
        if let Some(under_way) = self.now().as_mut() {
            under_way.process = Some(GreetedProcess {
                since: now,
                incoming: Arc::clone(incoming),
            });
        }
    }

    /// The one under way.
    pub(super) fn under_way(&self) -> Option<GreetingUnderWay> {
        self.now().clone()
    }

    fn now(&self) -> parking_lot::MutexGuard<'_, Option<GreetingUnderWay>> {
        self.0.lock()
    }
}

impl ServerSetup {
    pub(super) fn new(target: &Target, tasks: &Tasks) -> Self {
        let interaction = Arc::new(target.interaction().cloned().unwrap_or_default());
        let revision = target.revision().and_then(McpRevision::parse);
        Self {
            interaction,
            revision,
            greeting: GreetingProgress::default(),
            tasks: tasks.clone(),
        }
    }

    /// The era in which it is greeted first, if that is configured.
    pub(super) fn era(&self) -> Option<Era> {
        self.revision.map(Era::of)
    }

    /// The revision of a handshake.
    pub(super) fn handshake(&self) -> McpRevision {
        self.revision
            .filter(|revision| !revision.is_modern())
            .unwrap_or(McpRevision::LEGACY)
    }
}
