//! The resources of `/api/v1` and of the daemon itself: one file each with its handlers and its
//! answers. Makes no decisions about tools.
//!
//! A handler has four steps: read the query or the body into its type, take the snapshot or the
//! part that decides, have it decide, write the answer as a type of its own. Examples: `health.rs`,
//! which only reads, and `state.rs`, which changes something.
//!
//! What is kept true here:
//!
//! - The types of bodies and answers are those that `/openapi.json` describes. Lists of tools are
//!   written by hand for speed, and tests compare them with their described types.
//! - Schemas, arguments and results are passed on byte for byte (`RawJson`).
//! - A call under way or an operation that belongs to another access is unknown here. Operators see
//!   all of them.
//! - `preferences.rs` is the only handler that hands changes of preferences to the engine: there it
//!   is judged whether a change loosens.
//! - Times are RFC 3339 in UTC, and an unknown value is `null`.
//!
//! Read in this order:
//!
//! 1. `shared_json.rs` (shapes of several routes), `health.rs`, `state.rs`, `scenarios.rs`.
//! 2. Tools: `tools.rs` (the list), `lookup.rs` (names), `explain.rs`, `history.rs`, `search.rs`,
//!    `findings.rs`, `refused_profiles.rs`.
//! 3. Calls: `call_body.rs`, `calls.rs`, `call_answers.rs`; then `active_calls.rs`,
//!    `recent_calls.rs`, `approvals.rs` and `operations.rs` with their shapes in `call_json.rs`,
//!    `call_event_json.rs` and `call_examples.rs`; `turns.rs` with `turn_json.rs` and
//!    `turn_examples.rs`.
//! 4. Settings and running: `preferences.rs`, `profiles.rs`, `definitions.rs`, `configured.rs`,
//!    `login.rs`, `log.rs`, `metrics.rs`.

pub(super) mod active_calls;
pub(super) mod approvals;
pub(super) mod call_answers;
pub(super) mod call_body;
pub(super) mod call_event_json;
pub(super) mod call_examples;
pub(super) mod call_json;
pub(super) mod calls;
pub(super) mod configured;
pub(super) mod definitions;
pub(super) mod explain;
pub(super) mod findings;
pub(super) mod health;
pub(super) mod history;
pub(super) mod log;
pub(super) mod login;
pub(super) mod lookup;
pub(super) mod metrics;
pub(super) mod operations;
pub(super) mod pins;
pub(super) mod preferences;
pub(super) mod profiles;
pub(super) mod program_costs;
pub(super) mod recent_calls;
pub(super) mod refused_profiles;
pub(super) mod scenarios;
pub(super) mod search;
pub(super) mod shared_json;
pub(super) mod state;
pub(super) mod tools;
pub(super) mod turn_examples;
pub(super) mod turn_json;
pub(super) mod turns;
