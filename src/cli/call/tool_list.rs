//! The help of `callsheet call`, with the tools that the daemon lists as its subcommands.

use std::time::Duration;

use clap::CommandFactory as _;

use super::super::client::{DaemonClient, QueryPairs};
use super::super::{Cli, CommandError, output};

/// Tools that the help names at most.
const NAMED_TOOLS_MAX: usize = 40;
/// Columns of a line.
const COLUMNS: usize = 100;
/// Columns of a name at most.
const NAME: usize = 48;
/// How long the list is waited for.
const WAIT: Duration = Duration::from_secs(2);

/// Prints the help of the command, then the tools that `daemon` lists for this query. Without a
/// daemon only a line says where they would stand.
pub(super) async fn print_help(
    daemon: Result<DaemonClient, CommandError>,
    mut query: QueryPairs<'static>,
) {
    let mut cli = Cli::command();
    cli.build();
    if let Some(call) = cli.find_subcommand_mut("call") {
        output::line(&call.render_long_help().ansi().to_string());
    }
    query.push(("max_tools", NAMED_TOOLS_MAX.to_string()));
    let listed = match daemon {
        Ok(daemon) => tokio::time::timeout(WAIT, daemon.list(query))
            .await
            .ok()
            .and_then(Result::ok),
        Err(_) => None,
    };
    let Some(answer) = listed else {
        output::line("Tools:\n  listed here while a daemon runs; `callsheet serve` starts one");
        return;
    };
    let tools = output::list(&answer.value, "tools");
    let names: Vec<String> = tools
        .iter()
        .map(|tool| output::cut(&output::text(tool, "/name"), NAME))
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default();
    output::line("Tools:");
    for (name, tool) in names.iter().zip(tools) {
        let about = output::cut(
            &output::first_line(tool, "/description"),
            COLUMNS.saturating_sub(width + 4),
        );
        output::line(format!("  {name:<width$}  {about}").trim_end());
    }
    match answer.left_out {
        0 if tools.is_empty() => {
            output::line("  none; `callsheet scenarios` lists the known scenarios");
        }
        0 => {}
        more => output::line(&format!(
            "  and {more} more; `callsheet tools` lists all of them"
        )),
    }
}
