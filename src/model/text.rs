//! Texts of others: cutting them where they are long, and the characters in them that cannot be
//! seen. Bytes as hexadecimal digits, and numbers of bytes for people.

use std::fmt::{self, Display, Write};

/// The beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Truncated {
    /// The text, or its beginning.
    pub(crate) text: String,
    /// Whether there is more of it.
    pub(crate) is_cut: bool,
}

/// The first bytes of a displayed text, at most `most`, cut between two characters. What comes
/// behind them is not written at all, however long it would be.
pub(crate) fn truncate_at_char_boundary(shown: impl Display, most: usize) -> Truncated {
    let mut writer = Limited {
        text: String::new(),
        most,
    };
    // The writer fails where there is no more room.
    let is_cut = write!(writer, "{shown}").is_err();
    Truncated {
        text: writer.text,
        is_cut,
    }
}

/// The first bytes of a text, at most `most`, cut between two characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)])
        .collect()
}

/// A number of bytes with one unit: `812 kB`, `48.3 MB`, `2.1 GB`.
pub(crate) fn byte_count(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB")];
    for (size, unit) in units {
        if bytes >= size {
            let tenths = bytes / (size / 10);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{} kB", bytes.div_ceil(1_000))
}

/// Takes `most` bytes, and then fails.
struct Limited {
    text: String,
    most: usize,
}

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.most - self.text.len();
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        self.text.push_str(beginning(part, room));
        Err(fmt::Error)
    }
}

/// Whether a character cannot be seen, or changes how the text around it is shown: controls other
/// than a line end and a tab, marks of direction, fillers, joiners and selectors (Unicode's
/// `Default_Ignorable_Code_Point`, and blanks that are no white space).
pub(crate) fn is_invisible(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A foreign text in which each invisible character is shown by its number, for texts that a person
/// decides about.
pub(crate) fn marked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) || matches!(c, '\n' | '\t') {
            // Writing to a text cannot fail.
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that is longer than any memory.
    struct Endless;

    impl Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("ö/")?;
            }
        }
    }

    #[test]
    fn what_cannot_be_seen_is_known_and_letters_blanks_and_pictures_are_seen() {
        for c in "\u{7}\u{ad}\u{34f}\u{3164}\u{115f}\u{2800}\u{200d}\u{202e}\u{fe0f}\u{ffa0}\u{e0101}\u{2069}\u{feff}"
            .chars()
        {
            assert!(is_invisible(c), "U+{:04X}", u32::from(c));
        }
        for c in "a ö漢\n\t👍\u{301}\u{a0}".chars() {
            assert!(!is_invisible(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn what_cannot_be_seen_is_shown_by_its_number() {
        assert_eq!(
            marked("/safe\u{3164}\u{202e}x\ty"),
            "/safe<U+3164><U+202E>x<U+0009>y"
        );
    }

    #[test]
    fn a_text_is_cut_between_two_characters() {
        let cut = |most| {
            let Truncated { text, is_cut } = truncate_at_char_boundary("åbc", most);
            (text, is_cut)
        };
        assert_eq!(cut(4), ("åbc".to_owned(), false));
        assert_eq!(cut(3), ("åb".to_owned(), true));
        assert_eq!(cut(2), ("å".to_owned(), true));
        assert_eq!(
            [cut(1), cut(0)],
            [(String::new(), true), (String::new(), true)]
        );
    }

    #[test]
    fn what_does_not_fit_is_never_written() {
        let Truncated { text, is_cut } =
            truncate_at_char_boundary(format_args!("{Endless}{Endless}"), 7);
        assert_eq!(text.as_str(), "ö/ö/");
        assert!(is_cut);
    }
}
