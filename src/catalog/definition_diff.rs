//! What differs between two definitions of a tool, member by member, for people.
//!
//! Pure. Texts are compared by words: what is equal at their beginnings and ends is left out but
//! for a few words, so that the change is seen in a long text. Everything is bounded.

use serde_json::Value;

use crate::model::finding::{near, push_step};
use crate::model::text::{Truncated, truncate_at_char_boundary};
use crate::model::{DefinitionVersion, Tool, ToolId};

/// Parts that differ and are listed; the rest are counted.
const LISTED_PARTS_MAX: usize = 20;
/// Bytes of a value that are shown.
const VALUE_BYTES_MAX: usize = 400;
/// Words that are shown on each side of what differs in a text.
const CONTEXT_WORDS: usize = 5;

/// A tool whose definition is another one.
#[derive(Debug, Clone)]
pub struct ChangedDefinition {
    /// Which tool.
    pub id: ToolId,
    /// The version before.
    pub from: DefinitionVersion,
    /// The version now.
    pub to: DefinitionVersion,
    /// What differs.
    pub difference: DefinitionDifference,
}

/// What differs between two definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefinitionDifference {
    /// The parts that differ, the first of them.
    pub parts: Vec<ChangedPart>,
    /// How many more differ.
    pub more: usize,
}

/// A part of a definition that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPart {
    /// Where it is, as a JSON pointer into the tool as callsheet lists it; instead of a long one,
    /// that of the nearest place around it.
    pub pointer: String,
    /// What it was, as far as it differs; `None` if it is new.
    pub before: Option<String>,
    /// What it is now; `None` if it is gone.
    pub after: Option<String>,
}

impl ChangedDefinition {
    /// The change from one definition of a tool to another; `None` if both say the same.
    pub(crate) fn between(id: &ToolId, old: &Tool, new: &Tool) -> Option<Self> {
        let from = old.version();
        let to = new.version();
        (from != to).then(|| Self {
            id: id.clone(),
            from,
            to,
            difference: DefinitionDifference::between(old, new),
        })
    }
}

impl DefinitionDifference {
    /// What differs between two definitions of one tool.
    pub fn between(old: &Tool, new: &Tool) -> Self {
        Self::between_documents(&old.definition_document(), &new.definition_document())
    }

    /// What differs between two documents.
    pub(super) fn between_documents(old: &Value, new: &Value) -> Self {
        let mut found = Self::default();
        found.values("", old, new);
        found
    }

    fn values(&mut self, pointer: &str, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Object(was), Value::Object(is)) => {
                for (name, before) in was {
                    self.pair(pointer, name, Some(before), is.get(name));
                }
                for (name, after) in is.iter().filter(|(name, _)| !was.contains_key(*name)) {
                    self.pair(pointer, name, None, Some(after));
                }
            }
            (Value::String(was), Value::String(is)) if was != is => {
                let [before, after] = differing_words(was, is);
                self.push(pointer, Some(before), Some(after));
            }
            (was, is) if was != is => self.push(pointer, Some(shown(was)), Some(shown(is))),
            _ => {}
        }
    }

    fn pair(&mut self, pointer: &str, name: &str, old: Option<&Value>, new: Option<&Value>) {
        let mut pointer = pointer.to_owned();
        push_step(&mut pointer, name);
        match (old, new) {
            (Some(old), Some(new)) => self.values(&pointer, old, new),
            _ => self.push(&pointer, old.map(shown), new.map(shown)),
        }
    }

    fn push(&mut self, pointer: &str, before: Option<String>, after: Option<String>) {
        if self.parts.len() < LISTED_PARTS_MAX {
            self.parts.push(ChangedPart {
                pointer: near(pointer).to_owned(),
                before,
                after,
            });
        } else {
            self.more += 1;
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => bounded(text),
        other => bounded(&other.to_string()),
    }
}

/// The beginning of a text, with a mark where it goes on.
fn bounded(text: &str) -> String {
    let Truncated { text, is_cut } = truncate_at_char_boundary(text, VALUE_BYTES_MAX);
    if is_cut { text + "..." } else { text }
}

/// The words in which two texts differ, with a few words around them.
fn differing_words(old: &str, new: &str) -> [String; 2] {
    let was: Vec<&str> = old.split_inclusive(char::is_whitespace).collect();
    let is: Vec<&str> = new.split_inclusive(char::is_whitespace).collect();
    let start = was
        .iter()
        .zip(&is)
        .take_while(|(was, is)| was == is)
        .count();
    let most = was.len().min(is.len()) - start;
    let end = was
        .iter()
        .rev()
        .zip(is.iter().rev())
        .take(most)
        .take_while(|(was, is)| was == is)
        .count();
    [was, is].map(|words| {
        let from = start.saturating_sub(CONTEXT_WORDS);
        let to = (words.len() - end + CONTEXT_WORDS).min(words.len());
        let before = if from > 0 { "... " } else { "" };
        let after = if to < words.len() { "..." } else { "" };
        bounded(&format!("{before}{}{after}", words[from..to].concat()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_shows_where_it_differs() {
        let old = "one two three four five six seven eight nine ten eleven twelve";
        let [before, after] = differing_words(old, &old.replace("seven", "SEVEN and more"));
        assert_eq!(
            before,
            "... two three four five six seven eight nine ten eleven twelve"
        );
        assert_eq!(
            after,
            "... two three four five six SEVEN and more eight nine ten eleven twelve"
        );
        assert_eq!(differing_words("a b", "a b c"), ["a b", "a b c"]);
        assert_eq!(differing_words("", "new"), ["", "new"]);
        assert_eq!(differing_words("x x x", "x x"), ["x x x", "x x"]);
    }
}
