//! Reads the status of an operation, and the operation's id from an answer. Pure.

use serde_json::Value;

use super::CompanionReply;
use super::behaviour::{Behaviour, Untrackable, word};
use crate::model::text::beginning;
use crate::model::{JsonText, Progress};

/// The longest text of a status that is kept, in bytes.
const TEXT_MAX: usize = 2_000;

/// The contents of one answer of the status tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusReading {
    /// The scenario's own word for the state; `None` if the answer has no such field.
    pub(super) status: Option<String>,
    pub(super) progress: Progress,
    /// The end, if the operation is over.
    pub(super) end: Option<OperationEnd>,
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OperationEnd {
    Success(Option<JsonText>),
    Failure(Option<String>),
}

/// Parses an answer. Each field is looked up in `result`, then in the whole answer. An unknown
/// status means that the operation continues.
pub(super) fn parse_status(
    behaviour: &Behaviour,
    result: Option<&Value>,
    document: Option<&Value>,
) -> StatusReading {
    let look = |path: &str| look_up(path, [result, document]);
    let text = |field: &Option<String>| {
        field
            .as_deref()
            .and_then(look)
            .and_then(word)
            .map(|text| cut(&text).into())
    };
    let number = |field: &Option<String>| match field.as_deref().and_then(look)? {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    };
    let fields = &behaviour.progress;
    let progress = Progress {
        amount: number(&fields.amount),
        message: text(&fields.message),
        phase: text(&fields.phase),
        step: number(&fields.step),
        steps: number(&fields.steps),
        remaining: text(&fields.remaining),
    };
    let status = look(&behaviour.status_field).and_then(word);
    let is = |values: &[String]| {
        status
            .as_ref()
            .is_some_and(|status| values.contains(status))
    };
    let end = if is(&behaviour.success) {
        let held = behaviour.result_field.as_deref().map_or(result, look);
        Some(OperationEnd::Success(
            held.and_then(|held| JsonText::parse(&held.to_string()).ok()),
        ))
    } else if is(&behaviour.failure) {
        let parts = [&behaviour.error_field, &behaviour.details_field];
        let parts = parts
            .into_iter()
            .filter_map(|field| field.as_deref().and_then(look))
            .filter(|part| !part.is_null());
        let parts: Vec<String> = parts
            .map(|part| cut(&word(part).unwrap_or_else(|| part.to_string())))
            .collect();
        Some(OperationEnd::Failure(
            (!parts.is_empty()).then(|| parts.join(": ")),
        ))
    } else {
        None
    };
    StatusReading {
        status: status.map(|status| cut(&status)),
        progress,
        end,
    }
}

/// Whether a status tool says that it finds no such operation, by its code or in its words.
pub(super) fn is_not_found(reply: &CompanionReply) -> bool {
    let document: Option<Value> = reply
        .document
        .as_ref()
        .and_then(|text| serde_json::from_str(text.get()).ok());
    let code = document
        .as_ref()
        .and_then(|document| document.get("code"))
        .and_then(word);
    let texts = [code.as_deref(), reply.error.as_deref()];
    texts
        .into_iter()
        .flatten()
        .map(str::to_ascii_lowercase)
        .any(|text| {
            [
                "not found",
                "not_found",
                "notfound",
                "not-found",
                "no such",
                "does not exist",
                "404",
                "unknown",
            ]
            .iter()
            .any(|words| text.contains(words))
        })
}

/// The operation's id in the answer of the tool that started it.
pub(super) fn reference(
    behaviour: &Behaviour,
    result: Option<&Value>,
    document: Option<&Value>,
) -> Result<Option<Value>, Untrackable> {
    match look_up(&behaviour.id_field, [result, document]) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(id @ (Value::String(_) | Value::Number(_))) => Ok(Some(id.clone())),
        Some(_) => {
            let field = &behaviour.id_field;
            Err(Untrackable::Id(format!(
                "`{field}` of the answer is neither a text nor a number, so it is not an id"
            )))
        }
    }
}

/// The value at a path of names and indices (`run.id`, `items.0.id`), in the first document that
/// has it.
fn look_up<'v>(path: &str, documents: [Option<&'v Value>; 2]) -> Option<&'v Value> {
    documents.into_iter().flatten().find_map(|document| {
        // A member whose own name contains a dot takes precedence over a path.
        document
            .get(path)
            .or_else(|| path.split('.').try_fold(document, step))
    })
}

