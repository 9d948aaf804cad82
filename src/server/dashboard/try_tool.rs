//! The form on the page of a tool that calls it, as every other client does: approvals, limits and
//! records are the same. `app.js` shows the answer.

use maud::{Markup, html};

use crate::model::ViewTool;
use crate::server::dashboard::first_value::{FirstMembers, field_rows, first_value};

/// The section of one tool.
pub(super) fn section(tool: &ViewTool) -> Markup {
    let begun = first_value(tool.tool.parameters.get(), FirstMembers::Required);
    html! {
        section class="card" aria-labelledby="try-title" {
            h2 id="try-title" { "Try it" }
            form id="try-tool" hx-post="/api/v1/tools/execute" hx-swap="none" hx-disabled-elt="find button" {
                input type="hidden" name="tool_name" value=(tool.id);
                label { "Arguments (JSON)" textarea name="arguments" rows=(field_rows(&begun)) spellcheck="false" { (begun) } }
                p { button type="submit" class="primary" { "Call" } }
            }
            p class="quiet" { "This is a call like any other: what needs approval waits for it, and the call is recorded." }
            pre id="tried" tabindex="0" aria-label="Answer" aria-live="polite" hidden { code {} }
        }
    }
}
