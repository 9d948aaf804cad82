//! What is counted, and how it is written for Prometheus.
//!
//! Each part of callsheet owns a plain handle of its own kind and counts into it: one relaxed atomic addition, no lock, no allocation.
//! Nothing is known here of who counts, and nobody reads a count but the server's route, which adds what it derives from the latest
//! snapshot and lets [`write()`] turn all of it into text. Every label has a fixed set of values but the name of a scenario, whose number
//! is bounded by `refresh.max_scenarios`, and, where `calls.tool_metrics` asks for it, those of the tools that are called most.
//!
//! Never done here: reading clocks or snapshots, deciding anything. The names of metrics are an interface: dashboards and alert rules
//! (`config/`) use them, and a test holds the two together.

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
