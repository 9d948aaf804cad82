//! `[calls]` and `[turns]`, as they are used. Their keys and rules stand in `keys`.

use std::path::PathBuf;
use std::time::Duration;

use crate::model::Secret;

/// How tools are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallsConfig {
    /// `max_timeout`: the longest that a call may take, whatever its tool says.
    pub max_timeout: Duration,
    /// `max_body`: bytes of an answer.
    pub max_body: usize,
    /// `concurrency`: calls of one scenario under way at once.
    pub concurrency: usize,
    /// `queue`: calls that wait for their turn, of all scenarios together; at most half of
    /// `server.max_connections`.
    pub queue: usize,
    /// `queue_timeout`: how long one waits for its turn.
    pub queue_timeout: Duration,
    /// `retries`: further tries of a call that may be repeated.
    pub retries: u32,
    /// `reroute_wait`: how long a call waits for a connection to its scenario while there is none,
    /// for its tools to be listed after it was away, or after it was refused.
    pub reroute_wait: Duration,
    /// `mcp.wake_timeout`: how long it waits for a program that sleeps to be started and listed.
    pub wake_timeout: Duration,
    /// `breaker_failures`: failures in a row after which a scenario is not called for a while.
    pub breaker_failures: u32,
    /// `breaker_open`: how long that is, until one call tries again.
    pub breaker_open: Duration,
    /// `check_timeout`: how long the check of one call's arguments may wait, and how long it may
    /// run.
    pub check_timeout: Duration,
    /// `check_queue`: checks of arguments that wait at once.
    pub check_queue: usize,
    /// `validators`: schemas of parameters that are kept ready.
    pub validators: usize,
    /// `validators_bytes`: of memory for those, roughly.
    pub validators_bytes: usize,
    /// `require_approval`: the tags whose tools need approval, where no preference says otherwise.
    pub require_approval: Vec<String>,
    /// `unannotated`: the tags that a tool of an MCP server without hints counts as having, for
    /// approval.
    pub unannotated: Vec<String>,
    /// `approval_expiry`: how long a call waits for approval.
    pub approval_expiry: Duration,
    /// `approval_token`: the old name of `server.operator_token`.
    pub approval_token: Option<Secret>,
    /// `input_timeout`: how long a caller has to give input that a tool waits for.
    pub input_timeout: Duration,
    /// `approvals_max`: calls that need approval and are kept, in any state.
    pub approvals_max: usize,
    /// `operations_max`: long-running operations that are kept, in any state.
    pub operations_max: usize,
    /// `kept_bytes`: of the arguments and answers of the ones, and of the results of the others.
    pub kept_bytes: usize,
    /// `keep`: how long what is over is kept at most.
    pub keep: Duration,
    /// `poll_min`: the least time between two polls of one operation.
    pub poll_min: Duration,
    /// `poll_max`: the longest.
    pub poll_max: Duration,
    /// `poll_longest`: how long an operation is polled at most.
    pub poll_longest: Duration,
    /// `usage_interval`: how often what was counted of tools is stored.
    pub usage_interval: Duration,
    /// `tool_metrics`: whether metrics have series of their own for the tools that are called most.
    pub tool_metrics: bool,
    /// `recent`: calls that are over and kept in the log.
    pub recent: usize,
    /// `log_states`: changes of states, ends of programs and starts that are kept in the log.
    pub log_states: usize,
    /// `log_keep`: how long a line of the log is kept.
    pub log_keep: Duration,
    /// `log_payloads`: bytes of the arguments, and of the result, of each call that the log keeps;
    /// 0 keeps none.
    pub log_payloads: usize,
    /// `audit`: the file of the audit log, absolute.
    pub audit: Option<PathBuf>,
    /// `audit_arguments`: whether it holds the arguments themselves.
    pub audit_arguments: bool,
    /// `audit_max_size`: bytes of one file of it.
    pub audit_max_size: u64,
    /// `audit_keep`: earlier files of it that are kept.
    pub audit_keep: usize,
    /// Turns: `[turns]`.
    pub turns: TurnsConfig,
}

impl CallsConfig {
    /// The same where so many connections may be open: calls that wait for their turn leave half of
    /// them to other requests.
    pub(crate) fn within_connections(&self, connections: usize) -> Self {
        Self {
            queue: self.queue.min(connections / 2),
            ..self.clone()
        }
    }
}

/// Turns: `[turns]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnsConfig {
    /// `keep`: how long a turn that is over is kept.
    pub keep: Duration,
    /// `max`: turns that are kept, in any state.
    pub max: usize,
    /// `kept_bytes`: of their calls and results.
    pub kept_bytes: usize,
    /// `max_calls`: calls of one response that are run.
    pub max_calls: usize,
    /// `max_result_bytes`: of one result that a model gets, with its files.
    pub max_result_bytes: usize,
}
