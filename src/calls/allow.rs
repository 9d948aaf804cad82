//! Whether this caller may call this tool now. In case of doubt the call is refused.
//!
//! A tool marked as internal may be called: LLMs never see it, but programs that know its name may
//! use it.

use super::ExecuteError;
use crate::catalog::{Catalog, ViewQuery, Visibility, out_of_bounds};
use crate::model::{Provenance, ViewTool};

/// Refuses a call of the tool that the caller's scope does not allow. `tool` is the tool as
/// `catalog` has it in that scope.
pub(super) fn check(
    catalog: &Catalog,
    scope: &ViewQuery,
    tool: &ViewTool,
) -> Result<(), ExecuteError> {
    let id = || tool.id.clone();
    if let Some(unknown) = catalog.may_not_call(scope) {
        return Err(ExecuteError::UnknownProfile(unknown));
    }
    match catalog
        .entry(&tool.id.scenario)
        .map(|entry| &entry.visibility)
    {
        Some(Visibility::Published) => {}
        Some(Visibility::Withdrawn(reason)) => {
            return Err(ExecuteError::Unavailable {
                id: id(),
                reason: reason.clone(),
            });
        }
        Some(Visibility::Hidden(reason)) => {
            return Err(ExecuteError::NotTrusted {
                id: id(),
                reason: reason.clone(),
            });
        }
        None => return Err(ExecuteError::Unknown(tool.id.to_string())),
    }
    if let Some(step) = out_of_bounds(catalog, scope, tool) {
        return Err(ExecuteError::OutOfBounds {
            id: id(),
            reason: step.outcome,
        });
    }
    // What a definition runs is meant to run, unless a preference says otherwise.
    let is_meant =
        tool.execution.is_activity() && tool.effective.enabled_source == Provenance::Manifest;
    if !tool.effective.enabled && !is_meant {
        let by = tool
            .effective
            .enabled_source
            .why_disabled(&tool.id.scenario);
        return Err(ExecuteError::Disabled { id: id(), by });
    }
    Ok(())
}
