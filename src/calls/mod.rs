//! Calls.

pub mod approval;
pub mod track;
