//! The tokens of a person's login for one scenario: shown, renewed before they lapse, and kept over
//! restarts.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use jiff::Timestamp;
use tokio::time::Instant;
use url::Url;

use super::client::{ClientAuthMethod, LoginClient};
use super::guard::AddressGuard;
use super::pending::PendingLogin;
use super::settings::{LoginSettings, LoginStore};
use super::stored::{StoredLogin, StoredTokens};
use super::token_request::{self, GrantedToken, TokenForm, TokenRefusal, client_header};
use crate::model::{OAuthClient, ScenarioName, Secret};
use crate::runtime::{Clock, Tasks};
use crate::transports::http::Client;
use crate::transports::http::credentials::challenge::Challenge;
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::secret_reader::SecretReader;
use crate::transports::http::credentials::token::{Token, TokenSource};

/// How long no further renewal is tried after one that failed, or after a token that was just
/// renewed is refused.
const RETRY: Duration = Duration::from_secs(30);

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
    /// Locked while the login is renewed, so that there is one request for all who wait.
    held: tokio::sync::Mutex<HeldLogin>,
    wanted: Mutex<WantedLogin>,
}

/// What the next login has to be for.
#[derive(Default)]
pub(super) struct WantedLogin {
    /// The last one of the scenario.
    pub(super) challenge: Option<Challenge>,
    pub(super) pending: Option<PendingLogin>,
    /// The `state` of the login that the pending one replaced.
    pub(super) replaced: Option<String>,
    /// The scopes that logins were begun for after a token allowed too little, and how often.
    pub(super) steps: (String, u8),
}

/// The login as it is used.
#[derive(Default)]
struct HeldLogin {
    login: Option<StoredLogin>,
    token: Option<Token>,
    /// At 80 % of the lifetime, so that no request carries a token that lapses on its way.
    renew_at: Option<Instant>,
    lapses_at: Option<Instant>,
    failed: Option<(Instant, CredentialError)>,
    renewed: Option<Instant>,
    /// Why it ended.
    ended: Option<String>,
}

/// The state of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    /// Nobody is logged in.
    LoggedOut,
    /// A person has to finish it in a browser.
    Waiting,
    /// Its tokens are used.
    LoggedIn,
    /// It was refused when it was to be renewed.
    Ended,
}

impl LoginState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::LoggedOut, Self::Waiting, Self::LoggedIn, Self::Ended];

    /// The word that programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoggedOut => "logged-out",
            Self::Waiting => "waiting",
            Self::LoggedIn => "logged-in",
            Self::Ended => "ended",
        }
    }
}

/// What is known of a login. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginStatus {
    /// Its state.
    pub state: LoginState,
    /// The authorization server.
    pub issuer: Option<String>,
    /// What its token allows, as far as the server said.
    pub scopes: Vec<String>,
    /// When its token lapses, as far as the server said.
    pub expires_at: Option<Timestamp>,
    /// Whether it is renewed without a person.
    pub renews: bool,
    /// Why it ended, or why it could not be renewed.
    pub reason: Option<String>,
}

impl LoginTokens {
    /// The login for a scenario, as it was stored.
    pub(super) fn new(
        (name, server, client): (ScenarioName, Url, Option<OAuthClient>),
        parts: Arc<LoginParts>,
        stored: Option<StoredLogin>,
    ) -> Arc<Self> {
        let is_same_client =
            |login: &StoredLogin| client.as_ref().is_none_or(|client| client.client_id == login.client.id);
        let stored = stored.filter(|login| login.server == server.as_str()).filter(is_same_client);
        let held = stored.map_or_else(HeldLogin::default, |login| HeldLogin::new(login, parts.clock));
        let (held, wanted) = (tokio::sync::Mutex::new(held), Mutex::default());
        Arc::new_cyclic(|own| Self { name, server, client, parts, own: Weak::clone(own), held, wanted })
    }

    /// What the next login has to be for.
    pub(super) fn wanted(&self) -> MutexGuard<'_, WantedLogin> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client of the login, and the scopes of its token, if it is one at this server.
    pub(super) async fn known(&self, issuer: &str) -> (Option<LoginClient>, Vec<String>) {
        let held = self.held.lock().await;
        let Some(login) = held.login.as_ref().filter(|login| login.issuer == issuer) else {
            return (None, Vec::new());
        };
        let scopes = login.tokens.as_ref().map(|tokens| tokens.scopes.clone()).unwrap_or_default();
        (Some(login.client.clone()), scopes)
    }

