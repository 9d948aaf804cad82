//! The way from the root of a configuration to a value. Whether a key exists is not known here.

use std::fmt;

use toml::{Table, Value};

/// The way from the root of a configuration to a value, written `scenarios[1].url`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyPath(Vec<PathStep>);

/// One step of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into a table.
    Key(String),
    /// Into a list, counted from 0.
    Index(usize),
}

impl KeyPath {
    /// The path of a dotted key such as `server.listen`.
    pub(super) fn dotted(text: &str) -> Self {
        Self(
            text.split('.')
                .map(|part| PathStep::Key(part.to_owned()))
                .collect(),
        )
    }

    /// The path one key further.
    pub(super) fn key(&self, key: &str) -> Self {
        self.with(PathStep::Key(key.to_owned()))
    }

    /// The path one list index further.
    pub(super) fn index(&self, index: usize) -> Self {
        self.with(PathStep::Index(index))
    }

    /// The path one step further.
    fn with(&self, step: PathStep) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The steps from the root.
    pub(super) fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Whether `self` is `other` or lies below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The keys from the root to the value, or to the list that holds it.
    pub(super) fn tables(&self) -> Vec<&str> {
        self.0
            .iter()
            .map_while(|step| {
                if let PathStep::Key(key) = step {
                    Some(key.as_str())
                } else {
                    None
                }
            })
            .collect()
    }

    /// The value at this path of tables.
    pub(super) fn find<'a>(&self, values: &'a Table) -> Option<&'a Value> {
        let keys = self.tables();
        let (first, below) = keys.split_first()?;
        below
            .iter()
            .try_fold(values.get(*first)?, |value, key| value.get(key))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Key(key) => {
                    let bare = !key.is_empty()
                        && key
                            .bytes()
                            .all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
                    f.write_str(if i == 0 { "" } else { "." })?;
                    if bare {
                        f.write_str(key)?;
                    } else {
                        write!(f, "{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
