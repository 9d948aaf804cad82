//! `callsheet logs`: the latest calls, changes of states, ends of programs and starts; with
//! `--follow` what happens from now on. Arguments and results only as JSON, where they are kept.

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::client::{DaemonClient, QueryPairs};
use super::watch::EventFollower;
use super::{CommandError, RemoteArgs, by_id, output};
use crate::runtime::Clock;

/// How often new lines are requested.
const POLL: Duration = Duration::from_secs(1);
/// The most lines that one answer of the log has.
const MOST_LINES: usize = 10_000;
/// With so many lines it begins unless it is said.
const LAST: usize = 20;
/// The most lines that one poll prints: all that a log keeps.
const MOST_POLLED: usize = 2_000_000;

/// Lines on standard error that are printed of a program that ended.
const LAST_LINES: usize = 3;

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// Only what concerns this scenario.
    #[arg(value_name = "NAME", conflicts_with = "scenario")]
    name: Option<String>,
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
    /// How many of the latest calls and changes to begin with; 20, or with `--since` all of that
    /// time, unless it is given.
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
    /// Then print each call and each change of a scenario's state as it happens, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl LogsArgs {
    pub(super) async fn run(mut self) -> Result<(), CommandError> {
        self.scenario = self.scenario.take().or(self.name.take());
        // Callers, errors, arguments and results of the calls of others are for operators.
        let daemon = DaemonClient::for_operator(&self.remote)?;
        // Subscribes before it lists, so that no change is missed.
        let mut events = if self.follow {
            let mut query = vec![("kind", "scenario".to_owned())];
            query.extend(self.scenario.iter().map(|name| ("scenario", name.clone())));
            Some(EventFollower::start(&daemon, query).await?)
        } else {
            None
        };
        let seen = self.begin(&daemon).await?;
        if let Some(events) = &mut events {
            self.follow(&daemon, seen, events).await?;
        }
        Ok(())
    }

    /// With how many lines it begins at most.
    fn most(&self) -> usize {
        let most = if self.since.is_some() {
            usize::MAX
        } else {
            LAST
        };
        self.last.unwrap_or(most)
    }

    /// Prints the latest lines, in the order in which they happened. Returns the number of the
    /// latest line of the log.
    async fn begin(&self, daemon: &DaemonClient) -> Result<u64, CommandError> {
        // What follows as JSON begins with calls: the events begin with a snapshot of the states.
        let kind = (self.remote.json && self.follow).then_some("call");
        let log = self.read(daemon, kind, None, self.most()).await?;
        let health = match self
            .scenario
            .as_ref()
            .filter(|_| log.lines.is_empty() || !self.remote.json)
        {
            Some(name) if log.lines.is_empty() => Some(daemon.require_scenario(name).await?),
            // One that was forgotten has lines all the same.
            Some(name) => daemon.require_scenario(name).await.ok(),
            None => None,
        };
        if self.remote.json && !self.follow {
            let calls = self
                .read(daemon, Some("call"), None, self.most())
                .await?
                .lines;
            let calls: Vec<&Value> = calls.iter().map(|line| &line["call"]).collect();
            let answer = json!({
                "calls": calls,
                "last": log.last_call,
                "lines": log.lines,
                "dropped": log.dropped,
                "payloads": log.payloads,
            });
            output::json_line(&answer);
            return Ok(log.last);
        }
        if log.dropped > 0 && !self.remote.json {
            output::line(&format!(
                "{} lines could not be stored; a restart loses them",
                log.dropped
            ));
        }
        if log.lines.is_empty() && !self.follow && self.most() > 0 {
            output::line("no line of the log matches");
        }
        for line in &log.lines {
            self.print(line);
        }
        if let Some(present) = health
            .as_ref()
            .and_then(present)
            .filter(|_| !self.remote.json)
        {
            output::wrapped("", &present);
        }
        Ok(log.last)
    }

    /// Reads the lines that are wanted, the oldest first: those after a number, and of them at most
    /// so many, the latest.
    async fn read(
        &self,
        daemon: &DaemonClient,
        kind: Option<&str>,
        after: Option<u64>,
        most: usize,
    ) -> Result<ReadLog, CommandError> {
        let mut log = ReadLog::default();
        let mut before = None;
        loop {
            // The daemon has no answer without lines, but its numbers are wanted.
            let limit = (most - log.lines.len()).clamp(1, MOST_LINES);
            let mut query = vec![("limit", limit.to_string())];
            query.extend(kind.map(|kind| ("kind", kind.to_owned())));
            query.extend(after.map(|after| ("after", after.to_string())));
            query.extend(before.map(|before: u64| ("before", before.to_string())));
            query.extend(self.filters());
            let page = daemon.get(&["log"], query, "lines").await?.value;
            let earlier = output::list(&page, "lines");
            if before.is_none() {
                log.last = page["last"].as_u64().unwrap_or(0);
                log.last_call = page["last_call"].as_u64().unwrap_or(0);
                log.dropped = page["dropped"].as_u64().unwrap_or(0);
                log.payloads = output::text(&page, "/payloads");
            }
            before = earlier.first().and_then(|line| line["line"].as_u64());
            let room = most - log.lines.len();
            log.lines.splice(
                0..0,
                earlier[earlier.len().saturating_sub(room)..]
                    .iter()
                    .cloned(),
            );
            if log.lines.len() == most || before.is_none() || page["more"] != true {
                return Ok(log);
            }
        }
    }

    /// What of the log is wanted, as a query.
    fn filters(&self) -> QueryPairs<'static> {
        let mut query = Vec::new();
        query.extend(self.scenario.iter().map(|name| ("scenario", name.clone())));
        query.extend(self.tool.iter().map(|tool| ("tool", tool.clone())));
        query.extend(self.failed.then(|| ("failed", "true".to_owned())));
        query.extend(self.since.iter().map(|since| ("since", since.to_string())));
        query
    }

    /// Prints what happens after the line with this number, until Ctrl-C.
    async fn follow(
        &self,
        daemon: &DaemonClient,
        mut seen: u64,
        events: &mut EventFollower<'_>,
    ) -> Result<(), CommandError> {
        let clock = Clock::system();
        loop {
            let event = {
                let mut next = pin!(events.next());
                loop {
                    tokio::select! {
                        event = &mut next => break event?,
                        () = clock.sleep(POLL) => self.poll(daemon, &mut seen).await,
                    }
                }
            };
            let Some(event) = event else { return Ok(()) };
            // Only calls belong to a tool or fail.
            let only_calls = event.event == "scenario" && (self.tool.is_some() || self.failed);
            if self.remote.json && !only_calls {
                event.print_json();
            }
            self.poll(daemon, &mut seen).await;
        }
    }

    /// Prints the lines after the one that was seen last. A daemon that is away is reported by its
    /// events.
    async fn poll(&self, daemon: &DaemonClient, seen: &mut u64) {
        let Ok(log) = self.read(daemon, None, Some(*seen), MOST_POLLED).await else {
            return;
        };
        if log.last < *seen {
            // Another daemon counts from the beginning.
            *seen = 0;
            return;
        }
        *seen = log.last;
        for line in &log.lines {
            self.print(line);
        }
    }

    /// Prints a line of the log while it is followed, or for people.
    fn print(&self, line: &Value) {
        if !self.remote.json {
            print(&log_line(line));
            return;
        }
        let event = match line["kind"].as_str() {
            Some("call") if line["payload"].is_object() => {
                json!({"event": "called", "data": line["call"], "payload": line["payload"]})
            }
            Some("call") => json!({"event": "called", "data": line["call"]}),
            Some("end") => json!({"event": "ended", "at": line["at"], "data": line["end"]}),
            Some("start") => json!({"event": "started", "at": line["at"], "data": line["start"]}),
            // The events have the changes of states.
            _ => return,
        };
        output::json_line(&event);
    }
}

