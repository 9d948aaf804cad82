//! Which revision a list had, by its entity tag: a client that keeps the tag alone can still name
//! the list that it has.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::catalog::Revision;

/// The most lists that are remembered: some formats and scopes for each of the revisions whose
/// names are remembered.
const KEPT: usize = 1_024;
/// The digits of a tag that say which bytes a list has; the coding follows.
const DIGITS: usize = 32;

/// The revisions of the latest lists. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct TaggedRevisions(Arc<Mutex<VecDeque<TaggedRevision>>>);

/// The digits of a list's tag, and its revision.
type TaggedRevision = (Box<str>, Revision);

impl TaggedRevisions {
    /// A list with this tag had this revision.
    pub(super) fn note(&self, tag: &http::HeaderValue, revision: Revision) {
        let Some(digits) = tag.to_str().ok().and_then(digits) else {
            return;
        };
        let mut kept = self.0.lock();
        if kept
            .iter()
            .any(|(known, had)| **known == *digits && *had == revision)
        {
            return;
        }
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((digits.into(), revision));
    }

    /// The revision of the latest list with this tag.
    pub(super) fn find(&self, tag: &str) -> Option<Revision> {
        let digits = digits(tag)?;
        let kept = self.0.lock();
        kept.iter()
            .rev()
            .find(|(known, _)| **known == *digits)
            .map(|(_, revision)| *revision)
    }
}

/// The digits of a tag, with or without its quotes and its mark as a weak one.
fn digits(tag: &str) -> Option<&str> {
    let tag = tag.trim().trim_start_matches("W/").trim_matches('"');
    let digits = tag.split('-').next()?;
    (digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_every_coding() {
        let revisions = TaggedRevisions::default();
        let tag = "0123456789abcdef0123456789abcdef";
        let revision = Revision::default();
        revisions.note(
            &http::HeaderValue::from_str(&format!("\"{tag}\"")).unwrap(),
            revision,
        );
        for given in [
            tag.to_owned(),
            format!("\"{tag}-gzip\""),
            format!("W/\"{tag}\""),
        ] {
            assert_eq!(revisions.find(&given), Some(revision), "{given}");
        }
        for given in ["", "abc", "\"0123456789abcdef\"", &"f".repeat(32)] {
            assert_eq!(revisions.find(given), None, "{given}");
        }
    }
}
