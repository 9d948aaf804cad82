//! Profiles on the page of preferences: what callers that name one may see at most, and a form that
//! adds one.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, StatusCode};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::ProfileEntry;
use crate::model::Permission;
use crate::server::SharedState;
use crate::server::api::profiles::ProfileJson;
use crate::server::dashboard::text::{foreign, foreign_plain};
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;
use crate::server::http::typed_body::ApiJson;

/// The header by which htmx goes to another page.
const GO_TO: HeaderName = HeaderName::from_static("hx-redirect");
/// The page that the profiles are on.
const PAGE: &str = "/dashboard/preferences";

/// What a person wrote into the form.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ProfileForm {
    name: String,
    /// Names with commas between them.
    scenarios: Option<String>,
    /// Whether no scenario is allowed.
    none: Option<String>,
    permission: Option<String>,
    mcp_mode: Option<String>,
}

/// Which profile is taken away.
#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveForm {
    name: String,
}

/// The profiles, and the form for another one.
pub(super) fn section(shared: &SharedState) -> Markup {
    let all = shared.profiles().profiles;
    html! {
        section class="card" id="profiles" {
            h2 { "Profiles" }
            p { "What callers that name a profile may see and call at most. Preferences choose within it. The level of a caller (" code { "permission" } ") lowers that of its profile." }
            @if all.is_empty() {
                p class="quiet" { "There is none, so a profile is a name for preferences only, and has no bounds." }
            } @else {
                table class="cards" {
                    thead { tr { @for head in ["Name", "Scenarios", "Permission", "MCP", "From", "Actions"] { th scope="col" { (head) } } } }
                    tbody { @for profile in &all { (row(profile)) } }
                }
            }
        }
        form id="set-profile" class="card filter" hx-post="/dashboard/profiles/set" hx-swap="none" hx-disabled-elt="find button" aria-labelledby="set-profile-title" {
            h2 id="set-profile-title" { "Add a profile, or give one other bounds" }
            label { "Name" input name="name" required maxlength="200"; }
            label { "Scenarios" input class="long" name="scenarios" placeholder="all, or names with commas" autocomplete="off" spellcheck="false"; }
            label class="choice" { input type="checkbox" name="none" value="none" autocomplete="off"; "no scenario" }
            label { "Permission" select name="permission" { option value="" { "all" } @for level in Permission::NAMED { option value=(level.as_str()) { (level.as_str()) } } } }
            label { "MCP clients get" select name="mcp_mode" { option value="" { "as all clients" } option value="list" { "the list" } option value="search" { "tools that search" } } }
            button type="submit" class="primary" { "Set" }
        }
    }
}

fn row(profile: &ProfileJson) -> Markup {
    let all = || html! { span class="quiet" { "all" } };
    html! {
        tr data-profile=(profile.name) {
            th scope="row" data-label="Name" { (foreign(&profile.name, 200)) @if profile.is_default { " " span class="quiet" { "holds for clients that name none" } } }
            td data-label="Scenarios" { span { @match &profile.scenarios { None => (all()), Some(names) if names.is_empty() => "none", Some(names) => (foreign(&names.join(", "), 400)) } } }
            td data-label="Permission" { span { @match profile.permission { None => (all()), Some(level) => (level) } } }
            td data-label="MCP" { span { @match profile.mcp_mode { None => span class="quiet" { "as all" }, Some(mode) => (mode) } } }
            td data-label="From" { span { (profile.origin) } @if profile.is_hidden { " " span class="quiet" { "the configuration has one of this name, which holds" } } }
            td data-label="Actions" class="actions" {
                @if profile.origin == "store" {
                    button type="button" class="danger" hx-post="/dashboard/profiles/remove" hx-vals=(serde_json::json!({"name": profile.name})) hx-swap="none"
                        hx-confirm={ "Take away the profile " (foreign_plain(&profile.name, 200)) "?" } { "Remove" }
                }
            }
        }
    }
}

/// `POST /dashboard/profiles/set`: adds a profile of the store, or replaces it.
pub(super) async fn set(
    State(shared): State<SharedState>,
    _: NoQuery,
    ApiJson(form): ApiJson<ProfileForm>,
) -> Result<Response, Problem> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let named = given(form.scenarios).map(|names| {
        let names = names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    });
    let entry = ProfileEntry {
        scenarios: if form.none.is_some() {
            Some(Vec::new())
        } else {
            named
        },
        permission: given(form.permission),
        mcp_mode: given(form.mcp_mode),
    };
    shared.put_profile(form.name, entry).await?;
    Ok(gone_to_page())
}

/// `POST /dashboard/profiles/remove`: takes a profile of the store away.
pub(super) async fn remove(
    State(shared): State<SharedState>,
    _: NoQuery,
    ApiJson(form): ApiJson<RemoveForm>,
) -> Result<Response, Problem> {
    shared.remove_profile(form.name).await?;
    Ok(gone_to_page())
}

/// The answer after a change: the page anew.
fn gone_to_page() -> Response {
    (StatusCode::NO_CONTENT, [(GO_TO, PAGE)]).into_response()
}
