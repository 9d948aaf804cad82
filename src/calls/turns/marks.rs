//! The members of a body, by which each vendor tells its own from those of others.
//!
//! No vendor is named here: what its bodies look like stands in its file.

use crate::json::members::{MemberTexts, each_item};

/// The members of a body, of a message or of one block in it, as they were written.
#[derive(Debug, Default)]
pub struct BodyMarks<'a>(MemberTexts<'a>);

impl<'a> BodyMarks<'a> {
    /// Takes an object apart.
    pub(super) fn parse(body: &'a str) -> Result<Self, serde_json::Error> {
        MemberTexts::parse(body).map(Self)
    }

    /// Whether it has a member that is not `null`.
    pub fn has(&self, name: &str) -> bool {
        self.written(name).is_some()
    }

    /// Whether the text of a member begins with this letter: `{` for an object, `[` for a list.
    pub fn begins(&self, name: &str, letter: char) -> bool {
        self.written(name)
            .is_some_and(|written| written.starts_with(letter))
    }

    /// A member that is a short text without escapes; empty if it is something else.
    pub fn text(&self, name: &str) -> &'a str {
        self.written(name)
            .map_or("", |written| written.trim_matches('"'))
    }

    /// The blocks of its `content`; `None` if that is no list of objects.
    pub fn blocks(&self) -> Option<Vec<BodyMarks<'a>>> {
        let mut blocks = Vec::new();
        let visit = |_, item: &'a serde_json::value::RawValue| blocks.push(Self::parse(item.get()));
        each_item(self.written("content")?, visit).ok()?;
        blocks.into_iter().collect::<Result<_, _>>().ok()
    }

    fn written(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).filter(|written| *written != "null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_seen_by_their_text() {
        let body = r#"{"a":{"b":1},"kind":"x","no":null,"content":[{"type":"text"},{}]}"#;
        let marks = BodyMarks::parse(body).unwrap();
        assert!(marks.has("a") && marks.begins("a", '{') && !marks.begins("a", '['));
        assert!(!marks.has("no"));
        assert_eq!(marks.text("kind"), "x");
        assert_eq!(marks.text("missing"), "");
        let blocks = marks.blocks().unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].text("type"), "text");
        for other in [r#"{"content":[1]}"#, r#"{"content":"x"}"#, "{}"] {
            assert!(
                BodyMarks::parse(other).unwrap().blocks().is_none(),
                "{other}"
            );
        }
    }
}
