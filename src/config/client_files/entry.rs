//! One entry of a client's file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use super::variables::Variables;
use crate::config::units::{self, ValueError};
use crate::config::{header, secret_value};
use crate::model::{HttpTarget, Secret, StdioTarget, Target};

/// The members that name an address.
const ADDRESSES: [&str; 3] = ["url", "serverUrl", "httpUrl"];
/// The members that have a meaning here.
const KNOWN: [&str; 14] = [
    "command",
    "args",
    "env",
    "environment",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "type",
    "source",
    "disabled",
    "enabled",
    SLEEP_AFTER,
];
/// The member that no client has: when its program sleeps, as the key of a scenario.
const SLEEP_AFTER: &str = "sleep_after";

/// An entry that can become a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEntry {
    /// Where its server is.
    pub target: EntryTarget,
    /// Whether the client does not use it now.
    pub disabled: bool,
    /// `sleep_after`: when its program sleeps, `Some(None)` for never; `None` as all others.
    pub sleep_after: Option<Option<Duration>>,
    /// Members without a meaning here, such as a client's own rules.
    pub ignored: Vec<String>,
}

/// Where a server is. Values of variables and headers may be secret.
#[derive(Clone, PartialEq, Eq)]
pub enum EntryTarget {
    /// A program to start.
    Program {
        /// A path, or a name to be looked up.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables for it.
        env: Vec<(String, String)>,
        /// The folder it runs in.
        cwd: Option<PathBuf>,
    },
    /// An address.
    Address {
        /// The address.
        url: Url,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

impl EntryTarget {
    /// The same as the target of a scenario. The error is a sentence about what a scenario cannot
    /// have.
    pub fn to_target(&self) -> Result<Target, String> {
        let message = |wrong: ValueError| wrong.message;
        match self {
            Self::Program {
                command,
                args,
                env,
                cwd,
            } => {
                let mut variables = Vec::new();
                for text in args.iter().chain([command]) {
                    secret_value::without_nul(text).map_err(message)?;
                }
                for (name, value) in env {
                    secret_value::variable_name(name)
                        .map_err(|wrong| format!("{name:?}: {}", wrong.message))?;
                    let value = secret_value::variable_value(Secret::new(value.as_str()))
                        .map_err(message)?;
                    variables.push((name.clone(), value));
                }
                Ok(StdioTarget::new(command)
                    .with_args(args.clone())
                    .with_env(variables)
                    .with_cwd(cwd.clone())
                    .into())
            }
            Self::Address { url, headers } => {
                let mut checked = Vec::new();
                for (name, value) in headers {
                    let name = header::header_name(name, false).map_err(message)?;
                    let value = header::header_value(Secret::new(value.as_str()));
                    let value = value.map_err(|wrong| format!("`{name}`: {}", wrong.message))?;
                    checked.push((name.clone(), value.into()));
                }
                Ok(HttpTarget {
                    headers: checked,
                    ..HttpTarget::at(url.clone())
                }
                .into())
            }
        }
    }
}

/// The exact command line, or the address, without values of variables and headers.
impl fmt::Display for EntryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, args, .. } => {
                StdioTarget::new(command).with_args(args.clone()).fmt(f)
            }
            Self::Address { url, .. } => Target::at(url.clone()).fmt(f),
        }
    }
}

/// The same with the names of variables and headers.
impl fmt::Debug for EntryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Program { env: pairs, .. } | Self::Address { headers: pairs, .. }) = self;
        let names: Vec<&String> = pairs.iter().map(|(name, _)| name).collect();
        write!(f, "EntryTarget({self}, {names:?})")
    }
}

/// Reads an entry. The error is a sentence about it.
pub(super) fn read(
    written: &Value,
    file: &Path,
    variables: &Variables<'_>,
) -> Result<ClientEntry, String> {
    let members = written.as_object().ok_or("it is not an object")?;
    let reader = EntryReader {
        members,
        file,
        variables,
    };
    let kind = reader.text("type")?.unwrap_or_default();
    if kind == "ws" {
        return Err("`ws` is not supported; use the server's address over HTTP".to_owned());
    }
    let address = ADDRESSES
        .into_iter()
        .find(|member| members.contains_key(*member));
    let target = match (members.get("command"), address) {
        (Some(_), _) => reader.program()?,
        (None, Some(member)) => reader.address(member)?,
        (None, None) => return Err("it has neither a `command` nor a `url`".to_owned()),
    };
    let is = |member: &str| members.get(member).and_then(Value::as_bool);
    let ignored = members
        .keys()
        .filter(|member| !KNOWN.contains(&member.as_str()))
        .cloned()
        .collect();
    Ok(ClientEntry {
        sleep_after: reader.sleep_after(&target)?,
        target,
        disabled: is("disabled") == Some(true) || is("enabled") == Some(false),
        ignored,
    })
}

