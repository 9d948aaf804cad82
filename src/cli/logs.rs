//! `callsheet logs`: the latest calls and changes of states; with `--follow` what happens from now
//! on. Never arguments and results.

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::client::{DaemonClient, QueryPairs};
use super::watch::{EventFollower, WatchedEvent};
use super::{CommandError, RemoteArgs, by_id, output};
use crate::runtime::Clock;

/// How often the daemon is asked for new calls.
const POLL: Duration = Duration::from_secs(1);
/// The most lines that one answer of the log has.
const MOST_LINES: usize = 10_000;
/// The most calls that one poll prints.
const POLLED: usize = 1_000_000;

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// Only what concerns this scenario.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Only calls of this tool, by its name or as `scenario/tool`.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls that did not succeed.
    #[arg(long)]
    failed: bool,
    /// Only what happened since then: a duration such as `2h`, or a time such as
    /// `2026-03-01T09:30:00Z`.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// How many of the latest calls and changes to begin with.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// Then print each call and each change of a scenario's state as it happens, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl LogsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        // Subscribes before it lists, so that no change is missed.
        let mut events = if self.follow {
            let mut query = vec![("kind", "scenario".to_owned())];
            query.extend(self.scenario.iter().map(|name| ("scenario", name.clone())));
            Some(EventFollower::start(&daemon, query).await?)
        } else {
            None
        };
        let mut calls = PrintedCalls { scenario: self.scenario.clone(), json: self.remote.json, seen: 0 };
        self.begin(&daemon, &mut calls).await?;
        if let Some(events) = &mut events {
            self.follow(&daemon, &mut calls, events).await?;
        }
        Ok(())
    }

    /// Prints the latest calls and changes, in order of their times.
    async fn begin(&self, daemon: &DaemonClient, log: &mut PrintedCalls) -> Result<(), CommandError> {
        // The daemon has no answer with 0 calls.
        let answer = daemon.get(&["calls"], log.query(self.last.max(1)), "calls").await?;
        log.seen = answer.value["last"].as_u64().unwrap_or(0);
        if let Some(name) = self.scenario.as_ref().filter(|_| output::list(&answer.value, "calls").is_empty()) {
            let _ = daemon.require_scenario(name).await?;
        }
        if self.remote.json && !self.follow {
            let mut value = answer.value;
            let page = daemon.get(&["log"], self.query(), "log").await?.value;
            value["lines"] = page["lines"].clone();
            output::line(&value.to_string());
            return Ok(());
        }
        if self.remote.json {
            for call in output::list(&answer.value, "calls") {
                log.print(call);
            }
            return Ok(());
        }
        let log = daemon.get(&["log"], self.query(), "log").await?.value;
        let lines: Vec<String> = output::list(&log, "lines").iter().map(log_line).collect();
        let dropped = output::number(&log, "/dropped");
        if dropped > 0 {
            output::line(&format!("{dropped} lines could not be stored; a restart loses them"));
        }
        if lines.is_empty() {
            output::line("no calls and no changes of states");
        }
        for line in &lines {
            print(line);
        }
        Ok(())
    }

    /// The query of the log for what is wanted.
    fn query(&self) -> QueryPairs<'static> {
        let mut query = vec![("limit", self.last.clamp(1, MOST_LINES).to_string())];
        query.extend(self.scenario.iter().map(|name| ("scenario", name.clone())));
        query.extend(self.tool.iter().map(|tool| ("tool", tool.clone())));
        query.extend(self.failed.then(|| ("failed", "true".to_owned())));
        query.extend(self.since.iter().map(|since| ("since", since.to_string())));
        query
    }

    /// Prints what happens, until Ctrl-C.
    async fn follow(
        &self,
        daemon: &DaemonClient,
        log: &mut PrintedCalls,
        events: &mut EventFollower<'_>,
    ) -> Result<(), CommandError> {
        let clock = Clock::system();
        loop {
            let event = {
                let mut next = pin!(events.next());
                loop {
                    tokio::select! {
                        event = &mut next => break event?,
                        () = clock.sleep(POLL) => log.poll(daemon).await,
                    }
                }
            };
            let Some(event) = event else { return Ok(()) };
            if self.remote.json {
                event.print_json();
            } else if event.event == "scenario" {
                print(&change_line(&event));
            }
        }
    }
}

