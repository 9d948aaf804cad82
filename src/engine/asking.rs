//! Starts asks beside the loop.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::ask::{Question, Way, ask};
use super::effects::Settled;
use super::error::EngineError;
use super::message::{Document, Event, Waiting};
use super::now::Now;
use super::routes::CallReport;
use super::run::Core;
use super::scenario::Held;
use super::sessions::link::SessionLink;
use super::sessions::news::SessionNews;
use super::sessions::{Effect, ListOutcome};
use crate::model::{Digest, ScenarioName, Target};
use crate::protocols::{Known, ListRequest, tool_discovery};
use crate::transports::TransportError;

/// An ask may take so many times `refresh.timeout`, much of which it may wait for its turn in a large fleet.
const LONGEST: u32 = 60;

impl Core {
    /// Asks a scenario past its schedule; joins an ask that is under way.
    pub(super) fn force(&mut self, name: &ScenarioName, now: Now) -> Result<Waiting, EngineError> {
        let gap = self.parts.config.refresh.forced_gap;
        let record = self.records.get_mut(name).ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        if let Some(refusal) = record.refusal() {
            return Err(refusal);
        }
        let (waiter, waiting) = tokio::sync::oneshot::channel();
        record.waiters.push(waiter);
        if record.asking.is_none() {
            record.unconditional = true;
            record.ask_by(record.after_last_attempt(gap, now), now);
            // Whoever looks meanwhile sees when it is due.
            self.publisher.mark_dirty(name);
        }
        self.touch(name, now, Settled::Same);
        Ok(waiting)
    }

    /// A call taught something: asks at once, so that a moved or restarted scenario is soon known for what it is. What it taught about a
    /// process that is known to be gone counts for nothing, and that a session has ended is known: the next one is made after its wait.
    pub(super) fn called(&mut self, name: &ScenarioName, generation: u64, report: CallReport, now: Now) {
        let gap = self.parts.config.refresh.forced_gap;
        let Some(record) = self.records.get_mut(name) else { return };
        let ended = record.session.as_ref().is_some_and(|link| link.ended);
        if record.generation != generation || ended || record.asking.is_some() || record.refusal().is_some() {
            return;
        }
        let refused = report == CallReport::Refused;
        if !refused && record.failures == 0 {
            return;
        }
        record.unconditional |= refused;
        record.ask_by(record.after_last_attempt(gap, now), now);
        self.touch(name, now, Settled::Changed);
    }

    /// A session said something by itself.
    pub(super) fn spoke(&mut self, news: SessionNews, now: Now) {
        let name = news.name.clone();
        let Some(record) = self.records.get_mut(&name) else { return };
        let (last, followed) = (record.last_attempt.map(|(at, _)| at), self.sessions.is_followed(&name));
        match self.sessions.handle(news, last, &self.parts.config.refresh, now.mono) {
            Effect::None => return,
            Effect::List(at) => record.hinted(at, now),
            Effect::Unfollowed(at) => {
                record.unfollowed();
                record.hinted(at, now);
            }
            Effect::Gone(at, why) => {
                if followed {
                    record.unfollowed();
                }
                record.lost(why, at, now);
            }
        }
        self.touch(&name, now, Settled::Changed);
    }

    /// A listing ended, before which the manifest in force was of this digest: what that means for the session. `good` is whether a list
    /// came.
    pub(super) fn listed(&mut self, name: &ScenarioName, before: Option<Digest>, good: bool, now: Now) {
        let Some(record) = self.records.get_mut(name) else { return };
        let outcome = match (good, record.digest() == before) {
            (false, _) => ListOutcome::Failed,
            (true, true) => ListOutcome::Unchanged,
            (true, false) => ListOutcome::Changed,
        };
        let times = (record.last_attempt.map(|(at, _)| at), now.mono);
        let again = self.sessions.listed(name, outcome, record.is_trusted(), times, &self.parts.config.refresh);
        if let Some(at) = again {
            record.hinted(at, now);
        }
    }

    /// Where one request shows a scenario's list as it writes it, if it may be asked.
    pub(super) fn place_of(&self, name: &ScenarioName) -> Result<Document, EngineError> {
        let record = self.records.get(name).ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        if let Some(refusal) = record.refusal() {
            return Err(refusal);
        }
        let target = record.target.as_ref().ok_or_else(|| EngineError::NoAddress(name.clone()))?;
        if let Some(SessionLink { session, .. }) = &record.session {
            let nothing =
                || TransportError::Address(format!("`{target}` is not reached by a request that can be shown"));
            return Ok(session.document().ok_or_else(nothing));
        }
        // One whose protocol is not known yet is probed there first too.
        Ok(match target {
            Target::Http(target) => self.parts.transports.http(target).map(|upstream| (upstream, tool_discovery::PATH)),
            Target::InProcess(id) => {
                let message = format!("`{}` is inside this program, where nothing is sent", id.as_str());
                Err(TransportError::Address(message))
            }
        })
    }

    /// Starts the ask of a scenario beside the loop, when it is due.
    pub(super) fn ask_if_due(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get_mut(name) else { return };
        let due = record.next_ask.is_some_and(|(at, _)| at <= now.mono);
        if !due || record.asking.is_some() || !record.may_be_asked() {
            return;
        }
        let Some(target) = record.target.clone() else { return };
        // Anyone on the network can be found and wait for approval, so little of their answers is read.
        let most = (!record.is_trusted()).then_some(self.parts.config.refresh.max_pending_body);
        record.last_attempt = Some((now.mono, now.wall));
        self.sessions.begun(name);
        let known = record.offer.as_ref().filter(|_| !record.unconditional).and_then(known);
        let (accept, bounds) = (self.parts.config.protocol.accept.clone(), self.parts.config.bounds());
        let way = match (self.sessions.living(name), &record.protocol) {
            (Some(session), Some(protocol)) => Way::Session(Arc::clone(protocol), session),
            (_, Some(protocol)) => Way::Connect(Arc::clone(protocol)),
            (_, None) => Way::Probe(self.parts.protocols.clone()),
        };
        let question = Question {
            name: name.clone(),
            generation: record.generation,
            target,
            way,
            transports: self.parts.transports.clone(),
            longest: self.parts.config.refresh.timeout.saturating_mul(LONGEST),
            request: ListRequest { known, accept, bounds, max_body: most },
            listings: Arc::clone(&self.parts.listings),
        };
        let (events, stop) = (self.parts.events.clone(), self.parts.stop.clone());
        let strangers = (!record.is_trusted()).then(|| Arc::clone(&self.strangers));
        // In a box: it is large, and starting a task moves what it runs seven times.
        let asking = Box::pin(ask(question));
        record.asking = Some(AbortOnDropHandle::new(self.parts.tasks.spawn(async move {
            let turn = async {
                let _place = match &strangers {
                    // Never closed, so it is always given.
                    Some(strangers) => strangers.acquire().await.ok(),
                    None => None,
                };
                asking.await
            };
            let answered = tokio::select! {
                answered = turn => answered,
                () = stop.wait() => return,
            };
            // Fails only when the loop is gone, and then nobody needs the answer.
            let _ = events.send(Event::Answered(Box::new(answered))).await;
        })));
    }
}

/// What makes the next ask conditional, if the last answer gave something for it.
fn known(held: &Held) -> Option<Known> {
    let validators = &held.fresh.as_ref()?.validators;
    validators.any().then(|| Known { digest: held.manifest.digest, validators: validators.clone() })
}
