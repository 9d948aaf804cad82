//! Events: changes of a reader's list, every change of a scenario's state, findings that are added
//! or removed, changes of approvals and operations, and what happens in a call.
//!
//! ```text
//! Snapshot (two of them) -> snapshot_diff --+
//! approvals, operations, calls -------------+-> hub -> topic (one filter, a ring) -> subscription
//! ```
//!
//! What is kept true here:
//!
//! - One task ([`hub`]) publishes. The differences for a filter are computed once, however many
//!   readers it has, and are kept in the ring of that filter ([`topic`]).
//! - A reader ([`subscription`]) is only a position in a ring. So a slow reader costs no more than
//!   its position, and cannot slow the daemon.
//! - A reader whose connection broke resumes at its cursor as long as the ring still has the events
//!   after it; otherwise it gets a snapshot.
//! - A cursor of an earlier process is never taken for one of this: its epoch is another one.
//! - The number of readers is limited. If there is no place left, the oldest stream of the largest
//!   group gives way.
//!
//! Read in this order: `message.rs` (the kinds), `cursor.rs`, `hub.rs`, `snapshot_diff.rs`,
//! `topic.rs`, `subscription.rs`, `places.rs` (which readers give way), `seen.rs` (whose calls a
//! reader may see).
//!
//! Never done here: writing to a socket, deciding what is in a list, judging a scenario. The engine
//! publishes a change of state where it happens, because comparing snapshots would miss the states
//! that last for less than the time between two snapshots.

pub mod cursor;
pub mod hub;
pub mod message;
mod places;
mod seen;
mod snapshot_diff;
mod subscription;
mod topic;

pub use cursor::{Cursor, Epoch};
pub use hub::{Hub, SubscribeError, SubscribeRequest};
pub use message::{CatalogChange, Event, EventType, FindingChange, Form, Message, Overview};
pub use seen::CallsSeen;
pub use subscription::{DisconnectWatch, Ending, Next, Subscription};
