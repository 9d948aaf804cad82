//! The names of profiles that lists refused, for one finding that shows typing errors.
//!
//! The names are chosen by clients, so they are few, short and without control characters, and they
//! are kept in memory only: a refusal writes and publishes nothing.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::catalog::{Catalog, ViewQuery};
use crate::model::{Finding, FindingCode};

/// The most names that are kept; a further one takes the place of the oldest.
const NAMES_MAX: usize = 20;
/// The most characters of a name that are kept. A name is shown to find a typing error, and a long
/// text may be something else that a client sent by mistake.
const NAME_CHARS_MAX: usize = 40;

/// The last refused names, each once, oldest first.
#[derive(Debug, Default)]
pub(in crate::server) struct RefusedProfiles(Mutex<VecDeque<String>>);

impl RefusedProfiles {
    /// Keeps a name.
    pub(in crate::server) fn add(&self, name: &str) {
        let kept = excerpt(name);
        let mut names = self.0.lock();
        if names.contains(&kept) {
            return;
        }
        if names.len() == NAMES_MAX {
            names.pop_front();
        }
        names.push_back(kept);
    }

    /// The finding about the names that are still unknown, if there are any.
    pub(in crate::server) fn finding(&self, catalog: &Catalog) -> Option<Finding> {
        let kept = self.0.lock();
        let mut names: Vec<String> = kept.iter().cloned().collect();
        drop(kept);
        names.retain(|name| {
            let query = ViewQuery {
                profile: Some(name.clone()),
                ..ViewQuery::default()
            };
            catalog.unknown_profile(&query).is_some()
        });
        if names.is_empty() {
            return None;
        }
        names.sort();
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "lists were refused to clients with unknown profiles: {}",
            quoted.join(", ")
        );
        let hint = "correct the name in the client, add it as `[[profiles]]` to the configuration, or, where none is \
                    configured, set a preference in its scope";
        Some(Finding::new(FindingCode::ProfileUnknown, message).hint(hint))
    }
}

/// The beginning of a name, without control characters.
fn excerpt(name: &str) -> String {
    let shown = name.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept: String = shown.take(NAME_CHARS_MAX).collect();
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        kept.push_str("...");
    }
    kept
}
