//! One scenario, apart from all others.

pub(super) mod facts;
pub(super) mod lifecycle;
