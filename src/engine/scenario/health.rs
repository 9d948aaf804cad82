//! Evaluates which state a scenario is in, why, and until when that holds without new events. Pure.

use std::sync::Arc;

use tokio::time::Instant;

use crate::catalog::{Offer, Visibility};
use crate::config::{Config, HealthConfig};
use crate::discovery::SourceTrust;
use crate::engine::assignment::redacted_address;
use crate::engine::now::Now;
use crate::engine::scenario::facts::{LastPoll, ManifestTerm, SourcePresence, StateNotice};
use crate::engine::scenario::lifecycle::{self, Lifecycle, LifecycleInput, RemovedBy};
use crate::engine::scenario::{AcceptedManifest, Scenario, schedule};
use crate::model::scenario::BLOCKED_BY_NAME;
use crate::model::{Finding, FindingCode, SourceAbsence, StateTransition, Target};

/// The result of an assessment.
#[derive(Debug, PartialEq, Eq)]
struct Assessment {
    state: Lifecycle,
    /// Why, in one sentence without a full stop.
    reason: String,
    /// When time alone changes it.
    until: Option<Instant>,
}

/// What an evaluation changes for the rest of the engine.
pub(in crate::engine) struct Evaluation {
    /// The change of state, if there is one.
    pub(in crate::engine) turn: Option<StateTransition>,
    /// Whether the state or the reason changed.
    pub(in crate::engine) is_news: bool,
    /// What it offers the catalog.
    pub(in crate::engine) offer: Option<Offer>,
    /// When it has to be evaluated again, or forgotten, if no event comes before.
    pub(in crate::engine) until: Option<Instant>,
    /// When it is to be polled.
    pub(in crate::engine) poll: Option<Instant>,
}

impl Scenario {
    /// Evaluates the scenario. Clients that wait for an answer which cannot come get an error.
    pub(in crate::engine) fn evaluate(
        &mut self,
        config: &Config,
        isolated: bool,
        now: Now,
    ) -> Evaluation {
        self.dismiss_waiters();
        let Assessment {
            state,
            reason,
            until,
        } = assess(self, now.mono, &config.health, isolated);
        let (turned, reworded) = self.current.enter(state, reason, now.wall);
        if state == Lifecycle::Down {
            self.withdraw();
        }
        let reason = self.current.reason().to_owned();
        let turn = match self.current.mark_announced() {
            StateNotice::Already => None,
            StateNotice::Anew { before } => {
                Some(self.turned(before, Some(self.state()), reason, now))
            }
        };
        let poll = self
            .polls
            .next
            .filter(|_| self.polls.under_way.is_none() && self.may_be_polled())
            .map(|(at, _)| at);
        let until = [
            until,
            self.forgotten_at(config),
            standing_until(self, now.mono, config),
        ];
        Evaluation {
            turn,
            is_news: turned || reworded,
            offer: self.offered(now.mono, config),
            until: until.into_iter().flatten().min(),
            poll,
        }
    }

    /// Takes the state in which it was restored as announced: that a daemon starts changes no
    /// scenario.
    pub(in crate::engine) fn announce_restored(&mut self, config: &Config, now: Now) {
        let _ = self.evaluate(config, false, now);
    }

    /// Records that it is down: only a good answer brings its tools back.
    fn withdraw(&mut self) {
        if let Some(held) = self
            .offer
            .as_mut()
            .filter(|held| held.term != ManifestTerm::Ended)
        {
            held.term = ManifestTerm::Withdrawn;
        }
    }

    /// What it offers the catalog now.
    pub(in crate::engine) fn offered(&self, now: Instant, config: &Config) -> Option<Offer> {
        let manifest = Arc::clone(&self.offer.as_ref()?.manifest);
        Some(Offer {
            manifest,
            visibility: standing(self, now, config),
        })
    }

