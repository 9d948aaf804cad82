//! Slugs of bundles and tools, and versions of tools.
//!
//! Both are case-sensitive. A version is a label: versions have no order.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use regex::Regex;

/// Characters of a slug or version at most.
pub const NAME_MAX: usize = 64;

/// Letters and digits of any script, and `-`; one of them is a letter or a digit.
static SLUG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^-*[\p{L}\p{Nd}][\p{L}\p{Nd}-]*$").ok());
/// The same, and dots.
static VERSION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[.-]*[\p{L}\p{Nd}][\p{L}\p{Nd}.-]*$").ok());

/// The short name of a bundle or tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(Arc<str>);

/// The label that tells revisions of one slug apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolVersion(Arc<str>);

/// A text outside the grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSlug {
    /// Not a slug.
    #[error(
        "{0:?} is not a slug: use 1 to 64 letters, digits or `-`, at least one of them a letter or digit"
    )]
    Slug(String),
    /// Not a version.
    #[error(
        "{0:?} is not a version: use 1 to 64 letters, digits, `.` or `-`, at least one of them a letter or digit"
    )]
    Version(String),
}

impl Slug {
    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToolVersion {
    /// The version as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn fits(grammar: Option<&Regex>, text: &str) -> bool {
    // The expressions are constants that compile; without one no text fits.
    text.chars().count() <= NAME_MAX && grammar.is_some_and(|grammar| grammar.is_match(text))
}

/// The beginning of a refused text.
fn excerpt(text: &str) -> String {
    text.chars().take(NAME_MAX + 1).collect()
}

impl FromStr for Slug {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        if fits(SLUG.as_ref(), text) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidSlug::Slug(excerpt(text)))
        }
    }
}

impl FromStr for ToolVersion {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        if fits(VERSION.as_ref(), text) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidSlug::Version(excerpt(text)))
        }
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ToolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_and_versions_keep_their_grammar() {
        let long = "ä".repeat(NAME_MAX);
        for good in ["a", "A", "Wetter-Bericht", "天气", "٣", "-a", "7", &long] {
            assert!(good.parse::<Slug>().is_ok(), "{good}");
            assert!(good.parse::<ToolVersion>().is_ok(), "{good}");
        }
        let longer = "ä".repeat(NAME_MAX + 1);
        for bad in [
            "", "a_b", "a b", "a/b", "a\\b", "a\n", "a\u{7}", "a+b", "a\u{301}", "²", "-", "--",
            &longer,
        ] {
            assert!(bad.parse::<Slug>().is_err(), "{bad:?}");
            assert!(bad.parse::<ToolVersion>().is_err(), "{bad:?}");
        }
        assert!("v1.0".parse::<Slug>().is_err());
        assert!("v1.0".parse::<ToolVersion>().is_ok());
        assert!("..".parse::<ToolVersion>().is_err());
    }
}
