//! The stored form of a manifest: one JSON document in the own spelling of the Tool Discovery Protocol, whatever protocol the scenario
//! speaks.
//!
//! What [`write()`] made is read by [`read()`] as an equal manifest, by this and by later versions of the program: an object may get further
//! members, and those that are there keep their names and meanings. A document of another origin is refused, not put right. Whether a
//! manifest that was stored may still be used (its version, how many tools it has) is not judged here.

mod read;
mod write;

pub use read::read;
pub use write::write;
