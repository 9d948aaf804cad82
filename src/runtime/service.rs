//! Tells the service manager that started this process how it fares (`sd_notify(3)`): over the socket in `NOTIFY_SOCKET`, where there is one.
//!
//! Each telling is a datagram of its own. A manager that does not read would hold the sender up, so tellings are sent beside the async
//! threads and given up after a while. What is told and when is decided by whoever tells.

use std::time::Duration;

use super::{Clock, Tasks};

/// How long a manager may take to take one in.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a service manager may be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceNotification {
    /// It has started, or has read its configuration.
    Ready,
    /// It reads its configuration. Another [`Ready`](Self::Ready) has to follow.
    Reloading,
    /// It ends.
    Stopping,
    /// It is alive.
    Alive,
    /// One line for people.
    Status(String),
}

/// The manager of this process. Clones tell the same one.
#[derive(Debug, Clone)]
pub struct ServiceManager {
    tasks: Tasks,
    clock: Clock,
}

impl ServiceManager {
    /// Nothing when nobody wants to be told.
    pub fn from_environment(tasks: Tasks, clock: Clock) -> Option<Self> {
        let wanted = cfg!(unix) && std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty());
        wanted.then_some(Self { tasks, clock })
    }

    /// How often the manager wants to hear that this process is alive (`WATCHDOG_USEC`), if it does.
    pub fn watchdog(&self) -> Option<Duration> {
        #[cfg(unix)]
        return sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero());
        #[cfg(not(unix))]
        return None;
    }

    /// Tells all of this at once, in order, and waits until it is sent. A manager that cannot be told is logged, and nothing worse.
    pub async fn tell(&self, tellings: Vec<ServiceNotification>) {
        let sending = self.tasks.spawn_blocking(move || send(&tellings));
        let trouble = tokio::select! {
            // The other error is that the runtime goes down.
            sent = sending => sent.ok().and_then(Result::err).map(|error| error.to_string()),
            () = self.clock.sleep(PATIENCE) => Some(format!("it was not taken within {} s", PATIENCE.as_secs())),
        };
        if let Some(error) = trouble {
            tracing::warn!(error, "the service manager cannot be told how the daemon fares");
        }
    }
}

#[cfg(unix)]
fn send(tellings: &[ServiceNotification]) -> std::io::Result<()> {
    use sd_notify::NotifyState;
    let mut states = Vec::with_capacity(tellings.len() + 1);
    for telling in tellings {
        match telling {
            ServiceNotification::Ready => states.push(NotifyState::Ready),
            ServiceNotification::Reloading => {
                states.push(NotifyState::Reloading);
                // By this the manager knows whether the reload is the one that it asked for.
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
