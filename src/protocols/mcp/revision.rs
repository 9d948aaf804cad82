//! The revisions of MCP and their two eras.
//!
//! This module never decides which revision a server speaks; see `negotiate`.

use std::fmt;

/// A revision of the Model Context Protocol that can be spoken, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpRevision {
    V20260728,
    V20251125,
    V20250618,
    V20250326,
    V20241105,
}

/// The names of all revisions that can be spoken, newest first.
pub(crate) const REVISIONS: [&str; 5] = {
    let all = McpRevision::ALL;
    [
        all[0].as_str(),
        all[1].as_str(),
        all[2].as_str(),
        all[3].as_str(),
        all[4].as_str(),
    ]
};

impl McpRevision {
    const ALL: [Self; 5] = [
        Self::V20260728,
        Self::V20251125,
        Self::V20250618,
        Self::V20250326,
        Self::V20241105,
    ];

    /// The newest revision without a handshake.
    pub(super) const MODERN: Self = Self::V20260728;
    /// The newest revision with a handshake.
    pub(super) const LEGACY: Self = Self::V20251125;

    /// The revision of this name, if it is supported.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// Its name on the wire.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::V20260728 => "2026-07-28",
            Self::V20251125 => "2025-11-25",
            Self::V20250618 => "2025-06-18",
            Self::V20250326 => "2025-03-26",
            Self::V20241105 => "2024-11-05",
        }
    }

    /// Whether each request stands alone: no handshake, no session, `_meta` in every request.
    pub(super) fn is_modern(self) -> bool {
        matches!(self, Self::V20260728)
    }
}

impl fmt::Display for McpRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
