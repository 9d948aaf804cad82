//! Selects the items of a list when there are too many: the first ones by name.
//!
//! Not the first ones in the list: scenarios send their tools in another order each time, so the
//! selection would change with each answer. However long a list is, only the selected items are
//! kept in memory. Items without a name are not counted as selected.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::envelope::{each_item, own_text};
use super::flaw::Flaw;
use super::raw::Raw;
use crate::model::TOOL_NAME_MAX;

/// One item. Items are ordered by name; items with the same name by their position in the list.
#[derive(Debug)]
pub(in crate::protocols) struct NamedItem<'a> {
    /// The name that the item gives itself.
    name: Cow<'a, str>,
    /// Its index in the list.
    pub(in crate::protocols) index: usize,
    /// The whole item.
    pub(in crate::protocols) raw: Raw<'a>,
}

/// The selected items of a list.
#[derive(Debug)]
pub(in crate::protocols) struct FirstByName<'a> {
    /// The items in their order.
    pub(in crate::protocols) items: Vec<NamedItem<'a>>,
    /// How many items with a name were left out.
    pub(in crate::protocols) beyond: usize,
    /// How many items the whole list has.
    pub(in crate::protocols) total: usize,
}

impl<'a> FirstByName<'a> {
    /// Selects the first `most` items, ordered by the text of their `member`. Items without that
    /// text are passed to `nameless` with their index.
    pub(in crate::protocols) fn select(
        member: &str,
        list: Raw<'a>,
        most: usize,
        mut nameless: impl FnMut(usize, Raw<'a>),
    ) -> Result<Self, Flaw> {
        // The last of the selected items is on top.
        let mut taken = BinaryHeap::new();
        let mut beyond = 0;
        let total = each_item(list, |index, raw| {
            let Some(name) = own_text(raw, member) else {
                return nameless(index, raw);
            };
            let item = NamedItem { name, index, raw };
            if taken.len() < most {
                taken.push(item);
                return;
            }
            beyond += 1;
            if let Some(mut last) = taken.peek_mut().filter(|last| item < **last) {
                *last = item;
            }
        });
        let total = total.map_err(|found| Flaw::kind("", found, "a list"))?;
        let mut items = taken.into_sorted_vec();
        items.shrink_to_fit();
        Ok(Self {
            items,
            beyond,
            total,
        })
    }
}

impl NamedItem<'_> {
    /// The item's name, if it can be the name of a tool.
    pub(in crate::protocols) fn tool_name(&self) -> Option<&str> {
        Some(&*self.name).filter(|name| (1..=TOOL_NAME_MAX).contains(&name.len()))
    }
}

impl Ord for NamedItem<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name
            .cmp(&other.name)
            .then(self.index.cmp(&other.index))
    }
}

impl PartialOrd for NamedItem<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NamedItem<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for NamedItem<'_> {}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    /// The selected items, how many are left out, and the indices of those without a name.
    fn first(list: &str, most: usize) -> (Vec<(String, usize)>, usize, Vec<usize>) {
        let raw: &RawValue = serde_json::from_str(list).unwrap();
        let mut nameless = Vec::new();
        let first = FirstByName::select("name", Raw::from_raw_value(raw), most, |index, _| {
            nameless.push(index);
        })
        .unwrap();
        assert_eq!(
            first.total,
            first.items.len() + first.beyond + nameless.len()
        );
        let named = |item: NamedItem<'_>| (item.name.into_owned(), item.index);
        (
            first.items.into_iter().map(named).collect(),
            first.beyond,
            nameless,
        )
    }

    #[test]
    fn the_first_by_name_are_taken_in_whatever_order_they_are_sent() {
        let sent = r#"[{"name":"c"},{"name":"a"},{"name":"b","name":"d"},{"n\u0061me":"\u0061"},{"name":"b"}]"#;
        let order = [("a", 1), ("a", 3), ("b", 4), ("c", 0), ("d", 2)]
            .map(|(name, at)| (name.to_owned(), at));
        for most in 0..=order.len() {
            assert_eq!(
                first(sent, most),
                (order[..most].to_vec(), order.len() - most, Vec::new())
            );
        }
        assert_eq!(first(sent, 100), (order.to_vec(), 0, Vec::new()));
    }

    #[test]
    fn items_without_a_name_are_not_selected_and_other_kinds_are_refused() {
        let sent = r#"[7,{"name":1},{"name":"b"},{"name":"\ud800"},{"\ud800":0,"name":"b"},[],{"name":"a"}]"#;
        assert_eq!(
            first(sent, 1),
            (vec![("a".to_owned(), 6)], 1, vec![0, 1, 3, 4, 5])
        );
        let raw: &RawValue = serde_json::from_str("{}").unwrap();
        assert_eq!(
            FirstByName::select("name", Raw::from_raw_value(raw), 9, |_, _| {})
                .unwrap_err()
                .what,
            "is an object, not a list"
        );
    }
}
