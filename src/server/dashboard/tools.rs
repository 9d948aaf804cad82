//! All tools of all scenarios, in pages that load while the user scrolls, with the settings of one
//! scope.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};
use url::form_urlencoded;
use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::{Catalog, Snapshot, Tier, View, ViewQuery, Visibility};
use crate::formats;
use crate::model::{
    ApprovalPolicy, PreferenceTarget, Provenance, ScenarioName, Scope, ToolId, ViewTool,
};
use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::api::preferences::ChangeBody;
use crate::server::auth::Access;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{count, foreign, segment, sentence};
use crate::server::dashboard::{bulk_bar, links};
use crate::server::http::error::Problem;
use crate::server::http::typed_body::ApiJson;
use crate::views::{Coding, CostJson};

/// Rows of one page.
const PAGE: usize = 100;
/// At most this many rows are fetched again at once.
const REFETCHED_ROWS_MAX: usize = 2_000;
/// At most this many scenarios are shown with their tokens.
const COSTS_SHOWN: usize = 100;
/// At most this many characters of a filter value are used.
const FILTER_CHARACTERS_MAX: usize = 200;

/// The filter of the page. Values that cannot be parsed count as absent.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolFilter {
    words: String,
    scenario: String,
    category: String,
    tag: String,
    state: String,
    scope: String,
    from: usize,
    rows: usize,
}

/// The parameters that select the shown tools.
pub(super) const FILTERS: [&str; 5] = ["q", "scenario", "category", "tag", "state"];

/// The states that tools can be filtered by.
const STATES: [(&str, &str); 6] = [
    ("", "every state"),
    ("on", "on"),
    ("off", "off"),
    ("approval", "needs approval"),
    ("internal", "internal"),
    ("unpublished", "scenario not published"),
];

/// A tool and whether its scenario is published.
struct ToolRow {
    tool: Arc<ViewTool>,
    published: bool,
}

