//! Only the keywords that a target knows; the others are said in the description where they fit.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::walk::{Role, each_object};
use super::{Context, TransformError};
use crate::model::text::truncate_at_char_boundary;

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

/// Removes what the target does not support; one note for what moved into descriptions, one for
/// what is lost.
pub fn keep(
    schema: &mut Value,
    context: &mut Context,
    vocabulary: &Vocabulary,
) -> Result<(), TransformError> {
    let mut folded = BTreeSet::new();
    let mut lost = BTreeSet::new();
    each_object(schema, |members, place| {
        let known = if place.role == Role::Root {
            vocabulary.at_root
        } else {
            vocabulary.elsewhere
        };
        let describes = known.contains(&"description");
        let before = members.len();
        let mut texts = Vec::new();
        members.retain(|keyword, value| {
            if known.contains(&keyword.as_str()) && (vocabulary.takes)(keyword, value) {
                return true;
            }
            match text_of(keyword, value) {
                KeywordText::Nothing => {}
                KeywordText::Text(text) if describes => {
                    texts.push(text);
                    folded.insert(keyword.clone());
                }
                _ => drop(lost.insert(keyword.clone())),
            }
            false
        });
        if members.len() < before {
            context.silent();
        }
        describe(members, &texts, context)
    })?;
    note_keywords(
        context,
        &folded,
        vocabulary.target,
        "moved into the description",
    );
    note_keywords(context, &lost, vocabulary.target, "left out");
    Ok(())
}

enum KeywordText {
    /// It has no meaning for an LLM.
    Nothing,
    /// No more characters than fit.
    Text(String),
    /// It does not belong into a text, or is too long for one.
    Unsaid,
}

fn text_of(keyword: &str, value: &Value) -> KeywordText {
    match keyword {
        "$schema" | "$id" | "$comment" | "$anchor" => KeywordText::Nothing,
        // Beside an open object, that it is open.
        "additionalProperties"
            if *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty) =>
        {
            KeywordText::Nothing
        }
        // Whether further members are allowed, an LLM that keeps to those described need not know.
        "additionalProperties" if *value == Value::Bool(false) => KeywordText::Unsaid,
        "title" | "examples" | "description" | "properties" | "items" => KeywordText::Unsaid,
        _ => {
            // No text of so many characters has more bytes.
            let most = FITS * char::MAX.len_utf8();
            let cut = match value {
                Value::String(text) => {
                    truncate_at_char_boundary(format_args!("{keyword}: {text}"), most)
                }
                other => truncate_at_char_boundary(format_args!("{keyword}: {other}"), most),
            };
            let fits = !cut.is_cut && cut.text.chars().count() <= FITS;
            if fits {
                KeywordText::Text(cut.text)
            } else {
                KeywordText::Unsaid
            }
        }
    }
}

/// Adds texts to the description, each in brackets behind what is there.
pub(super) fn describe(
    members: &mut Map<String, Value>,
    texts: &[String],
    context: &mut Context,
) -> Result<(), TransformError> {
    if texts.is_empty() {
        return Ok(());
    }
    context
        .budget
        .write(texts.iter().map(|text| text.len() + " ()".len()).sum())?;
    let before = match members.get_mut("description") {
        Some(Value::String(text)) => std::mem::take(text),
        _ => String::new(),
    };
    let all = texts.iter().fold(before, |mut all, text| {
        let parts = if all.is_empty() {
            ["", text, ""]
        } else {
            [" (", text, ")"]
        };
        all.extend(parts);
        all
    });
    members.insert("description".into(), all.into());
    Ok(())
}

fn note_keywords(context: &mut Context, keywords: &BTreeSet<String>, target: &str, what: &str) {
    if keywords.is_empty() {
        return;
    }
    let shown = keywords
        .iter()
        .take(12)
        .map(|keyword| format!("`{}`", truncate_at_char_boundary(keyword, 40).text));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let further = if keywords.len() > 12 {
        format!(" and {} others", keywords.len() - 12)
    } else {
        String::new()
    };
    context.lossy(
        "",
        format_args!("`{target}` does not support {shown}{further}: {what}"),
        "",
    );
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
        let mut context = Context::for_schema(&schema);
        keep(&mut schema, &mut context, &vocabulary).unwrap();
        let expected = json!({"type": "object", "properties": {
            "pattern": {"type": "string", "description": "An a (pattern: ^a$) (default: a)"},
            "b": {"description": "minimum: 1"}}});
        assert_eq!(schema.to_string(), expected.to_string());
        let notes = context.finish().0;
        let messages: Vec<_> = notes.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(messages.len(), 2);
        assert!(
            messages[0].contains("`default`, `minimum`, `pattern`: moved into the description"),
            "{}",
            messages[0]
        );
        assert!(
            messages[1].contains("`enum`, `title`: left out"),
            "{}",
            messages[1]
        );
    }

    #[test]
    fn a_text_of_exactly_the_limit_fits() {
        let at_root = &["type", "description"];
        let vocabulary = Vocabulary {
            target: "t",
            at_root,
            elsewhere: &[],
            takes: |_, _| true,
        };
        let described = |length: usize| {
            let mut schema =
                json!({"type": "string", "pattern": "\u{e4}".repeat(length - "pattern: ".len())});
            let mut context = Context::for_schema(&schema);
            keep(&mut schema, &mut context, &vocabulary).unwrap();
            context.finish().0[0]
                .message
                .contains("moved into the description")
        };
        assert!(described(FITS));
        assert!(!described(FITS + 1));
    }
}