/// What is wrong with a scenario now, if it does not answer: the log has only what is over.
fn present(health: &Value) -> Option<String> {
    let [name, state, reason] =
        ["/name", "/state", "/reason"].map(|pointer| output::text(health, pointer));
    let is_wrong = output::number(health, "/failures_in_a_row") > 0 && state != "removed";
    is_wrong.then(|| format!("now: {name} is {state}: {reason}"))
}

/// Lines that were read.
#[derive(Default)]
struct ReadLog {
    lines: Vec<Value>,
    /// The number of the latest line of the log.
    last: u64,
    /// The number of the latest call.
    last_call: u64,
    dropped: u64,
    /// Whether calls have their arguments and results.
    payloads: String,
}

/// Prints a line; what does not fit beside its time stands below its text.
fn print(line: &str) {
    let (at, text) = line.split_once("  ").unwrap_or(("", line));
    output::wrapped(&format!("{at}  "), text);
}

/// `2026-03-01 09:30:00  notes/search: ok in 12 ms (by callsheet/0.2.0, chat 42)`, with the time at
/// which the call ended: lines stand in the order of what they show.
fn call_line(call: &Value, ended: &str) -> String {
    let text = |pointer| output::text(call, pointer);
    let tool = match text("/id") {
        id if id.is_empty() => text("/tool_name"),
        id => id,
    };
    let by = if text("/client").is_empty() {
        ""
    } else {
        "by "
    };
    let caller = by_id::caller(call);
    let origin = match call["withheld"].as_bool() {
        Some(true) => " (the rest needs the operator token)".to_owned(),
        _ if caller.is_empty() => String::new(),
        _ => format!(" ({by}{caller})"),
    };
    let outcome = text("/outcome").replace('_', " ");
    let error = Some(text("/error"))
        .filter(|error| !error.is_empty())
        .map(|error| format!(": {error}"));
    let error = error.unwrap_or_default();
    let note = Some(text("/note"))
        .filter(|note| !note.is_empty())
        .map(|note| format!("; {note}"));
    let note = note.unwrap_or_default();
    let duration = output::took(call["execution_time_ms"].as_u64().unwrap_or_default());
    format!("{ended}  {tool}: {outcome} in {duration}{origin}{error}{note}")
}

