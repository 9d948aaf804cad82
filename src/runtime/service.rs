//! Notifies the service manager that started this process about its state (`sd_notify(3)`), over
//! the socket in `NOTIFY_SOCKET` if there is one.
//!
//! Each notification is a datagram of its own. A manager that does not read would block the sender,
//! so notifications are sent outside the async threads and are given up after a timeout. The caller
//! decides what is sent and when.

use std::time::Duration;

use super::{Clock, Tasks};

/// How long the manager may take to receive a notification.
const PATIENCE: Duration = Duration::from_secs(5);

/// A notification for the service manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceNotification {
    /// The daemon has started, or has read its configuration.
    Ready,
    /// The daemon reads its configuration. Another [`Ready`](Self::Ready) has to follow.
    Reloading,
    /// The daemon ends.
    Stopping,
    /// The daemon is alive.
    Alive,
    /// One line of status for operators.
    Status(String),
}

/// The service manager of this process. Clones notify the same one.
#[derive(Debug, Clone)]
pub struct ServiceManager {
    tasks: Tasks,
    clock: Clock,
}

impl ServiceManager {
    /// `None` when no service manager wants notifications.
    pub fn from_environment(tasks: Tasks, clock: Clock) -> Option<Self> {
        let wanted = cfg!(unix)
            && std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty());
        wanted.then_some(Self { tasks, clock })
    }

    /// The longest time between two signs of life that the manager accepts (`WATCHDOG_USEC`), if it
    /// wants them.
    pub fn watchdog(&self) -> Option<Duration> {
        #[cfg(unix)]
        return sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero());
        #[cfg(not(unix))]
        return None;
    }

    /// Sends all of these at once, in order, and waits until they are sent. A failure is only
    /// logged.
    pub async fn tell(&self, notifications: Vec<ServiceNotification>) {
        let sending = self.tasks.spawn_blocking(move || send(&notifications));
        let failure = tokio::select! {
            // The other error means that the runtime is shutting down.
            sent = sending => sent.ok().and_then(Result::err).map(|error| error.to_string()),
            () = self.clock.sleep(PATIENCE) => Some(format!("it was not taken within {} s", PATIENCE.as_secs())),
        };
        if let Some(error) = failure {
            tracing::warn!(error, "notifying the service manager failed");
        }
    }
}

#[cfg(unix)]
fn send(notifications: &[ServiceNotification]) -> std::io::Result<()> {
    use sd_notify::NotifyState;
    let mut states = Vec::with_capacity(notifications.len() + 1);
    for notification in notifications {
        match notification {
            ServiceNotification::Ready => states.push(NotifyState::Ready),
            ServiceNotification::Reloading => {
                states.push(NotifyState::Reloading);
                // The manager compares this time to see whether the reload is the one that it
                // requested.
                states.push(NotifyState::monotonic_usec_now()?);
            }
            ServiceNotification::Stopping => states.push(NotifyState::Stopping),
            ServiceNotification::Alive => states.push(NotifyState::Watchdog),
            ServiceNotification::Status(line) => states.push(NotifyState::Status(line)),
        }
    }
    sd_notify::notify(&states)
}

#[cfg(not(unix))]
fn send(_: &[ServiceNotification]) -> std::io::Result<()> {
    Ok(())
}
