//! `callsheet complete`: what completion scripts ask for while a command line is being typed: the
//! names of scenarios and tools, and the flags of a tool, from the running daemon.
//!
//! It prints one candidate in each line. It prints nothing, and never an error, where no such name
//! stands, or no daemon answers soon; then the script completes by itself.

use std::collections::HashMap;
use std::time::Duration;

use clap::{Args, Command, CommandFactory as _};
use serde_json::Value;

use super::call::flags;
use super::client::{DaemonClient, QueryPairs};
use super::{Cli, CommandError, RemoteArgs, output};
use crate::model::ApprovalState;

/// How long a person who pressed Tab waits at most.
const COMPLETION_TIME_MAX: Duration = Duration::from_millis(800);
/// The most candidates that a shell gets.
const CANDIDATES_MAX: usize = 1_000;

/// Arguments of `complete`.
#[derive(Debug, Args)]
pub(super) struct CompleteArgs {
    /// The words behind `callsheet`, up to the one that is being typed, which may be empty.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl CompleteArgs {
    pub(super) async fn run(self) {
        // A person who is typing has no use for an error.
        let found = tokio::time::timeout(COMPLETION_TIME_MAX, candidates(&self.words)).await;
        let found = found.unwrap_or(Ok(Vec::new())).unwrap_or_default();
        for candidate in &found {
            output::line(candidate);
        }
    }
}

/// What may stand at the end of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedNames {
    /// The name of a scenario.
    Scenario,
    /// The published name of a tool.
    Tool,
    /// A flag of the tool that is named.
    Flag,
    /// What a preference is for.
    Target,
    /// The id of a call that needs approval.
    Approval,
    /// The id of a call that waits for a decision.
    WaitingApproval,
    /// The id of an operation.
    Operation,
    /// Something that the script completes by itself.
    Other,
}

/// A command line up to the word that is being typed.
#[derive(Debug, Default)]
struct CommandLine {
    /// The names of the command and its subcommand.
    path: Vec<String>,
    /// The words that are no options.
    positional: Vec<String>,
    /// The values of options, by their long names.
    options: HashMap<String, String>,
    /// The option whose value is being typed.
    open: Option<String>,
    /// The names of what may follow the path: the shell completes them.
    subcommands: Vec<String>,
}

async fn candidates(words: &[String]) -> Result<Vec<String>, CommandError> {
    let words = rejoined(words);
    let Some((typed, before)) = words.split_last() else {
        return Ok(Vec::new());
    };
    let line = CommandLine::parse(before);
    let (wanted, typed, prefix) = line.wanted(typed.whole.as_str(), typed.parts.as_str());
    if wanted == WantedNames::Other {
        return Ok(Vec::new());
    }
    let remote = RemoteArgs {
        url: line
            .options
            .get("url")
            .cloned()
            .or_else(|| std::env::var("CALLSHEET_URL").ok()),
        config: line.options.get("config").map(Into::into),
        json: false,
    };
    let daemon = DaemonClient::from_args(&remote)?;
    let found = match wanted {
        WantedNames::Scenario => names(&daemon, "scenarios", Vec::new()).await?,
        WantedNames::Tool => {
            names(
                &daemon,
                "tools",
                vec![("include_disabled", "true".to_owned())],
            )
            .await?
        }
        WantedNames::Flag => line.flags(&daemon).await?,
        WantedNames::Target => targets(&daemon).await?,
        WantedNames::Approval => ids(&daemon, "approvals", Vec::new()).await?,
        WantedNames::WaitingApproval => {
            ids(
                &daemon,
                "approvals",
                vec![("state", ApprovalState::Waiting.as_str().to_owned())],
            )
            .await?
        }
        WantedNames::Operation => ids(&daemon, "operations", Vec::new()).await?,
        WantedNames::Other => Vec::new(),
    };
    let fits = found
        .into_iter()
        .filter(|name| name.starts_with(typed) && is_plain(name));
    Ok(fits
        .take(CANDIDATES_MAX)
        .filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned()))
        .collect())
}

/// A word, and what of it the shell takes for words before.
#[derive(Debug, Default, PartialEq, Eq)]
struct Word {
    whole: String,
    parts: String,
}

/// The words as they were typed: bash cuts them at `:` and `=`.
fn rejoined(words: &[String]) -> Vec<Word> {
    let mut joined: Vec<Word> = Vec::new();
    let mut goes_on = false;
    for word in words {
        let cuts = matches!(word.as_str(), ":" | "=");
        match joined.last_mut() {
            Some(last) if goes_on || cuts => {
                last.parts.clone_from(&last.whole);
                last.whole.push_str(word);
                if cuts {
                    last.parts.clone_from(&last.whole);
                }
            }
            _ => joined.push(Word {
                whole: word.clone(),
                parts: String::new(),
            }),
        }
        goes_on = cuts;
    }
    joined
}

