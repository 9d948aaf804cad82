//! A configuration file: its values, and where in it each key stands.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toml_edit::{Document, Item, Table, TableLike, Value};

use super::error::Problem;
use super::key::{KeyPath, Step};
use super::origin::{Lines, Origin, Position};

/// A file that could be read as TOML.
#[derive(Debug)]
pub(super) struct SourceFile {
    path: PathBuf,
    text: String,
    /// Made when the first place is asked for: most files have nothing wrong in them.
    places: OnceLock<Places>,
}

/// What tells where something stands.
#[derive(Debug)]
struct Places {
    document: Option<Document<String>>,
    lines: Lines,
}

/// Which end of `key = value` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Key,
    Value,
}

impl SourceFile {
    /// Reads the file at `path`, which has to be there, and its values.
    pub(super) fn read(path: &Path) -> Result<(Self, toml::Table), Problem> {
        let text = std::fs::read_to_string(path).map_err(|error| Problem {
            origin: Origin::File { path: path.to_owned(), position: None },
            key: None,
            message: format!("the configuration cannot be read: {error}"),
            hint: "make it a readable text file, or name another one with `--config`".to_owned(),
        })?;
        Self::parse(path, &text)
    }

    /// Reads `text` as the content of the file at `path`.
    fn parse(path: &Path, text: &str) -> Result<(Self, toml::Table), Problem> {
        let refused = |message: &str, span: Option<Range<usize>>| Problem {
            origin: Origin::File { path: path.to_owned(), position: span.map(|span| Position::of(text, span.start)) },
            key: None,
            message: format!("this is no TOML: {}", message.trim_end().replace('\n', ", ")),
            hint: "texts stand in double quotes, a section begins with `[name]`, a comment with `#`".to_owned(),
        };
        let values = text.parse().map_err(|error: toml::de::Error| refused(error.message(), error.span()))?;
        Ok((Self { path: path.to_owned(), text: text.to_owned(), places: OnceLock::new() }, values))
    }

    /// The values once more, read from the text each time: a tree of them is many times as large.
    pub(super) fn values(&self) -> toml::Table {
        // It was parsed before, so this cannot fail.
        self.text.parse().unwrap_or_default()
    }

    /// The file itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The place of `path`, or of the nearest table around it when it is not written.
    pub(super) fn origin(&self, path: &KeyPath, end: End) -> Origin {
        let places = self.places.get_or_init(|| {
            // The same parser made the values of the same text, so this cannot fail; if it did, no place would be told.
            Places { document: Document::parse(self.text.clone()).ok(), lines: Lines::of(&self.text) }
        });
        let position = places.span(path, end).map(|span| places.lines.position(&self.text, span.start));
        Origin::File { path: self.path.clone(), position }
    }
}

impl Places {
    fn span(&self, path: &KeyPath, end: End) -> Option<Range<usize>> {
        let mut node = Node::Item(self.document.as_ref()?.as_item());
        let mut found = None;
        for step in path.steps() {
            let Some((key, next)) = node.step(step) else { break };
            // A table made by a dotted key or a longer header has no span of its own.
            found = match end {
                End::Key => key.or(next.span()),
                End::Value => next.span().or(key),
            }
            .or(found);
            node = next;
        }
        found
    }
}

/// A place in the document. TOML writes tables and lists in two ways each, with a type for each way.
#[derive(Clone, Copy)]
enum Node<'a> {
    Item(&'a Item),
    Value(&'a Value),
    Table(&'a Table),
}

impl<'a> Node<'a> {
    /// One step down, with the span of the key stepped over.
    fn step(self, step: &Step) -> Option<(Option<Range<usize>>, Node<'a>)> {
        match step {
            Step::Key(name) => {
                let table: &'a dyn TableLike = match self {
                    Node::Item(item) => item.as_table_like()?,
                    Node::Value(value) => value.as_inline_table()?,
                    Node::Table(table) => table,
                };
                let (key, item) = table.get_key_value(name)?;
                Some((key.span(), Node::Item(item)))
            }
            Step::Index(index) => {
                let tables = if let Node::Item(item) = self { item.as_array_of_tables() } else { None };
                let below = match (self, tables) {
                    (_, Some(tables)) => Node::Table(tables.get(*index)?),
                    (Node::Item(item), None) => Node::Value(item.as_array()?.get(*index)?),
                    (Node::Value(value), None) => Node::Value(value.as_array()?.get(*index)?),
                    (Node::Table(_), None) => return None,
                };
                Some((None, below))
            }
        }
    }

    fn span(self) -> Option<Range<usize>> {
        match self {
            Node::Item(item) => item.span(),
            Node::Value(value) => value.span(),
            Node::Table(table) => table.span(),
        }
    }
}
