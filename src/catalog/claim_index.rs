//! Which tools claim which text, looked up by the text. A persistent map, so that each catalog
//! shares what did not change with the one before.
//!
//! Makes no decisions: the rules are in [`super::resolve`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;

use super::name_claim::{ClaimKind, NameClaim, NameHash};
use crate::model::ToolId;

/// All claims. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct ClaimIndex {
    /// By text: its claimants by kind, then in order. Never empty.
    by_text: OrdMap<NameHash, Arc<[(ClaimKind, ToolId)]>>,
}

impl ClaimIndex {
    /// The claims on a text, by kind, then in order.
    pub(super) fn claims_on(&self, text: NameHash) -> impl Iterator<Item = (ClaimKind, &ToolId)> {
        self.by_text
            .get(&text)
            .into_iter()
            .flat_map(|claimants| claimants.iter().map(|(kind, id)| (*kind, id)))
    }

    /// Whether any tool claims a text.
    pub(super) fn has(&self, text: NameHash) -> bool {
        self.by_text.contains_key(&text)
    }

    /// Takes claims back, then enters others. The claimants of a text are written anew once,
    /// however many of them change.
    pub(super) fn change(&mut self, gone: Vec<NameClaim>, new: Vec<NameClaim>) {
        let mut changed: BTreeMap<NameHash, BTreeSet<(ClaimKind, ToolId)>> = BTreeMap::new();
        let known = |text: NameHash| {
            self.by_text
                .get(&text)
                .into_iter()
                .flat_map(|all| all.iter().cloned())
                .collect()
        };
        for NameClaim { text, kind, id } in gone {
            changed
                .entry(text)
                .or_insert_with(|| known(text))
                .remove(&(kind, id));
        }
        for NameClaim { text, kind, id } in new {
            changed
                .entry(text)
                .or_insert_with(|| known(text))
                .insert((kind, id));
        }
        for (text, claimants) in changed {
            if claimants.is_empty() {
                self.by_text.remove(&text);
            } else {
                self.by_text.insert(text, claimants.into_iter().collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn claim(number: usize) -> NameClaim {
        // Some texts are claimed by several.
        let id = format!("a/{number}").parse().unwrap();
        NameClaim {
            text: NameHash::from_text(&format!("{}", number % 1_900)),
            kind: ClaimKind::Plain,
            id,
        }
    }

    fn all(claims: &ClaimIndex) -> Vec<NameClaim> {
        let texts = claims.by_text.iter();
        let claims =
            texts.flat_map(|(text, all)| all.iter().map(|(kind, id)| (*text, *kind, id.clone())));
        claims
            .map(|(text, kind, id)| NameClaim { text, kind, id })
            .collect()
    }

    #[test]
    fn changes_hold_what_a_plain_set_holds_and_leave_clones_as_they_were() {
        let mut claims = ClaimIndex::default();
        let mut plain = BTreeSet::new();
        let mut before = None;
        for round in 0_usize..30 {
            let new: Vec<usize> = (0..2_000)
                .filter(|number| (number * 7 + round).is_multiple_of(11))
                .collect();
            let gone: Vec<usize> = (0..2_000)
                .filter(|number| (number * 5 + round).is_multiple_of(7 + round % 5))
                .collect();
            claims.change(
                gone.iter().copied().map(claim).collect(),
                new.iter().copied().map(claim).collect(),
            );
            for number in gone {
                plain.remove(&claim(number));
            }
            plain.extend(new.into_iter().map(claim));
            assert_eq!(all(&claims), plain.iter().cloned().collect::<Vec<_>>());
            for claim in &plain {
                assert!(
                    claims.has(claim.text)
                        && claims.claims_on(claim.text).any(|(_, id)| *id == claim.id)
                );
            }
            if let Some((kept, texts)) = before.replace((claims.clone(), all(&claims))) {
                assert_eq!(all(&kept), texts);
            }
        }
        claims.change(all(&claims), Vec::new());
        assert_eq!(claims.by_text.len(), 0, "there is nothing in it");
    }
}
