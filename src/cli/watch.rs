//! Following a daemon's events until Ctrl-C, over its restarts and absences, and what `--watch`
//! prints of them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{DaemonClient, DaemonEventStream, QueryPairs};
use super::{CommandError, output};
use crate::runtime::{Clock, signal};

/// The first and the longest wait before the daemon is looked for again.
const RECONNECT_BACKOFF: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// Follows one daemon.
pub(super) struct EventFollower<'a> {
    daemon: &'a DaemonClient,
    query: QueryPairs<'a>,
    /// The stream at hand; none while the daemon is away.
    stream: Option<DaemonEventStream>,
    /// The id of the last event.
    last: Option<String>,
    wait: Duration,
    clock: Clock,
    stopped: Pin<Box<dyn Future<Output = &'static str> + Send>>,
}

/// An event of the daemon.
pub(super) struct WatchedEvent {
    /// Its name.
    pub(super) event: String,
    id: String,
    /// Its data.
    pub(super) data: Value,
}

impl<'a> EventFollower<'a> {
    /// Subscribes to the events of `query`. Fails if no daemon answers or it refuses.
    pub(super) async fn start(
        daemon: &'a DaemonClient,
        query: QueryPairs<'a>,
    ) -> Result<Self, CommandError> {
        let stopped = Box::pin(signal::stop_signal()?);
        let stream = Some(daemon.follow(&query, None).await?);
        Ok(Self {
            daemon,
            query,
            stream,
            last: None,
            wait: RECONNECT_BACKOFF[0],
            clock: Clock::system(),
            stopped,
        })
    }

    /// The next event; `None` after Ctrl-C, or when the reader has closed the output.
    pub(super) async fn next(&mut self) -> Result<Option<WatchedEvent>, CommandError> {
        loop {
            if output::is_closed() {
                return Ok(None);
            }
            let Some(stream) = &mut self.stream else {
                if !self.reconnect().await {
                    return Ok(None);
                }
                continue;
            };
            let received = tokio::select! {
                biased;
                _ = &mut self.stopped => return Ok(None),
                received = stream.next() => received,
            };
            match received {
                Some(received) if received.event != "end" => {
                    let data = self.daemon.parse_json(received.data.as_bytes())?;
                    self.last = Some(received.id.clone()).filter(|id| !id.is_empty());
                    self.wait = RECONNECT_BACKOFF[0];
                    return Ok(Some(WatchedEvent {
                        event: received.event,
                        id: received.id,
                        data,
                    }));
                }
                ended => {
                    let end: Value = ended
                        .and_then(|end| serde_json::from_str(&end.data).ok())
                        .unwrap_or_default();
                    let why = match output::text(&end, "/reason") {
                        reason if reason.is_empty() => "the connection ended".to_owned(),
                        reason => reason,
                    };
                    output::note(&format!("{why}; looking for the daemon again until Ctrl-C"));
                    self.stream = None;
                }
            }
        }
    }

    /// Waits, then tries to connect again. Whether to go on.
    async fn reconnect(&mut self) -> bool {
        // Many followers of one daemon do not come back in one moment.
        let wait = self.wait.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.wait = RECONNECT_BACKOFF[1].min(self.wait * 2);
        tokio::select! {
            biased;
            _ = &mut self.stopped => return false,
            () = self.clock.sleep(wait) => {}
        }
        tokio::select! {
            biased;
            _ = &mut self.stopped => return false,
            stream = self.daemon.follow(&self.query, self.last.as_deref()) => self.stream = stream.ok(),
        }
        if self.stream.is_some() {
            output::note("the daemon is there again");
        }
        true
    }
}

impl WatchedEvent {
    /// Prints it as one line of JSON, for machines.
    pub(super) fn print_json(&self) {
        output::json_line(&json!({"event": self.event, "id": self.id, "data": self.data}));
    }
}

/// Prints what changes in a list of tools.
#[derive(Default)]
pub(super) struct ToolChanges {
    names: BTreeSet<String>,
}

