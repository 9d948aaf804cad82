//! What to do next, apart from what is wrong.

use std::borrow::Cow;
use std::fmt;

/// An error whose text ends with what to do next, where it knows that. Faces with a place of their
/// own for the next step need not read the text for it.
pub trait WithNextStep: fmt::Display {
    /// What to do next: the end of the text. `None` if the text has no such end.
    fn next_step(&self) -> Option<Cow<'static, str>>;

    /// What is wrong: the text without the next step.
    fn what_is_wrong(&self) -> String {
        let text = self.to_string();
        match self.next_step() {
            Some(next) => before_next_step(&text, &next).to_owned(),
            None => text,
        }
    }
}

/// A text without the next step that it ends with, and without the mark between them.
pub(crate) fn before_next_step<'a>(text: &'a str, next: &str) -> &'a str {
    let before = text.strip_suffix(next);
    before.map_or(text, |before| before.trim_end_matches([';', ':', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart_at_its_own_next_step_only() {
        for (text, next, before) in [
            (
                "no tool is called `a; b`; try `c`",
                "try `c`",
                "no tool is called `a; b`",
            ),
            (
                "`a` cannot be; it is late: use `b`",
                "use `b`",
                "`a` cannot be; it is late",
            ),
            (
                "it is late; a tool goes on",
                "try again",
                "it is late; a tool goes on",
            ),
        ] {
            assert_eq!(before_next_step(text, next), before);
        }
    }
}
