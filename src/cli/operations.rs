//! `callsheet operations`: lists long-running operations, and cancels one.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::by_id::{self, caller, complete_id, json_text};
use super::client::{DaemonAnswer, DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, RemoteArgs, output};
use crate::model::OperationState;
use crate::runtime::Clock;

/// Arguments of `operations`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct OperationsArgs {
    #[command(subcommand)]
    command: Option<OperationsCommand>,
    #[command(flatten)]
    list: ListOperationsArgs,
}

#[derive(Debug, Subcommand)]
enum OperationsCommand {
    /// Cancel one, with its scenario's cancel tool.
    Cancel(CancelArgs),
}

#[derive(Debug, Args)]
struct ListOperationsArgs {
    /// Show everything about this one, with its result.
    id: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", conflicts_with = "id", value_parser = states())]
    state: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct CancelArgs {
    /// Which one; the beginning of its id is enough.
    id: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(OperationState::ALL.map(OperationState::as_str))
}

impl OperationsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            None => self.list.run().await,
            Some(OperationsCommand::Cancel(CancelArgs { id, remote })) => {
                let daemon = DaemonClient::for_operator(&remote)?;
                let id = complete_id(&daemon, "operations", &id).await?;
                let path = ["operations", &id];
                print_one(
                    &daemon
                        .send(
                            http::Method::DELETE,
                            &path,
                            QueryPairs::new(),
                            None,
                            "state",
                        )
                        .await?,
                    &remote,
                );
                Ok(())
            }
        }
    }
}

impl ListOperationsArgs {
    async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        if let Some(id) = &self.id {
            let id = complete_id(&daemon, "operations", id).await?;
            print_one(
                &daemon
                    .get(&["operations", &id], QueryPairs::new(), "state")
                    .await?,
                &self.remote,
            );
            return Ok(());
        }
        let query = self
            .state
            .iter()
            .map(|state| ("state", state.clone()))
            .collect();
        let answer = daemon.get(&["operations"], query, "operations").await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return Ok(());
        }
        let rows = output::list(&answer.value, "operations");
        if rows.is_empty() {
            output::line("no operation is known");
            return Ok(());
        }
        table(rows);
        Ok(())
    }
}

fn table(rows: &[Value]) {
    let now = Clock::system().wall();
    let columns = [
        ("ID", ColumnFit::Whole),
        ("TOOL", ColumnFit::Whole),
        ("STATE", ColumnFit::Whole),
        ("PROGRESS", ColumnFit::Rank(1)),
        ("STARTED", ColumnFit::Rank(2)),
        ("NOTE", ColumnFit::Cut),
    ];
    let mut sheet = TextTable::new(&columns);
    for row in rows {
        let text = |pointer| output::text(row, pointer);
        let note = [text("/error"), text("/note"), text("/progress/message")];
        sheet.row([
            cell(by_id::short_id(row)),
            cell(by_id::tool(row)),
            cell(text("/state")),
            cell(progress(row)),
            cell(output::relative(row, "/started_at", now)),
            cell(
                note.iter()
                    .find(|note| !note.is_empty())
                    .map_or("", String::as_str),
            ),
        ]);
    }
    sheet.print();
}

/// The progress that it reports, if any.
fn progress(row: &Value) -> String {
    let number = |pointer| row.pointer(pointer).and_then(Value::as_f64);
    match (
        number("/progress/progress"),
        number("/progress/current_step"),
        number("/progress/total_steps"),
    ) {
        (Some(amount), ..) => amount.to_string(),
        (None, Some(step), Some(steps)) => format!("{step}/{steps}"),
        _ => output::text(row, "/progress/phase"),
    }
}

/// Prints all details of one.
fn print_one(answer: &DaemonAnswer, remote: &RemoteArgs) {
    if remote.json {
        return output::answer(&answer.body, &answer.value);
    }
    let one = &answer.value;
    let now = Clock::system().wall();
    let text = |pointer| output::text(one, pointer);
    let rows = [
        ("id", text("/id")),
        ("tool", by_id::tool(one)),
        ("state", text("/state")),
        ("caller", caller(one)),
        ("its own id", json_text(one, "/reference")),
        ("status", text("/status")),
        ("progress", progress(one)),
        ("message", text("/progress/message")),
        ("note", text("/note")),
        ("started", output::when(one, "/started_at", now)),
        ("last polled", output::when(one, "/polled_at", now)),
        ("until", output::when(one, "/deadline_at", now)),
        ("ended", output::when(one, "/ended_at", now)),
        ("error", text("/error")),
        ("result", json_text(one, "/result")),
    ];
    output::details(&rows);
}
