//! The first page's form that adds a scenario at an address to the file of the configuration. A
//! command is never added over HTTP: the form shows the line to run in a terminal.

use maud::{Markup, html};

use crate::server::ServerState;

/// The line that adds a program to start.
const COMMAND: &str = "callsheet add NAME -- COMMAND ARGUMENTS";

/// The form, unfolded where there is no scenario yet.
pub(super) fn section(shared: &ServerState, is_first: bool) -> Markup {
    html! {
        details class="card" id="add" open[is_first] {
            summary { "Add a scenario" }
            @if shared.load_options.is_none() {
                p { "This daemon follows no configuration file: the program that it runs in names its scenarios." }
            } @else {
                form id="add-scenario" class="filter" hx-post="/api/v1/scenarios" hx-swap="none" hx-disabled-elt="find button" {
                    label { "Name" input name="name" required maxlength="100" pattern="[A-Za-z0-9][A-Za-z0-9._\\-]*" placeholder="notes" autocomplete="off" spellcheck="false"; }
                    label { "Address" input name="url" type="text" inputmode="url" required placeholder="http://127.0.0.1:8080" autocomplete="off"; }
                    button type="submit" class="primary" { "Add" }
                }
                noscript { p { "Without scripts, add it in a terminal: " code { "callsheet add NAME ADDRESS" } } }
                p class="quiet" { "It is written to the file of the configuration. The address of an MCP server is whole, such as " code { "http://127.0.0.1:8080/mcp" } "." }
                p { "A program to start is added in a terminal of this machine: " code id="add-command" { (COMMAND) } " "
                    button type="button" data-copy="add-command" aria-label="Copy the command that adds a program" { "Copy" } }
                p { code id="import-command" { "callsheet import --write" } " takes over the MCP servers that other programs on this machine use. "
                    button type="button" data-copy="import-command" aria-label="Copy the command that imports servers" { "Copy" } }
            }
        }
    }
}