impl ToolFilter {
    pub(super) fn parse(raw: Option<&str>) -> Self {
        let mut wanted = Self::default();
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            let text = || value.trim().chars().take(FILTER_CHARACTERS_MAX).collect();
            match &*name {
                "q" => wanted.words = text(),
                "scenario" => wanted.scenario = text(),
                "category" => wanted.category = text(),
                "tag" => wanted.tag = text(),
                "state" => wanted.state = text(),
                "scope" => wanted.scope = text(),
                "from" => wanted.from = value.parse().unwrap_or_default(),
                "rows" => wanted.rows = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        wanted.rows = wanted
            .rows
            .div_ceil(PAGE)
            .max(1)
            .saturating_mul(PAGE)
            .min(REFETCHED_ROWS_MAX);
        wanted
    }

    fn scope(&self) -> Scope {
        self.scope.parse().unwrap_or(Scope::Global)
    }

    fn query(&self) -> ViewQuery {
        let some = |text: &String| {
            (!text.is_empty())
                .then(|| text.clone())
                .into_iter()
                .collect()
        };
        ViewQuery {
            scenarios: self.scenario.parse::<ScenarioName>().into_iter().collect(),
            categories: some(&self.category),
            tags: some(&self.tag),
            ..in_scope(&self.scope())
        }
    }

    /// The matching tools, in order.
    fn rows(&self, catalog: &Catalog) -> Vec<ToolRow> {
        let listed = View::select(catalog, &self.query());
        let tools = if self.words.is_empty() {
            listed.tools().cloned().collect()
        } else {
            searched(&listed, &self.words)
        };
        let mut rows: Vec<ToolRow> = tools
            .into_iter()
            .map(|tool| ToolRow {
                tool,
                published: true,
            })
            .collect();
        let hidden = catalog
            .entries()
            .filter(|entry| entry.visibility != Visibility::Published);
        let hidden = hidden
            .flat_map(|entry| entry.tools.iter())
            .filter(|tool| self.matches_hidden(tool));
        rows.extend(hidden.map(|tool| ToolRow {
            tool: Arc::clone(tool),
            published: false,
        }));
        rows.retain(|row| self.matches_state(row));
        rows
    }

    /// The ids of the matching tools.
    pub(super) fn ids(&self, catalog: &Catalog) -> Vec<ToolId> {
        self.rows(catalog)
            .into_iter()
            .map(|row| row.tool.id.clone())
            .collect()
    }

    fn matches_hidden(&self, tool: &ViewTool) -> bool {
        let text = format!("{} {} {}", tool.id, tool.name, &*tool.tool.description).to_lowercase();
        (self.scenario.is_empty() || tool.id.scenario.as_str() == self.scenario)
            && (self.category.is_empty() || tool.tool.category.as_deref() == Some(&*self.category))
            && (self.tag.is_empty() || tool.tool.facts.tags.iter().any(|tag| **tag == *self.tag))
            && self
                .words
                .to_lowercase()
                .split_whitespace()
                .all(|word| text.contains(word))
    }

    fn matches_state(&self, row: &ToolRow) -> bool {
        let ToolRow { tool, published } = row;
        match &*self.state {
            "on" => *published && tool.effective.enabled,
            "off" => !tool.effective.enabled,
            "approval" => tool.effective.requires_approval,
            "internal" => tool.tool.facts.internal_only,
            "unpublished" => !published,
            _ => true,
        }
    }
}

/// Tools that match the typed words, best first: tools that contain every word; without any, tools
/// that contain them with a typing error, then tools that are about them.
fn searched(view: &View, typed: &str) -> Vec<Arc<ViewTool>> {
    let mut hits = view.palette(typed, &[], REFETCHED_ROWS_MAX);
    let whole = hits
        .iter()
        .position(|hit| hit.tier == Some(Tier::Fuzzy))
        .unwrap_or(hits.len());
    if whole > 0 {
        hits.truncate(whole);
    } else {
        let near: BTreeSet<_> = hits.iter().map(|hit| hit.tool.id.clone()).collect();
        hits.extend(
            view.rank(typed, REFETCHED_ROWS_MAX)
                .into_iter()
                .filter(|hit| !near.contains(&hit.tool.id)),
        );
    }
    hits.into_iter().map(|hit| hit.tool).collect()
}

/// A query for all tools of a scope.
pub(super) fn in_scope(scope: &Scope) -> ViewQuery {
    let (profile, chat) = match scope {
        Scope::Global => (None, None),
        Scope::Profile(name) => (Some(name.clone()), None),
        Scope::Chat(id) => (None, Some(id.clone())),
    };
    let all = ViewQuery {
        include_disabled: true,
        include_internal: true,
        ..ViewQuery::default()
    };
    ViewQuery {
        of_operator: true,
        profile,
        chat,
        ..all
    }
}

/// `GET /dashboard/tools`. Parameters: `q`, `scenario`, `category`, `tag`, `state`, `scope`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let wanted = ToolFilter::parse(raw.as_deref());
    let main = html! {
        h1 { "Tools" }
        (filter(&snapshot, &wanted))
        details class="card" id="formats" hx-get="/dashboard/tools/formats" hx-trigger="toggle" hx-target="#formats-table" {
            summary { "Size of the list for each LLM vendor" }
            div id="formats-table" {}
        }
        (bulk_bar::bar())
        table class="card cards tools many" {
            caption class="hidden" { "Tools with their settings" }
            (heads())
            tbody id="tool-rows" hx-get="/dashboard/tools/rows" hx-include="#filter" hx-sync="this:replace" hx-disinherit="*"
                hx-trigger="sse:catalog, input delay:150ms from:#filter, submit from:#filter" {
                (rows(&snapshot, &wanted))
            }
        }
    };
    let page = Page {
        nav: Some(NavPage::Tools),
        title: "Tools",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// The heads of a table of tools.
pub(super) fn heads() -> Markup {
    html! { thead { tr { @for head in ["Tool", "Scenario", "Category and tags", "In the list", "Approval"] { th scope="col" { (head) } } } } }
}

fn filter(snapshot: &Snapshot, wanted: &ToolFilter) -> Markup {
    let published = || snapshot.catalog.entries();
    let categories: std::collections::BTreeSet<&str> = published()
        .flat_map(|entry| &entry.tools[..])
        .filter_map(|tool| tool.tool.category.as_deref())
        .collect();
    let choice = |value: &str, chosen: &str, all: &str| {
        html! { option value=(value) selected[value == chosen] { @if value.is_empty() { (all) } @else { (foreign(value, 80)) } } }
    };
    html! {
        form id="filter" class="filter" method="get" action="/dashboard/tools" role="search" {
            label { "Search" input type="search" name="q" value=(wanted.words) placeholder="name, words, tag" data-search autocomplete="off"; }
            label { "Scenario" select name="scenario" { (choice("", &wanted.scenario, "every scenario"))
                @for entry in published().take(1_000) { (choice(entry.name.as_str(), &wanted.scenario, "")) } } }
            label { "Category" select name="category" { (choice("", &wanted.category, "every category"))
                @for category in categories.iter().take(500) { (choice(category, &wanted.category, "")) } } }
            label { "Tag" input name="tag" value=(wanted.tag) placeholder="any"; }
            label { "State" select name="state" { @for (id, told) in STATES { option value=(id) selected[id == wanted.state] { (told) } } } }
            label { "Settings of" input name="scope" value=(wanted.scope()) list="scopes" placeholder="global, profile:NAME or chat:ID"; }
            datalist id="scopes" { option value="global" {} @for scope in scopes(snapshot) { option value=(scope) {} } }
            input type="hidden" name="rows" data-rows value="";
            noscript { button type="submit" { "Show" } }
        }
    }
}

fn scopes(snapshot: &Snapshot) -> Vec<String> {
    let mut scopes: Vec<String> = snapshot
        .catalog
        .preferences()
        .iter()
        .map(|(scope, _, _)| scope.to_string())
        .collect();
    scopes.dedup();
    scopes.truncate(200);
    scopes
}

/// `GET /dashboard/tools/rows`: the rows `from` on, or the first `rows`.
pub(super) async fn part(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let mut wanted = ToolFilter::parse(raw.as_deref());
    if wanted.from > 0 {
        wanted.rows = PAGE;
    }
    html_response(&headers, rows(&shared.reader.snapshot(), &wanted))
}

fn rows(snapshot: &Snapshot, wanted: &ToolFilter) -> Markup {
    let found = wanted.rows(&snapshot.catalog);
    let scope = wanted.scope();
    let end = wanted.from.saturating_add(wanted.rows);
    html! {
        @if let Some(unknown) = snapshot.catalog.unknown_profile(&in_scope(&scope)) {
            tr class="count" { td colspan="5" class="bad" { (sentence(&unknown.to_string(), 1_000)) } }
        }
        @if wanted.from == 0 {
            tr class="count" { td colspan="5" { (counted(found.len(), end.min(found.len()), snapshot)) } }
        }
        @for row in found.iter().skip(wanted.from).take(wanted.rows) { (tool_row(snapshot, &scope, &row.tool, row.published)) }
        @if found.len() > end {
            tr class="more" hx-get="/dashboard/tools/rows" hx-include="#filter" hx-vals={ "{\"from\":\"" (end) "\"}" } hx-trigger="revealed" hx-swap="outerHTML" {
                td colspan="5" class="quiet" { "More tools load as you scroll." }
            }
        }
    }
}

/// The number of tools, and boxes that tick them all.
fn counted(found: usize, shown: usize, snapshot: &Snapshot) -> Markup {
    html! {
        span role="status" { (count(found, "tool")) }
        @if snapshot.catalog.entries().next().is_none() {
            " yet. " a href="/#add" { "Add a scenario" }
        } @else if found == 0 {
            " match. " a href="/dashboard/tools" { "Show all" }
        } @else {
            label class="choice" { input type="checkbox" id="tick-shown" autocomplete="off"; "select all shown" }
            @if found > shown {
                label class="choice" { input type="checkbox" id="tick-matching" form="bulk" name="matching" value=(found) autocomplete="off"; "select all " (found) }
            }
        }
    }
}

/// `PUT /dashboard/tools/preference`: the same as `PUT /api/v1/preferences` for one tool, but
/// answers with its updated row.
pub(super) async fn prefer(
    State(shared): State<SharedState>,
    access: Access,
    headers: HeaderMap,
    ApiJson(body): ApiJson<ChangeBody>,
) -> Result<Response, Problem> {
    let (scope, target, patch) = body.into_patch()?;
    let PreferenceTarget::Tool(id) = &target else {
        return Err(Problem::bad_request(
            "a row is of one tool: `target` must be `tool:<scenario>/<tool>`",
        ));
    };
    let id = id.clone();
    shared
        .set_preference(access, scope.clone(), target, patch)
        .await?;
    let snapshot = shared.reader.snapshot();
    let found = lookup::resolve_tool(&snapshot.catalog, &in_scope(&scope), &id.to_string())?;
    let published = snapshot
        .catalog
        .entry(&id.scenario)
        .is_some_and(|entry| entry.is_published());
    html_response(&headers, tool_row(&snapshot, &scope, &found, published))
        .map_err(ErrorPage::into_problem)
}

/// A tool with its settings in a scope.
pub(super) fn tool_row(
    snapshot: &Snapshot,
    scope: &Scope,
    tool: &ViewTool,
    published: bool,
) -> Markup {
    let key = format!("t{:016x}", xxh3_64(tool.id.to_string().as_bytes()));
    html! {
        tr id=(key) data-tool=(tool.id) {
            th scope="row" data-label="Tool" {
                input class="pick" id={ (key) "-pick" } type="checkbox" form="bulk" name="tools" value=(tool.id) autocomplete="off" aria-label={ "Tick " (tool.name.as_str()) };
                a class="name" href={ (links::tool(&tool.id)) "&scope=" (segment(&scope.to_string())) } { (foreign(tool.name.as_str(), 64)) }
                @if tool.name.as_str() != &*tool.id.tool { p class="quiet" { "original name: " (foreign(&tool.id.tool, 100)) } }
                p class="quiet clip" { (foreign(&tool.tool.description, 160)) }
            }
            td data-label="Scenario" { span { a href={ "/dashboard/scenarios/" (segment(tool.id.scenario.as_str())) } { (tool.id.scenario) } }
                @if !published { p class="small bad why" { "not published" @if let Some(why) = withheld(snapshot, tool) { ": " (sentence(why, 200)) } } } }
            td data-label="Labels" { span class="tags" {
                @if let Some(category) = &tool.tool.category { span class="badge" { (foreign(category, 60)) } }
                @for tag in tool.tool.facts.tags.iter().take(8) { span class="badge quiet" { (foreign(tag, 40)) } }
                @if tool.tool.facts.internal_only { span class="badge" { "internal" } }
            } }
            td data-label="In the list" { (enabled(snapshot, scope, tool, published, &key)) }
            td data-label="Approval" { (approval(snapshot, scope, tool, &key)) }
        }
    }
}

/// Why its scenario is not in the list.
fn withheld<'a>(snapshot: &'a Snapshot, tool: &ViewTool) -> Option<&'a str> {
    match &snapshot.catalog.entry(&tool.id.scenario)?.visibility {
        Visibility::Published => None,
        Visibility::Withdrawn(why) | Visibility::Hidden(why) => Some(why),
    }
}

