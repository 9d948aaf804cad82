//! Calls that are over, as the log has them: on the page Calls, and on the page of each tool.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::calls::active::CallPhase;
use crate::calls::{CallEnd, CallPayload, EndedCall, KeptText, LogEntry, LogWanted, NumberedCall};
use crate::json::layout::indented;
use crate::server::auth::Access;
use crate::server::dashboard::links;
use crate::server::dashboard::page::{ErrorPage, html_response};
use crate::server::dashboard::text::{AGO, duration, foreign, relative_time};
use crate::server::{ServerState, SharedState};
use crate::state::LogKind;

/// At most this many calls are shown on the page Calls.
const SHOWN: usize = 50;
/// At most this many calls are shown on the page of a tool.
pub(super) const OF_TOOL: usize = 10;
/// At most this many characters of a name or of a part of the caller are shown.
const NAME: usize = 200;
/// At most this many characters of an error are shown.
const ERROR: usize = 500;
/// At most this many characters of the arguments, and of the result, are shown.
const PAYLOAD: usize = 20_000;

/// When calls are fetched again: when one ends; with a token, once more at the beginning, because
/// only requests of scripts carry it.
pub(super) fn refreshes(shared: &ServerState) -> &'static str {
    let needs_token = shared.config.borrow().operator_token().is_some();
    if needs_token {
        "load, sse:calls"
    } else {
        "sse:calls"
    }
}

/// The section of the page Calls.
pub(super) fn section(shared: &ServerState, access: Access, now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="latest-title" {
            h2 id="latest-title" { "Latest calls" }
            div id="latest-calls" hx-get="/dashboard/calls/latest" hx-trigger=(refreshes(shared)) hx-sync="this:replace" hx-disinherit="*" { (latest(shared, access, now)) }
        }
    }
}

/// `GET /dashboard/calls/latest`: the part that changes.
pub(super) async fn part(
    State(shared): State<SharedState>,
    access: Access,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    html_response(&headers, latest(&shared, access, shared.clock.wall()))
}

fn latest(shared: &ServerState, access: Access, now: Timestamp) -> Markup {
    html! {
        (table(shared, None, SHOWN, access, now))
        p class="quiet" { "More: " a href="/api/v1/log?kind=call&limit=1000" { "the log as JSON" } ", or " code { "callsheet logs" } "." }
    }
}

/// The latest calls, the latest first; with `tool` only those of this tool.
pub(super) fn table(
    shared: &ServerState,
    tool: Option<String>,
    limit: usize,
    access: Access,
    now: Timestamp,
) -> Markup {
    let wanted = LogWanted {
        kinds: vec![LogKind::Call],
        tool,
        limit,
        ..LogWanted::default()
    };
    let page = shared.calls.log(&wanted);
    let calls: Vec<&NumberedCall> = page
        .lines
        .iter()
        .rev()
        .filter_map(|line| {
            if let LogEntry::Call(call) = line {
                Some(call)
            } else {
                None
            }
        })
        .collect();
    html! {
        @if calls.is_empty() {
            p { "No call is in the log." }
        } @else {
            @if calls.iter().any(|call| !access.may_see(&call.call.access)) {
                p class="quiet" { "Callers and errors of operators' calls are shown to operators only: write the operator token on the page Calls." }
            }
            @if shared.calls.logs_payloads() && access != Access::Full {
                p class="quiet" { "Arguments and results are shown to operators only: write the operator token on the page Calls." }
            }
            div class="scroll" tabindex="0" role="region" aria-label="Lines of the log" { table class="cards" {
                thead { tr { @for head in ["Tool", "Outcome", "Caller", "When", "Took", "Error"] { th scope="col" { (head) } } } }
                tbody { @for call in calls { (row(shared, call, access, now)) } }
            } }
        }
    }
}

fn row(shared: &ServerState, numbered: &NumberedCall, access: Access, now: Timestamp) -> Markup {
    let call = &numbered.call;
    let is_shown = access.may_see(&call.access);
    let payload = numbered
        .payload
        .as_deref()
        .filter(|_| access == Access::Full);
    html! {
        tr data-call=(numbered.number) {
            th scope="row" data-label="Tool" {
                @match &call.tool {
                    Some(id) => a href=(links::tool(id)) { (id.scenario) "/" (foreign(&id.tool, NAME)) },
                    None => (foreign(&call.name, NAME)),
                }
            }
            td data-label="Outcome" { span { span class={ "badge" @if call.is_failure() { " error" } } { (call.outcome.replace('_', " ")) } } }
            td data-label="Caller" { span { @if is_shown { (caller(numbered)) } } }
            td data-label="When" { (relative_time(numbered.ended, now, AGO)) }
            td data-label="Took" { (duration(call.took)) }
            td data-label="Error" { span {
                @if let Some(error) = call.error.as_ref().filter(|_| is_shown) { (foreign(error, ERROR)) }
                @if let Some(note) = call.note.as_ref().filter(|_| is_shown) { p class="quiet" { (foreign(note, ERROR)) } }
                @if let Some(result) = given_later(shared, call, access).filter(|_| is_shown && payload.is_none()) { (result) }
                @if let Some(payload) = payload { (kept(numbered.number, payload)) }
            } }
        }
    }
}

fn caller(numbered: &NumberedCall) -> Markup {
    let call = &numbered.call;
    let parts = [
        ("", &call.client),
        ("user ", &call.user),
        ("profile ", &call.profile),
        ("chat ", &call.chat),
    ];
    let known: Vec<_> = parts
        .into_iter()
        .filter_map(|part| part.1.as_ref().map(|text| (part.0, text)))
        .collect();
    html! {
        @for (at, (what, text)) in known.iter().enumerate() { @if at > 0 { ", " } (what) (foreign(text, NAME)) }
    }
}

/// The result of a call that had to wait for input, as long as it is kept for its caller: that is
/// on this page, where the input was given, and in no answer to it. A later call of another access
/// may have the id of one that is over, so its owner counts, too.
fn given_later(shared: &ServerState, call: &EndedCall, access: Access) -> Option<Markup> {
    let active = shared.calls.active().get(call.call_id.as_deref()?)?;
    if !access.may_see(active.owner()) {
        return None;
    }
    let CallPhase::Over(end) = active.phase() else {
        return None;
    };
    let CallEnd::Answered(answer) = &*end else {
        return None;
    };
    let json = answer.content.as_ref().or(answer.result.as_ref())?;
    let shown = indented(json.get(), 4 * PAYLOAD);
    Some(html! {
        details id={ "result-" (active.id()) } {
            summary { "Result" }
            pre tabindex="0" { code { (foreign(&shown, PAYLOAD)) } }
        }
    })
}

/// The arguments and the result of a call.
fn kept(number: u64, payload: &CallPayload) -> Markup {
    html! {
        details id={ "payload-" (number) } {
            summary { "Arguments and result" }
            (text("Arguments", &payload.arguments))
            @match &payload.result {
                Some(result) => (text("Result", result)),
                None => p class="quiet" { "No result." },
            }
        }
    }
}

fn text(what: &str, kept: &KeptText) -> Markup {
    // A character has four bytes at most. What is cut is no JSON.
    let shown = if kept.cut {
        kept.text.clone()
    } else {
        indented(&kept.text, 4 * PAYLOAD)
    };
    html! {
        p class="quiet" { (what) @if kept.cut { ", the first " (kept.text.len()) " of " (kept.bytes) " bytes" } }
        pre tabindex="0" { code { (foreign(&shown, PAYLOAD)) } }
    }
}
