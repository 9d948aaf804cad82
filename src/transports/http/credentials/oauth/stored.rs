//! What is kept of a login over restarts.

use serde::{Deserialize, Serialize};

use super::client::LoginClient;
use super::token_request::GrantedToken;
use crate::model::Secret;
use crate::runtime::Clock;

/// A login at one authorization server for one scenario. Nothing of it is used for another server,
/// or for another address of the scenario.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// The address of the scenario that the tokens are shown to.
    pub(super) server: String,
    pub(super) issuer: String,
    /// Where tokens are requested.
    pub(super) token_endpoint: String,
    /// Where they are revoked, if its server names a place. Logins that earlier versions stored
    /// have none.
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) resource: String,
    pub(super) client: LoginClient,
    /// `None` when the login has ended. The client may be used for the next one.
    pub(super) tokens: Option<StoredTokens>,
}

/// The tokens of a login.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Seconds since 1970.
    pub(super) obtained_at: i64,
    /// In seconds.
    pub(super) lifetime: Option<u64>,
    /// What they allow.
    pub(super) scopes: Vec<String>,
}

impl StoredTokens {
    /// What a server gave just now. What it leaves out stays as it was (RFC 6749 section 6).
    pub(super) fn of(
        granted: &GrantedToken,
        refresh: Option<String>,
        scopes: Vec<String>,
        clock: Clock,
    ) -> Self {
        Self {
            access: granted.token.expose().to_owned(),
            refresh: granted
                .refresh
                .as_ref()
                .map(|token| token.expose().to_owned())
                .or(refresh),
            obtained_at: clock.wall().as_second(),
            lifetime: granted.lifetime.map(|lifetime| lifetime.as_secs()),
            scopes: granted.scopes.clone().unwrap_or(scopes),
        }
    }
}

impl StoredLogin {
    /// Whether it is renewed without a person.
    pub(super) fn renews(&self) -> bool {
        self.tokens
            .as_ref()
            .is_some_and(|tokens| tokens.refresh.is_some())
    }

    /// Reads what [`Self::document`] wrote. `None` where it cannot be read: then there is no
    /// login.
    pub(super) fn parse(document: &Secret) -> Option<Self> {
        serde_json::from_str(document.expose()).ok()
    }

    /// The text that is kept.
    pub(super) fn document(&self) -> Option<Secret> {
        serde_json::to_string(self).ok().map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::http::credentials::token::Token;

    fn token(text: &str) -> Token {
        Token::new(Secret::new(text)).unwrap()
    }

    /// Servers need not repeat a refresh token that stays the same (RFC 6749 section 6).
    #[test]
    fn what_an_answer_leaves_out_stays_as_it_was() {
        let granted = |refresh: Option<&str>, scopes: Option<Vec<String>>| GrantedToken {
            token: token("access"),
            refresh: refresh.map(token),
            lifetime: None,
            scopes,
        };
        let stored = |granted: &GrantedToken| {
            StoredTokens::of(
                granted,
                Some("first".to_owned()),
                vec!["read".to_owned()],
                Clock::system(),
            )
        };
        let kept = stored(&granted(None, None));
        assert_eq!(kept.refresh.as_deref(), Some("first"));
        assert_eq!(kept.scopes, ["read"]);
        let replaced = stored(&granted(Some("second"), Some(vec!["write".to_owned()])));
        assert_eq!(replaced.refresh.as_deref(), Some("second"));
        assert_eq!(replaced.scopes, ["write"]);
    }
}
