//! `callsheet call NAME`: run a tool through the daemon, with flags made from the tool's own
//! schema.
//!
//! ```text
//! words -> NAME -> the tool from the daemon -> flags -> arguments -> POST of the call
//!                                                                        |
//! answer (result) <-- decision (--wait) <-- progress (bar, lines) <------+
//! ```
//!
//! What is kept true here:
//!
//! - The options of this command stand before the name. Every word behind it belongs to the tool,
//!   so that a tool may have parameters called `url` or `json`; only `--args` may stand behind it,
//!   too, unless the tool has a parameter of that name.
//! - A call whose flags were read from a definition names the version of that definition, so that
//!   no other one is called.
//! - Only the types of flags are checked here; the daemon checks everything else. Defaults are
//!   shown, and not sent.
//! - A signal ends the wait, and not the call.
//!
//! Read in this order: this file ([`CallArgs`]), `flags.rs`, `arguments.rs`, `progress.rs`,
//! `decision.rs`, `answer.rs`, `tool_list.rs` (the help).

use std::io::{IsTerminal as _, Read as _};

use clap::Args;
use clap::error::{ContextKind, ContextValue};
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::{DaemonAnswer, DaemonClient, QueryPairs, shell_word, tool_segments};
use super::{CommandError, RemoteArgs, output};

mod answer;
mod arguments;
mod decision;
pub(super) mod flags;
mod progress;
mod tool_list;

use arguments::{SentCall, WrittenArguments};
use progress::ProgressView;

/// Bytes of arguments from a file or from standard input; no daemon takes more.
const MAX_ARGUMENTS: u64 = 64 * 1024 * 1024;

/// The codes of calls whose scenario did not answer.
const NO_ANSWER: [&str; 5] = [
    "unreachable",
    "timeout",
    "broken",
    "unavailable",
    "circuit_open",
];

