//! Finds characters that people do not see and models read: they can hide instructions.

use super::rule_context::RuleContext;
use crate::json::value::Json;
use crate::model::{FindingCode, Tool};

/// Checks every text of a tool that a model is shown. `schema` is the member with its parameters.
pub(super) fn tool(place: &mut RuleContext<'_>, tool: &Tool, schema: &str) {
    place.within("name", |place| text(place, &tool.name));
    place.within("description", |place| text(place, &tool.description));
    if let Some(parameters) = Json::parse(tool.parameters.get()) {
        place.within(schema, |place| value(place, &parameters));
    }
}

fn value(place: &mut RuleContext<'_>, json: &Json<'_>) {
    match json {
        Json::Text(written) => text(place, written),
        Json::List(items) => {
            for (index, item) in items.iter().enumerate() {
                place.at(index, |place| value(place, item));
            }
        }
        Json::Object(members) => {
            for (name, member) in members {
                place.within(name, |place| {
                    text(place, name);
                    value(place, member);
                });
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn text(place: &mut RuleContext<'_>, text: &str) {
    let mut before = '\0';
    let found: Vec<char> = text
        .chars()
        .filter(|&c| {
            let is_found = is_hidden(c, before);
            before = c;
            is_found
        })
        .collect();
    if let Some(first) = found.first() {
        let code = u32::from(*first);
        let message = format!("it has {} hidden characters, the first is U+{code:04X}", found.len());
        place.report(
            FindingCode::HiddenCharacters,
            message,
            "take them out: people do not see them, and models read them",
        );
    }
}

/// Whether a character shows nothing by itself, where the one before it does not need it.
fn is_hidden(c: char, before: char) -> bool {
    match c {
        '\n' | '\r' | '\t' => false,
        // Both join parts of an emoji or of scripts that need it.
        '\u{200c}' | '\u{200d}' => before.is_ascii(),
        '\u{fe0e}' | '\u{fe0f}' => before.is_ascii_alphabetic() || before == ' ',
        '\u{ad}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_and_line_breaks_are_no_hidden_characters() {
        let hidden = |text: &str| {
            let mut before = '\0';
            text.chars().any(|c| is_hidden(c, std::mem::replace(&mut before, c)))
        };
        for plain in
            ["two\nlines\t", "warning \u{26a0}\u{fe0f}", "\u{1f469}\u{200d}\u{1f4bb}", "\u{645}\u{6cc}\u{200c}\u{62e}"]
        {
            assert!(!hidden(plain), "{plain:?}");
        }
        for text in ["a\u{200b}b", "x\u{202e}y", "\u{e0041}", "bell\u{7}", "a\u{200d}b", "\u{feff}a", "s\u{fe0f}"] {
            assert!(hidden(text), "{text:?}");
        }
    }
}
