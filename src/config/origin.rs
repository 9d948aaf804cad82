//! Where a value comes from, for errors and for `config show --origin`.

use std::fmt;
use std::path::PathBuf;

use url::Url;

/// The layer, and the place within it, that gave a value. Ordered as problems are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
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

/// One effective value, as `config show` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveValue {
    /// Its key, such as `server.listen` or `scenarios[0].url`.
    pub key: String,
    /// As TOML; credentials in addresses are masked.
    pub value: String,
    /// Where it comes from.
    pub origin: ValueOrigin,
}

/// `text` with the user name and password of an address replaced by `***`. In a text that is not an
/// address, but has an `@`, everything before it is masked: it may be one with a slip in it.
pub(super) fn masked(text: &str) -> String {
    let address = Url::parse(text);
    // `user:password@host:port` is an address too, of the scheme `user` and without a host.
    let is_plain =
        |url: &Url| url.has_host() && url.username().is_empty() && url.password().is_none();
    if address.as_ref().is_ok_and(is_plain) {
        return text.to_owned();
    }
    let (scheme, rest) = text.split_at(text.find("://").map_or(0, |at| at + 3));
    let authority = if address.is_ok() && !scheme.is_empty() {
        rest.find(['/', '?', '#', '\\'])
    } else {
        None
    };
    let (authority, path) = rest.split_at(authority.unwrap_or(rest.len()));
    // The last `@`: a password may hold others.
    match authority.rfind('@') {
        Some(at) => format!("{scheme}***{}{path}", authority.split_at(at).1),
        None => text.to_owned(),
    }
}

/// The same for an address that is refused, without what follows its first `?`: a query may hold a
/// key.
pub(super) fn refused_address(text: &str) -> String {
    let masked = masked(text);
    match masked.split_once('?') {
        Some((address, _)) => format!("{address}?***"),
        None => masked,
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                path,
                position: Some(position),
            } => write!(f, "file {}:{}", path.display(), position.line),
            Self::File {
                path,
                position: None,
            } => write!(f, "file {}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Default => f.write_str("default"),
        }
    }
}
