//! What the service manager that started the daemon is told of it: that it is ready, in one line how it fares, that it is alive, and that it
//! ends. That it reads its configuration is told by [`super::reload`].

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{CatalogReader, Snapshot};
use crate::engine::EngineHandle;
use crate::model::ScenarioState;
use crate::runtime::service::{ServiceManager, ServiceNotification};
use crate::runtime::{Clock, Stop};

/// The line of how it fares changes this often at most.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells until `stop`, and that it has come.
pub(super) async fn tell(
    manager: ServiceManager,
    engine: EngineHandle,
    reader: CatalogReader,
    clock: Clock,
    stop: Stop,
) {
    let first = line(&reader.snapshot());
    manager.tell(vec![ServiceNotification::Ready, ServiceNotification::Status(first.clone())]).await;
    tokio::select! {
        () = stop.wait() => {}
        () = status(&manager, reader, first, clock) => {}
        () = alive(&manager, &engine, clock) => {}
    }
    // The engine may have ended first; that the rest goes on is not told then.
    stop.wait().await;
    manager.tell(vec![ServiceNotification::Stopping, ServiceNotification::Status("stopping".to_owned())]).await;
}

/// Follows what is published.
async fn status(manager: &ServiceManager, mut reader: CatalogReader, mut told: String, clock: Clock) {
    while let Some(snapshot) = reader.changed().await {
        let now = line(&snapshot);
        if now != told {
            manager.tell(vec![ServiceNotification::Status(now.clone())]).await;
            told = now;
        }
        clock.sleep(PAUSE).await;
    }
}

/// Tells twice in each interval that the daemon is alive, as long as the loop that owns everything turns. Without a watchdog it never ends.
async fn alive(manager: &ServiceManager, engine: &EngineHandle, clock: Clock) {
    let Some(interval) = manager.watchdog() else { return std::future::pending().await };
    loop {
        let turned = tokio::select! {
            turned = engine.ping() => turned,
            () = clock.sleep(interval) => {
                tracing::error!("the engine did not answer within the watchdog's interval");
                continue;
            }
        };
        if turned.is_err() {
            return;
        }
        manager.tell(vec![ServiceNotification::Alive]).await;
        clock.sleep(interval / 2).await;
    }
}

/// How it fares: `3 scenarios live, 1 down; 57 tools`.
fn line(snapshot: &Arc<Snapshot>) -> String {
    let mut counts = ScenarioState::ALL.map(|state| (state, 0_usize));
    for health in snapshot.health.values() {
        for (state, count) in &mut counts {
            *count += usize::from(*state == health.state);
        }
    }
    let states = counts.iter().filter(|(_, count)| *count > 0);
    let states: Vec<_> = states.map(|(state, count)| format!("{count} {}", state.as_str())).collect();
    let states = if states.is_empty() { "none".to_owned() } else { states.join(", ") };
    let tools: usize = snapshot.health.values().map(|health| health.tools.published).sum();
    let refused = snapshot.configuration.as_ref().is_some_and(|state| state.refused.is_some());
    let isolated = if snapshot.isolated.is_some() { "isolated; " } else { "" };
    let refused = if refused { "; configuration refused" } else { "" };
    format!("{isolated}scenarios: {states}; tools: {tools}{refused}")
}
