//! The effective values as `config show` prints them. No credential leaves this file unmasked.

use std::path::Path;

use toml::{Table, Value};

use super::Config;
use super::keys::KEYS;
use super::origin::{EffectiveValue, ValueOrigin, masked};
use super::path::KeyPath;
use super::shape::Shape;

/// Every value, in the order of the keys. Paths with a computed default are shown as in `config`:
/// absolute.
pub(super) fn values(
    written: &Table,
    config: &Config,
    origin: &dyn Fn(&KeyPath) -> ValueOrigin,
) -> Vec<EffectiveValue> {
    let text = |path: &Path| Value::String(path.display().to_string());
    let mut shown = Vec::new();
    for key in KEYS {
        let path = KeyPath::dotted(key.path);
        if let Some((value, variable)) = of_proxy_variable(key.path, config) {
            shown.push(EffectiveValue {
                key: key.path.to_owned(),
                value: in_toml(&value),
                origin: ValueOrigin::Environment(variable.to_owned()),
            });
            continue;
        }
        let value = match (key.path, key.shape) {
            ("state.path", _) => Some(text(&config.state.path)),
            ("discovery.vrooli.path", _) => config.discovery.vrooli.path.as_deref().map(text),
            (_, Shape::List(_)) => Some(
                path.find(written)
                    .cloned()
                    .unwrap_or_else(|| Value::Array(Vec::new())),
            ),
            (_, Shape::Map(_)) => Some(
                path.find(written)
                    .cloned()
                    .unwrap_or_else(|| Value::Table(Table::new())),
            ),
            _ => path.find(written).cloned(),
        };
        if let Some(value) = value {
            show(&path, &value, key.shape, origin, &mut shown);
        }
    }
    shown
}

/// What the variables of proxies say where the configuration leaves it to them, and which variable
/// that is.
fn of_proxy_variable(key: &str, config: &Config) -> Option<(Value, &'static str)> {
    let network = &config.network;
    match key {
        "network.proxy" => {
            let proxy = network.proxy.as_ref()?;
            let address = proxy.address.as_ref().ok()?;
            Some((Value::String(address.to_string()), proxy.variable?))
        }
        "network.no_proxy" if network.no_proxy.is_empty() => {
            let hosts = &network.environment_no_proxy;
            let hosts: Vec<Value> = hosts.iter().cloned().map(Value::String).collect();
            (!hosts.is_empty()).then_some((Value::Array(hosts), "NO_PROXY"))
        }
        _ => None,
    }
}

/// Shows a value, or each value in it where it is a table or a list of tables.
fn show(
    path: &KeyPath,
    value: &Value,
    shape: Shape,
    origin: &dyn Fn(&KeyPath) -> ValueOrigin,
    shown: &mut Vec<EffectiveValue>,
) {
    match (shape, value) {
        (Shape::Table(keys), Value::Table(table)) => {
            for (name, shape) in keys {
                if let Some(value) = table.get(*name) {
                    show(&path.key(name), value, *shape, origin, shown);
                }
            }
        }
        (Shape::Map(each), Value::Table(table)) if !table.is_empty() => {
            table
                .iter()
                .for_each(|(name, value)| show(&path.key(name), value, *each, origin, shown));
        }
        (Shape::List(each @ Shape::Table(_)), Value::Array(list)) if !list.is_empty() => {
            list.iter()
                .enumerate()
                .for_each(|(i, value)| show(&path.index(i), value, *each, origin, shown));
        }
        _ => {
            let value = match (shape, value) {
                (Shape::Secret | Shape::Foreign, _) => Value::from("***").to_string(),
                // Often the very reason that a program does not start, and no secret.
                (Shape::SecretOr(_), Value::String(_))
                    if path.to_string().ends_with(".env.PATH") =>
                {
                    in_toml(value)
                }
                (Shape::SecretOr(_), value) => masked_by(shape, value).to_string(),
                // What is run must be shown.
                (Shape::Verbatim | Shape::List(Shape::Verbatim), value) => value.to_string(),
                (_, value) => in_toml(value),
            };
            shown.push(EffectiveValue {
                key: path.to_string(),
                value,
                origin: origin(path),
            });
        }
    }
}

/// What is written for a secret: where it is may be shown, and so must be what is run.
fn masked_by(shape: Shape, value: &Value) -> Value {
    match (shape, value) {
        (Shape::Table(keys) | Shape::SecretOr(keys), Value::Table(table)) => {
            let shape_of = |name: &str| {
                keys.iter()
                    .find(|(key, _)| *key == name)
                    .map_or(Shape::Secret, |(_, shape)| *shape)
            };
            Value::Table(
                table
                    .iter()
                    .map(|(name, value)| (name.clone(), masked_by(shape_of(name), value)))
                    .collect(),
            )
        }
        (Shape::Text, Value::String(text)) => Value::String(masked(text)),
        (Shape::Verbatim | Shape::List(_) | Shape::Words, value) => value.clone(),
        _ => Value::from("***"),
    }
}

/// A value as TOML, with credentials masked.
fn in_toml(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(masked(text)).to_string(),
        Value::Array(list) => format!(
            "[{}]",
            list.iter().map(in_toml).collect::<Vec<_>>().join(", ")
        ),
        other => other.to_string(),
    }
}
