//! Notifications to the service manager that started the daemon: that it is ready, a line of
//! status, that it is alive, and that it ends. Notifications about reloads are sent by
//! [`super::reload`].

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{CatalogReader, Snapshot};
use crate::engine::EngineHandle;
use crate::model::ScenarioState;
use crate::runtime::service::{ServiceManager, ServiceNotification};
use crate::runtime::{Clock, Stop};

/// The shortest time between two changes of the status line.
const STATUS_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Sends notifications until `stop`, and one about the stop.
pub(super) async fn notify(
    manager: ServiceManager,
    engine: EngineHandle,
    reader: CatalogReader,
    clock: Clock,
    stop: Stop,
) {
    let first = line(&reader.snapshot());
    manager
        .tell(vec![
            ServiceNotification::Ready,
            ServiceNotification::Status(first.clone()),
        ])
        .await;
    tokio::select! {
        () = stop.wait() => {}
        () = status(&manager, reader, first, clock) => {}
        () = alive(&manager, &engine, clock) => {}
    }
    // The engine may have ended first; then only the end of the daemon is still notified.
    stop.wait().await;
    manager
        .tell(vec![
            ServiceNotification::Stopping,
            ServiceNotification::Status("stopping".to_owned()),
        ])
        .await;
}

/// Keeps the status line in line with the published snapshot.
async fn status(
    manager: &ServiceManager,
    mut reader: CatalogReader,
    mut reported: String,
    clock: Clock,
) {
    while let Some(snapshot) = reader.changed().await {
        let now = line(&snapshot);
        if now != reported {
            manager
                .tell(vec![ServiceNotification::Status(now.clone())])
                .await;
            reported = now;
        }
        clock.sleep(STATUS_INTERVAL_MIN).await;
    }
}

/// Notifies twice in each interval that the daemon is alive, as long as the engine's loop runs.
/// Without a watchdog it never ends.
async fn alive(manager: &ServiceManager, engine: &EngineHandle, clock: Clock) {
    let Some(interval) = manager.watchdog() else {
        return std::future::pending().await;
    };
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

/// The status line: `3 scenarios live, 1 down; 57 tools`.
fn line(snapshot: &Arc<Snapshot>) -> String {
    let mut counts = ScenarioState::ALL.map(|state| (state, 0_usize));
    for health in snapshot.health.values() {
        for (state, count) in &mut counts {
            *count += usize::from(*state == health.state);
        }
    }
    let states = counts.iter().filter(|(_, count)| *count > 0);
    let states: Vec<_> = states
        .map(|(state, count)| format!("{count} {}", state.as_str()))
        .collect();
    let states = if states.is_empty() {
        "none".to_owned()
    } else {
        states.join(", ")
    };
    let tools: usize = snapshot
        .health
        .values()
        .map(|health| health.tools.published)
        .sum();
    let refused = snapshot
        .configuration
        .as_ref()
        .is_some_and(|state| state.refused.is_some());
    let isolated = if snapshot.isolated.is_some() {
        "isolated; "
    } else {
        ""
    };
    let refused = if refused {
        "; configuration refused"
    } else {
        ""
    };
    format!("{isolated}scenarios: {states}; tools: {tools}{refused}")
}
