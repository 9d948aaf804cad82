//! One layer of values, and whether it fits the shape of a configuration.
//!
//! Each layer is compared before the merge, so that no later layer hides what is wrong in an
//! earlier one. A value that does not fit is reported and left out, and the others are used: a user
//! sees every problem at once. Rules of single values are not applied here.

use toml::{Table, Value};

use super::defaults::DEFAULT_TOML;
use super::error::Diagnostic;
use super::file::{ConfigFile, KeyOrValue};
use super::keys::{KEYS, ROOT_SHAPE};
use super::origin::{ValueOrigin, masked};
use super::path::KeyPath;
use super::scenarios;
use super::shape::Shape;
use super::suggest::nearest;
use super::units::ValueError;

/// Where a layer comes from, and its values.
#[derive(Debug)]
pub(super) struct ConfigLayer {
    pub(super) source: LayerSource,
    pub(super) values: Table,
}

/// Where a layer comes from.
#[derive(Debug)]
pub(super) enum LayerSource {
    Default,
    File(Box<ConfigFile>),
    /// One variable, as it was named.
    Environment(String),
    /// One flag, as it was typed.
    Flag(String),
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    pub(super) problems: Vec<Diagnostic>,
    /// What only this process lacks; another one may be able to use the same configuration.
    pub(super) process_problems: Vec<Diagnostic>,
    /// Keys with a problem already: a further problem about them, or below them, would only repeat
    /// the first.
    pub(super) reported: Vec<KeyPath>,
}

impl LayerSource {
    /// Whether it is the operator's own file.
    fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Whether it comes from the environment or the command line.
    fn is_of_the_process(&self) -> bool {
        matches!(self, Self::Environment(_) | Self::Flag(_))
    }

    /// The place of a key in this layer.
    pub(super) fn origin(&self, path: &KeyPath, end: KeyOrValue) -> ValueOrigin {
        match self {
            Self::Default => ValueOrigin::Default,
            Self::File(file) => file.origin(path, end),
            Self::Environment(variable) => ValueOrigin::Environment(variable.clone()),
            Self::Flag(flag) => ValueOrigin::Flag(flag.clone()),
        }
    }

    /// A name that no other layer has.
    pub(super) fn name(&self) -> String {
        self.origin(&KeyPath::default(), KeyOrValue::Key)
            .to_string()
    }
}

impl Diagnostics {
    /// Whether a problem about the key, or about a table around it, was noted already.
    pub(super) fn covers(&self, path: &KeyPath) -> bool {
        self.reported.iter().any(|settled| path.is_within(settled))
    }

    /// Notes a problem.
    pub(super) fn add(&mut self, origin: ValueOrigin, path: &KeyPath, wrong: ValueError) {
        self.reported.push(path.clone());
        let ValueError {
            message,
            hint,
            is_of_this_process,
        } = wrong;
        let list = if is_of_this_process {
            &mut self.process_problems
        } else {
            &mut self.problems
        };
        list.push(Diagnostic {
            origin,
            key: Some(path.to_string()),
            message,
            hint,
        });
    }
}

impl ConfigLayer {
    /// The layer of `values`, without what does not fit.
    pub(super) fn checked(source: LayerSource, values: Table, found: &mut Diagnostics) -> Self {
        let mut fit = ShapeCheck {
            source: &source,
            found,
        };
        let values = fit.value(Value::Table(values), *ROOT_SHAPE, &KeyPath::default());
        let values = if let Some(Value::Table(values)) = values {
            values
        } else {
            Table::new()
        };
        Self { source, values }
    }
}

/// Compares one layer with the shapes of the keys.
struct ShapeCheck<'a> {
    source: &'a LayerSource,
    found: &'a mut Diagnostics,
}

