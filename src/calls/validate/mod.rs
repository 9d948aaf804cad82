//! Whether arguments fit the schema of their tool. Schemas come from scenarios and arguments from
//! callers, and neither is trusted.
//!
//! ```text
//! schema -> references, compiling (may it be compiled? how large?) -> CompiledSchema, kept
//! arguments -> at once within a small budget, or on the pool within a larger one (meter)
//! ```
//!
//! What is kept true here:
//!
//! - References are never fetched, neither from the network nor from files, and patterns run on an
//!   engine whose time is linear.
//! - Only schemas whose size can be counted are compiled ([`compiling`]), and a check ends when its
//!   budget of work, memory and stack is used up ([`meter`]).
//! - Checks run on threads of their own with a deadline ([`pool`]), so that none delays an answer
//!   or a stop. One that takes less time than waking such a thread is made at once, and only its
//!   success counts.
//! - With a schema that cannot be used, the only check is that the arguments are an object. A
//!   finding says so when the tool is listed ([`listed`]), and after a call whose arguments took
//!   too long ([`noted`]).
//! - Compiled schemas are kept by the digest of their text, bounded in number and in bytes.
//!
//! Read in this order: this file, `schema.rs` (one compiled schema), `references.rs`,
//! `compiling.rs` with `pattern.rs`, `meter.rs`, `pool.rs`; then `listed.rs`, `noted.rs` and
//! `of_results.rs` (results are checked in the same way).
//!
//! Formats are annotations, as in the standard.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use xxhash_rust::xxh3::xxh3_128;

use super::ExecuteError;
use super::limits::open_to_clients;
use crate::catalog::Catalog;
use crate::config;
use crate::model::{Finding, JsonText, ScenarioName, ViewTool};
use crate::runtime::tasks::start_detached_thread;

mod compiling;
pub(crate) mod listed;
mod meter;
mod noted;
mod of_results;
mod pattern;
mod pool;
pub(in crate::calls) mod references;
mod schema;

use noted::{JudgedManifest, NotedTools, SchemaNote};
use pool::{CheckPool, PoolError, PoolLimits, STACK_BYTES};
use schema::CompiledSchema;

pub use schema::{ArgumentVerdict, MOST_VIOLATIONS};

/// Checks arguments as a call does, on a thread with such a stack, but without keeping the schema.
pub fn check(schema: &JsonText, arguments: &JsonText) -> ArgumentVerdict {
    let schema = schema.clone();
    let arguments = arguments.clone();
    let (send, verdict) = mpsc::sync_channel(1);
    let work = move || _ = send.send(CompiledSchema::compile(&schema).check(&arguments));
    let started = start_detached_thread("check", STACK_BYTES, work).ok();
    let unchecked = || ArgumentVerdict::Unchecked("had no thread that checks it".into());
    started
        .and_then(|()| verdict.recv().ok())
        .unwrap_or_else(unchecked)
}

/// What a check waits and runs by.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckLimits<'a> {
    /// The configuration.
    pub(super) rules: &'a config::CallsConfig,
    /// Whether it is of a call with every right, for which some places to wait are kept.
    pub(super) is_for_operator: bool,
}

impl<'a> CheckLimits<'a> {
    /// Of what any client may request.
    pub(super) fn of_clients(rules: &'a config::CallsConfig) -> Self {
        Self {
            rules,
            is_for_operator: false,
        }
    }

    fn of_pool(self) -> PoolLimits {
        let queue = self.rules.check_queue;
        PoolLimits {
            timeout: self.rules.check_timeout,
            queue: if self.is_for_operator {
                queue
            } else {
                open_to_clients(queue)
            },
            is_for_operator: self.is_for_operator,
        }
    }
}

/// The reasons of schemas whose check did not end, as in [`CompiledSchema::Unusable`].
const GIVEN_UP_OVERDUE: &str = "took longer than `calls.check_timeout` to check";
const GIVEN_UP_PANICKED: &str = "made the validator fail";

/// How many results are checked at a time.
const RESULTS_AT_ONCE: usize = 1;

