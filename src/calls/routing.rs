//! The route of a call to its scenario, and the short wait for one while the scenario is being
//! reconnected, or listed again after it was away.
//!
//! Every wait here ends after `calls.reroute_wait`. Never done here: sending and connecting. The
//! engine does that and publishes the new route.

use std::sync::Arc;
use std::time::Duration;

use super::ExecuteError;
use super::inner::CallsInner;
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
    !route.ended && route.is_listed && inner.reader.snapshot().sequence >= route.since
}

/// The route for the first attempt. Waits up to `wait` while the scenario has no route, and then
/// refuses what is to be sent with the known reason.
pub(super) async fn first(
    inner: &CallsInner,
    id: &ToolId,
    wait: Duration,
) -> Result<Arc<CallRoute>, ExecuteError> {
    if let Some(route) = usable(inner, &id.scenario) {
        return Ok(route);
    }
    // Boxed, since it is rare.
    let route = Box::pin(any(inner, &id.scenario, wait)).await;
    route.ok_or_else(|| unavailable(inner, id, Some(wait)))
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
    let until = inner.clock.now() + wait;
    let found = async {
        let mut reported = None;
        loop {
            match inner.engine.route(scenario) {
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
            reader.changed().await?;
        }
    };
    tokio::time::timeout_at(until, found).await.ok().flatten()
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
    if inner
        .engine
        .route(scenario)
        .is_some_and(|route| !route.ended && !route.is_listed)
    {
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