/// One line of the log.
fn log_line(line: &Value) -> String {
    let at = time(&output::text(line, "/at"));
    match line["kind"].as_str() {
        Some("call") => call_line(&line["call"], &at),
        Some("end") => format!("{at}  {}", end_text(&line["end"])),
        Some("start") => format!("{at}  {}", start_text(&line["start"])),
        _ => {
            let mut change = line["state"].clone();
            change["at"] = line["at"].clone();
            change_text(&change)
        }
    }
}

/// `notes: after 5 min 12 s the process ended with exit code 3; its last lines on stderr: a | b`.
fn end_text(end: &Value) -> String {
    let uptime = Duration::from_millis(end["uptime_ms"].as_u64().unwrap_or(0));
    let last: Vec<&str> = output::list(end, "stderr")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let last = last[last.len().saturating_sub(LAST_LINES)..].join(" | ");
    let errors = if last.is_empty() {
        String::new()
    } else {
        format!("; its last lines on stderr: {}", output::sanitize(&last))
    };
    format!(
        "{}: after {} {}{errors}",
        output::text(end, "/name"),
        span(uptime),
        output::text(end, "/reason")
    )
}

/// `callsheet 0.2.0 started (the run before was there until 2026-03-01 09:30:00)`.
fn start_text(start: &Value) -> String {
    let before = output::text(start, "/previous_until");
    let before = if before.is_empty() {
        String::new()
    } else {
        format!(" (the run before was there until {})", time(&before))
    };
    format!(
        "callsheet {} started{before}",
        output::text(start, "/version")
    )
}

/// A duration with a unit that people read easily.
fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// `2026-03-01 09:30:00  notes: live -> down (it refuses connections)`.
fn change_text(change: &Value) -> String {
    let text = |pointer| output::text(change, pointer);
    let or = |text: String, other: &str| {
        if text.is_empty() {
            other.to_owned()
        } else {
            text
        }
    };
    let from = or(text("/from"), "unknown");
    let to = or(text("/to"), "forgotten");
    format!(
        "{}  {}: {from} -> {to} ({})",
        time(&text("/at")),
        text("/name"),
        text("/reason")
    )
}

/// A time to the second, in UTC.
fn time(text: &str) -> String {
    text.parse::<Timestamp>().map_or_else(
        |_| text.to_owned(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// Reads `--since`.
fn since(text: &str) -> Result<Timestamp, String> {
    let ago = |span: SignedDuration| Clock::system().wall().checked_sub(span).ok();
    let read = text
        .parse()
        .ok()
        .or_else(|| text.parse().ok().and_then(ago));
    read.ok_or_else(|| {
        "write a duration such as 2h, or a time such as 2026-03-01T09:30:00Z".to_owned()
    })
}
