//! What is stored: kept over restarts, kills, full disks and damage.

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod damage;
mod earlier_versions;
mod list_after_kill;
mod state;