/// The calls that were printed before.
struct PrintedCalls {
    scenario: Option<String>,
    json: bool,
    /// The number of the latest.
    seen: u64,
}

impl PrintedCalls {
    fn query(&self, limit: usize) -> QueryPairs<'static> {
        let mut query = vec![("after", self.seen.to_string()), ("limit", limit.to_string())];
        query.extend(self.scenario.iter().map(|name| ("scenario", name.clone())));
        query
    }

    /// Prints the calls that ended since. A daemon that is away is reported by its events.
    async fn poll(&mut self, daemon: &DaemonClient) {
        let Ok(answer) = daemon.get(&["calls"], self.query(POLLED), "calls").await else { return };
        let last = answer.value["last"].as_u64().unwrap_or(0);
        if last < self.seen {
            // Another daemon counts from the beginning.
            self.seen = 0;
            return;
        }
        self.seen = last;
        for call in output::list(&answer.value, "calls") {
            self.print(call);
        }
    }

    fn print(&self, call: &Value) {
        if self.json {
            output::json_line(&json!({"event": "called", "data": call}));
        } else {
            print(&call_line(call));
        }
    }
}

/// Prints a line; what does not fit beside its time stands below its text.
fn print(line: &str) {
    let (at, text) = line.split_once("  ").unwrap_or(("", line));
    output::wrapped(&format!("{at}  "), text);
}

/// `2026-03-01 09:30:00  notes/search: ok in 12 ms (by callsheet/0.2.0, chat 42)`.
fn call_line(call: &Value) -> String {
    let text = |pointer| output::text(call, pointer);
    let tool = match text("/id") {
        id if id.is_empty() => text("/tool_name"),
        id => id,
    };
    let millis = output::number(call, "/execution_time_ms");
    let client = Some(text("/client")).filter(|client| !client.is_empty()).map(|client| format!("by {client}"));
    let caller = Some(by_id::caller(call)).filter(|caller| !caller.is_empty());
    let origin: Vec<String> = client.into_iter().chain(caller).collect();
    let origin = if origin.is_empty() { String::new() } else { format!(" ({})", origin.join(", ")) };
    let outcome = text("/outcome").replace('_', " ");
    let error = Some(text("/error")).filter(|error| !error.is_empty()).map(|error| format!(": {}", plain(&error)));
    let error = error.unwrap_or_default();
    format!("{}  {tool}: {outcome} in {millis} ms{origin}{error}", time(&text("/at")))
}

/// One line of the log.
fn log_line(line: &Value) -> String {
    if line["kind"] == "call" {
        return call_line(&line["call"]);
    }
    let mut change = line["state"].clone();
    change["at"] = line["at"].clone();
    change_text(&change)
}

fn change_line(event: &WatchedEvent) -> String {
    change_text(&event.data)
}

/// `2026-03-01 09:30:00  notes: live -> down (it refuses connections)`.
fn change_text(change: &Value) -> String {
    let text = |pointer| output::text(change, pointer);
    let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
    let (from, to) = (or(text("/from"), "unknown"), or(text("/to"), "forgotten"));
    format!("{}  {}: {from} -> {to} ({})", time(&text("/at")), text("/name"), text("/reason"))
}

/// A time to the second, in UTC.
fn time(text: &str) -> String {
    text.parse::<Timestamp>().map_or_else(|_| text.to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A text of others in one line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Reads `--since`.
fn since(text: &str) -> Result<Timestamp, String> {
    let ago = |span: SignedDuration| Clock::system().wall().checked_sub(span).ok();
    let read = text.parse().ok().or_else(|| text.parse().ok().and_then(ago));
    read.ok_or_else(|| "write a duration such as 2h, or a time such as 2026-03-01T09:30:00Z".to_owned())
}
