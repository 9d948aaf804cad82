//! The health of a scenario as people and programs see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::awaited::Awaited;
use super::name::ScenarioName;
use super::program_end::ProgramEnd;
use super::source::SourceId;

/// The state of a scenario. Each variant says what happens to its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScenarioState {
    /// Found by an untrusted source, waiting for an operator's approval. Not published.
    Pending,
    /// Not answered yet, and not failed too often. Restored tools are published as stale.
    Connecting,
    /// The last answer is fresh. Published.
    Live,
    /// Past its freshness, still within grace. Published.
    Stale,
    /// A program that does not run because no client needs it. Published, with the age of its list.
    Asleep,
    /// A source names it, but it failed too often for too long, or has no tools to keep. Withdrawn
    /// with a finding, back at the first good answer; its names stay reserved.
    Down,
    /// No source names it any more and it does not answer, or its entry was taken out of the
    /// configuration. Withdrawn with a finding until it is forgotten; its names stay reserved
    /// unless the configuration dropped it.
    Removed,
    /// It answers 401 or 403. The last good tools stay within grace.
    NeedsAuthorization,
    /// Its protocol version is out of range. The last good tools stay until a cap, else none.
    Incompatible,
    /// An operator rejected it. Not published, never polled.
    Blocked,
}

impl ScenarioState {
    /// Every state, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Connecting,
        Self::Live,
        Self::Stale,
        Self::Asleep,
        Self::Down,
        Self::Removed,
        Self::NeedsAuthorization,
        Self::Incompatible,
        Self::Blocked,
    ];

    /// The state as it is written in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connecting => "connecting",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Asleep => "asleep",
            Self::Down => "down",
            Self::Removed => "removed",
            Self::NeedsAuthorization => "needs-authorization",
            Self::Incompatible => "incompatible",
            Self::Blocked => "blocked",
        }
    }
}

impl fmt::Display for ScenarioState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The first revision of MCP whose servers keep no sessions, so that the end of their programs
/// loses none.
pub(crate) const SESSIONLESS_REVISION: &str = "2026-07-28";

/// The status of one scenario as operators see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The name of the scenario.
    pub name: ScenarioName,
    /// Its state.
    pub state: ScenarioState,
    /// The reason of the state, in one sentence without a full stop.
    pub reason: String,
    /// When it entered the state.
    pub since: Timestamp,
    /// The base address at which it is polled, masked if it holds credentials. Absent if no source
    /// lists it any more.
    pub url: Option<String>,
    /// The source that named it.
    pub source: SourceId,
    /// Whether its address may be used for more than the manifest.
    pub trusted: bool,
    /// The party that answers there, as far as it can be known from outside: what an operator's
    /// decision would be for.
    pub party: PeerIdentity,
    /// The name it gives itself, cut to [`SHOWN_NAME`] characters. It is filed under `name` all the
    /// same.
    pub own_name: Option<String>,
    /// Its protocol, once known.
    pub protocol: Option<&'static str>,
    /// The protocol version as it wrote it.
    pub protocol_version: Option<String>,
    /// Its own version, cut to [`SHOWN_NAME`] characters.
    pub version: Option<String>,
    /// The identity that it announces, cut to [`SHOWN_TEXT`] characters.
    pub description: Option<String>,
    /// How its tools fare.
    pub tools: ToolCounts,
    /// How fresh the active manifest is.
    pub freshness: Option<Freshness>,
    /// When it last gave a good answer (a new manifest or a confirmation of the known one).
    pub last_success: Option<Timestamp>,
    /// When it was last polled.
    pub last_attempt: Option<Timestamp>,
    /// The last error; cleared by a good answer.
    pub last_error: Option<LastError>,
    /// How its latest program ended, if it is one that was started here.
    pub program_end: Option<Arc<ProgramEnd>>,
    /// When it will be polled next.
    pub next_attempt: Option<Timestamp>,
    /// What the poll under way has waited for without an answer, if that takes long.
    pub awaited: Option<Awaited>,
    /// Failures since the last good answer.
    pub failures_in_a_row: u32,
    /// How long the last answer took, in milliseconds, from the request to the end of the answer's
    /// head.
    pub latency_ms: Option<u64>,
    /// How often it was seen to restart.
    pub restarts: u32,
    /// When it was last seen to restart.
    pub last_restart: Option<Timestamp>,
}

/// The reason of a scenario whose own name an operator blocked. One that is blocked through another
/// name has a reason that names that.
pub(crate) const BLOCKED_BY_NAME: &str = "an operator blocked it";

impl Health {
    /// Whether an operator blocked it by its own name, so that its own block can be lifted.
    pub(crate) fn is_blocked_by_name(&self) -> bool {
        self.state == ScenarioState::Blocked && self.reason == BLOCKED_BY_NAME
    }
}

