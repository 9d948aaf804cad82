//! The tokens of clients without a person: one request for all waiting callers, renewed before they
//! expire, kept in memory only.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use url::Url;

use super::metadata::resource_of;
use super::token_request::{self, TokenForm, TokenRefusal, client_header};
use crate::model::OAuthClient;
use crate::runtime::Clock;
use crate::transports::http::Client;
use crate::transports::http::credentials::challenge::Challenge;
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::secret_reader::SecretReader;
use crate::transports::http::credentials::token::{Token, TokenSource};
use crate::transports::http::destination::{self, NoDestination};

/// How long no further request is sent after one that failed, or after a token that was just
/// renewed is refused.
const RETRY: Duration = Duration::from_secs(30);
/// How long a token is used whose lifetime is unknown, and the longest time that one is used.
const LIFETIME: Duration = Duration::from_secs(3600);
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// The token of one client for one scenario.
pub(super) struct ClientTokens {
    http: Weak<Client>,
    secrets: SecretReader,
    clock: Clock,
    client: OAuthClient,
    resource: String,
    /// Locked while a token is requested, so that there is one request for all who wait.
    held: tokio::sync::Mutex<HeldToken>,
}

#[derive(Default)]
struct HeldToken {
    last: Option<Result<Token, CredentialError>>,
    /// Until when the last answer is used.
    until: Option<Instant>,
    renewed: Option<Instant>,
}

impl ClientTokens {
    /// None requested yet. `server` is the address of the scenario.
    pub(super) fn new(
        http: &Weak<Client>,
        parts: (SecretReader, Clock),
        client: &OAuthClient,
        server: &Url,
    ) -> Self {
        let resource = client.resource.as_ref().unwrap_or(server);
        Self {
            http: Weak::clone(http),
            secrets: parts.0,
            clock: parts.1,
            client: client.clone(),
            resource: resource_of(resource),
            held: tokio::sync::Mutex::default(),
        }
    }

    async fn request(&self, held: &mut HeldToken) -> Result<Token, CredentialError> {
        let requested = self.requested().await;
        // At 80 % of its lifetime, so that no request carries one that lapses on its way.
        let used = requested
            .as_ref()
            .map_or(RETRY, |(_, lifetime)| lifetime.mul_f64(0.8));
        let answer = requested.map(|(token, _)| token);
        (held.last, held.until) = (Some(answer.clone()), Some(self.clock.now() + used));
        answer
    }

    async fn requested(&self) -> Result<(Token, Duration), CredentialError> {
        let http = self
            .http
            .upgrade()
            .ok_or_else(|| CredentialError::Unavailable("the daemon stops".to_owned()))?;
        let missing = || CredentialError::Unreadable("its `auth.oauth` has no secret".to_owned());
        let secret = self
            .secrets
            .read(self.client.client_secret.as_ref().ok_or_else(missing)?)
            .await?;
        let unusable = |error: crate::transports::TransportError| {
            CredentialError::Unreadable(error.to_string())
        };
        let token_url = self.client.token_url.clone();
        let token_url = token_url.ok_or_else(|| {
            CredentialError::Unreadable("its `auth.oauth` has no `token_url`".to_owned())
        })?;
        let refused = |none: NoDestination| {
            CredentialError::Unreadable(format!("no token can be requested: {none}"))
        };
        let server = http.upstream(token_url.clone()).map_err(unusable)?;
        let server = match &self.client.token_hosts {
            Some(hosts) => {
                let proxies = http.proxies();
                let found =
                    destination::find(&token_url, hosts, destination::LOOKUP, &proxies).await;
                server.with_destination(found.map_err(refused)?)
            }
            // The operator named it in the configuration.
            None => server.named(),
        };
        let shown = client_header(&self.client.client_id, &secret)?;
        let granted = token_request::request(&server, Some(shown), &self.form())
            .await
            .map_err(|refusal| match refusal {
                TokenRefusal::Refused(code) => CredentialError::Unreadable(format!(
                    "the authorization server {server} refused the client: {code}"
                )),
                TokenRefusal::Failed(error) => error,
            })?;
        Ok((
            granted.token,
            granted.lifetime.unwrap_or(LIFETIME).min(LIFETIME_MAX),
        ))
    }

    /// The body of the request (RFC 6749 section 4.4.2).
    fn form(&self) -> TokenForm {
        let mut form = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("resource", self.resource.clone()),
        ];
        if !self.client.scopes.is_empty() {
            form.push(("scope", self.client.scopes.join(" ")));
        }
        form
    }
}

impl TokenSource for ClientTokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<Token>, CredentialError>> {
        Box::pin(async move {
            let mut held = self.held.lock().await;
            match (&held.last, held.until) {
                (Some(last), Some(until)) if self.clock.now() < until => last.clone().map(Some),
                _ => self.request(&mut held).await.map(Some),
            }
        })
    }

    fn renew<'a>(
        &'a self,
        refused: Option<&'a Token>,
        _challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<Token, CredentialError>> {
        Box::pin(async move {
            let mut held = self.held.lock().await;
            if let Some(last) = held
                .last
                .as_ref()
                .filter(|last| last.as_ref().ok() != refused)
            {
                return last.clone();
            }
            let now = self.clock.now();
            if held
                .renewed
                .is_some_and(|at| now.saturating_duration_since(at) < RETRY)
            {
                return Err(CredentialError::Unreadable(
                    "it refuses a token that was just renewed".to_owned(),
                ));
            }
            held.renewed = Some(now);
            self.request(&mut held).await
        })
    }
}

/// Nothing secret.
impl fmt::Debug for ClientTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTokens")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
