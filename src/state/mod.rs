//! What outlives the process: last good manifests, preferences, operator decisions, calls that wait
//! for approval, operations under way, turns, usage counts of tools, histories of their
//! definitions, what was accepted of them, what operators added to the configuration, logins, and
//! the key of the server.
//!
//! A write is acknowledged only when it is durable. A store never interprets its content and never
//! loses entries that it cannot read: they are moved aside and reported.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::model::{
    AdditionKind, ApprovalRequest, Finding, Operation, PeerIdentity, PreferenceAuthor,
    PreferenceSet, PreferenceTarget, ScenarioName, Scope, Secret, Settings, StoredTurn, ToolId,
    ToolUsage, WithNextStep,
};

pub mod manifest;
pub mod sqlite;

/// The largest number of operators' preferences. They outlive their targets, are all kept in
/// memory, and are read for every answer.
pub const PREFERENCES_MAX: usize = 10_000;

/// The largest number of preferences that clients without the right made, besides those of
/// operators.
pub const CLIENT_PREFERENCES_MAX: usize = 1_000;
/// The most of these in one scope, so that one conversation or profile leaves the others theirs.
pub const CLIENT_PREFERENCES_OF_SCOPE_MAX: usize = 250;

/// Everything that was stored, read once at the start.
#[derive(Debug, Default)]
pub struct Restored {
    /// Last good manifests.
    pub manifests: Vec<StoredManifest>,
    /// Preferences.
    pub preferences: PreferenceSet,
    /// Those of the preferences that clients without the right made, in the order in which they
    /// were written.
    pub client_preferences: Vec<(Scope, PreferenceTarget)>,
    /// Operator decisions.
    pub decisions: Vec<(ScenarioName, TrustDecision)>,
    /// The peers that had a name while they waited for an operator's approval.
    pub claims: Vec<(ScenarioName, PeerIdentity)>,
    /// The last published revision, as text, and its time of origin.
    pub revision: Option<(String, Timestamp)>,
    /// The key with which the server signs and encrypts what clients give back, in base64.
    pub server_key: Option<Secret>,
    /// Logins of persons at authorization servers, each as the one text that was stored.
    pub logins: Vec<(ScenarioName, Secret)>,
    /// Calls that need an approval, in every state, in the order of their requests.
    pub approvals: Vec<ApprovalRequest>,
    /// Long-running operations, in every state, in the order of their start.
    pub operations: Vec<Operation>,
    /// Turns, in the order in which they began.
    pub turns: Vec<StoredTurn>,
    /// Usage counts of tools, those called last first.
    pub usage: Vec<(ToolId, ToolUsage)>,
    /// Histories of tools' definitions, those that changed last first.
    pub histories: Vec<StoredHistory>,
    /// What was accepted of scenarios.
    pub pins: Vec<StoredPins>,
    /// Lines of the log of calls and states, in the order of their numbers.
    pub log: Vec<LogRow>,
    /// What else is known of that log, also of lines that are deleted.
    pub earlier_log: Option<EarlierLog>,
    /// What operators added besides the configuration, in order of kind and name.
    pub additions: Vec<StoredAddition>,
    /// What was lost and not accepted by an operator yet.
    pub loss: Option<StateLoss>,
    /// Entries that could not be read, and where they were moved.
    pub findings: Vec<Finding>,
}

/// Stored data that was lost because the file was damaged. It is remembered until an operator
/// accepts it, also over restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLoss {
    /// What happened, and what could be kept, in one clause.
    pub what: String,
    /// When it was noticed.
    pub at: Timestamp,
}

/// One line of the log of calls and states, in the form in which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Its number. It grows from line to line, also over restarts and when the clock is set back.
    pub number: u64,
    /// What kind of line it is.
    pub kind: LogKind,
    /// Its content, as one JSON object.
    pub document: Box<str>,
}

/// The numbers that a log may have used: later lines and calls get greater ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogNumbers {
    /// Of lines.
    pub line: u64,
    /// Of calls.
    pub call: u64,
}

/// What is known of the log of an earlier daemon besides its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierLog {
    /// The numbers that it may have used.
    pub numbers: LogNumbers,
    /// When it was written last: that daemon ran until then at least.
    pub written: Timestamp,
}

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// A call that is over.
    Call,
    /// A change of a scenario's state.
    State,
    /// The end of a program that was started here.
    End,
    /// A start of callsheet.
    Start,
}

impl LogKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Call, Self::State, Self::End, Self::Start];

    /// The kind as it is stored and written in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::State => "state",
            Self::End => "end",
            Self::Start => "start",
        }
    }
}

impl std::str::FromStr for LogKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        kind.ok_or_else(|| {
            format!("{text:?} is no kind of the log; write `call`, `state`, `end` or `start`")
        })
    }
}

/// A scenario's last good manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredManifest {
    /// The name it is stored under.
    pub scenario: ScenarioName,
    /// The base address it was polled at.
    pub url: String,
    /// The name of the source that named it.
    pub source: Arc<str>,
    /// The peer that answered there.
    pub party: PeerIdentity,
    /// Whether its source was trusted for the address.
    pub trusted: bool,
    /// The protocol it spoke.
    pub protocol: String,
    /// The manifest in its stored form ([`manifest`]).
    pub document: Box<str>,
    /// When the last answer was received that gave or confirmed it.
    pub received_at: Timestamp,
    /// How many of its tools were left out as malformed.
    pub quarantined: usize,
    /// What its protocol wants to have back with the next request, in the protocol's own form.
    pub validators: Option<Arc<str>>,
}

/// How the definition of a tool changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHistory {
    /// Which tool.
    pub tool: ToolId,
    /// When it changed last.
    pub changed_at: Timestamp,
    /// Its changes, as one JSON array.
    pub document: Box<str>,
}

