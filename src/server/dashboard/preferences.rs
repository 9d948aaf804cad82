//! The page of all preferences, by scope.

use std::collections::BTreeMap;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};
use url::form_urlencoded;

use crate::catalog::Snapshot;
use crate::model::{ApprovalPolicy, PinMode, PreferenceSet, PreferenceTarget, Scope, Settings};
use crate::server::SharedState;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::profiles;
use crate::server::dashboard::text::{count, foreign, foreign_plain, segment};

/// At most this many preferences of one scope are shown.
const SHOWN: usize = 500;
/// At most this many characters of a parameter are used.
const PARAMETER_CHARACTERS_MAX: usize = 400;

/// `GET /dashboard/preferences`. Parameters: `scope` and `target`, which the form begins with.
pub(super) async fn page(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let of = |key: &str| {
        let found = form_urlencoded::parse(raw.as_deref().unwrap_or_default().as_bytes())
            .find(|(name, _)| name == key);
        found
            .map(|(_, value)| {
                value
                    .chars()
                    .take(PARAMETER_CHARACTERS_MAX)
                    .collect::<String>()
            })
            .unwrap_or_default()
    };
    let main = html! {
        h1 { "Preferences" }
        p class="lead" { "A preference of a chat wins over one of a profile, a profile over global, and global over the scenario's own defaults. Within a scope, a tool wins over a tag, a category and a scenario." }
        (form(&of("scope"), &of("target")))
        div id="preferences" hx-get="/dashboard/preferences/now" hx-trigger="sse:catalog" hx-sync="this:replace" hx-disinherit="*" { (groups(&snapshot, &shared.config.borrow().preferences)) }
        (profiles::section(&shared))
    };
    let page = Page {
        nav: Some(NavPage::Preferences),
        title: "Preferences",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// `GET /dashboard/preferences/now`: the part that changes.
pub(super) async fn part(
    State(shared): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    html_response(
        &headers,
        groups(
            &shared.reader.snapshot(),
            &shared.config.borrow().preferences,
        ),
    )
}

fn form(scope: &str, target: &str) -> Markup {
    let scope = if scope.is_empty() { "global" } else { scope };
    html! {
        form id="prefer" class="card filter" hx-put="/api/v1/preferences" hx-swap="none" hx-disabled-elt="find button" aria-labelledby="prefer-title" {
            h2 id="prefer-title" { "Set one, also for many tools at once" }
            label { "Scope" input name="scope" value=(scope) required aria-describedby="prefer-told"; }
            label { "For" input class="long" name="target" value=(target) required placeholder="tool:SCENARIO/TOOL" aria-describedby="prefer-told"; }
            label { "In the list" select name="enabled" { option value="" { "leave" } option value="true" { "on" } option value="false" { "off" } } }
            label { "Approval" select name="approval" { option value="" { "leave" } option value="require" { "required" } option value="skip" { "not needed" } } }
            label { "Alias" input name="alias" autocomplete="off" spellcheck="false" placeholder="leave"; }
            label { "Priority" input type="number" name="priority" step="1" min=(i32::MIN) max=(i32::MAX) placeholder="leave"; }
            label { "Always listed" select name="pinned" { option value="" { "leave" } option value="true" { "yes" } option value="false" { "no" } } }
            label { "Pins" select name="pins" { option value="" { "leave" } @for mode in PinMode::ALL { option value=(mode.as_str()) { (mode.as_str()) } } } }
            button type="submit" class="primary" { "Set" }
            p id="prefer-told" class="quiet" { "A scope is " code { "global" } ", " code { "profile:NAME" } " or " code { "chat:ID" } ". A preference is for "
                code { "tool:SCENARIO/TOOL" } ", " code { "scenario:NAME" } ", " code { "category:ID" } " or " code { "tag:NAME" } ". An alias is for one tool." }
        }
    }
}

fn groups(snapshot: &Snapshot, configured: &PreferenceSet) -> Markup {
    let mut scopes: BTreeMap<&Scope, Vec<(&PreferenceTarget, &Settings)>> = BTreeMap::new();
    for (scope, target, settings) in snapshot.catalog.preferences().iter() {
        scopes.entry(scope).or_default().push((target, settings));
    }
    html! {
        @if scopes.is_empty() {
            p class="card" id="empty" { "No preference is set: every tool has the defaults of its scenario. Set one above, or change tools on " a href="/dashboard/tools" { "their page" } "." }
        }
        @for (scope, all) in &scopes {
            section class="card" data-scope=(scope) {
                h2 { (foreign(&scope.to_string(), 220)) " " span class="quiet" { (count(all.len(), "preference")) } }
                table class="cards" {
                    thead { tr { @for head in ["For", "In the list", "Approval", "Alias", "Priority", "Always listed", "Pins", "Overrides", "Actions"] { th scope="col" { (head) } } } }
                    tbody { @for (target, settings) in all.iter().take(SHOWN) { (row(scope, target, settings, configured.get(scope, target).is_some())) } }
                }
                @if all.len() > SHOWN { p class="quiet" { (all.len() - SHOWN) " more: " a href={ "/api/v1/preferences?scope=" (segment(&scope.to_string())) } { "all as JSON" } } }
            }
        }
    }
}

/// What the preference puts in place of the tool's texts and parameters.
fn overrides(settings: &Settings) -> Markup {
    html! {
        @if let Some(text) = &settings.description { p { "description: " (foreign(text, 160)) } }
        @if let Some(parameters) = &settings.parameters {
            p { "parameters: " code { (foreign(&parameters.to_json().to_string(), 300)) } }
        }
        @if settings.description.is_none() && settings.parameters.is_none() { span class="quiet" { "none" } }
    }
}

fn row(
    scope: &Scope,
    target: &PreferenceTarget,
    settings: &Settings,
    is_configured: bool,
) -> Markup {
    let inherits = || html! { span class="quiet" { "inherits" } };
    let at = format!(
        "/api/v1/preferences?scope={}&target={}",
        segment(&scope.to_string()),
        segment(&target.to_string())
    );
    html! {
        tr data-target=(target) {
            th scope="row" data-label="For" { (foreign(&target.to_string(), 300)) @if is_configured { " " span class="quiet" { "also in the configuration, which a reset brings back" } } }
            td data-label="In the list" { span { @match settings.enabled { Some(true) => "on", Some(false) => "off", None => (inherits()) } } }
            td data-label="Approval" { span { @match settings.approval { Some(ApprovalPolicy::Require) => "required", Some(ApprovalPolicy::Skip) => "not needed", None => (inherits()) } } }
            td data-label="Alias" { span { @match &settings.alias { Some(alias) => code { (alias.as_str()) }, None => (inherits()) } } }
            td data-label="Priority" { span { @match settings.priority { Some(priority) => (priority), None => (inherits()) } } }
            td data-label="Always listed" { span { @match settings.pinned { Some(true) => "yes", Some(false) => "no", None => (inherits()) } } }
            td data-label="Pins" { span { @match settings.pins { Some(mode) => (mode.as_str()), None => (inherits()) } } }
            td data-label="Overrides" { span { (overrides(settings)) } }
            td data-label="Actions" class="actions" {
                button type="button" hx-delete=(at) hx-swap="none" hx-confirm={ "Reset the preference for " (foreign_plain(&target.to_string(), 300)) "?" } { "Reset" }
            }
        }
    }
}
