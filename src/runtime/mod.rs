//! What every part needs in one process: the clock, tasks, stopping, signals, watched files, files
//! of sockets, the limit of open files, readiness, the budget of bytes for clients, queues of
//! blocking work, the user that it runs as.
//!
//! What is kept true here:
//!
//! - This is the only place that reads time ([`clock`]) or spawns tasks ([`tasks`]); `clippy.toml`
//!   refuses both elsewhere.
//! - A deadline is monotonic. Wall time is for display and for what other machines wrote.
//! - Tasks that are spawned through [`Tasks`] are waited for at the stop, up to a deadline.
//! - A reservation of bytes never waits: without room it is refused at once. A queue of work has a
//!   limit, and refuses what is beyond it.
//! - The only calls of C in this crate are in [`memory`].
//!
//! Read in this order:
//!
//! 1. `clock.rs`, `tasks.rs`, `stop.rs`, `signal.rs`, `ready.rs`, `service.rs`: the life of a
//!    process.
//! 2. `byte_budget.rs`, `work_queue.rs`: what clients may take.
//! 3. `files.rs`, `file_stamp.rs`, `open_files.rs`, `socket_file.rs`, `user.rs`: the system.
//! 4. `fields.rs` (names in the log), `memory.rs`.
//!
//! It does not know what the tasks do.

pub mod byte_budget;
pub mod clock;
pub mod fields;
pub(crate) mod file_stamp;
pub mod files;
pub mod memory;
pub mod open_files;
pub mod ready;
pub mod service;
pub mod signal;
#[cfg(unix)]
pub mod socket_file;
pub mod stop;
pub mod tasks;
#[cfg(unix)]
pub(crate) mod user;
pub mod work_queue;

pub use byte_budget::{
    AnswerBudget, AnswerBytes, BudgetExceeded, ByteBudget, ReservedBytes, SharedReservation,
};
pub use clock::Clock;
pub use ready::{Latch, Readiness};
pub use stop::{Stop, StopTrigger};
pub use tasks::Tasks;
pub use work_queue::{QueueFull, WorkQueue, WorkTurn};