/// Arguments of `call`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    override_usage = "callsheet call [OPTIONS] <NAME> [FLAGS]..."
)]
pub(super) struct CallArgs {
    /// Published name, `scenario/tool` or `module.tool`, then the tool's own arguments as flags:
    /// `callsheet call NAME --help` lists them. Options of this command stand before NAME.
    #[arg(
        required_unless_present = "help",
        num_args = 1..,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_names = ["NAME", "FLAGS"]
    )]
    words: Vec<String>,
    /// The arguments as one JSON object: as text, `@FILE`, or `-` for standard input. Flags add to
    /// it.
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// The scenario whose tool of this name is meant.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// In this conversation: with its preferences.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// With this profile: its limits and preferences.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// User ID passed on to the scenario, if its protocol supports it.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// By its name in this earlier revision of the list.
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// If the call needs approval, or its tool input, wait for that and print what came of it.
    #[arg(long)]
    wait: bool,
    /// Show progress and log messages on standard error also where that is no terminal.
    #[arg(long)]
    progress: bool,
    /// Print help, with the tools that the daemon lists.
    #[arg(short, long)]
    help: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl CallArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote);
        let Some((name, own)) = self.words.split_first().filter(|_| !self.help) else {
            let scenario = self.scenario.clone().map(|scenario| ("scenario", scenario));
            tool_list::print_help(daemon, self.scope().into_iter().chain(scenario).collect()).await;
            return Ok(());
        };
        if name.starts_with('-') {
            return Err(unknown_option(name));
        }
        let daemon = daemon?;
        let mut arguments = self
            .args
            .as_deref()
            .map(written)
            .transpose()?
            .unwrap_or_default();
        // The version of the definition that the flags were read by.
        let mut version = None;
        if !own.is_empty() || self.args.is_none() {
            match self.tool(&daemon, name).await {
                Ok(tool) => {
                    let Some(given) = flags::parse_flags(name, &tool, own, self.args.is_some())?
                    else {
                        return Ok(());
                    };
                    if let Some(args) = &given.args {
                        arguments = written(args)?;
                    }
                    arguments.extend(given.flags);
                    // With a revision the name may mean another tool.
                    version = tool["definition_version"]
                        .as_str()
                        .filter(|_| self.revision.is_none())
                        .map(str::to_owned);
                }
                // What an earlier list called so may not be found by that name now.
                Err(_) if self.revision.is_some() && own.is_empty() => {}
                Err(failure) => return Err(self.with_verdict(&daemon, name, failure).await),
            }
        }
        let answer = self.execute(&daemon, name, arguments, version).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return Err(self.with_next_step(&daemon, name, failure).await),
        };
        let answer = if self.wait {
            decision::with_input(&daemon, answer).await?
        } else {
            answer
        };
        if self.wait
            && let Some(id) = answer.value["approval_id"].as_str()
        {
            let approval = decision::decided(&daemon, id).await?;
            if self.remote.json {
                output::answer(&approval.body, &approval.value);
                return decision::verdict(&approval.value);
            }
            return decision::show(&approval.value);
        }
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
            return answer::verdict(&answer.value);
        }
        answer::show(&answer.value)
    }

    /// Makes the call, and shows its progress where that is wanted. A signal ends the wait, and not
    /// the call.
    async fn execute(
        &self,
        daemon: &DaemonClient,
        name: &str,
        arguments: WrittenArguments,
        version: Option<String>,
    ) -> Result<DaemonAnswer, CommandError> {
        let body = SentCall {
            definition_version: version,
            ..self.body(name, arguments)
        };
        let on_terminal = std::io::stderr().is_terminal() && !self.remote.json;
        let call = async {
            match (on_terminal, self.progress) {
                (true, _) => progress::execute(daemon, body, ProgressView::Bar).await,
                (false, true) => progress::execute(daemon, body, ProgressView::Lines).await,
                (false, false) => daemon.execute(&body).await,
            }
        };
        let stopped = crate::runtime::signal::stop_signal()?;
        tokio::select! {
            biased;
            answer = call => answer,
            signal = stopped => Err(left_running(name, signal)),
        }
    }

    /// The failure to find a tool with what became of it, if that is known: its scenario may be
    /// down or blocked, or may not offer it any more.
    async fn with_verdict(
        &self,
        daemon: &DaemonClient,
        name: &str,
        failure: CommandError,
    ) -> CommandError {
        let CommandError::Problem {
            message,
            hint,
            document,
        } = &failure
        else {
            return failure;
        };
        if document["reason"].is_string() && hint.is_none() {
            // Its scenario has withdrawn it.
            let hint = Some(format!(
                "`callsheet explain {}` shows every decision about it",
                shell_word(name)
            ));
            return CommandError::Problem {
                message: message.clone(),
                hint,
                document: document.clone(),
            };
        }
        let is_near = hint
            .as_ref()
            .is_some_and(|hint| hint.starts_with("did you mean"));
        // Any other text says more than that already.
        if is_near || document["status"] != 404 || !message.starts_with("no tool is called") {
            return failure;
        }
        let path = [&["tools"], &self.path(name)[..], &["explain"]].concat();
        match daemon.get(&path, self.scope(), "verdict").await {
            Ok(answer) => CommandError::Problem {
                message: format!("`{name}` is {}", output::text(&answer.value, "/verdict")),
                hint: Some(format!(
                    "`callsheet explain {}` shows every decision about it",
                    shell_word(name)
                )),
                document: document.clone(),
            },
            // This names the scenarios that have not answered, whose tool it may be.
            Err(unknown @ CommandError::Problem { .. }) => unknown,
            Err(_) => failure,
        }
    }

    /// The failure of a call with the command that shows why its scenario did not answer.
    async fn with_next_step(
        &self,
        daemon: &DaemonClient,
        name: &str,
        failure: CommandError,
    ) -> CommandError {
        let CommandError::Problem {
            message,
            hint: None,
            document,
        } = failure
        else {
            return failure;
        };
        let has_no_answer = document["code"]
            .as_str()
            .is_some_and(|code| NO_ANSWER.contains(&code));
        let tool = if has_no_answer {
            self.tool(daemon, name).await.ok()
        } else {
            None
        };
        let scenario = tool.map(|tool| output::text(&tool, "/scenario"));
        let hint = scenario.map(|scenario| match document["code"].as_str() {
            // It was not sent, most often because its scenario is being connected.
            Some("unavailable") => format!(
                "make the call again in a moment; `callsheet scenarios {scenario}` shows how it stands"
            ),
            _ => format!("`callsheet scenarios {scenario}` shows what is wrong with it"),
        });
        CommandError::Problem {
            message,
            hint,
            document,
        }
    }

    /// Whose list is meant.
    fn scope(&self) -> QueryPairs<'static> {
        let scope = [
            ("profile", &self.profile),
            ("permission", &self.permission),
            ("chat_id", &self.chat),
        ];
        scope
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.clone()?)))
            .collect()
    }

    /// The segments that name the tool in a route.
    fn path<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        match &self.scenario {
            Some(scenario) if !name.contains('/') => vec![scenario.as_str(), name],
            _ => tool_segments(name),
        }
    }

    /// The tool as it is listed for this caller.
    async fn tool(&self, daemon: &DaemonClient, name: &str) -> Result<Value, CommandError> {
        match daemon.tool(&self.path(name), self.scope()).await {
            // With a scenario a published name serves as well.
            Err(CommandError::Problem { .. }) if self.scenario.is_some() && !name.contains('/') => {
                daemon.tool(&[name], self.scope()).await
            }
            found => found,
        }
    }

    fn body<'a>(&'a self, name: &'a str, arguments: WrittenArguments) -> SentCall<'a> {
        SentCall {
            tool_name: name,
            arguments,
            scenario: self.scenario.as_deref(),
            chat_id: self.chat.as_deref(),
            profile: self.profile.as_deref(),
            permission: self.permission.as_deref(),
            user_id: self.user.as_deref(),
            revision: self.revision.as_deref(),
            definition_version: None,
            call_id: None,
        }
    }
}

