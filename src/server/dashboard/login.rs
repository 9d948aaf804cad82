//! Logging in for a scenario from its page: the browser is sent to the authorization server, and
//! comes back to this daemon.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use jiff::Timestamp;
use maud::{Markup, html};
use url::Url;

use crate::model::ScenarioName;
use crate::server::api::login::finished;
use crate::server::api::scenarios::find;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{IN, foreign, relative_time, segment, sentence};
use crate::server::http::error::Problem;
use crate::server::{ServerState, SharedState};
use crate::transports::http::credentials::oauth::{CallbackAddress, LoginState, LoginStatus};

/// Where the browser comes back to.
pub(super) const CALLBACK: &str = "/login/callback";
/// The same for one authorization server alone.
pub(super) const CALLBACK_OF_ISSUER: &str = "/login/callback/{issuer}";
/// The header by which htmx leaves the page.
const LEAVE: HeaderName = HeaderName::from_static("hx-redirect");

/// `POST /dashboard/scenarios/{name}/login`: sends the browser to the authorization server.
pub(super) async fn begin(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = find(&shared.reader.snapshot(), &name)?.name.clone();
    let callback = CallbackAddress {
        shared: callback_for(&uri, &headers)?,
        takes_issuer_path: true,
    };
    let started = shared.logins.begin(&name, &callback).await?;
    Ok((
        StatusCode::NO_CONTENT,
        [(LEAVE, started.authorization_url.to_string())],
    )
        .into_response())
}

/// The address of this daemon that the browser comes back to: the one that it uses. The guard has
/// seen that its host is ours.
fn callback_for(uri: &Uri, headers: &HeaderMap) -> Result<Url, Problem> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let unknown =
        || Problem::bad_request("the request names no host that a browser could come back to");
    // HTTP/2 has no `Host`.
    let host = uri
        .authority()
        .map(Authority::as_str)
        .or(text(HOST))
        .filter(|host| !host.is_empty());
    let host = host.ok_or_else(unknown)?;
    // A proxy that ends TLS leaves the scheme in `Origin` alone.
    let is_https = text(ORIGIN).and_then(|origin| origin.strip_prefix("https://")) == Some(host);
    let scheme = if is_https { "https" } else { "http" };
    Url::parse(&format!("{scheme}://{host}{CALLBACK}")).map_err(|_| unknown())
}

/// `GET /login/callback` and `GET /login/callback/{issuer}`: the browser comes back.
pub(super) async fn callback(
    State(shared): State<SharedState>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let query = uri.query().unwrap_or_default();
    let name = finished(&shared, query, Some(uri.path())).await?;
    let (snapshot, now) = current_snapshot(&shared);
    let renews = shared
        .logins
        .status(&name)
        .is_ok_and(|status| status.renews);
    let main = html! {
        h1 { "Logged in" }
        p { "callsheet is logged in for " (name) ". " @if renews { "It renews that by itself." } @else { "That cannot be renewed." } }
        p { a href={ "/dashboard/scenarios/" (segment(name.as_str())) } { "Its page" } }
    };
    let page = Page {
        nav: Some(NavPage::Scenarios),
        title: "Logged in",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// The buttons of a scenario that takes a login: "Log in" always, for a person may need more scopes
/// or another account, and "Log out" where there is something to forget.
pub(super) fn buttons(shared: &ServerState, name: &ScenarioName) -> Markup {
    let path = segment(name.as_str());
    html! {
        @if let Ok(status) = shared.logins.status(name) {
            button id={ "login-" (name) } type="button" hx-post={ "/dashboard/scenarios/" (path) "/login" } hx-swap="none"
                aria-label={ "Log in for " (name) } { "Log in" }
            @if status.state != LoginState::LoggedOut {
                button id={ "logout-" (name) } type="button" hx-delete={ "/api/v1/scenarios/" (path) "/login" } hx-swap="none"
                    hx-confirm={ "Log out of " (name) "? Its tokens are deleted here, and revoked at its server where that can be done." }
                    aria-label={ "Log out of " (name) } { "Log out" }
            }
        }
    }
}

/// The state of a login, as a row of the scenario's identity. Nothing where it takes none.
pub(super) fn state(shared: &ServerState, name: &ScenarioName, now: Timestamp) -> Markup {
    html! {
        @if let Ok(LoginStatus { state, issuer, expires_at, renews, reason, .. }) = shared.logins.status(name) {
            dt { "Login" }
            dd id={ "login-state-" (name) } data-login=(state.as_str()) {
                @match state {
                    LoginState::LoggedOut => "not logged in",
                    LoginState::Waiting => "waits for a person to finish it",
                    LoginState::Ended => "ended",
                    LoginState::LoggedIn => {
                        "logged in"
                        @if let Some(issuer) = &issuer { " at " code { (foreign(issuer, 200)) } }
                        @if renews { ", renewed by itself" } @else if let Some(at) = expires_at { ", lapses " (relative_time(at, now, IN)) }
                    }
                }
                @if let Some(reason) = &reason { ": " (sentence(reason, 400)) }
            }
        }
    }
}
