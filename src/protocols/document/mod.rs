//! Documents as scenarios send them: their members and items, within limits, and what is wrong with
//! them and where.
//!
//! ```text
//! bytes -> raw text -> envelope: members of the outer objects -> first: N items by name -> decoder
//!                         budget: what is made of them          flaw: pointer, text, next step
//! ```
//!
//! What is kept true here:
//!
//! - The outer objects are split in one pass and without copies. No list of all items is built,
//!   because the sender chooses its length.
//! - Of too many items, the first by name are taken: the same ones in whatever order they came.
//! - What is made of a document is counted. A part that needs more memory than is left is
//!   malformed.
//! - A flaw says where it is, and becomes a finding with that pointer.
//!
//! Read in this order: [`raw`] (one value as text), [`envelope`], [`first`], [`budget`], [`flaw`].
//!
//! This module never uses the name of a member of a protocol.

pub(super) mod budget;
pub(super) mod envelope;
pub(super) mod first;
pub(super) mod flaw;
pub(super) mod raw;
