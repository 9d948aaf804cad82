//! Starts asks beside the loop.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::ask::{Question, ask};
use super::core::Core;
use super::publish::Settled;
use super::record::{Held, Now};
use super::{CallReport, EngineError, Event};
use crate::model::ScenarioName;
use crate::protocols::{Known, tool_discovery};
use crate::transports::http::Upstream;

impl Core {
    /// Asks a scenario past its schedule; joins an ask that is under way.
    pub(super) fn force(&mut self, name: &ScenarioName, now: Now) -> Result<super::Waiting, EngineError> {
        let gap = self.parts.config.refresh.forced_gap;
        let record = self.records.get_mut(name).ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        if let Some(refusal) = record.refusal() {
            return Err(refusal);
        }
        let (waiter, waiting) = tokio::sync::oneshot::channel();
        record.waiters.push(waiter);
        if record.asking.is_none() {
            let earliest = record.last_attempt.map_or(now.mono, |(at, _)| at + gap).max(now.mono);
            let planned = record.next_ask.map_or(earliest, |(at, _)| at);
            record.unconditional = true;
            record.ask_at(earliest.min(planned), now);
            // Whoever looks meanwhile sees when it is due.
            self.press.touch(name);
        }
        self.touch(name, now, Settled::Same);
        Ok(waiting)
    }

    /// A call taught something: asks at once, so that a moved or restarted scenario is soon known for what it is. What it taught about a
    /// process that is known to be gone counts for nothing.
    pub(super) fn called(&mut self, name: &ScenarioName, generation: u64, report: CallReport, now: Now) {
        let gap = self.parts.config.refresh.forced_gap;
        let Some(record) = self.records.get_mut(name) else { return };
        if record.generation != generation || record.asking.is_some() || record.refusal().is_some() {
            return;
        }
        let refused = report == CallReport::Refused;
        if !refused && record.failures == 0 {
            return;
        }
        record.unconditional |= refused;
        let earliest = record.last_attempt.map_or(now.mono, |(at, _)| at + gap).max(now.mono);
        let planned = record.next_ask.map_or(earliest, |(at, _)| at);
        record.ask_at(earliest.min(planned), now);
        self.touch(name, now, Settled::Changed);
    }

    /// Where a scenario is asked first, if it may be asked.
    pub(super) fn place_of(&self, name: &ScenarioName) -> Result<(Upstream, &'static str), EngineError> {
        let record = self.records.get(name).ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        if let Some(refusal) = record.refusal() {
            return Err(refusal);
        }
        let upstream = record.upstream.clone().ok_or_else(|| EngineError::NoAddress(name.clone()))?;
        // One whose protocol is not known yet is probed there first too.
        Ok((upstream, record.protocol.as_ref().map_or(tool_discovery::PATH, |protocol| protocol.path())))
    }

    /// Starts the ask of a scenario beside the loop, when it is due.
    pub(super) fn ask_if_due(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get_mut(name) else { return };
        let due = record.next_ask.is_some_and(|(at, _)| at <= now.mono);
        if !due || record.asking.is_some() || !record.may_be_asked() {
            return;
        }
        let Some(upstream) = record.upstream.clone() else { return };
        // Anyone on the network can be found and wait for approval, so little of their answers is read.
        let most = (!record.is_trusted()).then_some(self.parts.config.refresh.max_pending_body);
        record.last_attempt = Some((now.mono, now.wall));
        let known = record.offer.as_ref().filter(|_| !record.unconditional).and_then(known);
        let question = Question {
            name: name.clone(),
            generation: record.generation,
            upstream: upstream.reading_at_most(most),
            protocol: record.protocol.clone(),
            protocols: self.parts.protocols.clone(),
            accept: self.parts.config.protocol.accept.clone(),
            known,
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
    let any = validators.etag.is_some() || validators.last_modified.is_some();
    any.then(|| Known { digest: held.manifest.digest, validators: validators.clone() })
}
