//! What is wanted of a listing, and what comes of it, whatever protocol it is made by.
//!
//! It never decides when a list is wanted.

use std::time::Duration;

use crate::model::{AcceptedVersions, Bounds, Digest, Finding, Manifest};
use crate::transports::TransportError;

use super::{Validators, Validity};

/// One listing that is wanted, with what holds for it now. It comes with each request, since the
/// configuration may change while a session lives.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// What is known already, for a conditional request; `None` for a whole list.
    pub known: Option<Known>,
    /// The accepted versions, where a protocol has versions.
    pub accept: AcceptedVersions,
    /// How much of a manifest is taken.
    pub bounds: Bounds,
    /// Bytes of the answer that are read at most, where that is less than what every answer may
    /// have.
    pub max_body: Option<usize>,
    /// The digest of the manifest whose [`SentFindings`](crate::model::SentFindings) are known:
    /// those of an equal one are not wanted again.
    pub judged: Option<Digest>,
    /// How long a known list may stand by a sign that does not cover all of it
    /// (`refresh.max_interval`). After that the whole list is requested.
    pub whole_after: Duration,
}

/// What is remembered of the last good listing of a scenario.
#[derive(Debug, Clone)]
pub struct Known {
    /// Digest of the active manifest.
    pub digest: Digest,
    /// What the session wanted to have back.
    pub validators: Validators,
}

/// What a listing found.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once per answer and taken apart at once, never stored"
)]
pub enum Listing {
    /// The known manifest still stands. Carries its new validity.
    Unchanged(Validity),
    /// A manifest, whether or not it differs from the known one (compare digests).
    Manifest {
        /// The well-formed part.
        manifest: Manifest,
        /// What was left out or looked odd. Scenario and tool are filled in; the engine adds no
        /// more than the name.
        findings: Vec<Finding>,
        /// How many tools were left out as malformed.
        quarantined: usize,
        /// How long it may be used.
        validity: Validity,
    },
}

/// Why there is no session.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// The scenario was not reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The protocol cannot be spoken there, or is not.
    #[error("{0}")]
    NotThisProtocol(String),
}

/// Why a listing failed. The last good manifest stays active in every case.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ListError {
    /// The answer did not come, or was no success.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The answer is none of this protocol's at all (a probe goes on with the next protocol).
    #[error("{0}")]
    NotThisProtocol(String),
    /// The answer is of this protocol but cannot be used as a whole.
    #[error("{0}")]
    Malformed(String),
    /// The answer is of this protocol, but its protocol version cannot be read, so neither can the
    /// rest.
    #[error("{0}")]
    VersionUnreadable(String),
    /// The protocol version is readable but out of the accepted range.
    #[error("speaks protocol version {seen}, but only {accepted} is accepted")]
    Incompatible {
        /// The version as it wrote it.
        seen: String,
        /// The accepted range.
        accepted: String,
    },
}

impl ListRequest {
    /// The whole list, by the default configuration.
    pub fn whole() -> Self {
        Self {
            known: None,
            accept: AcceptedVersions::default(),
            bounds: Bounds::NONE,
            max_body: None,
            judged: None,
            whole_after: Duration::MAX,
        }
    }
}

impl ListError {
    /// A short, stable word for health: `refused`, `timeout`, `status`, `too-large`, `malformed`,
    /// ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.kind(),
            Self::NotThisProtocol(_) => "unknown-protocol",
            Self::Malformed(_) | Self::VersionUnreadable(_) => "malformed",
            Self::Incompatible { .. } => "incompatible",
        }
    }
}

impl From<ConnectError> for ListError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Transport(error) => Self::Transport(error),
            ConnectError::NotThisProtocol(why) => Self::NotThisProtocol(why),
        }
    }
}
