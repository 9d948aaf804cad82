//! The layers: built-in defaults < file < environment < flags, merged by figment, which also
//! remembers which layer gave a value.
//!
//! The only module that knows figment. It writes no file, and the configuration file and the files
//! of secrets and schemas that it names are the only state that is read: the rest comes in
//! [`LoadOptions`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile};
use toml::{Table, Value};

use super::check;
use super::defaults::DEFAULT_TOML;
use super::error::{ConfigError, Diagnostic};
use super::file::{ConfigFile, KeyOrValue};
use super::keys::{KEYS, ROOT_SHAPE};
use super::layer::{ConfigLayer, Diagnostics, LayerSource};
use super::options::LoadOptions;
use super::origin::{EffectiveValue, ValueOrigin};
use super::path::KeyPath;
use super::shape::Shape;
use super::suggest::nearest;
use super::value_reader::{RuleViolation, Surroundings};
use super::{Config, effective_values};
use crate::model::IgnoredVariables;

const PREFIX: &str = "CALLSHEET_";
/// Variables with the prefix that are no keys: the log filter, the daemon a command speaks to, the
/// file, the tests' corpus.
const NOT_CONFIGURATION: [&str; 4] = [
    "CALLSHEET_LOG",
    "CALLSHEET_URL",
    "CALLSHEET_CONFIG",
    "CALLSHEET_CORPUS",
];

/// A configuration that can be used, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// Every effective value, in the order of `config/default.toml`. A key without a value is left
    /// out, such as a path that needs a home folder where there is none.
    pub values: Vec<EffectiveValue>,
    /// The file that was read, absolute.
    pub file: Option<PathBuf>,
    /// The variables of the environment that have the prefix and are no configuration.
    pub ignored_variables: Option<IgnoredVariables>,
}

/// Loads the configuration. The error holds every problem there is, not just the first.
pub fn load(options: &LoadOptions) -> Result<LoadedConfig, ConfigError> {
    match load_usable(options) {
        (loaded, None) => Ok(loaded),
        (_, Some(error)) => Err(error),
    }
}

/// Loads what can be used of the configuration, for clients of a daemon that runs already: what is
/// wrong keeps its default, and the error holds every problem there is. No daemon runs with it.
pub fn load_usable(options: &LoadOptions) -> (LoadedConfig, Option<ConfigError>) {
    load_for_client(options).into_usable()
}

/// Loads what can be used of the configuration, and keeps what only this process lacks apart: the
/// daemon may have it.
pub(crate) fn load_for_client(options: &LoadOptions) -> ClientConfig {
    let file = options.find_file();
    let read = file.as_deref().map(ConfigFile::read);
    load_read(options, file, read)
}

/// A configuration as a client of a daemon reads it.
#[derive(Debug)]
pub(crate) struct ClientConfig {
    /// What can be used of it.
    pub(crate) loaded: LoadedConfig,
    /// What no process can use, in the order of [`ConfigError`].
    pub(crate) problems: Vec<Diagnostic>,
    /// What only this process cannot use: a variable that is not set for it, or a file that it may
    /// not read.
    pub(crate) process_problems: Vec<Diagnostic>,
}

impl ClientConfig {
    /// The same for a process that needs all of it.
    fn into_usable(self) -> (LoadedConfig, Option<ConfigError>) {
        let mut loaded = self.loaded;
        let mut problems = self.problems;
        problems.extend(self.process_problems);
        if problems.is_empty() {
            return (loaded, None);
        }
        loaded.values.clear();
        problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        (loaded, Some(ConfigError { problems }))
    }
}

/// Loads the configuration as if the file that `options` name had this text. What only this process
/// lacks is no problem of the text.
pub(super) fn load_text(options: &LoadOptions, text: &str) -> Result<LoadedConfig, ConfigError> {
    let file = options.find_file();
    let read = file.as_deref().map(|path| ConfigFile::parse(path, text));
    let ClientConfig {
        loaded, problems, ..
    } = load_read(options, file, read);
    if problems.is_empty() {
        Ok(loaded)
    } else {
        Err(ConfigError { problems })
    }
}

