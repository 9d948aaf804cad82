//! Calls.

pub mod approval;
pub mod desk;
pub mod track;

pub use desk::Desk;
