//! The counters of the daemon, and the text formats of `/metrics`.
//!
//! ```text
//! a part counts -> its handle (Fetches, Requests, ...) --families()--+
//! the latest snapshot -> gauges of server/api/metrics.rs ------------+-> write() -> text
//! ```
//!
//! What is kept true here:
//!
//! - Each part of callsheet owns a handle of its own type and counts with it: one relaxed atomic
//!   addition, no lock, no allocation. The counters do not know which part counts.
//! - Only the server's route reads them; it adds metrics from the latest snapshot and writes them
//!   all with [`write()`].
//! - Every label has a fixed set of values, except the name of a scenario, whose number is limited
//!   by `refresh.max_scenarios`, and, with `calls.tool_metrics`, the names of the most called
//!   tools.
//! - The names of metrics are an interface: dashboards and alert rules (`config/`) use them, and a
//!   test checks that both match.
//!
//! Read in this order: `family.rs` (one metric), `counter_vec.rs` and `histogram.rs` (the kinds of
//! counters), then the handles: `requests.rs`, `views.rs`, `events.rs`, `fetches.rs`,
//! `listings.rs`, `calls.rs`, `audit.rs`, `config.rs`, `process.rs`; last `text.rs`.
//!
//! This module never reads clocks or snapshots and makes no decisions.

pub mod audit;
pub mod calls;
pub mod config;
pub mod counter_vec;
pub mod events;
pub mod family;
pub mod fetches;
pub mod histogram;
pub mod listings;
pub mod process;
pub mod requests;
pub mod text;
pub mod views;

pub use audit::AuditCounts;
pub use calls::CallCounts;
pub use config::ConfigLoads;
pub use counter_vec::CounterVec;
pub use events::EventCounts;
pub use family::{Family, MetricKind, MetricValue, Sample};
pub use fetches::Fetches;
pub use histogram::DurationHistogram;
pub use listings::Listings;
pub use requests::Requests;
pub use text::{Style, write};
pub use views::ViewCounts;
