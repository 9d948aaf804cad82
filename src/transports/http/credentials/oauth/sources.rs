//! The sources of tokens of all scenarios of a daemon, and the logins among them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use url::Url;

use super::callback::CallbackAddress;
use super::client_credentials::ClientTokens;
use super::error::{LoginError, LoginProblem};
use super::flow::{self, LoginRedirect, StartedLogin};
use super::login::{LoginParts, LoginTokens};
use super::logout;
use super::settings::{LoginSettings, LoginStore};
use super::status::{LoginStatus, Logout};
use super::stored::StoredLogin;
use crate::model::{Auth, HttpTarget, OAuthClient, ScenarioName, Secret};
use crate::transports::http::Client;
use crate::transports::http::credentials::token::{TokenSource, TokenSources};

/// The clients whose tokens are kept, at most. Beyond that the one known for longest is forgotten,
/// and gets a new token when it is used again.
const CLIENTS_MAX: usize = 1_024;

/// The tokens of authorization servers for all scenarios of a daemon.
pub struct OAuthTokens {
    parts: Arc<LoginParts>,
    clients: Mutex<Vec<(OAuthClient, Url, Arc<ClientTokens>)>>,
    logins: Mutex<HashMap<ScenarioName, Arc<LoginTokens>>>,
    stored: Mutex<HashMap<ScenarioName, Secret>>,
}

impl OAuthTokens {
    /// None yet. Requests go out through this client, which may hold these sources.
    pub fn new(http: &Arc<Client>) -> Self {
        let parts = LoginParts {
            http: Arc::downgrade(http),
            secrets: http.secrets.clone(),
            clock: http.clock,
            tasks: http.tasks.clone(),
            settings: ArcSwap::default(),
            store: OnceLock::new(),
        };
        Self {
            parts: Arc::new(parts),
            clients: Mutex::default(),
            logins: Mutex::default(),
            stored: Mutex::default(),
        }
    }

    /// Keeps logins in this store, and goes on with those that it had. Only the first call counts.
    pub fn keep_in(&self, store: Arc<dyn LoginStore>, stored: Vec<(ScenarioName, Secret)>) {
        if self.parts.store.set(store).is_ok() {
            *self.stored() = stored.into_iter().collect();
        }
    }

    /// Takes what an operator says about logins, for later ones.
    pub fn adjust(&self, settings: LoginSettings) {
        self.parts.settings.store(Arc::new(settings));
    }

    /// Begins a login for a scenario. It replaces one that was begun before. The browser of the
    /// person comes back to an address of `callback`, and [`Self::finish`] gets what it brings.
    pub async fn begin(
        &self,
        name: &ScenarioName,
        callback: &CallbackAddress,
    ) -> Result<StartedLogin, LoginError> {
        let all: Vec<Arc<LoginTokens>> = self.logins().values().cloned().collect();
        flow::begin(&*self.of(name)?, callback, &all).await
    }

    /// Ends a login with what the browser came back with. Returns the scenario.
    pub async fn finish(&self, redirect: &LoginRedirect) -> Result<ScenarioName, LoginError> {
        let all: Vec<Arc<LoginTokens>> = self.logins().values().cloned().collect();
        let is_pending = |login: &&Arc<LoginTokens>| {
            login
                .wanted()
                .pending
                .as_ref()
                .is_some_and(|pending| pending.state == redirect.state)
        };
        if let Some(login) = all.iter().find(is_pending) {
            return flow::finish(login, redirect)
                .await
                .map(|()| login.name.clone());
        }
        let was = all
            .iter()
            .find(|login| login.wanted().replaced.as_ref() == Some(&redirect.state));
        Err(LoginError::NotUnderWay(match was {
            Some(login) => LoginProblem::new(
                format!(
                    "another login for `{}` was begun after this one",
                    login.name
                ),
                "finish that one",
            ),
            None => LoginProblem::new(
                "no such login is under way: it was finished, or it took too long, or the daemon was started anew",
                "begin it anew with `callsheet login NAME`",
            ),
        }))
    }

    /// What is known of the login for a scenario.
    pub fn status(&self, name: &ScenarioName) -> Result<LoginStatus, LoginError> {
        Ok(self.of(name)?.status())
    }

