//! Changes as they happen, told to everyone who follows: what an asker's list gained and lost, every change of a scenario's state,
//! findings that come and go; and what becomes of calls that wait for a yes or go on.
//!
//! One task ([`hub`]) compares each snapshot with the one before it. What differs for a filter is found once, however many follow it, and
//! is kept in that filter's ring ([`topic`]); a reader ([`subscription`]) is no more than a place in a ring. So a reader that does not
//! keep up costs nothing but its place, and one that was cut off resumes where it was, as long as the ring still has that.
//!
//! Never done here: writing to a socket, deciding what is in a list, judging a scenario. A change of state is told by the engine where it
//! is made; comparing snapshots would miss those that come and go between two.

pub mod cursor;
pub mod hub;
pub mod message;
mod snapshot_diff;
mod subscription;
mod topic;

pub use cursor::{Cursor, Epoch};
pub use hub::{Hub, SubscribeError, SubscribeRequest};
pub use message::{CatalogChange, Event, EventType, FindingChange, Form, Message, Overview};
pub use subscription::{DisconnectWatch, Ending, Next, Subscription};
