//! What the records leave to the archive: which manifests are kept, and which scenarios are forgotten.

use std::sync::Arc;

use super::archive::Save;
use super::core::Core;
use super::record::{Departed, Now};
use crate::model::ScenarioName;
use crate::state::StoredManifest;
use crate::upstream::Upstream;

impl Core {
    /// Brings the store in line with the last good answer: its manifest is there, unless the answer said `no-store`.
    pub(super) fn keep(&mut self, name: &ScenarioName) {
        let Some(record) = self.records.get_mut(name) else { return };
        let (Some(held), Some(protocol)) = (&record.offer, record.protocol) else { return };
        let Some(fresh) = &held.fresh else { return };
        let wanted = (!fresh.no_store).then_some(held.manifest.digest);
        if record.kept == wanted {
            return;
        }
        let place = self.parts.saves.try_reserve();
        self.press.queued(name, place.is_ok());
        let Ok(place) = place else { return };
        record.kept = wanted;
        if wanted.is_none() {
            place.send(Save::Forget(name.clone()));
            return;
        }
        let stored = StoredManifest {
            scenario: name.clone(),
            url: record.upstream.as_ref().map(Upstream::shown).unwrap_or_default(),
            source: record.source,
            trusted: record.trusted,
            protocol: protocol.id().into(),
            // Written where it is saved.
            document: "".into(),
            received_at: held.freshness.received_at,
            quarantined: held.quarantined,
        };
        place.send(Save::Manifest(Arc::clone(&held.manifest), Box::new(stored)));
    }

    /// Forgets a scenario that has been gone for long. Whether it did.
    pub(super) fn forget(&mut self, name: &ScenarioName, now: Now) -> bool {
        let keep = self.parts.config.health.forget;
        let Some(record) = self.records.get(name) else { return true };
        let long = matches!(record.departed, Some(Departed::Gone(since)) if now.mono >= since + keep);
        if long && record.decision.is_none() {
            self.records.remove(name);
            self.press.forget(name);
            // A full queue only means that the next start forgets it again.
            let _ = self.parts.saves.try_send(Save::Forget(name.clone()));
        }
        long
    }
}
