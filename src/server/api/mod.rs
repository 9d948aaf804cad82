//! The resources of `/api/v1` and of the daemon itself: one file each with its handlers and its
//! answers. Makes no decisions about tools.

pub(super) mod active_calls;
pub(super) mod approvals;
pub(super) mod call_answers;
pub(super) mod call_body;
pub(super) mod call_event_json;
pub(super) mod call_examples;
pub(super) mod call_json;
pub(super) mod calls;
pub(super) mod configured;
pub(super) mod explain;
pub(super) mod findings;
pub(super) mod health;
pub(super) mod history;
pub(super) mod log;
pub(super) mod login;
pub(super) mod lookup;
pub(super) mod metrics;
pub(super) mod operations;
pub(super) mod preferences;
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
