//! `callsheet prefs`: what users want of tools and scenarios.

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::client::{DaemonAnswer, DaemonClient, QueryPairs, shell_word};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, RemoteArgs, output};
use crate::model::Settings;

/// Arguments of `prefs`.
#[derive(Debug, Args)]
pub(super) struct PrefsArgs {
    #[command(subcommand)]
    command: PrefsCommand,
}

#[derive(Debug, Subcommand)]
enum PrefsCommand {
    /// List preferences.
    List(ListPrefsArgs),
    /// Set one or more settings; the others stay as they are.
    Set(SetPrefsArgs),
    /// Make settings inherit again.
    Reset(ResetPrefsArgs),
}

#[derive(Debug, Args)]
struct ListPrefsArgs {
    /// Only those of this scope: `global`, `profile:<name>` or `chat:<id>`.
    #[arg(long)]
    scope: Option<String>,
    /// Only those of this target.
    #[arg(long)]
    target: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// The target of a preference, and its scope.
#[derive(Debug, Args)]
struct PreferenceKeyArgs {
    /// `tool:<scenario>/<tool>`, `scenario:<name>`, `category:<id>` or `tag:<tag>`.
    target: String,
    /// Its scope: `global`, `profile:<name>` or `chat:<id>`.
    #[arg(long, default_value = "global")]
    scope: String,
}

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("settings").required(true).multiple(true),
    override_usage = "callsheet prefs set [OPTIONS] <TARGET>\n           <--enabled|--approval|--alias|--priority|--pinned|--pins|\n            --description|--parameters>...",
    after_help = EXAMPLES,
)]
struct SetPrefsArgs {
    #[command(flatten)]
    place: PreferenceKeyArgs,
    /// Whether the tools are in the list.
    #[arg(long, group = "settings", help_heading = SETTINGS, action = clap::ArgAction::Set)]
    enabled: Option<bool>,
    /// Whether calls need approval.
    #[arg(long, group = "settings", help_heading = SETTINGS)]
    approval: Option<ApprovalArg>,
    /// The name to publish a single tool under.
    #[arg(long, group = "settings", help_heading = SETTINGS, value_name = "NAME")]
    alias: Option<String>,
    /// Priority of the tools when a limit allows only some: highest first.
    #[arg(long, group = "settings", help_heading = SETTINGS, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i32>,
    /// Always include these tools, whatever the search or limits.
    #[arg(long, group = "settings", help_heading = SETTINGS, action = clap::ArgAction::Set)]
    pinned: Option<bool>,
    /// Whether changed definitions of this scenario are reported, or held until accepted.
    #[arg(long, group = "settings", help_heading = SETTINGS, value_name = "off|warn|hold", value_parser = ["off", "warn", "hold"], hide_possible_values = true)]
    pins: Option<String>,
    /// What models read in place of a single tool's description.
    #[arg(long, group = "settings", help_heading = SETTINGS, value_name = "TEXT")]
    description: Option<String>,
    /// What replaces parts of a single tool's parameters: a JSON object by their names, each with
    /// `description`, and with `default` or `fixed`.
    #[arg(long, group = "settings", help_heading = SETTINGS, value_name = "JSON", value_parser = json_object)]
    parameters: Option<Value>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A JSON object of the command line.
fn json_object(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("not a JSON object".to_owned())
    }
}

const SETTINGS: &str = "Settings";
/// Those that replace parts of a tool. A table only names them.
const OVERRIDES: [&str; 2] = ["description", "parameters"];
const EXAMPLES: &str = "\
Examples:
  callsheet prefs set tool:mail/send_mail --enabled false
  callsheet prefs set scenario:mail --approval require --scope profile:intern
  callsheet prefs set tool:mail/send_mail --parameters '{\"from\": {\"fixed\": \"me@example.org\"}}'";

