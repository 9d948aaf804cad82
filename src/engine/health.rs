//! Which state a scenario is in, why, and until when that can be said without new events. Pure.

use tokio::time::Instant;

use super::record::{Departed, Record};
use super::schedule;
use crate::catalog::Standing;
use crate::config::{HealthRules, ProtocolRules};
use crate::model::{ScenarioState, SourceId};
use crate::state::Decision;

/// A judgement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) state: ScenarioState,
    /// Why, in one sentence without a full stop.
    pub(super) reason: String,
    /// When time alone changes it.
    pub(super) until: Option<Instant>,
}

/// Judges a record. The table of states is DESIGN's; the first line that holds wins. While the daemon is `isolated`, nothing that is not down
/// already goes down for its failures.
pub(super) fn judge(record: &Record, now: Instant, health: &HealthRules, isolated: bool) -> Judged {
    let judged = |state, reason: String, until| Judged { state, reason, until };
    if record.decision == Some(Decision::Blocked) {
        let reason = record.note.clone().unwrap_or_else(|| "an operator blocked it".into());
        return judged(ScenarioState::Blocked, reason, None);
    }
    if !record.is_trusted() {
        return judged(ScenarioState::Pending, pending(record), None);
    }
    if record.gone {
        return judged(ScenarioState::Down, gone(record), None);
    }
    let grace_ends = record.grace_from + health.grace;
    let grace_ends = record.reprieve.map_or(grace_ends, |until| until.max(grace_ends));
    let kept = isolated && record.state != ScenarioState::Down;
    if record.failures >= health.failures && now >= grace_ends && !kept {
        return judged(ScenarioState::Down, failing(record), None);
    }
    // Only failures make time count against it: a scenario that is waited for is not getting worse.
    let until_down = (record.failures >= health.failures && !kept).then_some(grace_ends);
    if let Some(incompatible) = &record.incompatible {
        return judged(ScenarioState::Incompatible, incompatible.message.clone(), until_down);
    }
    let Some(live_until) = record.offer.as_ref().and_then(|held| held.live_until) else {
        return judged(ScenarioState::Connecting, connecting(record), until_down);
    };
    if now < live_until && record.failures < health.failures {
        return judged(ScenarioState::Live, live(record), Some(live_until));
    }
    let kept = if kept && record.failures > 0 { "; it is kept while the daemon is isolated" } else { "" };
    judged(ScenarioState::Stale, stale(record) + kept, until_down)
}

/// What a state means for the list.
pub(super) fn standing(record: &Record, now: Instant, protocol: &ProtocolRules) -> Standing {
    match record.state {
        ScenarioState::Pending | ScenarioState::Blocked => Standing::Hidden(record.reason.clone()),
        // Who failed keeps its names, so that others are not renamed by it. Who is not wanted any more has none.
        ScenarioState::Down if record.dismissed => Standing::Hidden(record.reason.clone()),
        ScenarioState::Down => Standing::Withdrawn(record.reason.clone()),
        ScenarioState::Incompatible => match &record.incompatible {
            Some(incompatible) if now < incompatible.since + protocol.incompatible_grace => Standing::Published,
            _ => Standing::Withdrawn(record.reason.clone()),
        },
        // Only without the product's own rule that the last good answer outlives what it said.
        _ if lapses_at(record).is_some_and(|at| now >= at) => Standing::Withdrawn(record.reason.clone()),
        ScenarioState::Connecting | ScenarioState::Live | ScenarioState::Stale => Standing::Published,
    }
}

/// When the standing changes by time alone.
pub(super) fn standing_until(record: &Record, now: Instant, protocol: &ProtocolRules) -> Option<Instant> {
    let ends = record.incompatible.as_ref().map(|incompatible| incompatible.since + protocol.incompatible_grace);
    ends.into_iter().chain(lapses_at(record)).filter(|ends| now < *ends).min()
}

/// When the answer in force forbids its own use, if it does.
fn lapses_at(record: &Record) -> Option<Instant> {
    let fresh = record.offer.as_ref()?.fresh.as_ref();
    schedule::lapses_at(fresh, record.failures)
}

/// Why it waits, and the next step: its manifest says what it claims to be, which is all that is known of it.
fn pending(record: &Record) -> String {
    let name = &record.name;
    let at = record.party.as_ref().map(|party| format!(" {party}")).unwrap_or_default();
    let why = record.note.as_ref().map(|note| format!(" again: {note}")).unwrap_or_default();
    let there = if record.departed.is_some() { "; it is not announced any more" } else { "" };
    let unread = record.last_error.as_ref().filter(|error| error.kind == "too-large");
    let next = match unread {
        Some(error) => format!("its tools cannot be shown: {}", error.message),
        None => format!("`callsheet trust {name}` publishes its tools"),
    };
    format!(
        "{} found it{at}, and it waits for an operator's yes{why}{there}; {next}, `callsheet block {name}` keeps it out",
        record.source
    )
}

fn live(record: &Record) -> String {
    match record.departed {
        Some(Departed::Asking) => "no source names it any more; whether it still answers is being asked".into(),
        Some(Departed::Answers) => "answers, although no source names it any more".into(),
        _ => "its last answer is fresh".into(),
    }
}

fn stale(record: &Record) -> String {
    match &record.last_error {
        Some(_) if record.failures > 0 => failing(record),
        // Busy is no failure, but it is why there is nothing fresher.
        Some(error) => format!("its last answer is no longer fresh: {}", error.message),
        None => "its last answer is no longer fresh".into(),
    }
}

fn connecting(record: &Record) -> String {
    let restored = if record.offer.is_some() { "; its tools are those of its last good answer" } else { "" };
    match (&record.last_error, record.place.is_some()) {
        (Some(error), _) => format!("never answered yet: {}{restored}", error.message),
        (None, true) => format!("being asked for the first time{restored}"),
        (None, false) => format!("no source has named it yet{restored}"),
    }
}

fn failing(record: &Record) -> String {
    let what = record.last_error.as_ref().map_or("no good answer", |error| error.message.as_str());
    match record.failures {
        1 => format!("the last ask failed: {what}"),
        n => format!("the last {n} asks failed: {what}"),
    }
}

fn gone(record: &Record) -> String {
    if record.dismissed {
        return match record.source {
            SourceId::Static => "the configuration does not name it any more".into(),
            source => format!("`{source}` found it, which the configuration has switched off"),
        };
    }
    let error = record.last_error.as_ref().map(|error| error.message.as_str());
    match (record.departed, error) {
        (Some(_), Some(error)) => format!("no source names it any more, and it does not answer: {error}"),
        (Some(_), None) => "no source names it any more".into(),
        (None, Some(error)) => format!("a source names it again, but it has given no good answer yet: {error}"),
        (None, None) => "a source names it again, but it has given no good answer yet".into(),
    }
}
