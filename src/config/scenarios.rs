//! `[[scenarios]]`: scenarios at known addresses, and programs to start, as they are written. None
//! is contacted or started here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderName;
use url::Url;

use super::address::{address, without_route};
use super::auth;
use super::client_servers;
use super::header::{header_name, header_value};
use super::interaction::interaction;
use super::modules;
use super::path::{KeyPath, PathStep};
use super::rules::{pin_mode, scenario_name};
use super::secret_value::{FOLLOWED, READ_ONCE, variable_name, variable_value, without_nul};
use super::shape::Shape;
use super::units::{ValueError, sleep_after};
use super::value_reader::ValueReader;
use super::{Config, StaticScenario};
use crate::model::{
    Auth, HttpTarget, PinMode, PreferenceTarget, ScenarioName, Scope, SecretSource, Settings,
    StdioTarget, Target,
};
use crate::protocols::PROTOCOLS;

/// The id of the protocol that programs speak over their input and output.
pub const MCP: &str = "mcp";

/// The shape of the list.
pub(super) const SHAPE: Shape = Shape::List(&Shape::Table(&[
    ("name", Shape::Text),
    ("url", Shape::Text),
    ("headers", Shape::Map(&FOLLOWED)),
    ("auth", auth::SHAPE),
    ("protocol", Shape::Text),
    ("pins", Shape::Text),
    ("interaction", Shape::TEXTS),
    ("roots", Shape::List(&Shape::Verbatim)),
    ("instructions", Shape::Switch),
    ("revision", Shape::Text),
    ("command", Shape::Verbatim),
    ("args", Shape::List(&Shape::Verbatim)),
    ("env", Shape::Map(&READ_ONCE)),
    ("cwd", Shape::Verbatim),
    ("sleep_after", Shape::Text),
]));

/// The keys of a scenario that is at an address.
const OF_URL: [&str; 2] = ["headers", "auth"];

/// The keys of a scenario that is a program.
const OF_COMMAND: [&str; 3] = ["args", "env", "cwd"];

/// The key of a program that may sleep. It starts nothing, so it may come from anywhere.
const OF_SLEEPER: [&str; 1] = ["sleep_after"];

/// Whether a key names a program to start, or how, or where such programs are named. Such a key
/// stands in a file only: what other programs put into an environment must not become a command.
pub(super) fn is_file_only(path: &KeyPath) -> bool {
    if let [PathStep::Key(table), ..] = path.steps()
        && (table == client_servers::KEY || path.to_string() == client_servers::FILES)
    {
        return true;
    }
    if modules::names_program(path) {
        return true;
    }
    let [
        PathStep::Key(list),
        PathStep::Index(_),
        PathStep::Key(member),
        below @ ..,
    ] = path.steps()
    else {
        return false;
    };
    let names_program = match (member.as_str(), below) {
        (member, []) => member == "command" || OF_COMMAND.contains(&member),
        // Below `headers` the first step is the name of a header.
        ("headers", [_, PathStep::Key(step)]) | ("auth", [.., PathStep::Key(step)]) => {
            step == "command"
        }
        _ => false,
    };
    list == "scenarios" && names_program
}

/// Reads the scenarios, and takes those that keep the rules.
pub(super) fn read(written: &mut ValueReader<'_>, config: &mut Config) {
    let mut indices = BTreeMap::<ScenarioName, usize>::new();
    written.each(|i, mut at| {
        let mut name: Option<ScenarioName> = None;
        let mut protocol: Option<String> = None;
        let mut pins: Option<PinMode> = None;
        at.require(
            "name",
            ValueError::new("this scenario has no name", "add `name = \"...\"` to it"),
        );
        at.key("name").text(&mut name, |text| {
            let name = scenario_name(text)?;
            match indices.get(&name) {
                Some(first) => Err(ValueError::new(
                    format!("`{name}` is already the name of scenarios[{first}]"),
                    "give each scenario a name of its own",
                )),
                None => Ok(name),
            }
        });
        let target = target(&mut at);
        at.key("protocol").text(&mut protocol, known_protocol);
        at.key("pins").text(&mut pins, pin_mode);
        let mut sleeps: Option<Option<Duration>> = None;
        at.key("sleep_after").text(&mut sleeps, sleep_after);
        if let (Some(name), Some(mut target)) = (name, target) {
            match &mut target {
                Target::Stdio(_) => _ = protocol.get_or_insert_with(|| MCP.to_owned()),
                // The address of an MCP server is whole, whatever it ends in.
                Target::Http(http) if protocol.as_deref() != Some(MCP) => {
                    let base = without_route(http.url.clone());
                    Arc::make_mut(http).url = base;
                }
                _ => {}
            }
            if let Target::Http(http) = &mut target {
                let http = Arc::make_mut(http);
                http.login = Some(name.clone());
                http.may_use_proxy = true;
            }
            indices.insert(name.clone(), i);
            // One of `[[preferences]]` for the same scenario goes before it.
            let settings = Settings {
                pins,
                ..Settings::default()
            };
            let of = PreferenceTarget::Scenario(name.clone());
            config.preferences.set(Scope::Global, of, settings);
            config.scenarios.push(StaticScenario {
                name,
                target,
                protocol,
                sleep_after: sleeps,
            });
        }
    });
}

