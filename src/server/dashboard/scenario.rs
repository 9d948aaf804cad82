//! The page of one scenario: its states in the last day, its findings and its tools.

use axum::extract::{Path, State};
use axum::response::Response;
use http::HeaderMap;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::calls::LogEntry;
use crate::catalog::{Snapshot, Visibility};
use crate::formats;
use crate::json::layout::indented;
use crate::model::text::byte_count;
use crate::model::{Finding, Health, MemoryMeasure, ProgramCost, RecordedEnd, StateTransition};
use crate::server::api::program_costs::program_cost;
use crate::server::api::scenarios::{RecentErrors, find, findings_of, recent_errors};
use crate::server::dashboard::finding_list::finding_list;
use crate::server::dashboard::history::ScenarioHistory;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::scenario_row::{actions, answers, badge, freshness};
use crate::server::dashboard::text::{
    AGO, FOR, count, duration, foreign, minute, relative_time, segment, sentence, span,
};
use crate::server::dashboard::{links, login, pins, plots};
use crate::server::{ServerState, SharedState};
use crate::state::LogKind;

/// At most this many changes of state are shown.
const TURNS: usize = 50;
/// At most this many tools are shown; the page of the tools shows all.
const TOOLS: usize = 200;
/// At most this many characters of the model are shown.
const MODEL: usize = 400_000;
/// Characters of a line on standard error.
const LINE: usize = 500;

