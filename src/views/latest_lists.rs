//! Where the tools of each scenario stand in the latest list, so that a change of one scenario does not render the others.
//!
//! The segments are places in a body that is kept anyway: bytes of their own would be as many again, a quarter of the memory that a
//! fleet of 20,000 tools needs.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::catalog::{Part, ToolMark, View};
use crate::formats::{Format, Loading, Spent};
use crate::model::{Digest, Finding, ScenarioName, ViewTool};

/// One tool as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WrittenTool {
    /// By which a conversation that carries it knows it again.
    pub(super) mark: ToolMark,
    /// Bytes in the list.
    pub(super) bytes: u32,
}

/// What was written of some tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Written {
    /// Tool by tool; nothing where the format left one out.
    pub(super) lines: Vec<Option<WrittenTool>>,
    /// How many of them are deferred.
    pub(super) deferred: usize,
    /// How many there are.
    pub(super) tools: usize,
    /// How many the format left out.
    pub(super) left_out: usize,
    /// What the format left out or changed.
    pub(super) findings: Vec<Finding>,
}

/// The place of one scenario's tools in a body.
#[derive(Debug)]
pub(super) struct Segment {
    /// Over everything of the entry that shows in a list, so an old segment is never taken for a new one.
    digest: Digest,
    range: Range<usize>,
    written: Written,
}

/// The segments of one body.
pub(super) type Segments = BTreeMap<ScenarioName, Segment>;

/// A list with the places in it.
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
    /// Writes tools in the order given, with a comma between two, behind what is already in `out`.
    pub(super) fn write(
        view: &View,
        tools: &[Arc<ViewTool>],
        format: &dyn Format,
        spent: &mut Spent,
        out: &mut Vec<u8>,
    ) -> Self {
        let mut written = Self { lines: Vec::with_capacity(tools.len()), ..Self::default() };
        for tool in tools {
            let deferred = view.is_deferred(tool);
            let loading = if deferred { Loading::Deferred } else { Loading::AtOnce };
            let encoded = format.encode_within(tool, loading, spent);
            written.findings.extend(encoded.findings);
            let Some(json) = encoded.json else {
                written.left_out += 1;
                written.lines.push(None);
                continue;
            };
            let bytes = u32::try_from(json.len()).unwrap_or(u32::MAX);
            written.lines.push(Some(WrittenTool { mark: ToolMark::new(&tool.id, &json), bytes }));
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
    /// The segment of a part that was written there; nothing for a part that is not as in the plain list.
    pub(super) fn for_part(part: &Part, range: Range<usize>, written: Written) -> Option<(ScenarioName, Self)> {
        part.whole.then(|| (part.entry.name.clone(), Self { digest: part.entry.digest, range, written }))
    }

    /// Whether its bytes go up to there.
    pub(super) fn ends_at(&self, end: usize) -> bool {
        self.range.end == end && !self.range.is_empty()
    }
}

impl CachedList {
    /// What was written of a part, if it is still the same.
    pub(super) fn find(&self, part: &Part) -> Option<(&[u8], &Written)> {
        let segment = self.places.get(&part.entry.name)?;
        let same = part.whole && segment.digest == part.entry.digest;
        same.then(|| (&self.body[segment.range.clone()], &segment.written))
    }

    /// How many bytes the body has.
    pub(super) fn size(&self) -> usize {
        self.body.len()
    }
}

impl LatestLists {
    /// The latest list in a format.
    pub(super) fn get(&self, format: &'static str) -> Option<Arc<CachedList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(format).cloned()
    }

    /// Takes a list for the latest one. A much smaller one is not: it is a filtered list, and the others would lose their places.
    pub(super) fn update(&self, format: &'static str, body: Bytes, tools: usize, places: Segments) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.get(format).is_none_or(|known| tools * 2 >= known.tools) {
            latest.insert(format, Arc::new(CachedList { body, tools, places }));
        }
    }
}
