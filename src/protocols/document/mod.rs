//! Documents as scenarios send them: their members and items, within limits, and what is wrong with
//! them and where.
//!
//! Reading order: [`envelope`] splits the outer objects, [`first`] selects the items of a long
//! list; [`budget`] counts the memory of all that is made of them, and [`flaw`] says what is wrong.
//!
//! This module never uses the name of a member of a protocol.

pub(super) mod budget;
pub(super) mod envelope;
pub(super) mod first;
pub(super) mod flaw;
pub(super) mod raw;