/// Checks arguments, and keeps compiled schemas.
#[derive(Debug)]
pub(super) struct ArgumentValidator {
    kept: Mutex<SchemaCache>,
    pool: CheckPool,
    unchecked: Mutex<NotedTools>,
    /// Tools whose results did not fit.
    unfit: Mutex<NotedTools>,
    /// How many results are checked at a time on the threads that arguments need.
    result_turns: Arc<Semaphore>,
    /// By scenario; those that are not published any more are forgotten.
    judged: tokio::sync::Mutex<BTreeMap<ScenarioName, JudgedManifest>>,
    /// Held by the request that judges a manifest.
    judging: tokio::sync::Mutex<()>,
}

/// Compiled schemas by the digest of their text.
#[derive(Default)]
struct SchemaCache {
    by_digest: HashMap<u128, KeptSchema>,
    bytes: usize,
    /// Grows with each use.
    uses: u64,
}

struct KeptSchema {
    schema: Arc<CompiledSchema>,
    bytes: usize,
    /// The number of its latest use.
    used: u64,
}

impl ArgumentValidator {
    /// Without any schema yet.
    pub(super) fn new() -> Self {
        Self {
            kept: Mutex::default(),
            pool: CheckPool::new(),
            unchecked: Mutex::new(NotedTools::new(SchemaNote::Unchecked)),
            unfit: Mutex::new(NotedTools::new(SchemaNote::UnfitResult)),
            result_turns: Arc::new(Semaphore::new(RESULTS_AT_ONCE)),
            judged: tokio::sync::Mutex::default(),
            judging: tokio::sync::Mutex::default(),
        }
    }

    /// Refuses arguments that are no object or do not fit the schema of `tool`, and those that
    /// could not be checked because too many others are.
    pub(super) async fn check(
        &self,
        tool: &ViewTool,
        arguments: &JsonText,
        limits: CheckLimits<'_>,
    ) -> Result<(), ExecuteError> {
        self.check_against(tool, &tool.tool.parameters, arguments, limits)
            .await
    }

    /// The same against another schema than the one that is shown of the tool.
    pub(super) async fn check_against(
        &self,
        tool: &ViewTool,
        schema: &JsonText,
        arguments: &JsonText,
        limits: CheckLimits<'_>,
    ) -> Result<(), ExecuteError> {
        match self
            .judge(tool, schema, arguments, CompiledSchema::check, limits)
            .await?
        {
            ArgumentVerdict::Fits => Ok(()),
            ArgumentVerdict::Unfit(violations, more) => Err(ExecuteError::Invalid {
                tool: tool.name.as_str().to_owned(),
                violations,
                more,
            }),
            ArgumentVerdict::Unchecked(reason) => {
                let digest = xxh3_128(schema.get().as_bytes());
                self.unchecked.lock().add(&tool.id, digest, reason);
                Ok(())
            }
        }
    }

    /// The verdict about a result of `tool`. Fails where [`Self::check`] does.
    pub(super) async fn judge_result(
        &self,
        tool: &ViewTool,
        schema: &JsonText,
        result: &JsonText,
        limits: CheckLimits<'_>,
    ) -> Result<ArgumentVerdict, ExecuteError> {
        self.judge(tool, schema, result, CompiledSchema::check_result, limits)
            .await
    }

