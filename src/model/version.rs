//! Protocol versions: how a scenario may write one, and whether it is in range.
//!
//! `semver` alone refuses what real scenarios write (`1.0`, `v1.0`); lenient parsers accept texts
//! that are no versions (`1.x`, `1.0.0.0`). The grammar here is: trimmed, an optional `v` or `V`,
//! one to three numbers, an optional pre-release, optional build metadata.

use std::fmt;

use semver::{Comparator, Op, Prerelease, Version, VersionReq};

/// A protocol version that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolVersion {
    /// Padded to three numbers; the pre-release is stripped, since a range without one never
    /// matches a version with one.
    pub base: Version,
    /// The pre-release, such as `rc.1`.
    pub prerelease: Option<String>,
    /// Written in a way the protocol does not allow (leading `v`, surrounding blanks, a JSON
    /// number).
    pub nonconforming: bool,
}

/// The range of versions that is accepted, `protocol.accept` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedVersions(VersionReq);

/// What to do with a manifest of a certain version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionVerdict {
    /// In range: publish it.
    Accepted(ProtocolVersion),
    /// Readable but out of range: the scenario is `incompatible`.
    OutOfRange(ProtocolVersion),
    /// No version at all: the document is refused, the last good one stays.
    Unreadable,
}

/// A text outside the version grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version")]
pub struct InvalidVersion(pub String);

impl ProtocolVersion {
    /// Reads a version text.
    pub fn parse(text: &str) -> Result<Self, InvalidVersion> {
        let invalid = || InvalidVersion(text.chars().take(60).collect());
        let trimmed = text.trim();
        let bare = trimmed.strip_prefix(['v', 'V']).unwrap_or(trimmed);
        let tail_at = bare.find(['-', '+']).unwrap_or(bare.len());
        let (numbers, tail) = bare.split_at(tail_at);
        let numbers: Vec<u64> = numbers
            .split('.')
            .map(number)
            .collect::<Option<_>>()
            .ok_or_else(invalid)?;
        let [major, minor, patch] = match numbers[..] {
            [major] => [major, 0, 0],
            [major, minor] => [major, minor, 0],
            [major, minor, patch] => [major, minor, patch],
            _ => return Err(invalid()),
        };
        // The tail is judged by semver itself.
        let full =
            Version::parse(&format!("{major}.{minor}.{patch}{tail}")).map_err(|_| invalid())?;
        let prerelease = (!full.pre.is_empty()).then(|| full.pre.to_string());
        Ok(Self {
            base: Version {
                pre: Prerelease::EMPTY,
                ..full
            },
            prerelease,
            nonconforming: bare.len() != text.len(),
        })
    }
}

/// Digits only, no leading zero but for zero itself, within 64 bits.
fn number(text: &str) -> Option<u64> {
    let plain =
        text.bytes().all(|c| c.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

impl AcceptedVersions {
    /// Reads a semver range such as `>=1.0, <2.0`.
    pub fn parse(text: &str) -> Result<Self, semver::Error> {
        VersionReq::parse(text).map(Self)
    }

    /// Judges what a scenario wrote.
    pub fn judge(&self, text: &str) -> VersionVerdict {
        match ProtocolVersion::parse(text) {
            Ok(version) if self.0.matches(&version.base) => VersionVerdict::Accepted(version),
            Ok(version) => VersionVerdict::OutOfRange(version),
            Err(InvalidVersion(_)) => VersionVerdict::Unreadable,
        }
    }
}

impl Default for AcceptedVersions {
    /// `>=1.0, <2.0`: the one major version there is.
    fn default() -> Self {
        let from = |op, major| Comparator {
            op,
            major,
            minor: Some(0),
            patch: None,
            pre: Prerelease::EMPTY,
        };
        Self(VersionReq {
            comparators: vec![from(Op::GreaterEq, 1), from(Op::Less, 2)],
        })
    }
}

impl fmt::Display for AcceptedVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version {
            major,
            minor,
            patch,
            ..
        } = self.base;
        write!(f, "{major}.{minor}.{patch}")?;
        self.prerelease
            .as_ref()
            .map_or(Ok(()), |pre| write!(f, "-{pre}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str) -> VersionVerdict {
        AcceptedVersions::parse(">=1.0, <2.0").unwrap().judge(text)
    }

    #[test]
    fn accepts_the_first_major_in_every_conforming_spelling() {
        for text in ["1", "1.0", "1.0.0", "1.1", "1.7.3", "1.0.0+build.5"] {
            let VersionVerdict::Accepted(version) = judge(text) else {
                panic!("{text} is refused")
            };
            assert!(!version.nonconforming, "{text}");
        }
    }

    #[test]
    fn accepts_but_flags_prereleases_and_odd_spellings() {
        let VersionVerdict::Accepted(rc) = judge("1.1.0-rc.1") else {
            panic!()
        };
        assert_eq!(rc.prerelease.as_deref(), Some("rc.1"));
        assert_eq!(rc.to_string(), "1.1.0-rc.1");
        for text in ["v1.0", "V1", " 1.0 "] {
            let VersionVerdict::Accepted(version) = judge(text) else {
                panic!("{text} is refused")
            };
            assert!(version.nonconforming, "{text}");
        }
    }

    #[test]
    fn tells_out_of_range_from_unreadable() {
        for text in ["2.0", "0.9", "2.0.0-alpha", "99"] {
            assert!(
                matches!(judge(text), VersionVerdict::OutOfRange(_)),
                "{text}"
            );
        }
        for text in [
            "",
            "latest",
            "1.x",
            "1.0.0.0",
            "01.0",
            "1.",
            "-1",
            "vv1",
            "1.0-",
            "99999999999999999999",
        ] {
            assert_eq!(judge(text), VersionVerdict::Unreadable, "{text}");
        }
    }
}
