//! The table of what is kept of calls: approvals, operations, turns, and answers for callers that
//! gave input.
//!
//! ```text
//! Keepable (id, weight, end) -> KeptTable (pure): room, deadlines, groups
//!                                 `-> KeptRegister: lock, waiting (KeptChanges), store, time
//! ```
//!
//! What is kept true here:
//!
//! - A table keeps so many items and bytes.
//! - What is over makes room for new items, the one that ended first goes first, and is forgotten
//!   some time after its end.
//! - What is not over stays, unless a kind has groups of which the largest one gives way
//!   ([`groups`]).
//! - An end is final. A change of an item wakes those that wait for it.
//! - [`KeptTable`] reads no clock and waits for no store; [`KeptRegister`] does.
//!
//! Read in this order: this file ([`Keepable`]), `table.rs`, `taken.rs` (room), `deadlines.rs`,
//! `groups.rs` (which items give way), `shared.rs` ([`KeptRegister`]), `changes.rs`.
//!
//! Never done here: states, decisions, what an item is bound to, and when it is stored. Those are
//! rules of each kind.

mod changes;
mod deadlines;
mod groups;
mod shared;
mod table;
mod taken;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::state::Write;

pub(super) use changes::KeptChanges;
pub(super) use deadlines::KeptDeadline;
pub(super) use groups::{
    GivingWay, GivingWayCause, GroupBounds, GroupMember, GroupPath, GroupRoom, MemberStanding,
    NewMember,
};
pub(super) use shared::KeptRegister;
pub(super) use table::{Admission, KeptTable, held_bytes};
pub(super) use taken::Taken;

/// What a table keeps.
pub(super) trait Keepable {
    /// The id under which it is found.
    fn id(&self) -> &Arc<str>;

    /// The bytes of its texts.
    fn weight(&self) -> usize;

    /// Whether it is over. An end is final.
    fn is_over(&self) -> bool;

    /// When it was over, if that is known. Without that, it is not forgotten for its age.
    fn ended_at(&self) -> Option<Timestamp> {
        None
    }

    /// When it ends by itself, as long as it does; `None` for kinds without deadlines.
    fn deadline(&self) -> Option<KeptDeadline> {
        None
    }

    /// What wakes those that wait for it.
    fn changes(&self) -> &KeptChanges;

    /// A text that it shares with those that are like it, which are found together.
    fn likeness(&self) -> Option<&Arc<str>> {
        None
    }

    /// Its groups, as long as it takes room there; `None` for kinds without groups.
    fn member(&self) -> Option<GroupMember> {
        None
    }

    /// What deletes it from the store; `None` if it was not stored.
    fn deletion(&self) -> Option<Write> {
        None
    }

    /// Whether it gave way to another item while it waited, or does so now. Then it is kept besides
    /// the others for a while, so that its caller learns why.
    fn gave_way(&self) -> bool {
        false
    }

    /// It is not kept any longer, although others may still hold it.
    fn release(&self) {}
}

/// How much a table keeps, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptLimits {
    /// How many items, in any state.
    pub(super) most: usize,
    /// How many bytes, in any state.
    pub(super) bytes: usize,
    /// How long an item is kept after its end.
    pub(super) keep: Duration,
}
