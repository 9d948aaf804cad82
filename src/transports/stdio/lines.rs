//! Takes the output of a process apart into lines of limited length.

use std::mem::take;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use super::ProcessFault;
use super::pace::ReadingPace;
use crate::runtime::{Clock, Stop};

/// The longest line that is taken, in bytes.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// A line that goes on for so many bytes beyond [`MAX_LINE`] counts as one without an end: reading
/// on would cost a processor.
const MOST_SKIPPED: usize = 240 * 1024 * 1024;

/// Bytes read at once.
const CHUNK: usize = 16 * 1024;

/// Lines that wait to be taken. Each may have [`MAX_LINE`] bytes, so they are few.
pub(super) const WAITING: usize = 4;

/// A line above this size gives back what its buffer has too much.
const LARGE: usize = 64 * 1024;

/// One line that a process wrote, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildLine {
    /// A line of text. It is never empty.
    Text(String),
    /// A line that is not UTF-8, with replacement characters; no message.
    NotText(String),
    /// A line of more than [`MAX_LINE`] bytes; none of it is kept, and its rest is skipped.
    TooLong,
}

/// One line as bytes.
pub(super) struct RawLine {
    pub(super) bytes: Vec<u8>,
    /// Whether it is longer; its rest is skipped.
    pub(super) is_cut: bool,
}

/// Takes chunks apart into lines. It never holds more than one line of `limit` bytes.
pub(super) struct LineSplitter {
    line: Vec<u8>,
    limit: usize,
    /// Whether everything up to the next line break is skipped.
    skips: bool,
    /// How much of the present line was skipped, in bytes.
    skipped: usize,
}

impl LineSplitter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            limit,
            skips: false,
            skipped: 0,
        }
    }

    /// The next line of a chunk, whose beginning is used up by that. A line that is too long is
    /// given as soon as that is known.
    pub(super) fn next(&mut self, chunk: &mut &[u8]) -> Option<RawLine> {
        while !chunk.is_empty() {
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            *chunk = &chunk[end.map_or(chunk.len(), |end| end + 1)..];
            if self.skips {
                self.skips = end.is_none();
                self.skipped += part.len();
                continue;
            }
            let room = self.limit - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.len() > room {
                self.skips = end.is_none();
                self.skipped = part.len() - room;
                return Some(RawLine {
                    bytes: take(&mut self.line),
                    is_cut: true,
                });
            }
            if end.is_some() {
                return Some(RawLine {
                    bytes: take(&mut self.line),
                    is_cut: false,
                });
            }
        }
        None
    }

    /// What stands behind the last line break, when the output has ended.
    pub(super) fn rest(&mut self) -> Option<RawLine> {
        (!self.line.is_empty()).then(|| RawLine {
            bytes: take(&mut self.line),
            is_cut: false,
        })
    }
}

/// Reads lines until the output ends or is cut off.
pub(super) struct LineReader<R> {
    output: R,
    splitter: LineSplitter,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not taken apart yet.
    unread: std::ops::Range<usize>,
    /// A line of which more is skipped ends the reading.
    most_skipped: usize,
    pace: ReadingPace,
    cut: Stop,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(output: R, limit: usize, cut: Stop, clock: Clock) -> Self {
        Self {
            output,
            splitter: LineSplitter::new(limit),
            buffer: vec![0; CHUNK],
            unread: 0..0,
            most_skipped: usize::MAX,
            pace: ReadingPace::new(clock),
            cut,
        }
    }

    /// Whether the present line has no end, as far as is known.
    fn is_endless(&self) -> bool {
        self.splitter.skips && self.splitter.skipped > self.most_skipped
    }

    /// The next line; `None` at the end, and within a line that is endless.
    pub(super) async fn next(&mut self) -> Option<RawLine> {
        loop {
            let mut chunk = &self.buffer[self.unread.clone()];
            let line = self.splitter.next(&mut chunk);
            self.unread.start = self.unread.end - chunk.len();
            if line.is_some() || self.is_endless() {
                self.pace.count_line();
                return line;
            }
            let paced = async {
                self.pace.wait().await;
                self.output.read(&mut self.buffer).await
            };
            let read = tokio::select! {
                biased;
                read = paced => read,
                () = self.cut.wait() => return self.splitter.rest(),
            };
            let Ok(length @ 1..) = read else {
                return self.splitter.rest();
            };
            self.pace.count_bytes(length);
            self.unread = 0..length;
        }
    }
}

/// Reads standard output until it ends or `cut`. When no receiver is left, it goes on reading, so
/// that the process can write its last words and end. A process that writes a line without an end
/// is stopped.
pub(super) async fn read_stdout<R: AsyncRead + Unpin>(
    output: R,
    out: mpsc::Sender<ChildLine>,
    fault: ProcessFault,
    cut: Stop,
    clock: Clock,
) {
    let mut lines = LineReader::new(output, MAX_LINE, cut, clock);
    lines.most_skipped = MOST_SKIPPED;
    while let Some(raw) = lines.next().await {
        if let Some(line) = line_of(raw) {
            let _ = out.send(line).await;
        }
    }
    if lines.is_endless() {
        let most = (MAX_LINE + MOST_SKIPPED) / (1024 * 1024);
        fault.stop_because(format!("it wrote a line of more than {most} MiB"));
    }
}

fn line_of(raw: RawLine) -> Option<ChildLine> {
    if raw.is_cut {
        return Some(ChildLine::TooLong);
    }
    let mut bytes = raw.bytes;
    bytes.pop_if(|last| *last == b'\r');
    if bytes.len() > LARGE {
        bytes.shrink_to_fit();
    }
    let line = match String::from_utf8(bytes) {
        Ok(text) => ChildLine::Text(text),
        Err(error) => ChildLine::NotText(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    };
    (line != ChildLine::Text(String::new())).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str], limit: usize) -> Vec<(String, bool)> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            let mut chunk = chunk.as_bytes();
            while let Some(raw) = splitter.next(&mut chunk) {
                lines.push((String::from_utf8(raw.bytes).unwrap(), raw.is_cut));
            }
        }
        lines.extend(
            splitter
                .rest()
                .map(|raw| (String::from_utf8(raw.bytes).unwrap(), raw.is_cut)),
        );
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = "ab\n\nabcd\nabcde\nx\nlonger than all\nend";
        let whole = [
            ("ab", false),
            ("", false),
            ("abcd", false),
            ("abcd", true),
            ("x", false),
            ("long", true),
            ("end", false),
        ];
        let whole: Vec<_> = whole.map(|(line, cut)| (line.to_owned(), cut)).into();
        for size in 1..text.len() {
            let chunks: Vec<_> = text
                .as_bytes()
                .chunks(size)
                .map(|chunk| str::from_utf8(chunk).unwrap())
                .collect();
            assert_eq!(split(&chunks, 4), whole, "in chunks of {size}");
        }
    }

    #[test]
    fn a_line_is_text_or_says_that_it_is_none() {
        let line = |bytes: &[u8]| {
            line_of(RawLine {
                bytes: bytes.to_vec(),
                is_cut: false,
            })
        };
        assert_eq!(line(b"{}\r"), Some(ChildLine::Text("{}".into())));
        assert_eq!(line(b"\r"), None);
        assert_eq!(
            line(b"a\xffb"),
            Some(ChildLine::NotText("a\u{fffd}b".into()))
        );
    }
}
