//! The active configuration, and the source of each value. Credentials are masked where the values
//! are made.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use maud::html;

use crate::config::ValueOrigin;
use crate::server::SharedState;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::foreign;

/// At most this many values are shown: a file may name thousands of scenarios.
const SHOWN: usize = 2_000;

/// `GET /dashboard/configuration`.
pub(super) async fn page(State(shared): State<SharedState>, asked: HeaderMap) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let values = shared.dashboard.settings.borrow().clone();
    let main = html! {
        h1 { "Configuration" }
        @if let Some(state) = snapshot.configuration.as_ref().filter(|state| !state.is_as_written()) {
            section id="not-as-written" class="banner" aria-labelledby="not-as-written-title" {
                h2 id="not-as-written-title" { "Parts of the written configuration are not active" }
                ul { @for finding in state.findings() { li { (foreign(&finding.message, 1_000)) " " span class="quiet" { (foreign(finding.hint.as_deref().unwrap_or_default(), 400)) } } } }
            }
        }
        @if values.is_empty() {
            p class="card" id="empty" { "The program that runs callsheet made this configuration itself, so there are no files or variables to show. "
                "With " code { "callsheet serve" } " each value is shown here with where it comes from." }
        } @else {
            p class="lead" { "Set values in the configuration file, in the environment as " code { "CALLSHEET_SECTION__KEY" } ", or by flags; later ones win. Credentials are masked." }
            div class="scroll" tabindex="0" role="region" aria-label="Values" { table class="cards" {
                thead { tr { @for head in ["Key", "Value", "From"] { th scope="col" { (head) } } } }
                tbody { @for value in values.iter().take(SHOWN) {
                    tr data-key=(value.key) {
                        th scope="row" data-label="Key" { code { (foreign(&value.key, 200)) } }
                        td data-label="Value" { code { (foreign(&value.value, 1_000)) } }
                        td data-label="From" { @if value.origin == ValueOrigin::Default { span class="quiet" { "default" } } @else { strong { (foreign(&value.origin.to_string(), 300)) } } }
                    }
                } }
            } }
            @if values.len() > SHOWN { p class="quiet" { (values.len() - SHOWN) " more: " code { "callsheet config show --origin" } } }
        }
    };
    let page = Page { nav: Some(NavPage::Configuration), title: "Configuration", snapshot: &snapshot, now };
    html_response(&asked, page.render(&main))
}
