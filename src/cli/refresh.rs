//! `callsheet refresh`: polls scenarios now.

use clap::Args;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output, scenarios};
use crate::runtime::Clock;

/// Arguments of `refresh`.
#[derive(Debug, Args)]
pub(super) struct RefreshArgs {
    /// Which scenarios; all by default.
    names: Vec<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl RefreshArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let answer = if self.names.is_empty() {
            daemon
                .send(
                    http::Method::POST,
                    &["tools", "sync"],
                    QueryPairs::new(),
                    None,
                    "total_tools",
                )
                .await?;
            daemon
                .get(&["scenarios"], QueryPairs::new(), "scenarios")
                .await?
                .value
        } else {
            // The slowest of them is waited for, not each after the other.
            let refreshed = self.names.iter().map(|name| one(&daemon, name));
            json!({ "scenarios": try_join_all(refreshed).await? })
        };
        if self.remote.json {
            output::json(&answer);
        } else {
            scenarios::show(
                &answer,
                &scenarios::ScenarioTableStyle::default(),
                Clock::system().wall(),
            );
        }
        failed(&answer)
    }
}

/// Polls one scenario; returns its health after that.
async fn one(daemon: &DaemonClient, name: &str) -> Result<Value, CommandError> {
    let path = ["scenarios", name, "refresh"];
    Ok(daemon
        .send(http::Method::POST, &path, QueryPairs::new(), None, "state")
        .await?
        .value)
}

/// Fails if a polled scenario did not answer, so that a script can see it. Blocked, pending and
/// removed scenarios were not polled and do not count.
fn failed(answer: &Value) -> Result<(), CommandError> {
    let was_polled = |scenario: &&Value| {
        !matches!(
            output::text(scenario, "/state").as_str(),
            "blocked" | "pending" | "removed"
        )
    };
    let failed: Vec<String> = output::list(answer, "scenarios")
        .iter()
        .filter(was_polled)
        .filter(|scenario| scenario["last_error"].is_object())
        .map(|scenario| output::text(scenario, "/name"))
        .collect();
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(CommandError::Refused {
            message: format!("no good answer from {}", failed.join(", ")),
            hint: Some(format!("`callsheet scenarios {first}` shows details")),
        }),
    }
}
