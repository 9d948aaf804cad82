//! The form that changes many tools at once.

use maud::{Markup, html};

/// The changes: the value in requests, its label on the page, and the words of the result.
pub(super) const CHANGES: [(&str, &str, &str); 5] = [
    ("enable", "put in the list", "put in the list"),
    ("disable", "take out of the list", "taken out of the list"),
    ("ask-first", "require approval", "set to require approval"),
    (
        "no-approval",
        "require no approval",
        "set to require no approval",
    ),
    ("reset", "reset to inherited values", "reset"),
];

/// The form. Its tick boxes are in the rows; its scope and filter are in the form above.
pub(super) fn bar() -> Markup {
    html! {
        form id="bulk" class="bulk" hx-post="/dashboard/tools/preferences" hx-include="#filter" hx-swap="none"
            hx-disabled-elt="find button" aria-label="Change many tools at once" {
            strong id="ticked" role="status" { "No tool is ticked" }
            label { span class="hidden" { "Change" } select name="change" autocomplete="off" {
                @for (change, words, _) in CHANGES { option value=(change) { (words) } }
            } }
            button type="submit" { "Apply to the ticked" }
        }
    }
}
