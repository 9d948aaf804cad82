//! A tool's parameters as flags, made when the tool is known.
//!
//! A parameter `max_results` is the flag `--max-results` (or `--max_results`). The type of a flag's
//! value is checked here, so that a mistake is reported at once; the daemon checks everything else.
//! Defaults are shown and not sent, because the scenario applies them.

use std::collections::HashSet;

use clap::builder::{PossibleValue, PossibleValuesParser, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::super::{CommandError, output};
use super::arguments::WrittenArguments;
use super::{is_own_option, usage};
use crate::model::ACTIVITY;

/// Characters of a description that the help of a flag shows at most.
const SHOWN: usize = 300;
/// Flags of a command: the reader of flags looks through all of them for each word. Further
/// parameters are given with `--args`.
const FLAGS: usize = 500;
/// Characters of the list of parameters without a flag that the help shows at most.
const UNFLAGGED: usize = 2_000;

/// What the help of a latent tool says.
const LATENT: &str =
    "\n\nThe tool is latent: no program runs it, and the caller gives its result as `_output`:
  --args '{..., \"_output\": {...}}'";

/// The id of `--args` behind the name of a tool. No parameter with a flag is called so.
const ARGS: &str = "callsheet args";

/// One parameter with a flag.
struct Flag<'a> {
    parameter: &'a str,
    schema: &'a Value,
    kind: FlagKind,
    long: String,
}

/// What stood behind the name of a tool.
#[derive(Debug)]
pub(super) struct GivenFlags {
    /// `--args`, as it was written.
    pub(super) args: Option<String>,
    /// By the name of their parameter.
    pub(super) flags: WrittenArguments,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlagKind {
    Text,
    Whole,
    Number,
    Switch,
    /// Several, each of its own kind: one flag for each, or one JSON list.
    List,
    /// A JSON object.
    Object,
    /// Any JSON; what is none is a text.
    Json,
}

/// Parses the words behind the name of a tool. `None` if they contained `--help`, which was
/// printed. With `lenient` no flag is required, because the value may have been given in another
/// way.
pub(super) fn parse_flags(
    name: &str,
    tool: &Value,
    words: &[String],
    lenient: bool,
) -> Result<Option<GivenFlags>, CommandError> {
    let flags = flags(&tool["parameters"]);
    let matches = match command(name, tool, &flags, lenient).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            return Err(misplaced(&error, name).unwrap_or_else(|| usage(&error, name)));
        }
        Err(help) => {
            output::line(&output::lines(&help.to_string()));
            return Ok(None);
        }
    };
    let mut given = WrittenArguments::default();
    for flag in &flags {
        if let Some(value) = flag
            .value(&matches)
            .map_err(|why| wrong(name, flag, &why))?
        {
            given.push(flag.parameter.to_owned(), value);
        }
    }
    // The id is unknown where the tool has a parameter `args`.
    let args = matches.try_get_one::<String>(ARGS).ok().flatten().cloned();
    if args.is_some() && lenient {
        return Err(CommandError::Usage {
            message: "`--args` is given twice".to_owned(),
            hint: format!("write it once, before or behind `{name}`"),
        });
    }
    Ok(Some(GivenFlags { args, flags: given }))
}

/// The flags of a tool, with their hyphens.
pub(in crate::cli) fn names(tool: &Value) -> Vec<String> {
    flags(&tool["parameters"])
        .iter()
        .map(|flag| format!("--{}", flag.long))
        .collect()
}

fn wrong(name: &str, flag: &Flag<'_>, why: &str) -> CommandError {
    CommandError::Usage {
        message: format!("`--{}` {why}", flag.long),
        hint: format!("`callsheet call {name} --help` lists its arguments"),
    }
}

/// The error for an option of the command that stands behind the name of the tool.
fn misplaced(error: &clap::Error, name: &str) -> Option<CommandError> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let flag = word
        .strip_prefix("--")
        .filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    is_own_option(flag).then(|| CommandError::Usage {
        message: format!("`{name}` has no parameter `{flag}`"),
        hint: format!("`--{flag}` is an option of `callsheet call` too; write it before the name: `callsheet call --{flag} ... {name}`"),
    })
}

/// The parameters that have a flag, in the order of the schema. Of two that would have the same one
/// the first has it.
fn flags(parameters: &Value) -> Vec<Flag<'_>> {
    let properties = parameters["properties"].as_object();
    let mut taken: HashSet<String> = HashSet::new();
    let plain = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_plain(name));
    let flags = plain.filter_map(|(name, schema)| {
        let long = name.replace('_', "-");
        let is_free = taken.insert(long.clone());
        is_free.then(|| Flag {
            parameter: name,
            schema,
            kind: FlagKind::from_schema(schema),
            long,
        })
    });
    flags.take(FLAGS).collect()
}

