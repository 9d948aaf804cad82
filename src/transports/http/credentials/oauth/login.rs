//! The tokens of a person's login for one scenario: shown, renewed before they lapse, and kept over
//! restarts.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use url::Url;

use super::client::{ClientAuthMethod, LoginClient};
use super::guard::AddressGuard;
use super::held::HeldLogin;
use super::metadata::shown;
use super::pending::PendingLogin;
use super::settings::{LoginSettings, LoginStore};
use super::status::{LoginState, LoginStatus};
use super::stored::{StoredLogin, StoredTokens};
use super::token_request::{self, GrantedToken, TokenForm, TokenRefusal, client_header};
use crate::model::{LoginCallback, OAuthClient, ScenarioName, Secret};
use crate::runtime::{Clock, Tasks};
use crate::transports::http::credentials::challenge::Challenge;
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::secret_reader::SecretReader;
use crate::transports::http::credentials::token::{Token, TokenSource};
use crate::transports::http::{Client, Upstream};

/// How long no further renewal is tried after one that failed, or after a token that was just
/// renewed is refused.
const RETRY: Duration = Duration::from_secs(30);
/// How often a token is renewed at most, however short it lives.
const PACE: Duration = Duration::from_secs(1);
/// What is said where there is no login.
const NOT_LOGGED_IN: &str = "not logged in";
/// What is said where the daemon is about to end.
pub(super) const STOPS: &str = "the daemon stops";

/// What all logins of a daemon share.
pub(super) struct LoginParts {
    pub(super) http: Weak<Client>,
    pub(super) secrets: SecretReader,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) settings: ArcSwap<LoginSettings>,
    pub(super) store: OnceLock<Arc<dyn LoginStore>>,
}

/// The login for one scenario.
pub(super) struct LoginTokens {
    pub(super) name: ScenarioName,
    /// The address of the scenario.
    pub(super) server: Url,
    /// The client that the operator registered.
    pub(super) client: Option<OAuthClient>,
    pub(super) parts: Arc<LoginParts>,
    own: Weak<Self>,
    held: Mutex<HeldLogin>,
    /// Locked while the login is changed and stored: there is one renewal for all who wait, and
    /// what is stored last is what counts. What only reads does not wait for it.
    changing: tokio::sync::Mutex<()>,
    wanted: Mutex<WantedLogin>,
}

/// What there was of a login.
pub(super) struct ForgottenLogin {
    pub(super) login: Option<StoredLogin>,
    /// Whether one was under way.
    pub(super) was_pending: bool,
    /// Whether it is deleted from the store.
    pub(super) is_saved: bool,
}

/// What the next login has to be for.
#[derive(Default)]
pub(super) struct WantedLogin {
    /// The last one of the scenario.
    pub(super) challenge: Option<Challenge>,
    pub(super) pending: Option<Box<PendingLogin>>,
    /// The `state` of the login that the pending one replaced.
    pub(super) replaced: Option<String>,
    /// The scopes that logins were begun for after a token allowed too little, and how often.
    pub(super) steps: (String, u8),
}

impl LoginTokens {
    /// The login for a scenario, as it was stored.
    pub(super) fn new(
        name: ScenarioName,
        server: Url,
        client: Option<OAuthClient>,
        parts: Arc<LoginParts>,
        stored: Option<StoredLogin>,
    ) -> Arc<Self> {
        let is_same_client = |login: &StoredLogin| {
            client
                .as_ref()
                .is_none_or(|client| client.client_id == login.client.id)
        };
        let stored = stored
            .filter(|login| login.server == server.as_str())
            .filter(is_same_client);
        let held = stored.map_or_else(HeldLogin::default, |login| {
            HeldLogin::new(login, parts.clock)
        });
        let held = Mutex::new(held);
        let changing = tokio::sync::Mutex::default();
        let wanted = Mutex::default();
        Arc::new_cyclic(|own| Self {
            name,
            server,
            client,
            parts,
            own: Weak::clone(own),
            held,
            changing,
            wanted,
        })
    }