    /// Uses this login from now on.
    pub(super) async fn accept(&self, login: StoredLogin) {
        let mut held = self.held.lock().await;
        *held = HeldLogin::new(login, self.parts.clock);
        self.save(&held).await;
    }

    /// Forgets it. Returns whether there was one.
    pub(super) async fn forget(&self) -> bool {
        let mut held = self.held.lock().await;
        let was = std::mem::take(&mut *held).login.is_some();
        let pending = std::mem::take(&mut *self.wanted()).pending.is_some();
        self.save(&held).await;
        was || pending
    }

    /// What is known of it.
    pub(super) async fn status(&self) -> LoginStatus {
        let held = self.held.lock().await;
        let now = self.parts.clock.now();
        let waits = self.wanted().pending.as_ref().is_some_and(|pending| now < pending.until);
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
            scopes: tokens.map(|tokens| tokens.scopes.clone()).unwrap_or_default(),
            expires_at: held.lapses_at.map(|at| self.parts.clock.wall_at(at)),
            renews: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
            reason: held.ended.clone().or_else(|| held.failed.as_ref().map(|(_, error)| error.to_string())),
        }
    }

    /// The header that proves the client, and its part of the form of a request for a token.
    pub(super) async fn prove(
        &self,
        client: &LoginClient,
        form: &mut TokenForm,
    ) -> Result<Option<HeaderValue>, CredentialError> {
        let secret = match self.client.as_ref().and_then(|client| client.client_secret.as_ref()) {
            Some(source) => Some(self.parts.secrets.read(source).await?),
            None => client.secret.as_ref().map(|text| Secret::new(text.as_str())),
        };
        match (client.method, secret) {
            (ClientAuthMethod::ClientSecretBasic, Some(secret)) => client_header(&client.id, &secret).map(Some),
            (ClientAuthMethod::ClientSecretPost, Some(secret)) => {
                form.push(("client_id", client.id.clone()));
                form.push(("client_secret", secret.expose().to_owned()));
                Ok(None)
            }
            _ => {
                form.push(("client_id", client.id.clone()));
                Ok(None)
            }
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
        let http = self.parts.http.upgrade().ok_or_else(|| unavailable("the daemon stops".to_owned()))?;
        let settings = self.parts.settings.load_full();
        let guard = AddressGuard { http: &http, scenario: &self.server, hosts: &settings.hosts };
        let url = Url::parse(endpoint).map_err(|_| unavailable("its address for tokens is none".to_owned()))?;
        let server = guard.upstream(&url).await.map_err(unavailable)?;
        token_request::request(&server, client, form).await
    }

    /// Why a person has to log in.
    fn needed(&self, why: &str) -> CredentialError {
        CredentialError::LoginNeeded(format!("{why}; log in with `callsheet login {}`", self.name))
    }

    async fn save(&self, held: &HeldLogin) {
        let Some(store) = self.parts.store.get() else { return };
        let document = held.login.as_ref().and_then(StoredLogin::document);
        if let Err(error) = store.save(&self.name, document).await {
            tracing::warn!(scenario = %self.name, error, "the login could not be stored; it ends when the daemon ends");
        }
    }

    /// Renews this token, unless it was renewed meanwhile. It goes on when nobody waits any more: a
    /// renewal that is broken off could lose the only token that renews the login.
    async fn renewed(&self, old: Token) -> Result<Token, CredentialError> {
        let stops = || CredentialError::Unavailable("the daemon stops".to_owned());
        let own = self.own.upgrade().ok_or_else(stops)?;
        let work = async move {
            let mut held = own.held.lock().await;
            match &held.token {
                Some(token) if *token != old => Ok(token.clone()),
                None => Err(own.needed("nobody is logged in")),
                Some(_) => own.renew_held(&mut held).await,
            }
        };
        self.parts.tasks.run_to_completion(work).await
    }

    /// Renews the login (RFC 6749 section 6).
    async fn renew_held(&self, held: &mut HeldLogin) -> Result<Token, CredentialError> {
        let Some(mut login) = held.login.clone() else { return Err(self.needed("nobody is logged in")) };
        let tokens = login.tokens.take();
        let Some((refresh, scopes)) = tokens.and_then(|tokens| Some((tokens.refresh?, tokens.scopes))) else {
            return Err(self.needed("the token of the login is not accepted any more, and it cannot be renewed"));
        };
        let mut form = vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", refresh.clone())];
        form.push(("resource", login.resource.clone()));
        let header = self.prove(&login.client, &mut form).await?;
        let now = self.parts.clock.now();
        match self.request(&login.token_endpoint, header, &form).await {
            Ok(granted) => {
                let token = granted.token.clone();
                login.tokens = Some(StoredTokens::of(&granted, Some(refresh), scopes, self.parts.clock));
                *held = HeldLogin { renewed: Some(now), ..HeldLogin::new(login, self.parts.clock) };
                self.save(held).await;
                Ok(token)
            }
            Err(TokenRefusal::Refused(code)) => {
                let why = format!("the authorization server {} refused to renew the login: {code}", login.issuer);
                let is_client = code == "invalid_client" || code == "unauthorized_client";
                let kept = (!is_client).then_some(login);
                *held = HeldLogin { login: kept, ended: Some(why.clone()), ..HeldLogin::default() };
                self.save(held).await;
                Err(self.needed(&why))
            }
            Err(TokenRefusal::Failed(error)) => {
                held.failed = Some((now, error.clone()));
                // The old one may be used for as long as it lives.
                match (&held.token, held.lapses_at) {
                    (Some(token), Some(at)) if now < at => Ok(token.clone()),
                    _ => Err(error),
                }
            }
        }
    }

    async fn current(&self) -> Result<Option<Token>, CredentialError> {
        let held = self.held.lock().await;
        let Some(token) = held.token.clone() else { return Ok(None) };
        let now = self.parts.clock.now();
        let renews = held.login.as_ref().is_some_and(StoredLogin::renews);
        if !renews || held.renew_at.is_none_or(|at| now < at) {
            return Ok(Some(token));
        }
        if let Some((at, error)) = &held.failed
            && now.saturating_duration_since(*at) < RETRY
        {
            return if held.lapses_at.is_some_and(|at| now < at) { Ok(Some(token)) } else { Err(error.clone()) };
        }
        drop(held);
        self.renewed(token).await.map(Some)
    }

    async fn after_refusal(&self, refused: &Token, challenge: &Challenge) -> Result<Token, CredentialError> {
        let held = self.held.lock().await;
        match &held.token {
            None => return Err(self.needed("nobody is logged in")),
            Some(token) if token != refused => return Ok(token.clone()),
            Some(_) => {}
        }
        if challenge.lacks_scope() {
            let scopes = challenge.scope.as_deref().unwrap_or("it does not say which");
            return Err(self.needed(&format!("the token of the login does not allow enough; wanted are: {scopes}")));
        }
        let now = self.parts.clock.now();
        if held.renewed.is_some_and(|at| now.saturating_duration_since(at) < RETRY) {
            return Err(self.needed("it refuses a token that was just renewed"));
        }
        if let Some((at, error)) = &held.failed
            && now.saturating_duration_since(*at) < RETRY
        {
            return Err(error.clone());
        }
        drop(held);
        self.renewed(refused.clone()).await
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
                None => Err(self.needed("nobody is logged in")),
            }
        })
    }
}

impl HeldLogin {
    fn new(login: StoredLogin, clock: Clock) -> Self {
        let Some(tokens) = &login.tokens else { return Self { login: Some(login), ..Self::default() } };
        let token = Token::new(Secret::new(tokens.access.as_str())).ok();
        let (now, lifetime) = (clock.now(), tokens.lifetime.map(Duration::from_secs));
        // A clock that was set back makes a token from the future: it is renewed at once.
        let age = u64::try_from(clock.wall().as_second().saturating_sub(tokens.obtained_at));
        let left = |of: Duration| age.map_or(Duration::ZERO, |age| of.saturating_sub(Duration::from_secs(age)));
        Self {
            token,
            renew_at: lifetime.map(|lifetime| now + left(lifetime.mul_f64(0.8))),
            lapses_at: lifetime.map(|lifetime| now + left(lifetime)),
            login: Some(login),
            ..Self::default()
        }
    }
}

/// Nothing secret.
impl fmt::Debug for LoginTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginTokens").field("name", &self.name).finish_non_exhaustive()
    }
}
