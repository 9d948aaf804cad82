//! The effective values as `config show` tells them.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use toml::{Table, Value};

use super::Config;
use super::key::{KeyPath, Shape};
use super::origin::{Origin, ShownValue, masked};

/// Values that are put together when first looked at.
type Awaited = LazyLock<Vec<ShownValue>, Box<dyn FnOnce() -> Vec<ShownValue> + Send>>;

/// Every effective value, in the order of `config/default.toml`. They are put together when first looked at: a thousand scenarios have
/// thousands of values, and a daemon that starts needs none of them. Cheap to clone.
#[derive(Clone)]
pub struct ShownValues(Arc<Awaited>);

impl ShownValues {
    pub(super) fn new(make: impl FnOnce() -> Vec<ShownValue> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }
}

impl Deref for ShownValues {
    type Target = [ShownValue];

    fn deref(&self) -> &[ShownValue] {
        &self.0
    }
}

/// None at all: of a configuration that a program made.
impl Default for ShownValues {
    fn default() -> Self {
        Self::new(Vec::new)
    }
}

impl fmt::Debug for ShownValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for ShownValues {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Paths that are shown as they were understood: absolute.
pub(super) struct Paths {
    state: PathBuf,
    vrooli: Option<PathBuf>,
}

impl Paths {
    pub(super) fn of(config: &Config) -> Self {
        Self { state: config.state.path.clone(), vrooli: config.discovery.vrooli.path.clone() }
    }
}

/// Every value there is, in the order of the shape.
pub(super) fn values(
    whole: &Shape,
    merged: &Table,
    paths: &Paths,
    origin: impl Fn(&KeyPath) -> Origin,
) -> Vec<ShownValue> {
    let mut shown = Vec::new();
    for leaf in whole.leaves() {
        let path_text = |path: &Path| Value::String(path.display().to_string());
        let value = match leaf.to_string().as_str() {
            "state.path" => Some(path_text(&paths.state)),
            "discovery.vrooli.path" => paths.vrooli.as_deref().map(path_text),
            "modules" | "module_settings.tokens" => {
                Some(at(merged, &leaf).cloned().unwrap_or_else(|| Value::Table(Table::new())))
            }
            "scenarios" | "profiles" => Some(at(merged, &leaf).cloned().unwrap_or_else(|| Value::Array(Vec::new()))),
            _ => at(merged, &leaf).cloned(),
        };
        let mut show = |key: &KeyPath, value: &Value| {
            let secret = matches!(whole.at(key), Some(Shape::Secret));
            let value = if secret { Value::from("***").to_string() } else { in_toml(value) };
            shown.push(ShownValue { key: key.to_string(), value, origin: origin(key) });
        };
        match (&value, whole.at(&leaf)) {
            (Some(Value::Array(list)), Some(Shape::List(each))) if !list.is_empty() && !each.names().is_empty() => {
                for (i, entry) in list.iter().enumerate() {
                    let place = leaf.index(i);
                    for name in each.names() {
                        entry.get(name).into_iter().for_each(|value| show(&place.key(name), value));
                    }
                }
            }
            (Some(Value::Table(table)), Some(Shape::Map(_))) if !table.is_empty() => {
                table.iter().for_each(|(name, value)| show(&leaf.key(name), value));
            }
            (Some(value), _) => show(&leaf, value),
            (None, _) => {}
        }
    }
    shown
}

fn at<'a>(values: &'a Table, path: &KeyPath) -> Option<&'a Value> {
    let keys = path.tables();
    let (last, sections) = keys.split_last()?;
    sections.iter().try_fold(values, |table, key| table.get(*key)?.as_table())?.get(*last)
}

/// A value as TOML, with credentials masked.
fn in_toml(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(masked(text)).to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(in_toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