fn enabled(
    snapshot: &Snapshot,
    scope: &Scope,
    tool: &ViewTool,
    published: bool,
    key: &str,
) -> Markup {
    let own = snapshot
        .catalog
        .preferences()
        .get(scope, &PreferenceTarget::Tool(tool.id.clone()));
    let on = tool.effective.enabled;
    html! {
        label class="choice" { input id={ (key) "-on" } type="checkbox" checked[on] data-member="enabled" autocomplete="off"
                hx-put="/dashboard/tools/preference" hx-vals=(vals(scope, tool, None)) hx-target="closest tr" hx-swap="outerHTML"
                hx-trigger="change" aria-label={ (tool.name.as_str()) " is in the list" }; @if !on { "off" } @else if published { "on" } @else { "on, when its scenario is published" } }
        (origin(&tool.effective.enabled_source))
        @if own.is_some_and(|own| own.enabled.is_some()) { (reset(scope, tool, "enabled", key)) }
    }
}

fn approval(snapshot: &Snapshot, scope: &Scope, tool: &ViewTool, key: &str) -> Markup {
    let own = snapshot
        .catalog
        .preferences()
        .get(scope, &PreferenceTarget::Tool(tool.id.clone()));
    let asks = tool.effective.requires_approval;
    html! {
        select id={ (key) "-approval" } data-member="approval" autocomplete="off" aria-label={ "Approval of " (tool.name.as_str()) }
            hx-put="/dashboard/tools/preference" hx-vals=(vals(scope, tool, None)) hx-target="closest tr" hx-swap="outerHTML" hx-trigger="change" {
            option value=(ApprovalPolicy::Require.as_str()) selected[asks] { "required" }
            option value=(ApprovalPolicy::Skip.as_str()) selected[!asks] { "not needed" }
        }
        (origin(&tool.effective.approval_source))
        @if own.is_some_and(|own| own.approval.is_some()) { (reset(scope, tool, "approval", key)) }
    }
}

