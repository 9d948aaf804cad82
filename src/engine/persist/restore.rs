//! Makes the first scenarios from the stored data, so that the list is available before any poll.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Config;
use crate::discovery::KnownSources;
use crate::engine::now::Now;
use crate::engine::scenario::facts::ManifestTerm;
use crate::engine::scenario::{AcceptedManifest, Scenario, ScenarioMap};
use crate::model::text::truncate_at_char_boundary;
use crate::model::{Finding, FindingCode, Freshness, ScenarioName};
use crate::protocols::tool_discovery::{self, Decoded};
use crate::protocols::{Protocols, Validators};
use crate::runtime::tasks;
use crate::state::{StoredManifest, TrustDecision, manifest};

/// The largest number of bytes of an error text about a stored manifest; the text may quote a whole
/// value.
const MOST_ERROR_BYTES: usize = 300;

/// The scenarios of stored manifests, and findings about those that could not be read.
pub(in crate::engine) fn records(
    stored: Vec<StoredManifest>,
    rulings: &BTreeMap<ScenarioName, TrustDecision>,
    sources: &KnownSources,
    config: &Config,
    protocols: &Protocols,
    now: Now,
) -> (ScenarioMap, Vec<Finding>) {
    let mut records = ScenarioMap::new();
    let mut findings = Vec::new();
    let read = |manifest: StoredManifest| {
        let record = record(&manifest, rulings, sources, config, protocols, now);
        (manifest.scenario, record)
    };
    for (name, record) in tasks::in_parallel(stored, read) {
        match record {
            Ok(record) => {
                records.insert(name, Box::new(record));
            }
            Err(why) => {
                let message = format!("its stored manifest cannot be used: {why}");
                let hint = "it is replaced at its next good answer";
                findings.push(
                    Finding::new(FindingCode::StateRepaired, message)
                        .of_scenario(&name)
                        .hint(hint),
                );
            }
        }
    }
    (records, findings)
}

/// The scenarios that are known only by an operator's decision: the decision stays visible and can
/// be removed, also while no source names them.
pub(in crate::engine) fn decided(
    rulings: &BTreeMap<ScenarioName, TrustDecision>,
    records: &mut ScenarioMap,
    sources: &KnownSources,
    generation: u64,
    now: Now,
) {
    for (name, ruling) in rulings {
        let (Some(source), Some(_)) = (&ruling.source, &ruling.party.origin) else {
            continue;
        };
        let source = sources.named(source);
        let decided = || {
            Box::new(Scenario::decided(
                name, source, ruling, rulings, generation, now,
            ))
        };
        records.entry(name.clone()).or_insert_with(decided);
    }
}

fn record(
    stored: &StoredManifest,
    rulings: &BTreeMap<ScenarioName, TrustDecision>,
    sources: &KnownSources,
    config: &Config,
    protocols: &Protocols,
    now: Now,
) -> Result<Scenario, String> {
    let accept = &config.protocol.accept;
    let most = config.refresh.max_tools;
    let manifest = manifest::read(&stored.document)
        .map_err(|error| truncate_at_char_boundary(error, MOST_ERROR_BYTES).text)?;
    let restored =
        tool_discovery::restored(manifest, accept, most).map_err(|error| error.to_string())?;
    let Decoded {
        manifest,
        findings,
        quarantined,
    } = restored;
    let freshness = Freshness {
        generated_at: manifest.generated_at,
        fresh_until: stored.received_at,
        received_at: stored.received_at,
    };
    let held = AcceptedManifest {
        // The decoded manifest stays in use as long as the scenario does not change, however often
        // it is polled.
        manifest: Arc::new(manifest),
        quarantined: stored.quarantined + quarantined,
        findings: findings
            .into_iter()
            .map(|finding| finding.of_scenario(&stored.scenario))
            .collect(),
        fresh: None,
        validators: stored
            .validators
            .clone()
            .map(Validators::stored)
            .unwrap_or_default(),
        term: ManifestTerm::Restored,
        freshness,
    };
    let party = stored.party.origin.is_some().then(|| stored.party.clone());
    // If parts of a document were left out, it is stored again after the next good answer.
    let is_stored = quarantined == 0;
    let mut record = Scenario::new(
        stored.scenario.clone(),
        sources.named(&stored.source),
        stored.trusted,
        0,
        now,
    );
    record.restore(
        held,
        party,
        protocols.by_id(&stored.protocol),
        is_stored,
        rulings,
    );
    Ok(record)
}