/// `GET /dashboard/scenarios/{name}`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let health = find(&snapshot, &name)?;
    let findings = findings_of(&shared, &snapshot, &health.name).await;
    let past = ScenarioHistory::read(&shared.calls, &health.name);
    let cost = program_cost(&shared, &health.name).await;
    let main = html! {
        p { a href="/" { "All scenarios" } }
        div id="scenario" hx-get={ "/dashboard/scenarios/" (segment(&name)) "/now" } hx-trigger="sse:health" hx-sync="this:replace" hx-disinherit="*" {
            (present(&shared, health, cost, &past, now))
        }
        // Outside of the part that is fetched again, so that the zoom stays.
        (plots::interactive_plot())
        div id="offer" hx-get={ "/dashboard/scenarios/" (segment(&name)) "/offer" } hx-trigger="sse:catalog" hx-sync="this:replace" hx-disinherit="*" {
            (offer(&shared, &snapshot, health, &findings, &past, now))
        }
        (model_box(health))
    };
    let page = Page {
        nav: Some(NavPage::Scenarios),
        title: health.name.as_str(),
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// `GET /dashboard/scenarios/{name}/now`: its health.
pub(super) async fn now(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let health = find(&snapshot, &name)?;
    let past = ScenarioHistory::read(&shared.calls, &health.name);
    let cost = program_cost(&shared, &health.name).await;
    html_response(&headers, present(&shared, health, cost, &past, now))
}

/// `GET /dashboard/scenarios/{name}/offer`: its findings and tools.
pub(super) async fn offer_part(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let health = find(&snapshot, &name)?;
    let findings = findings_of(&shared, &snapshot, &health.name).await;
    let past = ScenarioHistory::read(&shared.calls, &health.name);
    html_response(
        &headers,
        offer(&shared, &snapshot, health, &findings, &past, now),
    )
}

/// `GET /dashboard/scenarios/{name}/model`: how callsheet understood its manifest.
pub(super) async fn model(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let snapshot = shared.reader.snapshot();
    let health = find(&snapshot, &name)?;
    let mut text = String::new();
    for tool in snapshot
        .catalog
        .entry(&health.name)
        .into_iter()
        .flat_map(|entry| entry.tools.iter())
    {
        let json = formats::FORMATS[0].encode(tool).json.unwrap_or_default();
        // A character has four bytes at most.
        text.push_str(&indented(&String::from_utf8_lossy(&json), 4 * MODEL));
        text.push('\n');
        if text.len() > 4 * MODEL {
            break;
        }
    }
    html_response(
        &headers,
        html! { pre tabindex="0" { code { (foreign(&text, MODEL)) } } },
    )
}

fn present(
    shared: &ServerState,
    health: &Health,
    cost: Option<ProgramCost>,
    past: &ScenarioHistory,
    now: Timestamp,
) -> Markup {
    let latencies = shared.dashboard.history.latencies(&health.name);
    let since = past.since.unwrap_or(health.since);
    html! {
        h1 { (health.name) " " (badge(health.state)) }
        p { (relative_time(health.since, now, FOR)) ": " (sentence(&health.reason, 600)) }
        div class="actions wide row" { (actions(health, shared.load_options.is_some())) (login::buttons(shared, &health.name)) }
        section class="card" aria-labelledby="timeline-title" {
            h2 id="timeline-title" { "The last " (plots::timeline_span(since, now).words) }
            (plots::timeline(past, health, since, now))
            p class="quiet" {
                @if past.since.is_some() { "From the log, which begins " (relative_time(since, now, AGO)) ". Grey: callsheet did not run, or has no record." }
                @else { "Changes of states are not kept (" code { "calls.log_states" } "), so only the present state is shown." }
            }
        }
        div class="columns" {
            section class="card" aria-labelledby="health-title" {
                h2 id="health-title" { "Health" }
                dl {
                    dt { "Freshness" } dd { (freshness(health, now)) }
                    dt { "Answers" } dd { (answers(health, now)) }
                    dt { "Latency" } dd { (plots::sparkline(&latencies)) (plots::plot_data(&latencies)) @match health.latency_ms { Some(took) => { (took) " ms for the last answer" } None => "not measured" } }
                    @if let Some(cost) = cost { dt { "Program" } dd { (program(cost)) } }
                    dt { "Restarts" } dd { (health.restarts) @if let Some(at) = health.last_restart { ", last " (relative_time(at, now, AGO)) } }
                }
            }
            (identity(shared, health, now))
        }
    }
}

/// What its program costs: `48.3 MB in 3 processes, 1.25 s of processor time`.
fn program(cost: ProgramCost) -> Markup {
    let processes = match cost.processes {
        1 => "1 process".to_owned(),
        several => format!("{several} processes"),
    };
    let seconds = cost.processor_time.as_secs();
    let took = if seconds < 90 {
        duration(cost.processor_time)
    } else {
        span(i64::try_from(seconds).unwrap_or(i64::MAX))
    };
    html! {
        (byte_count(cost.memory_bytes)) " in " (processes) ", " (took) " of processor time"
        @if cost.memory_measure == MemoryMeasure::Resident { " (memory that processes share is counted in each)" }
    }
}

fn identity(shared: &ServerState, health: &Health, now: Timestamp) -> Markup {
    html! {
        section class="card" aria-labelledby="who-title" {
            h2 id="who-title" { "Identity" }
            dl {
                dt { "Found" } dd { (health.source.spec().found) @if health.trusted { ", trusted" } @else { ", not trusted" } }
                dt { "Address" } dd { @match &health.url { Some(url) => code { (foreign(url, 300)) } None => "none known" } }
                @if let Some(identity) = &health.party.identity { dt { "Peer identity" } dd { code { (foreign(identity, 120)) } } }
                @if let Some(own) = &health.own_name { dt { "Own name" } dd { (foreign(own, 120)) } }
                dt { "Protocol" } dd { (health.protocol.unwrap_or("unknown")) @if let Some(version) = &health.protocol_version { " " (foreign(version, 40)) } }
                @if let Some(version) = &health.version { dt { "Version" } dd { (foreign(version, 60)) } }
                (login::state(shared, &health.name, now))
                @if let Some(text) = &health.description { dt { "Description" } dd { (foreign(text, 600)) } }
            }
        }
    }
}

/// The changes of state and the ends of its program as a table, the latest first.
fn turns(past: &ScenarioHistory, now: Timestamp) -> Markup {
    let lines: Vec<&LogEntry> = past
        .lines
        .iter()
        .filter(|line| line.kind() != LogKind::Start)
        .collect();
    let ends = lines
        .iter()
        .filter(|line| line.kind() == LogKind::End)
        .count();
    html! {
        @if !lines.is_empty() {
            details class="card" id="turns" {
                summary { (count(lines.len() - ends, "change")) " of state" @if ends > 0 { ", " (count(ends, "end")) " of its program" } }
                div class="scroll" tabindex="0" role="region" aria-label="Changes of state" { table {
                    thead { tr { @for head in ["When", "From", "To", "Why"] { th scope="col" { (head) } } } }
                    tbody { @for line in lines.into_iter().rev().take(TURNS) {
                        @match line {
                            LogEntry::State(state) => (turn(&state.change, now)),
                            LogEntry::End(end) => (program_end(&end.end, now)),
                            LogEntry::Call(_) | LogEntry::Start(_) => {},
                        }
                    } }
                } }
            }
        }
    }
}

fn turn(turn: &StateTransition, now: Timestamp) -> Markup {
    html! {
        tr {
            td title=(minute(turn.at)) { (relative_time(turn.at, now, AGO)) }
            td { @match turn.from { Some(state) => (badge(state)), None => "unknown" } }
            td { @match turn.to { Some(state) => (badge(state)), None => "removed" } }
            td { (sentence(&turn.reason, 200)) }
        }
    }
}

/// How its program ended, with its last lines on standard error.
fn program_end(end: &RecordedEnd, now: Timestamp) -> Markup {
    let program = &end.program;
    let ran = span(i64::try_from(program.uptime.as_secs()).unwrap_or(i64::MAX));
    html! {
        tr {
            td title=(minute(end.at)) { (relative_time(end.at, now, AGO)) }
            td colspan="2" { span class="badge error" { "program ended" } }
            td {
                (sentence(&program.how, 200)) ". It ran for " (ran) "."
                @if !program.stderr.is_empty() { pre tabindex="0" { code { @for line in &program.stderr { (foreign(line, LINE)) "\n" } } } }
            }
        }
    }
}

fn offer(
    shared: &ServerState,
    snapshot: &Snapshot,
    health: &Health,
    findings: &[Finding],
    past: &ScenarioHistory,
    now: Timestamp,
) -> Markup {
    let entry = snapshot.catalog.entry(&health.name);
    html! {
        (turns(past, now))
        (errors(&recent_errors(shared, health)))
        (pins::card(shared, health, now))
        section class="card" aria-labelledby="findings-title" {
            h2 id="findings-title" { "Findings" }
            @if findings.is_empty() { p { "No findings." } } @else { (finding_list(&snapshot.catalog, findings)) }
        }
        section class="card" aria-labelledby="tools-title" {
            h2 id="tools-title" { "Tools" }
            @match entry {
                None => p { "It has not sent its list of tools yet." },
                Some(entry) => {
                    @match &entry.visibility {
                        Visibility::Published => {},
                        Visibility::Withdrawn(why) => p class="bad" { "Withdrawn from the list: " (sentence(why, 300)) },
                        Visibility::Hidden(why) => p class="bad" { "Not in the list: " (sentence(why, 300)) },
                    }
                    @if entry.tools.is_empty() { p { "It offers no tools." } }
                    ul {
                        @for offered in entry.tools.iter().take(TOOLS) {
                            li { a href=(links::tool(&offered.id)) { (foreign(&offered.id.tool, 100)) }
                                @if !offered.effective.enabled { " (disabled)" } " "
                                span class="quiet" { (foreign(&offered.tool.description, 120)) } }
                        }
                    }
                    p { a href={ "/dashboard/tools?scenario=" (segment(health.name.as_str())) } { "All its tools with their settings" } }
                }
            }
        }
    }
}

/// What the program of the scenario wrote to standard error.
fn errors(recent: &RecentErrors) -> Markup {
    let lines = &recent.lines;
    html! {
        @if !lines.is_empty() {
            details class="card" id="stderr" {
                summary { "Standard error: the last " (count(lines.len(), "line")) @if recent.end.is_some() { " of the run that ended last" } }
                @if let Some(end) = &recent.end { p { "How that run ended: " (sentence(end, 200)) "." } }
                p class="quiet" { "Values of its environment are masked." }
                pre tabindex="0" { code { @for line in lines { (foreign(line, LINE)) "\n" } } }
            }
        }
    }
}

fn model_box(health: &Health) -> Markup {
    let name = &health.name;
    let base = format!("/dashboard/scenarios/{}", segment(name.as_str()));
    html! {
        details class="card" id="model" hx-get={ (base) "/model" } hx-trigger="toggle once" hx-target="#model-text" {
            summary { "Manifest: the raw answer, and how callsheet understood it" }
            div class="columns" {
                section aria-labelledby="raw-title" {
                    h3 id="raw-title" { "Raw answer" }
                    @if health.url.as_deref().is_some_and(|url| url.starts_with("local:")) {
                        p class="quiet" { "It runs inside this program, so it sends no answer." }
                    } @else {
                        p class="quiet" { "callsheet does not keep raw answers. This polls the scenario once and shows the answer. It changes nothing else." }
                        p { button id={ "raw-" (name) } type="button" hx-post={ (base) "/raw" } hx-target="#raw-text" hx-swap="innerHTML"
                            hx-trigger="click" hx-disabled-elt="this" { "Poll now" } }
                    }
                    div id="raw-text" aria-live="polite" {}
                }
                section aria-labelledby="understood-title" {
                    h3 id="understood-title" { "As callsheet understood it" }
                    p class="quiet" { "Its tools as the protocol spells them, with the global settings." }
                    div id="model-text" {}
                }
            }
        }
    }
}