fn reset(scope: &Scope, tool: &ViewTool, setting: &str, key: &str) -> Markup {
    html! {
        button id={ (key) "-" (setting) "-reset" } type="button" class="plain" hx-put="/dashboard/tools/preference" hx-vals=(vals(scope, tool, Some(setting)))
            hx-target="closest tr" hx-swap="outerHTML" aria-label={ "Reset " (setting) " of " (tool.name.as_str()) } { "reset" }
    }
}

/// The values that are sent with a change. A setting that is reset is `null`.
fn vals(scope: &Scope, tool: &ViewTool, reset: Option<&str>) -> String {
    let mut vals =
        serde_json::json!({"scope": scope.to_string(), "target": format!("tool:{}", tool.id)});
    if let Some(setting) = reset {
        vals[setting] = "null".into();
    }
    vals.to_string()
}

fn origin(source: &Provenance) -> Markup {
    html! { p class="quiet" { @match source { Provenance::Manifest => "scenario default", source => { "by " (foreign(&source.to_string(), 200)) } } } }
}

/// `GET /dashboard/tools/formats`: the size of the list in each format, and the known limit of each
/// format.
pub(super) async fn formats(
    State(shared): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let snapshot = shared.reader.snapshot();
    let mut lists = Vec::new();
    for format in formats::FORMATS.iter().copied() {
        let prepared = shared
            .views
            .prepare(&snapshot, &ViewQuery::default(), format, Coding::Identity)
            .await;
        lists.push((
            format,
            prepared.tools,
            prepared.left_out,
            prepared.body.len(),
            prepared.tokens,
        ));
    }
    let markup = html! {
        div class="scroll" tabindex="0" role="region" aria-label="Lists by format" { table {
            thead { tr { @for head in ["Format", "Tools", "Limit", "Left out", "Bytes", "Tokens (estimated)"] { th scope="col" { (head) } } } }
            tbody { @for (format, tools, left_out, bytes, tokens) in &lists {
                tr { th scope="row" { (format.id()) } td { (tools) } td { @match format.limits().max_tools { Some(most) => (most), None => "no known limit" } }
                    td class=[(*left_out > 0).then_some("bad")] { (left_out) } td { (bytes) } td { (tokens) } }
            } }
        } }
        p class="quiet" { "Tokens are estimated and rather too high: vendors count differently and do not publish how." }
        (cost(&snapshot))
    };
    html_response(&headers, markup)
}

