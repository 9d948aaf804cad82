//! Puts the merged values into a configuration, and checks the rules between keys. Knows no layers.

use std::time::Duration;

use toml::Table;

use super::Config;
use super::keys::{ConfigKey, KEYS};
use super::path::KeyPath;
use super::profiles;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::{RuleViolation, Surroundings, ValueReader};
use crate::model::RenamedKey;

/// Puts every written value that keeps its rules into `config`, and complains about the others.
pub(super) fn apply(
    written: &Table,
    config: &mut Config,
    surroundings: Surroundings<'_>,
) -> Vec<RuleViolation> {
    let mut complaints = Vec::new();
    // Lists of tables and tables with any keys come last, because their rules look at other keys.
    let (last, first): (Vec<&ConfigKey>, Vec<&ConfigKey>) = KEYS
        .iter()
        .partition(|key| matches!(key.shape, Shape::List(Shape::Table(_)) | Shape::Map(_)));
    for key in first.into_iter().chain(last) {
        let path = KeyPath::dotted(key.path);
        let value = path.find(written);
        (key.read)(
            &mut ValueReader {
                path,
                value,
                surroundings,
                violations: &mut complaints,
            },
            config,
        );
    }
    let Config { refresh, calls, .. } = config;
    ordered(
        "refresh",
        ("min_interval", refresh.min_interval),
        ("max_interval", refresh.max_interval),
        &mut complaints,
    );
    ordered(
        "refresh",
        ("backoff_base", refresh.backoff_base),
        ("backoff_max", refresh.backoff_max),
        &mut complaints,
    );
    ordered(
        "calls",
        ("poll_min", calls.poll_min),
        ("poll_max", calls.poll_max),
        &mut complaints,
    );
    complaints.extend(profiles::unknown_default(config).map(|wrong| {
        let path = KeyPath::dotted("permissions.default_profile");
        RuleViolation {
            path,
            other: None,
            wrong,
        }
    }));
    complaints.extend(config.contradicting_keys().into_iter().map(contradiction));
    complaints
}

/// A key has one value under its old name and another one under its new name.
fn contradiction(key: RenamedKey) -> RuleViolation {
    let RenamedKey { old, new } = key;
    let wrong = ValueError::new(
        format!("it is the old name of `{new}`, which has another value"),
        format!("take `{old}` out, and keep `{new}`"),
    );
    RuleViolation {
        path: KeyPath::dotted(old),
        other: Some(KeyPath::dotted(new)),
        wrong,
    }
}

/// Complains if the first duration of a section is longer than the second one.
fn ordered(
    section: &str,
    low: (&str, Duration),
    high: (&str, Duration),
    complaints: &mut Vec<RuleViolation>,
) {
    if low.1 > high.1 {
        let section = KeyPath::dotted(section);
        let message = format!(
            "{} ({:?}) is longer than {} ({:?})",
            low.0, low.1, high.0, high.1
        );
        let wrong = ValueError::new(message, format!("lower {} or raise {}", low.0, high.0));
        complaints.push(RuleViolation {
            path: section.key(low.0),
            other: Some(section.key(high.0)),
            wrong,
        });
    }
}
