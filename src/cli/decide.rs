//! `callsheet block NAME`, `callsheet trust NAME` and `callsheet forget NAME`: an operator's
//! decisions about a scenario.

use clap::Args;
use serde_json::{Value, json};

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output};
use crate::model::SourceId;

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    #[command(flatten)]
    decide: BlockArgs,
    /// Only if it has this origin (`origin` in `callsheet scenarios NAME`).
    #[arg(long, value_name = "ORIGIN", conflicts_with = "undo")]
    at: Option<String>,
}

impl TrustArgs {
    /// Trusts the scenario, or undoes that.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        self.decide
            .send(
                "trust",
                self.at.into_iter().map(|at| ("origin", at)).collect(),
            )
            .await
    }
}

/// Arguments of `block`.
#[derive(Debug, Args)]
pub(super) struct BlockArgs {
    /// Which scenario.
    name: String,
    /// Take this decision back.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl BlockArgs {
    /// Blocks the scenario, or unblocks it.
    pub(super) async fn block(self) -> Result<(), CommandError> {
        self.send("block", QueryPairs::new()).await
    }

    /// Sends the decision that the daemon calls `action`, or undoes it, and prints the result.
    async fn send(self, action: &str, query: QueryPairs<'_>) -> Result<(), CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let method = if self.undo {
            http::Method::DELETE
        } else {
            http::Method::POST
        };
        let answer = daemon
            .send(
                method,
                &["scenarios", &self.name, action],
                query,
                None,
                "state",
            )
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            let text = |pointer| output::text(&answer.value, pointer);
            output::line(&format!(
                "{} is {}: {}",
                text("/name"),
                text("/state"),
                text("/reason")
            ));
            output::line(&decision_subject(&answer.value, action, self.undo));
        }
        Ok(())
    }
}

/// Arguments of `unblock`.
#[derive(Debug, Args)]
pub(super) struct UnblockArgs {
    /// Which scenario.
    name: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl UnblockArgs {
    /// Unblocks the scenario, as `block --undo` does.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        BlockArgs {
            name: self.name,
            undo: true,
            remote: self.remote,
        }
        .block()
        .await
    }
}

/// Arguments of `forget`.
#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// Which scenario.
    #[arg(required_unless_present = "unreachable")]
    name: Option<String>,
    /// All that are removed or down.
    #[arg(long, conflicts_with = "name")]
    unreachable: bool,
    /// Only name them, with `--unreachable`.
    #[arg(long, requires = "unreachable")]
    preview: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl ForgetArgs {
    /// Has the scenario forgotten, and prints the result.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let Some(name) = &self.name else {
            return self.all(&daemon).await;
        };
        let path = ["scenarios", name.as_str(), "forget"];
        let answer = match daemon
            .send(http::Method::POST, &path, QueryPairs::new(), None, "was")
            .await
        {
            Ok(answer) => answer,
            Err(refused) => return Err(with_next_step(name, &daemon, refused).await),
        };
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            output::line(&output::text(&answer.value, "/message"));
        }
        Ok(())
    }

    /// Forgets all that are removed or down, or names them.
    async fn all(&self, daemon: &DaemonClient) -> Result<(), CommandError> {
        let answer = daemon
            .send(
                http::Method::POST,
                &["state", "forget-unreachable"],
                QueryPairs::new(),
                Some(&json!({ "preview": self.preview })),
                "scenarios",
            )
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return Ok(());
        }
        let names = |member: &str| -> Vec<String> {
            let list = output::list(&answer.value, member).iter();
            list.filter_map(|name| name.as_str().map(output::sanitize))
                .collect()
        };
        let scenarios = names("scenarios");
        if scenarios.is_empty() {
            output::line("no scenario is removed or down");
            return Ok(());
        }
        let done = if self.preview {
            "would be forgotten"
        } else {
            "forgotten"
        };
        output::line(&format!("{done}: {}", scenarios.join(", ")));
        let still_named = names("still_named");
        if !still_named.is_empty() {
            output::note(&format!(
                "a source still names {}: their tools come back at their next good answer",
                still_named.join(", ")
            ));
        }
        Ok(())
    }
}

/// The refusal with the command that takes the scenario out of the configuration, where that names
/// it.
async fn with_next_step(name: &str, daemon: &DaemonClient, refused: CommandError) -> CommandError {
    let CommandError::Problem {
        message,
        document,
        hint,
    } = refused
    else {
        return refused;
    };
    let known = daemon
        .get(&["scenarios", name], QueryPairs::new(), "state")
        .await;
    let is_configured = known.is_ok_and(|known| {
            known.value["source"] == SourceId::STATIC.as_str()
                && matches!(known.value["state"].as_str(), Some(state) if !matches!(state, "blocked" | "pending"))
        });
    let command = format!("`callsheet remove {name}` takes it out of the configuration first");
    CommandError::Problem {
        message,
        document,
        hint: if is_configured { Some(command) } else { hint },
    }
}

/// The decision and what it applies to: it can cover more, or less, than one name.
fn decision_subject(scenario: &Value, action: &str, undo: bool) -> String {
    let text = |pointer| output::text(scenario, pointer);
    let what = match (action, undo) {
        ("trust", false) => "trusted",
        (_, false) => "blocked",
        (_, true) => "decision taken back",
    };
    let at = match text("/origin") {
        origin if origin.is_empty() => "at no known address".to_owned(),
        // One version of an entry: a command line, or an address with headers.
        origin if origin.contains('#') => format!("as {}", text("/url")),
        origin => format!("at {origin}"),
    };
    let peer = match text("/identity") {
        identity if identity.is_empty() => at,
        identity => format!("identity {identity} {at}"),
    };
    let source = text("/source");
    let source_trusted = if action == "trust" && undo && scenario["trusted"] == Value::Bool(true) {
        format!("; its source ({source}) is trusted")
    } else {
        String::new()
    };
    format!("{what}: {peer}, found by {source}{source_trusted}")
}
