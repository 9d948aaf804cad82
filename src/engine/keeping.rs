//! What the records leave to the archive: which manifests are kept, and which scenarios are forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::effects::Settled;
use super::error::EngineError;
use super::message::Forgotten;
use super::now::Now;
use super::persist::archive::Save;
use super::persist::restore;
use super::run::Core;
use super::scenario::facts::Presence;
use super::scenario::lifecycle::Lifecycle;
use super::scenario::trust;
use crate::model::{ScenarioName, ScenarioState, Target};
use crate::state::StoredManifest;

impl Core {
    /// Brings the store in line with the last good answer: its manifest is there, unless the answer said `no-store`.
    pub(super) fn keep(&mut self, name: &ScenarioName) {
        let Some(record) = self.records.get_mut(name) else { return };
        if !record.is_trusted() {
            self.keep_claim(name);
            return;
        }
        let (Some(held), Some(protocol)) = (&record.offer, &record.protocol) else { return };
        let Some(fresh) = &held.fresh else { return };
        let wanted = fresh.may_store.then_some(held.manifest.digest);
        if record.kept == wanted {
            return;
        }
        let place = self.parts.saves.try_reserve();
        self.press.queued(name, place.is_ok());
        let Ok(place) = place else { return };
        record.kept = wanted;
        record.claimed = None;
        if wanted.is_none() {
            place.send(Save::Forget(name.clone()));
            return;
        }
        let stored = StoredManifest {
            scenario: name.clone(),
            url: record.target.as_ref().map(Target::to_string).unwrap_or_default(),
            source: record.source,
            party: record.party.clone().unwrap_or_default(),
            trusted: record.trusted,
            protocol: protocol.id().into(),
            // It is written where it is saved.
            document: "".into(),
            received_at: held.freshness.received_at,
            quarantined: held.quarantined,
        };
        place.send(Save::Manifest(Arc::clone(&held.manifest), Box::new(stored)));
    }

    /// Of a scenario that waits for an operator's yes nothing is stored but who it is that has the name: after a restart it is not to
    /// be mistaken for another that announces the same name first.
    fn keep_claim(&mut self, name: &ScenarioName) {
        let Some(record) = self.records.get_mut(name) else { return };
        if record.party.is_none() || record.claimed == record.party {
            return;
        }
        let place = self.parts.saves.try_reserve();
        self.press.queued(name, place.is_ok());
        let (Ok(place), Some(party)) = (place, &record.party) else { return };
        record.kept = None;
        record.claimed = Some(party.clone());
        place.send(Save::Claim(name.clone(), party.clone()));
    }

    /// Forgets a scenario that has been gone for long. Whether it did.
    pub(super) fn forget(&mut self, name: &ScenarioName, now: Now) -> bool {
        let Some(record) = self.records.get(name) else { return true };
        let long = record.forgotten_at(&self.parts.config).is_some_and(|at| now.mono >= at);
        if long {
            self.drop_record(name, now);
        }
        long
    }

    /// Forgets those that have been gone for longest, when more of them are remembered than scenarios may be known at once: those that are named
    /// have their own limit, and who announces ever new names must not fill the memory with old ones.
    pub(super) fn forget_many(&mut self, now: Now) {
        let gone = self.records.values().filter_map(|record| match record.presence {
            Presence::Absent { since, .. } if !self.decisions.contains_key(&record.name) => {
                Some((since, record.name.clone()))
            }
            _ => None,
        });
        let mut gone: Vec<_> = gone.collect();
        let Some(more) = gone.len().checked_sub(self.parts.config.refresh.max_scenarios) else { return };
        gone.sort_unstable();
        for (_, name) in gone.into_iter().take(more) {
            self.drop_record(&name, now);
        }
    }

    /// Forgets a scenario. Where an operator decided about its name, the decision is what is left to be seen: of a stranger who waited under it
    /// nothing stays.
    fn drop_record(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get(name) else { return };
        let decided = self.decisions.get(name);
        let stranger = decided.is_some_and(|ruling| {
            !record.is_trusted() && record.party.as_ref().is_none_or(|party| !trust::same(&ruling.party, party))
        });
        if decided.is_some() && !stranger {
            return;
        }
        let forgotten = record.forgotten("no source has named it for long, and it did not answer", now);
        let decided = decided.cloned();
        self.remove(name);
        if let Some(ruling) = decided.filter(|_| stranger) {
            restore::decided(&BTreeMap::from([(name.clone(), ruling)]), &mut self.records, now);
        }
        if self.records.contains_key(name) {
            self.touch(name, now, Settled::Changed);
        } else {
            self.press.turned(forgotten);
        }
    }

    /// Forgets a scenario because an operator wants it, in the states in which it has no tools in the list.
    pub(super) fn end(&mut self, name: &ScenarioName, now: Now) -> Result<Forgotten, EngineError> {
        let unknown = || EngineError::UnknownScenario(name.clone());
        let record = self.records.get_mut(name).ok_or_else(unknown)?;
        let was = record.state();
        if !matches!(record.lifecycle, Lifecycle::Removed(_) | Lifecycle::Down) {
            return Err(EngineError::NotForgettable(name.clone(), was));
        }
        for waiter in record.waiters.drain(..) {
            // A client that went away needs no answer.
            let _ = waiter.send(Err(unknown()));
        }
        let turned = record.forgotten("an operator had it forgotten", now);
        // The name of a removed one is free then, so the approval under it ends; one that is still named goes on with its approval.
        let approval_ended = was == ScenarioState::Removed && self.decisions.remove(name).is_some();
        let named_by = self.places.get(name).map(|place| place.source);
        self.remove(name);
        self.latches.remove(name);
        self.press.turned(turned);
        // One that is still named is known anew by this.
        self.places(now);
        Ok(Forgotten { name: name.clone(), was, named_by, approval_ended })
    }

    /// Takes a record out of everything that holds something of it.
    fn remove(&mut self, name: &ScenarioName) {
        if let Some(wake) = self.records.remove(name).and_then(|record| record.wake) {
            self.wakes.remove(&(wake, name.clone()));
        }
        self.sessions.close(name);
        self.press.forget(name);
        // A full queue only means that the next start forgets it again.
        let _ = self.parts.saves.try_send(Save::Forget(name.clone()));
    }
}
