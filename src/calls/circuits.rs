//! The circuit breakers of one scenario: its own, and one for each tool that failed.
//!
//! A call that did not reach the scenario counts for the scenario. One that reached it and got no
//! answer in time, or none that can be used, counts for its tool, so that one tool that always
//! fails does not take away the others. A failure that a tool reports counts for neither: the tool
//! works. Pure: time is an argument. Never decides what is tried again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::breaker::{
    BreakerState, BreakerStatus, CircuitBreaker, ClockReading, ToolBreakerStatus,
};
use super::{ExecuteError, FailureCode};
use crate::config;
use crate::model::ToolId;
use crate::protocols::{CallError, Outcome};

/// So many tools of a scenario have a breaker of their own. Beyond that the one that matters least
/// is forgotten: a closed one before an open one, and then the oldest.
const TOOL_BREAKERS_MAX: usize = 256;

/// How an attempt to call a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// The tool answered.
    Answered,
    /// The call did not reach the scenario.
    NotReached(FailureCode),
    /// The call reached the scenario, and there is no answer or none that can be used.
    Failed(FailureCode),
}

/// How many breakers are not closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenCircuits {
    /// Those of scenarios.
    pub scenarios: usize,
    /// Those of tools.
    pub tools: usize,
}

/// The breakers of one scenario.
#[derive(Debug)]
pub(super) struct ScenarioCircuits {
    scenario: CircuitBreaker,
    /// Those of tools that failed since they last answered, for the generation of the scenario's.
    tools: HashMap<Arc<str>, CircuitBreaker>,
}

impl AttemptEnd {
    /// What the result of an attempt says. A call that cannot be sent at all is no failure of
    /// the tool or the scenario.
    pub(super) fn of(answered: &Result<Outcome, CallError>) -> Self {
        match answered {
            Ok(_) | Err(CallError::NotCallable(_)) => Self::Answered,
            Err(error) if error.was_sent() => Self::Failed(FailureCode::of_call(error)),
            Err(error) => Self::NotReached(FailureCode::of_call(error)),
        }
    }
}

impl OpenCircuits {
    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            scenarios: self.scenarios + other.scenarios,
            tools: self.tools + other.tools,
        }
    }
}

impl ScenarioCircuits {
    pub(super) fn new(now: ClockReading) -> Self {
        Self {
            scenario: CircuitBreaker::new(0, now),
            tools: HashMap::new(),
        }
    }

    /// The state of the scenario's breaker; `None` if it is for another generation than this one.
    pub(super) fn of_scenario(&self, generation: Option<u64>) -> Option<BreakerStatus> {
        self.is_of(generation).then(|| self.scenario.status())
    }

    /// The states of the tools' breakers, in the order of their names; none if they are for another
    /// generation than this one.
    pub(super) fn of_tools(&self, generation: Option<u64>) -> Vec<ToolBreakerStatus> {
        if !self.is_of(generation) {
            return Vec::new();
        }
        let each = self.tools.iter();
        let mut states: Vec<_> = each
            .map(|(tool, breaker)| ToolBreakerStatus {
                tool: Arc::clone(tool),
                status: breaker.status(),
            })
            .collect();
        states.sort_unstable_by(|a, b| a.tool.cmp(&b.tool));
        states
    }

    /// How many are not closed; none if they are for another generation than this one.
    pub(super) fn open(&self, generation: Option<u64>) -> OpenCircuits {
        if !self.is_of(generation) {
            return OpenCircuits::default();
        }
        let is_open = |breaker: &&CircuitBreaker| breaker.status().state != BreakerState::Closed;
        let scenarios = usize::from(is_open(&&self.scenario));
        OpenCircuits {
            scenarios,
            tools: self.tools.values().filter(is_open).count(),
        }
    }

    /// Whether the breakers count calls by routes of this generation. Without one, there is no
    /// other process that they could be mistaken for.
    fn is_of(&self, generation: Option<u64>) -> bool {
        generation.is_none_or(|generation| generation == self.scenario.generation())
    }

    /// Whether both breakers for this tool are in their usual state: calls by a route of this
    /// generation pass, whatever the time.
    pub(super) fn are_closed(&self, tool: &str, generation: u64) -> bool {
        let is_closed = |breaker: &CircuitBreaker| breaker.is_closed(generation);
        is_closed(&self.scenario) && self.tools.get(tool).is_none_or(is_closed)
    }

    /// A call of this tool succeeded while both breakers were closed.
    pub(super) fn forget_failures(&mut self, tool: &str) {
        self.scenario.forget_failures();
        self.tools.remove(tool);
    }

