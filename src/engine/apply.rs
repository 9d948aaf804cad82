//! Applies the effects that the parts of the engine return. This is the only place that does, so
//! their order is written once.

use std::time::Duration;

use super::effects::{ChangeKind, Dirty, Effects, Notice, PollSet};
use super::error::EngineError;
use super::now::Now;
use super::persist::manifest_writer::SaveRequest;
use super::run::Core;
use super::scenario::handle::ScenarioInput;
use crate::model::ScenarioName;

impl Core {
    /// The order: sessions are closed, changes are stored, waiting parts and clients are notified
    /// (most of them once all of this is published), polls are planned, changes are published. No
    /// step waits: the store and the polls work beside the loop, and a snapshot is published when
    /// it is due.
    pub(super) fn apply(&mut self, effects: Effects, now: Now) {
        for name in effects.close {
            self.sessions.close(&name);
        }
        for save in effects.store {
            self.store(save, now);
        }
        // Before the polls: planning a poll evaluates its scenario, and a reprieve must be set by
        // then.
        for notice in effects.notify {
            self.notify(notice, now);
        }
        for (scenarios, within) in effects.poll {
            self.poll_soon(scenarios, within, now);
        }
        for dirty in effects.publish {
            self.publish(dirty, now);
        }
    }

    /// Queues a write to the store. When the queue is full, a known scenario shows that in a
    /// finding, and tries again after its next answer.
    fn store(&mut self, save: SaveRequest, now: Now) {
        let of = match &save {
            SaveRequest::Manifest(_, stored) => Some(stored.scenario.clone()),
            SaveRequest::Claim(name, _) | SaveRequest::Forget(name) => Some(name.clone()),
            SaveRequest::Revision(..) | SaveRequest::AnswerTimes(_) | SaveRequest::Pins(..) => None,
        };
        let queued = self.parts.saves.try_send(save).is_ok();
        if let Some(name) = of.filter(|name| self.fleet.get(name).is_some()) {
            self.publisher.queued(&name, queued);
            if !queued {
                self.give(&name, ScenarioInput::NotStored, now);
            }
        }
    }

    /// Polls ahead of the schedule, spread to avoid a burst. Scenarios that are due earlier, or are
    /// being polled, are left alone.
    fn poll_soon(&mut self, scenarios: PollSet, within: Duration, now: Now) {
        let names = match scenarios {
            PollSet::These(names) => names,
            PollSet::Trusted => {
                let trusted = self
                    .fleet
                    .scenarios()
                    .values()
                    .filter(|record| record.is_trusted());
                trusted.map(|record| record.name.clone()).collect()
            }
        };
        for name in &names {
            let Some(record) = self.fleet.get_mut(name) else {
                continue;
            };
            let at = now.mono + within.mul_f64(fastrand::f64());
            if record.poll_by(at, now) || record.relist_by(at, &self.parts.config, now) {
                self.reevaluate(name, now, ChangeKind::Same);
            }
        }
    }

    fn notify(&mut self, notice: Notice, now: Now) {
        match notice {
            Notice::Polled(name) => self.polled(&name, now),
            Notice::Waits(name) => self.answer_waiters(&name),
            Notice::Released(name) => {
                if let Some(latch) = self.latches.remove(&name) {
                    self.publisher.after_publish(move |_| drop(latch));
                }
                if let Some(latch) = self.first_lists.take(&name) {
                    self.publisher.after_publish(move |_| drop(latch));
                }
            }
            Notice::Reprieved(names, until) => {
                for name in names {
                    self.give(&name, ScenarioInput::Reprieved(until), now);
                }
            }
        }
    }

    /// Answers the clients that waited for the next answer of a scenario: it came, or will not
    /// come. They get the health after that.
    fn polled(&mut self, name: &ScenarioName, now: Now) {
        if let Some(latch) = self.latches.remove(name) {
            // A client that sees that no scenario is awaited any more must find those that were
            // awaited in the list.
            self.publisher.after_publish(move |_| drop(latch));
            if self.latches.is_empty() {
                self.publisher.hurry(now);
            }
        }
        if let Some(latch) = self.first_lists.take(name) {
            self.publisher.after_publish(move |_| drop(latch));
            if self.first_lists.is_empty() {
                self.publisher.hurry(now);
            }
        }
        self.answer_waiters(name);
    }