    /// Its findings, apart from its state.
    pub(in crate::engine) fn findings(&self) -> Vec<Finding> {
        if self.is_dismissed() {
            // What was wrong with it is no longer the operator's concern.
            return self.approval.finding().cloned().into_iter().collect();
        }
        let held = self.offer.iter().flat_map(|held| held.findings.iter());
        let own = held
            .chain(self.failure_finding.as_deref())
            .chain(self.approval.finding());
        own.cloned().chain(lost_finding(self)).collect()
    }
}

/// Assesses which state follows from the facts about a scenario. While the daemon is `isolated`, no
/// scenario goes down for its failures.
fn assess(record: &Scenario, now: Instant, health: &HealthConfig, isolated: bool) -> Assessment {
    let (answered, until) = answered(record, now, health, isolated);
    let state = [decided(record), named(record), answered]
        .into_iter()
        .fold(record.current.lifecycle(), lifecycle::next);
    let until = until.filter(|_| {
        !matches!(
            state,
            Lifecycle::Pending | Lifecycle::Blocked | Lifecycle::Removed(_)
        )
    });
    Assessment {
        state,
        reason: reason(record, state, isolated),
        until,
    }
}

/// What operators and sources decided about the scenario.
fn decided(record: &Scenario) -> LifecycleInput {
    match (record.is_blocked(), record.is_trusted()) {
        (true, _) => LifecycleInput::Rejected,
        (false, true) => LifecycleInput::Approved,
        (false, false) => LifecycleInput::Unapproved,
    }
}

/// Whether sources name the scenario.
fn named(record: &Scenario) -> LifecycleInput {
    match record.presence {
        SourcePresence::Absent { by, .. } => LifecycleInput::Absent(by),
        SourcePresence::Named | SourcePresence::Leaving | SourcePresence::Unnamed => {
            LifecycleInput::Present
        }
    }
}

/// The result of its answers, and when time alone changes it.
fn answered(
    record: &Scenario,
    now: Instant,
    health: &HealthConfig,
    isolated: bool,
) -> (LifecycleInput, Option<Instant>) {
    if record.ended().is_some() {
        return (LifecycleInput::Lost, None);
    }
    match record.latest {
        LastPoll::Unauthorized => return (LifecycleInput::Unauthorized, None),
        LastPoll::OutOfRange => return (LifecycleInput::OutOfRange, None),
        LastPoll::Unanswered | LastPoll::Good | LastPoll::Failed => {}
    }
    if record.is_asleep() {
        return (LifecycleInput::Sleeping, None);
    }
    // A poll of one that hangs takes minutes, so it fails seldom: its silence counts, too.
    let silent_until = record.silent_since.map(|since| since + health.grace);
    let is_silent = silent_until.is_some_and(|until| now >= until);
    let often = record.failures > 0 && (record.failures >= health.failures || is_silent);
    let ends = grace_ends(record, health);
    if often && !isolated && (now >= ends || record.offer.is_none()) {
        return (LifecycleInput::Lost, None);
    }
    // Only failures count against it: time spent waiting for its first answer does not.
    let fails_from = if often { Some(ends) } else { silent_until };
    let lost_at = fails_from.filter(|_| !isolated);
    // Without a manifest there is nothing to keep, also while the daemon is isolated.
    let Some(held) = &record.offer else {
        return (LifecycleInput::Unanswered, lost_at.filter(|at| now < *at));
    };
    let lost_at = lost_at.map(|at| at.max(ends));
    match held.term {
        ManifestTerm::Ended | ManifestTerm::Withdrawn => (LifecycleInput::Returned, lost_at),
        ManifestTerm::Until(live) if now < live && record.failures == 0 => {
            (LifecycleInput::Fresh, Some(live))
        }
        ManifestTerm::Until(live) if now < live && !often => (LifecycleInput::Doubtful, Some(live)),
        ManifestTerm::Until(_) if record.failures == 0 => (LifecycleInput::Aged, None),
        ManifestTerm::Restored if !often => (LifecycleInput::Unanswered, lost_at),
        ManifestTerm::Until(_) | ManifestTerm::Restored => (LifecycleInput::Failing, lost_at),
    }
}