impl ShapeCheck<'_> {
    /// The value with all that fits; `None` if it does not fit at all.
    fn value(&mut self, value: Value, shape: Shape, path: &KeyPath) -> Option<Value> {
        match (shape, value) {
            (Shape::Table(keys) | Shape::SecretOr(keys), Value::Table(table)) => {
                Some(Value::Table(self.table(table, keys, path)))
            }
            (Shape::Map(each), Value::Table(table)) => {
                let fitting = table.into_iter().filter_map(|(key, value)| {
                    let value = self.value(value, *each, &path.key(&key))?;
                    Some((key, value))
                });
                Some(Value::Table(fitting.collect()))
            }
            (Shape::List(each), Value::Array(list)) => {
                self.list(list, *each, path).map(Value::Array)
            }
            (Shape::TextOrList(keys), Value::Array(list)) => {
                let fitting = list.into_iter().enumerate().map(|(i, value)| match value {
                    Value::Table(table) => {
                        Some(Value::Table(self.table(table, keys, &path.index(i))))
                    }
                    other => self.value(other, Shape::Map(&Shape::Text), &path.index(i)),
                });
                fitting.collect::<Option<Vec<_>>>().map(Value::Array)
            }
            (Shape::Words, Value::Array(list)) => {
                self.list(list, Shape::Text, path).map(Value::Array)
            }
            (
                Shape::Text
                | Shape::Verbatim
                | Shape::Secret
                | Shape::SecretOr(_)
                | Shape::Size
                | Shape::Words
                | Shape::TextOrList(_),
                value @ Value::String(_),
            )
            | (Shape::Foreign, value)
            | (Shape::Switch, value @ Value::Boolean(_))
            | (Shape::Number | Shape::Size, value @ Value::Integer(0..))
            | (Shape::Integer, value @ Value::Integer(_)) => Some(value),
            (_, value) => {
                let expected = format!("expected {}", shape.described());
                let message = match shape {
                    Shape::Secret => expected,
                    _ if shape.may_hold_a_secret() => format!("{expected}, found {}", kind(&value)),
                    _ => format!("{expected}, found {}", described(&value)),
                };
                let wrong = ValueError::new(message, how_to_write(self.source, shape, path));
                self.found
                    .add(self.source.origin(path, KeyOrValue::Value), path, wrong);
                None
            }
        }
    }

    /// The table with all that fits.
    fn table(&mut self, table: Table, keys: &[(&'static str, Shape)], path: &KeyPath) -> Table {
        let mut fitting = Table::new();
        for (key, value) in table {
            let below = path.key(&key);
            if self.source.is_of_the_process() && scenarios::is_file_only(&below) {
                let wrong = ValueError::new(
                    "programs to start are taken from the configuration file only",
                    "write it into the file",
                );
                self.found
                    .add(self.source.origin(&below, KeyOrValue::Key), &below, wrong);
            } else if let Some((_, shape)) = keys.iter().find(|(name, _)| *name == key) {
                fitting.extend(self.value(value, *shape, &below).map(|value| (key, value)));
            } else {
                let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
                let meant = nearest(&key, names.iter().copied());
                self.found.reported.extend(meant.map(|name| path.key(name)));
                let wrong = ValueError::new("unknown key", did_you_mean(&key, path, meant, &names));
                self.found
                    .add(self.source.origin(&below, KeyOrValue::Key), &below, wrong);
            }
        }
        fitting
    }

    /// The list; `None` if one element does not fit at all, because leaving it out would change the
    /// indices of the others.
    fn list(&mut self, list: Vec<Value>, each: Shape, path: &KeyPath) -> Option<Vec<Value>> {
        let fitting: Vec<_> = list
            .into_iter()
            .enumerate()
            .map(|(i, value)| self.value(value, each, &path.index(i)))
            .collect();
        fitting.into_iter().collect()
    }
}

/// A longer list of keys would hide the guess before it.
const LISTED_BESIDE_A_GUESS: usize = 8;

/// The hint for an unknown key of the table at `path`.
fn did_you_mean(key: &str, path: &KeyPath, sibling: Option<&str>, siblings: &[&str]) -> String {
    if let Some(name) = sibling {
        return format!("did you mean `{name}`?");
    }
    let known_here = format!("known here: {}", siblings.join(", "));
    // Perhaps the right key in the wrong section. Within another section that is only a guess.
    match KEYS
        .iter()
        .find(|known| known.path.rsplit('.').next() == Some(key))
    {
        Some(known) if path.to_string().is_empty() => format!("did you mean `{}`?", known.path),
        Some(known) if siblings.len() > LISTED_BESIDE_A_GUESS => {
            format!("did you mean `{}`?", known.path)
        }
        Some(known) => format!("did you mean `{}`? {known_here}", known.path),
        None => known_here,
    }
}

/// What was found, quoted where no secret is expected.
fn described(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {:?}", masked(text)),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Boolean(switch) => switch.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => kind(value).to_owned(),
    }
}

/// What kind of value was found.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date or time",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

/// The hint for a value of the wrong shape.
fn how_to_write(source: &LayerSource, shape: Shape, path: &KeyPath) -> String {
    let in_file = source.is_file() || matches!(source, LayerSource::Default);
    let hint = match shape {
        Shape::Table(_) | Shape::Map(_) | Shape::List(_) if !in_file => {
            "write a list as `[a, b]`, a table as `{key = value}`"
        }
        Shape::Table(_) | Shape::Map(_) if path.tables().len() == path.steps().len() => {
            return format!("begin a section with `[{path}]` and write its keys below");
        }
        Shape::Table(_) | Shape::Map(_) => {
            "write its keys in braces: `{ name = \"...\", url = \"...\" }`"
        }
        Shape::List(Shape::Table(_)) => {
            return format!("begin each entry with `[[{path}]]` and write its keys below");
        }
        Shape::List(_) => "write texts in brackets: `[\"a\", \"b\"]`",
        Shape::Words => "write one text in double quotes, or several in brackets: `[\"a\", \"b\"]`",
        Shape::TextOrList(_) => {
            return format!(
                "write one text in double quotes, or begin each entry with `[[{path}]]` and write its keys below"
            );
        }
        Shape::SecretOr(_) => {
            "write a text in double quotes, or `{ env = \"NAME\" }` or `{ file = \"path\" }`"
        }
        Shape::Text | Shape::Verbatim | Shape::Secret | Shape::Size => match default_of(path) {
            Some(text) => {
                return format!("write a text in double quotes, such as the default {text:?}");
            }
            None => "put it in double quotes",
        },
        Shape::Number | Shape::Integer => "write digits only, without quotes",
        Shape::Switch => "write true or false, without quotes",
        Shape::Foreign => "write it as the client's own file has it",
    };
    hint.to_owned()
}

/// The default at `path` if it is a text.
fn default_of(path: &KeyPath) -> Option<String> {
    let defaults: Table = DEFAULT_TOML.parse().ok()?;
    path.find(&defaults)?.as_str().map(str::to_owned)
}
