//! The daemon's refusals in the words of the command line: commands and flags in place of the
//! requests and parameters that its texts quote, which it gives as data (`next`).

use serde_json::Value;

use crate::cli::output;

/// The text of a problem, with commands and flags in place of the next steps that it quotes.
pub(in crate::cli) fn as_commands(text: &str, next: &[Value]) -> String {
    next.iter().fold(text.to_owned(), |text, step| {
        match (step["text"].as_str(), replacement(step)) {
            (Some(quoted), Some(own)) => text.replace(quoted, &own),
            _ => text,
        }
    })
}

/// The words of the command line for a step; `None` if it has none.
fn replacement(step: &Value) -> Option<String> {
    match step["argument"].as_str() {
        Some(name) => Some(format!(
            r#"call it again with `--args '{{..., "{name}": {{...}}}}'`"#
        )),
        None => command(step).map(|command| format!("`{command}`")),
    }
}

/// The command or the flag for a request or a parameter.
fn command(step: &Value) -> Option<String> {
    if let (Some(name), Some(value)) = (step["parameter"].as_str(), step["value"].as_str()) {
        return match name {
            "format" => Some(format!("--format {value}")),
            "include_disabled" => Some("--all".to_owned()),
            "new" => Some("--new".to_owned()),
            _ => None,
        };
    }
    match (step["method"].as_str()?, step["path"].as_str()?) {
        ("GET", "/api/v1/scenarios") => Some("callsheet scenarios".to_owned()),
        ("GET", "/api/v1/approvals") => Some("callsheet approvals".to_owned()),
        ("GET", "/api/v1/operations") => Some("callsheet operations".to_owned()),
        ("GET", "/api/v1/tools?include_disabled=true") => Some("callsheet tools --all".to_owned()),
        ("PUT", "/api/v1/preferences") => Some(preference(&step["body"])),
        (method, path) => of_scenario(method, path.strip_prefix("/api/v1/scenarios/")?),
    }
}

/// The command for a request about one scenario.
fn of_scenario(method: &str, below: &str) -> Option<String> {
    match (method, below.split_once('/')) {
        ("GET", None) => Some(format!("callsheet scenarios {below}")),
        ("DELETE", None) => Some(format!("callsheet remove {below}")),
        ("POST", Some((name, action))) => Some(format!("callsheet {action} {name}")),
        ("DELETE", Some((name, action))) => Some(format!("callsheet {action} {name} --undo")),
        _ => None,
    }
}

/// The command that enables what a preference has as its target.
fn preference(body: &Value) -> String {
    let target = word(&output::text(body, "/target"));
    match output::text(body, "/scope").as_str() {
        "global" => format!("callsheet prefs set {target} --enabled true"),
        scope => format!(
            "callsheet prefs set {target} --enabled true --scope {}",
            word(scope)
        ),
    }
}

/// A text as one word of a shell.
pub(in crate::cli) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_are_shown_as_commands() {
        let request =
            |method: &str, path: &str| json!({"text": "STEP", "method": method, "path": path});
        let enable = |scope: &str, target: &str| {
            let body = json!({"scope": scope, "target": target, "enabled": true});
            json!({"text": "STEP", "method": "PUT", "path": "/api/v1/preferences", "body": body})
        };
        let parameter =
            |name: &str, value: &str| json!({"text": "STEP", "parameter": name, "value": value});
        for (step, shown) in [
            (request("GET", "/api/v1/scenarios"), "`callsheet scenarios`"),
            (request("GET", "/api/v1/approvals"), "`callsheet approvals`"),
            (
                request("GET", "/api/v1/operations"),
                "`callsheet operations`",
            ),
            (
                request("GET", "/api/v1/tools?include_disabled=true"),
                "`callsheet tools --all`",
            ),
            (
                request("DELETE", "/api/v1/scenarios/a/block"),
                "`callsheet block a --undo`",
            ),
            (
                request("POST", "/api/v1/scenarios/a/trust"),
                "`callsheet trust a`",
            ),
            (
                request("GET", "/api/v1/scenarios/a"),
                "`callsheet scenarios a`",
            ),
            (
                request("DELETE", "/api/v1/scenarios/a"),
                "`callsheet remove a`",
            ),
            (request("GET", "/api/v1/else"), "STEP"),
            (
                enable("global", "tool:a/new tool!"),
                "`callsheet prefs set 'tool:a/new tool!' --enabled true`",
            ),
            (
                enable("chat:7", "tool:a/b"),
                "`callsheet prefs set tool:a/b --enabled true --scope chat:7`",
            ),
            (parameter("format", "native"), "`--format native`"),
            (parameter("new", "true"), "`--new`"),
            (parameter("include_disabled", "true"), "`--all`"),
            (parameter("include_internal", "true"), "STEP"),
        ] {
            assert_eq!(
                as_commands("do STEP; ok", &[step]),
                format!("do {shown}; ok")
            );
        }
        assert_eq!(
            as_commands("use `format=native`", &[]),
            "use `format=native`"
        );
    }
}
