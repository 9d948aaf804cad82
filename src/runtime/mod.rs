//! What every part needs in one process: the clock, tasks, stopping, signals, watched files, files
//! of sockets, the limit of open files, readiness, the budget of bytes for clients, queues of
//! blocking work, the user that it runs as.
//!
//! This is the only place that reads time ([`clock`]) or spawns tasks ([`tasks`]); `clippy.toml`
//! refuses both elsewhere. It does not know what the tasks do. The only call of C in this crate is
//! in [`memory`].

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