impl CommandLine {
    fn parse(words: &[Word]) -> Self {
        let mut root = Cli::command();
        // Adds what clap makes by itself, such as the subcommand `help`.
        root.build();
        let mut command = &root;
        let mut line = Self::default();
        for word in words.iter().map(|word| word.whole.as_str()) {
            if let Some(option) = line.open.take() {
                line.options.insert(option, word.to_owned());
                continue;
            }
            // Everything behind the name of a tool is the tool's.
            if line.is_call() && !line.positional.is_empty() {
                line.positional.push(word.to_owned());
            } else if word.starts_with('-') {
                line.option(command, word);
            } else if let Some(below) = command.find_subcommand(word) {
                line.path.push(below.get_name().to_owned());
                command = below;
            } else {
                line.positional.push(word.to_owned());
            }
        }
        let names = command
            .get_subcommands()
            .flat_map(Command::get_name_and_visible_aliases);
        line.subcommands = names.map(str::to_owned).collect();
        line
    }

    fn is_call(&self) -> bool {
        self.path == ["call"]
    }

    fn option(&mut self, command: &Command, word: &str) {
        let name = word.trim_start_matches('-');
        if let Some((name, value)) = name.split_once('=') {
            self.options.insert(name.to_owned(), value.to_owned());
            return;
        }
        let same = |arg: &&clap::Arg| {
            arg.get_long() == Some(name)
                || arg
                    .get_short()
                    .is_some_and(|short| name == short.to_string())
        };
        let arg = command
            .get_arguments()
            .find(same)
            .filter(|arg| arg.get_action().takes_values());
        self.open = arg.and_then(|arg| arg.get_long()).map(str::to_owned);
    }

    /// What stands at the end, what of it was typed, and what the shell has of it in words before.
    fn wanted<'a>(&self, typed: &'a str, parts: &'a str) -> (WantedNames, &'a str, &'a str) {
        if let Some(option) = &self.open {
            return (
                if option == "scenario" {
                    WantedNames::Scenario
                } else {
                    WantedNames::Other
                },
                typed,
                parts,
            );
        }
        if let Some(value) = typed
            .strip_prefix("--scenario=")
            .filter(|_| !self.is_call() || self.positional.is_empty())
        {
            // What is completed is the value; a shell that keeps the word whole gets none.
            let wanted = if parts.is_empty() {
                WantedNames::Other
            } else {
                WantedNames::Scenario
            };
            return (wanted, value, "");
        }
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let wanted = match (path.as_slice(), self.positional.len()) {
            (["call"], 1..) if typed.is_empty() || typed.starts_with('-') => WantedNames::Flag,
            _ if typed.starts_with('-') => WantedNames::Other,
            (["call" | "explain" | "history"], 0) => WantedNames::Tool,
            (
                [
                    "scenarios" | "logs" | "remove" | "block" | "unblock" | "trust" | "forget"
                    | "login" | "logout" | "pins",
                ]
                | ["pins", "accept"],
                0,
            )
            | (["refresh"], _) => WantedNames::Scenario,
            (["prefs", "set" | "reset"], 0) => WantedNames::Target,
            (["approvals"], 0) if self.is_id(typed) => WantedNames::Approval,
            (["operations"], 0) if self.is_id(typed) => WantedNames::Operation,
            (["approvals", "show"], 0) => WantedNames::Approval,
            (["approvals", "approve" | "reject"], 0) => WantedNames::WaitingApproval,
            (["operations", "cancel"], 0) => WantedNames::Operation,
            _ => WantedNames::Other,
        };
        (wanted, typed, parts)
    }

    /// Whether this is the beginning of an id, and of no subcommand.
    fn is_id(&self, typed: &str) -> bool {
        !typed.is_empty()
            && !self
                .subcommands
                .iter()
                .any(|subcommand| subcommand.starts_with(typed))
    }

    /// The flags of the tool that is named, without those that are given.
    async fn flags(&self, daemon: &DaemonClient) -> Result<Vec<String>, CommandError> {
        let Some((name, given)) = self.positional.split_first() else {
            return Ok(Vec::new());
        };
        let mut path = vec!["tools"];
        match (self.options.get("scenario"), name.split_once('/')) {
            (_, Some((scenario, tool))) => path.extend([scenario, tool]),
            (Some(scenario), None) => path.extend([scenario.as_str(), name.as_str()]),
            (None, None) => path.push(name),
        }
        let tool = daemon
            .get(&path, QueryPairs::new(), "parameters")
            .await?
            .value;
        let mut all: Vec<String> = flags::names(&tool);
        all.push("--help".to_owned());
        all.retain(|flag| !given.contains(flag));
        Ok(all)
    }
}

/// Whether a shell takes it as one word as it is.
fn is_plain(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c))
}

async fn names(
    daemon: &DaemonClient,
    kind: &'static str,
    query: QueryPairs<'_>,
) -> Result<Vec<String>, CommandError> {
    texts(daemon, kind, "name", query).await
}

