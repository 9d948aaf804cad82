//! The first page's section on how the list is used: its address for LLM requests and for MCP
//! clients, and for each client the entry for its file, with buttons that copy them.

use std::path::Path;

use http::HeaderMap;
use http::header::HOST;
use maud::{Markup, html};

use crate::config::client_files::{ClientConnection, KnownClient};
use crate::server::ServerState;

/// The name of callsheet's entry.
const ENTRY: &str = env!("CARGO_PKG_NAME");

/// The addresses, and the entries of clients, which are folded until they are opened.
pub(super) fn section(shared: &ServerState, headers: &HeaderMap) -> Markup {
    // The address by which this browser reaches the daemon; the guard has checked it.
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .map(str::to_owned);
    let host = host.unwrap_or_else(|| shared.config.borrow().server.listen.to_string());
    let mcp = format!("http://{host}/mcp");
    let list = format!("http://{host}/api/v1/tools?format=openai");
    let address = ClientConnection::Address(mcp.clone());
    let command = ClientConnection::Command {
        program: program(),
        args: vec!["mcp".to_owned()],
    };
    html! {
        section class="card" aria-labelledby="use-title" {
            h2 id="use-title" { "Use the list" }
            dl {
                @for (id, title, text) in [("mcp-address", "MCP clients", &mcp), ("list-address", "LLM requests", &list)] {
                    dt { (title) }
                    dd { code id=(id) { (text) } " " button type="button" data-copy=(id) aria-label={ "Copy the address for " (title) } { "Copy" } }
                }
            }
            details id="connect" {
                summary { "Connect an MCP client" }
                p { "One entry gives a client the tools of all scenarios. " code { "callsheet connect CLIENT --write" }
                    " writes it into the client's file and keeps what was there." }
                @for client in KnownClient::ALL {
                    @let connection = if client.takes_address() { &address } else { &command };
                    @let id = format!("connect-{}", client.id());
                    section aria-labelledby={ (id) "-title" } {
                        h3 id={ (id) "-title" } { (client.name()) }
                        pre tabindex="0" { code id=(id) { (client.snippet(connection).text(ENTRY)) } }
                        p { button type="button" data-copy=(id) aria-label={ "Copy the entry for " (client.name()) } { "Copy" } }
                    }
                }
            }
        }
    }
}

/// The program of the entries that start one: the running one with its whole path, because a client
/// may have another `PATH`. A program that callsheet is embedded in has no command `mcp`, so its
/// entries name the installed `callsheet`.
fn program() -> String {
    let running = std::env::current_exe()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    // Linux says so of a file that was replaced since the start.
    let path = running.strip_suffix(" (deleted)").unwrap_or(&running);
    let is_callsheet = Path::new(path)
        .file_name()
        .is_some_and(|name| name == ENTRY);
    if is_callsheet {
        path.to_owned()
    } else {
        ENTRY.to_owned()
    }
}