    /// What the next login has to be for.
    pub(super) fn wanted(&self) -> MutexGuard<'_, WantedLogin> {
        self.wanted.lock()
    }

    fn held(&self) -> MutexGuard<'_, HeldLogin> {
        self.held.lock()
    }

    /// The login as it would be stored, also when it has ended.
    pub(super) fn known(&self) -> Option<StoredLogin> {
        self.held().login.as_deref().cloned()
    }

    /// Whether the operator registered its client with the address for all authorization servers.
    pub(super) fn comes_back_to_shared(&self) -> bool {
        self.client
            .as_ref()
            .is_some_and(|client| client.callback == LoginCallback::Shared)
    }

    /// Whether the configuration or an earlier login says that its client is registered at this
    /// authorization server.
    pub(super) fn is_registered_at(&self, issuer: &str) -> bool {
        let configured = self
            .client
            .as_ref()
            .and_then(|client| client.issuer.clone());
        let registered = configured.or_else(|| self.known().map(|login| login.issuer));
        registered.is_some_and(|registered| registered == issuer)
    }

    /// Uses this login from now on. Returns whether it is stored; it is used all the same.
    pub(super) async fn accept(&self, login: StoredLogin) -> bool {
        let _changing = self.changing.lock().await;
        *self.held() = HeldLogin::new(login, self.parts.clock);
        self.save().await
    }

    /// Forgets it, and one that is under way.
    pub(super) async fn forget(&self) -> ForgottenLogin {
        let _changing = self.changing.lock().await;
        let login = std::mem::take(&mut *self.held()).login.map(|login| *login);
        let was_pending = std::mem::take(&mut *self.wanted()).pending.is_some();
        ForgottenLogin {
            login,
            was_pending,
            is_saved: self.save().await,
        }
    }

    /// What is known of it.
    pub(super) fn status(&self) -> LoginStatus {
        let held = self.held();
        let now = self.parts.clock.now();
        let waits = self
            .wanted()
            .pending
            .as_ref()
            .is_some_and(|pending| now < pending.until);
        let tokens = held.login.as_ref().and_then(|login| login.tokens.as_ref());
        let state = match tokens {
            _ if waits => LoginState::Waiting,
            Some(_) => LoginState::LoggedIn,
            None if held.ended.is_some() => LoginState::Ended,
            None => LoginState::LoggedOut,
        };
        LoginStatus {
            state,
            issuer: held.login.as_ref().map(|login| login.issuer.clone()),
            scopes: tokens
                .map(|tokens| tokens.scopes.clone())
                .unwrap_or_default(),
            expires_at: held.lapses_at.map(|at| self.parts.clock.wall_at(at)),
            renews: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
            reason: held
                .ended
                .clone()
                .or_else(|| held.failed.as_ref().map(|(_, error)| error.to_string())),
        }
    }

    /// The header that proves the client, and its part of the form of a request for a token.
    pub(super) async fn prove(
        &self,
        client: &LoginClient,
        form: &mut TokenForm,
    ) -> Result<Option<HeaderValue>, CredentialError> {
        let secret = match self
            .client
            .as_ref()
            .and_then(|client| client.client_secret.as_ref())
        {
            Some(source) => Some(self.parts.secrets.read(source).await?),
            None => client
                .secret
                .as_ref()
                .map(|text| Secret::new(text.as_str())),
        };
        // Beside a header too: some servers look for the client in the form before they read the
        // header.
        form.push(("client_id", client.id.clone()));
        match (client.method, secret) {
            (ClientAuthMethod::ClientSecretBasic, Some(secret)) => {
                client_header(&client.id, &secret).map(Some)
            }
            (ClientAuthMethod::ClientSecretPost, Some(secret)) => {
                form.push(("client_secret", secret.expose().to_owned()));
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Requests a token for a form at an address that the guard allows.
    pub(super) async fn request(
        &self,
        endpoint: &str,
        client: Option<HeaderValue>,
        form: &TokenForm,
    ) -> Result<GrantedToken, TokenRefusal> {
        let unavailable = |why: String| TokenRefusal::Failed(CredentialError::Unavailable(why));
        let server = self.upstream(endpoint).await.map_err(unavailable)?;
        token_request::request(&server, client, form).await
    }

    /// What sends requests to an address of the authorization server, if the guard allows it. Fails
    /// with a text for people.
    pub(super) async fn upstream(&self, endpoint: &str) -> Result<Upstream, String> {
        let http = self.parts.http.upgrade().ok_or_else(|| STOPS.to_owned())?;
        let settings = self.parts.settings.load_full();
        let guard = AddressGuard {
            http: &http,
            scenario: &self.server,
            hosts: &settings.hosts,
        };
        let url =
            Url::parse(endpoint).map_err(|_| format!("{:?} is not an address", shown(endpoint)))?;
        guard.upstream(&url).await
    }

    /// Why a person has to log in.
    fn needed(&self, why: &str) -> CredentialError {
        CredentialError::LoginNeeded(format!(
            "{why}; log in with `callsheet login {}`",
            self.name
        ))
    }

    /// Stores what is held, or deletes what is stored. Returns whether that is durable; if not, the
    /// log says why. Only called while `changing` is locked.
    async fn save(&self) -> bool {
        let Some(store) = self.parts.store.get() else {
            return true;
        };
        let document = self.known().as_ref().and_then(StoredLogin::document);
        let saved = store.save(&self.name, document).await;
        if let Err(error) = &saved {
            tracing::warn!(scenario = %self.name, error, "what changed of a login could not be stored");
        }
        saved.is_ok()
    }

    /// Renews this token, unless it was renewed meanwhile. It goes on when no call waits any more:
    /// a renewal that is broken off could lose the only token that renews the login.
    async fn renewed(&self, old: Token) -> Result<Token, CredentialError> {
        let stops = || CredentialError::Unavailable(STOPS.to_owned());
        let own = self.own.upgrade().ok_or_else(stops)?;
        let work = async move {
            let _changing = own.changing.lock().await;
            {
                let held = own.held();
                match &held.token {
                    Some(token) if *token != old => return Ok(token.clone()),
                    None => return Err(own.needed(NOT_LOGGED_IN)),
                    Some(_) => {}
                }
                // Those who waited for a renewal that failed do not try it again one by one.
                if let Some(result) = held.without_renewal(RETRY, own.parts.clock.now()) {
                    return result;
                }
            }
            own.renew().await
        };
        self.parts.tasks.run_to_completion(work).await
    }

    /// Renews the login (RFC 6749 section 6). Only called while `changing` is locked.
    async fn renew(&self) -> Result<Token, CredentialError> {
        let Some(mut login) = self.known() else {
            return Err(self.needed(NOT_LOGGED_IN));
        };
        let tokens = login.tokens.take();
        let Some((refresh, scopes)) =
            tokens.and_then(|tokens| Some((tokens.refresh?, tokens.scopes)))
        else {
            return Err(self.needed(
                "the token of the login is not accepted any more, and it cannot be renewed",
            ));
        };
        let mut form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.clone()),
        ];
        form.push(("resource", login.resource.clone()));
        let header = self.prove(&login.client, &mut form).await?;
        let now = self.parts.clock.now();
        match self.request(&login.token_endpoint, header, &form).await {
            Ok(granted) => {
                let token = granted.token.clone();
                login.tokens = Some(StoredTokens::of(
                    &granted,
                    Some(refresh),
                    scopes,
                    self.parts.clock,
                ));
                *self.held() = HeldLogin {
                    renewed: Some(now),
                    ..HeldLogin::new(login, self.parts.clock)
                };
                self.save().await;
                Ok(token)
            }
            Err(TokenRefusal::Refused(code)) => {
                let why = format!(
                    "the authorization server {} refused to renew the login: {code}",
                    shown(&login.issuer)
                );
                let is_client = code == "invalid_client" || code == "unauthorized_client";
                // That of the operator is never registered anew, and its server is remembered.
                let kept = (!is_client || self.client.is_some()).then_some(login);
                *self.held() = HeldLogin {
                    login: kept.map(Box::new),
                    ended: Some(why.clone()),
                    ..HeldLogin::default()
                };
                self.save().await;
                Err(self.needed(&why))
            }
            Err(TokenRefusal::Failed(error)) => {
                let mut held = self.held();
                held.failed = Some((now, error.clone()));
                held.without_renewal(RETRY, now).unwrap_or(Err(error))
            }
        }
    }

    async fn current(&self) -> Result<Option<Token>, CredentialError> {
        let token = {
            let held = self.held();
            let Some(token) = held.token.clone() else {
                return Ok(None);
            };
            let now = self.parts.clock.now();
            let renews = held.login.as_deref().is_some_and(StoredLogin::renews);
            let is_new = held
                .renewed
                .is_some_and(|at| now.saturating_duration_since(at) < PACE);
            if !renews || is_new || held.renew_at.is_none_or(|at| now < at) {
                return Ok(Some(token));
            }
            if let Some(result) = held.without_renewal(RETRY, now) {
                return result.map(Some);
            }
            token
        };
        self.renewed(token).await.map(Some)
    }

    /// Another token than this one, which was refused; `None` where it has to be renewed first.
    fn other_than(
        &self,
        refused: &Token,
        challenge: &Challenge,
    ) -> Result<Option<Token>, CredentialError> {
        let held = self.held();
        match &held.token {
            None => return Err(self.needed(NOT_LOGGED_IN)),
            Some(token) if token != refused => return Ok(Some(token.clone())),
            Some(_) => {}
        }
        if challenge.lacks_scope() {
            let scopes = challenge
                .scope
                .as_deref()
                .unwrap_or("it does not say which");
            return Err(self.needed(&format!(
                "the token of the login does not allow enough; wanted are: {scopes}"
            )));
        }
        let now = self.parts.clock.now();
        if held
            .renewed
            .is_some_and(|at| now.saturating_duration_since(at) < RETRY)
        {
            return Err(self.needed("it refuses a token that was just renewed"));
        }
        match &held.failed {
            Some((at, error)) if now.saturating_duration_since(*at) < RETRY => Err(error.clone()),
            _ => Ok(None),
        }
    }

    async fn after_refusal(
        &self,
        refused: &Token,
        challenge: &Challenge,
    ) -> Result<Token, CredentialError> {
        match self.other_than(refused, challenge)? {
            Some(token) => Ok(token),
            None => self.renewed(refused.clone()).await,
        }
    }
}

impl TokenSource for LoginTokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<Token>, CredentialError>> {
        Box::pin(self.current())
    }

    fn renew<'a>(
        &'a self,
        refused: Option<&'a Token>,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<Token, CredentialError>> {
        Box::pin(async move {
            self.wanted().challenge = Some(challenge.clone());
            match refused {
                Some(refused) => self.after_refusal(refused, challenge).await,
                None => Err(self.needed(NOT_LOGGED_IN)),
            }
        })
    }
}

/// Nothing secret.
impl fmt::Debug for LoginTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginTokens")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
