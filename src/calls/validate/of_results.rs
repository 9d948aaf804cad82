//! Checks results in the way of arguments: with the same compiled schemas, on the same threads.
//!
//! Nothing depends on the outcome but a finding, so a result that finds no thread stays unchecked.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use xxhash_rust::xxh3::xxh3_128;

use super::pool::PoolError;
use super::schema::CompiledSchema;
use super::{ArgumentValidator, CheckLimits, GIVEN_UP_OVERDUE, GIVEN_UP_PANICKED};
use crate::config;
use crate::model::{JsonText, ToolId};

impl ArgumentValidator {
    /// Whether a result fits, as far as that can be found out at once with a schema that is kept.
    /// Then an earlier one that did not fit is forgotten.
    pub(in crate::calls) fn result_plainly_fits(
        &self,
        tool: &ToolId,
        schema: &JsonText,
        result: &JsonText,
    ) -> bool {
        let fits = self
            .known(xxh3_128(schema.get().as_bytes()))
            .is_some_and(|schema| schema.fits_at_once(result));
        if fits {
            self.forget_unfit(tool);
        }
        fits
    }

    /// The turn to check a result, unless others are checked. Dropping it ends the turn.
    pub(in crate::calls) fn result_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.result_turns).try_acquire_owned().ok()
    }

    /// Checks a result, and notes the tool if it does not fit. One that fits takes that back.
    pub(in crate::calls) async fn check_result(
        &self,
        tool: &ToolId,
        schema: &JsonText,
        result: JsonText,
        rules: &config::CallsConfig,
    ) {
        let digest = xxh3_128(schema.get().as_bytes());
        let known = self.known(digest);
        let text = schema.clone();
        let work = move || {
            let compiled = known.unwrap_or_else(|| Arc::new(CompiledSchema::compile(&text)));
            let broken = compiled.broken_at(&result);
            (compiled, broken)
        };
        let limits = CheckLimits::of_clients(rules).of_pool();
        match self.pool.run(&tool.scenario, limits, work).await {
            Ok((compiled, broken)) => {
                self.keep(digest, compiled, rules);
                match broken {
                    Some(place) => self.note_unfit(
                        tool,
                        schema,
                        format!("it breaks `{place}` of the schema").into(),
                    ),
                    None => self.forget_unfit(tool),
                }
            }
            Err(PoolError::Overdue) => {
                self.give_up(digest, GIVEN_UP_OVERDUE, rules);
            }
            Err(PoolError::Panicked(panic)) => {
                tracing::error!(%tool, error = panic, "the validator of results failed");
                self.give_up(digest, GIVEN_UP_PANICKED, rules);
            }
            Err(PoolError::QueueFull | PoolError::NotStarted | PoolError::NoThread) => {}
        }
    }

    fn forget_unfit(&self, tool: &ToolId) {
        self.unfit.lock().remove(tool);
    }

    fn note_unfit(&self, tool: &ToolId, schema: &JsonText, reason: Arc<str>) {
        let digest = xxh3_128(schema.get().as_bytes());
        self.unfit.lock().add(tool, digest, reason);
    }
}
