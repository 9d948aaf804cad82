//! The stored preferences, and how many may be kept: operators' ones, and those that clients
//! without the right made, have limits of their own. So such a client never keeps an operator from
//! setting one.

use imbl::{OrdMap, OrdSet};

use crate::engine::error::EngineError;
use crate::model::finding::quoted_excerpt;
use crate::model::{
    Finding, FindingCode, PreferenceAuthor, PreferenceSet, PreferenceTarget, Scope, Settings,
    SettingsPatch,
};
use crate::state::{
    CLIENT_PREFERENCES_MAX, CLIENT_PREFERENCES_OF_SCOPE_MAX, PREFERENCES_MAX, Restored, Write,
};

/// Where a preference stands.
pub(in crate::engine) type PreferenceKey = (Scope, PreferenceTarget);

/// Cheap to clone, so that a change of many is made in a clone and taken over as a whole.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct KeptPreferences {
    set: PreferenceSet,
    /// How many there are.
    count: usize,
    /// The ages of those that clients made.
    ages: OrdMap<PreferenceKey, u64>,
    /// The same by age, the oldest first.
    by_age: OrdSet<(u64, PreferenceKey)>,
    /// How many of them each scope has.
    by_scope: OrdMap<Scope, usize>,
    /// The age of the next one that a client writes.
    next_age: u64,
}

/// The preferences of clients that gave way to newer ones since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine) struct GaveWay {
    count: usize,
    latest: Option<PreferenceKey>,
}

impl GaveWay {
    /// Counts those that gave way.
    pub(in crate::engine) fn add(&mut self, gone: Vec<PreferenceKey>) {
        self.count += gone.len();
        if let Some(latest) = gone.into_iter().next_back() {
            self.latest = Some(latest);
        }
    }

    /// What says so, if any gave way.
    pub(in crate::engine) fn finding(&self) -> Option<Finding> {
        let latest = self.latest.as_ref()?;
        let count = self.count;
        let place = quoted_excerpt(&format!("{} {}", latest.0, latest.1));
        let message = format!(
            "{count} preferences that clients without the operator's token made gave way to newer ones since the start, \
             because none is added beyond {CLIENT_PREFERENCES_MAX}, or {CLIENT_PREFERENCES_OF_SCOPE_MAX} in one scope; \
             the latest was {place}"
        );
        let hint = "see `callsheet prefs list`, and reset what clients made with `callsheet prefs reset --scope 'chat:*'`; \
                    what is set with the operator's token never gives way, but priorities and settings `pinned` in scopes of chats that \
                    an earlier version stored count as those of clients until they are set again";
        Some(Finding::new(FindingCode::PreferencesGaveWay, message).hint(hint))
    }
}

impl KeptPreferences {
    /// What was stored. More than may be kept are kept: only a change that adds one makes room.
    pub(in crate::engine) fn restored(restored: &Restored) -> Self {
        let set = restored.preferences.clone();
        let count = set.iter().count();
        let mut kept = Self {
            set,
            count,
            ..Self::default()
        };
        // A row without any setting is no preference.
        let is_kept = |key: &&PreferenceKey| restored.preferences.get(&key.0, &key.1).is_some();
        for key in restored.client_preferences.iter().filter(is_kept) {
            kept.note_age(key.clone());
        }
        kept
    }

    /// All of them.
    pub(in crate::engine) fn set(&self) -> &PreferenceSet {
        &self.set
    }

    /// Changes settings, and returns how it is stored. One that an operator made or changed stays
    /// an operator's.
    pub(in crate::engine) fn change(
        &mut self,
        key: PreferenceKey,
        patch: &SettingsPatch,
        author: PreferenceAuthor,
    ) -> Write {
        let before = self.set.get(&key.0, &key.1);
        let is_operators = before.is_some() && !self.ages.contains_key(&key);
        let author = if is_operators {
            PreferenceAuthor::Operator
        } else {
            author
        };
        let settings = before.cloned().unwrap_or_default().patched(patch);
        self.put(key.clone(), settings.clone(), author);
        Write::Preference(key.0, key.1, settings, author)
    }

