//! The common parts of all pages: the frame, the headers, the content coding and error pages.

use std::ops::Deref;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use crate::catalog::Snapshot;
use crate::server::ServerState;
use crate::server::dashboard::assets;
use crate::server::dashboard::nav_numbers::{NavNumber, NavNumbers};
use crate::server::dashboard::security_headers::add_security_headers;
use crate::server::dashboard::text::{foreign, minute, segment};
use crate::server::http::content_coding;
use crate::server::http::error::Problem;
use crate::views::Coding;

/// htmx without the features that the policy forbids: no inline style, no code from strings, no
/// requests to other hosts, no pages kept in the browser's storage.
const HTMX: &str = r#"{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"selfRequestsOnly":true,"historyCacheSize":0,"defaultSwapStyle":"innerHTML","scrollIntoViewOnBoost":false}"#;
/// Smaller bodies (in bytes) are not compressed.
const WORTH_CODING: usize = 1_000;

/// The pages in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavPage {
    Scenarios,
    Tools,
    Calls,
    Findings,
    Preferences,
    Bundles,
    Configuration,
    Api,
}

impl NavPage {
    const ALL: [Self; 8] = [
        Self::Scenarios,
        Self::Tools,
        Self::Calls,
        Self::Findings,
        Self::Preferences,
        Self::Bundles,
        Self::Configuration,
        Self::Api,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::Scenarios => "/",
            Self::Tools => "/dashboard/tools",
            Self::Calls => "/dashboard/calls",
            Self::Findings => "/dashboard/findings",
            Self::Preferences => "/dashboard/preferences",
            Self::Bundles => "/dashboard/bundles",
            Self::Configuration => "/dashboard/configuration",
            Self::Api => "/docs",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Scenarios => "Scenarios",
            Self::Tools => "Tools",
            Self::Calls => "Calls",
            Self::Findings => "Findings",
            Self::Preferences => "Preferences",
            Self::Bundles => "Bundles",
            Self::Configuration => "Configuration",
            Self::Api => "API",
        }
    }

    /// The number behind its name.
    fn number(self) -> Option<NavNumber> {
        match self {
            Self::Scenarios => Some(NavNumber::Scenarios),
            Self::Calls => Some(NavNumber::Calls),
            Self::Findings => Some(NavNumber::Findings),
            _ => None,
        }
    }
}

/// What a page is rendered from: a snapshot, and the numbers of the navigation.
pub(super) struct PageSource {
    pub(super) snapshot: Arc<Snapshot>,
    numbers: NavNumbers,
}

impl Deref for PageSource {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// One page.
pub(super) struct Page<'a> {
    /// `None` for a page that is not in the navigation.
    pub(super) nav: Option<NavPage>,
    pub(super) title: &'a str,
    pub(super) snapshot: &'a PageSource,
    pub(super) now: Timestamp,
}

impl Page<'_> {
    /// The whole document around `main`.
    pub(super) fn render(&self, main: &Markup) -> Markup {
        let live = format!("/dashboard/live?seen={}", self.snapshot.sequence);
        html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.title, self.now))
                body hx-ext="sse,json-body" sse-connect=(live) {
                    a class="skip" href="#main" { "Skip to the content" }
                    (self.banner())
                    main id="main" tabindex="-1" { (main) }
                    footer {
                        span { "callsheet " (env!("CARGO_PKG_VERSION")) }
                        " · revision " code { (self.snapshot.catalog.revision()) }
                        " · page made " (minute(self.now))
                    }
                    div id="toasts" role="alert" aria-live="assertive" {}
                }
            }
        }
    }

    fn banner(&self) -> Markup {
        html! {
            header class="top" {
                (navigation(self.nav, self.snapshot.numbers))
                p id="link" class="link" data-link="none" role="status" { span class="dot" aria-hidden="true" {} span { "Not live: it needs JavaScript" } }
            }
            @if let Some(refused) = self.snapshot.configuration.as_ref().and_then(|state| state.refused.as_ref()) {
                section id="config-refused" class="banner" aria-labelledby="config-refused-title" {
                    h2 id="config-refused-title" { "The configuration cannot be used; the previous one is active" }
                    @if let Some(problem) = refused.problems.first() {
                        p { (foreign(&problem.message, 1_000)) " " span class="quiet" { (foreign(&problem.hint, 400)) } }
                    }
                    p { a href=(NavPage::Configuration.path()) { "All that is not active" } }
                }
            }
            p id="news" class="news" role="status" aria-live="polite" sse-swap="news" {}
        }
    }
}

/// The links to all pages, with the numbers that the page's stream keeps current.
fn navigation(current: Option<NavPage>, numbers: NavNumbers) -> Markup {
    html! {
        a class="brand" href="/" { img src=(assets::href("icon.svg")) alt="" width="22" height="22"; "callsheet" }
        nav aria-label="Pages" {
            @for place in NavPage::ALL {
                a href=(place.path()) aria-current=[(Some(place) == current).then_some("page")] {
                    (place.name()) @if let Some(number) = place.number() { span sse-swap=(number.event()) { (numbers.shown(number)) } }
                }
            }
        }
    }
}

