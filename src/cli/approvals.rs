//! `callsheet approvals`: calls that wait for a human's yes, and the yes or no to one.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::by_id::{self, asker, json_text, whole};
use super::client::{Answer, Daemon, Query};
use super::table::{Fit, Sheet, cell};
use super::{Failure, Remote, output};
use crate::model::ApprovalState;
use crate::runtime::Clock;

/// Arguments of `approvals`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Approvals {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say yes: runs exactly that call, once, and shows what came of it.
    Approve(Approve),
    /// Say no: it is never run.
    Reject(Reject),
}

#[derive(Debug, Args)]
struct List {
    /// Show everything about this one, with its arguments and its answer.
    id: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", conflicts_with = "id", value_parser = states())]
    state: Option<String>,
    /// Also those that are over; without this only those that wait or are under way.
    #[arg(long, conflicts_with_all = ["id", "state"])]
    all: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
struct Approve {
    /// Which one; the beginning of its id is enough.
    id: String,
    /// Who decides.
    #[arg(long, env = "USER", value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
struct Reject {
    /// Which one; the beginning of its id is enough.
    id: String,
    /// Why, for whoever asked.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who decides.
    #[arg(long, env = "USER", value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(ApprovalState::ALL.map(ApprovalState::as_str))
}

impl Approvals {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self.command {
            None => self.list.run().await,
            Some(Command::Approve(Approve { id, by, remote })) => {
                decide(&remote, &id, "approve", &json!({"by": by})).await
            }
            Some(Command::Reject(Reject { id, reason, by, remote })) => {
                decide(&remote, &id, "reject", &json!({"by": by, "reason": reason})).await
            }
        }
    }
}

/// Says yes or no, and prints what came of it.
async fn decide(remote: &Remote, id: &str, verdict: &str, body: &Value) -> Result<(), Failure> {
    let daemon = Daemon::for_operator(remote)?;
    let id = whole(&daemon, "approvals", id).await?;
    let path = ["approvals", &id, verdict];
    shown(&daemon.send(http::Method::POST, &path, Query::new(), Some(body), "state").await?, remote);
    Ok(())
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let daemon = Daemon::of(&self.remote)?;
        if let Some(id) = &self.id {
            let id = whole(&daemon, "approvals", id).await?;
            shown(&daemon.get(&["approvals", &id], Query::new(), "state").await?, &self.remote);
            return Ok(());
        }
        let mut query: Query<'_> = self.state.iter().map(|state| ("state", state.clone())).collect();
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
        table(rows, Clock::system().wall());
        Ok(())
    }
}

fn table(rows: &[Value], now: Timestamp) {
    let columns = [
        ("ID", Fit::Whole),
        ("TOOL", Fit::Whole),
        ("STATE", Fit::Whole),
        ("EXPIRES", Fit::Rank(1)),
        ("ASKED BY", Fit::Rank(2)),
        ("ARGUMENTS", Fit::Cut),
    ];
    let mut sheet = Sheet::new(&columns);
    for row in rows {
        let text = |pointer| output::text(row, pointer);
        let expires =
            if text("/state") == "waiting" { output::relative(row, "/expires_at", now) } else { String::new() };
        let arguments = if row["arguments"].is_null() {
            format!("{} bytes", output::number(row, "/arguments_bytes"))
        } else {
            output::plain(&row["arguments"].to_string())
        };
        sheet.row([
            cell(by_id::short(row)),
            cell(by_id::tool(row)),
            cell(text("/state")),
            cell(&expires),
            cell(asker(row)),
            cell(&arguments),
        ]);
    }
    sheet.print();
}

/// Prints everything about one.
fn shown(answer: &Answer, remote: &Remote) {
    if remote.json {
        return output::answer(&answer.body, &answer.value);
    }
    let (one, now) = (&answer.value, Clock::system().wall());
    let text = |pointer| output::text(one, pointer);
    let decided = match text("/decided_by") {
        by if by.is_empty() => by,
        by => format!("by {by}, {}", output::when(one, "/decided_at", now)),
    };
    let rows = [
        ("id", text("/id")),
        ("tool", by_id::tool(one)),
        ("state", text("/state")),
        ("asked by", asker(one)),
        ("asked", output::when(one, "/asked_at", now)),
        ("expires", if text("/state") == "waiting" { output::when(one, "/expires_at", now) } else { String::new() }),
        ("decided", decided),
        ("reason", text("/reason")),
        ("arguments", json_text(one, "/arguments")),
        ("result", json_text(one, "/answer/result")),
        ("error", text("/answer/error")),
        ("code", text("/answer/code")),
        ("operation", text("/answer/operation_id")),
    ];
    by_id::page(&rows);
}
