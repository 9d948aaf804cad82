//! The latest list of each format with the position of each scenario's tools in it, so that a
//! change of one scenario does not render the others again.
//!
//! A segment is a range in a body that is kept anyway. Bytes of its own would take as much memory
//! again, which is a quarter of the memory that a fleet of 20,000 tools needs.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::catalog::{Part, ToolMark, View};
use crate::formats::{Format, Loading, Spent};
use crate::model::{Digest, Finding, ScenarioName, ViewTool};

/// One tool as it was written into a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WrittenTool {
    /// The mark by which a conversation that carries the tool recognises it.
    pub(super) mark: ToolMark,
    /// Its size in the list, in bytes.
    pub(super) bytes: u32,
}

/// The result of writing some tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Written {
    /// One entry for each tool; `None` if the format left it out.
    pub(super) lines: Vec<Option<WrittenTool>>,
    /// How many of them are deferred.
    pub(super) deferred: usize,
    /// How many there are.
    pub(super) tools: usize,
    /// How many of them the format left out.
    pub(super) left_out: usize,
    /// Findings about what the format left out or changed.
    pub(super) findings: Vec<Finding>,
}

/// The range of one scenario's tools in a body.
#[derive(Debug)]
pub(super) struct Segment {
    /// Digest of every part of the entry that shows in a list, so an old segment never counts as a
    /// new one.
    digest: Digest,
    range: Range<usize>,
    written: Written,
}

/// The segments of one body.
pub(super) type Segments = BTreeMap<ScenarioName, Segment>;

/// A list and its segments.
#[derive(Debug)]
pub(super) struct CachedList {
    body: Bytes,
    tools: usize,
    places: Segments,
}

/// The latest list of each format.
#[derive(Debug, Clone, Default)]
pub(super) struct LatestLists(Arc<Mutex<HashMap<&'static str, Arc<CachedList>>>>);

impl Written {
    /// Writes tools in the given order, with a comma between two, to the end of `out`.
    pub(super) fn write(
        view: &View,
        tools: &[Arc<ViewTool>],
        format: &dyn Format,
        spent: &mut Spent,
        out: &mut Vec<u8>,
    ) -> Self {
        let mut written = Self {
            lines: Vec::with_capacity(tools.len()),
            ..Self::default()
        };
        for tool in tools {
            let deferred = view.is_deferred(tool);
            let loading = if deferred {
                Loading::Deferred
            } else {
                Loading::AtOnce
            };
            let encoded = format.encode_within(tool, loading, spent);
            written.findings.extend(encoded.findings);
            let Some(json) = encoded.json else {
                written.left_out += 1;
                written.lines.push(None);
                continue;
            };
            let bytes = u32::try_from(json.len()).unwrap_or(u32::MAX);
            written.lines.push(Some(WrittenTool {
                mark: ToolMark::new(&tool.id, &json),
                bytes,
            }));
            written.deferred += usize::from(deferred);
            if written.tools > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&json);
            written.tools += 1;
        }
        written
    }
}

impl Segment {
    /// The segment of a part that was written at `range`; `None` for a part that differs from the
    /// plain list.
    pub(super) fn for_part(
        part: &Part,
        range: Range<usize>,
        written: Written,
    ) -> Option<(ScenarioName, Self)> {
        part.whole.then(|| {
            (
                part.entry.name.clone(),
                Self {
                    digest: part.entry.digest,
                    range,
                    written,
                },
            )
        })
    }

    /// Whether its bytes end at `end`.
    pub(super) fn ends_at(&self, end: usize) -> bool {
        self.range.end == end && !self.range.is_empty()
    }
}

impl CachedList {
    /// The bytes of a part and their description, if the part did not change.
    pub(super) fn find(&self, part: &Part) -> Option<(&[u8], &Written)> {
        let segment = self.places.get(&part.entry.name)?;
        let same = part.whole && segment.digest == part.entry.digest;
        same.then(|| (&self.body[segment.range.clone()], &segment.written))
    }

    /// The size of the body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }

    /// How many bytes a tool takes in it on average.
    pub(super) fn tool_bytes(&self) -> usize {
        self.body.len().div_ceil(self.tools.max(1))
    }
}

impl LatestLists {
    /// The latest list in a format.
    pub(super) fn get(&self, format: &'static str) -> Option<Arc<CachedList>> {
        self.0.lock().get(format).cloned()
    }

    /// Makes a list the latest one. A much smaller list is ignored: it is a filtered one, and the
    /// segments of the other scenarios would be lost.
    pub(super) fn update(&self, format: &'static str, body: Bytes, tools: usize, places: Segments) {
        let mut latest = self.0.lock();
        if latest
            .get(format)
            .is_none_or(|known| tools * 2 >= known.tools)
        {
            latest.insert(
                format,
                Arc::new(CachedList {
                    body,
                    tools,
                    places,
                }),
            );
        }
    }
}
