//! What the daemon refuses, as an error of the command line: the message, and the next step apart.

use serde_json::Value;

use super::commands::as_commands;
use crate::cli::{CommandError, output};
use crate::model::before_next_step;

/// The daemon's refusal (`application/problem+json`), with commands in place of routes. What is
/// wrong and the next step are apart in it.
pub(super) fn refused(status: http::StatusCode, body: &[u8]) -> CommandError {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = ["error", "detail", "title"]
        .iter()
        .find_map(|key| problem.get(key)?.as_str());
    let text = text.map_or_else(|| format!("the daemon answered {status}"), str::to_owned);
    let next = problem["next_step"]
        .as_str()
        .filter(|next| text.ends_with(next));
    let quoted = output::list(&problem, "next");
    let what = as_commands(
        next.map_or(&*text, |next| before_next_step(&text, next)),
        quoted,
    );
    let violations: Vec<_> = output::list(&problem, "violations")
        .iter()
        .map(
            |one| match (output::text(one, "/pointer"), output::text(one, "/message")) {
                (pointer, message) if pointer.is_empty() => message,
                (pointer, message) => format!("{pointer}: {message}"),
            },
        )
        .filter(|one| !what.contains(one.as_str()))
        .collect();
    let message = if violations.is_empty() {
        what
    } else {
        format!("{what}: {}", violations.join(", "))
    };
    let names: Vec<_> = ["candidates", "known"]
        .iter()
        .flat_map(|key| output::list(&problem, key))
        .filter_map(Value::as_str)
        .collect();
    let is_missing = !names.is_empty() && names.iter().any(|name| !text.contains(name));
    let next = next.map(|next| as_commands(next, quoted));
    let hint = if is_missing {
        Some(format!("one of: {}", names.join(", ")))
    } else {
        next
    };
    CommandError::Problem {
        message,
        hint,
        document: Box::new(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message and the hint that a person gets.
    fn shown(body: &str) -> (String, Option<String>) {
        match refused(http::StatusCode::NOT_FOUND, body.as_bytes()) {
            CommandError::Problem { message, hint, .. } => (message, hint),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_next_step_is_the_one_that_the_daemon_gives() {
        for (body, message, hint) in [
            (
                r#"{"error":"no `a`; did you mean b?","next_step":"did you mean b?"}"#,
                "no `a`",
                Some("did you mean b?"),
            ),
            (
                r#"{"error":"no `a`: use `b`","next_step":"use `b`"}"#,
                "no `a`",
                Some("use `b`"),
            ),
            (
                r#"{"error":"`a` failed; other tools are called"}"#,
                "`a` failed; other tools are called",
                None,
            ),
            (
                r#"{"error":"off; `PUT /p` helps","next_step":"`PUT /p` helps","next":[{"text":"`PUT /p`","parameter":"new","value":"true"}]}"#,
                "off",
                Some("`--new` helps"),
            ),
        ] {
            assert_eq!(
                shown(body),
                (message.to_owned(), hint.map(str::to_owned)),
                "{body}"
            );
        }
    }

    #[test]
    fn names_that_the_text_leaves_out_are_the_hint() {
        let body = r#"{"error":"no `a`; did you mean b?","candidates":["b"],"next_step":"did you mean b?"}"#;
        assert_eq!(shown(body).1.as_deref(), Some("did you mean b?"));
        assert_eq!(
            shown(r#"{"error":"no `a`","candidates":["b", "c"]}"#)
                .1
                .as_deref(),
            Some("one of: b, c")
        );
    }
}