/// What was accepted of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPins {
    /// Which scenario.
    pub scenario: ScenarioName,
    /// What was accepted ([`crate::catalog::pins::Baseline`]).
    pub document: Box<str>,
}

/// What an operator added while the daemon ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAddition {
    /// Its kind.
    pub kind: AdditionKind,
    /// Its name, which no other one of its kind has.
    pub name: String,
    /// What was added, as one JSON object.
    pub document: Box<str>,
}

/// What an operator decided about a scenario; replaces an earlier decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Its address may be used although its source is untrusted.
    Trusted,
    /// It is neither polled nor published.
    Blocked,
}

/// A decision and the peer it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDecision {
    /// What was decided.
    pub decision: Decision,
    /// The peer that answered under the name when the decision was made; without an address for a
    /// decision of an earlier version, which stored the name alone.
    pub party: PeerIdentity,
    /// The name of the source that named it then; absent like the address.
    pub source: Option<Arc<str>>,
}

/// One change to what is stored.
#[derive(Debug, Clone)]
pub enum Write {
    /// Replaces a scenario's last good manifest, and its claim.
    Manifest(StoredManifest),
    /// Replaces a scenario's claim to its name, and its last good manifest: of a scenario that
    /// waits for approval, only the claim is stored.
    Claim(ScenarioName, PeerIdentity),
    /// Replaces the times at which the stored manifests of scenarios were last confirmed. Those
    /// without a stored manifest are left alone.
    AnswerTimes(Vec<(ScenarioName, Timestamp)>),
    /// Deletes a scenario's last good manifest and its claim.
    ForgetManifest(ScenarioName),
    /// Replaces the settings of a target in a scope; empty settings remove the preference.
    Preference(Scope, PreferenceTarget, Settings, PreferenceAuthor),
    /// Replaces or removes an operator's decision.
    Decision(ScenarioName, Option<TrustDecision>),
    /// Replaces the state of a call that needs approval.
    Approval(Arc<ApprovalRequest>),
    /// Deletes the call with this id.
    ForgetApproval(Arc<str>),
    /// Replaces the state of an operation.
    Operation(Arc<Operation>),
    /// Deletes the operation with this id.
    ForgetOperation(Arc<str>),
    /// Replaces the state of a turn.
    Turn(Arc<StoredTurn>),
    /// Deletes the turn with this id that began at this time. One that has its id since then stays.
    ForgetTurn(Arc<str>, Timestamp),
    /// Replaces the usage counts of a tool.
    Usage(ToolId, ToolUsage),
    /// Deletes the usage counts of all tools except this many, those called last.
    TrimUsage(usize),
    /// Replaces the history of a tool's definition.
    History(StoredHistory),
    /// Deletes the histories of all tools except this many, those that changed last.
    TrimHistory(usize),
    /// Replaces what was accepted of a scenario.
    Pins(StoredPins),
    /// Deletes what was accepted of a scenario.
    ForgetPins(ScenarioName),
    /// Replaces an addition.
    Addition(StoredAddition),
    /// Deletes the addition of this kind with this name.
    ForgetAddition(AdditionKind, String),
    /// Adds lines to the log, or replaces those of the same numbers.
    Log(Vec<LogRow>),
    /// Deletes the lines of a kind with these numbers. No other lines are looked at.
    TrimLog(LogKind, Range<u64>),
    /// Deletes the arguments and results in the lines of calls.
    ForgetLogPayloads,
    /// Replaces the numbers that the log may have used.
    LogNumbers(LogNumbers),
    /// Stores the published revision and its time of origin.
    Revision(String, Timestamp),
    /// Stores the key with which the server signs and encrypts what clients give back.
    ServerKey(Secret),
    /// Replaces or deletes the login for a scenario.
    Login(ScenarioName, Option<Secret>),
    /// Notes that an operator accepted a loss.
    AcceptLoss,
}

/// Why data could not be stored or read. A change that fails with this error is not active, and no
/// part of it is applied.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what} in `{place}`: {message}{}{}", if next.is_some() { "; " } else { "" }, next.as_deref().unwrap_or_default())]
pub struct StateError {
    /// What was tried.
    pub what: &'static str,
    /// The file or address.
    pub place: String,
    /// The cause.
    pub message: String,
    /// What to do next.
    pub next: Option<Cow<'static, str>>,
    /// The kind of the failure.
    pub kind: StateErrorKind,
}

/// Why data could not be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateErrorKind {
    /// There is no room on the disk.
    Full,
    /// The file cannot be written: it is read-only, locked by another program, damaged, or its disk
    /// fails.
    Unwritable,
    /// Anything else.
    Other,
}

impl WithNextStep for StateError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        self.next.clone()
    }
}

impl StateError {
    /// An error at a file, and what to do next.
    fn new(
        what: &'static str,
        place: &Path,
        message: impl Into<String>,
        next: impl Into<Cow<'static, str>>,
    ) -> Self {
        let place = place.display().to_string();
        Self {
            what,
            place,
            message: message.into(),
            next: Some(next.into()),
            kind: StateErrorKind::Other,
        }
    }

    /// The same error with this kind.
    fn with_kind(self, kind: StateErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// The same error with the kind that a file system error shows.
    fn with_io_kind(self, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{
            FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => self.with_kind(StateErrorKind::Full),
            PermissionDenied | ReadOnlyFilesystem => self.with_kind(StateErrorKind::Unwritable),
            _ => self,
        }
    }
}

/// Stores what outlives the process.
pub trait StateStore: Send + Sync {
    /// Reads everything. Entries that cannot be read become findings; they are not deleted.
    fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>>;

    /// Applies writes in order, all or none, and completes when they are durable.
    fn save(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>>;
}
