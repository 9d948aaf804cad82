//! Where a value comes from, for errors and for `config show --origin`.

use std::fmt;
use std::path::PathBuf;

use url::Url;

/// The layer, and the place within it, that gave a value. Ordered as problems are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A file.
    File {
        /// Its absolute path.
        path: PathBuf,
        /// Where in it; absent when the file as a whole is meant.
        position: Option<Position>,
    },
    /// An environment variable, named as it was set.
    Environment(String),
    /// A flag, as it was typed.
    Flag(String),
    /// Built in.
    Default,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
}

/// One effective value, as `config show` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownValue {
    /// Its key, such as `server.listen` or `scenarios[0].url`.
    pub key: String,
    /// As TOML; credentials in addresses are masked.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl Position {
    /// The place of the byte at `offset` in `text`; an offset beyond the end, or within a character, means the nearest before.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        Lines::of(text).position(text, offset)
    }
}

/// Where the lines of a text begin: a file of a thousand scenarios is asked for thousands of places.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    /// The lines of `text`.
    pub(super) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// See [`Position::of`]; `text` is the one that this was made of.
    pub(super) fn position(&self, text: &str, offset: usize) -> Position {
        let line = self.0.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |index| self.0[index]);
        let column = text[start..].char_indices().take_while(|(at, _)| start + at < offset).count() + 1;
        Position { line, column }
    }
}

/// `text` with the user name and password of an address replaced by `***`. In a text that is no address, but has an `@`, everything
/// before it is masked: it may be one with a slip in it.
pub(super) fn masked(text: &str) -> String {
    let address = Url::parse(text);
    if address.as_ref().is_ok_and(|url| url.username().is_empty() && url.password().is_none()) {
        return text.to_owned();
    }
    let (scheme, rest) = text.split_at(text.find("://").map_or(0, |at| at + 3));
    let authority = if address.is_ok() && !scheme.is_empty() { rest.find(['/', '?', '#', '\\']) } else { None };
    let (authority, path) = rest.split_at(authority.unwrap_or(rest.len()));
    // The last `@`: a password may hold others.
    match authority.rfind('@') {
        Some(at) => format!("{scheme}***{}{path}", authority.split_at(at).1),
        None => text.to_owned(),
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, position: Some(position) } => write!(f, "file {}:{}", path.display(), position.line),
            Self::File { path, position: None } => write!(f, "file {}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Default => f.write_str("default"),
        }
    }
}
