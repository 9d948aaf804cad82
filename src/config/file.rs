//! A configuration file: its values, and where in it each key stands. Which keys exist is not known
//! here.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Table;
use toml_edit::Document;

use super::error::Diagnostic;
use super::origin::{Position, ValueOrigin};
use super::path::{KeyPath, PathStep};
use crate::runtime::open_files::read_regular;

/// Bytes of a configuration file, and of the file of secrets beside it. A longer one is another
/// program's, such as a log, in its place.
pub(super) const CONFIG_FILE_BYTES_MAX: u64 = 16 << 20;

/// A file that could be read as TOML.
#[derive(Debug)]
pub(super) struct ConfigFile {
    path: PathBuf,
    /// The text with the spans of its keys and values.
    document: Document<String>,
    lines: LineStarts,
}

/// Where the lines of a text begin.
#[derive(Debug)]
struct LineStarts(Vec<usize>);

/// Which end of `key = value` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOrValue {
    /// Where the key begins.
    Key,
    /// Where the value begins.
    Value,
}

impl ConfigFile {
    /// Reads the file at `path`, which has to be there, and its values.
    pub(super) fn read(path: &Path) -> Result<(Self, Table), Diagnostic> {
        let text = read_regular(path, CONFIG_FILE_BYTES_MAX).map_err(|error| Diagnostic {
            origin: ValueOrigin::File {
                path: path.to_owned(),
                position: None,
            },
            key: None,
            message: format!("the configuration cannot be read: {error}"),
            hint: "make it a readable text file, or name another one with `--config`".to_owned(),
        })?;
        Self::parse(path, &text)
    }

    /// The file at `path`, with this text.
    pub(super) fn parse(path: &Path, text: &str) -> Result<(Self, Table), Diagnostic> {
        let lines = LineStarts::new(text);
        let refused = |message: &str, span: Option<Range<usize>>| Diagnostic {
            origin: ValueOrigin::File {
                path: path.to_owned(),
                position: span.map(|span| lines.position(text, span.start)),
            },
            key: None,
            message: format!(
                "this is not TOML: {}",
                message.trim_end().replace('\n', ", ")
            ),
            hint: if text.trim_start().starts_with('{') {
                "this looks like JSON: `callsheet import FILE --write` takes over a file with `mcpServers`".to_owned()
            } else {
                "texts stand in double quotes, a section begins with `[name]`, a comment with `#`"
                    .to_owned()
            },
        };
        let document = Document::parse(text.to_owned())
            .map_err(|error| refused(error.message(), error.span()))?;
        let values = text
            .parse()
            .map_err(|error: toml::de::Error| refused(error.message(), error.span()))?;
        Ok((
            Self {
                path: path.to_owned(),
                document,
                lines,
            },
            values,
        ))
    }

    /// The place of `path`, or of the nearest table around it when it is not written.
    pub(super) fn origin(&self, path: &KeyPath, end: KeyOrValue) -> ValueOrigin {
        let position = self
            .span(path, end)
            .map(|span| self.lines.position(self.document.raw(), span.start));
        ValueOrigin::File {
            path: self.path.clone(),
            position,
        }
    }

    /// The bytes of the key or value at `path`, or of the nearest table around it.
    fn span(&self, path: &KeyPath, end: KeyOrValue) -> Option<Range<usize>> {
        let mut item = self.document.as_item();
        let mut found = None;
        for step in path.steps() {
            let below = match step {
                PathStep::Key(name) => {
                    let entry = item
                        .as_table_like()
                        .and_then(|table| table.get_key_value(name));
                    entry.map(|(key, value)| (key.span(), value))
                }
                PathStep::Index(index) => item.get(*index).map(|element| (None, element)),
            };
            let Some((key, next)) = below else { break };
            // A table made by a dotted key or a longer header has no span of its own.
            found = match end {
                KeyOrValue::Key => key.or(next.span()),
                KeyOrValue::Value => next.span().or(key),
            }
            .or(found);
            item = next;
        }
        found
    }
}

impl LineStarts {
    /// The lines of `text`.
    fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(
            std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    /// The place of the byte at `offset` in the text that this was made of.
    fn position(&self, text: &str, offset: usize) -> Position {
        let line = self.0.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |index| self.0[index]);
        let column = text[start..]
            .char_indices()
            .take_while(|(at, _)| start + at < offset)
            .count()
            + 1;
        Position { line, column }
    }
}
