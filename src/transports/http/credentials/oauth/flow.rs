//! A login from its beginning to its end: the authorization code with a proof key (RFC 6749 section
//! 4.1, RFC 7636), for one resource (RFC 8707).

use std::sync::Arc;
use std::time::Duration;

use url::Url;
use url::form_urlencoded::parse;

use super::callback::{CallbackAddress, LoginAddress};
use super::client::ClientChoice;
use super::error::{LoginError, LoginProblem};
use super::guard::AddressGuard;
use super::login::{LoginTokens, STOPS};
use super::metadata::{self, ResourceMetadata, ServerMetadata, shown};
use super::pending::PendingLogin;
use super::random;
use super::scopes::usable;
use super::stored::{StoredLogin, StoredTokens};
use super::token_request::TokenRefusal;
use crate::model::{LoginCallback, Secret};

/// How long all servers together may take before a person can go on.
const WHOLE: Duration = Duration::from_secs(60);
/// How long a person has for a login.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often a login may be begun for the same missing scopes.
const MAX_STEPS: u8 = 3;

/// A login that a person has to finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedLogin {
    /// What the person has to open.
    pub authorization_url: Url,
    /// How long they have.
    pub expires_in: Duration,
    /// Where the browser comes back to.
    pub redirect: Url,
}

/// What an authorization server sends back with the browser (RFC 6749 section 4.1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRedirect {
    /// `state`
    pub state: String,
    /// `code`
    pub code: Option<Secret>,
    /// `iss` (RFC 9207)
    pub issuer: Option<String>,
    /// `error`
    pub error: Option<String>,
    /// The path of the address that the browser came back to. `None` is
    /// [the shared one](CallbackAddress::shared).
    pub path: Option<String>,
}

impl LoginRedirect {
    /// Reads the query of a redirect. The first member of a name counts.
    pub fn parse(query: &str) -> Self {
        let value = |name: &str| {
            parse(query.as_bytes())
                .find(|(key, _)| key == name)
                .map(|(_, value)| value)
        };
        Self {
            state: value("state").unwrap_or_default().into_owned(),
            code: value("code").map(|code| Secret::new(&*code)),
            issuer: value("iss").map(Into::into),
            error: value("error").map(Into::into),
            path: None,
        }
    }

    /// The same at this path.
    #[must_use]
    pub fn at(self, path: Option<&str>) -> Self {
        Self {
            path: path.map(str::to_owned),
            ..self
        }
    }
}

/// Begins a login. It replaces one that was begun before. The browser comes back to an address of
/// `callback`. `others` are the logins for other scenarios.
pub(super) async fn begin(
    login: &LoginTokens,
    callback: &CallbackAddress,
    others: &[Arc<LoginTokens>],
) -> Result<StartedLogin, LoginError> {
    let late = |_| {
        let limit = WHOLE.as_secs();
        Err(LoginError::Unusable(
            format!(
                "the servers of `{}` took longer than {limit} s to describe themselves",
                login.name
            )
            .into(),
        ))
    };
    tokio::time::timeout(WHOLE, prepare(login, callback, others))
        .await
        .unwrap_or_else(late)
}

/// Finds the servers and the client for a login, and what a person has to open.
async fn prepare(
    login: &LoginTokens,
    callback: &CallbackAddress,
    others: &[Arc<LoginTokens>],
) -> Result<StartedLogin, LoginError> {
    let stops = || LoginError::Unusable(STOPS.to_owned().into());
    let http = login.parts.http.upgrade().ok_or_else(stops)?;
    let settings = login.parts.settings.load_full();
    let guard = AddressGuard {
        http: &http,
        scenario: &login.server,
        hosts: &settings.hosts,
    };
    let challenge = login.wanted().challenge.clone();
    let named = challenge
        .as_ref()
        .and_then(|challenge| challenge.resource_metadata.as_deref());
    let unknown = |why| {
        unusable(format!(
            "it cannot be found where to log in for `{}`: {why}",
            login.name
        ))
    };
    let resource = metadata::of_resource(&guard, named)
        .await
        .map_err(unknown)?;
    check_issuer(login, &resource.issuer)?;
    let server = metadata::of_server(&guard, &resource.issuer)
        .await
        .map_err(unusable)?;
    let known = known(login, &server)?;
    let address = callback_for(login, &server, callback, others)?;
    let granted = known
        .as_ref()
        .and_then(|known| known.tokens.as_ref())
        .map(|tokens| tokens.scopes.clone());
    let known = known.map(|known| known.client);
    let missing = challenge
        .as_ref()
        .filter(|challenge| challenge.lacks_scope());
    let missing = missing.map(|challenge| challenge.scope.clone().unwrap_or_default());
    if let Some(missing) = &missing {
        count_step(login, missing)?;
    }
    let scope = challenge.and_then(|challenge| challenge.scope);
    let scopes = scopes(
        login,
        scope.as_deref(),
        &resource,
        &server,
        granted.filter(|_| missing.is_some()).unwrap_or_default(),
    );
    let document = settings.client_metadata_url.as_ref();
    let choice = ClientChoice {
        configured: login.client.as_ref(),
        document,
        known,
        address: &address,
    };
    let client = choice.take(&guard, &server).await.map_err(unusable)?;
    let (state, verifier) = random::text().zip(random::text()).ok_or_else(stops)?;
    let mut url = server.authorization.clone();
    url.set_fragment(None);
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", address.url.as_str())
        .append_pair("state", &state)
        .append_pair("code_challenge", &random::challenge(&verifier))
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &resource.resource);
    if !scopes.is_empty() {
        url.query_pairs_mut()
            .append_pair("scope", &scopes.join(" "));
    }
    let redirect = address.url.clone();
    let resource = resource.resource;
    let until = login.parts.clock.now() + PATIENCE;
    let pending = PendingLogin {
        until,
        state,
        verifier,
        address,
        server,
        resource,
        client,
        scopes,
    };
    let mut wanted = login.wanted();
    wanted.replaced = wanted
        .pending
        .replace(Box::new(pending))
        .map(|before| before.state);
    Ok(StartedLogin {
        authorization_url: url,
        expires_in: PATIENCE,
        redirect,
    })
}