/// When a scenario without good answers loses its tools.
fn grace_ends(record: &Scenario, health: &HealthConfig) -> Instant {
    let ends = record.grace_from + health.grace;
    record.reprieve.map_or(ends, |until| until.max(ends))
}

/// The visibility of a scenario's tools in its current state.
#[expect(
    clippy::match_same_arms,
    reason = "one line for each rule, in the order of the table of states"
)]
fn standing(record: &Scenario, now: Instant, config: &Config) -> Visibility {
    let withdrawn = || Visibility::Withdrawn(record.current.reason().to_owned());
    // Applies only when `cache.last_good` is off; it keeps the last good answer longer than that
    // answer said.
    let lapsed = lapses_at(record).is_some_and(|at| now >= at);
    match record.current.lifecycle() {
        // The names of a scenario that the configuration dropped are free at once.
        Lifecycle::Pending | Lifecycle::Blocked | Lifecycle::Removed(RemovedBy::Configuration) => {
            Visibility::Hidden(record.current.reason().to_owned())
        }
        // A scenario that failed keeps its names, so that others are not renamed because of it.
        Lifecycle::Down | Lifecycle::Removed(RemovedBy::Source) => withdrawn(),
        // A scenario that was absent or down is published again only after its next good answer.
        Lifecycle::Incompatible | Lifecycle::NeedsAuthorization if has_ended(record) => withdrawn(),
        Lifecycle::Incompatible if now < refused_until(record, config) => Visibility::Published,
        Lifecycle::NeedsAuthorization if now < grace_ends(record, &config.health) && !lapsed => {
            Visibility::Published
        }
        Lifecycle::Incompatible | Lifecycle::NeedsAuthorization => withdrawn(),
        Lifecycle::Connecting | Lifecycle::Live | Lifecycle::Stale if lapsed => withdrawn(),
        Lifecycle::Connecting | Lifecycle::Live | Lifecycle::Stale | Lifecycle::Asleep => {
            Visibility::Published
        }
    }
}

/// Whether it was absent or down since its last good answer.
fn has_ended(record: &Scenario) -> bool {
    record
        .offer
        .as_ref()
        .is_some_and(|AcceptedManifest { term, .. }| {
            matches!(term, ManifestTerm::Ended | ManifestTerm::Withdrawn)
        })
}

/// Whether it was absent since its last good answer.
fn was_absent(record: &Scenario) -> bool {
    record
        .offer
        .as_ref()
        .is_some_and(|AcceptedManifest { term, .. }| *term == ManifestTerm::Ended)
}

/// When the visibility changes by time alone.
fn standing_until(record: &Scenario, now: Instant, config: &Config) -> Option<Instant> {
    let ends = match record.current.lifecycle() {
        Lifecycle::Incompatible => Some(refused_until(record, config)),
        Lifecycle::NeedsAuthorization => Some(grace_ends(record, &config.health)),
        _ => None,
    };
    ends.into_iter()
        .chain(lapses_at(record))
        .filter(|ends| now < *ends)
        .min()
}

/// Until when the last good tools stay of a scenario whose protocol version is out of range.
fn refused_until(record: &Scenario, config: &Config) -> Instant {
    record
        .obstacle
        .as_ref()
        .map_or(record.grace_from, |obstacle| obstacle.since)
        + config.protocol.incompatible_grace
}