#[derive(Debug, Args)]
struct ResetPrefsArgs {
    /// `tool:<scenario>/<tool>`, `scenario:<name>`, `category:<id>` or `tag:<tag>`; all targets of
    /// the scope when left out.
    target: Option<String>,
    /// Its scope: `global`, `profile:<name>` or `chat:<id>`; `global` for a target. Without a
    /// target, a `*` at the end stands for any ending: `chat:*`.
    #[arg(long)]
    scope: Option<String>,
    /// Only this setting; all of them by default.
    #[arg(long, requires = "target", value_parser = PossibleValuesParser::new(Settings::NAMES))]
    setting: Option<String>,
    /// Only count the preferences of the scope, without a target.
    #[arg(long)]
    preview: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ApprovalArg {
    Require,
    Skip,
}

impl PrefsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            PrefsCommand::List(command) => command.run().await,
            PrefsCommand::Set(command) => command.run().await,
            PrefsCommand::Reset(command) => command.run().await,
        }
    }
}

impl ListPrefsArgs {
    async fn run(self) -> Result<(), CommandError> {
        let filter = [("scope", self.scope), ("target", self.target)];
        let query = filter
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        let answer = DaemonClient::from_args(&self.remote)?
            .get(&["preferences"], query, "preferences")
            .await?;
        let list = output::list(&answer.value, "preferences");
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else if list.is_empty() {
            output::line("no preferences; set one with `callsheet prefs set`");
        } else {
            show(list);
        }
        Ok(())
    }
}

impl SetPrefsArgs {
    async fn run(self) -> Result<(), CommandError> {
        let mut body = json!({ "scope": self.place.scope, "target": &self.place.target });
        let approval = self.approval.and_then(|approval| name(&approval));
        let settings = [
            ("enabled", self.enabled.map(Value::from)),
            ("approval", approval.map(Value::from)),
            ("alias", self.alias.map(Value::from)),
            ("priority", self.priority.map(Value::from)),
            ("pinned", self.pinned.map(Value::from)),
            ("pins", self.pins.map(Value::from)),
            ("description", self.description.map(Value::from)),
            ("parameters", self.parameters),
        ];
        for (key, value) in settings {
            if let Some(value) = value {
                body[key] = value;
            }
        }
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let sent = daemon
            .send(
                http::Method::PUT,
                &["preferences"],
                QueryPairs::new(),
                Some(&body),
                "preference",
            )
            .await;
        let answer = or_meant(sent, &daemon, &self.place.target).await?;
        done(&answer, self.remote.json);
        Ok(())
    }
}

impl ResetPrefsArgs {
    async fn run(self) -> Result<(), CommandError> {
        let target = match (self.target, &self.scope) {
            (None, Some(scope)) => return reset_scope(&self.remote, scope, self.preview).await,
            (Some(target), _) if !self.preview => target,
            (Some(_), _) => {
                return Err(usage(
                    "`--preview` counts the preferences of a whole scope, so it takes no target",
                ));
            }
            (None, None) => return Err(usage("what is to be reset is not said")),
        };
        let scope = self.scope.unwrap_or_else(|| "global".to_owned());
        let mut query = vec![("scope", scope), ("target", target.clone())];
        query.extend(self.setting.map(|name| ("setting", name)));
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let sent = daemon
            .send(
                http::Method::DELETE,
                &["preferences"],
                query,
                None,
                "preference",
            )
            .await;
        let answer = or_meant(sent, &daemon, &target).await?;
        // A target that no tool or scenario is and that has no preference is a slip: a reset has no
        // effect.
        if answer.value["was_set"] == false
            && let Some(why) = answer.value["note"].as_str()
        {
            let message = format!(
                "no preference of `{target}` is set: {}",
                output::sanitize(why)
            );
            let hint = Some("`callsheet prefs list` shows those that are set".to_owned());
            return Err(CommandError::Refused { message, hint });
        }
        done(&answer, self.remote.json);
        Ok(())
    }
}

/// A wrong use of `prefs reset`.
fn usage(message: &str) -> CommandError {
    let hint = "`callsheet prefs reset TARGET` resets one target, `callsheet prefs reset --scope SCOPE` a whole scope \
                (`--preview` counts it first); SCOPE is `global`, `profile:NAME` or `chat:ID`";
    CommandError::Usage {
        message: message.to_owned(),
        hint: hint.to_owned(),
    }
}

