//! Members of one object that have the same name.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

/// Up to this many members, comparing each with each costs less than hashing their names.
pub(crate) const COMPARED_MAX: usize = 12;

/// Names that were seen. The time for each is bounded, however many there are.
#[derive(Debug)]
pub(crate) struct NameSet<N> {
    compared: Vec<N>,
    hashed: HashSet<N>,
}

impl<N> Default for NameSet<N> {
    fn default() -> Self {
        Self {
            compared: Vec::new(),
            hashed: HashSet::new(),
        }
    }
}

impl<N: Eq + Hash> NameSet<N> {
    /// Adds a name. Returns whether it is a new one.
    pub(crate) fn add(&mut self, name: N) -> bool {
        if self.hashed.is_empty() {
            if self.compared.contains(&name) {
                return false;
            }
            if self.compared.len() < COMPARED_MAX {
                self.compared.push(name);
                return true;
            }
            self.hashed.extend(self.compared.drain(..));
        }
        self.hashed.insert(name)
    }
}

/// Keeps the last one of members with the same name.
pub(crate) fn last_wins<V>(mut members: Vec<(Cow<'_, str>, V)>) -> Vec<(Cow<'_, str>, V)> {
    let mut seen = NameSet::default();
    let is_repeated = members.iter().any(|(name, _)| !seen.add(name.as_ref()));
    if is_repeated {
        let mut seen = NameSet::default();
        members.reverse();
        members.retain(|(name, _)| seen.add(name.to_string()));
        members.reverse();
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_members_counts_however_many_there_are() {
        for others in [0, COMPARED_MAX, 3 * COMPARED_MAX] {
            let mut members = vec![(Cow::Borrowed("a"), 1), (Cow::Borrowed("b"), 2)];
            members.extend((0..others).map(|other| (Cow::Owned(format!("other{other}")), 0)));
            members.push((Cow::Borrowed("a"), 3));
            let kept = last_wins(members);
            assert_eq!(kept.len(), others + 2);
            assert_eq!(kept[0], (Cow::Borrowed("b"), 2));
            assert_eq!(kept[others + 1], (Cow::Borrowed("a"), 3));
        }
    }
}
