//! How a call of a definition gets its result: from the activity that runs it, or from the caller's
//! own model.
//!
//! A call of a definition with an activity becomes the call of that tool: its scenario, its limits,
//! its breaker and its companions are the ones that hold. The result of a latent call is checked
//! and given back; it is sent nowhere. The catalog decided which of the two it is.

use std::sync::Arc;

use super::error::under;
use super::track::FollowUp;
use super::validate::{ArgumentValidator, ArgumentVerdict, CheckLimits};
use super::{CallResponse, ExecuteError, PreparedCall, allow, meta_fields, resolve};
use crate::catalog::{Catalog, ViewQuery};
use crate::model::{Execution, JsonText, ViewTool};
use crate::protocols::Outcome;

/// The tool that runs a call of `called`, if that is another one, in the same scope.
pub(super) fn runner(
    catalog: &Catalog,
    scope: &ViewQuery,
    called: &ViewTool,
) -> Result<Option<Arc<ViewTool>>, ExecuteError> {
    let missing = |name: Arc<str>| ExecuteError::NoActivity {
        id: called.id.clone(),
        activity: name,
    };
    match &called.execution {
        Execution::Own | Execution::ActivityOf(_) | Execution::Latent => Ok(None),
        Execution::Missing(name) => Err(missing(Arc::clone(name))),
        Execution::By(bound) => {
            let runner = resolve::by_id(catalog, scope, bound.tool.clone());
            let runner = runner.ok_or_else(|| missing(Arc::clone(&bound.name)))?;
            allow::check(catalog, scope, &runner)?;
            Ok(Some(runner))
        }
    }
}

/// The arguments of a latent call with the result that its model produced. Refuses a call without
/// one, and one whose result does not fit.
pub(super) async fn latent_arguments(
    validators: &ArgumentValidator,
    tool: &ViewTool,
    arguments: &JsonText,
    output: Option<JsonText>,
    limits: CheckLimits<'_>,
) -> Result<JsonText, ExecuteError> {
    let name = || tool.name.as_str().to_owned();
    let Some(output) = output else {
        return Err(ExecuteError::OutputMissing { tool: name() });
    };
    if let Some(schema) = tool.tool.output()
        && let ArgumentVerdict::Unfit(violations, more) = validators
            .judge_result(tool, schema, &output, limits)
            .await?
    {
        return Err(ExecuteError::OutputUnfit {
            tool: name(),
            violations: under("/_output", violations),
            more,
        });
    }
    Ok(meta_fields::with_output(arguments, &output))
}

/// The response to a latent call.
pub(super) fn latent_response(ready: &PreparedCall) -> Option<CallResponse> {
    let is_latent = ready.tool.execution == Execution::Latent;
    let output = meta_fields::output(&ready.arguments).filter(|_| is_latent)?;
    Some(CallResponse {
        tool: Arc::clone(&ready.tool),
        definition: None,
        outcome: Outcome::done(output),
        url: String::new(),
        took: std::time::Duration::ZERO,
        attempts: 0,
        adjusted: ready.adjusted.clone(),
        declined: None,
        going: FollowUp::Over,
        _held: None,
    })
}
