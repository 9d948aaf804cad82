//! Raw JSON, as far as no protocol gives it a meaning: documents taken apart without copies, and texts rewritten where that must be.
//!
//! Reading order: [`text`] looks at a text, [`envelope`] takes the outer objects apart, [`first`] takes the items of a long list, [`node`] is
//! a tree for what must be rewritten; [`budget`] counts what all of it takes, and [`flaw`] says what is wrong and where.
//!
//! Never here: the name of a member that some protocol knows.

pub(super) mod budget;
pub(super) mod envelope;
pub(super) mod first;
pub(super) mod flaw;
pub(super) mod node;
pub(super) mod raw;
pub(super) mod text;
