//! `callsheet approvals`: calls that wait for a human's yes, and the yes or no to one.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

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
                let daemon = Daemon::of(&remote)?;
                let id = whole(&daemon, "approvals", &id).await?;
                let body = json!({"by": by});
                let path = ["approvals", &id, "approve"];
                let answer = daemon.send(http::Method::POST, &path, Query::new(), Some(&body), "state").await?;
                shown(&answer, &remote);
                Ok(())
            }
            Some(Command::Reject(Reject { id, reason, by, remote })) => {
                let daemon = Daemon::of(&remote)?;
                let id = whole(&daemon, "approvals", &id).await?;
                let body = json!({"by": by, "reason": reason});
                let path = ["approvals", &id, "reject"];
                let answer = daemon.send(http::Method::POST, &path, Query::new(), Some(&body), "state").await?;
                shown(&answer, &remote);
                Ok(())
            }
        }
    }
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

/// The id that begins so; ids are long, and only few wait at a time.
pub(super) async fn whole(daemon: &Daemon, kind: &'static str, id: &str) -> Result<String, Failure> {
    let listed = daemon.get(&[kind], Query::new(), kind).await?;
    let ids = output::list(&listed.value, kind).iter().filter_map(|one| one["id"].as_str());
    let mut meant: Vec<&str> = ids.filter(|known| !id.is_empty() && known.starts_with(id)).collect();
    match meant[..] {
        [one] => Ok(one.to_owned()),
        // The daemon says that there is none.
        [] => Ok(id.to_owned()),
        _ => {
            meant.truncate(5);
            let message = format!("several of the {kind} have ids that begin with `{id}`");
            Err(Failure::Usage { message, hint: format!("write more of it: {}", meant.join(", ")) })
        }
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
            cell(&text("/id")[..text("/id").len().min(12)]),
            cell(format!("{}/{}", text("/scenario"), text("/tool"))),
            cell(text("/state")),
            cell(&expires),
            cell(asker(row)),
            cell(&arguments),
        ]);
    }
    sheet.print();
}

/// Who asked, in a few words.
pub(super) fn asker(row: &Value) -> String {
    let part = |name: &str, pointer| match output::text(row, pointer) {
        text if text.is_empty() => None,
        text => Some(format!("{name} {text}")),
    };
    let parts = [part("user", "/user_id"), part("profile", "/profile"), part("chat", "/chat_id")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Prints everything about one.
fn shown(answer: &Answer, remote: &Remote) {
    if remote.json {
        return output::answer(&answer.body, &answer.value);
    }
    let (one, now) = (&answer.value, Clock::system().wall());
    let text = |pointer| output::text(one, pointer);
    let pretty = |pointer: &str| match one.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(value) => output::plain(&value.to_string()),
    };
    let decided = match text("/decided_by") {
        by if by.is_empty() => by,
        by => format!("by {by}, {}", output::when(one, "/decided_at", now)),
    };
    let rows = [
        ("id", text("/id")),
        ("tool", format!("{}/{}", text("/scenario"), text("/tool"))),
        ("state", text("/state")),
        ("asked by", asker(one)),
        ("asked", output::when(one, "/asked_at", now)),
        ("expires", if text("/state") == "waiting" { output::when(one, "/expires_at", now) } else { String::new() }),
        ("decided", decided),
        ("reason", text("/reason")),
        ("arguments", pretty("/arguments")),
        ("result", pretty("/answer/result")),
        ("error", text("/answer/error")),
        ("code", text("/answer/code")),
        ("operation", text("/answer/operation_id")),
    ];
    for (key, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(&format!("{key:>11}  {value}"));
    }
}