fn step<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn cut(text: &str) -> String {
    beginning(text, TEXT_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::behaviour::tests::{behaviour, full};
    use super::*;

    fn reading_of(result: &Value) -> StatusReading {
        parse_status(&behaviour(&full()), Some(result), None)
    }

    #[test]
    fn the_declared_values_end_it_and_no_others() {
        for (status, over) in [
            (json!("done"), true),
            (json!(1), true),
            (json!("failed"), true),
            (json!("running"), false),
            (json!("DONE"), false),
            (json!("something new"), false),
            (json!(null), false),
            (json!({"state": "done"}), false),
        ] {
            assert_eq!(
                reading_of(&json!({"status": status})).end.is_some(),
                over,
                "{status}"
            );
        }
        let empty = reading_of(&json!({}));
        assert_eq!(empty.status, None);
        assert_eq!(empty.end, None);
    }

    #[test]
    fn an_end_carries_its_result_or_its_error() {
        let done = reading_of(&json!({"status": "done", "output": {"n": 1}}));
        assert_eq!(
            done.end,
            Some(OperationEnd::Success(Some(
                JsonText::parse(r#"{"n":1}"#).unwrap()
            )))
        );
        let failed =
            reading_of(&json!({"status": "failed", "error": "no room", "details": {"disk": "a"}}));
        assert_eq!(
            failed.end,
            Some(OperationEnd::Failure(Some(
                r#"no room: {"disk":"a"}"#.into()
            )))
        );
        assert_eq!(
            reading_of(&json!({"status": "failed", "error": null})).end,
            Some(OperationEnd::Failure(None))
        );
    }

    #[test]
    fn progress_is_read_where_it_was_declared() {
        let status = json!({"status": "running", "percent": "40", "said": "at work", "phase": "build", "at": 2, "of": 5, "left": 30});
        let progress = reading_of(&status).progress;
        assert_eq!(progress.amount, Some(40.0));
        assert_eq!(progress.step, Some(2.0));
        assert_eq!(progress.steps, Some(5.0));
        assert_eq!(progress.message.as_deref(), Some("at work"));
        assert_eq!(progress.phase.as_deref(), Some("build"));
        assert_eq!(progress.remaining.as_deref(), Some("30"));
    }

    #[test]
    fn the_result_goes_before_the_whole_answer() {
        let behaviour = behaviour(&full());
        let result = json!({"status": "running"});
        let document = json!({"status": "done", "result": {"status": "running"}});
        assert_eq!(
            parse_status(&behaviour, Some(&result), Some(&document)).end,
            None
        );
        assert!(
            parse_status(&behaviour, None, Some(&document))
                .end
                .is_some()
        );
    }

    #[test]
    fn ids_are_texts_or_numbers() {
        let behaviour = behaviour(&full());
        let id = |result: Value| reference(&behaviour, Some(&result), None);
        assert_eq!(id(json!({"run": {"id": "r-1"}})), Ok(Some(json!("r-1"))));
        assert_eq!(id(json!({"run": {"id": 17}})), Ok(Some(json!(17))));
        assert_eq!(id(json!({"run.id": "flat"})), Ok(Some(json!("flat"))));
        assert_eq!(id(json!({"run": {"id": ""}})), Ok(None));
        assert_eq!(id(json!({"run": null})), Ok(None));
        assert!(id(json!({"run": {"id": [1]}})).is_err());
        let document = json!({"run": {"id": "outside"}});
        assert_eq!(
            reference(&behaviour, Some(&json!([])), Some(&document)),
            Ok(Some(json!("outside")))
        );
        let list = json!([{"id": 5}]);
        assert_eq!(look_up("0.id", [Some(&list), None]), Some(&json!(5)));
    }

    #[test]
    fn texts_are_cut_at_their_limit_between_two_characters() {
        for long in [
            "\u{e4}".repeat(TEXT_MAX),
            format!("x{}", "\u{e4}".repeat(TEXT_MAX)),
        ] {
            let reading = reading_of(&json!({"status": long, "said": long}));
            for text in [
                reading.status.as_deref(),
                reading.progress.message.as_deref(),
            ] {
                let text = text.unwrap();
                assert!(
                    long.starts_with(text) && (TEXT_MAX - 1..=TEXT_MAX).contains(&text.len()),
                    "{}",
                    text.len()
                );
            }
        }
    }
}
