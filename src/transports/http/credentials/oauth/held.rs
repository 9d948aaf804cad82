//! A login as it is used: its token, and until when.

use std::time::Duration;

use tokio::time::Instant;

use super::stored::StoredLogin;
use crate::model::Secret;
use crate::runtime::Clock;
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::token::Token;

/// The login as it is used.
#[derive(Default)]
pub(super) struct HeldLogin {
    /// Boxed, as the pending one is: every scenario has a place for a login, and few have one.
    pub(super) login: Option<Box<StoredLogin>>,
    pub(super) token: Option<Token>,
    /// At 80 % of the lifetime, so that no request carries a token that lapses on its way.
    pub(super) renew_at: Option<Instant>,
    pub(super) lapses_at: Option<Instant>,
    pub(super) failed: Option<(Instant, CredentialError)>,
    pub(super) renewed: Option<Instant>,
    /// Why it ended.
    pub(super) ended: Option<String>,
}

impl HeldLogin {
    /// A login that is used from now on.
    pub(super) fn new(login: StoredLogin, clock: Clock) -> Self {
        let Some(tokens) = &login.tokens else {
            return Self {
                login: Some(Box::new(login)),
                ..Self::default()
            };
        };
        let token = Token::new(Secret::new(tokens.access.as_str())).ok();
        let now = clock.now();
        let lifetime = tokens.lifetime.map(Duration::from_secs);
        // A clock that was set back makes a token from the future: it is renewed at once.
        let age = u64::try_from(clock.wall().as_second().saturating_sub(tokens.obtained_at));
        let left = |of: Duration| {
            age.map_or(Duration::ZERO, |age| {
                of.saturating_sub(Duration::from_secs(age))
            })
        };
        Self {
            token,
            renew_at: lifetime.map(|lifetime| now + left(lifetime.mul_f64(0.8))),
            lapses_at: lifetime.map(|lifetime| now + left(lifetime)),
            login: Some(Box::new(login)),
            ..Self::default()
        }
    }

    /// What there is without a renewal, where one failed less than `retry` ago: the token for as
    /// long as it lives, and then why it was not renewed.
    pub(super) fn without_renewal(
        &self,
        retry: Duration,
        now: Instant,
    ) -> Option<Result<Token, CredentialError>> {
        let (at, error) = self.failed.as_ref()?;
        if now.saturating_duration_since(*at) >= retry {
            return None;
        }
        let alive = self
            .token
            .clone()
            .filter(|_| self.lapses_at.is_some_and(|at| now < at));
        Some(alive.ok_or_else(|| error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::{ClientAuthMethod, LoginClient};
    use super::super::stored::StoredTokens;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_well_before_it_lapses() {
        let clock = Clock::system();
        let client = LoginClient {
            id: "callsheet".into(),
            secret: None,
            method: ClientAuthMethod::None,
            redirect: None,
        };
        let tokens = StoredTokens {
            access: "access".into(),
            refresh: Some("refresh".into()),
            obtained_at: clock.wall().as_second(),
            lifetime: Some(1_000),
            scopes: Vec::new(),
        };
        let login = StoredLogin {
            server: "https://h/mcp".into(),
            issuer: "https://h".into(),
            token_endpoint: "https://h/token".into(),
            revocation_endpoint: None,
            resource: "https://h/mcp".into(),
            client,
            tokens: Some(tokens),
        };
        let held = HeldLogin::new(login, clock);
        let early = held.lapses_at.unwrap() - held.renew_at.unwrap();
        assert!((190..=210).contains(&early.as_secs()), "{early:?}");
    }
}
