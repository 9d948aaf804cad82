//! Prints the result of a call for people.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{CommandError, output};

/// Prints an answer; a tool that failed is a failure.
pub(super) fn show(answer: &Value) -> Result<(), CommandError> {
    if let Some(declined) = answer["declined"].as_str() {
        output::note(&output::sanitize(declined));
    }
    verdict(answer)?;
    match &answer["result"] {
        Value::Null => {}
        Value::String(text) => output::line(&output::lines(text)),
        other => output::line(&output::lines(
            &serde_json::to_string_pretty(other).unwrap_or_default(),
        )),
    }
    if let Some(others) = other_content(answer) {
        output::note(&output::sanitize(&format!(
            "the result also has {others}: `callsheet call --json` shows it"
        )));
    }
    if let Some(id) = ["operation_id", "run_id"]
        .iter()
        .find_map(|member| answer[*member].as_str())
    {
        output::note(&output::sanitize(&format!("it goes on running as {id}")));
    }
    let took = answer["execution_time_ms"]
        .as_u64()
        .map(|took| format!(" after {}", output::took(took)));
    let by = answer["scenario"]
        .as_str()
        .map(|scenario| format!(" by {scenario}"));
    if took.is_some() || by.is_some() {
        let note = format!(
            "answered{}{}",
            by.unwrap_or_default(),
            took.unwrap_or_default()
        );
        output::note(&output::sanitize(&note));
    }
    Ok(())
}

/// What a tool asks its user, with what it wants to know.
fn waits_for_input(interaction: &Value, id: &str) -> CommandError {
    let message = interaction["message"].as_str().unwrap_or_default();
    let members: Vec<&str> = interaction["schema"]["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    let wanted = if members.is_empty() {
        String::new()
    } else {
        format!(" ({})", members.join(", "))
    };
    CommandError::WaitsForInput {
        id: id.to_owned(),
        question: format!("{message}{wanted}"),
    }
}

/// The blocks of a result that are no text, by their kinds, such as `1 image`.
fn other_content(answer: &Value) -> Option<String> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let blocks = output::list(&answer["content"], "content").iter();
    for kind in blocks
        .filter_map(|block| block["type"].as_str())
        .filter(|kind| *kind != "text")
    {
        *kinds.entry(kind).or_default() += 1;
    }
    let counted = kinds
        .iter()
        .map(|(kind, count)| output::count(*count, &kind.replace('_', " ")));
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// Whether the tool succeeded, or the call waits for a person, as an exit code.
pub(super) fn verdict(answer: &Value) -> Result<(), CommandError> {
    if let Some(id) = answer["approval_id"].as_str() {
        return Err(CommandError::WaitsForApproval {
            id: id.to_owned(),
            waiting: "callsheet call --wait ...".to_owned(),
        });
    }
    if let Some(id) = answer["interaction"]["id"].as_str() {
        return Err(waits_for_input(&answer["interaction"], id));
    }
    if answer["success"] != Value::Bool(false) {
        return Ok(());
    }
    let error = answer["error"]
        .as_str()
        .unwrap_or("the tool failed without a message");
    let code = answer["code"]
        .as_str()
        .map(|code| format!(" ({code})"))
        .unwrap_or_default();
    Err(CommandError::Refused {
        message: format!("{error}{code}"),
        hint: None,
    })
}