    /// Whether a call of this tool by a route of this generation would pass. Changes no state.
    pub(super) fn would_pass(
        &self,
        id: &ToolId,
        generation: u64,
        now: ClockReading,
    ) -> Result<(), ExecuteError> {
        let of_scenario = self.scenario.would_pass(generation, now);
        of_scenario.map_err(|wait| refused(id, None, &self.scenario, wait))?;
        let Some(breaker) = self.tools.get(&id.tool) else {
            return Ok(());
        };
        breaker
            .would_pass(generation, now)
            .map_err(|wait| refused(id, Some(id), breaker, wait))
    }

    /// Lets a call of this tool by a route of this generation pass, or refuses it.
    pub(super) fn pass(
        &mut self,
        id: &ToolId,
        generation: u64,
        open: Duration,
        now: ClockReading,
    ) -> Result<(), ExecuteError> {
        self.would_pass(id, generation, now)?;
        if self.scenario.generation() != generation {
            self.tools.clear();
        }
        let of_scenario = self.scenario.pass(generation, open, now);
        of_scenario.map_err(|wait| refused(id, None, &self.scenario, wait))?;
        let Some(breaker) = self.tools.get_mut(&id.tool) else {
            return Ok(());
        };
        breaker
            .pass(generation, open, now)
            .map_err(|wait| refused(id, Some(id), breaker, wait))
    }

    /// A call of this tool by a route of this generation ended. Results of an earlier process are
    /// ignored.
    pub(super) fn ended(
        &mut self,
        tool: &Arc<str>,
        generation: u64,
        end: AttemptEnd,
        rules: &config::CallsConfig,
        now: ClockReading,
    ) {
        if generation != self.scenario.generation() {
            return;
        }
        match end {
            AttemptEnd::NotReached(failure) => {
                self.scenario.ended(generation, Some(failure), rules, now);
            }
            AttemptEnd::Answered => {
                self.scenario.ended(generation, None, rules, now);
                self.tools.remove(tool);
            }
            AttemptEnd::Failed(failure) => {
                self.scenario.ended(generation, None, rules, now);
                self.of_tool(tool, generation, now)
                    .ended(generation, Some(failure), rules, now);
            }
        }
    }

    /// The breaker of a tool, which has one from now on.
    fn of_tool(
        &mut self,
        tool: &Arc<str>,
        generation: u64,
        now: ClockReading,
    ) -> &mut CircuitBreaker {
        if self.tools.len() >= TOOL_BREAKERS_MAX && !self.tools.contains_key(tool) {
            let least = self
                .tools
                .iter()
                .min_by_key(|(_, breaker)| breaker.weight());
            if let Some(least) = least.map(|(tool, _)| Arc::clone(tool)) {
                self.tools.remove(&least);
            }
        }
        self.tools
            .entry(Arc::clone(tool))
            .or_insert_with(|| CircuitBreaker::new(generation, now))
    }
}

/// The refusal of a call by this breaker: that of `tool`, or of the scenario.
fn refused(
    id: &ToolId,
    tool: Option<&ToolId>,
    breaker: &CircuitBreaker,
    wait: Duration,
) -> ExecuteError {
    let BreakerStatus {
        failures,
        last_failure,
        ..
    } = breaker.status();
    let last_failure = last_failure.map(FailureCode::as_str);
    ExecuteError::BreakerOpen {
        scenario: id.scenario.clone(),
        tool: tool.cloned(),
        failures,
        last_failure,
        wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Clock;

    const FAILED: AttemptEnd = AttemptEnd::Failed(FailureCode::Timeout);

    fn id(tool: &str) -> ToolId {
        format!("files/{tool}").parse().unwrap()
    }

    #[test]
    fn the_breakers_of_tools_are_bounded_and_open_ones_stay() {
        let rules = config::CallsConfig {
            breaker_failures: 2,
            ..config::CallsConfig::default()
        };
        let now = ClockReading {
            mono: Clock::system().now(),
            wall: Clock::system().wall(),
        };
        let mut circuits = ScenarioCircuits::new(now);
        for _ in 0..2 {
            circuits.ended(&id("bad").tool, 0, FAILED, &rules, now);
        }
        for tool in 0..2 * TOOL_BREAKERS_MAX {
            circuits.ended(&format!("odd-{tool}").into(), 0, FAILED, &rules, now);
        }
        assert_eq!(circuits.of_tools(Some(0)).len(), TOOL_BREAKERS_MAX);
        assert_eq!(
            circuits.open(Some(0)),
            OpenCircuits {
                scenarios: 0,
                tools: 1
            }
        );
        assert_eq!(circuits.open(Some(1)), OpenCircuits::default());
        assert!(circuits.would_pass(&id("bad"), 0, now).is_err());
        assert_eq!(
            circuits.of_tools(Some(1)),
            [],
            "they are of another process"
        );
        circuits
            .pass(&id("bad"), 1, rules.breaker_open, now)
            .unwrap();
        assert_eq!(circuits.of_tools(None), []);
    }
}
