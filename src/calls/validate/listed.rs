//! Finds, before any call, the tools whose schemas cannot be used to check arguments.
//!
//! The schemas of a scenario are compiled once for each of its manifests, equal ones and those of
//! its last manifest not again, on the threads that check arguments and with their deadline.
//! Compiled schemas are not kept: calls keep those that they use.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, mpsc};

use xxhash_rust::xxh3::xxh3_128;

use super::noted::{JudgedManifest, SchemaNote};
use super::pool::{PoolError, STACK_BYTES};
use super::schema::CompiledSchema;
use super::{ArgumentValidator, CheckLimits, GIVEN_UP_OVERDUE, GIVEN_UP_PANICKED};
use crate::catalog::CatalogEntry;
use crate::config;
use crate::model::{CappedFindings, Finding, FindingCode, Manifest, ScenarioName, ViewTool};
use crate::runtime::tasks::start_detached_thread;

/// How far the schemas of one manifest were examined.
enum JudgeProgress {
    /// All of them were.
    Complete,
    /// The rest of this manifest is left to the next request.
    EntryLeft,
    /// The queue is full, so every further manifest is left to the next request too.
    ThreadsBusy,
}

/// What is known of the schemas of one manifest.
struct JudgedSchemas {
    findings: Vec<Finding>,
    /// Why each schema cannot be used, by its digest; `None` for one that can.
    reasons: HashMap<u128, Option<Arc<str>>>,
    progress: JudgeProgress,
}

impl ArgumentValidator {
    /// Findings about the tools of these entries whose arguments are not checked, whatever they
    /// are.
    pub(in crate::calls) async fn unusable_schemas(
        &self,
        entries: &[Arc<CatalogEntry>],
        rules: &config::CallsConfig,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut is_busy = false;
        for entry in entries {
            if let Some(known) = self.judged(entry).await {
                findings.extend(known);
                continue;
            }
            if is_busy {
                continue;
            }
            // Requests that come together wait for the one that judges, and take its findings.
            let _turn = self.judging.lock().await;
            if let Some(known) = self.judged(entry).await {
                findings.extend(known);
                continue;
            }
            let found = self.judge_schemas(entry, rules).await;
            findings.extend(found.findings.iter().cloned());
            match found.progress {
                JudgeProgress::Complete => {
                    let reasons = found.reasons.into_iter();
                    let usable = reasons.filter(|(_, reason)| reason.is_none());
                    let judged = JudgedManifest {
                        digest: entry.manifest.digest,
                        findings: found.findings,
                        usable: Arc::new(usable.map(|(digest, _)| digest).collect()),
                    };
                    self.judged.lock().await.insert(entry.name.clone(), judged);
                }
                JudgeProgress::EntryLeft => {}
                JudgeProgress::ThreadsBusy => is_busy = true,
            }
        }
        findings
    }

    /// The findings about this manifest, if it was judged.
    async fn judged(&self, entry: &CatalogEntry) -> Option<Vec<Finding>> {
        let judged = self.judged.lock().await;
        let known = judged.get(&entry.name)?;
        (known.digest == entry.manifest.digest).then(|| known.findings.clone())
    }

    /// Forgets the findings about scenarios for which `is_known` is false.
    pub(in crate::calls) async fn forget_schemas(&self, is_known: impl Fn(&ScenarioName) -> bool) {
        self.judged.lock().await.retain(|name, _| is_known(name));
    }

    /// The schemas of the last manifest of this scenario that could be used.
    async fn usable_before(&self, name: &ScenarioName) -> Arc<HashSet<u128>> {
        let judged = self.judged.lock().await;
        judged
            .get(name)
            .map(|known| Arc::clone(&known.usable))
            .unwrap_or_default()
    }

    /// Judges the schemas of one entry, equal ones once. While the threads are busy with calls, the
    /// rest is left to the next request.
    async fn judge_schemas(
        &self,
        entry: &CatalogEntry,
        rules: &config::CallsConfig,
    ) -> JudgedSchemas {
        let usable = self.usable_before(&entry.name).await;
        let mut findings = CappedFindings::default();
        let mut reasons: HashMap<u128, Option<Arc<str>>> = HashMap::new();
        let mut progress = JudgeProgress::Complete;
        for tool in entry.tools.iter() {
            let digest = xxh3_128(tool.tool.parameters.get().as_bytes());
            let known = match reasons.get(&digest) {
                None if usable.contains(&digest) => Some(None),
                known => known.cloned(),
            };
            let judged = match known {
                Some(reason) => Ok(reason),
                None => self.judge_schema(tool, digest, rules).await,
            };
            match judged {
                Ok(reason) => {
                    if let Some(reason) = &reason {
                        findings.push_with(FindingCode::SchemaUnchecked, || {
                            SchemaNote::unchecked(reason).of_tool(Arc::clone(&tool.id.tool))
                        });
                    }
                    reasons.insert(digest, reason);
                }
                Err(error) => {
                    // Its own checks take both the time and the one thread that it may have.
                    let is_of_entry = matches!(error, PoolError::NotStarted);
                    progress = if is_of_entry {
                        JudgeProgress::EntryLeft
                    } else {
                        JudgeProgress::ThreadsBusy
                    };
                    break;
                }
            }
        }
        let own = |finding: Finding| finding.of_scenario(&entry.name);
        JudgedSchemas {
            findings: findings.finish().into_iter().map(own).collect(),
            reasons,
            progress,
        }
    }

    /// Why the schema of a tool, which has this digest, cannot be used; `None` if it can. Fails
    /// where no thread was free.
    async fn judge_schema(
        &self,
        tool: &ViewTool,
        digest: u128,
        rules: &config::CallsConfig,
    ) -> Result<Option<Arc<str>>, PoolError> {
        if let Some(known) = self.known(digest) {
            return Ok(known.unusable_reason());
        }
        let text = tool.tool.parameters.clone();
        let work = move || CompiledSchema::compile(&text).unusable_reason();
        let limits = CheckLimits::of_clients(rules).of_pool();
        match self.pool.run(&tool.id.scenario, limits, work).await {
            Err(PoolError::Overdue) => {
                self.give_up(digest, GIVEN_UP_OVERDUE, rules);
                Ok(Some(GIVEN_UP_OVERDUE.into()))
            }
            Err(PoolError::Panicked(panic)) => {
                tracing::error!(tool = %tool.id, error = panic, "the validator of arguments failed");
                self.give_up(digest, GIVEN_UP_PANICKED, rules);
                Ok(Some(GIVEN_UP_PANICKED.into()))
            }
            judged => judged,
        }
    }
}

/// The same findings for a manifest that no daemon has, without a deadline. Empty where no thread
/// can be started.
pub(crate) fn unusable_schemas_of(manifest: &Manifest) -> Vec<Finding> {
    let schemas: Vec<_> = manifest
        .tools
        .iter()
        .map(|tool| (Arc::clone(&tool.name), tool.parameters.clone()))
        .collect();
    let (send, judged) = mpsc::sync_channel(1);
    let judge = move || {
        let mut findings = CappedFindings::default();
        for (name, schema) in schemas {
            if let Some(reason) = CompiledSchema::compile(&schema).unusable_reason() {
                findings.push(SchemaNote::unchecked(&reason).of_tool(name));
            }
        }
        // The command may have been stopped meanwhile.
        _ = send.send(findings.finish());
    };
    match start_detached_thread("schemas", STACK_BYTES, judge) {
        Ok(()) => judged.recv().unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}