/// The finding for a scenario that is down and has never listed its tools; no finding about
/// withdrawn tools can report it.
fn lost_finding(record: &Scenario) -> Option<Finding> {
    if record.current.lifecycle() != Lifecycle::Down || record.offer.is_some() {
        return None;
    }
    let error = || {
        record
            .last_error
            .as_ref()
            .map(|error| error.message.as_str())
    };
    let what = record.ended().or_else(error).unwrap_or("no good answer");
    let message = format!("down, and its tools were never listed: {what}");
    let finding = Finding::new(FindingCode::Withdrawn, message).of_scenario(&record.name);
    let name = &record.name;
    let end = match (record.is_named(), record.source.spec().has_entries) {
        (true, true) => format!("to have it gone, take it out with `callsheet remove {name}`"),
        (true, false) => {
            format!("to have it gone, take it out of its source, or `callsheet block {name}`")
        }
        (false, _) => format!("`callsheet forget {name}` ends it"),
    };
    Some(finding.hint(format!(
        "its tools are listed at its first good answer; {end}"
    )))
}

/// When the active answer forbids its own use, if it does.
fn lapses_at(record: &Scenario) -> Option<Instant> {
    let fresh = record.offer.as_ref()?.fresh.as_ref();
    schedule::lapses_at(fresh, record.failures)
}

/// Why it is in a state, in one sentence without a full stop.
fn reason(record: &Scenario, state: Lifecycle, isolated: bool) -> String {
    match state {
        Lifecycle::Blocked => record.approval.note().unwrap_or(BLOCKED_BY_NAME).to_owned(),
        Lifecycle::Pending => pending(record),
        Lifecycle::Removed(by) => removed(record, by),
        Lifecycle::Down => down(record),
        Lifecycle::Incompatible | Lifecycle::NeedsAuthorization => record
            .obstacle
            .as_ref()
            .map_or_else(|| failing(record), |obstacle| obstacle.message.clone()),
        Lifecycle::Connecting => connecting(record),
        Lifecycle::Live => live(record),
        Lifecycle::Asleep => asleep(record),
        Lifecycle::Stale => {
            let kept = isolated && record.failures > 0;
            stale(record)
                + if kept {
                    "; it is kept while the daemon is isolated"
                } else {
                    ""
                }
        }
    }
}

/// Why it waits, and the next step. The text quotes its manifest, which is all that is known about
/// it.
fn pending(record: &Scenario) -> String {
    let name = &record.name;
    let proposal = record
        .place
        .as_ref()
        .filter(|place| place.endpoint.trust == SourceTrust::Proposed);
    if let Some(target) = proposal.and_then(|place| place.endpoint.target.as_ref()) {
        return proposed(record, target);
    }
    let at = record
        .party
        .as_ref()
        .map(|party| format!(" {party}"))
        .unwrap_or_default();
    let why = record
        .approval
        .note()
        .map(|note| format!(" again: {note}"))
        .unwrap_or_default();
    let there = if record.presence == SourcePresence::Named {
        ""
    } else {
        "; it is not announced any more"
    };
    let unread = record
        .last_error
        .as_ref()
        .filter(|error| error.kind == "too-large");
    let next = match unread {
        Some(error) => format!("its tools cannot be read: {}", error.message),
        None => format!("`callsheet trust {name}` publishes its tools"),
    };
    format!(
        "waits for an operator's approval{why}; `{}` found it{at}{there}; {next}, `callsheet block {name}` rejects it",
        record.source
    )
}

/// Why an entry of a client's file waits, with exactly what would be started or contacted.
fn proposed(record: &Scenario, target: &Target) -> String {
    let name = &record.name;
    let why = record
        .approval
        .note()
        .map(|note| format!(" again: {note}"))
        .unwrap_or_default();
    let list = |names: Vec<&str>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let what = match target {
        Target::Stdio(program) => {
            let folder = program
                .cwd()
                .map(|cwd| format!(" in {}", cwd.display()))
                .unwrap_or_default();
            let variables = list(program.env().keys().map(String::as_str).collect());
            format!(
                "would start {}{folder}, with these variables: {variables}",
                redacted_address(target)
            )
        }
        Target::Http(http) => {
            let headers = list(
                http.headers
                    .iter()
                    .map(|(header, _)| header.as_str())
                    .collect(),
            );
            format!(
                "would contact {}, with these headers: {headers}",
                redacted_address(target)
            )
        }
        Target::InProcess(_) | Target::Bundle(_) => format!("would use {target}"),
    };
    format!(
        "waits for an operator's approval{why}; an entry of a file of an MCP client {what}; \
         `callsheet trust {name}` accepts that, `callsheet block {name}` rejects it"
    )
}

