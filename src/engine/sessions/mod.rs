//! Keeps one session per scenario, as long as that is the same process or connection.
//!
//! A session is kept while its scenario has the same target and protocol. It is dropped, which
//! closes it, when the scenario moves, restarts, is blocked or removed, and when it ended by
//! itself. Invariants, an example and the errors are in `docs/design/sessions.md`.
//!
//! ```text
//!             connected                   good listing               Following
//!  (no session) ------> Living, not followed ------> Listening to hints ------> Followed
//!       ^                  |        ^                       |                      |
//!       | close            | ended  |  listing, after a wait | hints ended          | hints ended
//!       |                  v        +-----------------------+----------------------+
//!       +------------- Ended (until the next listing connects)
//! ```
//!
//! What is kept true here:
//!
//! - A scenario has one session at most. Only the loop changes this table.
//! - A hint only ever triggers a listing. How soon is decided here (`pace.rs`).
//! - A report of an earlier session, or of one that ended, has no effect ([`SessionEffect::None`]).
//! - After a session ended, calls find an `EndedSession` in its place, which sends no request,
//!   until a listing has connected anew. How long that listing waits is decided here.
//!
//! Read in this order: this file, `link.rs` (what a session is made from, what calls hold),
//! `news.rs` and `reporter.rs` (how its reports reach the loop), `pace.rs`, `ended.rs`.
//!
//! It starts no listing, changes no scenario and judges no health: what follows from what a session
//! says is given as a [`SessionEffect`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::config::RefreshConfig;
use crate::engine::message::EngineEvent;
use crate::engine::scenario::backoff::Backoff;
use crate::engine::sessions::ended::EndedSession;
use crate::engine::sessions::link::{Connected, SessionLink, SessionSpec};
use crate::engine::sessions::news::{News, SessionNews};
use crate::engine::sessions::pace::Pace;
use crate::engine::sessions::reporter::Reporter;
use crate::model::{ScenarioName, Target};
use crate::protocols::{EndReason, Hint, Session};
use crate::transports::Transports;

mod ended;
pub(in crate::engine) mod link;
pub(in crate::engine) mod news;
mod pace;
mod reporter;
#[cfg(test)]
mod tests;

/// A session, or a stream of hints, that lived this long did not fail to start: the next wait is
/// the shortest again.
const SETTLED: Duration = Duration::from_secs(60);

/// What follows from the report of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum SessionEffect {
    /// No effect.
    None,
    /// A listing at this time, unless one is due before.
    List(Instant),
    /// The same, and the last answer counts as fresh only as long as it said.
    Unfollowed(Instant),
    /// The process or connection is gone, for this reason: an unconditional listing at this time
    /// connects anew.
    Gone(Instant, EndReason),
}

/// The session of each scenario that has one.
pub(in crate::engine) struct Sessions {
    transports: Transports,
    events: mpsc::Sender<EngineEvent>,
    kept: BTreeMap<ScenarioName, KeptSession>,
    /// The number of sessions made; it distinguishes reports of an earlier session from those of
    /// the present one.
    made: u64,
}

struct KeptSession {
    made_of: Connected,
    number: u64,
    since: Instant,
    life: Life,
    hints: Hints,
    /// The wait before this session was made, if the one before ended by itself.
    wait: Option<Duration>,
    pace: Pace,
    hinted: Hinted,
}

/// Whether a session can be used.
enum Life {
    /// It can be used, as far as is known. The task waits for its end, if it can end.
    Living { _end: Option<AbortOnDropHandle<()>> },
    /// It ended by itself, and a replacement that sends no request is in its place.
    Ended,
}

/// How far the hints of a session are followed.
enum Hints {
    /// They are not followed, until this time if there is one.
    Off {
        until: Option<Instant>,
        wait: Option<Duration>,
    },
    /// There is a stream, and changes since it was opened may have been missed.
    Listening(HintStream),
    /// Every change is signalled.
    Followed(HintStream),
}

/// Whether a hint has led to a listing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hinted {
    /// There is no hint.
    No,
    /// A listing is planned.
    Waiting,
    /// The listing under way is for the hint.
    Listing,
    /// The listing under way is for the hint, and another hint came since it began.
    Again,
}

