//! Which items give way to a new one, where what is not over may take all the room: the oldest of
//! the largest group, so that a group that floods the table displaces itself. Pure.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use super::Taken;

/// An item that takes room until it is over.
pub(in crate::calls) struct GroupMember<'a, K> {
    pub(in crate::calls) id: &'a Arc<str>,
    pub(in crate::calls) group: K,
    pub(in crate::calls) bytes: usize,
    pub(in crate::calls) standing: MemberStanding,
}

/// Whether an item may give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::calls) enum MemberStanding {
    /// It may.
    GivesWay,
    /// Not now. It makes its group larger only for new items of that group.
    Busy,
    /// Never: it takes room, and belongs to its group no more.
    Stays,
}

/// The items of one group.
#[derive(Debug, Default)]
struct WaitingGroup<'a> {
    taken: Taken,
    /// Those that may give way, the oldest first.
    members: VecDeque<WaitingMember<'a>>,
}

#[derive(Debug)]
struct WaitingMember<'a> {
    id: &'a Arc<str>,
    bytes: usize,
    /// Its index among all items.
    index: usize,
}

/// The ids of those that have to give way so that a new item of the group `own`, which takes
/// `new`, fits with all `items` (the oldest first) into `most`; `None` if it cannot.
///
/// A group other than the own one gives way only while it is larger than that with the new item.
pub(in crate::calls) fn giving_way<'a, K: Eq + Hash + Copy>(
    own: K,
    new: Taken,
    items: impl Iterator<Item = GroupMember<'a, K>>,
    most: Taken,
) -> Option<Vec<Arc<str>>> {
    let mut taken = new;
    let mut groups: HashMap<K, WaitingGroup<'a>> = HashMap::new();
    groups.entry(own).or_default().taken = new;
    for (index, item) in items.enumerate() {
        let by_item = Taken::by_one(item.bytes);
        taken = taken.with(by_item);
        let may_give_way = item.standing == MemberStanding::GivesWay;
        if may_give_way || (item.standing == MemberStanding::Busy && item.group == own) {
            let group = groups.entry(item.group).or_default();
            group.taken = group.taken.with(by_item);
            group.members.extend(may_give_way.then_some(WaitingMember { id: item.id, bytes: item.bytes, index }));
        }
    }
    let mut giving_way = Vec::new();
    while !taken.is_within(most) {
        let group = largest(&groups, own, taken.count > most.count)?;
        let group = groups.get_mut(&group)?;
        let oldest = group.members.pop_front()?;
        let by_oldest = Taken::by_one(oldest.bytes);
        group.taken = group.taken.without(by_oldest);
        taken = taken.without(by_oldest);
        giving_way.push(Arc::clone(oldest.id));
    }
    Some(giving_way)
}

/// The group whose oldest member gives way: the largest one, if it is larger than the own one with
/// the new item, else the own one. `None` if that has no member.
fn largest<K: Eq + Hash + Copy>(groups: &HashMap<K, WaitingGroup<'_>>, own: K, by_count: bool) -> Option<K> {
    let own_group = groups.get(&own)?;
    let size = |group: &WaitingGroup<'_>| group.taken.size(by_count);
    let oldest = |group: &WaitingGroup<'_>| group.members.front().map(|member| member.index);
    let others = groups.iter().filter(|(key, group)| **key != own && !group.members.is_empty());
    // Of groups of the same size, the one with the oldest member.
    let other = others.max_by_key(|(_, group)| (size(group), Reverse(oldest(group))));
    match other {
        Some((key, other)) if size(other) > size(own_group) => Some(*key),
        _ => (!own_group.members.is_empty()).then_some(own),
    }
}