fn head(title: &str, now: Timestamp) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="htmx-config" content=(HTMX);
            meta name="now" content=(now.as_millisecond());
            title { (title) " · callsheet" }
            link rel="icon" type="image/svg+xml" href=(assets::href("icon.svg"));
            link rel="stylesheet" href=(assets::href("style.css"));
            script src=(assets::href("htmx.min.js")) defer {}
            script src=(assets::href("htmx-ext-sse.min.js")) defer {}
            script src=(assets::href("app.js")) defer {}
        }
    }
}

/// A page or a part of one. No cache may store it.
pub(super) fn html_response(headers: &HeaderMap, markup: Markup) -> Result<Response, ErrorPage> {
    html_response_with(headers, StatusCode::OK, markup)
}

fn html_response_with(
    headers: &HeaderMap,
    status: StatusCode,
    markup: Markup,
) -> Result<Response, ErrorPage> {
    let plain = markup.into_string().into_bytes();
    let coding = if plain.len() < WORTH_CODING {
        Coding::Identity
    } else {
        content_coding::choose(headers)
    };
    let body = coding
        .encode(&plain)
        .map_err(|error| Problem::internal(&error))?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    if coding != Coding::Identity {
        fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    }
    add_security_headers(fields);
    Ok(response)
}

/// Whether the client wants a page rather than data: it names `text/html`, as browsers do. `*/*`
/// alone, as scripts send it, means data.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let lines = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let mut weights = lines
        .flat_map(|line| line.split(','))
        .filter_map(|element| {
            let mut parts = element.split(';');
            let is_page = parts.next()?.trim().eq_ignore_ascii_case("text/html");
            let refused = parts.any(|part| {
                part.trim()
                    .strip_prefix("q=")
                    .is_some_and(|q| q.trim().parse() == Ok(0.0_f32))
            });
            is_page.then_some(!refused)
        });
    weights.any(|wanted| wanted)
}

/// A problem as a page.
#[derive(Debug)]
pub(super) struct ErrorPage(Problem);

impl ErrorPage {
    /// The problem itself, for actions, whose answers the page's script reads.
    pub(super) fn into_problem(self) -> Problem {
        self.0
    }
}

impl From<Problem> for ErrorPage {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for ErrorPage {
    fn into_response(self) -> Response {
        let (status, detail) = self.0.status_and_detail();
        let title = status.canonical_reason().unwrap_or("Refused");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " · callsheet" }
                    link rel="stylesheet" href=(assets::href("style.css"));
                }
                body {
                    a class="skip" href="#main" { "Skip to the content" }
                    header class="top" { (navigation(None, NavNumbers::default())) }
                    main id="main" tabindex="-1" {
                        h1 { (title) }
                        p { (with_pages(detail)) }
                    }
                }
            }
        };
        html_response_with(&HeaderMap::new(), status, page)
            .unwrap_or_else(|refused| refused.0.into_response())
    }
}

/// A problem's text with links to pages in place of the routes that it quotes.
fn with_pages(detail: &str) -> Markup {
    html! {
        @for (at, part) in detail.split('`').enumerate() {
            // Every second part stands between backticks.
            @if at % 2 == 0 { (foreign(part, 2_000)) }
            @else if let Some((href, name)) = page_of(part) { "the page " a href=(href) { (name) } }
            @else { code { (foreign(part, 400)) } }
        }
    }
}

/// The page that shows what a route lists: its address and its name.
fn page_of(route: &str) -> Option<(String, String)> {
    let page = |page: NavPage| Some((page.path().to_owned(), page.name().to_owned()));
    match route {
        "GET /" | "GET /api/v1/scenarios" => page(NavPage::Scenarios),
        "GET /api/v1/tools?include_disabled=true" => page(NavPage::Tools),
        "GET /api/v1/approvals" | "GET /api/v1/operations" => page(NavPage::Calls),
        _ => {
            let (_, rest) = route.split_once(" /api/v1/scenarios/")?;
            let name = rest.split('/').next().unwrap_or_default();
            Some((
                format!("/dashboard/scenarios/{}", segment(name)),
                format!("of {name}"),
            ))
        }
    }
}

/// What a page is rendered from now, and the time. The history is recorded up to this snapshot.
pub(super) fn current_snapshot(shared: &ServerState) -> (PageSource, Timestamp) {
    let snapshot = shared.reader.snapshot();
    let now = shared.clock.wall();
    shared.dashboard.history.catch_up(&snapshot);
    let numbers = NavNumbers::at_hand(shared, &snapshot);
    (PageSource { snapshot, numbers }, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages_and_scripts_get_data() {
        let wants = |accept: &'static str| {
            wants_page(&HeaderMap::from_iter([(
                ACCEPT,
                HeaderValue::from_static(accept),
            )]))
        };
        assert!(wants(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        ));
        for accept in [
            "*/*",
            "application/json",
            "text/html;q=0",
            "text/plain",
            "application/json, text/*;q=0.1",
        ] {
            assert!(!wants(accept), "{accept}");
        }
        assert!(!wants_page(&HeaderMap::new()));
    }
}
