//! The page of one tool: its settings and their sources, its parameters as a form, and its
//! definition in each format.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::calls::Calls;
use crate::catalog::{Catalog, Explanation, explain};
use crate::formats;
use crate::json::layout::indented;
use crate::model::{Scope, ToolId, ViewTool};
use crate::server::api::lookup;
use crate::server::auth::Access;
use crate::server::dashboard::finding_list::finding_list;
use crate::server::dashboard::latest_calls;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::schema;
use crate::server::dashboard::text::{AGO, duration, foreign, relative_time, segment, sentence};
use crate::server::dashboard::tools;
use crate::server::dashboard::tools::{in_scope, tool_row};
use crate::server::dashboard::try_tool;
use crate::server::http::query::{QueryParams, once};
use crate::server::{ServerState, SharedState};

/// At most this many characters of a document are shown.
const SHOWN: usize = 200_000;
/// The format that is shown first: the one that most others are like.
const FIRST: &str = "openai";

/// `GET /dashboard/tool`. Parameters: `id` (`scenario/tool`), `scope`, `format`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let query = QueryParams::parse(raw.as_deref(), &[once("id"), once("scope"), once("format")])?;
    let scope: Scope = query
        .optional("scope")
        .unwrap_or("global")
        .parse()
        .unwrap_or(Scope::Global);
    let view = in_scope(&scope);
    let id = query.required("id")?;
    let tool = lookup::resolve_tool(&snapshot.catalog, &view, id)
        .map_err(|problem| lookup::with_left_out(problem, &snapshot, id))?;
    let explained = explain(&snapshot.catalog, &view, &tool);
    let now_at = format!(
        "/dashboard/tool/now?id={}&scope={}",
        segment(&tool.id.to_string()),
        segment(&scope.to_string())
    );
    let published = snapshot
        .catalog
        .entry(&tool.id.scenario)
        .is_some_and(|entry| entry.is_published());
    let main = html! {
        p { a href="/dashboard/tools" { "All tools" } }
        h1 { (foreign(tool.name.as_str(), 64)) " "
            span id="tool-listed" hx-get=(now_at) hx-select="#listed" hx-trigger="sse:catalog" hx-sync="this:replace" hx-disinherit="*" { (listed(&explained)) }
        }
        p class="lines lead" { (foreign(&tool.tool.description, 4_000)) }
        table class="card cards tools" {
            caption class="hidden" { "Settings in the scope " (scope) }
            (tools::heads())
            tbody { (tool_row(&snapshot, &scope, &tool, published)) }
        }
        div class="columns" {
            section class="card" aria-labelledby="parameters-title" { h2 id="parameters-title" { "Parameters" } (schema::form(tool.tool.parameters.get())) }
            section class="card" aria-labelledby="why-title" {
                h2 id="why-title" { "Why these settings" }
                div id="tool-why" hx-get=(now_at) hx-select="#why" hx-trigger="sse:catalog" hx-sync="this:replace" hx-disinherit="*" { (why(&snapshot.catalog, &explained)) }
                p { a href={ "/dashboard/preferences?scope=" (segment(&scope.to_string())) "&target=" (segment(&format!("tool:{}", tool.id))) } { "Set its alias or priority, or list it always" } }
            }
        }
        (try_tool::section(&tool))
        section class="card" aria-labelledby="calls-title" {
            h2 id="calls-title" { "Calls" }
            div id="tool-calls" hx-get={ "/dashboard/tool/calls?id=" (segment(&tool.id.to_string())) } hx-trigger=(latest_calls::refreshes(&shared)) hx-sync="this:replace" hx-disinherit="*" {
                (calls(&shared, &tool.id, access, now))
            }
        }
        section class="card" aria-labelledby="formats-title" {
            h2 id="formats-title" { "What LLMs get" }
            div id="format" { (in_format(&snapshot.catalog, &tool, query.optional("format").unwrap_or(FIRST))) }
        }
        details class="card" { summary { "Metadata as the scenario wrote it" } pre tabindex="0" { code { (pretty(tool.tool.metadata.get())) } } }
    };
    let page = Page {
        nav: Some(NavPage::Tools),
        title: &crate::server::dashboard::text::foreign_plain(tool.name.as_str(), 64),
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// `GET /dashboard/tool/now`: the parts that follow its settings. Parameters: `id`, `scope`.
pub(super) async fn settings_part(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let query = QueryParams::parse(raw.as_deref(), &[once("id"), once("scope")])?;
    let scope: Scope = query
        .optional("scope")
        .unwrap_or("global")
        .parse()
        .unwrap_or(Scope::Global);
    let view = in_scope(&scope);
    let snapshot = shared.reader.snapshot();
    let tool = lookup::resolve_tool(&snapshot.catalog, &view, query.required("id")?)?;
    let explained = explain(&snapshot.catalog, &view, &tool);
    html_response(
        &headers,
        html! { (listed(&explained)) (why(&snapshot.catalog, &explained)) },
    )
}

/// Whether it is in the list.
fn listed(explained: &Explanation) -> Markup {
    html! { span id="listed" class="badge" { @if explained.listed { "in the list" } @else { "not in the list" } } }
}

/// Each decision about it, and the findings.
fn why(catalog: &Catalog, explained: &Explanation) -> Markup {
    html! {
        div id="why" {
            table { tbody { @for step in &explained.steps {
                tr { th scope="row" { (step.subject) } td { (sentence(&step.outcome, 400)) p class="quiet" { (foreign(&step.source, 200)) } } }
            } } }
            @if !explained.findings.is_empty() { h3 { "Findings" } (finding_list(catalog, &explained.findings)) }
        }
    }
}

/// `GET /dashboard/tool/format`: its definition in one format. Parameters: `id`, `format`.
pub(super) async fn format(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let query = QueryParams::parse(raw.as_deref(), &[once("id"), once("format")])?;
    let snapshot = shared.reader.snapshot();
    let tool = lookup::resolve_tool(
        &snapshot.catalog,
        &in_scope(&Scope::Global),
        query.required("id")?,
    )?;
    html_response(
        &headers,
        in_format(&snapshot.catalog, &tool, query.format()?.id()),
    )
}

/// `GET /dashboard/tool/calls`: its counts and its latest calls. Parameter: `id`.
pub(super) async fn calls_part(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let query = QueryParams::parse(raw.as_deref(), &[once("id")])?;
    let (snapshot, now) = current_snapshot(&shared);
    let tool = lookup::resolve_tool(
        &snapshot.catalog,
        &in_scope(&Scope::Global),
        query.required("id")?,
    )?;
    html_response(&headers, calls(&shared, &tool.id, access, now))
}

fn calls(shared: &ServerState, id: &ToolId, access: Access, now: Timestamp) -> Markup {
    html! {
        (usage(&shared.calls, id, now))
        h3 { "Latest calls" }
        (latest_calls::table(shared, Some(id.to_string()), latest_calls::OF_TOOL, access, now))
    }
}

/// The counts of its calls, by result.
fn usage(calls: &Calls, id: &ToolId, now: Timestamp) -> Markup {
    let Some(usage) = calls.usage(id) else {
        return html! { p { "No calls are recorded." } };
    };
    html! {
        p class="quiet" { "Counted since its first call, " (relative_time(usage.first, now, AGO)) "." }
        table { tbody {
            tr { th scope="row" { "Calls" } td { (usage.calls) } }
            tr { th scope="row" { "Failures" } td {
                (usage.failed())
                @for (word, number) in &usage.failures { " " span class="quiet" { (word) " " (number) } }
            } }
            @if let Some(mean) = usage.mean() {
                tr { th scope="row" { "Average duration" } td { (duration(mean)) } }
                tr { th scope="row" { "Longest duration" } td { (duration(usage.longest)) } }
            }
            tr { th scope="row" { "Last called" } td { (relative_time(usage.last, now, AGO)) } }
        } }
    }
}

fn in_format(catalog: &Catalog, tool: &ViewTool, id: &str) -> Markup {
    let format = formats::by_id(id).unwrap_or(formats::FORMATS[0]);
    let encoded = format.encode(tool);
    html! {
        div class="tabs" role="group" aria-label="Format" {
            @for other in formats::FORMATS {
                @let at = format!("id={}&format={}", segment(&tool.id.to_string()), other.id());
                a id={ "format-" (other.id()) } href={ "/dashboard/tool?" (at) } hx-get={ "/dashboard/tool/format?" (at) } hx-target="#format"
                    aria-current=[(other.id() == format.id()).then_some("true")] { (other.id()) }
            }
        }
        @if !encoded.findings.is_empty() { (finding_list(catalog, &encoded.findings)) }
        @match &encoded.json {
            Some(json) => {
                p { (json.len()) " bytes, about " (format.limits().tokens(json.len())) " tokens (an estimate, rather too high)" }
                pre tabindex="0" { code { (pretty(&String::from_utf8_lossy(json))) } }
            }
            None => p class="bad" { "This format leaves the tool out." },
        }
    }
}

/// An indented document, up to the shown length: all indents of a deep document would take a
/// hundred times its size.
fn pretty(text: &str) -> Markup {
    // A character has four bytes at most.
    foreign(&indented(text, 4 * SHOWN), SHOWN)
}
