//! `callsheet pins`: how scenarios differ from what was accepted of them, and its acceptance.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output};
use crate::runtime::Clock;

const EXAMPLES: &str = "\
Examples:
  callsheet pins
  callsheet pins files
  callsheet pins accept files read_text";

/// Arguments of `pins`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(super) struct PinsArgs {
    #[command(subcommand)]
    command: Option<PinsCommand>,
    #[command(flatten)]
    list: ListPinsArgs,
}

#[derive(Debug, Subcommand)]
enum PinsCommand {
    /// Accept what a scenario offers now, or some of its tools.
    Accept(AcceptPinsArgs),
}

#[derive(Debug, Args)]
struct ListPinsArgs {
    /// Only this scenario.
    name: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct AcceptPinsArgs {
    /// Which scenario.
    name: String,
    /// Only these tools, by the names that the scenario gives them.
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl PinsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            None => self.list.run().await,
            Some(PinsCommand::Accept(command)) => command.run().await,
        }
    }
}

impl ListPinsArgs {
    async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let query: QueryPairs = self
            .name
            .iter()
            .map(|name| ("scenario", name.clone()))
            .collect();
        let answer = daemon.get(&["pins"], query, "pins").await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return Ok(());
        }
        let pins = output::list(&answer.value, "pins");
        let differing: Vec<&Value> = pins
            .iter()
            .filter(|one| !differences(one).is_empty())
            .collect();
        for scenario in &differing {
            show(scenario);
        }
        if differing.is_empty() {
            output::line(if pins.is_empty() {
                "no definitions are pinned"
            } else {
                "all is as it was accepted"
            });
        }
        Ok(())
    }
}

impl AcceptPinsArgs {
    /// Accepts what the daemon shows at this moment, and prints it.
    async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let query = QueryPairs::from([("scenario", self.name.clone())]);
        let shown = daemon.get(&["pins"], query, "pins").await?.value;
        let Some(pinned) = output::list(&shown, "pins").first() else {
            return Err(CommandError::Refused {
                message: format!("the definitions of `{}` are not pinned", self.name),
                hint: Some(format!(
                    "`callsheet prefs set scenario:{} --pins warn` has them compared",
                    self.name
                )),
            });
        };
        let all = differences(pinned);
        for name in &self.tools {
            if !all.iter().any(|one| one["tool"] == name.as_str()) {
                return Err(CommandError::Refused {
                    message: format!("`{name}` of `{}` is as it was accepted", self.name),
                    hint: Some(format!("`callsheet pins {}` shows what differs", self.name)),
                });
            }
        }
        let is_meant = |one: &&Value| {
            self.tools.is_empty() || self.tools.iter().any(|name| one["tool"] == name.as_str())
        };
        let accepted: Vec<&Value> = all.iter().filter(is_meant).collect();
        if accepted.is_empty() {
            if self.remote.json {
                output::answer(pinned.to_string().as_bytes(), pinned);
            } else {
                output::line(&format!("{} is as it was accepted", self.name));
            }
            return Ok(());
        }
        let path = ["pins", &self.name, "accept"];
        let body = request(&accepted);
        let answer = daemon
            .send(
                http::Method::POST,
                &path,
                QueryPairs::new(),
                Some(&body),
                "differences",
            )
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return Ok(());
        }
        output::line(&format!("accepted of {}:", output::sanitize(&self.name)));
        for one in accepted {
            show_difference(one);
        }
        Ok(())
    }
}

/// The body that accepts these differences in the versions that they show.
fn request(accepted: &[&Value]) -> Value {
    let tools = accepted.iter().filter(|one| one["tool"].is_string());
    let tools: Vec<Value> = tools
        .map(|one| json!({"name": one["tool"], "version": one["version"]}))
        .collect();
    let mut body = json!({ "tools": tools });
    if let Some(instructions) = accepted.iter().find(|one| one["tool"].is_null()) {
        body["instructions"] = json!({"version": instructions["version"]});
    }
    body
}

fn differences(scenario: &Value) -> &[Value] {
    output::list(scenario, "differences")
}

fn show(scenario: &Value) {
    let text = |pointer| output::sanitize(&output::text(scenario, pointer));
    let mode = match text("/mode").as_str() {
        "hold" => "held until it is accepted",
        _ => "listed, and accepted after 7 days",
    };
    output::line(&format!("{}: what differs is {mode}", text("/scenario")));
    for one in differences(scenario) {
        show_difference(one);
    }
}

fn show_difference(one: &Value) {
    let text = |pointer| output::sanitize(&output::text(one, pointer));
    let what = match text("/tool") {
        none if none.is_empty() => "its instructions".to_owned(),
        tool => tool,
    };
    let often = if one["changes_often"] == true {
        ", changes often"
    } else {
        ""
    };
    let since = output::relative(one, "/since", Clock::system().wall());
    output::line(&format!("  {what}: {}{often}, {since}", text("/change")));
    for part in output::list(one, "parts") {
        let text = |pointer| output::sanitize(&output::text(part, pointer));
        output::line(&format!("    {}", text("/pointer")));
        for (sign, member) in [("    - ", "before"), ("    + ", "after")] {
            if let Some(value) = part[member].as_str() {
                output::wrapped(sign, &output::sanitize(value));
            }
        }
    }
    let more = output::number(one, "/more");
    if more > 0 {
        output::line(&format!("    and {more} more"));
    }
}