impl ToolChanges {
    /// Begins with a snapshot whose tools were printed otherwise.
    pub(super) fn from_snapshot(snapshot: &Value) -> Self {
        Self {
            names: texts(snapshot, "names").into_iter().collect(),
        }
    }

    /// Prints an event, a line for each change.
    pub(super) fn print(&mut self, event: &WatchedEvent) {
        match event.event.as_str() {
            "snapshot" => {
                // Events of the meantime were missed; their result is printed.
                let now = Self::from_snapshot(&event.data);
                self.names
                    .difference(&now.names)
                    .for_each(|name| change('-', name, ""));
                now.names
                    .difference(&self.names)
                    .for_each(|name| change('+', name, ""));
                *self = now;
            }
            "catalog" => {
                for (sign, member) in [('-', "removed"), ('+', "added"), ('~', "changed")] {
                    for name in texts(&event.data, member) {
                        let reason = event.data["reasons"][&name].as_str().unwrap_or_default();
                        change(sign, &name, reason);
                        let _ = if sign == '-' {
                            self.names.remove(&name)
                        } else {
                            self.names.insert(name)
                        };
                    }
                }
            }
            _ => {}
        }
    }
}

/// Prints changes of scenarios' states.
#[derive(Default)]
pub(super) struct StateChanges {
    states: BTreeMap<String, String>,
}

impl StateChanges {
    /// Begins with a snapshot whose scenarios were printed otherwise.
    pub(super) fn from_snapshot(snapshot: &Value) -> Self {
        let state = |scenario: &Value| {
            (
                output::text(scenario, "/name"),
                output::text(scenario, "/state"),
            )
        };
        Self {
            states: output::list(snapshot, "scenarios")
                .iter()
                .map(state)
                .collect(),
        }
    }

    /// Prints an event, a line for each change.
    pub(super) fn print(&mut self, event: &WatchedEvent) {
        match event.event.as_str() {
            "snapshot" => {
                let now = Self::from_snapshot(&event.data);
                for scenario in output::list(&event.data, "scenarios") {
                    let name = output::text(scenario, "/name");
                    let state = output::text(scenario, "/state");
                    let before = self.states.get(&name);
                    if before != Some(&state) {
                        print_transition(
                            &name,
                            before.map(String::as_str),
                            Some(&state),
                            &output::text(scenario, "/reason"),
                        );
                    }
                }
                for (name, state) in self
                    .states
                    .iter()
                    .filter(|(name, _)| !now.states.contains_key(*name))
                {
                    print_transition(
                        name,
                        Some(state),
                        None,
                        "the daemon does not know it any more",
                    );
                }
                *self = now;
            }
            "scenario" => {
                let [name, from, to, reason] = ["/name", "/from", "/to", "/reason"]
                    .map(|member| output::text(&event.data, member));
                let known = |state: &str| Some(state.to_owned()).filter(|state| !state.is_empty());
                print_transition(
                    &name,
                    known(&from).as_deref(),
                    known(&to).as_deref(),
                    &reason,
                );
                match known(&to) {
                    Some(state) => self.states.insert(name, state),
                    None => self.states.remove(&name),
                };
            }
            _ => {}
        }
    }
}

fn texts(value: &Value, member: &str) -> Vec<String> {
    output::list(value, member)
        .iter()
        .filter_map(Value::as_str)
        .map(output::sanitize)
        .collect()
}

fn change(sign: char, name: &str, reason: &str) {
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!("  ({})", output::sanitize(reason))
    };
    output::line(&format!("{}  {sign} {name}{reason}", time()));
}

/// Prints a change of state.
pub(super) fn print_transition(name: &str, from: Option<&str>, to: Option<&str>, reason: &str) {
    let from = from.unwrap_or("unknown");
    let to = to.unwrap_or("forgotten");
    output::line(&format!(
        "{}  {name}: {from} -> {to} ({})",
        time(),
        output::sanitize(reason)
    ));
}

/// The time of day, in UTC.
pub(super) fn time() -> String {
    Clock::system().wall().strftime("%H:%M:%S").to_string()
}