    /// The verdict about a value of `tool`, as `check` finds it. An error says that too many other
    /// checks wait or run.
    async fn judge(
        &self,
        tool: &ViewTool,
        schema: &JsonText,
        value: &JsonText,
        check: fn(&CompiledSchema, &JsonText) -> ArgumentVerdict,
        limits: CheckLimits<'_>,
    ) -> Result<ArgumentVerdict, ExecuteError> {
        let digest = xxh3_128(schema.get().as_bytes());
        let known = self.known(digest);
        if known
            .as_ref()
            .is_some_and(|schema| plainly_fits(schema, value))
        {
            return Ok(ArgumentVerdict::Fits);
        }
        let text = schema.clone();
        let value = value.clone();
        let work = move || {
            let schema = known.unwrap_or_else(|| Arc::new(CompiledSchema::compile(&text)));
            let verdict = check(&schema, &value);
            (schema, verdict)
        };
        let rules = limits.rules;
        let in_pool = self.pool.run(&tool.id.scenario, limits.of_pool(), work);
        // Boxed, as it is rare, so that a call needs no room for it.
        Ok(match Box::pin(in_pool).await {
            Ok((schema, verdict)) => {
                self.keep(digest, schema, rules);
                verdict
            }
            Err(PoolError::QueueFull) => {
                return Err(busy(
                    tool,
                    "as many wait for that as `calls.check_queue` allows",
                ));
            }
            Err(PoolError::NotStarted) => {
                return Err(busy(
                    tool,
                    "its turn did not come within `calls.check_timeout`",
                ));
            }
            Err(PoolError::NoThread) => {
                return Err(busy(tool, "the system allows no thread for that"));
            }
            Err(PoolError::Overdue) => self.give_up(digest, GIVEN_UP_OVERDUE, rules),
            Err(PoolError::Panicked(panic)) => {
                tracing::error!(tool = %tool.id, error = panic, "the validator of arguments failed");
                self.give_up(digest, GIVEN_UP_PANICKED, rules)
            }
        })
    }

    /// The tools that were called with unchecked arguments, and those with a result that did not
    /// fit, as far as they still have the schema that was the reason.
    pub(super) fn findings(&self, catalog: &Catalog) -> Vec<Finding> {
        let noted = [&self.unchecked, &self.unfit];
        let findings = |noted: &Mutex<NotedTools>| noted.lock().findings(catalog);
        noted.into_iter().flat_map(findings).collect()
    }

    fn known(&self, digest: u128) -> Option<Arc<CompiledSchema>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let uses = kept.uses;
        kept.by_digest.get_mut(&digest).map(|kept| {
            kept.used = uses;
            Arc::clone(&kept.schema)
        })
    }

    /// Marks a schema as unusable from now on.
    fn give_up(&self, digest: u128, reason: &str, rules: &config::CallsConfig) -> ArgumentVerdict {
        let reason: Arc<str> = reason.into();
        self.keep(
            digest,
            Arc::new(CompiledSchema::Unusable(Arc::clone(&reason))),
            rules,
        );
        ArgumentVerdict::Unchecked(reason)
    }

    fn keep(&self, digest: u128, schema: Arc<CompiledSchema>, rules: &config::CallsConfig) {
        let mut kept = self.kept.lock();
        kept.insert(digest, schema);
        kept.bound(rules.validators, rules.validators_bytes);
    }
}

impl SchemaCache {
    fn insert(&mut self, digest: u128, schema: Arc<CompiledSchema>) {
        let bytes = schema.bytes();
        let before = self.by_digest.insert(
            digest,
            KeptSchema {
                schema,
                bytes,
                used: self.uses,
            },
        );
        self.bytes += bytes;
        self.bytes -= before.map_or(0, |before| before.bytes);
    }

    /// Keeps those that were used latest, at most so many with at most so many bytes together.
    /// Where one has to go a quarter goes, so that sorting is rare.
    fn bound(&mut self, most: usize, most_bytes: usize) {
        if self.by_digest.len() <= most && self.bytes <= most_bytes {
            return;
        }
        let mut by_use: Vec<(u64, u128)> = self
            .by_digest
            .iter()
            .map(|(digest, kept)| (kept.used, *digest))
            .collect();
        by_use.sort_unstable();
        for (_, digest) in by_use {
            if self.by_digest.len() <= most - most / 4 && self.bytes <= most_bytes - most_bytes / 4
            {
                break;
            }
            self.bytes -= self.by_digest.remove(&digest).map_or(0, |kept| kept.bytes);
        }
    }
}

/// Whether the check can be made at once, and the arguments fit. A panic of the validator is left
/// to the thread that checks then.
fn plainly_fits(schema: &CompiledSchema, arguments: &JsonText) -> bool {
    catch_unwind(AssertUnwindSafe(|| schema.plainly_fits(arguments))).unwrap_or(false)
}

fn busy(tool: &ViewTool, reason: &'static str) -> ExecuteError {
    ExecuteError::ChecksBusy {
        id: tool.id.clone(),
        reason,
    }
}

