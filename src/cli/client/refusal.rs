//! What the daemon refuses, as an error of the command line: the message, and the next step apart.

use serde_json::Value;

use super::commands::as_commands;
use crate::cli::{CommandError, output};

/// The daemon's refusal (`application/problem+json`), with commands in place of routes.
pub(super) fn refused(status: http::StatusCode, body: &[u8]) -> CommandError {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = ["error", "detail", "title"].iter().find_map(|key| problem.get(key)?.as_str());
    let next = output::list(&problem, "next");
    let detail = detail.map_or_else(|| format!("the daemon answered {status}"), |text| as_commands(text, next));
    let violations = output::list(&problem, "violations").iter();
    let violations: Vec<_> = violations
        .map(|one| match (output::text(one, "/pointer"), output::text(one, "/message")) {
            (pointer, message) if pointer.is_empty() => message,
            (pointer, message) => format!("{pointer}: {message}"),
        })
        .filter(|one| !detail.contains(one.as_str()))
        .collect();
    let detail = if violations.is_empty() { detail } else { format!("{detail}: {}", violations.join(", ")) };
    let (message, next) = output::next_step(&detail);
    let (message, next) = match (next, message.split_once(": use ")) {
        (None, Some((message, _))) => (message, Some(&detail[message.len() + 2..])),
        (next, _) => (message, next),
    };
    let names: Vec<_> =
        ["candidates", "known"].iter().flat_map(|key| output::list(&problem, key)).filter_map(Value::as_str).collect();
    let is_missing = !names.is_empty() && names.iter().any(|name| !detail.contains(name));
    let hint = if is_missing { Some(format!("one of: {}", names.join(", "))) } else { next.map(str::to_owned) };
    CommandError::Problem { message: message.to_owned(), hint, document: Box::new(problem) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_text_leaves_out_are_the_hint() {
        let error = refused(http::StatusCode::NOT_FOUND, br#"{"error":"no `a`; did you mean b?","candidates":["b"]}"#);
        assert!(
            matches!(error, CommandError::Problem { message, hint, .. } if message == "no `a`" && hint.as_deref() == Some("did you mean b?"))
        );
        let colon = refused(http::StatusCode::BAD_REQUEST, br#"{"error":"unknown target `a`: use `tag:<tag>`"}"#);
        assert!(
            matches!(colon, CommandError::Problem { message, hint, .. } if message == "unknown target `a`" && hint.as_deref() == Some("use `tag:<tag>`"))
        );
        let error = refused(http::StatusCode::NOT_FOUND, br#"{"error":"no `a`","candidates":["b", "c"]}"#);
        assert!(matches!(error, CommandError::Problem { hint, .. } if hint.as_deref() == Some("one of: b, c")));
    }
}
