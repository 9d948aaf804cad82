//! Raw JSON without the meaning that a protocol gives it: splits documents without copies, and
//! rewrites texts where necessary.
//!
//! Reading order: [`text`] scans a text, [`envelope`] splits the outer objects, [`first`] selects
//! the items of a long list, [`node`] is a tree for what must be rewritten; [`budget`] counts the
//! memory of all of it, and [`flaw`] says what is wrong and where.
//!
//! This module never uses the name of a member of a protocol.

pub(super) mod budget;
pub(super) mod envelope;
pub(super) mod first;
pub(super) mod flaw;
pub(super) mod node;
pub(super) mod raw;
pub(super) mod text;
