//! The page of all preferences, by scope.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};

use crate::catalog::Snapshot;
use crate::model::{ApprovalPolicy, PreferenceSet, PreferenceTarget, Scope, Settings};
use crate::server::SharedState;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{count, foreign, foreign_plain, segment};

/// At most this many preferences of one scope are shown.
const SHOWN: usize = 500;

/// `GET /dashboard/preferences`.
pub(super) async fn page(State(shared): State<SharedState>, asked: HeaderMap) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let main = html! {
        h1 { "Preferences" }
        p class="lead" { "A preference of a chat wins over one of a profile, a profile over global, and global over the scenario's own defaults. Within a scope, a tool wins over a tag, a category and a scenario." }
        (form())
        div id="preferences" hx-get="/dashboard/preferences/now" hx-trigger="sse:catalog" hx-sync="this:replace" hx-disinherit="*" { (groups(&snapshot, &shared.config.borrow().preferences)) }
    };
    let page = Page { nav: Some(NavPage::Preferences), title: "Preferences", snapshot: &snapshot, now };
    html_response(&asked, page.render(&main))
}

/// `GET /dashboard/preferences/now`: the part that changes.
pub(super) async fn part(State(shared): State<SharedState>, asked: HeaderMap) -> Result<Response, ErrorPage> {
    html_response(&asked, groups(&shared.reader.snapshot(), &shared.config.borrow().preferences))
}

fn form() -> Markup {
    html! {
        form id="prefer" class="card filter" hx-put="/api/v1/preferences" hx-swap="none" hx-disabled-elt="find button" aria-labelledby="prefer-title" {
            h2 id="prefer-title" { "Set one, also for many tools at once" }
            label { "Scope" input name="scope" value="global" required placeholder="global, profile:NAME or chat:ID"; }
            label { "For" input class="long" name="target" required placeholder="scenario:NAME, category:ID, tag:NAME or tool:SCENARIO/TOOL"; }
            label { "In the list" select name="enabled" { option value="" { "leave" } option value="true" { "on" } option value="false" { "off" } } }
            label { "Approval" select name="approval" { option value="" { "leave" } option value="require" { "required" } option value="skip" { "not needed" } } }
            button type="submit" class="primary" { "Set" }
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
                    thead { tr { @for head in ["For", "In the list", "Approval", "Alias", "Priority", "Actions"] { th scope="col" { (head) } } } }
                    tbody { @for (target, settings) in all.iter().take(SHOWN) { (row(scope, target, settings, configured.get(scope, target).is_some())) } }
                }
                @if all.len() > SHOWN { p class="quiet" { (all.len() - SHOWN) " more: " a href={ "/api/v1/preferences?scope=" (segment(&scope.to_string())) } { "all as JSON" } } }
            }
        }
    }
}

fn row(scope: &Scope, target: &PreferenceTarget, settings: &Settings, is_configured: bool) -> Markup {
    let inherits = || html! { span class="quiet" { "inherits" } };
    let at =
        format!("/api/v1/preferences?scope={}&target={}", segment(&scope.to_string()), segment(&target.to_string()));
    html! {
        tr data-target=(target) {
            th scope="row" data-label="For" { (foreign(&target.to_string(), 300)) @if is_configured { " " span class="quiet" { "also in the configuration, which a reset brings back" } } }
            td data-label="In the list" { span { @match settings.enabled { Some(true) => "on", Some(false) => "off", None => (inherits()) } } }
            td data-label="Approval" { span { @match settings.approval { Some(ApprovalPolicy::Require) => "required", Some(ApprovalPolicy::Skip) => "not needed", None => (inherits()) } } }
            td data-label="Alias" { span { @match &settings.alias { Some(alias) => code { (alias.as_str()) }, None => (inherits()) } } }
            td data-label="Priority" { span { @match settings.priority { Some(priority) => (priority), None => (inherits()) } } }
            td data-label="Actions" class="actions" {
                button type="button" hx-delete=(at) hx-swap="none" hx-confirm={ "Reset the preference for " (foreign_plain(&target.to_string(), 300)) "?" } { "Reset" }
            }
        }
    }
}
