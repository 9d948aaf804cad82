//! The page of bundles: lists stored tools, switches them, stores new versions, and leads to the
//! page of each tool, where it can be tried.

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, StatusCode};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::bundles::{
    BundleChange, BundleDefinition, BundleError, Slug, StoredBundle, StoredTool, ToolContent,
    ToolVersion, draft, new_id,
};
use crate::model::{CallerInfo, JsonText, ToolId};
use crate::protocols::{Call, NoCaller, bundle};
use crate::server::SharedState;
use crate::server::compat::bundles;
use crate::server::dashboard::first_value::field_rows;
use crate::server::dashboard::links;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{count, foreign, foreign_plain, segment};
use crate::server::http::error::Problem;
use crate::server::http::params::{Param, once};
use crate::server::http::query::{NoQuery, QueryParams};
use crate::server::http::typed_body::ApiJson;

/// The header by which htmx goes to another page.
const GO_TO: HeaderName = HeaderName::from_static("hx-redirect");
/// The address of the page.
const PAGE: &str = "/dashboard/bundles";

/// `GET /dashboard/bundles`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    _: NoQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let main = html! {
        h1 { "Bundles" }
        p class="lead" { "Tools that are stored as files: requests over HTTP, functions of the program, and built-in ones. A bundle is switched on and off as a whole." }
        @if shared.bundles.is_on() {
            (new_bundle())
            (import())
            div id="bundles" hx-get="/dashboard/bundles/now" hx-trigger="sse:catalog, imported" hx-sync="this:replace" hx-disinherit="*" { (all_bundles(&shared)) }
        } @else {
            p class="card" id="empty" { "No folder is configured: set " code { "bundles.path" } " to the folder for them, and restart the daemon." }
        }
    };
    let page = Page {
        nav: Some(NavPage::Bundles),
        title: "Bundles",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// `GET /dashboard/bundles/now`: the part that changes.
pub(super) async fn part(
    State(shared): State<SharedState>,
    _: NoQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    html_response(&headers, all_bundles(&shared))
}

fn new_bundle() -> Markup {
    html! {
        form id="new-bundle" class="card filter" hx-post={ (PAGE) "/new" } hx-swap="none" hx-disabled-elt="find button" aria-labelledby="new-bundle-title" {
            h2 id="new-bundle-title" { "Add a bundle" }
            label { "Slug" input name="slug" required maxlength="64" placeholder="letters, digits and -"; }
            label { "Name" input class="long" name="displayName" required; }
            label { "Description" input class="long" name="description"; }
            button type="submit" class="primary" { "Add" }
        }
    }
}

/// The form that stores an archive. `app.js` sends the file as it is, and lets the list be fetched
/// again.
fn import() -> Markup {
    html! {
        form id="import-archive" class="card filter" hx-post="/tools/bundles/archive" hx-swap="none" hx-disabled-elt="find button" aria-labelledby="import-title" {
            h2 id="import-title" { "Import an archive" }
            label { "File (ZIP)" input type="file" name="archive" accept=".zip,application/zip" required; }
            label class="choice" { input type="checkbox" name="new" autocomplete="off"; "as a new bundle, with ids of its own" }
            button type="submit" { "Import" }
            noscript { p { "Without scripts, import it in a terminal: " code { "callsheet bundle import FILE" } } }
        }
    }
}

fn all_bundles(shared: &SharedState) -> Markup {
    let set = shared.bundles.set();
    let all: Vec<_> = set.listed().collect();
    let deleted: Vec<_> = set
        .bundles()
        .filter(|bundle| bundle.definition.soft_deleted_at.is_some())
        .collect();
    html! {
        @if all.is_empty() { p class="card" id="empty" { "There is no bundle yet. Add one above." } }
        @for stored in all { (one(shared, stored)) }
        @for stored in deleted { (gone(&stored.definition)) }
    }
}

/// A bundle that is deleted, and can be restored until it is removed for good.
fn gone(about: &BundleDefinition) -> Markup {
    html! {
        section class="card quiet" id={ "bundle-" (about.id) } {
            h2 { (foreign(&about.display_name, 100)) " " span class="quiet" { (foreign(about.slug.as_str(), 64)) ", deleted" } }
            p { "It is removed for good two days after it was deleted, if it is still empty then." }
            p class="actions" { (act(&about.id.to_string(), "restore", "Restore", about.slug.as_str(), None)) }
        }
    }
}

/// The button for a change of a bundle.
fn act(id: &str, what: &str, word: &str, name: &str, question: Option<&str>) -> Markup {
    html! {
        button type="button" class=[question.map(|_| "danger")] hx-post={ (PAGE) "/" (id) "/" (what) } hx-swap="none" hx-disabled-elt="this"
            hx-confirm=[question] aria-label={ (word) " " (foreign_plain(name, 64)) } { (word) }
    }
}

/// The form that changes what is said about a bundle. What is typed stays when the list is fetched
/// again.
fn rename(about: &BundleDefinition) -> Markup {
    html! {
        details id={ "rename-" (about.id) } {
            summary { "Rename" }
            form id={ "rename-form-" (about.id) } class="filter" hx-preserve hx-post={ (PAGE) "/" (about.id) "/rename" } hx-swap="none" hx-disabled-elt="find button" {
                label { "Slug" input name="slug" required maxlength="64" value=(about.slug.as_str()); }
                label { "Name" input class="long" name="displayName" required value=(about.display_name); }
                label { "Description" input class="long" name="description" value=(about.description); }
                button type="submit" { "Save" }
            }
        }
    }
}

fn one(shared: &SharedState, stored: &StoredBundle) -> Markup {
    let about = &stored.definition;
    let id = about.id.to_string();
    html! {
        section class="card" id={ "bundle-" (id) } data-bundle=(id) {
            h2 { (foreign(&about.display_name, 100)) " " span class="quiet" { (foreign(about.slug.as_str(), 64)) ", " (count(stored.tools.len(), "tool")) @if !about.is_enabled { ", disabled" } } }
            @if !about.description.is_empty() { p { (foreign(&about.description, 400)) } }
            p class="actions" {
                (switch(&id, None, about.is_enabled, about.slug.as_str()))
                @if !about.is_built_in && about.is_enabled { a href={ (PAGE) "/" (id) "/edit" } { "Add a tool" } " " }
                @if !about.is_built_in { a href={ "/tools/bundles/" (id) "/archive" } download aria-label={ "Export " (foreign_plain(about.slug.as_str(), 64)) } { "Export" } }
                @if !about.is_built_in && stored.tools.is_empty() { " " (act(&id, "delete", "Delete", about.slug.as_str(), Some("Delete this bundle? It can be restored for two days."))) }
            }
            @if !about.is_built_in { (rename(about)) }
            @if !stored.tools.is_empty() {
                table class="cards" {
                    thead { tr { @for head in ["Tool", "Version", "What it does", "Enabled", "Actions"] { th scope="col" { (head) } } } }
                    tbody { @for tool in &stored.tools { (row(shared, stored, tool)) } }
                }
            }
            @for finding in &stored.findings { p class="quiet" { (foreign(&finding.message, 400)) } }
        }
    }
}

fn row(shared: &SharedState, stored: &StoredBundle, tool: &StoredTool) -> Markup {
    let id = stored.definition.id.to_string();
    let slug = tool.slug.as_str();
    let version = tool.version.as_str();
    let listed = ToolId {
        scenario: stored.scenario.clone(),
        tool: tool.name().into(),
    };
    let finding = bundle::left_out(tool, &shared.bundles);
    let preferred = bundles::preferred(&shared.reader.snapshot().catalog, stored, tool);
    html! {
        tr data-tool=(tool.name()) {
            th scope="row" data-label="Tool" { (foreign(slug, 64)) }
            td data-label="Version" { (foreign(version, 64)) }
            td data-label="What it does" { p { (foreign(&tool.description, 200)) } @if let Some(finding) = &finding { p class="quiet" { "Cannot run here: " (foreign(&finding.message, 300)) } } }
            td data-label="Enabled" { span { @if tool.is_enabled { "on" } @else { "off" } } @if let Some(is_on) = preferred { p class="quiet" { "a preference says " @if is_on { "on" } @else { "off" } } } }
            td data-label="Actions" class="actions" {
                @if finding.is_none() && stored.definition.is_enabled && tool.is_enabled { a href=(links::tool(&listed)) { "Try" } " " }
                (switch(&id, Some((slug, version)), tool.is_enabled, slug))
                @if !stored.definition.is_built_in {
                    @if stored.definition.is_enabled { a href={ (PAGE) "/" (id) "/edit?tool=" (segment(slug)) "&version=" (segment(version)) } { "New version" } " " }
                    button type="button" class="danger" hx-delete={ "/tools/bundles/" (id) "/tools/" (segment(slug)) "/version/" (segment(version)) } hx-swap="none"
                        hx-confirm={ "Delete version " (foreign_plain(version, 64)) " of " (foreign_plain(slug, 64)) " for good?" } { "Delete" }
                }
            }
        }
    }
}

/// The button that switches a bundle, or one version of a tool.
fn switch(id: &str, tool: Option<(&str, &str)>, is_enabled: bool, name: &str) -> Markup {
    let mut values = json!({"enabled": (!is_enabled).to_string()});
    if let (Some((slug, version)), Some(values)) = (tool, values.as_object_mut()) {
        values.insert("tool".to_owned(), slug.into());
        values.insert("version".to_owned(), version.into());
    }
    let word = if is_enabled { "Disable" } else { "Enable" };
    html! {
        button type="button" hx-post={ (PAGE) "/" (id) "/switch" } hx-vals=(values) hx-swap="none" hx-disabled-elt="this"
            aria-label={ (word) " " (foreign_plain(name, 64)) } { (word) }
    }
}

/// The version that a form begins with.
const EDIT: &[Param] = &[once("tool"), once("version")];

/// `GET /dashboard/bundles/{id}/edit`: the form for a new version of a tool, with the document of
/// another one where the query names it.
pub(super) async fn edit(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let query = QueryParams::parse(raw.as_deref(), EDIT)?;
    let set = shared.bundles.set();
    let id = bundle_id(&id)?;
    let stored = set.bundle(id).map_err(Problem::from)?;
    let named = |tool: &&std::sync::Arc<StoredTool>| {
        query.optional("tool") == Some(tool.slug.as_str())
            && query.optional("version") == Some(tool.version.as_str())
    };
    let document = stored
        .tools
        .iter()
        .find(named)
        .map_or_else(example, |tool| Value::Object(tool.content()));
    let text =
        serde_json::to_string_pretty(&document).map_err(|error| Problem::internal(&error))?;
    let (snapshot, now) = current_snapshot(&shared);
    let main = html! {
        h1 { "A tool of " (foreign(&stored.definition.display_name, 100)) }
        p class="lead" { "What is stored is never replaced: write another version. Every member is described in the documents, under bundles." }
        (draft_form(&id.to_string()))
        form id="store-tool" class="card" hx-post={ (PAGE) "/" (id) "/tool" } hx-swap="none" hx-disabled-elt="find button" {
            (document_field(&text))
            button type="submit" class="primary" { "Store" }
            " " a href=(PAGE) { "Back" }
        }
        section class="card" id="try-draft" {
            h2 { "Try it before it is stored" }
            p { "The request is sent as it would be later, once. The tool is not stored." }
            label { "Arguments (JSON)" textarea id="trial-arguments" name="arguments" rows="3" spellcheck="false" { "{}" } }
            button type="button" hx-post={ (PAGE) "/" (id) "/try" } hx-include="#document, #trial-arguments" hx-target="#draft-tried" hx-swap="innerHTML" hx-disabled-elt="this" { "Try" }
            div id="draft-tried" aria-live="polite" {}
        }
    };
    let page = Page {
        nav: Some(NavPage::Bundles),
        title: "A stored tool",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// The field of the document. A draft takes its place.
fn document_field(text: &str) -> Markup {
    html! { label id="document-label" { "Document (JSON)" textarea id="document" name="document" rows=(field_rows(text)) spellcheck="false" required { (text) } } }
}

/// The form that writes the document of a request.
fn draft_form(id: &str) -> Markup {
    html! {
        form id="draft-tool" class="card filter" hx-post={ (PAGE) "/" (id) "/draft" } hx-target="#document-label" hx-swap="outerHTML" hx-disabled-elt="find button" aria-labelledby="draft-title" {
            h2 id="draft-title" { "Begin with a request" }
            label { "A curl command" textarea class="long" name="curl" rows="3" spellcheck="false" placeholder="curl https://api.example.com/search?q=lemons" {} }
            p class="quiet" { "Or its parts:" }
            label { "Method" select name="method" { @for method in METHODS { option value=(method) { (method) } } } }
            label { "Address" input class="long" name="address" autocomplete="off" spellcheck="false" placeholder="https://api.example.com/cities/${city}"; }
            label { "Named values, one a line" textarea class="long" name="values" rows="3" spellcheck="false" placeholder="city = Oslo" {} }
            button type="submit" { "Write the document" }
            p id="draft-notes" class="quiet" aria-live="polite" {}
        }
    }
}

/// The methods that a form offers.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// What a person wrote of a request.
#[derive(Deserialize, JsonSchema)]
pub(super) struct DraftForm {
    curl: Option<String>,
    method: Option<String>,
    address: Option<String>,
    values: Option<String>,
}

/// A tool that is tried.
#[derive(Deserialize, JsonSchema)]
pub(super) struct TrialForm {
    document: String,
    arguments: Option<String>,
}

/// `POST /dashboard/bundles/{id}/draft`: the field with the document of a request, from a `curl`
/// command or from its parts.
pub(super) async fn draft(
    Path(id): Path<String>,
    _: NoQuery,
    headers: HeaderMap,
    ApiJson(form): ApiJson<DraftForm>,
) -> Result<Response, Problem> {
    bundle_id(&id)?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let drafted = match (given(&form.curl), given(&form.address)) {
        (Some(command), _) => draft::from_curl(command.trim()),
        (None, Some(address)) => draft::from_parts(
            form.method.as_deref().unwrap_or("GET"),
            address.trim(),
            form.values.as_deref().unwrap_or_default(),
        ),
        (None, None) => {
            let problem = Problem::bad_request("there is neither a command nor an address");
            return Err(problem.and_next("write one of the two"));
        }
    };
    let drafted = drafted.map_err(|error| Problem::bad_request(error.to_string()))?;
    let text = serde_json::to_string_pretty(&drafted.document)
        .map_err(|error| Problem::internal(&error))?;
    let markup = html! {
        (document_field(&text))
        p id="draft-notes" class="quiet" hx-swap-oob="true" aria-live="polite" {
            @for note in &drafted.notes { (foreign(note, 400)) ". " }
        }
    };
    html_response(&headers, markup).map_err(ErrorPage::into_problem)
}

/// `POST /dashboard/bundles/{id}/try` with `document` and `arguments`: sends the request of a tool
/// that is not stored, and shows what came of it.
pub(super) async fn try_draft(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    headers: HeaderMap,
    ApiJson(form): ApiJson<TrialForm>,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    let ToolDocument {
        slug,
        version,
        content,
    } = ToolDocument::parse(&form.document)?;
    let arguments = form.arguments.filter(|text| !text.trim().is_empty());
    let arguments = JsonText::parse(arguments.as_deref().unwrap_or("{}"))
        .map_err(|error| Problem::bad_request(format!("the arguments are no JSON: {error}")))?;
    let scenario = shared
        .bundles
        .set()
        .bundle(id)
        .map_err(Problem::from)?
        .scenario
        .clone();
    let name = shared
        .bundles
        .begin_trial((id, slug, version), &content)
        .map_err(Problem::from)?;
    let route = shared.engine.route(&scenario).ok_or_else(|| {
        Problem::busy("the bundle is not known to the daemon yet").and_next("try again")
    })?;
    let limits = shared.config.borrow().calls.clone();
    let call = Call {
        tool: name.into(),
        arguments,
        user_id: None,
        caller: CallerInfo::default(),
        timeout: None,
        longest: limits.max_timeout,
        max_body: limits.max_body.min(TRIAL_BODY_MAX),
        resumed: None,
    };
    let outcome = route.session.call(&call, &NoCaller).await;
    let shown = match &outcome {
        Ok(outcome) if outcome.success => {
            let text = outcome.result.as_ref().map_or("null", JsonText::get);
            html! { p { "It succeeded:" } pre { (foreign(text, TRIAL_SHOWN_MAX)) } }
        }
        Ok(outcome) => {
            let why = outcome.error.as_deref().unwrap_or("it gave no reason");
            html! { p { "It failed: " (foreign(why, 1_000)) } }
        }
        Err(error) => html! { p { "It failed: " (foreign(&error.to_string(), 1_000)) } },
    };
    html_response(&headers, shown).map_err(ErrorPage::into_problem)
}

/// Bytes of the answer to a request that is tried, at most.
const TRIAL_BODY_MAX: usize = 1024 * 1024;
/// Characters of it that are shown.
const TRIAL_SHOWN_MAX: usize = 20_000;

/// A tool as a person wrote it.
struct ToolDocument {
    slug: Slug,
    version: ToolVersion,
    content: ToolContent,
}

impl ToolDocument {
    fn parse(text: &str) -> Result<Self, Problem> {
        let document: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
            Problem::bad_request(format!("the document is no JSON object: {error}"))
        })?;
        let part = |name: &str| {
            document
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Ok(Self {
            slug: part("slug").parse().map_err(BundleError::from)?,
            version: part("version").parse().map_err(BundleError::from)?,
            content: ToolContent::parse(document).map_err(BundleError::from)?,
        })
    }
}

/// A tool to begin with.
fn example() -> Value {
    json!({
        "slug": "", "version": "v1", "displayName": "", "description": "", "type": "http",
        "argSchema": {"type": "object", "properties": {}, "required": []},
        "impl": {"method": "GET", "urlTemplate": "https://"},
    })
}

/// `POST /dashboard/bundles/new` with `slug`, `displayName` and `description`: adds a bundle.
pub(super) async fn create(
    State(shared): State<SharedState>,
    _: NoQuery,
    ApiJson(body): ApiJson<Map<String, Value>>,
) -> Result<Response, Problem> {
    let content = BundleChange::parse(&body).map_err(BundleError::from)?;
    shared
        .bundles
        .put_bundle(new_id(shared.clock.wall()), content)
        .await?;
    Ok(gone_to_page())
}

/// `POST /dashboard/bundles/{id}/rename` with `slug`, `displayName` and `description`.
pub(super) async fn change(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(mut body): ApiJson<Map<String, Value>>,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    let is_enabled = shared
        .bundles
        .set()
        .bundle(id)
        .map_err(Problem::from)?
        .definition
        .is_enabled;
    body.insert("isEnabled".to_owned(), is_enabled.into());
    let content = BundleChange::parse(&body).map_err(BundleError::from)?;
    shared.bundles.put_bundle(id, content).await?;
    Ok(gone_to_page())
}

/// `POST /dashboard/bundles/{id}/delete`.
pub(super) async fn delete(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    shared.bundles.delete_bundle(bundle_id(&id)?).await?;
    Ok(gone_to_page())
}

/// `POST /dashboard/bundles/{id}/restore`.
pub(super) async fn restore(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    shared.bundles.restore_bundle(bundle_id(&id)?).await?;
    Ok(gone_to_page())
}

/// A version of a tool that a person wrote.
#[derive(Deserialize, JsonSchema)]
pub(super) struct StoreForm {
    document: String,
}

/// A switch of a bundle, or of one of its tools.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SwitchForm {
    enabled: bool,
    tool: Option<String>,
    version: Option<String>,
}

/// `POST /dashboard/bundles/{id}/tool` with `document`, the text of a tool: adds a version of it.
pub(super) async fn store(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<StoreForm>,
) -> Result<Response, Problem> {
    let ToolDocument {
        slug,
        version,
        content,
    } = ToolDocument::parse(&body.document)?;
    shared
        .bundles
        .put_tool((bundle_id(&id)?, slug, version), content)
        .await?;
    Ok(gone_to_page())
}

/// `POST /dashboard/bundles/{id}/switch` with `enabled`, and with `tool` and `version` for one of its
/// tools.
pub(super) async fn set_enabled(
    State(shared): State<SharedState>,
    Path(id): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<SwitchForm>,
) -> Result<Response, Problem> {
    let id = bundle_id(&id)?;
    if let Some(tool) = body.tool {
        let slug = tool.parse().map_err(BundleError::from)?;
        let version = body
            .version
            .ok_or_else(|| Problem::bad_request("`version` is missing from the body"))?;
        let version = version.parse().map_err(BundleError::from)?;
        shared
            .bundles
            .switch_tool((id, slug, version), body.enabled)
            .await?;
    } else {
        shared.bundles.switch_bundle(id, body.enabled).await?;
    }
    Ok(gone_to_page())
}

fn bundle_id(text: &str) -> Result<Uuid, Problem> {
    text.parse()
        .map_err(|_| Problem::not_found("no bundle has this id"))
}

/// The answer after a change: the page anew.
fn gone_to_page() -> Response {
    (StatusCode::NO_CONTENT, [(GO_TO, PAGE)]).into_response()
}
