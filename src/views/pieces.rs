//! Lists that are larger than all that may be kept: they are made piece by piece as they are taken, and are never whole in memory.
//!
//! What their headers say must be known before their first byte. So of each scenario is remembered what its tools come to in the list, and the
//! digest of their bytes: after a change only what changed is written to find that out, and the first piece can go. Whoever takes a list at
//! the same time as somebody else shares the pieces. Only a list in which nothing was chosen is made so, since there each part is on its own.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;

use super::categories;
use super::etag::Tag;
use super::render::{Ending, Origin, all_findings};
use super::segment::Written;
use super::{Of, Views};
use crate::catalog::{Part, Snapshot, View, ViewQuery};
use crate::formats::{Format, ListHead, Spent};
use crate::model::{Digest, Finding, ScenarioName};

/// A piece has so many bytes or a little more, unless one scenario alone has more.
const PIECE: usize = 256 << 10;
/// Pieces that are kept for others who take the same list a little later.
const RECENT: usize = 8;
/// A list is not made in pieces for less.
pub(super) const SMALLEST: u64 = 1 << 20;

/// A list that is made while it is taken. It holds nothing of the catalog.
pub struct Pieces {
    query: ViewQuery,
    format: &'static dyn Format,
    open: Vec<u8>,
    ending: Ending,
    runs: Vec<Run>,
    length: u64,
    taken: Mutex<Weak<Taken>>,
}

/// One piece: parts of the view that follow each other.
#[derive(Debug, Clone)]
struct Run {
    parts: Range<usize>,
    bytes: usize,
}

/// A list that somebody takes.
pub struct Taken {
    pieces: Arc<Pieces>,
    snapshot: Arc<Snapshot>,
    view: OnceLock<View>,
    made: Box<[Mutex<Weak<Vec<u8>>>]>,
    recent: Mutex<VecDeque<Arc<Vec<u8>>>>,
}

/// What one scenario's tools come to in a list.
#[derive(Debug, Clone)]
struct Sum {
    /// Of the entry, as with a segment.
    entry: Digest,
    /// Of the bytes.
    digest: u128,
    bytes: usize,
    tools: u32,
    left_out: u32,
    tokens: usize,
    findings: Box<[Finding]>,
}

/// The sums of a list's scenarios, by name.
#[derive(Debug, Default)]
pub(super) struct Sums {
    all: Vec<(ScenarioName, Sum)>,
    pub(super) tools: usize,
}

/// What is known of a list before any of it is made.
pub(super) struct Planned {
    pub(super) pieces: Pieces,
    pub(super) tag: u128,
    pub(super) tools: usize,
    pub(super) left_out: usize,
    pub(super) tokens: usize,
    pub(super) findings: Vec<Finding>,
}

/// A piece that is being sent.
struct Sent(Arc<Vec<u8>>);

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces")
            .field("format", &self.format.id())
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.pieces).finish()
    }
}

/// Whether each part of the list is on its own: nothing was chosen, and what is told of it needs no tool by itself.
pub(super) fn are_possible(view: &View, query: &ViewQuery, format: &dyn Format) -> bool {
    !query.chooses() && !format.request_wide() && view.picks.is_empty()
}

/// What the texts of the tools come to, which is most of a list.
pub(super) fn texts(view: &View) -> u64 {
    let texts = view.tools().map(|tool| {
        let tool = &tool.tool;
        (tool.description.len() + tool.parameters.get().len() + tool.metadata.get().len()) as u64
    });
    texts.sum()
}

/// Plans a list, with what is known of its scenarios. Also what is known of them now.
pub(super) fn plan(
    view: &View,
    query: &ViewQuery,
    origin: Origin<'_>,
    format: &'static dyn Format,
    known: Option<&Sums>,
) -> (Planned, Sums) {
    let categories = categories::of_view(view);
    let Origin { generated_at, own_id } = origin;
    let frame = format.frame(&ListHead { generated_at, own_id, categories: categories.unique });
    let mut tag = Tag::begin(&frame.open);
    let (mut runs, mut sums) = (Vec::new(), Sums::default());
    let (mut left_out, mut tokens, mut noted) = (0, 0, Vec::new());
    let (mut run, mut buffer) = (Run { parts: 0..0, bytes: frame.open.len() }, Vec::new());
    let mut find = known.map(Sums::reader);
    for (at, part) in view.parts.iter().enumerate() {
        let found = find.as_mut().and_then(|find| find(part)).cloned();
        let sum = found.unwrap_or_else(|| Sum::of(view, part, format, &mut buffer));
        if sum.tools > 0 {
            if run.bytes >= PIECE && sums.tools > 0 {
                runs.push(std::mem::replace(&mut run, Run { parts: at..at, bytes: 0 }));
            }
            run.bytes += sum.bytes + usize::from(sums.tools > 0);
            tag.segment(sum.digest);
        }
        run.parts.end = at + 1;
        sums.tools += sum.tools as usize;
        left_out += sum.left_out as usize;
        tokens += sum.tokens;
        noted.extend_from_slice(&sum.findings);
        if part.whole {
            sums.all.push((part.entry.name.clone(), sum));
        }
    }
    let ending = Ending::of(format.end_mark(0), sums.tools, &frame.close);
    run.bytes = run.bytes + ending.text.len() - usize::from(ending.cuts);
    runs.push(run);
    let length = runs.iter().map(|run| run.bytes as u64).sum();
    let (over, findings) = all_findings(view, format, noted, categories.findings);
    let tag = tag.end(&ending);
    let (query, taken) = (query.clone(), Mutex::default());
    let pieces = Pieces { query, format, open: frame.open, ending, runs, length, taken };
    (Planned { pieces, tag, tools: sums.tools, left_out: left_out + over, tokens, findings }, sums)
}