    /// Sends the health of a scenario to the clients that wait for it, once it is published. A poll
    /// that has waited long has its reason in there: they are not kept for as long as a program may
    /// take to start.
    fn answer_waiters(&mut self, name: &ScenarioName) {
        let Some(record) = self.fleet.get_mut(name) else {
            return;
        };
        let waiters = record.take_waiters();
        if waiters.is_empty() {
            return;
        }
        let name = name.clone();
        self.publisher.after_publish(move |snapshot| {
            for waiter in waiters {
                let health = snapshot.health.get(&name).cloned();
                let _ =
                    waiter.send(health.ok_or_else(|| EngineError::UnknownScenario(name.clone())));
            }
        });
    }

    fn publish(&mut self, dirty: Dirty, now: Now) {
        match dirty {
            Dirty::Cleared(name) => {
                self.pins.rest(&name);
                self.publisher.forget(&name);
            }
            Dirty::Scenario(name, settled) => self.reevaluate(&name, now, settled),
            Dirty::Gone(turn) => self.publisher.record_transition(turn),
            Dirty::Sources(findings) => self.publisher.source_findings(findings),
            Dirty::Isolated(isolated) => self.publisher.set_isolated(isolated),
            Dirty::Times => self.publisher.mark_all_dirty(self.fleet.scenarios().keys()),
        }
    }

    /// After any change of a scenario: evaluates it, passes changes on to the catalog, and plans
    /// its next evaluation.
    pub(super) fn reevaluate(&mut self, name: &ScenarioName, now: Now, settled: ChangeKind) {
        let Some(record) = self.fleet.get_mut(name) else {
            return;
        };
        let session = self.sessions.sync(name, record.session_spec(), now.mono);
        record.set_session(session);
        let judgement = record.evaluate(&self.parts.config, self.partition.shown().is_some(), now);
        let turned = judgement.turn.is_some();
        if let Some(turn) = judgement.turn {
            self.publisher.record_transition(turn);
        }
        let mut pinned_until = None;
        let mut has_new_pins = false;
        let mut is_news = turned || judgement.is_news;
        if let Some(offer) = judgement.offer {
            let mode = self.publisher.pin_mode(name, &self.parts.config);
            let pinned = self.pins.offer(record, offer, mode, now);
            self.publisher.set_offer(name, &pinned.offer);
            pinned_until = pinned.until;
            is_news |= pinned.is_news;
            has_new_pins = pinned.save.is_some();
            if let Some(save) = pinned.save
                && self.parts.saves.try_send(save).is_err()
            {
                self.pins.not_saved(name);
            }
        }
        if is_news || settled != ChangeKind::Same {
            let mut findings = record.findings();
            findings.extend_from_slice(self.pins.findings(name));
            self.publisher.scenario_findings(name, &findings);
        }
        let known = self.parts.routes.to(name);
        if record.is_callable() && !known.is_some_and(|route| route.is_callable()) {
            self.publisher.mark_callable(name);
        } else if is_news || settled == ChangeKind::Changed {
            self.publisher.mark_dirty(name);
        } else if settled == ChangeKind::Confirmed {
            self.publisher.mark_dirty_later(name, now);
        }
        let is_hinted = self.sessions.is_hinted(name);
        // A request may wait for a program that sleeps.
        let is_quiet = record.is_steady() && !record.is_asleep() && !is_hinted;
        let poll = if is_quiet {
            judgement.poll.map(|at| self.rounds.after(at))
        } else {
            judgement.poll
        };
        // After a hint it is listed first.
        let sleeps = record.sleeps_at(&self.parts.config, now);
        let sleeps = sleeps.filter(|_| !is_hinted);
        let wake = [poll, judgement.until, pinned_until, sleeps]
            .into_iter()
            .flatten()
            .min();
        self.fleet.wake(name, wake);
        if has_new_pins {
            self.trim_pins();
        }
    }

    /// Deletes baselines of scenarios that are not known, if there are more than may be.
    fn trim_pins(&mut self) {
        let fleet = &self.fleet;
        let most = self.parts.config.refresh.max_scenarios;
        let is_known = |name: &ScenarioName| fleet.get(name).is_some();
        for deletion in self.pins.make_room(most, is_known) {
            // If there is no room, it is read again at the next start, and deleted then.
            let _ = self.parts.saves.try_send(deletion);
        }
    }
}
