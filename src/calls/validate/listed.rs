//! Finds, before any call, the tools whose schemas cannot be used to check arguments.
//!
//! The schemas of a scenario are compiled once for each of its manifests, on the threads that check
//! arguments and with their deadline. Compiled schemas are not kept: calls keep those that they
//! use.

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
    /// No thread is free, so every further manifest is left to the next request too.
    ThreadsBusy,
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
            let (found, progress) = self.judge_schemas(entry, rules).await;
            findings.extend(found.iter().cloned());
            match progress {
                JudgeProgress::Complete => {
                    let judged = JudgedManifest {
                        digest: entry.manifest.digest,
                        findings: found,
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

    /// The findings about the tools of one entry, and whether all tools were examined: while the
    /// threads are busy with calls, the rest is left to the next request.
    async fn judge_schemas(
        &self,
        entry: &CatalogEntry,
        rules: &config::CallsConfig,
    ) -> (Vec<Finding>, JudgeProgress) {
        let mut findings = CappedFindings::default();
        let mut progress = JudgeProgress::Complete;
        for tool in entry.tools.iter() {
            match self.judge_schema(tool, rules).await {
                Ok(None) => {}
                Ok(Some(reason)) => findings.push_with(FindingCode::SchemaUnchecked, || {
                    SchemaNote::unchecked(&reason).of_tool(Arc::clone(&tool.id.tool))
                }),
                Err(error) => {
                    let is_of_entry = matches!(error, PoolError::OwnerOverdue);
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
        (findings.finish().into_iter().map(own).collect(), progress)
    }

    /// Why the schema of a tool cannot be used; `None` if it can. Fails where no thread was free.
    async fn judge_schema(
        &self,
        tool: &ViewTool,
        rules: &config::CallsConfig,
    ) -> Result<Option<Arc<str>>, PoolError> {
        let schema = &tool.tool.parameters;
        let digest = xxh3_128(schema.get().as_bytes());
        if let Some(known) = self.known(digest) {
            return Ok(known.unusable_reason());
        }
        let text = schema.clone();
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