impl fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("schemas", &self.by_digest.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{
        Effective, Execution, Facts, Provenance, PublishedName, Tool, ToolId, VersionCell,
    };

    fn schema(n: usize) -> Arc<CompiledSchema> {
        Arc::new(CompiledSchema::compile(
            &JsonText::parse(&json!({"maxProperties": n}).to_string()).unwrap(),
        ))
    }

    #[test]
    fn kept_schemas_are_bounded_in_number_and_the_latest_stay() {
        let mut kept = SchemaCache::default();
        for n in 0..20 {
            kept.uses += 1;
            kept.insert(n, schema(0));
            kept.bound(8, usize::MAX);
        }
        assert!(kept.by_digest.len() <= 8);
        assert!(kept.by_digest.contains_key(&19) && !kept.by_digest.contains_key(&0));
    }

    #[test]
    fn kept_schemas_are_bounded_in_bytes() {
        let mut kept = SchemaCache::default();
        let each = schema(0).bytes();
        for n in 0..20 {
            kept.uses += 1;
            kept.insert(n, schema(0));
            kept.insert(n, schema(0));
            kept.bound(100, 8 * each);
        }
        assert!(kept.bytes <= 8 * each);
        assert_eq!(kept.bytes, each * kept.by_digest.len());
        assert!(kept.by_digest.contains_key(&19));
        kept.insert(20, schema(0));
        kept.bound(100, each / 2);
        assert!(
            kept.by_digest.is_empty(),
            "one that is larger than all may be is not kept"
        );
        assert_eq!(
            kept.bytes, 0,
            "one that is larger than all may be is not kept"
        );
    }

    fn tool(parameters: &serde_json::Value) -> ViewTool {
        let tool = Tool {
            name: "read".into(),
            description: "Reads".into(),
            category: None,
            parameters: JsonText::parse(&parameters.to_string()).unwrap(),
            metadata: JsonText::parse("{}").unwrap(),
            facts: Arc::new(Facts::default()),
            extra: Box::default(),
            definition: None,
            version: VersionCell::default(),
        };
        let effective = Effective {
            enabled: true,
            enabled_source: Provenance::Manifest,
            requires_approval: false,
            approval_source: Provenance::Manifest,
            priority: 0,
            pinned: false,
        };
        let id: ToolId = "files/read".parse().unwrap();
        ViewTool {
            name: PublishedName::plain(&id.tool),
            id,
            tool: Arc::new(tool),
            effective,
            companions: Arc::default(),
            overridden: None,
            execution: Execution::default(),
        }
    }

    #[tokio::test]
    async fn a_brief_check_against_a_known_schema_waits_for_no_thread() {
        let validators = ArgumentValidator::new();
        let rules = config::CallsConfig::default();
        let no_room = config::CallsConfig {
            check_queue: 0,
            ..rules.clone()
        };
        let rules = CheckLimits::of_clients(&rules);
        let no_room = CheckLimits::of_clients(&no_room);
        let tool = tool(&json!({"type": "object", "properties": {"path": {"type": "string"}}}));
        let brief = JsonText::parse(r#"{"path":"a"}"#).unwrap();
        let unfit = JsonText::parse(r#"{"path":1}"#).unwrap();
        let long = JsonText::parse(&json!({"path": "a".repeat(100_000)}).to_string()).unwrap();
        let busy = |checked| matches!(checked, Err(ExecuteError::ChecksBusy { .. }));
        assert!(
            busy(validators.check(&tool, &brief, no_room).await),
            "its schema is compiled on a thread"
        );
        assert_eq!(
            validators
                .check(&tool, &brief, rules)
                .await
                .map_err(|refused| refused.to_string()),
            Ok(())
        );
        assert!(validators.check(&tool, &brief, no_room).await.is_ok());
        assert!(busy(validators.check(&tool, &unfit, no_room).await));
        assert!(busy(validators.check(&tool, &long, no_room).await));
        assert!(matches!(
            validators.check(&tool, &unfit, rules).await,
            Err(ExecuteError::Invalid { .. })
        ));
        assert!(validators.check(&tool, &long, rules).await.is_ok());
    }
}