async fn ids(
    daemon: &DaemonClient,
    kind: &'static str,
    query: QueryPairs<'_>,
) -> Result<Vec<String>, CommandError> {
    texts(daemon, kind, "id", query).await
}

/// A member of each that a list has.
async fn texts(
    daemon: &DaemonClient,
    kind: &'static str,
    member: &str,
    query: QueryPairs<'_>,
) -> Result<Vec<String>, CommandError> {
    let answer = daemon.get(&[kind], query, kind).await?;
    let all = output::list(&answer.value, kind)
        .iter()
        .filter_map(|one| one[member].as_str());
    Ok(all.map(str::to_owned).collect())
}

/// What preferences may be for: each scenario and each tool.
async fn targets(daemon: &DaemonClient) -> Result<Vec<String>, CommandError> {
    let scenarios = names(daemon, "scenarios", Vec::new())
        .await?
        .into_iter()
        .map(|name| format!("scenario:{name}"));
    let query = vec![("include_disabled", "true".to_owned())];
    let tools = daemon.get(&["tools"], query, "tools").await?.value;
    let id = |tool: &Value| {
        Some(format!(
            "tool:{}/{}",
            tool["scenario"].as_str()?,
            tool["original_name"].as_str()?
        ))
    };
    Ok(scenarios
        .chain(output::list(&tools, "tools").iter().filter_map(id))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(words: &[&str]) -> (WantedNames, String, String) {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let words = rejoined(&words);
        let (typed, before) = words.split_last().unwrap();
        let (wanted, typed, parts) = CommandLine::parse(before).wanted(&typed.whole, &typed.parts);
        (wanted, typed.to_owned(), parts.to_owned())
    }

    #[test]
    fn the_place_in_the_command_line_says_what_is_wanted() {
        for (words, expected) in [
            (&["scenarios", ""][..], WantedNames::Scenario),
            (&["status", "no"], WantedNames::Scenario),
            (&["scenarios", "notes", ""], WantedNames::Other),
            (&["scenarios", "--url", ""], WantedNames::Other),
            (&["scenarios", "--json", ""], WantedNames::Scenario),
            (&["scenarios", "--j"], WantedNames::Other),
            (&["refresh", "notes", ""], WantedNames::Scenario),
            (&["remove", "no"], WantedNames::Scenario),
            (&["logs", ""], WantedNames::Scenario),
            (&["tools", "--scenario", ""], WantedNames::Scenario),
            (&["tools", "-q", ""], WantedNames::Other),
            (&["tools", ""], WantedNames::Other),
            (&["call", ""], WantedNames::Tool),
            (&["call", "--scenario", ""], WantedNames::Scenario),
            (&["call", "--scenario", "notes", ""], WantedNames::Tool),
            (&["call", "add_note", "--"], WantedNames::Flag),
            (&["call", "add_note", "--scenario", ""], WantedNames::Flag),
            (&["call", "add_note", "--text", "wo"], WantedNames::Other),
            (&["call", "--js"], WantedNames::Other),
            (&["explain", ""], WantedNames::Tool),
            (&["prefs", ""], WantedNames::Other),
            (&["prefs", "set", ""], WantedNames::Target),
            // There are subcommands, too, which the shell completes.
            (&["approvals", ""], WantedNames::Other),
            (&["approvals", "a"], WantedNames::Other),
            (&["approvals", "ab"], WantedNames::Approval),
            (&["approvals", "he"], WantedNames::Other),
            (&["operations", "3"], WantedNames::Operation),
            (&["operations", "c"], WantedNames::Other),
            (&["operations", "ca7"], WantedNames::Operation),
            (&["operations", "h"], WantedNames::Other),
            (&["help", "call", ""], WantedNames::Other),
            (&["approvals", "show", ""], WantedNames::Approval),
            (
                &["approvals", "approve", "3f"],
                WantedNames::WaitingApproval,
            ),
            (&["operations", "cancel", ""], WantedNames::Operation),
            (&["serve", ""], WantedNames::Other),
            (&[""], WantedNames::Other),
        ] {
            assert_eq!(wanted(words).0, expected, "{words:?}");
        }
    }

    #[test]
    fn words_that_bash_cut_are_put_together() {
        let cut = ["prefs", "set", "tool", ":", "notes/ad"];
        assert_eq!(
            wanted(&cut),
            (WantedNames::Target, "tool:notes/ad".into(), "tool:".into())
        );
        assert_eq!(
            wanted(&cut[..4]),
            (WantedNames::Target, "tool:".into(), "tool:".into())
        );
        assert_eq!(
            wanted(&["prefs", "set", "tool:notes/ad"]),
            (WantedNames::Target, "tool:notes/ad".into(), String::new())
        );
        assert_eq!(
            wanted(&["tools", "--scenario", "=", "no"]),
            (WantedNames::Scenario, "no".into(), String::new())
        );
        assert_eq!(wanted(&["tools", "--scenario=no"]).0, WantedNames::Other);
    }
}
