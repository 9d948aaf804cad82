//! Cutting texts that others chose the length of.

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
    let mut writer = Limited { text: String::new(), most };
    // The writer fails where there is no more room.
    let is_cut = write!(writer, "{shown}").is_err();
    Truncated { text: writer.text, is_cut }
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
        let end = (0..=room).rev().find(|at| part.is_char_boundary(*at)).unwrap_or_default();
        self.text.push_str(&part[..end]);
        Err(fmt::Error)
    }
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
    fn a_text_is_cut_between_two_characters() {
        let cut = |most| {
            let Truncated { text, is_cut } = truncate_at_char_boundary("åbc", most);
            (text, is_cut)
        };
        assert_eq!(cut(4), ("åbc".to_owned(), false));
        assert_eq!(cut(3), ("åb".to_owned(), true));
        assert_eq!(cut(2), ("å".to_owned(), true));
        assert_eq!([cut(1), cut(0)], [(String::new(), true), (String::new(), true)]);
    }

    #[test]
    fn what_does_not_fit_is_never_written() {
        let Truncated { text, is_cut } = truncate_at_char_boundary(format_args!("{Endless}{Endless}"), 7);
        assert_eq!(text.as_str(), "ö/ö/");
        assert!(is_cut);
    }
}