/// What was read of a file.
type ReadFile = Result<(ConfigFile, Table), Diagnostic>;

/// Loads the configuration with this file.
fn load_read(options: &LoadOptions, file: Option<PathBuf>, read: Option<ReadFile>) -> ClientConfig {
    let mut found = Diagnostics::default();
    let ignored_variables = ignored_variables(options);
    let mut config = Config::for_state(options.state_path().unwrap_or_default());
    config.discovery.vrooli.path = options.vrooli_path();
    let merged = match MergedLayers::new(layers(options, read, &mut found)) {
        Ok(merged) => merged,
        Err(problem) => {
            let Diagnostics {
                mut problems,
                process_problems,
                ..
            } = found;
            problems.push(problem);
            return ClientConfig {
                loaded: LoadedConfig {
                    config,
                    values: Vec::new(),
                    file,
                    ignored_variables,
                },
                problems,
                process_problems,
            };
        }
    };
    let to_path =
        |key: &KeyPath, text: &str| options.absolute(text, &merged.origin(key, KeyOrValue::Value));
    let variable = |name: &str| options.set_variable(name);
    for complaint in check::apply(
        &merged.values,
        &mut config,
        Surroundings {
            to_path: &to_path,
            variable: &variable,
        },
    ) {
        merged.report(complaint, &mut found);
    }
    let Diagnostics {
        mut problems,
        process_problems,
        ..
    } = found;
    problems.sort_by(|a, b| a.origin.cmp(&b.origin));
    let values = if problems.is_empty() {
        effective_values::values(&merged.values, &config, &|path| {
            merged.origin(path, KeyOrValue::Key)
        })
    } else {
        Vec::new()
    };
    ClientConfig {
        loaded: LoadedConfig {
            config,
            values,
            file,
            ignored_variables,
        },
        problems,
        process_problems,
    }
}

/// Loads the configuration of a running daemon that has read `before`. Unlike at the start, a
/// missing file is a problem: otherwise a moved file would withdraw every scenario that it names.
pub fn load_again(
    options: &LoadOptions,
    before: Option<&Path>,
) -> Result<LoadedConfig, ConfigError> {
    let found = options.find_file();
    let gone = before
        .filter(|before| found.as_deref() != Some(*before) && !before.try_exists().unwrap_or(true));
    let Some(path) = gone else {
        return load(options);
    };
    let problem = Diagnostic {
        origin: ValueOrigin::File {
            path: path.to_owned(),
            position: None,
        },
        key: None,
        message: "the configuration is not there any more".to_owned(),
        hint: "put it back, or restart the daemon to run without it".to_owned(),
    };
    Err(ConfigError {
        problems: vec![problem],
    })
}

/// The layers that fit, lowest first.
fn layers(
    options: &LoadOptions,
    file: Option<ReadFile>,
    found: &mut Diagnostics,
) -> Vec<ConfigLayer> {
    // That the built-in text parses is for a test to prove; were it not to, `Config::for_state`
    // says the same.
    let defaults = DEFAULT_TOML.parse().unwrap_or_default();
    let mut layers = vec![ConfigLayer::checked(LayerSource::Default, defaults, found)];
    match file {
        Some(Ok((file, values))) => {
            layers.push(ConfigLayer::checked(
                LayerSource::File(Box::new(file)),
                values,
                found,
            ));
        }
        Some(Err(problem)) => found.problems.push(problem),
        None => {}
    }
    layers.extend(variables(options, found));
    for (key, value, flag) in &options.flags {
        let path = KeyPath::dotted(key);
        // A flag for an unknown key is refused with the rest of its layer.
        let values = nested(
            &path,
            parse_as(value, ROOT_SHAPE.at(&path).unwrap_or(Shape::Text)),
        );
        layers.push(ConfigLayer::checked(
            LayerSource::Flag(flag.clone()),
            values,
            found,
        ));
    }
    layers
}

