//! The findings of a snapshot, from all that have any.

use std::sync::Arc;

use super::SnapshotPublisher;
use crate::model::{Finding, FindingCode};

impl SnapshotPublisher {
    /// Gathers the findings of sources, scenarios, the configuration and the store.
    pub(super) fn gather(&mut self) {
        let scenarios = self.scenarios.values().flatten();
        let mut findings: Vec<Finding> = self
            .stored
            .iter()
            .chain(&self.sources)
            .chain(scenarios)
            .cloned()
            .collect();
        findings.extend(self.configuration.iter().flat_map(|state| state.findings()));
        if let Some(isolated) = &self.isolated {
            let hint = "check this machine's network; the list does not change meanwhile, see `health.isolation_max`";
            findings.push(Finding::new(FindingCode::Isolated, isolated.reason()).hint(hint));
        }
        // Of a store that cannot be written from the start on there is a finding already.
        let is_read_only = self
            .stored
            .iter()
            .any(|finding| finding.code == FindingCode::StateFailed);
        if let Some(error) = self.save_failed.as_ref().filter(|_| !is_read_only) {
            let hint = "the daemon continues; manifests that are not stored are fetched again after a restart";
            findings.push(Finding::new(FindingCode::StateFailed, error.to_string()).hint(hint));
        }
        findings.extend(self.gave_way.finding());
        findings.extend(self.unarchived.iter().map(|name| {
            Finding::new(
                FindingCode::StateFailed,
                "its manifest was not stored: too many wait to be stored",
            )
            .of_scenario(name)
        }));
        findings.sort();
        self.findings = Arc::new(findings);
    }
}
