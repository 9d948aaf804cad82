//! Logins of persons for scenarios: begun here, finished with what the browser came back with.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::{Host, Url};

use crate::model::{ScenarioName, ScenarioState};
use crate::server::api::scenarios::find;
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;
use crate::server::http::typed_body::ApiJson;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::{ServerState, SharedState};
use crate::transports::http::credentials::oauth::{
    CallbackAddress, LoginError, LoginRedirect, LoginStatus, Logout, Revocation, StartedLogin,
};

/// Without a login.
pub(in crate::server) const NO_LOGIN: RefusalSpec = refusal(
    409,
    "It takes no login, or there is none under way; the answer says why.",
);
/// With a server that cannot be used.
pub(in crate::server) const UNUSABLE: RefusalSpec = refusal(
    502,
    "A server says something that cannot be used, or does not answer.",
)
.with_example(|| LoginError::Unusable("https://h/ has no JSON object".to_owned().into()).into());

/// Where the browser comes back to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LoginStart")]
pub(in crate::server) struct LoginStartBody {
    /// An `http` address of loopback with a port, at which the caller waits for the browser.
    redirect_uri: String,
    /// Whether the caller waits at each address below `redirect_uri`, too, and gives its path to
    /// `finishLogin`. Authorization servers that do not name themselves in their answers need an
    /// address each.
    #[serde(default)]
    takes_issuer_path: bool,
}

/// What the browser came back with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LoginFinish")]
pub(in crate::server) struct LoginFinishBody {
    /// The query of the address that it came back to, as it is.
    query: String,
    /// The path of that address. It is needed where `takes_issuer_path` was true.
    path: Option<String>,
}

/// A login that a person has to finish.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StartedLogin")]
pub(in crate::server) struct StartedLoginJson {
    /// What the person opens in a browser.
    authorization_url: String,
    /// How long they have.
    expires_in_ms: u64,
    /// Where the browser comes back to: the address that was given, or one below it.
    redirect_uri: String,
}

/// What is known of a login; nothing of it is secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Login")]
pub(in crate::server) struct LoginJson {
    /// The scenario.
    name: String,
    /// `logged-out`, `waiting` for a person, `logged-in`, or `ended` because it was not renewed.
    state: &'static str,
    /// The authorization server.
    issuer: Option<String>,
    /// What its token allows.
    scopes: Vec<String>,
    /// When its token lapses, if that is known.
    expires_at: Option<String>,
    /// Whether it is renewed without a person.
    renews: bool,
    /// Why it ended or was not renewed.
    reason: Option<String>,
}

/// Whether a login was forgotten.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Logout")]
pub(in crate::server) struct LogoutJson {
    /// The scenario.
    name: String,
    /// Whether there was a login.
    was_logged_in: bool,
    /// Whether its authorization server revoked its tokens.
    revoked: bool,
    /// Why it did not, if there were tokens.
    reason: Option<String>,
}

/// A login, for the description of the API.
pub(in crate::server) fn logged_in() -> Value {
    json!({
        "name": "tracker",
        "state": "logged-in",
        "issuer": "https://login.example",
        "scopes": ["issues:read"],
        "expires_at": "2026-03-01T10:30:00Z",
        "renews": true,
        "reason": null,
    })
}

/// Where the caller waits for the browser, for the description of the API.
pub(in crate::server) fn redirect() -> Value {
    json!({"redirect_uri": "http://127.0.0.1:49152/callback", "takes_issuer_path": true})
}

/// What the browser came back with, for the description of the API.
pub(in crate::server) fn came_back() -> Value {
    json!({"query": "code=9b2f71&state=5a1c9f3e", "path": "/callback/4c1f0e6d9a2b7c35e8d01f42"})
}

/// A login that was begun, for the description of the API.
pub(in crate::server) fn started() -> Value {
    let url =
        "https://login.example/authorize?response_type=code&client_id=callsheet&state=5a1c9f3e";
    let redirect = "http://127.0.0.1:49152/callback/4c1f0e6d9a2b7c35e8d01f42";
    json!({"authorization_url": url, "expires_in_ms": 600_000, "redirect_uri": redirect})
}

/// A login that was forgotten, for the description of the API.
pub(in crate::server) fn logged_out() -> Value {
    json!({"name": "tracker", "was_logged_in": true, "revoked": true, "reason": null})
}

impl From<LoginError> for Problem {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::NotTaken(_) | LoginError::NotUnderWay(_) | LoginError::Refused(_) => {
                Self::from_error(StatusCode::CONFLICT, &error)
            }
            LoginError::Unusable(_) => Self::from_error(StatusCode::BAD_GATEWAY, &error),
            LoginError::NotStored(_) => Self::busy_with(&error),
        }
    }
}

