//! `callsheet add NAME ADDRESS`, `callsheet add NAME -- COMMAND ARGS...` and `callsheet remove
//! NAME`: change the configuration file, and show what the running daemon makes of it.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::edited::{self, EditedFile};
use super::{CommandError, RemoteArgs, output, paragraph};
use crate::config::client_files::EntryTarget;
use crate::config::web_address;
use crate::model::ScenarioName;

/// Arguments of `add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// The scenario's name, which its tools get where another scenario has one of the same name.
    name: String,
    /// Its address, such as 127.0.0.1:8080; that of an MCP server is whole, such as
    /// 127.0.0.1:8080/mcp.
    #[arg(value_name = "ADDRESS", conflicts_with = "command")]
    address: Option<String>,
    /// An MCP server to start, and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A variable of the command, without a value that of this shell; the value goes to
    /// secrets.toml beside the configuration.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A header of every request; its value goes to secrets.toml beside the configuration.
    #[arg(long, value_name = "NAME=VALUE")]
    header: Vec<String>,
    /// Put it in the place of the scenario of this name, which keeps its preferences.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl AddArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let name = scenario_name(&self.name)?;
        let target = self.target()?;
        let file = EditedFile::find(&self.remote).await?;
        let mut edit = file.open();
        let is_replaced = self.replace && edit.names()?.iter().any(|known| known == name.as_str());
        if is_replaced {
            edit.remove(name.as_str()).map_err(edited::failed)?;
        }
        edit.add_listed(name.as_str(), &target)
            .map_err(edited::failed)?;
        let written = edit.write().map_err(edited::failed)?;
        if !self.remote.json {
            let done = if is_replaced {
                "replaced in"
            } else {
                "added to"
            };
            output::wrapped("", &format!("{done} {}:", written.path.display()));
            edited::print_lines(&written.lines);
            edited::print_secrets(&written);
            file.print_next();
        }
        let polled = if is_replaced {
            file.replaced(name.as_str()).await?
        } else {
            None
        };
        let known = match polled {
            Some(polled) => Some(polled),
            None => file.added(name.as_str(), has_answered).await?,
        };
        let suspicious = file.suspicious_texts(name.as_str()).await;
        let verdict = known.as_ref().map_or(Ok(()), verdict);
        if self.remote.json {
            let findings = &suspicious;
            output::json(
                &json!({"name": name.as_str(), "file": written.path, "scenario": known, "findings": findings}),
            );
        } else if let Some(known) = known {
            if verdict.is_ok() {
                print_state(&known);
            }
            print_suspicious(&name, &suspicious);
        }
        verdict
    }

    /// Where the scenario is.
    fn target(&self) -> Result<EntryTarget, CommandError> {
        if let Some((command, args)) = self.command.split_first() {
            if !self.header.is_empty() {
                return Err(self.misplaced(
                    "--header",
                    "an address",
                    "a program takes `--env NAME=VALUE`",
                ));
            }
            let here = std::env::current_dir()?;
            let command = if command.contains('/') {
                here.join(command).display().to_string()
            } else {
                command.clone()
            };
            // An argument that names a file of this folder means it wherever the daemon runs.
            let is_here = |arg: &String| !Path::new(arg).is_absolute() && here.join(arg).exists();
            let cwd = args.iter().any(is_here).then_some(here);
            return Ok(EntryTarget::Program {
                command,
                args: args.to_vec(),
                env: variables(&self.env)?,
                cwd,
            });
        }
        let Some(text) = &self.address else {
            return Err(CommandError::Usage {
                message: format!(
                    "there is neither an address nor a command of `{}`",
                    self.name
                ),
                hint: format!(
                    "`callsheet add {0} http://127.0.0.1:8080`, or `callsheet add {0} -- COMMAND` for a program to start",
                    self.name
                ),
            });
        };
        if !self.env.is_empty() {
            return Err(self.misplaced(
                "--env",
                "a program to start",
                "an address takes `--header NAME=VALUE`",
            ));
        }
        let url = web_address(text).ok_or_else(|| CommandError::Usage {
            message: format!("`{text}` is not an address"),
            hint: format!(
                "write it like http://127.0.0.1:8080; a program to start stands after `--`: `callsheet add {} -- {text}`",
                self.name
            ),
        })?;
        Ok(EntryTarget::Address {
            url,
            headers: pairs("--header", &self.header)?,
        })
    }

    /// Why an option is refused that belongs to the other kind of entry. The parser does not see
    /// it: an option whose required argument conflicts with a given one is accepted.
    fn misplaced(&self, option: &str, of: &str, instead: &str) -> CommandError {
        let kind = if self.command.is_empty() {
            "an address"
        } else {
            "a program to start"
        };
        CommandError::Usage {
            message: format!("`{option}` belongs to {of}, and `{}` is {kind}", self.name),
            hint: format!("leave `{option}` out; {instead}"),
        }
    }
}

/// Arguments of `remove`.
#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// Which scenario.
    name: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl RemoveArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let name = scenario_name(&self.name)?;
        if let Some(named) = self.remote.config.as_ref().filter(|named| !named.exists()) {
            let message = format!(
                "there is no file {}, so `{name}` cannot be taken out of it",
                named.display()
            );
            let hint = "`--config` names the file that has it; without `--config` it is that of the running daemon";
            return Err(CommandError::Refused {
                message,
                hint: Some(hint.to_owned()),
            });
        }
        let file = EditedFile::find(&self.remote).await?;
        let mut edit = file.open();
        if !edit.names()?.iter().any(|known| known == name.as_str())
            && let Some(known) = file.known(name.as_str()).await
        {
            return Err(elsewhere(&known, &file));
        }
        edit.remove(name.as_str()).map_err(edited::failed)?;
        let written = edit.write().map_err(edited::failed)?;
        let json = self.remote.json;
        if !json {
            output::wrapped("", &format!("taken out of {}", written.path.display()));
            if written.leaves_secrets {
                output::note(&format!(
                    "the values of [{name}] stay in secrets.toml beside it"
                ));
            }
        }
        let known = file.removed(name.as_str()).await?;
        if json {
            output::json(&json!({"name": name.as_str(), "file": written.path, "scenario": known}));
        } else if let Some(known) = known {
            print_state(&known);
            if output::text(&known, "/state") == "removed" {
                output::wrapped(
                    "",
                    &format!(
                        "`callsheet forget {name}` also deletes its health and what is remembered of its tools"
                    ),
                );
            }
        }
        Ok(())
    }
}

