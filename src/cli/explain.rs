//! `callsheet explain NAME`: why a tool is or is not in the list.

use clap::Args;
use serde_json::Value;

use super::client::{DaemonClient, QueryPairs, as_commands, tool_segments};
use super::{CommandError, RemoteArgs, output, paragraph};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Published name, `scenario/tool`, or the name of a scenario.
    name: String,
    /// With the preferences of this profile.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// With the preferences of this conversation.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl ExplainArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let scope = [
            ("profile", self.profile),
            ("permission", self.permission),
            ("chat_id", self.chat),
        ];
        let query: QueryPairs = scope
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        let mut path = vec!["tools"];
        path.extend(tool_segments(&self.name));
        path.push("explain");
        let answer = daemon.get(&path, query, "steps").await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            show(&answer.value);
        }
        Ok(())
    }
}

fn show(answer: &Value) {
    let text = |pointer| output::text(answer, pointer);
    let subject = match (text("/name"), text("/id")) {
        (name, id) if name == id => name,
        (name, id) => format!("{name} ({id})"),
    };
    output::wrapped("", &format!("{subject}: {}", text("/verdict")));
    output::line("");
    for step in output::list(answer, "steps") {
        let [subject, outcome, source] =
            ["/subject", "/outcome", "/source"].map(|pointer| output::text(step, pointer));
        let outcome = as_commands(&outcome, output::list(step, "next"));
        output::wrapped(
            &format!("{subject:>9}  "),
            &format!("{outcome}  [{source}]"),
        );
    }
    let version = text("/provider_version");
    if !version.is_empty() {
        output::wrapped(
            "  version  ",
            &format!("{}  [manifest]", output::sanitize(&version)),
        );
    }
    paragraph::print_findings(answer);
}
