//! The tokens of clients without a person: one request for all who wait, renewed before they lapse,
//! kept in memory only.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use url::Url;

use super::token_request;
use crate::model::{Auth, HttpTarget, OAuthClient};
use crate::runtime::Clock;
use crate::transports::http::Client;
use crate::transports::http::credentials::challenge::Challenge;
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::secret_reader::SecretReader;
use crate::transports::http::credentials::token::{Token, TokenSource, TokenSources};

/// How long no further request is sent after one that failed, or after a token that was just
/// renewed is refused.
const RETRY: Duration = Duration::from_secs(30);

/// The sources for all clients of a daemon.
#[derive(Debug)]
pub struct OAuthTokens {
    /// The client holds these sources.
    http: Weak<Client>,
    secrets: SecretReader,
    clock: Clock,
    all: Mutex<Vec<(OAuthClient, Url, Arc<ClientTokens>)>>,
}

/// The token of one client for one scenario.
struct ClientTokens {
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

impl OAuthTokens {
    /// None yet. Requests go out through this client.
    pub fn new(http: &Arc<Client>) -> Self {
        Self { http: Arc::downgrade(http), secrets: http.secrets.clone(), clock: http.clock, all: Mutex::default() }
    }
}

impl TokenSources for OAuthTokens {
    fn source(&self, target: &HttpTarget) -> Option<Arc<dyn TokenSource>> {
        let Some(Auth::OAuth(client)) = &target.auth else { return None };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|(other, url, _)| other == client && *url == target.url);
        if let Some((_, _, tokens)) = known {
            return Some(Arc::clone(tokens) as Arc<dyn TokenSource>);
        }
        let mut resource = client.resource.clone().unwrap_or_else(|| target.url.clone());
        resource.set_fragment(None);
        let _ = resource.set_username("");
        let _ = resource.set_password(None);
        let tokens = Arc::new(ClientTokens {
            http: Weak::clone(&self.http),
            secrets: self.secrets.clone(),
            clock: self.clock,
            client: client.clone(),
            resource: resource.as_str().trim_end_matches('/').to_owned(),
            held: tokio::sync::Mutex::default(),
        });
        all.push((client.clone(), target.url.clone(), Arc::clone(&tokens)));
        Some(tokens)
    }
}

impl ClientTokens {
    async fn request(&self, held: &mut HeldToken) -> Result<Token, CredentialError> {
        let requested = self.requested().await;
        // At 80 % of its lifetime, so that no request carries one that lapses on its way.
        let used = requested.as_ref().map_or(RETRY, |(_, lifetime)| lifetime.mul_f64(0.8));
        let answer = requested.map(|(token, _)| token);
        (held.last, held.until) = (Some(answer.clone()), Some(self.clock.now() + used));
        answer
    }

    async fn requested(&self) -> Result<(Token, Duration), CredentialError> {
        let http = self.http.upgrade().ok_or_else(|| CredentialError::Unavailable("the daemon stops".to_owned()))?;
        let missing = || CredentialError::Unreadable("its `auth.oauth` has no secret".to_owned());
        let secret = self.secrets.read(self.client.client_secret.as_ref().ok_or_else(missing)?).await?;
        let unusable = |error: crate::transports::TransportError| CredentialError::Unreadable(error.to_string());
        let server = http.upstream(self.client.token_url.clone()).map_err(unusable)?;
        token_request::request(&server, &self.client, &secret, &self.resource).await
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
            if let Some(last) = held.last.as_ref().filter(|last| last.as_ref().ok() != refused) {
                return last.clone();
            }
            let now = self.clock.now();
            if held.renewed.is_some_and(|at| now.saturating_duration_since(at) < RETRY) {
                return Err(CredentialError::Unreadable("it refuses a token that was just renewed".to_owned()));
            }
            held.renewed = Some(now);
            self.request(&mut held).await
        })
    }
}

/// Nothing secret.
impl fmt::Debug for ClientTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTokens").field("resource", &self.resource).finish_non_exhaustive()
    }
}
