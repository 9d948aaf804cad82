//! The last lines that a process wrote on standard error, for people.
//!
//! Everything is read and most of it forgotten: a process waits only where it floods, and a flood
//! costs no memory. It is never taken for a sign that something is wrong.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::AsyncRead;

use super::lines::{LineReader, RawLine};
use crate::model::Secret;
use crate::runtime::{Clock, Stop};
use crate::transports::Mask;

/// Lines that are kept.
const LINES: usize = 100;

/// Characters of a line that are kept.
const CHARACTERS: usize = 500;

/// Bytes of a line that are read; enough that the kept characters and a secret behind them fit.
const BYTES: usize = 8 * 1024;

/// Bytes of the shortest value of the environment that is masked in lines. A shorter one, such as
/// `1` or `on`, protects no secret, and the text would be unreadable.
pub(super) const SHORTEST_IN_LINES: usize = 4;

/// The last lines on standard error. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    /// The kept lines, the oldest first: at most 100, each of at most 500 characters, with the
    /// values of the process's environment masked.
    pub fn lines(&self) -> Vec<String> {
        self.kept().iter().cloned().collect()
    }

    /// The last few lines, the oldest first.
    pub(crate) fn last(&self, count: usize) -> Vec<String> {
        let kept = self.kept();
        kept.iter()
            .skip(kept.len().saturating_sub(count))
            .cloned()
            .collect()
    }

    /// The error of a Python program: the line after its last traceback. The lines before it show
    /// places in the program.
    pub(super) fn raised(&self) -> Option<String> {
        let kept = self.kept();
        let traced = kept
            .iter()
            .rposition(|line| line.starts_with("Traceback (most recent call last)"))?;
        kept.iter()
            .skip(traced + 1)
            .find(|line| !line.starts_with(' '))
            .cloned()
    }

    fn keep(&self, line: String) {
        let mut kept = self.kept();
        if kept.len() == LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    fn kept(&self) -> parking_lot::MutexGuard<'_, VecDeque<String>> {
        self.0.lock()
    }
}

/// Reads standard error until it ends or `cut`.
pub(super) async fn read_stderr<R: AsyncRead + Unpin>(
    output: R,
    tail: StderrTail,
    mask: Mask,
    cut: Stop,
    clock: Clock,
) {
    let mut lines = LineReader::new(output, BYTES, cut, clock);
    while let Some(raw) = lines.next().await {
        let line = shown_line(&mask, &raw);
        // Python underlines the place of an error so.
        let is_underline = line.bytes().all(|byte| matches!(byte, b' ' | b'~' | b'^'));
        if !is_underline {
            tail.keep(line);
        }
    }
}

/// Masks these values of an environment, if they have so many bytes; of a value with several lines
/// each of them.
pub(super) fn environment_mask<'a>(
    values: impl Iterator<Item = &'a Secret>,
    shortest: usize,
) -> Mask {
    let lines = values
        .flat_map(|value| value.expose().lines())
        .map(|line| line.trim().as_bytes());
    Mask::new(lines, shortest)
}

/// A line as it is kept: printable, masked and cut.
fn shown_line(mask: &Mask, raw: &RawLine) -> String {
    // Where the reading stopped, a part of a value may stand.
    let unsure = if raw.is_cut { mask.longest() } else { 0 };
    let sure = raw.bytes.len().saturating_sub(unsure);
    let masked = mask.text(printable(&String::from_utf8_lossy(&raw.bytes[..sure])));
    match masked.char_indices().nth(CHARACTERS) {
        Some((end, _)) => masked[..end].to_owned(),
        None => masked,
    }
}

/// The text without control characters and the sequences that colour a terminal.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' if letters.next_if_eq(&'[').is_some() => {
                while letters
                    .next()
                    .is_some_and(|letter| !('@'..='~').contains(&letter))
                {}
            }
            '\t' => shown.push(' '),
            _ if letter.is_control() => {}
            _ => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(secrets: &[&str], text: &str, is_cut: bool) -> String {
        let secrets: Vec<_> = secrets.iter().map(|secret| Secret::new(*secret)).collect();
        shown_line(
            &environment_mask(secrets.iter(), SHORTEST_IN_LINES),
            &RawLine {
                bytes: text.as_bytes().to_vec(),
                is_cut,
            },
        )
    }

    #[test]
    fn values_of_the_environment_are_masked() {
        assert_eq!(
            masked(
                &["topsecret", "topsecret-topsecret", "1"],
                "1: topsecret-topsecret, topsecret\r",
                false
            ),
            "1: ***, ***"
        );
        assert_eq!(
            masked(&["-----\nabcdef\nghijkl\n"], "key abcdef ghijkl", false),
            "key *** ***"
        );
        // A secret that is interrupted by colours, or at which the reading stopped.
        assert_eq!(
            masked(&["topsecret"], "\x1b[31mtop\x1b[0msecret\x07\tx", false),
            "*** x"
        );
        assert_eq!(masked(&["a-long-secret"], "token: a-long-se", true), "tok");
    }

    #[test]
    fn a_line_is_cut_after_it_was_masked() {
        let line = format!("{}topsecret-topsecret", "ö".repeat(CHARACTERS - 2));
        assert_eq!(
            masked(&["topsecret-topsecret"], &line, false),
            format!("{}**", "ö".repeat(CHARACTERS - 2))
        );
    }

    #[test]
    fn the_last_lines_are_kept() {
        let tail = StderrTail::default();
        (0..LINES + 5).for_each(|line| tail.keep(line.to_string()));
        assert_eq!(tail.lines().len(), LINES);
        assert_eq!(tail.lines()[0].as_str(), "5");
        assert_eq!(tail.last(2), ["103", "104"]);
    }
}