/// Where a scenario is: at an address, or a program.
fn target(at: &mut ValueReader<'_>) -> Option<Target> {
    let is_written = |at: &mut ValueReader<'_>, key: &str| at.key(key).value.is_some();
    match (is_written(at, "url"), is_written(at, "command")) {
        (true, true) => {
            let hint = "take one of the two out; two scenarios need two entries";
            at.key("command")
                .reject(ValueError::new("this scenario has a `url` too", hint));
            None
        }
        (false, false) => {
            let hint =
                "add `url = \"http://...\"` to it, or `command = \"...\"` for a program to start";
            at.key("url")
                .reject(ValueError::new("this scenario has no address", hint));
            None
        }
        (true, false) => {
            misplaced(at, &OF_COMMAND, "command");
            misplaced(at, &OF_SLEEPER, "command");
            http(at)
        }
        (false, true) => {
            misplaced(at, &OF_URL, "url");
            stdio(at)
        }
    }
}

/// Reports keys that have no effect here.
fn misplaced(at: &mut ValueReader<'_>, keys: &[&str], owner: &str) {
    for key in keys {
        let mut at = at.key(key);
        if at.value.is_some() {
            at.reject(ValueError::new(
                format!("it belongs to a scenario with a `{owner}`"),
                "take it out",
            ));
        }
    }
}

/// A scenario at an address.
fn http(at: &mut ValueReader<'_>) -> Option<Target> {
    let mut url: Option<Url> = None;
    let mut headers: Vec<(HeaderName, SecretSource)> = Vec::new();
    at.key("url").text(&mut url, address);
    let auth = auth::read(&mut at.key("auth"));
    at.key("headers").each_key(|name, mut at| {
        match header_name(name, sets_authorization(auth.as_ref())) {
            Ok(name) => headers.extend(at.secret_source(header_value).map(|value| (name, value))),
            Err(wrong) => at.reject(wrong),
        }
    });
    let (interaction, revision) = interaction(at);
    url.map(|url| {
        HttpTarget {
            auth,
            headers,
            interaction,
            revision,
            ..HttpTarget::at(url)
        }
        .into()
    })
}

/// Whether the header `Authorization` is set already.
fn sets_authorization(auth: Option<&Auth>) -> bool {
    !matches!(auth, None | Some(Auth::Header(..)))
}

/// A program to start.
fn stdio(at: &mut ValueReader<'_>) -> Option<Target> {
    let mut command: Option<String> = None;
    let mut args: Vec<String> = Vec::new();
    let mut cwd: Option<PathBuf> = None;
    let mut path: Option<PathBuf> = None;
    let mut written = at.key("command");
    written.text(&mut command, |text| {
        if text.is_empty() {
            return Err(ValueError::new(
                "it is empty",
                "write a name or path of a program",
            ));
        }
        without_nul(text)
    });
    if command
        .as_ref()
        .is_some_and(|command| command.contains('/'))
    {
        written.path(&mut path);
    }
    at.key("args").texts(&mut args, without_nul);
    at.key("cwd").path(&mut cwd);
    let mut env = BTreeMap::new();
    at.key("env").each_key(|name, mut at| {
        if let Err(wrong) = variable_name(name) {
            at.reject(wrong);
        }
        env.extend(
            at.secret_value(variable_value)
                .map(|value| (name.to_owned(), value)),
        );
    });
    // A path counts from the folder of the file it is written in.
    let command = path
        .map(|path| path.to_string_lossy().into_owned())
        .or(command)?;
    let (interaction, revision) = interaction(at);
    let target = StdioTarget::new(command)
        .with_args(args)
        .with_env(env)
        .with_cwd(cwd);
    Some(
        target
            .with_interaction(interaction)
            .with_revision(revision)
            .into(),
    )
}

/// The id of a supported protocol.
fn known_protocol(text: &str) -> Result<String, ValueError> {
    let mut known: Vec<&str> = PROTOCOLS.iter().map(|make| make().id()).collect();
    if !known.contains(&MCP) {
        known.push(MCP);
    }
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    let hint = format!(
        "known are: {}; leave it out to find out by probing",
        known.join(", ")
    );
    Err(ValueError::new(format!("{text:?} is not a protocol"), hint))
}
