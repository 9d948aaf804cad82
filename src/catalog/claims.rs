//! Who claims which text, looked up by the text: a persistent map in which most texts have one claimant.
//!
//! A fleet of 10,000 scenarios makes 400,000 claims. They stand sorted on shelves of a few dozen that hold not one place more than is
//! taken: in a map of a general kind, whose nodes keep room for what may come, they were the dearest part of a catalog. A change writes
//! the shelves anew that it concerns, so changes are handed in together, and the other shelves are shared with the catalog before.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::resolve::{Claim, Kind, Text};
use crate::model::ToolId;

/// Places on a shelf at most. One that would have more is divided into shelves that are rather half full, so that not each newcomer
/// divides one again.
const FULL: usize = 48;
/// What is left of a shelf of fewer is put onto the one before it, if there is room.
const FEW: usize = 12;

/// All claims. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    /// Each shelf by the first text that may stand on it; it ends where the next one begins.
    shelves: OrdMap<Text, Shelf>,
}

/// Sorted by text, each text once.
type Shelf = Arc<[Place]>;

/// A text with its claimants.
#[derive(Debug, Clone)]
struct Place {
    text: Text,
    claimants: Claimants,
}

/// Nearly every text has one.
#[derive(Debug, Clone)]
enum Claimants {
    One(Kind, ToolId),
    /// By kind, then in order. A crowd that claims one text is not copied for each that joins it.
    More(Arc<OrdSet<(Kind, ToolId)>>),
}

impl Claimants {
    fn iter(&self) -> impl Iterator<Item = (Kind, &ToolId)> {
        let (one, more) = match self {
            Self::One(kind, id) => (Some((*kind, id)), None),
            Self::More(all) => (None, Some(all.iter().map(|(kind, id)| (*kind, id)))),
        };
        one.into_iter().chain(more.into_iter().flatten())
    }

    /// With another one.
    fn with(self, kind: Kind, id: ToolId) -> Self {
        match self {
            Self::One(known, other) if (known, &other) == (kind, &id) => Self::One(known, other),
            Self::One(known, other) => Self::More(Arc::new([(known, other), (kind, id)].into_iter().collect())),
            Self::More(mut all) => {
                Arc::make_mut(&mut all).insert((kind, id));
                Self::More(all)
            }
        }
    }

    /// Without one of them; nothing when it was the last.
    fn without(self, kind: Kind, id: &ToolId) -> Option<Self> {
        match self {
            Self::One(known, other) => ((known, &other) != (kind, id)).then_some(Self::One(known, other)),
            Self::More(mut all) => {
                let rest = Arc::make_mut(&mut all);
                rest.remove(&(kind, id.clone()));
                match (rest.len(), rest.get_min().cloned()) {
                    (1, Some((kind, id))) => Some(Self::One(kind, id)),
                    _ => Some(Self::More(all)),
                }
            }
        }
    }
}

impl Claims {
    /// The claims on a text, by kind, then in order.
    pub(super) fn of(&self, text: Text) -> impl Iterator<Item = (Kind, &ToolId)> {
        self.place(text).into_iter().flat_map(|place| place.claimants.iter())
    }

    /// Whether anything claims a text.
    pub(super) fn has(&self, text: Text) -> bool {
        self.place(text).is_some()
    }

    fn place(&self, text: Text) -> Option<&Place> {
        let (_, row) = self.shelves.get_prev(&text)?;
        row.get(row.binary_search_by_key(&text, |place| place.text).ok()?)
    }

    /// Takes claims back, then enters others.
    pub(super) fn change(&mut self, gone: Vec<Claim>, new: Vec<Claim>) {
        let gone = gone.into_iter().map(|claim| (claim, false));
        let mut changes: Vec<(Claim, bool)> = gone.chain(new.into_iter().map(|claim| (claim, true))).collect();
        // The sort is stable: what is taken back stands before what is entered.
        changes.sort_by_key(|(claim, _)| claim.text);
        let mut changes = changes.into_iter().peekable();
        let mut low = BTreeSet::new();
        while let Some((claim, _)) = changes.peek() {
            let text = claim.text;
            let begin = self.shelves.get_prev(&text).map_or(Text::FIRST, |(begin, _)| *begin);
            let behind = (Bound::Excluded(begin), Bound::Unbounded);
            let end = self.shelves.range(behind).next().map(|(end, _)| *end);
            let old = self.shelves.get(&begin).cloned().unwrap_or_default();
            let places = changed(&old, &mut changes, |text| end.is_none_or(|end| text < end));
            if places.len() < FEW {
                low.insert(begin);
            }
            self.put(begin, places);
        }
        // The last first, so that each is still where it was.
        low.into_iter().rev().for_each(|begin| self.join(begin));
    }