impl Sum {
    fn of(view: &View, part: &Part, format: &dyn Format, buffer: &mut Vec<u8>) -> Self {
        buffer.clear();
        let written = written(view, part, format, buffer);
        let lines = written.lines.iter().flatten();
        Self {
            entry: part.entry.digest,
            digest: written.digest,
            bytes: buffer.len(),
            tools: u32::try_from(written.tools).unwrap_or(u32::MAX),
            left_out: u32::try_from(written.left_out).unwrap_or(u32::MAX),
            tokens: lines.map(|line| format.limits().tokens(line.bytes as usize)).sum(),
            findings: written.findings.into(),
        }
    }
}

/// Writes the tools of a part behind what is already in `out`. What was spent before matters in no format whose list is made in pieces.
fn written(view: &View, part: &Part, format: &dyn Format, out: &mut Vec<u8>) -> Written {
    Written::of(view, &part.tools, format, &mut Spent::default(), out)
}

impl Sums {
    /// Finds parts that come in the order of their names; another one is not found.
    fn reader<'a>(&'a self) -> impl FnMut(&Part) -> Option<&'a Sum> {
        let mut rest = self.all.iter().peekable();
        move |part| {
            while rest.next_if(|(name, _)| *name < part.entry.name).is_some() {}
            let (_, sum) = rest.next_if(|(name, _)| *name == part.entry.name)?;
            (part.whole && sum.entry == part.entry.digest).then_some(sum)
        }
    }
}

impl Pieces {
    /// How many bytes the list has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What it costs to keep, in bytes, roughly.
    pub(super) fn weight(&self) -> usize {
        self.runs.len() * size_of::<Run>() + self.open.len() + self.ending.text.len()
    }

    /// The list to be taken, from a snapshot of the same content as the one it was prepared for. Costs nothing yet.
    pub fn take(self: &Arc<Self>, snapshot: &Arc<Snapshot>) -> Arc<Taken> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = taken.upgrade() {
            return taken;
        }
        let new = Arc::new(Taken {
            pieces: Arc::clone(self),
            snapshot: Arc::clone(snapshot),
            view: OnceLock::new(),
            made: self.runs.iter().map(|_| Mutex::default()).collect(),
            recent: Mutex::default(),
        });
        *taken = Arc::downgrade(&new);
        new
    }
}

impl Taken {
    /// How many bytes the list has.
    pub fn length(&self) -> u64 {
        self.pieces.length
    }

    /// A piece of the list; `None` behind its end. Blocks for about a millisecond. Fails only through a mistake of ours.
    pub fn piece(&self, at: usize) -> io::Result<Option<Bytes>> {
        let Some((run, made)) = self.pieces.runs.get(at).zip(self.made.get(at)) else { return Ok(None) };
        // Who wants the same piece waits here until it is made.
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.upgrade() {
            return Ok(Some(Bytes::from_owner(Sent(made))));
        }
        let piece = Arc::new(self.make(at, run)?);
        *made = Arc::downgrade(&piece);
        drop(made);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= RECENT {
            recent.pop_front();
        }
        recent.push_back(Arc::clone(&piece));
        Ok(Some(Bytes::from_owner(Sent(piece))))
    }

    /// All of them, in order.
    pub fn pieces(self: &Arc<Self>) -> impl Iterator<Item = io::Result<Bytes>> + Send + use<> {
        let taken = Arc::clone(self);
        (0..).map_while(move |at| taken.piece(at).transpose())
    }

    fn make(&self, at: usize, run: &Run) -> io::Result<Vec<u8>> {
        let Pieces { query, format, open, ending, runs, .. } = &*self.pieces;
        let view = self.view.get_or_init(|| View::select_for(&self.snapshot.catalog, query, &Of(*format)));
        let (is_first, is_last) = (at == 0, at + 1 == runs.len());
        let mut piece = Vec::with_capacity(run.bytes + 1);
        if is_first {
            piece.extend_from_slice(open);
        }
        // Before the first tool of all stands no comma, and every later piece begins with a tool.
        let mut has_tools = !is_first;
        for part in view.parts.get(run.parts.clone()).unwrap_or_default() {
            let before = piece.len();
            if has_tools {
                piece.push(b',');
            }
            if written(view, part, *format, &mut piece).tools == 0 {
                piece.truncate(before);
            } else {
                has_tools = true;
            }
        }
        if is_last {
            ending.write(&mut piece);
        }
        let as_planned = piece.len() == run.bytes;
        let told = || format!("a piece of a list has {} bytes where {} were announced", piece.len(), run.bytes);
        if as_planned { Ok(piece) } else { Err(io::Error::other(told())) }
    }
}

impl Views {
    /// Whether a list has to be made in pieces, as far as that can be told before it is made: from the list before, or else its texts.
    pub(super) fn is_large(&self, view: &View, format: &dyn Format, known: Option<&Sums>) -> bool {
        let is_like_latest = || self.latest.tools(format.id()).is_some_and(|tools| view.len() <= tools * 2);
        known.is_some() || !is_like_latest() && texts(view) > self.most()
    }

    /// More bytes than this are never kept.
    pub(super) fn most(&self) -> u64 {
        self.max_bytes.max(SMALLEST)
    }
}