/// Fails where the configuration names another authorization server than the scenario does.
fn check_issuer(login: &LoginTokens, named: &str) -> Result<(), LoginError> {
    let wanted = login
        .client
        .as_ref()
        .and_then(|client| client.issuer.as_deref());
    match wanted.filter(|wanted| *wanted != named) {
        Some(wanted) => Err(LoginError::Refused(LoginProblem::new(
            format!(
                "`{}` names the authorization server {:?}, which is not the `issuer` of its `auth.oauth`, {:?}",
                login.name,
                shown(named),
                shown(wanted)
            ),
            "correct that if the scenario is right",
        ))),
        None => Ok(()),
    }
}

/// The earlier login at this server. Nothing of one at another server is used.
///
/// Fails where the client is the operator's own: its secret is for the server at which it is
/// registered, and the scenario names another one now.
fn known(login: &LoginTokens, server: &ServerMetadata) -> Result<Option<StoredLogin>, LoginError> {
    let Some(known) = login.known() else {
        return Ok(None);
    };
    if known.issuer == server.issuer {
        return Ok(Some(known));
    }
    if login.client.is_none() {
        return Ok(None);
    }
    let before = shown(&known.issuer);
    let now = shown(&server.issuer);
    let name = &login.name;
    let what = format!(
        "`{name}` names another authorization server than at its last login: {now:?}, not {before:?}, where the client of \
         its `auth` is registered"
    );
    let next = format!(
        "if that is right, correct `auth`, run `callsheet logout {name}`, and log in again"
    );
    Err(LoginError::Refused(LoginProblem::new(what, next)))
}

/// The address that a login at this server comes back to. `others` are the logins for other
/// scenarios.
///
/// The code of one authorization server must not reach another, which may have sent the browser on
/// to it. Such an answer is recognised by its `iss` (RFC 9207), or else by the address that it came
/// to, which is then of one server alone (RFC 9700 section 4.4.2). An address that the operator
/// registered by hand may be without both, as long as it is known which server has registered it.
fn callback_for(
    login: &LoginTokens,
    server: &ServerMetadata,
    callback: &CallbackAddress,
    others: &[Arc<LoginTokens>],
) -> Result<LoginAddress, LoginError> {
    let kind = match &login.client {
        Some(client) => client.callback,
        None if server.sends_issuer => LoginCallback::Shared,
        None => LoginCallback::Issuer,
    };
    let issuer = &server.issuer;
    let name = &login.name;
    if kind == LoginCallback::Issuer {
        return callback.for_issuer(issuer).ok_or_else(|| {
            let what = format!(
                "the browser has to come back to an address for {:?} alone, which the program that began this login does \
                 not take",
                shown(issuer)
            );
            let next = format!(
                "log in with `callsheet login {name}` of this version, or on the scenario's page"
            );
            LoginError::Refused(LoginProblem::new(what, next))
        });
    }
    let is_certain = server.sends_issuer || login.is_registered_at(issuer);
    let may_be_elsewhere = |other: &&Arc<LoginTokens>| {
        other.name != *name && other.comes_back_to_shared() && !other.is_registered_at(issuer)
    };
    let other = others.iter().find(may_be_elsewhere);
    let Some(other) = other.filter(|_| !is_certain) else {
        return Ok(callback.for_all());
    };
    let what = format!(
        "`auth.oauth` of `{name}` has no `issuer`, and the client of `{}` comes back to the same address, so the code of \
         one authorization server could reach another",
        other.name
    );
    let next = format!(
        "add `issuer = \"{}\"` to it if its client is registered at that server",
        shown(issuer)
    );
    Err(LoginError::Refused(LoginProblem::new(what, next)))
}

