//! What outlives the process: last good manifests, preferences, operator decisions, calls that wait for a yes, operations that go on, what was
//! counted of tools.
//!
//! A write is acknowledged only when it is durable. A store never interprets what it keeps and never loses what it cannot read: that
//! is moved aside and reported.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::model::{
    ApprovalRequest, Finding, Operation, PeerIdentity, PreferenceSet, PreferenceTarget, ScenarioName, Scope, Settings,
    SourceId, ToolId, ToolUsage,
};

pub mod manifest;
pub mod sqlite;

/// Preferences that are kept at most. They outlive what they speak of and are all in memory and in every answer's making.
pub const PREFERENCES_MAX: usize = 10_000;

/// Everything that was stored, read once at the start.
#[derive(Debug, Default)]
pub struct Restored {
    /// Last good manifests.
    pub manifests: Vec<StoredManifest>,
    /// Preferences.
    pub preferences: PreferenceSet,
    /// Operator decisions.
    pub decisions: Vec<(ScenarioName, TrustDecision)>,
    /// Who had which name while waiting for an operator's yes.
    pub claims: Vec<(ScenarioName, PeerIdentity)>,
    /// The last published revision, as text, and when it came to be.
    pub revision: Option<(String, Timestamp)>,
    /// Calls that need a human's yes, whatever became of them, in the order in which they were asked for.
    pub approvals: Vec<ApprovalRequest>,
    /// Long-running operations, whatever became of them, in the order in which they were started.
    pub operations: Vec<Operation>,
    /// What was counted of tools, those called last first.
    pub usage: Vec<(ToolId, ToolUsage)>,
    /// What could not be read, and where it was moved.
    pub findings: Vec<Finding>,
}

/// A scenario's last good manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredManifest {
    /// The name it is filed under.
    pub scenario: ScenarioName,
    /// The base address it was asked at.
    pub url: String,
    /// Who told of it.
    pub source: SourceId,
    /// Who answered there.
    pub party: PeerIdentity,
    /// Whether its source vouched for the address.
    pub trusted: bool,
    /// The protocol it spoke.
    pub protocol: String,
    /// The manifest in its stored form ([`manifest`]).
    pub document: Box<str>,
    /// When the answer was received.
    pub received_at: Timestamp,
    /// How many of its tools were left out as malformed.
    pub quarantined: usize,
}

/// What an operator decided about a scenario; replaces an earlier decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Its address may be used although its source does not vouch for it.
    Trusted,
    /// It is neither asked nor published.
    Blocked,
}

/// A decision and whom it was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDecision {
    /// What was decided.
    pub decision: Decision,
    /// Who answered under the name when it was decided; without an address for a decision of an earlier version, which kept the name
    /// alone.
    pub party: PeerIdentity,
    /// Who told of it then; absent like the address.
    pub source: Option<SourceId>,
}

/// One change to what is stored.
#[derive(Debug, Clone)]
pub enum Write {
    /// Replaces a scenario's last good manifest, and its claim.
    Manifest(StoredManifest),
    /// Replaces a scenario's claim to its name, and its last good manifest: of who waits for a yes, nothing else is kept.
    Claim(ScenarioName, PeerIdentity),
    /// Forgets a scenario's last good manifest and its claim.
    ForgetManifest(ScenarioName),
    /// Replaces the settings of a target in a scope; empty settings remove the preference.
    Preference(Scope, PreferenceTarget, Settings),
    /// Replaces or removes an operator's decision.
    Decision(ScenarioName, Option<TrustDecision>),
    /// Replaces what is known of a call that needs a yes.
    Approval(Arc<ApprovalRequest>),
    /// Forgets the call with this id.
    ForgetApproval(Arc<str>),
    /// Replaces what is known of an operation.
    Operation(Arc<Operation>),
    /// Forgets the operation with this id.
    ForgetOperation(Arc<str>),
    /// Replaces what was counted of a tool.
    Usage(ToolId, ToolUsage),
    /// Forgets what was counted of all tools but so many, those called last.
    TrimUsage(usize),
    /// Remembers the published revision and when it came to be.
    Revision(String, Timestamp),
}

/// Why something could not be stored or read. A change that is answered with this is not in force; nothing of it is half applied.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what} in `{place}`: {message}")]
pub struct StateError {
    /// What was tried.
    pub what: &'static str,
    /// The file or address.
    pub place: String,
    /// What happened, and what to do about it.
    pub message: String,
    /// What kind of trouble it is.
    pub kind: StateErrorKind,
}

/// What keeps something from being stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateErrorKind {
    /// There is no room on the disk.
    Full,
    /// The place cannot be written to: it is read-only, locked by another program, damaged, or its disk fails.
    Unwritable,
    /// Anything else.
    Other,
}

impl StateError {
    /// An error at a file.
    fn new(what: &'static str, place: &Path, message: String) -> Self {
        Self { what, place: place.display().to_string(), message, kind: StateErrorKind::Other }
    }

    /// The same, of this kind.
    fn with_kind(self, trouble: StateErrorKind) -> Self {
        Self { kind: trouble, ..self }
    }

    /// The same, of the kind that an error of the file system shows.
    fn with_io_kind(self, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => self.with_kind(StateErrorKind::Full),
            PermissionDenied | ReadOnlyFilesystem => self.with_kind(StateErrorKind::Unwritable),
            _ => self,
        }
    }
}

/// Keeps what outlives the process.
pub trait StateStore: Send + Sync {
    /// Reads everything. Entries that cannot be read become findings; they are not deleted.
    fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>>;

    /// Applies writes in order, all or none, and completes when they are durable.
    fn save(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>>;
}
