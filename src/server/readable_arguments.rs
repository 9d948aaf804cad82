//! The arguments of a call, as a person reads them who decides about it.

use crate::json::layout::indented;
use crate::model::JsonText;

/// The most bytes of a character.
const CHARACTER_BYTES: usize = 4;

/// The arguments of a call, for a person that decides about it.
#[derive(Debug)]
pub(in crate::server) struct ReadableArguments {
    /// With line ends and indents between their parts, and otherwise as they will be sent; cut
    /// where they are not whole.
    pub(in crate::server) text: String,
    /// Whether they have no more characters than are shown. A call of which less is shown must not
    /// be approved there.
    pub(in crate::server) is_whole: bool,
}

impl ReadableArguments {
    /// The arguments where at most so many characters are shown.
    pub(in crate::server) fn new(arguments: &JsonText, most_characters: usize) -> Self {
        // What has more bytes than these has more characters than are shown.
        let text = indented(arguments.get(), CHARACTER_BYTES * most_characters);
        let is_whole = text.chars().nth(most_characters).is_none();
        Self { text, is_whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_whole_as_long_as_they_have_no_more_characters_than_are_shown() {
        let arguments = JsonText::parse(r#"{"å":1}"#).unwrap();
        let shown = ReadableArguments::new(&arguments, 12);
        assert_eq!(shown.text, "{\n  \"å\": 1\n}");
        assert!(shown.is_whole);
        assert!(!ReadableArguments::new(&arguments, 11).is_whole);
    }
}