    /// Puts these on the shelf that begins there, and on others behind it if they are too many.
    fn put(&mut self, begin: Text, places: Vec<Place>) {
        if places.is_empty() {
            self.shelves.remove(&begin);
            return;
        }
        if places.len() <= FULL {
            self.shelves.insert(begin, places.into());
            return;
        }
        let each = places.len().div_ceil((places.len() * 3).div_ceil(FULL * 2));
        let (mut places, mut begin) = (places.into_iter(), Some(begin));
        loop {
            let row: Shelf = places.by_ref().take(each).collect();
            let Some(first) = row.first() else { return };
            self.shelves.insert(begin.take().unwrap_or(first.text), row);
        }
    }

    /// Puts what is on a shelf onto the one before it, where there is room.
    fn join(&mut self, begin: Text) {
        let before = (Bound::Unbounded, Bound::Excluded(begin));
        let Some((to, before)) = self.shelves.range(before).next_back() else { return };
        let Some(row) = self.shelves.get(&begin).filter(|row| row.len() + before.len() <= FULL) else { return };
        let (to, joined) = (*to, before.iter().chain(row.iter()).cloned().collect());
        self.shelves.remove(&begin);
        self.shelves.insert(to, joined);
    }
}

/// What stands on a shelf after those of the changes that are for it.
fn changed(
    old: &[Place],
    changes: &mut Peekable<impl Iterator<Item = (Claim, bool)>>,
    is_here: impl Fn(Text) -> bool,
) -> Vec<Place> {
    let (mut places, mut rest) = (Vec::with_capacity(old.len() + 1), old);
    while let Some((Claim { text, kind, id }, enters)) = changes.next_if(|(claim, _)| is_here(claim.text)) {
        let known = rest.partition_point(|place| place.text <= text);
        places.extend_from_slice(&rest[..known]);
        rest = &rest[known..];
        let known = places.pop_if(|place| place.text == text).map(|place| place.claimants);
        let claimants = match (known, enters) {
            (None, true) => Some(Claimants::One(kind, id)),
            (None, false) => None,
            (Some(known), true) => Some(known.with(kind, id)),
            (Some(known), false) => known.without(kind, &id),
        };
        places.extend(claimants.map(|claimants| Place { text, claimants }));
    }
    places.extend_from_slice(rest);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(number: usize) -> Claim {
        // Some texts are claimed by several.
        let id = format!("a/{number}").parse().unwrap();
        Claim { text: Text::of(&format!("{}", number % 1_900)), kind: Kind::Plain, id }
    }

    fn all(claims: &Claims) -> Vec<Claim> {
        let places = claims.shelves.values().flat_map(|row| row.iter());
        let claims = places.flat_map(|place| place.claimants.iter().map(|(kind, id)| (place.text, kind, id.clone())));
        claims.map(|(text, kind, id)| Claim { text, kind, id }).collect()
    }

    #[test]
    fn shelves_hold_what_a_plain_map_holds_and_are_neither_full_nor_empty() {
        let (mut claims, mut plain) = (Claims::default(), BTreeSet::new());
        let mut before = None;
        for round in 0_usize..60 {
            let new: Vec<usize> = (0..2_000).filter(|number| (number * 7 + round).is_multiple_of(11)).collect();
            let gone: Vec<usize> =
                (0..2_000).filter(|number| (number * 5 + round).is_multiple_of(7 + round % 5)).collect();
            claims.change(gone.iter().copied().map(claim).collect(), new.iter().copied().map(claim).collect());
            for number in gone {
                plain.remove(&claim(number));
            }
            plain.extend(new.into_iter().map(claim));
            assert_eq!(all(&claims), plain.iter().cloned().collect::<Vec<_>>());
            for claim in &plain {
                assert!(claims.has(claim.text) && claims.of(claim.text).any(|(_, id)| *id == claim.id));
            }
            assert!(claims.shelves.values().all(|row| (1..=FULL).contains(&row.len())));
            assert!(claims.shelves.len() < 8 + plain.len() / FEW, "{} for {}", claims.shelves.len(), plain.len());
            if let Some((kept, texts)) = before.replace((claims.clone(), all(&claims))) {
                assert_eq!(all(&kept), texts, "what was cloned stays as it was");
            }
        }
        claims.change(all(&claims), Vec::new());
        assert!(claims.shelves.is_empty());
    }
}
