//! Why a scenario was not reached, or gave no usable answer, whatever the transport.

use std::sync::Arc;
use std::time::Duration;

use super::Mask;
use super::http::credentials::{Challenge, CredentialError};
use crate::model::ProgramEnd;

/// A request that failed on its way. Texts hold no credentials of the address.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// No program listens there.
    #[error("connection refused by {0}")]
    Refused(String),
    /// The host name has no address.
    #[error("host not found: {0}")]
    Unresolved(String),
    /// No connection, or no whole answer, in time.
    #[error("no answer within {limit:?} from {url}")]
    Timeout {
        /// The address.
        url: String,
        /// The limit that passed.
        limit: Duration,
    },
    /// The connection broke.
    #[error("connection broke: {message} ({url})")]
    Broken {
        /// The address.
        url: String,
        /// How.
        message: String,
    },
    /// The proxy on the way did not lead there. No byte of the request was sent.
    #[error("the proxy {proxy} did not connect: {message} ({url})")]
    Proxy {
        /// The address.
        url: String,
        /// The proxy, without its name and password.
        proxy: String,
        /// Why.
        message: String,
    },
    /// An answer that is no success.
    #[error("HTTP {} from {url}{}", status_text(*status), said.as_ref().map(|said| format!(" ({said})")).unwrap_or_default())]
    Status {
        /// The address.
        url: String,
        /// The status, in the numbers of HTTP.
        status: u16,
        /// When the scenario wants the next request, if it said so (RFC 9110 section 10.2.3).
        retry_after: Option<Duration>,
        /// Which credential it wants, where it answered 401 or 403.
        challenge: Option<Box<Challenge>>,
        /// The first line of its body, quoted, where the status alone does not say what is refused.
        said: Option<Box<str>>,
    },
    /// There is no credential to show, so no request was sent, or none that was accepted.
    #[error("there is no credential for {url}: {error}")]
    Credential {
        /// The address.
        url: String,
        /// Why.
        error: CredentialError,
    },
    /// The body is larger than allowed.
    #[error("answer larger than {limit} bytes from {url}")]
    TooLarge {
        /// The address.
        url: String,
        /// The limit in bytes, after decoding.
        limit: usize,
    },
    /// The answer points to another origin, or too often onwards.
    #[error("{url} redirects to {target}, which is not followed")]
    Redirect {
        /// The address.
        url: String,
        /// Where it points, without credentials.
        target: String,
    },
    /// No program of this name is where it was looked for.
    #[error("the command `{command}` was not found: {searched}")]
    CommandNotFound {
        /// The command, as it is configured.
        command: String,
        /// Where it was looked for: "none of the 2 folders of PATH has it".
        searched: String,
    },
    /// The program is there, but the system did not start it.
    #[error("`{command}` cannot be started: {message}")]
    NotStarted {
        /// The command line.
        command: String,
        /// Why.
        message: String,
    },
    /// The child process has ended, or can no longer be used and is being ended.
    #[error("`{command}`: {message}")]
    ProcessEnded {
        /// The command line.
        command: String,
        /// How it ended, with its last lines on stderr.
        message: String,
        /// The same in parts, where its end was seen.
        end: Option<Arc<ProgramEnd>>,
    },
    /// No request can be sent to the address at all.
    #[error("{0}")]
    Address(String),
}

impl TransportError {
    /// A short, stable word for health.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Unresolved(_) => "unresolved",
            Self::Timeout { .. } => "timeout",
            Self::Broken { .. } => "broken",
            Self::Proxy { .. } => "proxy",
            Self::Status { .. } => "status",
            Self::Credential { .. } => "credential",
            Self::TooLarge { .. } => "too-large",
            Self::Redirect { .. } => "redirect",
            Self::CommandNotFound { .. } => "command-not-found",
            Self::NotStarted { .. } => "not-started",
            Self::ProcessEnded { .. } => "ended",
            Self::Address(_) => "address",
        }
    }

    /// The same with the secrets in what a server sent masked.
    pub(super) fn masked(mut self, mask: &Mask) -> Self {
        let cover = |text: &mut String| *text = mask.text(std::mem::take(text));
        match &mut self {
            Self::Timeout { url, .. }
            | Self::TooLarge { url, .. }
            | Self::Credential { url, .. }
            // The other texts are not the server's.
            | Self::Proxy { url, .. } => cover(url),
            Self::Broken { url, message } => {
                cover(url);
                cover(message);
            }
            Self::Redirect { url, target } => {
                cover(url);
                cover(target);
            }
            Self::Status {
                url,
                challenge,
                said,
                ..
            } => {
                cover(url);
                *said = said.take().map(|said| mask.text(said.into()).into());
                if let Some(challenge) = challenge {
                    challenge.mask(mask);
                }
            }
            Self::Refused(text) | Self::Unresolved(text) | Self::Address(text) => cover(text),
            // Masked where the process is started.
            Self::CommandNotFound { .. } | Self::NotStarted { .. } | Self::ProcessEnded { .. } => {}
        }
        self
    }

    /// Whether a server refused the host name in its address, and no credential would change that.
    pub fn refuses_host(&self) -> bool {
        match self {
            Self::Status { status: 421, .. } => true,
            Self::Status {
                status: 403,
                said: Some(said),
                ..
            } => is_about_host(said),
            _ => false,
        }
    }

    /// When the scenario wants the next request, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Words that say, beside "host", that a server refuses the name it was called by.
const HOST_REFUSALS: [&str; 6] = [
    "invalid",
    "header",
    "allowed",
    "untrusted",
    "blocked",
    "rebinding",
];

/// Whether this line of a refusal is about the host name of the request. Servers that protect
/// themselves from web pages (DNS rebinding) refuse all names but those of their configuration.
fn is_about_host(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.contains("localhost")
        || line.contains("host") && HOST_REFUSALS.iter().any(|word| line.contains(word))
}

/// A status of HTTP with its usual words: `404 Not Found`.
pub(crate) fn status_text(status: u16) -> String {
    ::http::StatusCode::from_u16(status)
        .map_or_else(|_| status.to_string(), |status| status.to_string())
}
