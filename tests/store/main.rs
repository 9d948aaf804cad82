//! What is stored: kept over restarts, kills, full disks and damage.

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod damage;
mod kept_lists;
mod kept_lists_killed;
mod state;
