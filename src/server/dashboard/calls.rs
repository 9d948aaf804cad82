//! Calls that wait for approval, with buttons to approve or reject them, operations, and the latest
//! calls.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::json;

use crate::calls::approval::Approvals;
use crate::model::{ApprovalRequest, ApprovalState, CallerInfo, Operation, TOOL_NAME_MAX};
use crate::server::api::operations;
use crate::server::auth::Access;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{
    AGO, IN, count, foreign, foreign_plain, relative_time, segment,
};
use crate::server::dashboard::{interactions, latest_calls, links};
use crate::server::readable_arguments::ReadableArguments;
use crate::server::{ServerState, SharedState};

/// At most this many characters of arguments are shown; the API shows all of them. A call with more
/// cannot be approved on this page.
const ARGUMENTS: usize = 20_000;
/// At most this many characters of each part of the caller are shown, with the same effect.
const CALLER: usize = 200;
/// At most this many finished calls and operations are shown.
const OVER: usize = 50;
/// At most this many waiting calls are shown.
const WAITING: usize = 100;

/// `GET /dashboard/calls`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    access: Access,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let needs_token = shared.config.borrow().operator_token().is_some();
    let main = html! {
        h1 { "Calls" }
        p class="lead" { "Calls that need an approval or input wait here. An approved call runs once, exactly as shown. A call that is not approved in time expires and never runs. All calls that are over are below." }
        (operator(needs_token))
        // A stream of its own, because snapshots do not contain calls.
        div sse-connect="/api/v1/events?kind=approval,operation,call" {
            div id="calls" hx-get="/dashboard/calls/now" hx-trigger=(refreshes(needs_token)) hx-sync="this:replace" hx-disinherit="*" { (present(&shared, access, now)) }
        }
        (latest_calls::section(&shared, access, now))
    };
    let page = Page {
        nav: Some(NavPage::Calls),
        title: "Calls",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// `GET /dashboard/calls/now`: the part that changes.
pub(super) async fn part(
    State(shared): State<SharedState>,
    access: Access,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    html_response(&headers, present(&shared, access, shared.clock.wall()))
}

/// When the part that changes is requested again. The stream of events of a page carries no token,
/// so where one is needed the events of calls do not come, and the page looks regularly.
fn refreshes(needs_token: bool) -> &'static str {
    if needs_token {
        "load, every 5s, sse:approval, sse:operation, sse:snapshot"
    } else {
        "sse:approval, sse:operation, sse:call, sse:snapshot"
    }
}

fn present(shared: &ServerState, access: Access, now: Timestamp) -> Markup {
    let approvals = shared
        .calls
        .approvals()
        .map(Approvals::all)
        .unwrap_or_default();
    let (waits, mut decided): (Vec<_>, Vec<_>) = approvals
        .iter()
        .partition(|request| request.state == ApprovalState::Waiting);
    // In the order of the times that are shown: a call may be decided long after a later one.
    decided.sort_by_key(|request| over_at(request));
    let operations = operations::all_seen(shared, access);
    let (over, going): (Vec<_>, Vec<_>) = operations
        .iter()
        .partition(|operation| operation.state.is_over());
    html! {
        section aria-labelledby="waiting-title" {
            h2 id="waiting-title" { "Waiting for approval " span class="quiet" { (count(waits.len(), "call")) } }
            @if waits.is_empty() { p class="card" id="empty" { "No call waits for a decision." } }
            @for request in waits.iter().take(WAITING) { (waiting(request, now)) }
            @if waits.len() > WAITING { p class="quiet" { (waits.len() - WAITING) " more: " a href="/api/v1/approvals?state=waiting" { "all as JSON" } } }
        }
        (interactions::waiting(&shared.calls.active().waiting(), access, now))
        section aria-labelledby="operations-title" {
            h2 id="operations-title" { "Operations " span class="quiet" { (going.len()) " under way" } }
            @if operations.is_empty() { p class="card" { "No long-running operations." } }
            @else { (table(going.into_iter().chain(over.into_iter().rev().take(OVER)), now)) }
        }
        @if !decided.is_empty() {
            section aria-labelledby="decided-title" {
                h2 id="decided-title" { "Decided" }
                (past(decided.into_iter().rev().take(OVER), access, now))
            }
        }
    }
}