    /// Forgets the login for a scenario, and one that is under way, and has its tokens revoked
    /// where its server offers that. Fails when the login may be back after a restart.
    pub async fn logout(&self, name: &ScenarioName) -> Result<Logout, LoginError> {
        let kept = self.no_longer_configured(name);
        let login = kept.map_or_else(|| self.of(name), Ok)?;
        logout::logout(login).await
    }

    /// The name of a scenario for which a login is kept, whether it is configured or not.
    pub fn kept(&self, name: &str) -> Option<ScenarioName> {
        let name: ScenarioName = name.parse().ok()?;
        let is_kept = self.logins().contains_key(&name) || self.stored().contains_key(&name);
        is_kept.then_some(name)
    }

    /// The login that was stored for a scenario that is configured no more, which only a logout
    /// looks for. It is taken out.
    fn no_longer_configured(&self, name: &ScenarioName) -> Option<Arc<LoginTokens>> {
        let login = StoredLogin::parse(&self.stored().remove(name)?)?;
        let server = Url::parse(&login.server).ok()?;
        Some(LoginTokens::new(
            name.clone(),
            server,
            None,
            Arc::clone(&self.parts),
            Some(login),
        ))
    }

    fn of(&self, name: &ScenarioName) -> Result<Arc<LoginTokens>, LoginError> {
        self.logins().get(name).cloned().ok_or_else(|| {
            LoginError::NotTaken(format!(
                "`{name}` takes no login: only a scenario at an `http` or `https` address that the configuration names \
                 does, and no other `auth` may be set for it"
            ).into())
        })
    }

    fn stored(&self) -> MutexGuard<'_, HashMap<ScenarioName, Secret>> {
        self.stored.lock()
    }

    fn logins(&self) -> MutexGuard<'_, HashMap<ScenarioName, Arc<LoginTokens>>> {
        self.logins.lock()
    }

    fn client(&self, client: &OAuthClient, server: &Url) -> Arc<dyn TokenSource> {
        let mut all = self.clients.lock();
        let known = all
            .iter()
            .find(|(other, url, _)| other == client && url == server);
        if let Some((_, _, tokens)) = known {
            return Arc::clone(tokens) as Arc<dyn TokenSource>;
        }
        let parts = (self.parts.secrets.clone(), self.parts.clock);
        let tokens = Arc::new(ClientTokens::new(
            &Weak::clone(&self.parts.http),
            parts,
            client,
            server,
        ));
        if all.len() == CLIENTS_MAX {
            all.remove(0);
        }
        all.push((client.clone(), server.clone(), Arc::clone(&tokens)));
        tokens
    }

    fn login(
        &self,
        name: &ScenarioName,
        client: Option<&OAuthClient>,
        server: &Url,
    ) -> Arc<dyn TokenSource> {
        let mut all = self.logins();
        if let Some(login) = all
            .get(name)
            .filter(|login| login.server == *server && login.client.as_ref() == client)
        {
            return Arc::clone(login) as Arc<dyn TokenSource>;
        }
        let stored = self.stored().remove(name);
        let stored = stored.as_ref().and_then(StoredLogin::parse);
        // What changed may be the place of the secret alone.
        let stored = stored.or_else(|| all.get(name).and_then(|before| before.known()));
        let login = LoginTokens::new(
            name.clone(),
            server.clone(),
            client.cloned(),
            Arc::clone(&self.parts),
            stored,
        );
        all.insert(name.clone(), Arc::clone(&login));
        login
    }
}

impl TokenSources for OAuthTokens {
    fn source(&self, target: &HttpTarget) -> Option<Arc<dyn TokenSource>> {
        match (&target.auth, &target.login) {
            (Some(Auth::OAuth(client)), _) if client.token_url.is_some() => {
                Some(self.client(client, &target.url))
            }
            (Some(Auth::OAuth(client)), Some(name)) => {
                Some(self.login(name, Some(client.as_ref()), &target.url))
            }
            (None, Some(name)) => Some(self.login(name, None, &target.url)),
            _ => None,
        }
    }
}

/// The names alone.
impl fmt::Debug for OAuthTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.logins().keys()).finish()
    }
}
