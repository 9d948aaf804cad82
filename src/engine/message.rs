//! Everything that may reach the loop: what happened in the world ([`EngineEvent`]), and what somebody wants ([`EngineCommand`]).

use std::sync::Arc;

use tokio::sync::oneshot;

use super::error::EngineError;
use super::poll_task::PollResult;
use super::routes::CallReport;
use super::sessions::news::SessionNews;
use crate::config::Config;
use crate::discovery::{EndpointSet, SourceError};
use crate::model::{ConfigState, Health, PreferenceSet, ScenarioName, ScenarioState, Settings, SourceId};
use crate::state::{StateError, TrustDecision};
use crate::transports::TransportError;
use crate::transports::http::Upstream;

/// Where the answer to a change goes.
pub(super) type ReplySender<T> = oneshot::Sender<Result<T, EngineError>>;

/// The health of a scenario after its next answer.
pub(super) type HealthReceiver = oneshot::Receiver<Result<Arc<Health>, EngineError>>;

/// An address and the path below it, or why no request can be made there.
pub(super) type ListAddress = Result<(Upstream, &'static str), TransportError>;

/// What may be asked of the loop.
#[derive(Debug)]
pub(super) enum EngineCommand {
    Refresh(Vec<ScenarioName>, ReplySender<Vec<HealthReceiver>>),
    /// Where one request shows a scenario's list as it writes it.
    Locate(ScenarioName, ReplySender<ListAddress>),
    /// The configuration that is in force from now on (absent when it is the same), and how the daemon stands to what is written.
    Configure(Option<Arc<Config>>, Arc<ConfigState>, ReplySender<()>),
    /// Ends what is known of a scenario that is removed or down.
    Forget(ScenarioName, ReplySender<Forgotten>),
    /// The approval that was to end with one that was forgotten could not be taken out of the store.
    Unforget(ScenarioName),
    /// Only answers.
    Ping(ReplySender<()>),
    /// What a call taught, by a route of this generation.
    Called(ScenarioName, u64, CallReport),
}

/// What the loop hears of the world.
pub(super) enum EngineEvent {
    /// A source's whole set.
    Endpoints(SourceId, EndpointSet),
    /// A source is not wanted any more, and what it told is void.
    SourceOff(SourceId),
    /// A source ended before it was told to; its last set stays in force.
    SourceEnded(SourceError),
    /// An ask ended.
    Polled(Box<PollResult>),
    /// Preferences changed, and are durable.
    PreferencesChanged(Arc<PreferenceSet>, Vec<Settings>, ReplySender<Vec<Settings>>),
    /// An operator decided, and it is durable.
    Decided(ScenarioName, Option<TrustDecision>, ReplySender<Arc<Health>>),
    /// A session said something by itself.
    Session(SessionNews),
    /// A save of these scenarios' manifests (and other things) ended.
    ManifestsSaved(Result<(), StateError>, Vec<ScenarioName>),
}

/// What came of forgetting a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// The scenario.
    pub name: ScenarioName,
    /// The state that it was in.
    pub was: ScenarioState,
    /// The source that still names it, so that it comes back.
    pub named_by: Option<SourceId>,
    /// Whether an operator's approval was taken back with it.
    pub approval_ended: bool,
}
