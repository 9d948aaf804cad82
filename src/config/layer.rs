//! One layer of values, and whether it fits the shape of a configuration.
//!
//! A layer is judged by itself, before the merge, so that no later layer hides what is wrong in an earlier one. What does not fit is
//! reported and left out, and the rest goes on: a person learns of every slip at once.

use toml::{Table, Value};

use super::defaults::DEFAULT_TOML;
use super::error::Problem;
use super::file::{End, SourceFile};
use super::key::{KeyPath, Shape};
use super::origin::{Origin, masked};
use super::suggest::nearest;
use super::units::Wrong;

/// Where a layer comes from, and its values.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) source: Source,
    pub(super) values: Table,
}

/// Where a layer comes from.
#[derive(Debug)]
pub(super) enum Source {
    Default,
    File(Box<SourceFile>),
    /// One variable, as it was named.
    Environment(String),
    /// One flag, as it was typed.
    Flag(String),
}

/// What was found wrong so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<Problem>,
    /// Keys that are spoken for: a further complaint about them, or about what is below, would only repeat the first.
    pub(super) settled: Vec<KeyPath>,
}

impl Source {
    /// The place of a key in this layer.
    pub(super) fn origin(&self, path: &KeyPath, end: End) -> Origin {
        match self {
            Self::Default => Origin::Default,
            Self::File(file) => file.origin(path, end),
            Self::Environment(variable) => Origin::Environment(variable.clone()),
            Self::Flag(flag) => Origin::Flag(flag.clone()),
        }
    }

    /// A name that no other layer has.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(file) => Origin::File { path: file.path().to_owned(), position: None }.to_string(),
            other => other.origin(&KeyPath::default(), End::Key).to_string(),
        }
    }
}

impl Findings {
    /// Whether something about the key, or about what it stands in, was said already.
    pub(super) fn speak_of(&self, path: &KeyPath) -> bool {
        self.settled.iter().any(|settled| path.is_within(settled))
    }

    /// Notes a problem.
    pub(super) fn add(&mut self, origin: Origin, path: &KeyPath, wrong: Wrong) {
        self.settled.push(path.clone());
        let Wrong { message, hint } = wrong;
        self.problems.push(Problem { origin, key: Some(path.to_string()), message, hint });
    }
}

impl Layer {
    /// The layer of `values`, without what does not fit.
    pub(super) fn fitting(source: Source, values: Table, whole: &Shape, found: &mut Findings) -> Self {
        let mut fit = Fit { source: &source, whole, found };
        let values = fit.value(Value::Table(values), whole, &KeyPath::default());
        let values = if let Some(Value::Table(values)) = values { values } else { Table::new() };
        Self { source, values }
    }

    /// Without the values where the source has them too.
    pub(super) fn spared(self) -> Self {
        match self.source {
            Source::File(_) => Self { values: Table::new(), ..self },
            Source::Default | Source::Environment(_) | Source::Flag(_) => self,
        }
    }

    /// With its values again. Whatever was wrong with them was told when they were read.
    pub(super) fn again(self, whole: &Shape) -> Self {
        match &self.source {
            Source::File(file) => {
                let values = file.values();
                Self::fitting(self.source, values, whole, &mut Findings::default())
            }
            Source::Default | Source::Environment(_) | Source::Flag(_) => self,
        }
    }
}

struct Fit<'a> {
    source: &'a Source,
    whole: &'a Shape,
    found: &'a mut Findings,
}

