//! One tool's claim on a name. The rules about claims are in `resolve.rs`.

use xxhash_rust::xxh3::xxh3_128;

use crate::model::ToolId;

/// A text that is claimed, as its 128-bit digest: two words, since the texts would cost more memory
/// than the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameHash([u64; 2]);

/// Why a tool is found under a text. The order keeps the rare kinds in front of the crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimKind {
    /// A preference gave it this alias.
    Alias,
    /// It is its qualified name.
    Qualified,
    /// It wants it as its plain name.
    Plain,
    /// It is its original name, but not the name it wants. Only for lookups.
    Original,
    /// It is published under this unique form. Only for lookups.
    Unique,
}

/// One tool's claim on a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameClaim {
    pub(super) text: NameHash,
    pub(super) kind: ClaimKind,
    pub(super) id: ToolId,
}

impl NameHash {
    /// The digest of a text.
    pub(super) fn from_text(text: &str) -> Self {
        let digest = xxh3_128(text.as_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        Self([(digest >> 64) as u64, digest as u64])
    }
}
