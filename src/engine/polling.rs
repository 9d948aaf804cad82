//! Handles what calls, clients and sessions report between polls, and starts polls that are due.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::call_report::CallReport;
use super::effects::ChangeKind;
use super::error::EngineError;
use super::message::{HealthReceiver, ListAddress};
use super::now::Now;
use super::run::Core;
use super::scenario::Scenario;
use super::scenario::handle::ScenarioInput;
use super::sessions::link::SessionLink;
use super::sessions::news::SessionNews;
use super::sessions::{ListOutcome, SessionEffect};
use crate::model::{Digest, ProgramEnd, RecordedEnd, ScenarioName, Target};
use crate::protocols::tool_discovery;
use crate::transports::TransportError;

impl Core {
    /// Polls a scenario outside its schedule; joins a poll that is under way.
    pub(super) fn force(
        &mut self,
        name: &ScenarioName,
        now: Now,
    ) -> Result<HealthReceiver, EngineError> {
        let record = self
            .fleet
            .get_mut(name)
            .ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        let (waiter, waiting) = oneshot::channel();
        if record.force(waiter, &self.parts.config.refresh, now)? {
            // Clients see meanwhile when the poll is due.
            self.publisher.mark_dirty(name);
        }
        self.reevaluate(name, now, ChangeKind::Same);
        Ok(waiting)
    }

    /// Handles the report of a call: its scenario is polled at once, so that a move or restart is
    /// soon detected.
    pub(super) fn called(
        &mut self,
        name: &ScenarioName,
        generation: u64,
        report: CallReport,
        now: Now,
    ) {
        self.give(name, ScenarioInput::Called { generation, report }, now);
    }

    /// Handles the report of a session.
    pub(super) fn spoke(&mut self, news: SessionNews, now: Now) {
        let name = news.name.clone();
        let Some(record) = self.fleet.get_mut(&name) else {
            return;
        };
        let last = record.last_poll();
        let followed = self.sessions.is_followed(&name);
        let mut program = None;
        let mut is_gone = false;
        let mut settled = ChangeKind::Changed;
        let input = match self
            .sessions
            .handle(news, last, &self.parts.config.refresh, now.mono)
        {
            SessionEffect::None => return,
            SessionEffect::List(at) => {
                // A hint may come every few milliseconds, and a snapshot for each would have all
                // that is kept for one snapshot made again.
                settled = ChangeKind::Confirmed;
                ScenarioInput::Hinted(at)
            }
            SessionEffect::Unfollowed(at) => ScenarioInput::Unfollowed(at),
            SessionEffect::Gone(at, reason) => {
                program = reason.program;
                is_gone = true;
                ScenarioInput::Ended {
                    at,
                    why: reason.text,
                    followed,
                }
            }
        };
        if let Some(program) = program {
            self.program_ended(&name, program, now);
        }
        self.give(&name, input, now);
        self.reevaluate(&name, now, settled);
        if is_gone {
            // Not only with the next snapshot: calls until then would be sent to the ended session,
            // and their failures would open the circuit breaker.
            self.change_route(&name);
        }
    }

    /// Updates the route to a scenario at once.
    fn change_route(&self, name: &ScenarioName) {
        let sequence = self.publisher.next_sequence();
        self.parts
            .routes
            .change(self.fleet.scenarios(), std::iter::once(name), sequence);
    }

    /// Ends the program of a scenario that no client has used for long, where that is configured.
    pub(super) fn sleep_if_due(&mut self, name: &ScenarioName, now: Now) {
        if self.sessions.is_hinted(name) {
            return;
        }
        let Some(record) = self.fleet.get_mut(name) else {
            return;
        };
        if record.fall_asleep_if_due(&self.parts.config, now) {
            self.reevaluate(name, now, ChangeKind::Changed);
            self.change_route(name);
        }
    }

    /// Records the end of a scenario's program, once: a poll may fail for the same end that its
    /// session reports.
    pub(super) fn program_ended(
        &mut self,
        name: &ScenarioName,
        program: Arc<ProgramEnd>,
        now: Now,
    ) {
        let Some(record) = self.fleet.get_mut(name) else {
            return;
        };
        if record.note_end(&program) {
            self.publisher.record_end(RecordedEnd {
                name: name.clone(),
                at: now.wall,
                program,
            });
        }
    }

    /// Tells the session the result of a listing. `before` is the digest of the manifest that was
    /// active before; `good` is whether a list came.
    pub(super) fn listed(
        &mut self,
        name: &ScenarioName,
        before: Option<Digest>,
        good: bool,
        now: Now,
    ) {
        let Some(record) = self.fleet.get(name) else {
            return;
        };
        let outcome = match (good, record.digest() == before) {
            (false, _) => ListOutcome::Failed,
            (true, true) => ListOutcome::Unchanged,
            (true, false) => ListOutcome::Changed,
        };
        let times = (record.last_poll(), now.mono);
        let again = self.sessions.listed(
            name,
            outcome,
            record.is_trusted(),
            times,
            &self.parts.config.refresh,
        );
        if let Some(at) = again {
            self.give(name, ScenarioInput::Hinted(at), now);
        }
    }

    /// The address at which one request gets a scenario's list as the scenario writes it, if it may
    /// be polled.
    pub(super) fn document(&self, name: &ScenarioName) -> Result<ListAddress, EngineError> {
        let record = self
            .fleet
            .get(name)
            .ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        if let Some(refusal) = record.refusal() {
            return Err(refusal);
        }
        let target = record
            .target()
            .ok_or_else(|| EngineError::NoAddress(name.clone()))?;
        if let Some(SessionLink { session, ended, .. }) = record.session() {
            let reason = match ended {
                true => "has no connection now; the next listing connects anew",
                false => "is not reached by a request that can be shown",
            };
            return Ok(session
                .document()
                .ok_or_else(|| TransportError::Address(format!("`{target}` {reason}"))));
        }
        // A scenario of unknown protocol is probed at that address first too.
        Ok(match target {
            Target::Http(target) => self
                .parts
                .transports
                .http(target)
                .map(|upstream| (upstream, tool_discovery::PATH)),
            Target::Stdio(_) => {
                let message = format!(
                    "`{target}` is a child process, which is not reached by a request that can be shown"
                );
                Err(TransportError::Address(message))
            }
            Target::InProcess(id) => {
                let message = format!(
                    "`{}` is inside this program; there is no address to poll",
                    id.as_str()
                );
                Err(TransportError::Address(message))
            }
            Target::Bundle(_) => Err(TransportError::Address(format!(
                "`{target}` is a bundle of stored tools; there is no address to poll"
            ))),
        })
    }

    /// Starts the poll of a scenario, when it is due.
    pub(super) fn poll_if_due(&mut self, name: &ScenarioName, now: Now) {
        let is_relisting = self
            .relisted
            .as_ref()
            .and_then(|other| self.fleet.get(other))
            .is_some_and(Scenario::is_being_relisted);
        let Some(record) = self.fleet.get_mut(name) else {
            return;
        };
        if record.is_relisted() && record.is_poll_due(now) {
            if is_relisting {
                record.postpone_relisting(now);
                return;
            }
            self.relisted = Some(name.clone());
        }
        let Some(due) = record.begin_poll(&self.parts.config, now) else {
            return;
        };
        self.sessions.begun(name);
        let session = self.sessions.living(name);
        record.poll_began(self.poller.start(due, session, &self.parts.config.refresh));
    }
}