/// `GET /api/v1/scenarios/{name}/login`: what is known of it.
pub(in crate::server) async fn show(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let name = known(&shared, &name)?;
    status_of(&shared, &name)
}

/// `POST /api/v1/scenarios/{name}/login`: begins one.
pub(in crate::server) async fn begin(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<LoginStartBody>,
) -> Result<Response, Problem> {
    let name = known(&shared, &name)?;
    let redirect = Url::parse(&body.redirect_uri).ok().filter(is_loopback);
    let next = "`redirect_uri` has to be an `http` address of loopback with a port, such as `http://127.0.0.1:8123/callback`";
    let redirect = redirect.ok_or_else(|| Problem::bad_request(next))?;
    let callback = CallbackAddress {
        shared: redirect,
        takes_issuer_path: body.takes_issuer_path,
    };
    let started = shared.logins.begin(&name, &callback).await?;
    let StartedLogin {
        authorization_url,
        expires_in,
        redirect,
    } = started;
    let expires_in_ms = u64::try_from(expires_in.as_millis()).unwrap_or(u64::MAX);
    shared_json::json(&StartedLoginJson {
        authorization_url: authorization_url.into(),
        expires_in_ms,
        redirect_uri: redirect.into(),
    })
}

/// `POST /api/v1/scenarios/{name}/login/finish`: ends one, and polls the scenario.
pub(in crate::server) async fn finish(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<LoginFinishBody>,
) -> Result<Response, Problem> {
    known(&shared, &name)?;
    let name = finished(&shared, &body.query, body.path.as_deref()).await?;
    status_of(&shared, &name)
}

/// `DELETE /api/v1/scenarios/{name}/login`: forgets it, has its tokens revoked, and polls the
/// scenario.
pub(in crate::server) async fn logout(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    // A login outlives its scenario in the configuration.
    let name = known(&shared, &name).or_else(|unknown| shared.logins.kept(&name).ok_or(unknown))?;
    let logout = shared.logins.logout(&name).await;
    polled(&shared, &name, false).await;
    let Logout {
        was_logged_in,
        revocation,
    } = logout?;
    let (revoked, reason) = match revocation {
        Revocation::Revoked => (true, None),
        Revocation::NotRevoked(why) => (false, Some(why)),
        Revocation::NotNeeded => (false, None),
    };
    shared_json::json(&LogoutJson {
        name: name.to_string(),
        was_logged_in,
        revoked,
        reason,
    })
}

/// Ends the login that this query of a redirect belongs to, and polls the scenario. `path` is that
/// of the address that the browser came back to, if it is known.
pub(in crate::server) async fn finished(
    shared: &ServerState,
    query: &str,
    path: Option<&str>,
) -> Result<ScenarioName, Problem> {
    let redirect = LoginRedirect::parse(query).at(path);
    let name = shared.logins.finish(&redirect).await?;
    polled(shared, &name, true).await;
    Ok(name)
}

/// Polls a scenario so that what changed is seen at once. That it fails shows in its health.
async fn polled(shared: &ServerState, name: &ScenarioName, is_logged_in: bool) {
    // The first may join a poll under way, which had the credential of before.
    for _ in 0..2 {
        if is_logged_in {
            shared.engine.await_new_tools(name.clone()).await;
        }
        match shared.engine.refresh(vec![name.clone()]).await {
            Ok(healths)
                if healths
                    .iter()
                    .any(|health| health.state == ScenarioState::NeedsAuthorization)
                    != is_logged_in =>
            {
                return;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(scenario = %name, %error, "not polled after a login or logout");
                return;
            }
        }
    }
}

fn status_of(shared: &ServerState, name: &ScenarioName) -> Result<Response, Problem> {
    let LoginStatus {
        state,
        issuer,
        scopes,
        expires_at,
        renews,
        reason,
    } = shared.logins.status(name)?;
    let name = name.to_string();
    let expires_at = expires_at.map(|at| at.to_string());
    shared_json::json(&LoginJson {
        name,
        state: state.as_str(),
        issuer,
        scopes,
        expires_at,
        renews,
        reason,
    })
}

fn known(shared: &ServerState, name: &str) -> Result<ScenarioName, Problem> {
    Ok(find(&shared.reader.snapshot(), name)?.name.clone())
}

/// Only a program of this machine may wait for the browser, for the code comes back there.
fn is_loopback(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    is_here
        && url.scheme() == "http"
        && url.port().is_some()
        && url.fragment().is_none()
        && url.username().is_empty()
}