/// Why a scenario that the daemon knows cannot be taken out of the file.
fn elsewhere(known: &Value, file: &EditedFile) -> CommandError {
    let text = |pointer| output::text(known, pointer);
    let name = text("/name");
    let path = file.path.display();
    if text("/state") == "removed" {
        let message = format!("{path} does not have `{name}` any more");
        return CommandError::Refused {
            message,
            hint: Some(format!("`callsheet forget {name}` deletes the rest")),
        };
    }
    let message = format!(
        "`{name}` is not in {path}: it was found by {}",
        text("/source")
    );
    CommandError::Refused {
        message,
        hint: Some(format!(
            "`callsheet block {name}` takes its tools out of the list"
        )),
    }
}

/// Prints the texts that a person should read before a model does.
fn print_suspicious(name: &ScenarioName, findings: &[Value]) {
    if findings.is_empty() {
        return;
    }
    output::line("");
    paragraph::print_all(&paragraph::of_findings(findings));
    output::line("");
    let count = output::count(findings.len(), "suspicious text");
    output::wrapped(
        "",
        &format!(
            "{count}: read before you use it; `callsheet block {name}` takes its tools out of the list"
        ),
    );
}

/// Whether a first answer, or why there is none, is known.
fn has_answered(health: &Value) -> bool {
    match output::text(health, "/state").as_str() {
        "removed" => false,
        "connecting" => output::number(health, "/failures_in_a_row") > 0,
        // One that was removed, or was down at its former place, is down until its first answer.
        "down" => health["last_error"].is_object(),
        _ => true,
    }
}

/// Whether a scenario that was added works, or waits for a person only. Its entry stays written.
fn verdict(health: &Value) -> Result<(), CommandError> {
    let text = |pointer| output::text(health, pointer);
    let name = text("/name");
    let state = text("/state");
    let (message, next) = match state.as_str() {
        // Its entry was replaced.
        "live" if health["last_error"].is_object() => (
            format!(
                "{name} does not answer at its new place: {}",
                text("/last_error/message")
            ),
            "the tools of the entry before stay for a while",
        ),
        "live" | "stale" | "asleep" | "needs-authorization" | "pending" | "blocked" => {
            return Ok(());
        }
        _ => {
            let reason = text("/reason");
            let message = match reason.strip_prefix("not working yet: ") {
                Some(why) => format!("{name} is not working yet: {why}"),
                None => format!("{name} is {state}: {reason}"),
            };
            (message, "the daemon keeps trying")
        }
    };
    Err(CommandError::Refused {
        message,
        hint: Some(format!(
            "its entry is written, and {next}; `callsheet remove {name}` takes it out again"
        )),
    })
}

/// Prints what became of a scenario.
fn print_state(health: &Value) {
    let text = |pointer| output::text(health, pointer);
    let name = text("/name");
    let state = text("/state");
    if state != "live" {
        output::wrapped("", &format!("{name} is {state}: {}", text("/reason")));
        return;
    }
    let tools = usize::try_from(output::number(health, "/tools/published")).unwrap_or_default();
    let off = match output::number(health, "/tools/disabled") {
        0 => String::new(),
        off => format!(", {off} more are off"),
    };
    output::wrapped(
        "",
        &format!(
            "{name} is live: {}{off}; `callsheet tools --scenario {name}` lists them",
            output::count(tools, "tool")
        ),
    );
}

fn scenario_name(text: &str) -> Result<ScenarioName, CommandError> {
    text.parse().map_err(|_| CommandError::Usage {
        message: format!(
            "`{}` cannot be the name of a scenario",
            output::sanitize(text)
        ),
        hint: "use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit"
            .into(),
    })
}

/// The variables of `--env`: `NAME=VALUE`, or `NAME` for the value that this process has.
pub(super) fn variables(written: &[String]) -> Result<Vec<(String, String)>, CommandError> {
    let given = |text: &String| -> Result<String, CommandError> {
        if text.contains('=') || text.is_empty() {
            return Ok(text.clone());
        }
        let value = std::env::var(text).map_err(|_| CommandError::Usage {
            message: format!("`--env {text}` has no value, and this shell has no such variable"),
            hint: format!("write it like `--env {text}=abc`, or export `{text}` first"),
        })?;
        Ok(format!("{text}={value}"))
    };
    let given: Vec<String> = written
        .iter()
        .map(given)
        .collect::<Result<_, CommandError>>()?;
    pairs("--env", &given)
}

/// `NAME=VALUE` of a flag.
fn pairs(flag: &str, written: &[String]) -> Result<Vec<(String, String)>, CommandError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
        Some((name.to_owned(), value.to_owned()))
    };
    written
        .iter()
        .map(|text| pair(text).ok_or(text))
        .collect::<Result<_, _>>()
        .map_err(|_| CommandError::Usage {
            message: format!("{flag} takes NAME=VALUE"),
            hint: format!("write it like `{flag} TOKEN=abc`"),
        })
}
