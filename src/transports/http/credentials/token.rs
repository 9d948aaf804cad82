//! Tokens that change while the daemon runs: what a source of them does.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderValue;

use super::challenge::Challenge;
use super::error::CredentialError;
use crate::model::{HttpTarget, Secret};

/// An access token of the kind bearer (RFC 6750). Equal tokens are the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(Secret);

/// The longest token that is sent, in bytes. Servers refuse heads that are much larger.
const MAX_TOKEN: usize = 64 * 1024;

impl Token {
    /// A token that a header can have (RFC 6750 section 2.1).
    pub fn new(secret: Secret) -> Result<Self, CredentialError> {
        let text = secret.expose();
        let why = if text.is_empty() {
            "the token is empty"
        } else if text.len() > MAX_TOKEN {
            "the token is larger than 65536 bytes"
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            "the token has characters that no header can have"
        } else {
            return Ok(Self(secret));
        };
        Err(CredentialError::Unreadable(why.to_owned()))
    }

    /// The text itself, for what stores it or sends it elsewhere than in a header.
    pub(super) fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The text of the header `Authorization`.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Where the token of one scenario comes from. One source serves all requests to it at once.
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// The token to show now. `None` while there is none: the request goes out without one, and the
    /// scenario says whether it wants one. A token that is about to lapse is renewed before, once
    /// for all who wait.
    fn token(&self) -> BoxFuture<'_, Result<Option<Token>, CredentialError>>;

    /// Called when the scenario refused a request that carried this token, or none, with the
    /// challenge of its answer. Gives another token, which may be one that was renewed meanwhile;
    /// concurrent calls lead to one renewal.
    ///
    /// Fails with [`CredentialError::LoginNeeded`] where only a person can get another one. The
    /// challenge may then be kept for the login.
    fn renew<'a>(
        &'a self,
        refused: Option<&'a Token>,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<Token, CredentialError>>;
}

/// All sources of tokens of a daemon.
pub trait TokenSources: fmt::Debug + Send + Sync {
    /// The source for a target, the same one for equal targets. `None` where there can be none.
    ///
    /// Only called for targets whose `auth` is [`Auth::OAuth`](crate::model::Auth::OAuth), and for
    /// those with a `login` that no other credential is configured for.
    fn source(&self, target: &HttpTarget) -> Option<Arc<dyn TokenSource>>;
}
