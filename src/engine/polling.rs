//! What calls, clients and sessions say between polls, handed to the parts that it concerns, and the start of polls that are due.

use tokio::sync::oneshot;

use super::effects::ChangeKind;
use super::error::EngineError;
use super::message::{HealthReceiver, ListAddress};
use super::now::Now;
use super::routes::CallReport;
use super::run::Core;
use super::scenario::handle::ScenarioInput;
use super::sessions::link::SessionLink;
use super::sessions::news::SessionNews;
use super::sessions::{ListOutcome, SessionEffect};
use crate::model::{Digest, ScenarioName, Target};
use crate::protocols::tool_discovery;
use crate::transports::TransportError;

impl Core {
    /// Polls a scenario past its schedule; joins a poll that is under way.
    pub(super) fn force(&mut self, name: &ScenarioName, now: Now) -> Result<HealthReceiver, EngineError> {
        let record = self.fleet.get_mut(name).ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        let (waiter, waiting) = oneshot::channel();
        if record.force(waiter, &self.parts.config.refresh, now)? {
            // A client that looks meanwhile sees when it is due.
            self.publisher.mark_dirty(name);
        }
        self.reevaluate(name, now, ChangeKind::Same);
        Ok(waiting)
    }

    /// A call taught something: its scenario is polled at once, so that a moved or restarted one is soon known for what it is.
    pub(super) fn called(&mut self, name: &ScenarioName, generation: u64, report: CallReport, now: Now) {
        self.give(name, ScenarioInput::Called { generation, refused: report == CallReport::Refused }, now);
    }

    /// A session said something by itself.
    pub(super) fn spoke(&mut self, news: SessionNews, now: Now) {
        let name = news.name.clone();
        let Some(record) = self.fleet.get_mut(&name) else { return };
        let (last, followed) = (record.last_poll(), self.sessions.is_followed(&name));
        let input = match self.sessions.handle(news, last, &self.parts.config.refresh, now.mono) {
            SessionEffect::None => return,
            SessionEffect::List(at) => ScenarioInput::Hinted(at),
            SessionEffect::Unfollowed(at) => ScenarioInput::Unfollowed(at),
            SessionEffect::Gone(at, why) => ScenarioInput::Ended { at, why, followed },
        };
        self.give(&name, input, now);
        self.reevaluate(&name, now, ChangeKind::Changed);
    }

    /// A listing ended, before which the manifest in force was of this digest: what that means for the session. `good` is whether a list
    /// came.
    pub(super) fn listed(&mut self, name: &ScenarioName, before: Option<Digest>, good: bool, now: Now) {
        let Some(record) = self.fleet.get(name) else { return };
        let outcome = match (good, record.digest() == before) {
            (false, _) => ListOutcome::Failed,
            (true, true) => ListOutcome::Unchanged,
            (true, false) => ListOutcome::Changed,
        };
        let times = (record.last_poll(), now.mono);
        let again = self.sessions.listed(name, outcome, record.is_trusted(), times, &self.parts.config.refresh);
        if let Some(at) = again {
            self.give(name, ScenarioInput::Hinted(at), now);
        }
    }

    /// Where one request shows a scenario's list as it writes it, if it may be polled.
    pub(super) fn document(&self, name: &ScenarioName) -> Result<ListAddress, EngineError> {
        let record = self.fleet.get(name).ok_or_else(|| EngineError::UnknownScenario(name.clone()))?;
        if let Some(refusal) = record.refusal() {
            return Err(refusal);
        }
        let target = record.target().ok_or_else(|| EngineError::NoAddress(name.clone()))?;
        if let Some(SessionLink { session, ended, .. }) = record.session() {
            let reason = match ended {
                true => "has no connection now; the next listing connects anew",
                false => "is not reached by a request that can be shown",
            };
            return Ok(session.document().ok_or_else(|| TransportError::Address(format!("`{target}` {reason}"))));
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

    /// Starts the poll of a scenario, when it is due.
    pub(super) fn poll_if_due(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.fleet.get_mut(name) else { return };
        let Some(due) = record.begin_poll(&self.parts.config, now) else { return };
        self.sessions.begun(name);
        let session = self.sessions.living(name);
        record.poll_began(self.poller.start(due, session, &self.parts.config.refresh));
    }
}
