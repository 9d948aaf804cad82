//! Why an answer did not come.

use std::time::Duration;

/// A request that failed. Texts hold no credentials of the address.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("connection to {0} was refused")]
    Refused(String),
    /// The host name has no address.
    #[error("the host of {0} cannot be resolved")]
    Unresolved(String),
    /// No connection, or no whole answer, in time.
    #[error("{url} did not answer within {limit:?}")]
    Timeout {
        /// Whom.
        url: String,
        /// The limit that passed.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the connection to {url} broke: {message}")]
    Broken {
        /// Whom.
        url: String,
        /// How.
        message: String,
    },
    /// An answer that is no success.
    #[error("{url} answered {status}")]
    Status {
        /// Whom.
        url: String,
        /// The status.
        status: http::StatusCode,
        /// `Retry-After`, if it was sent and could be read (RFC 9110 section 10.2.3).
        retry_after: Option<Duration>,
    },
    /// The body is larger than allowed.
    #[error("the answer of {url} is larger than {limit} bytes")]
    TooLarge {
        /// Whom.
        url: String,
        /// The limit in bytes, after decoding.
        limit: usize,
    },
    /// The answer points to another origin, or too often onwards.
    #[error("{url} redirects to {target}, which is not followed")]
    Redirect {
        /// Whom.
        url: String,
        /// Where it points, without credentials.
        target: String,
    },
    /// The address cannot be asked at all.
    #[error("{0}")]
    Address(String),
}

impl AskError {
    /// A short, stable word for health.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Unresolved(_) => "unresolved",
            Self::Timeout { .. } => "timeout",
            Self::Broken { .. } => "broken",
            Self::Status { .. } => "status",
            Self::TooLarge { .. } => "too-large",
            Self::Redirect { .. } => "redirect",
            Self::Address(_) => "address",
        }
    }

    /// When the scenario asked to be asked again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