impl Fit<'_> {
    /// The value with all that fits, or nothing if it does not fit at all.
    fn value(&mut self, value: Value, shape: &Shape, path: &KeyPath) -> Option<Value> {
        let fits = match (shape, value) {
            (Shape::Section(keys), Value::Table(table)) => return Some(Value::Table(self.table(table, keys, path))),
            (Shape::Map(each), Value::Table(table)) => {
                let fitting = table.into_iter().filter_map(|(key, value)| {
                    let value = self.value(value, each, &path.key(&key))?;
                    Some((key, value))
                });
                return Some(Value::Table(fitting.collect()));
            }
            (Shape::List(each), Value::Array(list)) => return self.list(list, each, path).map(Value::Array),
            (Shape::Words, Value::Array(list)) => return self.list(list, &Shape::Text, path).map(Value::Array),
            (Shape::Text | Shape::Secret | Shape::Size | Shape::Words, value @ Value::String(_))
            | (Shape::Switch, value @ Value::Boolean(_))
            | (Shape::Number | Shape::Size, value @ Value::Integer(0..)) => Ok(value),
            (_, value) => Err(value),
        };
        fits.map_err(|value| {
            let message = match shape {
                Shape::Secret => format!("expected {}", wanted(shape)),
                _ => format!("expected {}, found {}", wanted(shape), described(&value)),
            };
            let wrong = Wrong::new(message, how_to_write(self.source, shape, path));
            self.found.add(self.source.origin(path, End::Value), path, wrong);
        })
        .ok()
    }

    fn table(&mut self, table: Table, keys: &[(&'static str, Shape)], path: &KeyPath) -> Table {
        let mut fitting = Table::new();
        for (key, value) in table {
            let below = path.key(&key);
            if let Some((_, shape)) = keys.iter().find(|(name, _)| *name == key) {
                fitting.extend(self.value(value, shape, &below).map(|value| (key, value)));
            } else {
                let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
                let meant = nearest(&key, names.iter().copied());
                self.found.settled.extend(meant.map(|name| path.key(name)));
                let wrong = Wrong::new("unknown key", did_you_mean(&key, meant, &names, self.whole));
                self.found.add(self.source.origin(&below, End::Key), &below, wrong);
            }
        }
        fitting
    }

    /// The list, or nothing if an element is amiss as a whole: without it the others would change their places.
    fn list(&mut self, list: Vec<Value>, each: &Shape, path: &KeyPath) -> Option<Vec<Value>> {
        let fitting: Vec<_> =
            list.into_iter().enumerate().map(|(i, value)| self.value(value, each, &path.index(i))).collect();
        fitting.into_iter().collect()
    }
}

fn did_you_mean(key: &str, sibling: Option<&str>, siblings: &[&str], whole: &Shape) -> String {
    if let Some(name) = sibling {
        return format!("did you mean `{name}`?");
    }
    // Perhaps the right key in the wrong section.
    let elsewhere = whole.leaves().into_iter().find(|leaf| leaf.tables().last() == Some(&key));
    match elsewhere {
        Some(leaf) => format!("did you mean `{leaf}`?"),
        None => format!("known here: {}", siblings.join(", ")),
    }
}

fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Shape::Section(_) | Shape::Map(_) => "a table",
        Shape::List(each) if matches!(**each, Shape::Section(_)) => "a list of tables",
        Shape::List(_) => "a list of texts",
        Shape::Text | Shape::Secret => "a text",
        Shape::Number => "a whole number, 0 or more",
        Shape::Switch => "true or false",
        Shape::Size => "a size",
        Shape::Words => "a text or a list of texts",
    }
}

fn described(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {:?}", masked(text)),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Boolean(switch) => switch.to_string(),
        Value::Datetime(_) => "a date or time".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

fn how_to_write(source: &Source, shape: &Shape, path: &KeyPath) -> String {
    let in_file = matches!(source, Source::File(_) | Source::Default);
    let hint = match shape {
        Shape::Section(_) | Shape::Map(_) | Shape::List(_) if !in_file => {
            "write a list as `[a, b]`, a table as `{key = value}`"
        }
        Shape::Section(_) | Shape::Map(_) if path.tables().len() == path.steps().len() => {
            return format!("begin a section with `[{path}]` and write its keys below");
        }
        Shape::Section(_) | Shape::Map(_) => "write its keys in braces: `{ name = \"...\", url = \"...\" }`",
        Shape::List(each) if matches!(**each, Shape::Section(_)) => {
            return format!("begin each entry with `[[{path}]]` and write its keys below");
        }
        Shape::List(_) => "write texts in brackets: `[\"a\", \"b\"]`",
        Shape::Words => "write one text in double quotes, or several in brackets: `[\"a\", \"b\"]`",
        Shape::Text | Shape::Secret | Shape::Size => match default_of(path) {
            Some(Value::String(text)) => return format!("write a text in double quotes, such as the default {text:?}"),
            _ => "put it in double quotes",
        },
        Shape::Number => "write digits only, without quotes",
        Shape::Switch => "write true or false, without quotes",
    };
    hint.to_owned()
}

fn default_of(path: &KeyPath) -> Option<Value> {
    let mut at = DEFAULT_TOML.parse::<Table>().map(Value::Table).ok()?;
    for key in path.tables() {
        at = at.get(key)?.clone();
    }
    Some(at)
}