/// What the list of MCP clients costs, by scenario, and what would save tokens.
fn cost(snapshot: &Snapshot) -> Markup {
    let view = View::select(&snapshot.catalog, &ViewQuery::default());
    let cost = CostJson::measure(&view, formats::mcp_tools(formats::McpToolList::default()));
    let over: Vec<String> = cost
        .caps
        .iter()
        .filter(|cap| cap.over > 0)
        .map(|cap| format!("{} takes {}", cap.format, cap.max_tools))
        .collect();
    html! {
        h3 { "Tokens by scenario, as MCP clients get them" }
        div class="scroll" tabindex="0" role="region" aria-label="Tokens by scenario" { table {
            thead { tr { @for head in ["Scenario", "Tools", "Tokens", "Descriptions", "Schemas"] { th scope="col" { (head) } } } }
            tbody { @for scenario in cost.scenarios.iter().take(COSTS_SHOWN) {
                tr { th scope="row" { a href={ "/dashboard/scenarios/" (segment(scenario.scenario)) } { (foreign(scenario.scenario, 100)) } }
                    td { (scenario.tools) } td { (scenario.cost.tokens) } td { (scenario.cost.description_tokens) } td { (scenario.cost.schema_tokens) } }
            } }
        } }
        @if !over.is_empty() { p class="bad" { "More tools than some vendors take at once: " (over.join(", ")) "." } }
        p class="quiet" { "The search mode of /mcp saves about " (cost.saved.search_mode) " of " (cost.tokens) " tokens, signatures in place of schemas about " (cost.saved.signatures) ". Switching a scenario off saves its tokens." }
    }
}
