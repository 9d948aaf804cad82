//! Entity tags: of the exact bytes, so that equal lists have equal tags in any process and after a restart.
//!
//! The tag of a list is made of digests: of what stands before its tools, of each scenario's tools, and of what stands behind them. So the tag of a large
//! list is known when only what changed has been written anew.

use http::HeaderValue;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Coding;
use super::render::Ending;

/// The digest of a list in the making.
pub(super) struct Tag(Xxh3);

impl Tag {
    /// Of a list that begins so.
    pub(super) fn begin(open: &[u8]) -> Self {
        let mut tag = Self(Xxh3::new());
        tag.segment(xxh3_128(open));
        tag
    }

    /// Then come tools with this digest.
    pub(super) fn segment(&mut self, digest: u128) {
        self.0.update(&digest.to_le_bytes());
    }

    /// And then its end.
    pub(super) fn end(mut self, ending: &Ending) -> u128 {
        self.segment(xxh3_128(&ending.text));
        self.0.update(&[u8::from(ending.cuts)]);
        self.0.digest128()
    }
}

/// The strong entity tag of a body that is one piece, in a coding; see [`of`].
pub fn strong(identity: &[u8], coding: Coding) -> HeaderValue {
    of(xxh3_128(identity), coding)
}

/// The strong entity tag of what has this digest, in a coding: its 32 hexadecimal digits, then, but for identity, a dash and the coding
/// (RFC 9110 section 8.8.3.3: two codings of one view are two representations).
pub fn of(digest: u128, coding: Coding) -> HeaderValue {
    let tag = match coding {
        Coding::Identity => format!("\"{digest:032x}\""),
        other => format!("\"{digest:032x}-{other}\""),
    };
    // Digits, letters, a dash and quotes always are a header value; the weak tag of nothing would make every asker load anew.
    HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
}
