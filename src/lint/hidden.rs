//! Finds characters that people do not see and models read: they can hide instructions.

use crate::model::text::is_invisible;

/// The characters of a text that show nothing by themselves.
pub(super) fn characters(text: &str) -> Vec<char> {
    let mut before = '\0';
    let is_found = |c: &char| {
        let is_found = is_hidden(*c, before);
        before = *c;
        is_found
    };
    text.chars().filter(is_found).collect()
}

/// Whether a character shows nothing by itself, where the one before it does not need it.
fn is_hidden(c: char, before: char) -> bool {
    match c {
        '\r' => false,
        // Both join parts of an emoji or of scripts that need it. One behind the other joins none.
        '\u{200c}' | '\u{200d}' => before.is_ascii() || matches!(before, '\u{200b}'..='\u{200d}'),
        // A letter of Mongolian has one of these forms.
        '\u{180b}'..='\u{180d}' => before.is_ascii(),
        '\u{fe0e}' | '\u{fe0f}' => {
            before.is_ascii_alphabetic() || matches!(before, ' ' | '\u{fe0e}' | '\u{fe0f}')
        }
        // An empty pattern of Braille is a blank in drawings of dots.
        '\u{2800}' => before.is_ascii_alphabetic(),
        c => is_invisible(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_and_line_breaks_are_no_hidden_characters() {
        for plain in [
            "two\nlines\t",
            "warning \u{26a0}\u{fe0f}",
            "\u{1f469}\u{200d}\u{1f4bb}",
            "\u{645}\u{6cc}\u{200c}\u{62e}",
        ] {
            assert!(characters(plain).is_empty(), "{plain:?}");
        }
        for text in [
            "a\u{200b}b",
            "x\u{202e}y",
            "\u{e0041}",
            "bell\u{7}",
            "a\u{200d}b",
            "\u{feff}a",
            "s\u{fe0f}",
            "a\u{3164}",
            "\u{1f469}\u{200d}\u{200c}\u{200d}",
            "\u{26a0}\u{fe0f}\u{fe0e}\u{fe0f}",
        ] {
            assert!(!characters(text).is_empty(), "{text:?}");
        }
    }
}