    /// Has preferences of clients give way if this change of `before` added too many to a scope, or
    /// in all: the oldest that are hints only. What disables a tool or requires an approval never
    /// gives way, as that would loosen what its client may not loosen. Nor does one of a profile,
    /// which may make it known, nor what this change wrote.
    ///
    /// # Errors
    ///
    /// There are more than may be kept, and none that may give way.
    pub(in crate::engine) fn make_room(
        &mut self,
        before: &Self,
    ) -> Result<Vec<PreferenceKey>, EngineError> {
        if self.of_operators() > before.of_operators().max(PREFERENCES_MAX) {
            return Err(EngineError::TooManyPreferences);
        }
        // A table that was over a limit before does not grow, and no change takes more from it than
        // it adds: which of its rows are an operator's is not known.
        let of_scope = |scope: &Scope| before.by_scope.get(scope).copied().unwrap_or_default();
        let mut gone = Vec::new();
        for (scope, count) in self.by_scope.clone() {
            let excess =
                count.saturating_sub(of_scope(&scope).max(CLIENT_PREFERENCES_OF_SCOPE_MAX));
            let left = self.give_way(excess, before, |key| key.0 == scope);
            if left.len() < excess {
                return Err(EngineError::TooManyClientPreferencesOfScope(scope));
            }
            gone.extend(left);
        }
        let excess = self
            .ages
            .len()
            .saturating_sub(before.ages.len().max(CLIENT_PREFERENCES_MAX));
        let left = self.give_way(excess, before, |_| true);
        if left.len() < excess {
            return Err(EngineError::TooManyClientPreferences);
        }
        gone.extend(left);
        Ok(gone)
    }

    /// Removes so many of the oldest hints of clients that were there in `before`, if there are as
    /// many.
    fn give_way(
        &mut self,
        count: usize,
        before: &Self,
        may: impl Fn(&PreferenceKey) -> bool,
    ) -> Vec<PreferenceKey> {
        let is_hint = |key: &PreferenceKey| {
            let settings = self.set.get(&key.0, &key.1);
            !matches!(key.0, Scope::Profile(_)) && settings.is_some_and(Settings::is_hint_only)
        };
        let earlier = self
            .by_age
            .iter()
            .take_while(|(age, _)| *age < before.next_age);
        let hints = earlier
            .map(|(_, key)| key)
            .filter(|key| may(key) && is_hint(key));
        let gone: Vec<PreferenceKey> = hints.take(count).cloned().collect();
        for key in &gone {
            self.put(key.clone(), Settings::default(), PreferenceAuthor::Client);
        }
        gone
    }

    fn of_operators(&self) -> usize {
        self.count - self.ages.len()
    }

    fn put(&mut self, key: PreferenceKey, settings: Settings, author: PreferenceAuthor) {
        if let Some(age) = self.ages.remove(&key) {
            self.by_age.remove(&(age, key.clone()));
            self.count_in(&key.0, |count| count.saturating_sub(1));
        }
        self.count -= usize::from(self.set.get(&key.0, &key.1).is_some());
        self.count += usize::from(!settings.is_empty());
        if author == PreferenceAuthor::Client && !settings.is_empty() {
            self.note_age(key.clone());
        }
        self.set.set(key.0, key.1, settings);
    }

    fn note_age(&mut self, key: PreferenceKey) {
        self.by_age.insert((self.next_age, key.clone()));
        match self.ages.insert(key.clone(), self.next_age) {
            Some(earlier) => _ = self.by_age.remove(&(earlier, key)),
            None => self.count_in(&key.0, |count| count + 1),
        }
        self.next_age += 1;
    }

    /// Counts one that a client made in a scope.
    fn count_in(&mut self, scope: &Scope, change: impl Fn(usize) -> usize) {
        match change(self.by_scope.get(scope).copied().unwrap_or_default()) {
            0 => _ = self.by_scope.remove(scope),
            count => _ = self.by_scope.insert(scope.clone(), count),
        }
    }
}
