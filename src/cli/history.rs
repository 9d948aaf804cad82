//! `callsheet history NAME`: how the definition of a tool changed.

use clap::Args;
use serde_json::Value;

use super::client::{DaemonClient, QueryPairs, tool_segments};
use super::{CommandError, RemoteArgs, output};

/// Digits of a version that a person compares.
const VERSION_DIGITS_SHOWN: usize = 12;

/// Arguments of `history`.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// Published name, or `scenario/tool`.
    name: String,
    /// With the preferences of this profile.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl HistoryArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let query: QueryPairs = self
            .profile
            .into_iter()
            .map(|profile| ("profile", profile))
            .collect();
        let mut path = vec!["tools"];
        path.extend(tool_segments(&self.name));
        path.push("history");
        let answer = daemon.get(&path, query, "changes").await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            show(&answer.value);
        }
        Ok(())
    }
}

fn show(answer: &Value) {
    let text = |pointer| output::sanitize(&output::text(answer, pointer));
    let version = match text("/definition_version") {
        none if none.is_empty() => "not offered now".to_owned(),
        version => format!("version {}", short(&version)),
    };
    let own = match text("/provider_version") {
        none if none.is_empty() => String::new(),
        own => format!(", {own} by its provider"),
    };
    output::wrapped(
        "",
        &format!("{} ({}): {version}{own}", text("/name"), text("/id")),
    );
    let changes = output::list(answer, "changes");
    if changes.is_empty() {
        output::line("no change of its definition is known");
    }
    for change in changes {
        let text = |pointer| output::sanitize(&output::text(change, pointer));
        output::line("");
        output::line(&format!(
            "{}  {} -> {}",
            text("/at"),
            short(&text("/from")),
            short(&text("/to"))
        ));
        for part in output::list(change, "parts") {
            output::line(&format!(
                "  {}",
                output::sanitize(&output::text(part, "/pointer"))
            ));
            for (sign, member) in [("  - ", "before"), ("  + ", "after")] {
                if let Some(value) = part[member].as_str() {
                    output::wrapped(sign, &output::sanitize(value));
                }
            }
        }
        let more = output::number(change, "/more");
        if more > 0 {
            output::line(&format!("  and {more} more"));
        }
    }
}

fn short(version: &str) -> &str {
    version.get(..VERSION_DIGITS_SHOWN).unwrap_or(version)
}
