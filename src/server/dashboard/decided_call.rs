//! The page of one call that needed approval: what was asked, who decided, and what came of it.

use axum::extract::{Path, State};
use axum::response::Response;
use http::HeaderMap;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::json::layout::indented;
use crate::model::{ApprovalRequest, ApprovalState, StoredAnswer, TOOL_NAME_MAX};
use crate::server::SharedState;
use crate::server::api::approvals;
use crate::server::auth::Access;
use crate::server::dashboard::links;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{AGO, IN, foreign, relative_time, segment};

/// At most this many characters of a document are shown.
const DOCUMENT: usize = 200_000;
/// At most this many characters of a name or a reason are shown.
const TEXT: usize = 2_000;

/// `GET /dashboard/calls/{id}`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    access: Access,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let request = approvals::require(&shared, &id)?;
    let (snapshot, now) = current_snapshot(&shared);
    let main = html! {
        p { a href="/dashboard/calls" { "All calls" } }
        h1 { (foreign(&request.tool.to_string(), 2 * TOOL_NAME_MAX)) " " span class="badge" { (request.state) } }
        (facts(&request, now))
        section class="card" aria-labelledby="arguments-title" {
            h2 id="arguments-title" { "Arguments" }
            (document(request.arguments.get()))
        }
        @if let Some(answer) = &request.answer {
            @if access.may_see_outcome(request.access.as_deref()) { (result(answer)) }
            @else { p { "The call was made with the operator's token. Its result is shown with that token only: " code { "callsheet approvals " (request.id) } } }
        }
        p class="quiet" { a href={ "/api/v1/approvals/" (segment(&request.id)) } { "The same as JSON" } }
    };
    let page = Page {
        nav: Some(NavPage::Calls),
        title: "Call",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

fn facts(request: &ApprovalRequest, now: Timestamp) -> Markup {
    let caller = &request.caller;
    html! {
        section class="card" aria-labelledby="facts-title" {
            h2 id="facts-title" { "Decision" }
            dl {
                dt { "Tool" } dd { a href=(links::tool(&request.tool)) { (foreign(&request.tool.to_string(), 2 * TOOL_NAME_MAX)) } }
                dt { "Requested" } dd { (relative_time(request.asked_at, now, AGO)) }
                @for (what, value) in [("Client", &caller.client), ("User", &caller.user_id), ("Profile", &caller.profile), ("Chat", &caller.chat)] {
                    @if let Some(value) = value { dt { (what) } dd { (foreign(value, TEXT)) } }
                }
                @if request.state == ApprovalState::Waiting {
                    dt { "Expires" } dd { (relative_time(request.expires_at, now, IN)) ". " a href="/dashboard/calls" { "Decide" } }
                }
                @if let Some(decided) = &request.decided {
                    dt { "Decided by" } dd { (foreign(&decided.by, TEXT)) ", " (relative_time(decided.at, now, AGO)) }
                    @if let Some(reason) = &decided.reason { dt { "Reason" } dd { (foreign(reason, TEXT)) } }
                }
                @if let Some(at) = request.ended_at { dt { "Ended" } dd { (relative_time(at, now, AGO)) } }
            }
        }
    }
}

fn result(answer: &StoredAnswer) -> Markup {
    html! {
        section class="card" aria-labelledby="result-title" {
            h2 id="result-title" { "Result " span class="quiet" { (answer.took_ms) " ms" } }
            @if let Some(error) = &answer.error { p class="bad" { (foreign(error, TEXT)) } }
            @if let Some(json) = answer.content.as_ref().or(answer.result.as_ref()) { (document(json.get())) }
            @else if answer.error.is_none() { p { @if answer.success { "It succeeded, without a result." } @else { "It failed, without a message." } } }
        }
    }
}

fn document(json: &str) -> Markup {
    // A character has four bytes at most.
    html! { pre tabindex="0" { code { (foreign(&indented(json, 4 * DOCUMENT), DOCUMENT)) } } }
}
