//! The stored form of a manifest: one JSON document in the Tool Discovery Protocol's own spelling,
//! for scenarios of every protocol.
//!
//! A document made by [`write()`] is read by [`read()`] as an equal manifest, by this and by later
//! versions of the program: an object may get further members, and existing members keep their
//! names and meanings. A document of another origin is refused, not corrected. This module does not
//! decide whether a stored manifest may still be used (its version, how many tools it has).

mod read;
mod write;

/// The member with what a scenario offers besides tools.
const RELAYED: &str = "callsheet/relayed";

pub use read::read;
pub use write::write;