/// The result of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum ListOutcome {
    /// Another list than before.
    Changed,
    /// The same list.
    Unchanged,
    /// No list.
    Failed,
}

/// A stream of hints; dropping it ends its reader.
struct HintStream {
    since: Instant,
    wait: Option<Duration>,
    _reader: AbortOnDropHandle<()>,
}

impl Hints {
    fn off() -> Self {
        Self::Off {
            until: None,
            wait: None,
        }
    }
}

impl Sessions {
    /// Starts without sessions. Reports of sessions are sent to `events`.
    pub(in crate::engine) fn new(
        transports: Transports,
        events: mpsc::Sender<EngineEvent>,
    ) -> Self {
        Self {
            transports,
            events,
            kept: BTreeMap::new(),
            made: 0,
        }
    }

    /// A listing made a session; it replaces any other one.
    pub(in crate::engine) fn connected(
        &mut self,
        name: &ScenarioName,
        made_of: Connected,
        now: Instant,
    ) {
        let before = self.kept.remove(name);
        let wait = before
            .and_then(|before| matches!(before.life, Life::Ended).then_some(before.wait))
            .flatten();
        self.made += 1;
        let end = made_of.session.ended().map(|ended| {
            let reporter = self.reporter(name, self.made);
            self.watch(reporter.end(ended))
        });
        let kept = KeptSession {
            made_of,
            number: self.made,
            since: now,
            life: Life::Living { _end: end },
            hints: Hints::off(),
            wait,
            pace: Pace::new(now),
            hinted: Hinted::No,
        };
        self.kept.insert(name.clone(), kept);
    }

    /// Updates the session of a scenario; `spec` is `None` when it may not have one. Returns the
    /// session for calls, if there is one.
    pub(in crate::engine) fn sync(
        &mut self,
        name: &ScenarioName,
        spec: Option<SessionSpec<'_>>,
        now: Instant,
    ) -> Option<SessionLink> {
        let Some(spec) = spec else {
            self.close(name);
            return None;
        };
        if spec.asleep {
            return Some(self.put_to_sleep(name, spec, now));
        }
        if let Some(kept) = self.kept.get_mut(name) {
            if kept.made_of.target == *spec.target
                && Arc::ptr_eq(&kept.made_of.protocol, spec.protocol)
            {
                if !spec.followed {
                    kept.hints = Hints::off();
                }
                return Some(kept.link());
            }
            self.close(name);
        }
        if let Some(version) = spec.version {
            spec.protocol.recall(spec.target, version);
        }
        let session = self.make(spec)?;
        let target = spec.target.clone();
        let protocol = Arc::clone(spec.protocol);
        self.connected(
            name,
            Connected {
                target,
                protocol,
                session,
            },
            now,
        );
        self.kept.get(name).map(KeptSession::link)
    }

    /// Closes the session of a scenario whose program is to sleep, which ends that program. A
    /// session that sends no request takes its place, and has the last errors.
    fn put_to_sleep(
        &mut self,
        name: &ScenarioName,
        spec: SessionSpec<'_>,
        now: Instant,
    ) -> SessionLink {
        let before = self.kept.get(name);
        if let Some(kept) = before.filter(|kept| !kept.is_living()) {
            return kept.link();
        }
        let errors = before.map(|kept| kept.made_of.session.recent_errors());
        let reason = EndReason::new("its program sleeps until a request needs it");
        let session = EndedSession::new(spec.target, reason, errors.unwrap_or_default());
        // Reports of the session before are dropped.
        self.made += 1;
        let kept = KeptSession {
            made_of: Connected {
                target: spec.target.clone(),
                protocol: Arc::clone(spec.protocol),
                session: Arc::new(session),
            },
            number: self.made,
            since: now,
            life: Life::Ended,
            hints: Hints::off(),
            wait: None,
            pace: Pace::new(now),
            hinted: Hinted::No,
        };
        let link = kept.link();
        self.kept.insert(name.clone(), kept);
        link
    }