fn live(record: &Scenario) -> String {
    match record.presence {
        SourcePresence::Leaving => "no source names it any more; it is polled once more".into(),
        SourcePresence::Unnamed => "answers, although no source names it any more".into(),
        SourcePresence::Named | SourcePresence::Absent { .. } => "up to date".into(),
    }
}

/// Since when it sleeps, and of when its list is.
fn asleep(record: &Scenario) -> String {
    let since = record.asleep_since().unwrap_or(record.current.since());
    let listed = record.offer.as_ref().map(|held| held.freshness.received_at);
    let listed = listed.unwrap_or(since);
    let is_same_day = listed.strftime("%F").to_string() == since.strftime("%F").to_string();
    let listed = listed.strftime(if is_same_day { "%H:%M" } else { "%F %H:%M" });
    let waking = if record.polls.under_way.is_some() {
        "; it is being started"
    } else {
        ""
    };
    format!(
        "asleep since {} UTC; its list is of {listed} UTC{waking}",
        since.strftime("%H:%M")
    )
}

fn stale(record: &Scenario) -> String {
    match &record.last_error {
        Some(_) if record.failures > 0 => failing(record),
        // "Busy" is no failure, but it explains why there is no newer answer.
        Some(error) => format!("its last answer is out of date: {}", error.message),
        None => "its last answer is out of date".into(),
    }
}

fn connecting(record: &Scenario) -> String {
    let restored = if record.offer.is_some() {
        "; its tools are those of its last good answer"
    } else {
        ""
    };
    match (&record.last_error, record.place.is_some()) {
        (Some(error), _) => format!("not working yet: {}{restored}", error.message),
        (None, true) if record.offer.is_some() => {
            format!("being polled for the first time since the start{restored}")
        }
        (None, true) => "being polled for the first time".into(),
        (None, false) => format!("no source has named it yet{restored}"),
    }
}

fn failing(record: &Scenario) -> String {
    let Some(error) = &record.last_error else {
        return "it moved, and is being polled at its new place for the first time".to_owned();
    };
    let what = error.message.as_str();
    match record.failures {
        // The sentence about a wait stays the same from poll to poll.
        _ if record.silent_since.is_some() => what.to_owned(),
        1 => format!("the last poll failed: {what}"),
        n => format!("the last {n} polls failed: {what}"),
    }
}

/// A scenario that came back after it was removed is down until its first good answer.
fn down(record: &Scenario) -> String {
    if let Some(why) = record.ended() {
        return why.to_owned();
    }
    match &record.last_error {
        _ if !was_absent(record) && record.failures > 0 => failing(record),
        Some(error) => format!(
            "a source names it again, but it has given no good answer yet: {}",
            error.message
        ),
        None if record.polls.under_way.is_some() => {
            "a source names it again, and it is being polled".into()
        }
        None => "a source names it again, but it has given no good answer yet".into(),
    }
}

fn removed(record: &Scenario, by: RemovedBy) -> String {
    match (by, record.source.spec().absence, &record.last_error) {
        (RemovedBy::Configuration, SourceAbsence::Decision(reason), _) => reason.into(),
        (RemovedBy::Configuration, _, _) => {
            format!(
                "`{}` found it, which the configuration has switched off",
                record.source
            )
        }
        (RemovedBy::Source, _, Some(error)) => {
            format!(
                "no source names it any more, and it does not answer: {}",
                error.message
            )
        }
        (RemovedBy::Source, _, None) => "no source names it any more".into(),
    }
}