struct EntryReader<'a> {
    members: &'a Map<String, Value>,
    file: &'a Path,
    variables: &'a Variables<'a>,
}

impl EntryReader<'_> {
    fn expand(&self, member: &str, text: &str) -> Result<String, String> {
        self.variables
            .expand(text, self.file)
            .map_err(|why| format!("{why} in `{member}`; set it and try again"))
    }

    fn text(&self, member: &str) -> Result<Option<String>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expand(member, text).map(Some),
            Some(_) => Err(format!("`{member}` is not a text")),
        }
    }

    /// When the program of a target sleeps, if the entry says so.
    #[expect(
        clippy::option_option,
        reason = "absent is another answer than `never`"
    )]
    fn sleep_after(&self, target: &EntryTarget) -> Result<Option<Option<Duration>>, String> {
        let Some(text) = self.text(SLEEP_AFTER)? else {
            return Ok(None);
        };
        if let EntryTarget::Address { .. } = target {
            return Err(format!(
                "`{SLEEP_AFTER}` belongs to an entry with a `command`"
            ));
        }
        let read = units::sleep_after(&text);
        read.map(Some)
            .map_err(|wrong| format!("`{SLEEP_AFTER}`: {}; {}", wrong.message, wrong.hint))
    }

    fn texts(&self, member: &str) -> Result<Vec<String>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let text = |item: &Value| match item {
                    Value::String(text) => self.expand(member, text),
                    Value::Number(number) => Ok(number.to_string()),
                    _ => Err(format!("`{member}` is not a list of texts")),
                };
                items.iter().map(text).collect()
            }
            Some(_) => Err(format!("`{member}` is not a list of texts")),
        }
    }

    fn pairs(&self, member: &str) -> Result<Vec<(String, String)>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(pairs)) => {
                let pair = |(name, value): (&String, &Value)| match value {
                    Value::String(text) => Ok((name.clone(), self.expand(member, text)?)),
                    Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
                    _ => Err(format!(
                        "`{member}` has a value for `{name}` that is not a text"
                    )),
                };
                pairs.iter().map(pair).collect()
            }
            Some(_) => Err(format!("`{member}` is not an object of texts")),
        }
    }

    fn program(&self) -> Result<EntryTarget, String> {
        let (command, mut args) = match self.members.get("command") {
            // One client writes the whole command line as a list.
            Some(Value::Array(_)) => {
                let mut words = self.texts("command")?.into_iter();
                (words.next().ok_or("`command` is empty")?, words.collect())
            }
            _ => (
                self.text("command")?.ok_or("`command` is empty")?,
                Vec::new(),
            ),
        };
        if command.is_empty() {
            return Err("`command` is empty".to_owned());
        }
        args.extend(self.texts("args")?);
        let mut env = self.pairs("env")?;
        env.extend(self.pairs("environment")?);
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        let cwd = self.text("cwd")?.map(|cwd| folder.join(cwd));
        // A path with a folder in it counts from the folder of the file.
        let is_relative = command.contains('/') && Path::new(&command).is_relative();
        let command = if is_relative {
            folder.join(&command).display().to_string()
        } else {
            command
        };
        Ok(EntryTarget::Program {
            command,
            args,
            env,
            cwd,
        })
    }

    fn address(&self, member: &str) -> Result<EntryTarget, String> {
        let text = self.text(member)?.unwrap_or_default();
        let url =
            Url::parse(&text).map_err(|error| format!("`{member}` is not an address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "`{member}` has the scheme `{}`; only http and https can be used",
                url.scheme()
            ));
        }
        if url.query().is_some() {
            return Err(format!(
                "`{member}` has a query, which the address of a scenario cannot have"
            ));
        }
        Ok(EntryTarget::Address {
            url,
            headers: self.pairs("headers")?,
        })
    }
}