/// Too many scenarios were lost at once, so the daemon assumes that it lost its own network. No
/// scenario is withdrawn meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolated {
    /// Since when.
    pub since: Timestamp,
    /// When withdrawals continue at the latest. They continue earlier if enough of the lost
    /// scenarios answer again.
    pub until: Timestamp,
    /// How many were lost when it began.
    pub lost: usize,
    /// Of how many that answered.
    pub of: usize,
    /// Within how long.
    pub window: Duration,
}

impl Isolated {
    /// Why, in one sentence without a full stop.
    pub fn reason(&self) -> String {
        let Self {
            lost,
            of,
            window,
            until,
            ..
        } = self;
        let until = until.round(jiff::Unit::Second).unwrap_or(*until);
        format!(
            "{lost} of the {of} scenarios that answered were lost within {window:?}, so it is probably the daemon that is cut off; \
             nothing is withdrawn until enough of them answer again, or until {until}"
        )
    }
}

/// One change of a scenario's state. It is recorded where it is made, so that changes between two
/// reads are not lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTransition {
    /// The scenario.
    pub name: ScenarioName,
    /// Its previous state; absent if the scenario is new.
    pub from: Option<ScenarioState>,
    /// Its new state; absent if the scenario is no longer known.
    pub to: Option<ScenarioState>,
    /// Why, in one sentence without a full stop.
    pub reason: String,
    /// When.
    pub at: Timestamp,
    /// How often it was seen to restart until then.
    pub restarts: u32,
    /// Failures since the last good answer until then.
    pub failures_in_a_row: u32,
}

/// How the tools of a scenario fare in the global scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolCounts {
    /// Well-formed ones in its manifest, whether or not they are in the list.
    pub offered: usize,
    /// In the list and enabled.
    pub published: usize,
    /// Switched off by a preference or by the manifest's default.
    pub disabled: usize,
    /// Left out because they are malformed.
    pub quarantined: usize,
}

/// Characters of a name or version that health shows at most: manifests may be megabytes, and what
/// shows them is for people.
pub const SHOWN_NAME: usize = 120;
/// Characters of a description that health shows at most.
pub const SHOWN_TEXT: usize = 1000;

/// The party that answers at an address, as far as it can be known before any request.
///
/// Neither part proves anything: an identity is announced without encryption and can be copied, and
/// an address can be given to another machine. An operator's approval is kept for both together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerIdentity {
    /// The identity that it announces wherever it runs (the `id` of an mDNS announcement).
    pub identity: Option<Arc<str>>,
    /// `scheme://host:port`, the port always written out, and the host the address that is
    /// connected to where that is known. Absent when it is not known where it is.
    pub origin: Option<Arc<str>>,
}

/// How fresh a manifest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The time at which the scenario made it, in the scenario's words.
    pub generated_at: Option<Timestamp>,
    /// Until when its caching headers let it count as fresh.
    pub fresh_until: Timestamp,
    /// When the answer it came in was received.
    pub received_at: Timestamp,
}

/// The last error of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// A short, stable word: `refused`, `timeout`, `status`, `too-large`, `malformed`, `ended`, ...
    pub kind: String,
    /// What was tried and what happened, for people.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

impl PeerIdentity {
    /// Whether both are at the same address of the same scheme, whatever their ports.
    pub fn same_host(&self, other: &Self) -> bool {
        let host = |party: &Self| {
            party
                .origin
                .as_deref()
                .and_then(|origin| Some(origin.rsplit_once(':')?.0.to_owned()))
        };
        host(self).is_some_and(|own| host(other).as_ref() == Some(&own))
    }

    /// Whether both are at the same address and port.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.origin.is_some() && self.origin == other.origin
    }

    /// Whether an approval of this identity is valid for `now` too: for the same identity on the
    /// same host, whatever its port, and without an identity for exactly the address. Never if
    /// `now` lost the identity, and never if the address of this one is unknown.
    pub fn holds_for(&self, now: &Self) -> bool {
        match (&self.identity, &now.identity) {
            (Some(own), Some(identity)) => own == identity && self.same_host(now),
            (None, _) => self.same_origin(now),
            // A scenario that leaves its identity out must not pass a weaker check.
            (Some(_), None) => false,
        }
    }

    /// Whether it stands for one version of an entry: of a program that is started here, or of a
    /// proposed address.
    pub fn is_of_an_entry(&self) -> bool {
        self.origin
            .as_deref()
            .is_some_and(|origin| origin.contains('#'))
    }

    /// Whether both give the same identity.
    pub fn same_identity(&self, other: &Self) -> bool {
        self.identity.is_some() && self.identity == other.identity
    }
}

/// For people; the identity, which any process may announce, is cut and escaped.
impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(identity) = &self.identity {
            let shown: String = identity.chars().take(SHOWN_NAME).collect();
            write!(f, "with identity `{}` ", shown.escape_debug())?;
        }
        match &self.origin {
            Some(origin) => write!(f, "at {origin}"),
            None => f.write_str("at no known address"),
        }
    }
}
