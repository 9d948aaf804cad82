//! Tools that wait for input of their callers, with a form to give it.

use std::sync::Arc;

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::json;

use crate::calls::active::{ActiveCall, PendingInput};
use crate::model::JsonText;
use crate::server::auth::Access;
use crate::server::dashboard::first_value::{FirstMembers, field_rows, first_value};
use crate::server::dashboard::text::{IN, count, foreign, relative_time, segment};

/// At most this many are shown.
const SHOWN: usize = 100;
/// At most this many characters of a message.
const MESSAGE: usize = 2_000;

/// The part of the page Calls; empty when no tool waits. A page belongs to no caller, so the
/// questions are shown to operators only.
pub(super) fn waiting(
    waiting: &[(Arc<ActiveCall>, Arc<PendingInput>)],
    access: Access,
    now: Timestamp,
) -> Markup {
    html! {
        @if !waiting.is_empty() {
            section aria-labelledby="input-title" {
                h2 id="input-title" { "Waiting for input " span class="quiet" { (count(waiting.len(), "call")) } }
                @if access == Access::Full {
                    @for (call, input) in waiting.iter().take(SHOWN) { (form(call, input, now)) }
                } @else {
                    p class="card" { "Questions to callers are shown to operators only: write the operator token above." }
                }
            }
        }
    }
}

fn form(call: &ActiveCall, input: &PendingInput, now: Timestamp) -> Markup {
    let title = format!("input-{}", input.id);
    let field = format!("content-{}", input.id);
    let schema = input.wanted.schema();
    let begun = first_value(
        schema.as_ref().map_or("{}", JsonText::get),
        FirstMembers::All,
    );
    let at = format!("/api/v1/interactions/{}", segment(&input.id));
    let accept = json!({"action": "accept"}).to_string();
    let decline = json!({"action": "decline"}).to_string();
    html! {
        section class="card" data-interaction=(input.id) aria-labelledby=(title) {
            h3 id=(title) { (foreign(call.tool_name(), 100)) }
            p { (foreign(&input.wanted.message(), MESSAGE)) }
            p class="quiet" { "Declined " (relative_time(input.expires_at, now, IN)) ". What comes of the call is among the latest calls below." }
            form hx-post=(at) hx-vals=(accept) hx-swap="none" hx-disabled-elt="find button" {
                label { "Input (JSON)" textarea id=(field) name="content" rows=(field_rows(&begun)) spellcheck="false" hx-preserve { (begun) } }
                button type="submit" class="primary" { "Give this input" }
            }
            div class="actions" {
                button type="button" class="danger" hx-post=(at) hx-vals=(decline) hx-swap="none" hx-disabled-elt="this" { "Decline" }
            }
        }
    }
}
