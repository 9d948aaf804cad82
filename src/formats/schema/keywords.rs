//! Only the keywords that a target knows; the others are said in the description where they fit.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::walk::{Role, each_schema};
use super::{Log, Refused, take};

/// Characters of a folded value.
pub(super) const FITS: usize = 200;

/// What a target reads.
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary {
    /// The target, as findings call it.
    pub target: &'static str,
    /// Keywords at the root.
    pub at_root: &'static [&'static str],
    /// Keywords of the schemas within.
    pub elsewhere: &'static [&'static str],
    /// Whether a known keyword may hold this value.
    pub takes: fn(&str, &Value) -> bool,
}

/// Takes out what the target does not know; one note for what the descriptions say now, one for what nothing says any more.
pub fn keep(schema: &mut Value, log: &mut Log, vocabulary: &Vocabulary) -> Result<(), Refused> {
    let (mut folded, mut lost) = (BTreeSet::new(), BTreeSet::new());
    each_schema(schema, &mut |schema, place| {
        let Some(members) = schema.as_object_mut() else { return };
        let known = if place.role == Role::Root { vocabulary.at_root } else { vocabulary.elsewhere };
        let says = |keyword: &str, value: &Value| known.contains(&keyword) && (vocabulary.takes)(keyword, value);
        let odd: Vec<String> = members.iter().filter(|(k, v)| !says(k, v)).map(|(k, _)| k.clone()).collect();
        let describes = known.contains(&"description");
        for keyword in odd {
            let Some(value) = take(members, &keyword) else { continue };
            log.silent();
            match said(&keyword, &value) {
                Said::Nothing => {}
                Said::Text(text) if describes && text.chars().count() <= FITS => {
                    describe(members, &text);
                    folded.insert(keyword);
                }
                _ => drop(lost.insert(keyword)),
            }
        }
    });
    tell(log, &folded, vocabulary.target, "said in the description");
    tell(log, &lost, vocabulary.target, "left out");
    Ok(())
}

enum Said {
    /// It means nothing to an LLM.
    Nothing,
    Text(String),
    /// It does not belong into a text.
    Unsaid,
}

fn said(keyword: &str, value: &Value) -> Said {
    match keyword {
        "$schema" | "$id" | "$comment" | "$anchor" => Said::Nothing,
        // Beside an open object, that it is open.
        "additionalProperties" if *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty) => {
            Said::Nothing
        }
        // Whether further members are allowed, an LLM that keeps to those described need not know.
        "additionalProperties" if *value == Value::Bool(false) => Said::Unsaid,
        "title" | "examples" | "description" | "properties" | "items" => Said::Unsaid,
        _ => Said::Text(match value {
            Value::String(text) => format!("{keyword}: {text}"),
            other => format!("{keyword}: {other}"),
        }),
    }
}

/// Adds to the description.
pub(super) fn describe(members: &mut Map<String, Value>, text: &str) {
    let before = members.get("description").and_then(Value::as_str).filter(|before| !before.is_empty());
    let all = before.map_or_else(|| text.to_owned(), |before| format!("{before} ({text})"));
    members.insert("description".into(), all.into());
}

fn tell(log: &mut Log, keywords: &BTreeSet<String>, target: &str, what: &str) {
    if keywords.is_empty() {
        return;
    }
    let shown = keywords.iter().take(12).map(|keyword| format!("`{}`", keyword.chars().take(40).collect::<String>()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let further = if keywords.len() > 12 { format!(" and {} others", keywords.len() - 12) } else { String::new() };
    log.lossy("", format!("for `{target}` {shown}{further} was {what}: it does not know these keywords"), "");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_is_said_where_it_fits() {
        let vocabulary = Vocabulary {
            target: "t",
            at_root: &["type", "properties"],
            elsewhere: &["type", "description"],
            takes: |_, _| true,
        };
        let mut schema = json!({"type": "object", "title": "T", "$comment": "c", "properties": {
            "pattern": {"pattern": "^a$", "type": "string", "description": "An a", "default": "a"},
            "b": {"minimum": 1, "enum": ["x".repeat(300)]}}});
        let mut log = Log::default();
        keep(&mut schema, &mut log, &vocabulary).unwrap();
        let expected = json!({"type": "object", "properties": {
            "pattern": {"type": "string", "description": "An a (pattern: ^a$) (default: a)"},
            "b": {"description": "minimum: 1"}}});
        assert_eq!(schema.to_string(), expected.to_string());
        let told: Vec<_> = log.notes.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("`default`, `minimum`, `pattern` was said"), "{}", told[0]);
        assert!(told[1].contains("`enum`, `title` was left out"), "{}", told[1]);
    }
}