/// The form for the operator's token, which the actions of all pages need. Only the tab keeps it
/// (`app.js`): a cookie would be sent to every port of the host, and scenarios run there.
fn operator(needed: bool) -> Markup {
    html! {
        @if needed {
            form id="operator" class="card filter" autocomplete="off" {
                label { "Operator token" input type="password" name="token" required autocomplete="off" spellcheck="false" aria-describedby="operator-told"; }
                button type="submit" { "Use the token in this tab" }
                button type="button" data-forget { "Forget the token" }
                p id="operator-told" class="quiet" role="status" { "These actions need the token of " code { "server.operator_token" }
                    ", on every page: approving and rejecting calls, cancelling operations, trusting and blocking scenarios, and enabling tools or lifting their approval." }
            }
        } @else {
            p class="quiet below" id="open" { "Every client of this daemon can approve its own calls. To allow this only to operators, set " code { "server.operator_token" } "." }
        }
    }
}

fn waiting(request: &ApprovalRequest, now: Timestamp) -> Markup {
    let at = |action: &str| format!("/api/v1/approvals/{}/{action}", segment(&request.id));
    // The digest makes sure that the approved call is the one that was shown.
    let shown = json!({"by": "dashboard user", "digest": &*request.digest}).to_string();
    let by = json!({"by": "dashboard user"}).to_string();
    let arguments = ReadableArguments::new(&request.arguments, ARGUMENTS);
    let whole = arguments.is_whole && shows_whole_caller(&request.caller);
    let title = format!("call-{}", request.id);
    let reason = format!("reason-{}", request.id);
    html! {
        section class="card" data-approval=(request.id) aria-labelledby=(title) {
            h3 id=(title) { a href=(links::tool(&request.tool)) { (request.tool.scenario) "/" (foreign(&request.tool.tool, TOOL_NAME_MAX)) } }
            p class="quiet" { (caller(&request.caller)) "Received " (relative_time(request.asked_at, now, AGO)) ", expires " (relative_time(request.expires_at, now, IN)) "." }
            pre tabindex="0" { code { (foreign(&arguments.text, ARGUMENTS)) } }
            @if !whole {
                p class="bad" { "Parts of this call are too long to be shown here, so it cannot be approved on this page. Read "
                    a href={ "/api/v1/approvals/" (segment(&request.id)) } { "the whole call as JSON" }
                    ", then approve it with " code { "callsheet approvals approve " (request.id) } " or reject it." }
            }
            div class="actions decide" {
                @if whole {
                    button type="button" class="primary" hx-post=(at("approve")) hx-vals=(shown) hx-swap="none" hx-disabled-elt="this"
                        hx-confirm={ "Run " (foreign_plain(&request.tool.to_string(), 2 * TOOL_NAME_MAX)) " with exactly these arguments?" } { "Approve" }
                }
                form class="filter" hx-post=(at("reject")) hx-vals=(by) hx-swap="none" hx-disabled-elt="find button" {
                    label { "Reason (optional)" input id=(reason) name="reason" maxlength="2000" autocomplete="off" hx-preserve; }
                    button type="submit" class="danger" { "Reject" }
                }
            }
        }
    }
}

/// Whether the page shows all of the caller.
fn shows_whole_caller(caller: &CallerInfo) -> bool {
    let parts = [
        &caller.client,
        &caller.user_id,
        &caller.profile,
        &caller.chat,
    ];
    parts
        .into_iter()
        .flatten()
        .all(|part| part.chars().nth(CALLER).is_none())
}

