//! `callsheet profiles`: what callers that name a profile may see and call at most.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::client::{DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, RemoteArgs, output};

const EXAMPLES: &str = "\
Examples:
  callsheet profiles
  callsheet profiles set intern --scenario files --scenario notes --permission user
  callsheet profiles set visitor --permission guest
  callsheet profiles remove visitor";

/// Arguments of `profiles`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(super) struct ProfilesArgs {
    #[command(subcommand)]
    command: Option<ProfilesCommand>,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum ProfilesCommand {
    /// List the profiles with their bounds; the same as no command.
    List(ListProfilesArgs),
    /// Show one profile.
    Show(ProfileNameArgs),
    /// Add a profile, or give one exactly these bounds.
    Set(SetProfileArgs),
    /// Take away a profile that was added.
    Remove(ProfileNameArgs),
}

#[derive(Debug, Args)]
struct ListProfilesArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct ProfileNameArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct SetProfileArgs {
    /// Its name.
    name: String,
    /// Only tools of this scenario; may be repeated. All when left out.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// No scenario at all.
    #[arg(long, conflicts_with = "scenario")]
    no_scenarios: bool,
    /// Only tools that require at most this level. All when left out.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"])]
    permission: Option<String>,
    /// Whether MCP clients get the whole list, or tools that search.
    #[arg(long, value_name = "MODE", value_parser = ["list", "search"])]
    mcp_mode: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl ProfilesArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            None => list(&self.remote, None).await,
            Some(ProfilesCommand::List(command)) => list(&command.remote, None).await,
            Some(ProfilesCommand::Show(command)) => {
                list(&command.remote, Some(&command.name)).await
            }
            Some(ProfilesCommand::Set(command)) => command.run().await,
            Some(ProfilesCommand::Remove(command)) => command.remove().await,
        }
    }
}

/// Shows all profiles, or those of this name.
async fn list(remote: &RemoteArgs, name: Option<&str>) -> Result<(), CommandError> {
    let answer = DaemonClient::from_args(remote)?
        .get(&["profiles"], QueryPairs::new(), "profiles")
        .await?;
    let profiles: Vec<Value> = output::list(&answer.value, "profiles")
        .iter()
        .filter(|profile| name.is_none_or(|name| profile["name"] == name))
        .cloned()
        .collect();
    if let Some(name) = name.filter(|_| profiles.is_empty()) {
        return Err(CommandError::Refused {
            message: format!("no profile is called `{}`", output::sanitize(name)),
            hint: Some("`callsheet profiles` lists them".to_owned()),
        });
    }
    if remote.json {
        output::json(&json!({ "profiles": profiles }));
    } else if profiles.is_empty() {
        output::line(
            "no profiles: every client may see every tool; add one with `callsheet profiles set`",
        );
    } else {
        show(&profiles);
    }
    Ok(())
}

impl SetProfileArgs {
    async fn run(self) -> Result<(), CommandError> {
        let mut body = Map::new();
        if self.no_scenarios || !self.scenario.is_empty() {
            body.insert("scenarios".to_owned(), json!(self.scenario));
        }
        let texts = [("permission", self.permission), ("mcp_mode", self.mcp_mode)];
        for (key, text) in texts {
            body.extend(text.map(|text| (key.to_owned(), Value::from(text))));
        }
        let answer = DaemonClient::for_operator(&self.remote)?
            .send(
                http::Method::PUT,
                &["profiles", &self.name],
                QueryPairs::new(),
                Some(&Value::Object(body)),
                "profile",
            )
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return Ok(());
        }
        show(std::slice::from_ref(&answer.value["profile"]));
        if let Some(note) = answer.value["note"].as_str() {
            output::note(&output::sanitize(note));
        }
        Ok(())
    }
}

impl ProfileNameArgs {
    async fn remove(self) -> Result<(), CommandError> {
        let answer = DaemonClient::for_operator(&self.remote)?
            .send(
                http::Method::DELETE,
                &["profiles", &self.name],
                QueryPairs::new(),
                None,
                "message",
            )
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            output::line(&format!(
                "{} is taken away: {}",
                output::text(&answer.value, "/name"),
                output::text(&answer.value, "/message")
            ));
        }
        Ok(())
    }
}

fn show(profiles: &[Value]) {
    let columns = ["NAME", "SCENARIOS", "PERMISSION", "MCP MODE", "FROM"];
    let mut sheet = TextTable::new(&columns.map(|heading| (heading, ColumnFit::Whole)));
    for profile in profiles {
        let text = |key: &str, absent: &str| match profile[key].as_str() {
            Some(text) => cell(output::sanitize(text)),
            None => cell(absent),
        };
        let scenarios = match profile["scenarios"].as_array() {
            None => "all".to_owned(),
            Some(names) if names.is_empty() => "none".to_owned(),
            Some(names) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                names.join(", ")
            }
        };
        let notes = [
            ("is_default", "the default"),
            ("is_hidden", "hidden by the configuration"),
        ];
        let notes = notes
            .iter()
            .filter(|(member, _)| profile[*member] == true)
            .map(|(_, note)| *note);
        let origin = profile["origin"].as_str().unwrap_or_default();
        let origin: Vec<&str> = std::iter::once(origin).chain(notes).collect();
        sheet.row([
            text("name", ""),
            cell(output::sanitize(&scenarios)),
            text("permission", "all"),
            text("mcp_mode", "as all"),
            cell(origin.join(", ")),
        ]);
    }
    sheet.print();
}