    /// The session through which a scenario can be listed; `None` when one has to be made.
    pub(in crate::engine) fn living(&self, name: &ScenarioName) -> Option<Arc<dyn Session>> {
        let kept = self.kept.get(name).filter(|kept| kept.is_living())?;
        Some(Arc::clone(&kept.made_of.session))
    }

    /// Whether every change of a scenario is signalled.
    pub(in crate::engine) fn is_followed(&self, name: &ScenarioName) -> bool {
        self.kept
            .get(name)
            .is_some_and(|kept| matches!(kept.hints, Hints::Followed(_)))
    }

    /// Closes the session: the scenario is another process now, or no longer known.
    pub(in crate::engine) fn close(&mut self, name: &ScenarioName) {
        self.kept.remove(name);
    }

    /// Whether a hint waits for a listing.
    pub(in crate::engine) fn is_hinted(&self, name: &ScenarioName) -> bool {
        self.kept
            .get(name)
            .is_some_and(|kept| kept.hinted == Hinted::Waiting)
    }

    /// Handles the report of a session. Reports of an earlier session are dropped, and so are
    /// reports after its end: a hint that was still queued would bypass the back-off of the next
    /// connection. `last` is when its scenario was listed last.
    pub(in crate::engine) fn handle(
        &mut self,
        report: SessionNews,
        last: Option<Instant>,
        refresh: &RefreshConfig,
        now: Instant,
    ) -> SessionEffect {
        let Some(kept) = self
            .kept
            .get_mut(&report.name)
            .filter(|kept| kept.number == report.number && kept.is_living())
        else {
            return SessionEffect::None;
        };
        match report.news {
            News::Hint(hint) => kept.hint(hint, last, now),
            News::HintsEnded => kept.hints_ended(refresh, now),
            News::Ended(reason) => kept.ended(reason, refresh, now),
        }
    }

    /// Records that a listing of a scenario begins.
    pub(in crate::engine) fn begun(&mut self, name: &ScenarioName) {
        if let Some(kept) = self
            .kept
            .get_mut(name)
            .filter(|kept| kept.hinted == Hinted::Waiting)
        {
            kept.hinted = Hinted::Listing;
        }
    }

    /// Records that a listing that began at `last` ended. Returns when another one is needed
    /// because a hint came meanwhile. With `follow`, the hints of the session are followed after a
    /// good listing.
    pub(in crate::engine) fn listed(
        &mut self,
        name: &ScenarioName,
        outcome: ListOutcome,
        follow: bool,
        (last, now): (Option<Instant>, Instant),
        refresh: &RefreshConfig,
    ) -> Option<Instant> {
        let kept = self.kept.get_mut(name)?;
        kept.learn(outcome, refresh, now);
        let again = (kept.hinted == Hinted::Waiting).then(|| kept.earliest(last, now));
        if follow && outcome != ListOutcome::Failed {
            self.follow(name, now);
        }
        again
    }

    /// Follows the hints of a session, if it gives any and they are not followed already.
    fn follow(&mut self, name: &ScenarioName, now: Instant) {
        let Some(kept) = self.kept.get(name) else {
            return;
        };
        let Hints::Off { until, wait } = kept.hints else {
            return;
        };
        if until.is_some_and(|until| now < until) {
            return;
        }
        let Some(hints) = kept.made_of.session.hints() else {
            return;
        };
        let reader = self
            .reporter(name, kept.number)
            .hints(hints, self.transports.clock());
        let reader = self.watch(reader);
        if let Some(kept) = self.kept.get_mut(name) {
            kept.hints = Hints::Listening(HintStream {
                since: now,
                wait,
                _reader: reader,
            });
        }
    }

    fn reporter(&self, name: &ScenarioName, number: u64) -> Reporter {
        Reporter {
            name: name.clone(),
            number,
            events: self.events.clone(),
        }
    }

    fn watch(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(self.transports.tasks().spawn(task))
    }

    /// A session that can be made without waiting; any other one is made by the next listing.
    fn make(&self, spec: SessionSpec<'_>) -> Option<Arc<dyn Session>> {
        if !spec.protocol.is_connectionless() {
            return None;
        }
        spec.protocol
            .connect(spec.target, &self.transports)
            .now_or_never()?
            .ok()
    }
}

