//! The layers: built-in defaults < file < environment < flags, merged by figment, which also remembers which layer gave a value.
//!
//! The only module that knows figment. It writes nothing and reads no process state but the configuration file: the rest comes in
//! [`LoadOptions`].

use std::path::{Path, PathBuf};

use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile};
use toml::{Table, Value};

use super::check::{self, Complaint};
use super::defaults::DEFAULT_TOML;
use super::error::{ConfigError, Problem};
use super::file::{End, SourceFile};
use super::key::{KeyPath, Shape};
use super::layer::{Findings, Layer, Source};
use super::options::LoadOptions;
use super::origin::Origin;
use super::raw::{self, Raw};
use super::shown::{Paths, ShownValues};
use super::suggest::nearest;
use super::units::Wrong;
use super::{Config, shown};

const PREFIX: &str = "CALLSHEET_";
/// Variables with the prefix that are no keys: the log filter, the daemon a command speaks to, the file, the tests' corpus.
const NOT_CONFIGURATION: [&str; 4] = ["CALLSHEET_LOG", "CALLSHEET_URL", "CALLSHEET_CONFIG", "CALLSHEET_CORPUS"];

/// A configuration that can be used, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What was decided.
    pub config: Config,
    /// Every effective value. A key without any value (a path with no home folder) is left out.
    pub values: ShownValues,
    /// The file that was read, absolute.
    pub file: Option<PathBuf>,
}

/// Loads the configuration. The error holds every problem there is, not just the first.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let whole = Shape::whole();
    let mut found = Findings::default();
    let file = options.find_file();
    let layers = layers(options, file.as_deref(), &whole, &mut found);
    let merged = Merged::of(layers);

    let mut config = Config::for_state(options.state_path().unwrap_or_default());
    config.discovery.vrooli.path = options.vrooli_path();
    let to_path = |key: &KeyPath, text: &str| options.absolute(text, &merged.origin(key, End::Value));
    match merged.raw() {
        Ok(raw) => {
            for complaint in check::apply(raw, &mut config, &to_path) {
                merged.report(complaint, &mut found);
            }
        }
        // Every layer fits the shape of `Raw`, so this would be a slip of ours; it is still told like one of the user's.
        Err(error) => {
            let path = KeyPath::dotted(&error.path.join("."));
            let wrong = Wrong::new(error.kind.to_string(), "compare it with `config/default.toml`");
            found.add(merged.origin(&path, End::Value), &path, wrong);
        }
    }
    if found.problems.is_empty() {
        let paths = Paths::of(&config);
        // Of ten thousand scenarios the merged values take thirty megabytes, and hardly anybody looks at them.
        let layers: Vec<Layer> = merged.into_layers().map(Layer::spared).collect();
        let values = ShownValues::new(move || {
            let merged = Merged::of(layers.into_iter().map(|layer| layer.again(&whole)).collect());
            shown::values(&whole, &merged.values(), &paths, |path| merged.origin(path, End::Key))
        });
        return Ok(Loaded { config, values, file });
    }
    let mut problems = found.problems;
    problems.sort_by(|a, b| a.origin.cmp(&b.origin));
    Err(ConfigError { problems })
}

/// Loads the configuration of a daemon that runs with what was read in `before`. Other than at the start, a file that is gone is a
/// problem: without it everything that it named would be withdrawn because somebody moved a file.
pub fn load_again(options: &LoadOptions, before: Option<&Path>) -> Result<Loaded, ConfigError> {
    let found = options.find_file();
    let gone = before.filter(|before| found.as_deref() != Some(*before) && !before.try_exists().unwrap_or(true));
    let Some(path) = gone else { return load(options) };
    let problem = Problem {
        origin: Origin::File { path: path.to_owned(), position: None },
        key: None,
        message: "the configuration is not there any more".to_owned(),
        hint: "put it back, or restart the daemon to run without it".to_owned(),
    };
    Err(ConfigError { problems: vec![problem] })
}

/// The layers that fit, lowest first.
fn layers(options: &LoadOptions, file: Option<&Path>, whole: &Shape, found: &mut Findings) -> Vec<Layer> {
    // That the built-in text parses is for a test to prove; were it not to, `Config::for_state` says the same.
    let defaults = DEFAULT_TOML.parse().unwrap_or_default();
    let mut layers = vec![Layer::fitting(Source::Default, defaults, whole, found)];
    match file.map(SourceFile::read) {
        Some(Ok((file, values))) => {
            layers.push(Layer::fitting(Source::File(Box::new(file)), values, whole, found));
        }
        Some(Err(problem)) => found.problems.push(problem),
        None => {}
    }
    layers.extend(variables(options, whole, found));
    for (key, value, flag) in &options.flags {
        let path = KeyPath::dotted(key);
        // A flag for an unknown key is refused with the rest of its layer.
        let values = nested(&path, typed(value, whole.at(&path).unwrap_or(&Shape::Text)));
        layers.push(Layer::fitting(Source::Flag(flag.clone()), values, whole, found));
    }
    layers
}

/// One layer for each environment variable, by name, so that a value can be traced to its variable.
fn variables(options: &LoadOptions, whole: &Shape, found: &mut Findings) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut variables: Vec<_> = options.env.iter().collect();
    variables.sort();
    for (name, value) in variables {
        let Some(key) = name.strip_prefix(PREFIX) else { continue };
        if NOT_CONFIGURATION.contains(&name.as_str()) {
            continue;
        }
        let path = KeyPath::dotted(&key.to_lowercase().replace("__", "."));
        let source = Source::Environment(name.clone());
        if let Some(shape) = whole.at(&path) {
            layers.push(Layer::fitting(source, nested(&path, typed(value, shape)), whole, found));
        } else {
            found.problems.push(Problem {
                origin: source.origin(&path, End::Key),
                key: None,
                message: "there is no such key".to_owned(),
                hint: near_variable(name, whole),
            });
        }
    }
    layers
}

