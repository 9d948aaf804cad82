//! The daemon's refusals in the words of the command line: commands and flags in place of the
//! routes and parameters that its texts quote.

/// The text with commands and flags in place of the routes and parameters that it quotes.
pub(in crate::cli) fn as_commands(text: &str) -> String {
    let text = preference(text).unwrap_or_else(|| text.to_owned());
    let text = text.replace("call it again with `_output`", "call it again with `--args '{..., \"_output\": {...}}'`");
    let mut commands = String::with_capacity(text.len());
    for (at, part) in text.split('`').enumerate() {
        // Every second part stands between backticks.
        let quoted = at % 2 == 1;
        commands.push_str(if at == 0 { "" } else { "`" });
        commands.push_str(&if quoted { command(part) } else { None }.unwrap_or_else(|| part.to_owned()));
    }
    commands
}

/// The text with the command that enables a tool in place of the request that does so.
fn preference(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("`PUT /api/v1/preferences` with scope `")?;
    let (scope, rest) = rest.split_once("` and target `")?;
    let (target, after) = rest.split_once("` switches it on")?;
    let scope = if scope == "global" { String::new() } else { format!(" --scope {}", word(scope)) };
    Some(format!("{before}`callsheet prefs set {} --enabled true{scope}` switches it on{after}", word(target)))
}

/// A text as one word of a shell.
pub(in crate::cli) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn command(literal: &str) -> Option<String> {
    match literal {
        "GET /api/v1/scenarios" => return Some("callsheet scenarios".into()),
        "GET /api/v1/approvals" => return Some("callsheet approvals".into()),
        "GET /api/v1/operations" => return Some("callsheet operations".into()),
        "GET /api/v1/tools?include_disabled=true" => return Some("callsheet tools --all".into()),
        "include_disabled=true" => return Some("--all".into()),
        "new=true" => return Some("--new".into()),
        _ => {}
    }
    if let Some(format) = literal.strip_prefix("format=") {
        return Some(format!("--format {format}"));
    }
    let (method, name) = literal.split_once(" /api/v1/scenarios/")?;
    match (method, name.split_once('/')) {
        ("GET", None) => Some(format!("callsheet scenarios {name}")),
        ("POST", Some((name, action))) => Some(format!("callsheet {action} {name}")),
        ("DELETE", Some((name, action))) => Some(format!("callsheet {action} {name} --undo")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_told_as_commands() {
        for (route, shown) in [
            ("no `x`; `GET /api/v1/scenarios` lists them", "no `x`; `callsheet scenarios` lists them"),
            ("`GET /api/v1/approvals` lists them", "`callsheet approvals` lists them"),
            ("`GET /api/v1/operations` lists them", "`callsheet operations` lists them"),
            ("do it with `DELETE /api/v1/scenarios/a/block`", "do it with `callsheet block a --undo`"),
            ("accept it with `POST /api/v1/scenarios/a/trust`", "accept it with `callsheet trust a`"),
            ("look with `GET /api/v1/scenarios/a`", "look with `callsheet scenarios a`"),
            (
                "off; `PUT /api/v1/preferences` with scope `global` and target `tool:a/new tool!` switches it on",
                "off; `callsheet prefs set 'tool:a/new tool!' --enabled true` switches it on",
            ),
            (
                "off; `PUT /api/v1/preferences` with scope `chat:7` and target `tool:a/b` switches it on",
                "off; `callsheet prefs set tool:a/b --enabled true --scope chat:7` switches it on",
            ),
            ("use `format=native`", "use `--format native`"),
            ("import it as a new bundle (`new=true`)", "import it as a new bundle (`--new`)"),
            ("`x` and an odd ` backtick", "`x` and an odd ` backtick"),
        ] {
            assert_eq!(as_commands(route), shown);
        }
    }
}
