//! The names that no list has any more, with what became of them.
//!
//! `explain` answers for them, also when the lists that had them are not remembered any more. Pure:
//! the publisher gives the time. It has a bound: of too many, the latest are remembered.

use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use jiff::Timestamp;

use super::{Catalog, CatalogEntry, Visibility};
use crate::model::{NameRef, PublishedName, ScenarioName, ToolId};

/// Names remembered at most.
pub const FORMER_NAMES_MAX: usize = 4096;

/// The names that were published and are not any more. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FormerNames {
    names: OrdMap<Arc<str>, Arc<FormerName>>,
    /// No name went before this time.
    oldest: Option<Timestamp>,
    /// How long a name is remembered.
    kept_for: Duration,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub struct FormerName {
    /// The name.
    pub name: PublishedName,
    /// The tool that had it.
    pub id: ToolId,
    /// Since when no list has it.
    pub since: Timestamp,
    /// What became of it, in one clause without a full stop.
    pub cause: Arc<str>,
}

impl FormerNames {
    /// Remembers names for this long.
    pub fn keeping(kept_for: Duration) -> Self {
        Self {
            kept_for,
            ..Self::default()
        }
    }

    /// Sets how long a name is remembered.
    pub(crate) fn keep_for(&mut self, kept_for: Duration) {
        self.kept_for = kept_for;
    }

    /// `before` gives way to `after`: remembers the names that go, and no longer those that come.
    pub fn note(&mut self, before: &Catalog, after: &Catalog, now: Timestamp) {
        for change in before.entries.diff(&after.entries) {
            match change {
                DiffItem::Add(_, new) => self.return_names(new),
                DiffItem::Remove(name, old) => self.remove_scenario(name, old, now),
                DiffItem::Update {
                    old: (_, old),
                    new: (_, new),
                } => {
                    self.return_names(new);
                    if old.is_published() {
                        self.replace(old, new, now);
                    }
                }
            }
        }
        self.trim(now.checked_sub(self.kept_for).unwrap_or(Timestamp::MIN));
    }

    /// Forgets those that went before `until`, and of too many the first that went.
    fn trim(&mut self, until: Timestamp) {
        if self.oldest.is_none_or(|oldest| oldest >= until) && self.names.len() <= FORMER_NAMES_MAX
        {
            return;
        }
        let mut kept: Vec<_> = self
            .names
            .values()
            .filter(|former| former.since >= until)
            .cloned()
            .collect();
        kept.sort_by_key(|former| std::cmp::Reverse(former.since));
        kept.truncate(FORMER_NAMES_MAX);
        self.oldest = kept.last().map(|former| former.since);
        self.names = kept
            .into_iter()
            .map(|former| (Arc::from(former.name.as_str()), former))
            .collect();
    }

    /// The tool that had this published name, identity or original name; the latest of several.
    pub fn find(&self, name: &str) -> Option<&FormerName> {
        if let Some(former) = self.names.get(name) {
            return Some(former);
        }
        let wanted = NameRef::parse(name);
        let fits = |former: &&Arc<FormerName>| match &wanted {
            NameRef::Id(id) => former.id == *id,
            NameRef::Bare(name) => *former.id.tool == **name,
        };
        self.names
            .values()
            .filter(fits)
            .max_by_key(|former| former.since)
            .map(AsRef::as_ref)
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names of a scenario whose tools were listed, and are replaced.
    fn replace(&mut self, old: &CatalogEntry, new: &CatalogEntry, now: Timestamp) {
        let hidden: Option<Arc<str>> = match &new.visibility {
            Visibility::Published => None,
            Visibility::Withdrawn(why) => Some(format!("{} is withdrawn: {why}", new.name).into()),
            Visibility::Hidden(why) => Some(format!("{} is hidden: {why}", new.name).into()),
        };
        for tool in old.tools.iter() {
            let cause = match (&hidden, new.tool(&tool.id.tool)) {
                (_, None) => new.held_reason(&tool.id.tool).map_or_else(
                    || format!("scenario {} does not offer it any more", new.name).into(),
                    Arc::from,
                ),
                (Some(hidden), Some(_)) => Arc::clone(hidden),
                (None, Some(now)) if now.name != tool.name => {
                    format!("it is published as `{}` now", now.name).into()
                }
                (None, Some(_)) => continue,
            };
            self.insert(FormerName {
                name: tool.name.clone(),
                id: tool.id.clone(),
                since: now,
                cause,
            });
        }
    }

    /// The names of a scenario that is not known any more. Those that no list had before keep their
    /// time.
    fn remove_scenario(&mut self, name: &ScenarioName, old: &CatalogEntry, now: Timestamp) {
        let cause: Arc<str> = format!("scenario {name} is not known any more").into();
        let known: Vec<_> = self
            .names
            .values()
            .filter(|former| former.id.scenario == *name)
            .cloned()
            .collect();
        let latest = |(name, id): (PublishedName, ToolId), since| FormerName {
            name,
            id,
            since,
            cause: cause.clone(),
        };
        for former in known {
            self.insert(latest(
                (former.name.clone(), former.id.clone()),
                former.since,
            ));
        }
        if matches!(old.visibility, Visibility::Hidden(_)) {
            // These have no published names.
            return;
        }
        for tool in old.tools.iter() {
            if !self.names.contains_key(tool.name.as_str()) {
                self.insert(latest((tool.name.clone(), tool.id.clone()), now));
            }
        }
    }

    /// Names that a list has are not former ones.
    fn return_names(&mut self, entry: &CatalogEntry) {
        if !self.names.is_empty() && entry.is_published() {
            for tool in entry.tools.iter() {
                self.names.remove(tool.name.as_str());
            }
        }
    }

    fn insert(&mut self, former: FormerName) {
        self.oldest = Some(
            self.oldest
                .map_or(former.since, |oldest| oldest.min(former.since)),
        );
        self.names
            .insert(former.name.as_str().into(), Arc::new(former));
    }
}