/// One layer for each environment variable, by name, so that a value can be traced to its variable.
fn variables(options: &LoadOptions, found: &mut Diagnostics) -> Vec<ConfigLayer> {
    let mut layers = Vec::new();
    let mut variables: Vec<_> = options.env.iter().collect();
    variables.sort();
    for (name, value) in variables {
        let Some(key) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let path = variable_path(key);
        if is_ignored(key, &path) || NOT_CONFIGURATION.contains(&name.as_str()) {
            continue;
        }
        let source = LayerSource::Environment(name.clone());
        if let Some(shape) = ROOT_SHAPE.at(&path) {
            layers.push(ConfigLayer::checked(
                source,
                nested(&path, parse_as(value, shape)),
                found,
            ));
        } else {
            found.problems.push(Diagnostic {
                origin: source.origin(&path, KeyOrValue::Key),
                key: None,
                message: "there is no such key".to_owned(),
                hint: near_variable(name),
            });
        }
    }
    layers
}

/// The path of the key that a variable names, without the prefix.
fn variable_path(key: &str) -> KeyPath {
    KeyPath::dotted(&key.to_lowercase().replace("__", "."))
}

/// Whether a variable with the prefix is no configuration: it is of no section, and no key of its
/// own. Kubernetes sets such ones (`CALLSHEET_PORT`) for a service that is called `callsheet`.
fn is_ignored(key: &str, path: &KeyPath) -> bool {
    !key.contains("__") && ROOT_SHAPE.at(path).is_none()
}

/// The variables with the prefix that are no configuration, by name, each with the one that was
/// perhaps meant.
fn ignored_variables(options: &LoadOptions) -> Option<IgnoredVariables> {
    let names = options.env.iter().map(|(name, _)| name.as_str());
    let ignored = names.filter(|name| {
        let is_other = |key: &str| is_ignored(key, &variable_path(key));
        name.strip_prefix(PREFIX).is_some_and(is_other) && !NOT_CONFIGURATION.contains(name)
    });
    let mut ignored: Vec<&str> = ignored.collect();
    ignored.sort_unstable();
    let variables = ignored.into_iter().map(|name| (name, known_variable(name)));
    IgnoredVariables::new(variables)
}

