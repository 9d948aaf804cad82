//! The beginning of a text that may be long.

use std::fmt::{self, Display, Write};

/// The first characters of a text. What comes behind them is not written at all, however long it
/// would be.
pub(in crate::formats) fn beginning(text: impl Display, most: usize) -> String {
    let mut beginning = Beginning { text: String::new(), left: most };
    // It fails where enough is written.
    let _ = write!(beginning, "{text}");
    beginning.text
}

struct Beginning {
    text: String,
    left: usize,
}

impl Write for Beginning {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let Some((end, _)) = part.char_indices().nth(self.left) else {
            self.left -= part.chars().count();
            self.text.push_str(part);
            return Ok(());
        };
        self.left = 0;
        self.text.push_str(&part[..end]);
        Err(fmt::Error)
    }
}