impl KeptSession {
    fn link(&self) -> SessionLink {
        SessionLink {
            session: Arc::clone(&self.made_of.session),
            ended: !self.is_living(),
        }
    }

    fn is_living(&self) -> bool {
        matches!(self.life, Life::Living { .. })
    }

    /// When it may be listed for a hint at the earliest.
    fn earliest(&self, last: Option<Instant>, now: Instant) -> Instant {
        last.map_or(now, |last| now.max(last + self.pace.gap()))
    }

    fn hint(&mut self, hint: Hint, last: Option<Instant>, now: Instant) -> SessionEffect {
        self.hinted = match self.hinted {
            Hinted::No | Hinted::Waiting => Hinted::Waiting,
            Hinted::Listing | Hinted::Again => Hinted::Again,
        };
        self.hints = match (hint, std::mem::replace(&mut self.hints, Hints::off())) {
            (Hint::Following, Hints::Listening(stream)) => Hints::Followed(stream),
            (_, hints) => hints,
        };
        SessionEffect::List(self.earliest(last, now))
    }

    fn hints_ended(&mut self, refresh: &RefreshConfig, now: Instant) -> SessionEffect {
        let (Hints::Listening(stream) | Hints::Followed(stream)) =
            std::mem::replace(&mut self.hints, Hints::off())
        else {
            return SessionEffect::None;
        };
        let lived = now.saturating_duration_since(stream.since) >= SETTLED;
        let wait = wait(stream.since, stream.wait, refresh, now);
        let until = if lived { now } else { now + wait };
        self.hints = Hints::Off {
            until: Some(until),
            wait: Some(wait),
        };
        SessionEffect::Unfollowed(until)
    }

    /// The session ended by itself. Its resources are released here, as soon as no call uses it any
    /// more.
    fn ended(&mut self, reason: EndReason, refresh: &RefreshConfig, now: Instant) -> SessionEffect {
        let wait = match self.made_of.target {
            Target::Stdio(_) => restart_wait(self.since, self.wait, now),
            Target::Http(_) | Target::InProcess(_) | Target::Bundle(_) => {
                wait(self.since, self.wait, refresh, now)
            }
        };
        let errors = self.made_of.session.recent_errors();
        self.made_of.session = Arc::new(EndedSession::new(
            &self.made_of.target,
            reason.clone(),
            errors,
        ));
        (self.life, self.hints, self.wait) = (Life::Ended, Hints::off(), Some(wait));
        SessionEffect::Gone(now + wait, reason)
    }

    /// Hints without a change are followed at growing intervals.
    fn learn(&mut self, outcome: ListOutcome, refresh: &RefreshConfig, now: Instant) {
        if matches!(self.hinted, Hinted::Listing | Hinted::Again) {
            self.pace
                .learn(outcome == ListOutcome::Changed, refresh, now);
        }
        self.hinted = match self.hinted {
            Hinted::No | Hinted::Listing => Hinted::No,
            Hinted::Waiting | Hinted::Again => Hinted::Waiting,
        };
    }
}

/// The wait before a program that was started at `since` is started again.
fn restart_wait(since: Instant, before: Option<Duration>, now: Instant) -> Duration {
    let before = before.filter(|_| now.saturating_duration_since(since) < SETTLED);
    Backoff::of_programs().doubled(before, fastrand::f64())
}

/// The wait before a new session or stream replaces the one made at `since`; `before` is the wait
/// before that one. The first wait is short, so that calls that wait for the next session
/// (`calls.reroute_wait`) get it.
fn wait(
    since: Instant,
    before: Option<Duration>,
    refresh: &RefreshConfig,
    now: Instant,
) -> Duration {
    match before.filter(|_| now.saturating_duration_since(since) < SETTLED) {
        None => refresh.backoff_base / 4,
        before => {
            Backoff::new(refresh.backoff_base, refresh.backoff_max).next(before, fastrand::f64())
        }
    }
}