/// Whether a parameter's name can be a flag's.
fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'))
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn command(name: &str, tool: &Value, flags: &[Flag<'_>], lenient: bool) -> Command {
    let required: HashSet<&str> = output::list(&tool["parameters"], "required")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let flagged: HashSet<&str> = flags.iter().map(|flag| flag.parameter).collect();
    // In one paragraph: with its line ends a provider could write options that are not there.
    let about = output::sanitize(tool["description"].as_str().unwrap_or_default().trim());
    let unflagged: Vec<&str> = tool["parameters"]["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| !flagged.contains(name))
        .collect();
    let mut command = Command::new(format!("callsheet call {name}"))
        .about(StyledStr::from(about))
        .no_binary_name(true)
        .disable_help_flag(true)
        .after_help(after_help(&unflagged, tool));
    // A parameter of that name has the flag; `-h` remains.
    let help = Arg::new("callsheet help")
        .short('h')
        .action(ArgAction::Help)
        .help("Print help");
    command = command.arg(if flagged.contains("help") {
        help
    } else {
        help.long("help")
    });
    let takes_args = !flags.iter().any(|flag| flag.long == "args");
    if takes_args {
        let about = "All arguments as one JSON object: as text, `@FILE`, or `-` for standard input";
        command = command.arg(Arg::new(ARGS).long("args").value_name("JSON").help(about));
    }
    for flag in flags {
        let is_required = required.contains(flag.parameter);
        let argument = flag.argument(is_required);
        let needed = !lenient && is_required;
        command = command.arg(match (needed, takes_args) {
            (true, true) => argument.required_unless_present(ARGS),
            (needed, _) => argument.required(needed),
        });
    }
    command
}

/// How the rest is given.
fn after_help(unflagged: &[&str], tool: &Value) -> String {
    let mut text =
        "The other options of `callsheet call --help` stand before the name, as `--args` may, too."
            .to_owned();
    if tool[ACTIVITY] == "" {
        text.push_str(LATENT);
    }
    if !unflagged.is_empty() {
        let unflagged = format!("Only with `--args`: {}", unflagged.join(", "));
        text.push_str("\n\n");
        text.push_str(&output::cut(&output::sanitize(&unflagged), UNFLAGGED));
    }
    text
}

impl FlagKind {
    fn from_schema(schema: &Value) -> Self {
        match schema["type"].as_str() {
            Some("string") => Self::Text,
            Some("integer") => Self::Whole,
            Some("number") => Self::Number,
            Some("boolean") => Self::Switch,
            Some("array") => Self::List,
            Some("object") => Self::Object,
            _ => Self::Json,
        }
    }

    fn placeholder(self) -> &'static str {
        match self {
            Self::Text | Self::List => "TEXT",
            Self::Whole => "WHOLE NUMBER",
            Self::Number => "NUMBER",
            Self::Switch => "true|false",
            Self::Object | Self::Json => "JSON",
        }
    }

    /// One value of this kind, with its digits as they are written.
    fn parse(self, text: &str) -> Result<Box<RawValue>, String> {
        let json = || serde_json::from_str::<Box<RawValue>>(text).ok();
        let is_whole = |digits: &str| {
            digits
                .strip_prefix('-')
                .unwrap_or(digits)
                .bytes()
                .all(|c| c.is_ascii_digit())
        };
        let is_number = |number: &str| number.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        match self {
            Self::Text => as_text(text),
            Self::Whole => json()
                .filter(|number| is_whole(number.get()))
                .ok_or_else(|| format!("takes a whole number, not `{text}`")),
            Self::Number => json()
                .filter(|number| is_number(number.get()))
                .ok_or_else(|| format!("takes a number, not `{text}`")),
            Self::Switch => json()
                .filter(|_| matches!(text, "true" | "false"))
                .ok_or_else(|| format!("takes `true` or `false`, not `{text}`")),
            Self::Object => serde_json::from_str(text)
                .map_err(|error| format!("takes JSON, and this is none: {error}")),
            Self::List | Self::Json => json().map_or_else(|| as_text(text), Ok),
        }
    }
}

/// A value that an enumeration allows. One that a terminal cannot show as it is stays out of the
/// help.
fn choice(value: String) -> PossibleValue {
    let is_hidden = output::sanitize(&value) != value;
    PossibleValue::new(value).hide(is_hidden)
}

/// A text as JSON.
fn as_text(text: &str) -> Result<Box<RawValue>, String> {
    to_raw_value(text).map_err(|error| error.to_string())
}

impl Flag<'_> {
    fn argument(&self, is_required: bool) -> Arg {
        let mut argument = Arg::new(self.parameter.to_owned())
            .long(self.long.clone())
            .help(StyledStr::from(self.help(is_required)))
            .value_name(self.value_kind().placeholder())
            .allow_hyphen_values(true);
        if self.long != self.parameter {
            argument = argument.alias(self.parameter.to_owned());
        }
        argument = match self.kind {
            FlagKind::Switch => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            FlagKind::List => argument.action(ArgAction::Append),
            _ => argument,
        };
        match self.choices() {
            Some(choices) => {
                argument.value_parser(PossibleValuesParser::new(choices.into_iter().map(choice)))
            }
            None => argument,
        }
    }

    /// What one value is.
    fn value_kind(&self) -> FlagKind {
        if self.kind == FlagKind::List {
            FlagKind::from_schema(&self.schema["items"])
        } else {
            self.kind
        }
    }

    /// The values that an enumeration allows, as they are typed.
    fn choices(&self) -> Option<Vec<String>> {
        let allowed = self.schema["enum"]
            .as_array()
            .filter(|_| self.kind != FlagKind::List)?;
        Some(
            allowed
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect(),
        )
    }

    fn help(&self, is_required: bool) -> String {
        let text = self.schema["description"].as_str().unwrap_or_default();
        let mut help = output::cut(&output::sanitize(text), SHOWN);
        if self.kind == FlagKind::List {
            help.push_str(" (may be given more than once)");
        }
        if let Some(default) = self.schema.get("default") {
            help = format!(
                "{help} [default: {}]",
                output::cut(&output::sanitize(&default.to_string()), 60)
            );
        }
        if is_required {
            help.push_str(" [required]");
        }
        help.trim().to_owned()
    }

    /// What was given, if anything was.
    fn value(&self, matches: &ArgMatches) -> Result<Option<Box<RawValue>>, String> {
        let Some(mut given) = matches.get_many::<String>(self.parameter) else {
            return Ok(None);
        };
        let one = self.value_kind();
        if self.kind != FlagKind::List {
            let Some(text) = given.next() else {
                return Ok(None);
            };
            // An enumeration may hold what its type does not say.
            let is_chosen = output::list(self.schema, "enum")
                .iter()
                .map(Value::to_string)
                .any(|allowed| allowed == *text);
            return if is_chosen {
                FlagKind::Json.parse(text)
            } else {
                one.parse(text)
            }
            .map(Some);
        }
        let texts: Vec<&String> = given.collect();
        if let [text] = texts.as_slice()
            && let Ok(list) = serde_json::from_str::<Box<RawValue>>(text)
            && list.get().starts_with('[')
        {
            return Ok(Some(list));
        }
        let items: Vec<_> = texts
            .into_iter()
            .map(|text| one.parse(text))
            .collect::<Result<_, _>>()?;
        to_raw_value(&items)
            .map(Some)
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn tool() -> Value {
        json!({"description": "Tries\nthings", "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for"},
                "max_results": {"type": "integer", "default": 10},
                "weight": {"type": "number"},
                "deep": {"type": "boolean"},
                "mode": {"type": "string", "enum": ["fast", "slow"]},
                "level": {"enum": [1, "two", null]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "ids": {"type": "array", "items": {"type": "integer"}},
                "filter": {"type": "object"},
                "url": {"type": "string"},
                "odd name": {"type": "string"},
            },
            "required": ["query"],
        }})
    }

    fn given(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse_flags("try", &tool(), &words, false) {
            Ok(given) => Ok(given.map_or(Value::Null, |given| json!(given.flags))),
            Err(CommandError::Usage { message, .. }) => Err(message),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_have_the_types_of_their_parameters() {
        for (words, expected) in [
            (&["--query", "-1"][..], json!({"query": "-1"})),
            (
                &["--query=a b", "--max-results", "-3"],
                json!({"query": "a b", "max_results": -3}),
            ),
            (
                &["--query", "a", "--max_results=3", "--weight", "1.5"],
                json!({"query": "a", "max_results": 3, "weight": 1.5}),
            ),
            (
                &["--deep", "--query", "a"],
                json!({"query": "a", "deep": true}),
            ),
            (
                &["--deep=false", "--query", "a"],
                json!({"query": "a", "deep": false}),
            ),
            (
                &["--query", "a", "--mode", "slow", "--level", "1"],
                json!({"query": "a", "mode": "slow", "level": 1}),
            ),
            (
                &["--query", "a", "--level", "two"],
                json!({"query": "a", "level": "two"}),
            ),
            (
                &["--query", "a", "--tags", "x", "--tags", "[y"],
                json!({"query": "a", "tags": ["x", "[y"]}),
            ),
            (
                &["--query", "a", "--tags", r#"["x","y"]"#],
                json!({"query": "a", "tags": ["x", "y"]}),
            ),
            (
                &["--query", "a", "--ids", "1", "--ids", "2"],
                json!({"query": "a", "ids": [1, 2]}),
            ),
            (
                &["--query", "a", "--filter", r#"{"a":[1]}"#],
                json!({"query": "a", "filter": {"a": [1]}}),
            ),
        ] {
            assert_eq!(given(words), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn typing_errors_in_flags_are_reported() {
        for (words, part) in [
            (&[][..], "--query"),
            (
                &["--query", "a", "--max-results", "many"],
                "`--max-results` takes a whole number, not `many`",
            ),
            (&["--query", "a", "--max-results", "1.5"], "whole number"),
            (
                &["--query", "a", "--ids", "x"],
                "`--ids` takes a whole number, not `x`",
            ),
            (&["--query", "a", "--mode", "odd"], "fast"),
            (&["--query", "a", "--deep=maybe"], "`true` or `false`"),
            (
                &["--query", "a", "--filter", r#"{"name":"#],
                "`--filter` takes JSON, and this is none: EOF",
            ),
            (&["--query", "a", "--colour", "red"], "--colour"),
            (&["--query", "a", "loose"], "loose"),
            (&["--query", "a", "--query", "b"], "--query"),
        ] {
            let error = given(words).unwrap_err();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }

    #[test]
    fn the_help_shows_what_the_schema_says() {
        let tool = tool();
        let parameters = tool["parameters"].clone();
        let help = command("try", &tool, &flags(&parameters), false)
            .render_long_help()
            .to_string();
        for part in [
            "Tries",
            "--max-results <WHOLE NUMBER>",
            "[default: 10]",
            "What to look for",
            "slow",
            "more than once",
        ] {
            assert!(help.contains(part), "{part} is missing in {help}");
        }
        assert!(
            help.contains("Only with `--args`: odd name") && help.contains("--url <TEXT>"),
            "{help}"
        );
    }

    #[test]
    fn a_provider_begins_no_line_of_the_help() {
        let tool = json!({"description": "Tries\n  --fake <TEXT>  Not there", "parameters": {
            "type": "object",
            "properties": {"mode": {"type": "string", "enum": ["fast", "slow\n  --sly <TEXT>  Not there"]}},
        }});
        let parameters = tool["parameters"].clone();
        let help = command("try", &tool, &flags(&parameters), false)
            .render_long_help()
            .to_string();
        assert!(help.contains("--mode") && help.contains("fast"), "{help}");
        let is_made_up = |line: &str| {
            ["--fake", "--sly"]
                .iter()
                .any(|flag| line.trim_start().starts_with(flag))
        };
        assert!(!help.lines().any(is_made_up), "{help}");
    }

    #[test]
    fn parameters_called_as_options_of_the_command_are_flags() {
        for (words, expected) in [
            (
                &["--query", "a", "--url", "http://x"][..],
                Ok(json!({"query": "a", "url": "http://x"})),
            ),
            (
                &["--query", "a", "--json"],
                Err("`try` has no parameter `json`".to_owned()),
            ),
            (&["--args", "{}"], Ok(json!({}))),
        ] {
            assert_eq!(given(words), expected, "{words:?}");
        }
        let tool =
            json!({"parameters": {"type": "object", "properties": {"help": {"type": "string"}}}});
        let Ok(Some(given)) =
            parse_flags("try", &tool, &["--help".to_owned(), "me".to_owned()], false)
        else {
            panic!("it is the tool's")
        };
        assert_eq!(json!(given.flags), json!({"help": "me"}));
    }

    #[test]
    fn of_very_many_parameters_the_first_have_flags() {
        let properties: Map<String, Value> = (0..20_000)
            .map(|n| (format!("p_{n}"), json!({"type": "integer"})))
            .collect();
        let required: Vec<&String> = properties.keys().skip(1).collect();
        let tool = json!({"parameters": {"type": "object", "properties": properties, "required": required}});
        let words = ["--p-499", "7"].map(str::to_owned);
        let Ok(Some(given)) = parse_flags("try", &tool, &words, true) else {
            panic!("it has a flag")
        };
        assert_eq!(json!(given.flags), json!({"p_499": 7}));
        assert!(parse_flags("try", &tool, &["--p-500".to_owned(), "7".to_owned()], true).is_err());
        let help = command("try", &tool, &flags(&tool["parameters"]), true)
            .render_long_help()
            .to_string();
        assert!(
            help.contains("Only with `--args`: p_500, p_501"),
            "{}",
            help.len()
        );
        assert!(!help.contains("p_19999"), "the list is cut");
    }
}
