//! `callsheet approvals`: calls that wait for approval, and the decision about one.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::by_id::{self, caller, complete_id, json_text};
use super::client::{DaemonAnswer, DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, RemoteArgs, output};
use crate::model::ApprovalState;
use crate::model::text::marked;
use crate::runtime::Clock;

/// Arguments of `approvals`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    #[command(flatten)]
    list: ListApprovalsArgs,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// Show everything about one, as `approvals ID` does.
    Show(ShowArgs),
    /// Approve: sends exactly that call, once, and shows its answer.
    Approve(ApproveArgs),
    /// Reject: the call is never sent.
    Reject(RejectArgs),
}

#[derive(Debug, Args)]
struct ListApprovalsArgs {
    /// Show everything about this one, with its arguments and its answer.
    id: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", conflicts_with = "id", value_parser = states())]
    state: Option<String>,
    /// Include finished ones; by default only those that wait or run.
    #[arg(long, conflicts_with_all = ["id", "state"])]
    all: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Which one; the beginning of its id is enough.
    id: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct ApproveArgs {
    /// Which one; the beginning of its id is enough.
    id: String,
    /// Name of the person who decides.
    #[arg(long, env = "USER", value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct RejectArgs {
    /// Which one; the beginning of its id is enough.
    id: String,
    /// Reason, shown to the caller.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Name of the person who decides.
    #[arg(long, env = "USER", value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(ApprovalState::ALL.map(ApprovalState::as_str))
}

impl ApprovalsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            None => self.list.run().await,
            Some(ApprovalsCommand::Show(ShowArgs { id, remote })) => show(&remote, &id).await,
            Some(ApprovalsCommand::Approve(ApproveArgs { id, by, remote })) => {
                decide(&remote, &id, "approve", &json!({"by": by})).await
            }
            Some(ApprovalsCommand::Reject(RejectArgs {
                id,
                reason,
                by,
                remote,
            })) => decide(&remote, &id, "reject", &json!({"by": by, "reason": reason})).await,
        }
    }
}

/// Prints everything about one.
async fn show(remote: &RemoteArgs, id: &str) -> Result<(), CommandError> {
    let daemon = DaemonClient::from_args(remote)?;
    let id = complete_id(&daemon, "approvals", id).await?;
    print_one(
        &daemon
            .get(&["approvals", &id], QueryPairs::new(), "state")
            .await?,
        remote,
    );
    Ok(())
}

/// Approves or denies, and prints the result.
async fn decide(
    remote: &RemoteArgs,
    id: &str,
    verdict: &str,
    body: &Value,
) -> Result<(), CommandError> {
    let daemon = DaemonClient::for_operator(remote)?;
    let id = complete_id(&daemon, "approvals", id).await?;
    let path = ["approvals", &id, verdict];
    print_one(
        &daemon
            .send(
                http::Method::POST,
                &path,
                QueryPairs::new(),
                Some(body),
                "state",
            )
            .await?,
        remote,
    );
    Ok(())
}

impl ListApprovalsArgs {
    async fn run(self) -> Result<(), CommandError> {
        if let Some(id) = &self.id {
            return show(&self.remote, id).await;
        }
        let daemon = DaemonClient::from_args(&self.remote)?;
        let mut query: QueryPairs<'_> = self
            .state
            .iter()
            .map(|state| ("state", state.clone()))
            .collect();
        if query.is_empty() && !self.all {
            query.push(("state", "waiting,started".to_owned()));
        }
        let answer = daemon.get(&["approvals"], query, "approvals").await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return Ok(());
        }
        let rows = output::list(&answer.value, "approvals");
        if rows.is_empty() {
            output::line("no call waits for approval");
            return Ok(());
        }
        table(
            rows,
            &ShownArguments::listed(&answer.body),
            Clock::system().wall(),
        );
        Ok(())
    }
}

fn table(rows: &[Value], arguments: &[ShownArguments<'_>], now: Timestamp) {
    let columns = [
        ("ID", ColumnFit::Whole),
        ("TOOL", ColumnFit::Whole),
        ("STATE", ColumnFit::Whole),
        ("EXPIRES", ColumnFit::Rank(1)),
        ("CALLER", ColumnFit::Rank(2)),
        ("ARGUMENTS", ColumnFit::Cut),
    ];
    let mut sheet = TextTable::new(&columns);
    for (at, row) in rows.iter().enumerate() {
        let text = |pointer| output::text(row, pointer);
        let expires = if text("/state") == "waiting" {
            output::relative(row, "/expires_at", now)
        } else {
            String::new()
        };
        let arguments = match arguments.get(at).and_then(ShownArguments::text) {
            Some(text) => text,
            None => format!("{} bytes", output::number(row, "/arguments_bytes")),
        };
        sheet.row([
            cell(by_id::short_id(row)),
            cell(by_id::tool(row)),
            cell(text("/state")),
            cell(&expires),
            cell(caller(row)),
            cell(&arguments),
        ]);
    }
    sheet.print();
}

/// The arguments of a call that waits, as the text that will be sent: a tree would change numbers.
#[derive(Default, Deserialize)]
struct ShownArguments<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> ShownArguments<'a> {
    /// Those of one approval.
    fn of_one(body: &'a [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Those of a list of approvals.
    fn listed(body: &'a [u8]) -> Vec<Self> {
        #[derive(Default, Deserialize)]
        struct ShownList<'a> {
            #[serde(borrow)]
            approvals: Vec<ShownArguments<'a>>,
        }
        serde_json::from_slice::<ShownList<'_>>(body)
            .unwrap_or_default()
            .approvals
    }

    /// The text, with what cannot be seen marked; `None` if it is not in the answer.
    fn text(&self) -> Option<String> {
        self.arguments
            .filter(|arguments| arguments.get() != "null")
            .map(|arguments| marked(arguments.get()))
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
    let decided = match text("/decided_by") {
        by if by.is_empty() => by,
        by => format!("by {by}, {}", output::when(one, "/decided_at", now)),
    };
    let rows = [
        ("id", text("/id")),
        ("tool", by_id::tool(one)),
        ("state", text("/state")),
        ("caller", caller(one)),
        ("requested", output::when(one, "/asked_at", now)),
        (
            "expires",
            if text("/state") == "waiting" {
                output::when(one, "/expires_at", now)
            } else {
                String::new()
            },
        ),
        ("decided", decided),
        ("reason", text("/reason")),
        (
            "arguments",
            ShownArguments::of_one(&answer.body)
                .text()
                .unwrap_or_default(),
        ),
        ("result", json_text(one, "/answer/result")),
        ("error", text("/answer/error")),
        ("code", text("/answer/code")),
        ("operation", text("/answer/operation_id")),
    ];
    output::details(&rows);
}
