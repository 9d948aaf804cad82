//! Prints the result of a call for people.

use serde_json::Value;

use super::super::{CommandError, output};

/// Prints an answer; a tool that failed is a failure.
pub(super) fn show(answer: &Value) -> Result<(), CommandError> {
    if answer["approval_id"].is_string() {
        return verdict(answer);
    }
    if let Some(id) = answer["interaction"]["id"].as_str() {
        let message = answer["interaction"]["message"].as_str().unwrap_or_default();
        output::line(&output::sanitize(&format!("waits for input as {id}: {message}")));
        output::note("give it on the dashboard's page Calls, or by `POST /api/v1/interactions/{id}`");
        return Ok(());
    }
    verdict(answer)?;
    match &answer["result"] {
        Value::Null => {}
        Value::String(text) => output::line(&output::lines(text)),
        other => output::line(&output::lines(&serde_json::to_string_pretty(other).unwrap_or_default())),
    }
    if let Some(id) = ["operation_id", "run_id"].iter().find_map(|member| answer[*member].as_str()) {
        output::note(&output::sanitize(&format!("it goes on running as {id}")));
    }
    let took = answer["execution_time_ms"].as_u64().map(|took| format!(" after {took} ms"));
    let by = answer["scenario"].as_str().map(|scenario| format!(" by {scenario}"));
    if took.is_some() || by.is_some() {
        let note = format!("answered{}{}", by.unwrap_or_default(), took.unwrap_or_default());
        output::note(&output::sanitize(&note));
    }
    Ok(())
}

/// Whether the tool succeeded, or the call waits for approval, as an exit code.
pub(super) fn verdict(answer: &Value) -> Result<(), CommandError> {
    if let Some(id) = answer["approval_id"].as_str() {
        return Err(CommandError::WaitsForApproval {
            id: id.to_owned(),
            waiting: "callsheet call --wait ...".to_owned(),
        });
    }
    if answer["success"] != Value::Bool(false) || answer["interaction"].is_object() {
        return Ok(());
    }
    let error = answer["error"].as_str().unwrap_or("the tool failed without a message");
    let code = answer["code"].as_str().map(|code| format!(" ({code})")).unwrap_or_default();
    Err(CommandError::Refused { message: format!("{error}{code}"), hint: None })
}
