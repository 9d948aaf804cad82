//! Logging in for a scenario from its page: the browser is sent to the authorization server, and
//! comes back to this daemon.

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::header::HOST;
use http::{HeaderMap, HeaderName, StatusCode};
use maud::{Markup, html};
use url::Url;

use crate::model::ScenarioName;
use crate::server::api::login::finished;
use crate::server::api::scenarios::find;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::segment;
use crate::server::http::error::Problem;
use crate::server::{ServerState, SharedState};

/// Where the browser comes back to.
pub(super) const CALLBACK: &str = "/login/callback";
/// The header by which htmx leaves the page.
const LEAVE: HeaderName = HeaderName::from_static("hx-redirect");

/// `POST /dashboard/scenarios/{name}/login`: sends the browser to the authorization server.
pub(super) async fn begin(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    asked: HeaderMap,
) -> Result<Response, Problem> {
    let name = find(&shared.reader.snapshot(), &name)?.name.clone();
    // The guard has seen that this host is ours.
    let host = asked.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let redirect = Url::parse(&format!("http://{host}{CALLBACK}"));
    let redirect = redirect.map_err(|_| Problem::bad_request("the `Host` of the request is no host"))?;
    let started = shared.logins.begin(&name, &redirect).await?;
    Ok((StatusCode::NO_CONTENT, [(LEAVE, started.authorization_url.to_string())]).into_response())
}

/// `GET /login/callback`: the browser comes back.
pub(super) async fn callback(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    asked: HeaderMap,
) -> Result<Response, ErrorPage> {
    let name = finished(&shared, raw.as_deref().unwrap_or_default()).await?;
    let (snapshot, now) = current_snapshot(&shared);
    let main = html! {
        h1 { "Logged in" }
        p { "callsheet is logged in for " (name) ", and renews that by itself." }
        p { a href={ "/dashboard/scenarios/" (segment(name.as_str())) } { "Its page" } }
    };
    let page = Page { nav: Some(NavPage::Scenarios), title: "Logged in", snapshot: &snapshot, now };
    html_response(&asked, page.render(&main))
}

/// The buttons of a scenario that takes a login.
pub(super) fn buttons(shared: &ServerState, name: &ScenarioName) -> Markup {
    let path = segment(name.as_str());
    html! {
        @if shared.logins.takes_login(name) {
            button id={ "login-" (name) } type="button" hx-post={ "/dashboard/scenarios/" (path) "/login" } hx-swap="none"
                aria-label={ "Log in for " (name) } { "Log in" }
            button id={ "logout-" (name) } type="button" hx-delete={ "/api/v1/scenarios/" (path) "/login" } hx-swap="none"
                hx-confirm={ "Log out of " (name) "? Its tokens are deleted here." }
                aria-label={ "Log out of " (name) } { "Log out" }
        }
    }
}