/// A value given as text, as what its key takes. Text that cannot be that stays text, which then
/// does not fit.
fn parse_as(text: &str, shape: Shape) -> Value {
    let value = match shape {
        Shape::Text | Shape::Verbatim | Shape::Secret | Shape::Size => None,
        Shape::SecretOr(_) if !text.trim_start().starts_with('{') => None,
        Shape::Words | Shape::TextOrList(_) if !text.trim_start().starts_with('[') => None,
        Shape::Number | Shape::Integer => text.trim().parse().ok().map(Value::Integer),
        Shape::Switch => text.trim().parse().ok().map(Value::Boolean),
        // figment's own notation: `[a, b]`, `{key = value}`.
        Shape::List(_)
        | Shape::Table(_)
        | Shape::Map(_)
        | Shape::Words
        | Shape::TextOrList(_)
        | Shape::SecretOr(_)
        | Shape::Foreign => text
            .parse::<figment::value::Value>()
            .ok()
            .and_then(|value| Value::try_from(value).ok()),
    };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The table that holds only `value` at `path`.
fn nested(path: &KeyPath, value: Value) -> Table {
    let mut keys = path.tables();
    let mut table = Table::new();
    let Some(last) = keys.pop() else { return table };
    table.insert(last.to_owned(), value);
    for key in keys.into_iter().rev() {
        table = Table::from_iter([(key.to_owned(), Value::Table(table))]);
    }
    table
}

fn near_variable(name: &str) -> String {
    // An attempt to reach into a list, whose elements have no variables of their own.
    let known = known_variables();
    if let Some(list) = known
        .iter()
        .find(|known| without_prefix(name).starts_with(&format!("{known}__")))
    {
        return format!("give `{PREFIX}{list}` its whole value");
    }
    match known_variable(name) {
        Some(known) => format!("did you mean `{known}`?"),
        None => {
            format!("a key is written {PREFIX}SECTION__KEY; `config/default.toml` has them all")
        }
    }
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// The variables that mean something, without the prefix, which would make all of them look alike.
fn known_variables() -> Vec<String> {
    let keys = KEYS
        .iter()
        .map(|key| key.path.replace('.', "__").to_uppercase());
    keys.chain(
        NOT_CONFIGURATION
            .iter()
            .map(|name| without_prefix(name).to_owned()),
    )
    .collect()
}

/// The variable that was perhaps meant.
fn known_variable(name: &str) -> Option<String> {
    let known = known_variables();
    nearest(without_prefix(name), known.iter().map(String::as_str))
        .map(|known| format!("{PREFIX}{known}"))
}

/// The merged layers.
struct MergedLayers {
    /// Where each layer comes from, by the name that figment has for the layer.
    sources: BTreeMap<String, LayerSource>,
    figment: Figment,
    /// The merged values with the tags by which figment knows their layers.
    tagged: figment::value::Value,
    /// The merged values.
    values: Table,
}

impl MergedLayers {
    /// Merges the layers, lowest first. A value that could not be merged is a problem: otherwise
    /// the defaults would be active.
    fn new(layers: Vec<ConfigLayer>) -> Result<Self, Diagnostic> {
        let figment = layers.iter().fold(Figment::new(), Figment::merge);
        let tagged = figment.find_value("").map_err(|error| unmerged(&error))?;
        let values = merged_table(&tagged)?;
        let sources = layers
            .into_iter()
            .map(|layer| (layer.source.name(), layer.source))
            .collect();
        Ok(Self {
            sources,
            figment,
            tagged,
            values,
        })
    }

    /// Where the effective value at `path` comes from. One layer gives a list as a whole.
    fn origin(&self, path: &KeyPath, end: KeyOrValue) -> ValueOrigin {
        let tables = path.tables();
        let value = tables
            .iter()
            .try_fold(&self.tagged, |value, key| value.as_dict()?.get(*key));
        let metadata = value.and_then(|value| self.figment.get_metadata(value.tag()));
        let source = metadata.and_then(|metadata| self.sources.get(metadata.name.as_ref()));
        source.map_or(ValueOrigin::Default, |source| source.origin(path, end))
    }

    /// Notes a broken rule, unless its value was refused already: the rule would then be checked
    /// against its default. A broken rule about two values is reported for the one that was
    /// written.
    fn report(&self, complaint: RuleViolation, found: &mut Diagnostics) {
        let RuleViolation { path, other, wrong } = complaint;
        if [Some(&path), other.as_ref()]
            .into_iter()
            .flatten()
            .any(|path| found.covers(path))
        {
            return;
        }
        let origin = self.origin(&path, KeyOrValue::Value);
        match (origin, other) {
            (ValueOrigin::Default, Some(other)) => {
                found.add(self.origin(&other, KeyOrValue::Value), &other, wrong);
            }
            (origin, _) => found.add(origin, &path, wrong),
        }
    }
}

/// The merged values as a table.
fn merged_table(tagged: &figment::value::Value) -> Result<Table, Diagnostic> {
    Table::try_from(tagged).map_err(|error| unmerged(&error))
}

/// The problem of layers that cannot be merged. The error names kinds of values and no value.
fn unmerged(error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic {
        origin: ValueOrigin::Default,
        key: None,
        message: format!("the layers of the configuration cannot be merged: {error}"),
        hint: "take out the value that was changed last".to_owned(),
    }
}

impl figment::Provider for &ConfigLayer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.source.name())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let dict = figment::value::Value::serialize(&self.values)?
            .into_dict()
            .unwrap_or_default();
        Ok(Profile::Default.collect(dict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_no_table_can_hold_are_a_problem_and_not_the_defaults() {
        let dict = |number: figment::value::Value| {
            figment::value::Value::from(Dict::from([("a".to_owned(), number)]))
        };
        assert_eq!(merged_table(&dict(7_i64.into())).unwrap().len(), 1);
        let problem = merged_table(&dict(u64::MAX.into())).unwrap_err();
        assert!(problem.message.contains("cannot be merged"), "{problem}");
    }
}
