//! What the records leave to the archive: which manifests are kept, and which scenarios are forgotten.

use std::sync::Arc;

use super::archive::Save;
use super::core::Core;
use super::record::Now;
use crate::model::ScenarioName;
use crate::state::StoredManifest;
use crate::upstream::Upstream;

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
        let wanted = (!fresh.no_store).then_some(held.manifest.digest);
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
            url: record.upstream.as_ref().map(Upstream::shown).unwrap_or_default(),
            source: record.source,
            party: record.party.clone().unwrap_or_default(),
            trusted: record.trusted,
            protocol: protocol.id().into(),
            // Written where it is saved.
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
        if long && !self.decisions.contains_key(name) {
            self.press.turned(record.forgotten("no source has named it for long, and it did not answer", now));
            self.records.remove(name);
            self.press.forget(name);
            // A full queue only means that the next start forgets it again.
            let _ = self.parts.saves.try_send(Save::Forget(name.clone()));
        }
        long
    }
}
