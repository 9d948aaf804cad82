//! The active configuration by section, and the source of each value. Credentials are masked where
//! the values are made.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};
use url::form_urlencoded;

use crate::catalog::Snapshot;
use crate::config::{EffectiveValue, ValueOrigin};
use crate::server::SharedState;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{count, foreign};

/// At most this many values are shown: a file may name thousands of scenarios.
const SHOWN: usize = 2_000;
/// At most this many characters of the search are used.
const SEARCH_CHARACTERS_MAX: usize = 200;

/// The filter of the page.
#[derive(Debug, Default)]
struct ShownValues {
    words: String,
    /// Only values that are not the default.
    set: bool,
}

impl ShownValues {
    fn parse(raw: Option<&str>) -> Self {
        let mut wanted = Self::default();
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            match &*name {
                "q" => wanted.words = value.chars().take(SEARCH_CHARACTERS_MAX).collect(),
                "set" => wanted.set = value == "true",
                _ => {}
            }
        }
        wanted
    }

    fn matches(&self, value: &EffectiveValue) -> bool {
        let text = format!("{} {}", value.key, value.value).to_lowercase();
        (!self.set || value.origin != ValueOrigin::Default)
            && self
                .words
                .to_lowercase()
                .split_whitespace()
                .all(|word| text.contains(word))
    }
}

/// `GET /dashboard/configuration`. Parameters: `q` and `set`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let values = shared.dashboard.settings.borrow().clone();
    let main = html! {
        h1 { "Configuration" }
        (not_as_written(&snapshot))
        @if values.is_empty() {
            p class="card" id="empty" { "The program that runs callsheet made this configuration itself, so there are no files or variables to show. "
                "With " code { "callsheet serve" } " each value is shown here with where it comes from." }
        } @else {
            p class="lead" { "Set values in the configuration file, in the environment as " code { "CALLSHEET_SECTION__KEY" } ", or by flags; later ones win. Credentials are masked. "
                code { "callsheet config show --origin" } " shows the same in a terminal." }
            (shown(&values, &ShownValues::parse(raw.as_deref())))
        }
    };
    let page = Page {
        nav: Some(NavPage::Configuration),
        title: "Configuration",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

fn not_as_written(snapshot: &Snapshot) -> Markup {
    html! {
        @if let Some(state) = snapshot.configuration.as_ref().filter(|state| !state.is_as_written()) {
            section id="not-as-written" class="banner" aria-labelledby="not-as-written-title" {
                h2 id="not-as-written-title" { "Parts of the written configuration are not active" }
                ul { @for finding in state.findings() { li { (foreign(&finding.message, 1_000)) " " span class="quiet" { (foreign(finding.hint.as_deref().unwrap_or_default(), 400)) } } } }
            }
        }
    }
}

/// The filter, and what it shows.
fn shown(values: &[EffectiveValue], wanted: &ShownValues) -> Markup {
    let matching: Vec<&EffectiveValue> = values
        .iter()
        .filter(|value| wanted.matches(value))
        .collect();
    let visible = &matching[..matching.len().min(SHOWN)];
    html! {
        form class="filter" method="get" action="/dashboard/configuration" role="search" {
            label { "Search" input type="search" name="q" value=(wanted.words) placeholder="key or value" data-search autocomplete="off"; }
            label class="choice" { input type="checkbox" name="set" value="true" checked[wanted.set]; "Only what is set" }
            button type="submit" { "Show" }
        }
        p class="quiet" { (count(matching.len(), "value")) " of " (values.len()) @if matching.len() > SHOWN { "; the first " (SHOWN) " are shown" } }
        @for group in visible.chunk_by(|one, other| section(one) == section(other)) {
            @if let Some(first) = group.first() { (table(section(first), group)) }
        }
    }
}

/// The section of a value: its key up to the first dot or bracket.
fn section(value: &EffectiveValue) -> &str {
    value.key.split(['.', '[']).next().unwrap_or_default()
}

fn table(section: &str, values: &[&EffectiveValue]) -> Markup {
    html! {
        section class="card" data-section=(section) {
            h2 { (foreign(section, 200)) }
            table class="cards dense" {
                thead class="hidden" { tr { @for head in ["Key", "Value", "From"] { th scope="col" { (head) } } } }
                tbody { @for value in values {
                    tr data-key=(value.key) {
                        th scope="row" data-label="Key" { code { (foreign(&value.key, 200)) } }
                        td data-label="Value" { code { (foreign(&value.value, 1_000)) } }
                        td data-label="From" { @if value.origin == ValueOrigin::Default { span class="quiet" { "default" } } @else { strong { (foreign(&value.origin.to_string(), 300)) } } }
                    }
                } }
            }
        }
    }
}
