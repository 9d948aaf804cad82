//! Foreign texts in messages.

/// `text` without control characters, which a folder's name may hold and a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}