/// Counts a login for these missing scopes. Fails when there were enough of them.
fn count_step(login: &LoginTokens, missing: &str) -> Result<(), LoginError> {
    let mut wanted = login.wanted();
    let before = if wanted.steps.0 == missing {
        wanted.steps.1
    } else {
        0
    };
    if before >= MAX_STEPS {
        let name = &login.name;
        let what = format!(
            "{MAX_STEPS} logins did not give the scopes that `{name}` wants ({missing}); its authorization server does not \
             grant them to you"
        );
        return Err(LoginError::Refused(LoginProblem::new(
            what,
            format!("`callsheet logout {name}` begins anew"),
        )));
    }
    wanted.steps = (missing.to_owned(), before + 1);
    Ok(())
}

/// What to request: what the challenge names, or else the configuration, or else the scenario; and
/// that the login can be renewed, where the server has a scope for that.
fn scopes(
    login: &LoginTokens,
    challenge: Option<&str>,
    resource: &ResourceMetadata,
    server: &ServerMetadata,
    granted: Vec<String>,
) -> Vec<String> {
    let configured = login
        .client
        .as_ref()
        .map(|client| client.scopes.clone())
        .unwrap_or_default();
    let mut all = granted;
    match challenge {
        Some(challenge) => all.extend(
            configured
                .into_iter()
                .chain(challenge.split(' ').map(str::to_owned)),
        ),
        None if configured.is_empty() => all.extend(resource.scopes.iter().cloned()),
        None => all.extend(configured),
    }
    all.extend(
        server
            .scopes
            .iter()
            .filter(|scope| *scope == "offline_access")
            .cloned(),
    );
    usable(all)
}

/// Ends a login with what the browser came back with.
pub(super) async fn finish(
    login: &LoginTokens,
    redirect: &LoginRedirect,
) -> Result<(), LoginError> {
    let again = format!("begin it anew with `callsheet login {}`", login.name);
    let Some(pending) = login.wanted().pending.take() else {
        return Err(LoginError::NotUnderWay(LoginProblem::new(
            "no login is under way",
            again,
        )));
    };
    if login.parts.clock.now() >= pending.until {
        let what = format!("the login took longer than {} s", PATIENCE.as_secs());
        return Err(LoginError::NotUnderWay(LoginProblem::new(what, again)));
    }
    let issuer = &pending.server.issuer;
    if !pending.address.is_at(redirect.path.as_deref()) {
        let what = format!(
            "the browser came back to another address than that of {:?}, so the answer may be of another authorization server",
            shown(issuer)
        );
        return Err(LoginError::Refused(LoginProblem::new(what, again)));
    }
    // RFC 9207 section 2.4: compared as it is written.
    match &redirect.issuer {
        Some(named) if named != issuer => {
            let named = shown(named);
            let issuer = shown(issuer);
            let what =
                format!("the answer is of another authorization server: {named:?}, not {issuer:?}");
            return Err(LoginError::Refused(LoginProblem::new(what, again)));
        }
        None if pending.server.sends_issuer => {
            let issuer = shown(issuer);
            let what = format!("the answer does not name {issuer:?} as its server");
            return Err(LoginError::Refused(LoginProblem::new(what, again)));
        }
        _ => {}
    }
    if let Some(code) = &redirect.error {
        return Err(LoginError::Refused(
            format!("{} refused the login: {}", shown(issuer), shown(code)).into(),
        ));
    }
    let Some(code) = &redirect.code else {
        let what = format!("{} answered without a code", shown(issuer));
        return Err(LoginError::Refused(LoginProblem::new(what, again)));
    };
    exchange(login, *pending, code).await
}

/// A server said something that cannot be used.
fn unusable(why: String) -> LoginError {
    LoginError::Unusable(why.into())
}

/// Exchanges the code for tokens (RFC 6749 section 4.1.3).
async fn exchange(
    login: &LoginTokens,
    pending: PendingLogin,
    code: &Secret,
) -> Result<(), LoginError> {
    let mut form = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code.expose().to_owned()),
        ("redirect_uri", pending.address.url.as_str().to_owned()),
        ("code_verifier", pending.verifier),
        ("resource", pending.resource.clone()),
    ];
    let header = login
        .prove(&pending.client, &mut form)
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let endpoint = pending.server.token.as_str().to_owned();
    let granted =
        login
            .request(&endpoint, header, &form)
            .await
            .map_err(|refusal| match refusal {
                TokenRefusal::Refused(code) => LoginError::Refused(
                    format!(
                        "{} refused the login: {code}",
                        shown(&pending.server.issuer)
                    )
                    .into(),
                ),
                TokenRefusal::Failed(error) => unusable(error.to_string()),
            })?;
    let tokens = StoredTokens::of(&granted, None, pending.scopes, login.parts.clock);
    let stored = StoredLogin {
        server: login.server.as_str().to_owned(),
        issuer: pending.server.issuer,
        token_endpoint: endpoint,
        revocation_endpoint: pending.server.revocation,
        resource: pending.resource,
        client: pending.client,
        tokens: Some(tokens),
    };
    login.wanted().challenge = None;
    if login.accept(stored).await {
        return Ok(());
    }
    let name = &login.name;
    let what = format!(
        "`{name}` is logged in until the daemon ends, for the login could not be stored; the log says why"
    );
    Err(LoginError::NotStored(LoginProblem::new(
        what,
        "log in again once that is corrected",
    )))
}
