//! The bytes of one scenario's tools in a format, kept so that a change of one scenario does not render the others.

use std::sync::Arc;

use moka::future::Cache;
use moka::policy::EvictionPolicy;

use super::{ENTRY_BYTES, FINDING_BYTES};
use crate::catalog::View;
use crate::formats::Format;
use crate::model::{Digest, Finding, ScenarioName, ViewTool};

/// Some tools in a format.
#[derive(Debug, Default, PartialEq)]
pub struct Segment {
    /// Their JSON texts with a comma between two; empty when there are none.
    pub bytes: Vec<u8>,
    /// How many there are.
    pub tools: usize,
    /// How many the format left out.
    pub left_out: usize,
    /// What the format left out or changed.
    pub findings: Vec<Finding>,
}

impl Segment {
    /// Renders tools in the order given.
    pub fn encode(tools: &[Arc<ViewTool>], format: &dyn Format) -> Self {
        let mut segment = Self::default();
        for tool in tools {
            let encoded = format.encode(tool);
            segment.findings.extend(encoded.findings);
            let Some(json) = encoded.json else {
                segment.left_out += 1;
                continue;
            };
            if segment.tools > 0 {
                segment.bytes.push(b',');
            }
            segment.bytes.extend(json);
            segment.tools += 1;
        }
        segment.bytes.shrink_to_fit();
        segment
    }
}

/// The kept segments. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Segments(Cache<Key, Arc<Segment>>);

/// The digest is over everything of an entry that shows in a list, so an old segment is never taken for a new one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    scenario: ScenarioName,
    digest: Digest,
    format: &'static str,
}

impl Segments {
    /// Keeps at most `max_bytes`.
    pub(super) fn new(max_bytes: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(max_bytes)
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|_: &Key, segment: &Arc<Segment>| weight(segment))
            .build();
        Self(cache)
    }

    /// The segments of a view, one for each of its parts. Parts that are as in the plain list are kept; others are only made.
    pub(super) async fn of(&self, view: &View, format: &'static dyn Format) -> Vec<Arc<Segment>> {
        let mut segments = Vec::with_capacity(view.parts.len());
        for part in &view.parts {
            let encode = || Arc::new(Segment::encode(&part.tools, format));
            segments.push(if part.whole {
                let key = Key { scenario: part.entry.name.clone(), digest: part.entry.digest, format: format.id() };
                self.0.get_with(key, async { encode() }).await
            } else {
                encode()
            });
        }
        segments
    }
}

fn weight(segment: &Segment) -> u32 {
    let bytes = segment.bytes.len() + segment.findings.len() * FINDING_BYTES + ENTRY_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
