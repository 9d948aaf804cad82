//! The route of a call to its scenario, and the short wait for one while the scenario is being
//! reconnected, or listed again after it was away.
//!
//! Every wait here ends after `calls.reroute_wait`, and one for a program that sleeps after
//! `mcp.wake_timeout`. Never done here: sending and connecting. The
//! engine does that and publishes the new route.

use std::sync::Arc;
use std::time::Duration;

use super::ExecuteError;
use super::inner::CallsInner;
use crate::engine::awake::AwakeHold;
use crate::engine::{CallReport, CallRoute};
use crate::model::{ScenarioName, ToolId};

/// The route to a scenario, if a call can be sent by it now.
pub(super) fn usable(inner: &CallsInner, scenario: &ScenarioName) -> Option<Arc<CallRoute>> {
    inner
        .engine
        .route(scenario)
        .filter(|route| can_send(inner, route))
}

/// Whether a call may be sent by a route: its session lives, and the definitions that the call is
/// compared with are those of the process behind it.
fn can_send(inner: &CallsInner, route: &CallRoute) -> bool {
    !route.ended
        && route.is_listed
        && !route.awake.is_asleep()
        && inner.reader.snapshot().sequence >= route.since
}

/// Whether the program of a scenario sleeps, and is started for what is to be sent.
pub(super) fn is_asleep(inner: &CallsInner, scenario: &ScenarioName) -> bool {
    inner
        .engine
        .route(scenario)
        .is_some_and(|route| route.awake.is_asleep())
}

/// A route by which a request can be sent, with what keeps its program awake until it is dropped.
pub(super) struct HeldRoute {
    pub(super) route: Arc<CallRoute>,
    pub(super) awake: AwakeHold,
}

/// The route for the first attempt. Waits up to `wait` while the scenario has no route, and then
/// refuses what is to be sent with the known reason.
pub(super) async fn first(
    inner: &CallsInner,
    id: &ToolId,
    wait: Duration,
) -> Result<HeldRoute, ExecuteError> {
    loop {
        let route = if let Some(route) = usable(inner, &id.scenario) {
            route
        } else {
            let longest = if is_asleep(inner, &id.scenario) {
                wait.max(inner.config.load().wake_timeout)
            } else {
                wait
            };
            // Boxed, since it is rare.
            let route = Box::pin(any(inner, &id.scenario, wait)).await;
            route.ok_or_else(|| unavailable(inner, id, Some(longest)))?
        };
        let awake = route.awake.hold(inner.clock);
        // It may have fallen asleep just before.
        if !route.awake.is_asleep() {
            return Ok(HeldRoute { route, awake });
        }
    }
}

/// The refusal of a call without a route. `waited` is how long a route was waited for.
pub(super) fn unavailable(
    inner: &CallsInner,
    id: &ToolId,
    waited: Option<Duration>,
) -> ExecuteError {
    ExecuteError::Unavailable {
        id: id.clone(),
        reason: reason(inner, &id.scenario, waited),
    }
}

/// The route to a scenario as soon as a call can be sent by it, but at most after `wait`.
pub(super) async fn any(
    inner: &CallsInner,
    scenario: &ScenarioName,
    wait: Duration,
) -> Option<Arc<CallRoute>> {
    wait_for(inner, scenario, wait, |_| true).await
}

/// Another route than the one by which the call could not be sent. The engine polls the scenario at
/// once, and a source may report a new address. Waits for that up to `wait`.
pub(super) async fn another(
    inner: &CallsInner,
    scenario: &ScenarioName,
    tried: &CallRoute,
    wait: Duration,
) -> Option<Arc<CallRoute>> {
    let is_other = |route: &CallRoute| {
        !Arc::ptr_eq(&route.session, &tried.session) || route.generation != tried.generation
    };
    wait_for(inner, scenario, wait, is_other).await
}

async fn wait_for(
    inner: &CallsInner,
    scenario: &ScenarioName,
    wait: Duration,
    fits: impl Fn(&CallRoute) -> bool,
) -> Option<Arc<CallRoute>> {
    let mut reader = inner.reader.clone();
    let began = inner.clock.now();
    let mut until = began + wait;
    let mut reported = None;
    let mut is_starting = false;
    // A program that is started for this does not fall asleep again before this is sent.
    let mut held = None;
    loop {
        let route = inner.engine.route(scenario);
        if let Some(route) = &route {
            held.get_or_insert_with(|| route.awake.hold(inner.clock));
        }
        let is_asleep = route.as_ref().is_some_and(|route| route.awake.is_asleep());
        if is_asleep {
            until = began + wait.max(inner.config.load().wake_timeout);
        } else if is_starting {
            // It was started. If it was not listed, there is a reason, and another try soon.
            until = inner.clock.now() + wait;
        }
        is_starting = is_asleep;
        match route {
            Some(route) if can_send(inner, &route) && fits(&route) => return Some(route),
            Some(route) if !route.is_listed && reported != Some(route.generation) => {
                inner
                    .engine
                    .report_call(scenario, &route, CallReport::AwaitsListing);
                reported = Some(route.generation);
            }
            Some(_) => {}
            // A scenario that moved or restarted may have no route until it is connected again.
            None => {
                _ = reader
                    .snapshot()
                    .catalog
                    .entry(scenario)
                    .filter(|entry| entry.is_published())?;
            }
        }
        tokio::time::timeout_at(until, reader.changed())
            .await
            .ok()
            .flatten()?;
    }
}

/// Why there is no route, for the caller.
fn reason(inner: &CallsInner, scenario: &ScenarioName, waited: Option<Duration>) -> String {
    let snapshot = inner.reader.snapshot();
    if !snapshot
        .catalog
        .entry(scenario)
        .is_some_and(|entry| entry.is_published())
    {
        return "its scenario's tools are not listed any more".to_owned();
    }
    let health = snapshot.health.get(scenario);
    let why = match health.and_then(|health| health.last_error.as_ref()) {
        Some(error) => &error.message,
        None if health.is_some_and(|health| health.last_success.is_some()) => {
            "it is being connected anew"
        }
        None => "it has not answered yet",
    };
    let route = inner.engine.route(scenario);
    if let Some(waited) = waited
        && route.as_ref().is_some_and(|route| route.awake.is_asleep())
    {
        return format!(
            "its program slept, was started for this, and did not list its tools within {waited:?} (`mcp.wake_timeout`)"
        );
    }
    if route.is_some_and(|route| !route.ended && !route.is_listed) {
        return format!("its scenario was away, and its tools have not been listed since: {why}");
    }
    match waited {
        Some(waited) => format!(
            "there is no connection to its scenario, and none was made within {waited:?}: {why}"
        ),
        None => {
            format!("there is no connection to its scenario, and other calls wait for one: {why}")
        }
    }
}
