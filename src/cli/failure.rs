//! What the failure of a command says: for people and, with `--json`, for programs.

use serde_json::{Value, json};

use super::{CommandError, output};
use crate::model::before_next_step;

/// One thing that is wrong, for people.
pub(super) struct ErrorText {
    /// What was tried, on what, and why it failed.
    pub(super) message: String,
    /// The next step, if there is one.
    pub(super) hint: Option<String>,
}

/// Prints why a command failed, to standard error: `error: ...` and, where there is a next step,
/// `  hint: ...`; with `--json` one JSON object. What was printed before is not repeated.
pub(super) fn print(failure: &CommandError) {
    if output::is_json() {
        if let Some(object) = to_json(failure) {
            output::error_object(&object);
        }
        return;
    }
    for ErrorText { message, hint } in texts(failure) {
        output::error(&message, hint.as_deref());
    }
}

/// What is wrong, for people: several things for a configuration, and none for what was printed
/// before.
pub(super) fn texts(failure: &CommandError) -> Vec<ErrorText> {
    let one = |message: &str, hint: Option<&str>| {
        vec![ErrorText {
            message: output::sanitize(message),
            hint: hint.map(output::sanitize),
        }]
    };
    match failure {
        CommandError::Found | CommandError::FoundConfig => Vec::new(),
        CommandError::Refused { message, hint } | CommandError::Problem { message, hint, .. } => {
            one(message, hint.as_deref())
        }
        CommandError::Usage { message, hint } | CommandError::Unreachable { message, hint } => {
            one(message, Some(hint))
        }
        CommandError::WaitsForApproval { id, waiting } => {
            let hint =
                format!("`callsheet approvals approve {id}` sends it; `{waiting}` waits for that");
            one(
                &format!("not sent yet: the call waits for approval as {id}"),
                Some(&hint),
            )
        }
        CommandError::WaitsForInput { id, question } => {
            let hint = format!(
                "give it on the page Calls of the dashboard, or by `POST /api/v1/interactions/{id}`"
            );
            one(
                &format!("the call waits for input as {id}: {question}"),
                Some(&hint),
            )
        }
        CommandError::Config(config) => config
            .problems
            .iter()
            .flat_map(|found| one(&found.line(), Some(&found.hint)))
            .collect(),
        CommandError::Daemon { error, hint } => {
            // The chain of causes is given here, once; each error's own text names only its own
            // level.
            let chain = format!("{error:#}");
            match hint {
                Some(hint) => one(before_next_step(&chain, hint), Some(hint)),
                None => one(&chain, None),
            }
        }
    }
}

/// The same for programs: `error`, `hint`, `exit_code`, and where there are such the daemon's
/// `problem`, the `approval_id` or `interaction_id` of a call that waits, or all `errors` of a
/// configuration. `None` for what was printed before.
fn to_json(failure: &CommandError) -> Option<Value> {
    let texts = texts(failure);
    let first = texts.first()?;
    let mut object =
        json!({"error": first.message, "hint": first.hint, "exit_code": failure.number()});
    match failure {
        CommandError::Problem { document, .. } => object["problem"] = (**document).clone(),
        CommandError::WaitsForApproval { id, .. } => object["approval_id"] = json!(id),
        CommandError::WaitsForInput { id, .. } => object["interaction_id"] = json!(id),
        CommandError::Config(_) => {
            object["errors"] = texts
                .iter()
                .map(|text| json!({"error": text.message, "hint": text.hint}))
                .collect();
        }
        _ => {}
    }
    Some(object)
}