fn caller(caller: &CallerInfo) -> Markup {
    html! {
        @for (what, name) in [("Client", &caller.client), ("User", &caller.user_id), ("Profile", &caller.profile), ("Chat", &caller.chat)] {
            @if let Some(name) = name { (what) " " (foreign(name, CALLER)) ". " }
        }
    }
}

fn table<'o>(
    operations: impl Iterator<Item = &'o std::sync::Arc<Operation>>,
    now: Timestamp,
) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Operations" { table class="cards" {
            thead { tr { @for head in ["Tool", "State", "Progress", "Started", "Note", "Actions"] { th scope="col" { (head) } } } }
            tbody { @for operation in operations { (row(operation, now)) } }
        } }
    }
}

fn row(operation: &Operation, now: Timestamp) -> Markup {
    let progress = &operation.progress;
    let note = operation
        .error
        .as_deref()
        .or(operation.note.as_deref())
        .or(progress.message.as_deref());
    html! {
        tr data-operation=(operation.id) {
            th scope="row" data-label="Tool" { a href=(links::tool(&operation.tool)) { (operation.tool.scenario) "/" (foreign(&operation.tool.tool, 100)) } }
            td data-label="State" { span { span class="badge" { (operation.state) } @if let Some(status) = &operation.status { " " span class="quiet" { (foreign(status, 60)) } } } }
            td data-label="Progress" { span {
                @if let Some(amount) = progress.amount { (amount) " " }
                @if let (Some(step), Some(steps)) = (progress.step, progress.steps) { (step) " of " (steps) " " }
                @if let Some(phase) = &progress.phase { (foreign(phase, 60)) }
            } }
            td data-label="Started" { (relative_time(operation.started_at, now, AGO)) }
            td data-label="Note" { @if let Some(note) = note { (foreign(note, 200)) } }
            td data-label="Actions" class="actions" {
                @if !operation.state.is_over() {
                    button type="button" class="danger" hx-delete={ "/api/v1/operations/" (segment(&operation.id)) } hx-swap="none" hx-disabled-elt="this"
                        hx-confirm={ "Cancel the operation of " (foreign_plain(&operation.tool.to_string(), 200)) "?" } { "Cancel" }
                }
            }
        }
    }
}

/// When a decided call was over, or decided if it is not over yet.
fn over_at(request: &ApprovalRequest) -> Option<Timestamp> {
    request
        .ended_at
        .or(request.decided.as_ref().map(|decided| decided.at))
}

fn past<'o>(
    decided: impl Iterator<Item = &'o std::sync::Arc<ApprovalRequest>>,
    access: Access,
    now: Timestamp,
) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Decided calls" { table class="cards" {
            thead { tr { @for head in ["Tool", "State", "Decided by", "When", "Result"] { th scope="col" { (head) } } } }
            tbody { @for request in decided {
                @let (who, why) = request.decided.as_ref().map_or((None, None), |decided| (Some(&decided.by), decided.reason.as_ref()));
                @let answer = request.answer.as_ref().filter(|_| access.may_see_outcome(request.access.as_deref()));
                @let error = answer.and_then(|answer| answer.error.as_ref());
                tr data-approval=(request.id) {
                    th scope="row" data-label="Tool" { a href=(links::tool(&request.tool)) { (request.tool.scenario) "/" (foreign(&request.tool.tool, 100)) } }
                    td data-label="State" { span { span class="badge" { (request.state) } } }
                    td data-label="Decided by" { @if let Some(who) = who { (foreign(who, 100)) } }
                    td data-label="When" { @if let Some(at) = over_at(request) { (relative_time(at, now, AGO)) } }
                    td data-label="Result" { span { @if let Some(text) = why.or(error) { (foreign(text, 200)) " " }
                        a href={ "/dashboard/calls/" (segment(&request.id)) } aria-label={ "Details of " (foreign_plain(&request.tool.to_string(), 200)) } { "details" } } }
                }
            } }
        } }
    }
}