/// Resets or counts all preferences of a scope.
async fn reset_scope(remote: &RemoteArgs, scope: &str, preview: bool) -> Result<(), CommandError> {
    let body = json!({ "scope": scope, "preview": preview });
    let daemon = DaemonClient::for_operator(remote)?;
    let path = ["preferences", "reset"];
    let answer = daemon
        .send(
            http::Method::POST,
            &path,
            QueryPairs::new(),
            Some(&body),
            "preferences",
        )
        .await?;
    if remote.json {
        output::answer(&answer.body, &answer.value);
        return Ok(());
    }
    let count = answer.value["preferences"].as_u64().unwrap_or_default();
    let what = if count == 1 {
        "1 preference".to_owned()
    } else {
        format!("{count} preferences")
    };
    let done = if preview { "would be reset" } else { "reset" };
    output::line(&format!(
        "{what} in scope {} {done}",
        output::sanitize(scope)
    ));
    Ok(())
}

/// The answer, or the refusal with the target that was meant where the name of a tool was written.
async fn or_meant(
    sent: Result<DaemonAnswer, CommandError>,
    daemon: &DaemonClient,
    target: &str,
) -> Result<DaemonAnswer, CommandError> {
    // A target with its scenario is whole; what is refused is something else.
    let name = target
        .strip_prefix("tool:")
        .filter(|name| !name.contains('/'))
        .unwrap_or(target);
    let (message, hint, document) = match sent {
        Err(CommandError::Problem {
            message,
            hint,
            document,
        }) if !name.contains(':') => (message, hint, document),
        sent => return sent,
    };
    let path: Vec<&str> = name.splitn(2, '/').collect();
    let hint = match daemon.tool(&path, QueryPairs::new()).await {
        Ok(tool) => {
            let identity = format!(
                "tool:{}/{}",
                output::text(&tool, "/scenario"),
                output::text(&tool, "/original_name")
            );
            Some(format!("did you mean `{}`?", shell_word(&identity)))
        }
        Err(_) => hint,
    };
    Err(CommandError::Problem {
        message,
        hint,
        document,
    })
}

/// A choice as it is written on the command line, which is also how the API writes it.
fn name(choice: &impl ValueEnum) -> Option<String> {
    Some(choice.to_possible_value()?.get_name().to_owned())
}

fn done(answer: &DaemonAnswer, json: bool) {
    let preference = &answer.value["preference"];
    if json {
        output::answer(&answer.body, &answer.value);
    } else if Settings::NAMES
        .iter()
        .all(|setting| preference[setting].is_null())
    {
        let text = |pointer| output::text(preference, pointer);
        output::line(&format!(
            "{} inherits every setting in scope {}",
            text("/target"),
            text("/scope")
        ));
    } else {
        show(std::slice::from_ref(preference));
    }
    if let Some(summary) = answer.value["summary"].as_str().filter(|_| !json) {
        output::note(&output::sanitize(summary));
    }
    if let Some(note) = answer.value["note"].as_str().filter(|_| !json) {
        output::note(&output::sanitize(note));
    }
}

fn show(list: &[Value]) {
    let columns = [
        "SCOPE",
        "TARGET",
        "ENABLED",
        "APPROVAL",
        "ALIAS",
        "PRIORITY",
        "ALWAYS",
        "PINS",
        "OVERRIDES",
    ];
    let mut sheet = TextTable::new(&columns.map(|heading| (heading, ColumnFit::Whole)));
    for preference in list {
        let shown = |key: &str| match &preference[key] {
            Value::Null => cell("inherit"),
            Value::String(text) => cell(output::sanitize(text)),
            other => cell(other.to_string()),
        };
        let own = ["scope", "target"].into_iter().chain(Settings::NAMES);
        let own = own.filter(|name| !OVERRIDES.contains(name));
        let replaced: Vec<&str> = OVERRIDES
            .into_iter()
            .filter(|name| !preference[*name].is_null())
            .collect();
        let replaced = if replaced.is_empty() {
            cell("none")
        } else {
            cell(replaced.join(", "))
        };
        sheet.row(own.map(shown).chain([replaced]));
    }
    sheet.print();
}