/// The refusal of an option before the name of the tool that this command does not have.
fn unknown_option(option: &str) -> CommandError {
    CommandError::Usage {
        message: format!("`{option}` is no option of `callsheet call`"),
        hint:
            "only options of this command stand before the name of the tool (`callsheet call --help` lists them), and \
               the tool's own flags behind it; how long a call may take is `calls.max_timeout` in the configuration"
                .into(),
    }
}

/// The end of the command before that of the call.
fn left_running(name: &str, signal: &str) -> CommandError {
    CommandError::Refused {
        message: format!(
            "no longer waiting for `{name}` ({signal}); the call goes on in the daemon"
        ),
        hint: Some(format!(
            "`callsheet logs --tool {}` shows how it ended, once it has",
            shell_word(name)
        )),
    }
}

/// What `--args` gives.
fn written(given: &str) -> Result<WrittenArguments, CommandError> {
    let (from, text) = match given.strip_prefix('@') {
        _ if given == "-" => ("standard input".to_owned(), read(std::io::stdin().lock())),
        Some(path) => (
            format!("`{path}`"),
            std::fs::File::open(path).and_then(read),
        ),
        None => ("`--args`".to_owned(), Ok(given.to_owned())),
    };
    let text = text.map_err(|error| CommandError::Usage {
        message: format!("{from} cannot be read: {error}"),
        hint: "write `--args '{...}'`, `--args @FILE`, or `--args -` for standard input".into(),
    })?;
    let not_json = |error: serde_json::Error| CommandError::Usage {
        message: format!("{from} is not JSON: {error}"),
        hint: "write the arguments as one JSON object; in a shell, within single quotes".into(),
    };
    let whole: &RawValue = serde_json::from_str(&text).map_err(not_json)?;
    if !whole.get().starts_with('{') {
        return Err(CommandError::Usage {
            message: format!("{from} is not a JSON object"),
            hint: "write the arguments by name: `{\"query\": \"...\"}`".into(),
        });
    }
    serde_json::from_str(whole.get()).map_err(not_json)
}

fn read(source: impl std::io::Read) -> std::io::Result<String> {
    let mut text = String::new();
    source.take(MAX_ARGUMENTS).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether a flag, without its hyphens, is an option of this command.
fn is_own_option(flag: &str) -> bool {
    CallArgs::augment_args(clap::Command::new("call"))
        .get_arguments()
        .any(|own| own.get_long() == Some(flag))
}

/// Wrong usage of a tool's flags.
fn usage(error: &clap::Error, name: &str) -> CommandError {
    let near = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => format!("did you mean `{near}`? "),
        _ => String::new(),
    };
    CommandError::of_usage(
        error,
        format!("{near}`callsheet call {name} --help` lists its arguments"),
    )
}