/// A value given as text, as what its key takes. Text that cannot be that stays text, which then does not fit.
fn typed(text: &str, shape: &Shape) -> Value {
    let value = match shape {
        Shape::Text | Shape::Secret | Shape::Size => None,
        Shape::Words if !text.trim_start().starts_with('[') => None,
        Shape::Number => text.trim().parse().ok().map(Value::Integer),
        Shape::Switch => text.trim().parse().ok().map(Value::Boolean),
        // figment's own notation: `[a, b]`, `{key = value}`.
        Shape::List(_) | Shape::Section(_) | Shape::Map(_) | Shape::Words => {
            text.parse::<figment::value::Value>().ok().and_then(|value| Value::try_from(value).ok())
        }
    };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The table that holds nothing but `value` at `path`.
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

fn near_variable(name: &str, whole: &Shape) -> String {
    // Compared without the prefix, which would make all of them look alike.
    let rest = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let keys = whole.leaves().into_iter().map(|leaf| leaf.tables().join("__").to_uppercase());
    let known: Vec<String> = keys.chain(NOT_CONFIGURATION.into_iter().map(rest)).collect();
    // An attempt to reach into a list, whose elements have no variables of their own.
    if let Some(list) = known.iter().find(|known| rest(name).starts_with(&format!("{known}__"))) {
        return format!("give `{PREFIX}{list}` its whole value");
    }
    match nearest(&rest(name), known.iter().map(String::as_str)) {
        Some(known) => format!("did you mean `{PREFIX}{known}`?"),
        None => format!("a key is written {PREFIX}SECTION__KEY; `config/default.toml` has them all"),
    }
}

/// The list that may have thousands of entries.
const SCENARIOS: &str = "scenarios";

/// The layers as one.
struct Merged {
    layers: Vec<Layer>,
    figment: Figment,
    /// The list of the highest layer that has one. figment has an empty one in its place, since it copies what it merges some ten times.
    scenarios: Vec<Value>,
    /// Which layer that is.
    scenarios_of: Option<usize>,
    /// What figment would merge anew each time it is asked where a value comes from.
    whole: figment::value::Value,
}

impl Merged {
    fn of(mut layers: Vec<Layer>) -> Self {
        let (mut scenarios, mut scenarios_of) = (Vec::new(), None);
        for (at, layer) in layers.iter_mut().enumerate() {
            if let Some(Value::Array(list)) = layer.values.get_mut(SCENARIOS) {
                (scenarios, scenarios_of) = (std::mem::take(list), Some(at));
            }
        }
        let figment = layers.iter().fold(Figment::new(), Figment::merge);
        // The empty path is the root, and dictionaries always merge.
        let whole = figment.find_value("").unwrap_or_else(|_| Dict::new().into());
        Self { layers, figment, scenarios, scenarios_of, whole }
    }

    /// The layers as they came, but for lists of scenarios that a higher one replaced.
    fn into_layers(mut self) -> impl Iterator<Item = Layer> {
        if let Some(Value::Array(list)) =
            self.scenarios_of.and_then(|at| self.layers.get_mut(at)?.values.get_mut(SCENARIOS))
        {
            *list = self.scenarios;
        }
        self.layers.into_iter()
    }

    fn values(&self) -> Table {
        let mut values: Table = self.figment.extract().unwrap_or_default();
        if let Some(list) = values.get_mut(SCENARIOS) {
            *list = Value::Array(self.scenarios.clone());
        }
        values
    }

    fn raw(&self) -> Result<Raw, Box<figment::Error>> {
        let text = |scenario: &Value, key: &str| scenario.get(key).and_then(Value::as_str).map(str::to_owned);
        let scenario = |scenario| raw::Scenario {
            name: text(scenario, "name"),
            url: text(scenario, "url"),
            protocol: text(scenario, "protocol"),
        };
        Ok(Raw {
            scenarios: self.scenarios.iter().map(scenario).collect(),
            ..self.figment.extract().map_err(Box::new)?
        })
    }

    /// Where the effective value at `path` comes from. A list is the work of one layer as a whole.
    fn origin(&self, path: &KeyPath, end: End) -> Origin {
        let value = self.whole.find_ref(&path.tables().join("."));
        let metadata = value.and_then(|value| self.figment.get_metadata(value.tag()));
        let layer = metadata.and_then(|metadata| self.layers.iter().find(|layer| layer.source.name() == metadata.name));
        layer.map_or(Origin::Default, |layer| layer.source.origin(path, end))
    }

    /// Notes a broken rule, unless its value was refused already: then its default would be blamed. A rule about two values is told
    /// of the one that was written.
    fn report(&self, complaint: Complaint, found: &mut Findings) {
        let Complaint { path, other, wrong } = complaint;
        if [Some(&path), other.as_ref()].into_iter().flatten().any(|path| found.speak_of(path)) {
            return;
        }
        let origin = self.origin(&path, End::Value);
        match (origin, other) {
            (Origin::Default, Some(other)) => found.add(self.origin(&other, End::Value), &other, wrong),
            (origin, _) => found.add(origin, &path, wrong),
        }
    }
}

impl figment::Provider for &Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.source.name())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let dict = figment::value::Value::serialize(&self.values)?.into_dict().unwrap_or_default();
        Ok(Profile::Default.collect(dict))
    }
}
