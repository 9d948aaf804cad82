//! `POST .../invoke`: calls a stored tool in the same way as every other call.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::value::RawValue;

use super::bundle_json::{InvokeBody, InvokedJson};
use super::path_names::{ToolPath, tool_key};
use crate::bundles::{StoredBundle, StoredTool};
use crate::calls::{CallEnd, CallResponse, CallerRole, Request, WaitLimits};
use crate::catalog::Snapshot;
use crate::model::JsonText;
use crate::protocols::bundle::left_out;
use crate::server::api::calls::status_of;
use crate::server::api::shared_json::{self, RawJson};
use crate::server::auth::Access;
use crate::server::http::body::RawBody;
use crate::server::http::error::Problem;
use crate::server::http::query::NoQuery;
use crate::server::http::typed_body::parse_body;
use crate::server::{ServerState, SharedState};

/// How long a call waits until a tool that was stored just now is in the list.
const SETTLE: Duration = Duration::from_secs(2);

/// The body is `{args}`, the answer `{ok: true, value}` or `{ok: false, error, code}`.
pub(super) async fn invoke(
    State(shared): State<SharedState>,
    path: ToolPath,
    _: NoQuery,
    access: Access,
    RawBody(body): RawBody,
) -> Result<Response, Problem> {
    let key = tool_key(&path)?;
    let (stored, tool) = shared.bundles.tool((key.0, &key.1, &key.2))?;
    if !stored.definition.is_enabled {
        return failed(StatusCode::FORBIDDEN, "the bundle is disabled", "disabled");
    }
    if !tool.is_enabled {
        return failed(
            StatusCode::FORBIDDEN,
            "the tool is disabled in its bundle",
            "disabled",
        );
    }
    let arguments = match arguments(&body) {
        Ok(arguments) => arguments,
        Err(why) => return failed(StatusCode::BAD_REQUEST, &why, "invalid_arguments"),
    };
    // Frees the buffer of the body for other requests while the call waits.
    drop(body);
    if let Some(finding) = left_out(&tool, &shared.bundles) {
        return failed(
            StatusCode::SERVICE_UNAVAILABLE,
            &finding.message,
            "unavailable",
        );
    }
    if !settled(&shared, &stored, &tool).await {
        let why = format!(
            "the scenario `{}` does not offer the tool now; `callsheet explain` says why",
            stored.scenario
        );
        return failed(StatusCode::SERVICE_UNAVAILABLE, &why, "unavailable");
    }
    let request = Request {
        scenario: Some(stored.scenario.clone()),
        ..Request::new(tool.name(), arguments, access.requester())
    };
    match shared
        .calls
        .settle(request, CallerRole::Absent, WaitLimits::NONE)
        .await
    {
        CallEnd::Answered(given) if given.success => {
            let value = given.result.unwrap_or_else(|| JsonText::known("null"));
            match broken(&shared, given.response.as_deref(), &value).await {
                None => succeeded(&value),
                Some(how) => {
                    let why =
                        format!("what the tool gave back does not fit its `outputSchema`: {how}");
                    failed(StatusCode::OK, &why, "output_mismatch")
                }
            }
        }
        CallEnd::Answered(given) => {
            let error = given
                .error
                .as_deref()
                .unwrap_or("it failed without a message");
            failed(
                StatusCode::OK,
                error,
                given.code.as_deref().unwrap_or("failed"),
            )
        }
        CallEnd::AwaitsApproval(awaited) => {
            let why = format!(
                "`{}` needs approval; it waits as `{}`",
                awaited.request.tool, awaited.request.id
            );
            failed(StatusCode::ACCEPTED, &why, "approval_required")
        }
        CallEnd::NeedsInput(input) => {
            failed(StatusCode::OK, &input.wanted.message(), "input_required")
        }
        CallEnd::Failed(failure) => failed(
            status_of(&failure),
            &failure.to_string(),
            failure.code.as_str(),
        ),
    }
}

/// The arguments of a body: an object, or the text of one.
fn arguments(body: &[u8]) -> Result<JsonText, String> {
    let body: InvokeBody<'_> =
        parse_body(body).map_err(|why| format!("{why}; a call is {{\"args\": {{...}}}}"))?;
    let Some(sent) = body.args.map(RawValue::get) else {
        return Ok(JsonText::known("{}"));
    };
    let inner: Option<String> = serde_json::from_str(sent).ok();
    let text = inner.as_deref().unwrap_or(sent).trim();
    let is_object = text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    if is_object {
        Ok(JsonText::known(text))
    } else {
        Err("`args` is not an object".to_owned())
    }
}

/// How a value breaks the `outputSchema` of the tool that ran.
async fn broken(
    shared: &ServerState,
    response: Option<&CallResponse>,
    value: &JsonText,
) -> Option<String> {
    shared.calls.broken_result(&response?.tool, value).await
}

/// Waits until the list has the tool as it is stored. Another scenario may have its name.
async fn settled(shared: &ServerState, bundle: &StoredBundle, tool: &Arc<StoredTool>) -> bool {
    let name = tool.name();
    let url = format!("bundle:{}", bundle.definition.id);
    let is_listed = |now: &Snapshot| {
        let is_own = now
            .health
            .get(&bundle.scenario)
            .is_some_and(|health| health.url.as_deref() == Some(url.as_str()));
        is_own
            && now
                .catalog
                .entry(&bundle.scenario)
                .is_some_and(|entry| entry.tool(&name).is_some())
    };
    let mut reader = shared.reader.clone();
    let wait = async {
        while !is_listed(&reader.snapshot()) {
            if reader.changed().await.is_none() {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(SETTLE, wait).await.unwrap_or(false)
}

fn succeeded(value: &JsonText) -> Result<Response, Problem> {
    let json = InvokedJson {
        ok: true,
        value: Some(RawJson(value)),
        error: None,
        code: None,
    };
    answer(StatusCode::OK, &json, value.get().len())
}

fn failed(status: StatusCode, error: &str, code: &str) -> Result<Response, Problem> {
    answer(
        status,
        &InvokedJson {
            ok: false,
            value: None,
            error: Some(error),
            code: Some(code),
        },
        0,
    )
}

fn answer(
    status: StatusCode,
    json: &InvokedJson<'_>,
    result_bytes: usize,
) -> Result<Response, Problem> {
    Ok(shared_json::written(
        status,
        shared_json::bytes(json, result_bytes)?,
    ))
}
