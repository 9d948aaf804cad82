//! Renders a view as the bytes of a format. Pure: the same view gives the same bytes.

use jiff::Timestamp;

use super::categories;
use super::latest_lists::{CachedList, Segment, Segments, Written, WrittenTool};
use crate::catalog::{Absence, LeftOut, StickyTools, ToolMark, View};
use crate::formats::{EndMark, Format, ListHead, Spent};
use crate::model::{Finding, FindingCode};

/// A rendered list.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// Its JSON text.
    pub body: Vec<u8>,
    /// Tools in it.
    pub tools: usize,
    /// How many of them are deferred.
    pub deferred: usize,
    /// Estimated tokens of the other tools in a prompt (see
    /// [`crate::formats::FormatLimits::tokens`]).
    pub tokens: usize,
    /// The text that a conversation with this list returns as
    /// [`crate::catalog::ViewQuery::sticky`]: its tools that are not deferred. `None` if there are
    /// more than [`StickyTools::MOST`].
    pub selection: Option<String>,
    /// Tools that a limit or the format left out.
    pub left_out: usize,
    /// What a limit or the format left out or changed, in order.
    pub findings: Vec<Finding>,
    /// The tools of the view in order; `None` if the format left one out.
    pub(super) lines: Vec<Option<WrittenTool>>,
}

/// The origin of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListOrigin<'a> {
    /// When its revision was published first.
    pub(super) generated_at: Timestamp,
    /// The daemon that writes it, if it has an id.
    pub(super) own_id: Option<&'a str>,
}

/// Renders a view for a daemon without an id. `generated_at` is when its revision was published
/// first.
pub fn render(view: &View, generated_at: Timestamp, format: &dyn Format) -> Rendered {
    render_again(
        view,
        ListOrigin {
            generated_at,
            own_id: None,
        },
        format,
        None,
    )
    .0
}

/// The same, with segments copied from a known list. Also returns the segments of the new body.
pub(super) fn render_again(
    view: &View,
    origin: ListOrigin<'_>,
    format: &dyn Format,
    known: Option<&CachedList>,
) -> (Rendered, Segments) {
    let known = known.filter(|_| !format.request_wide());
    let mut spent = Spent::default();
    let categories = categories::for_view(view);
    let ListOrigin {
        generated_at,
        own_id,
    } = origin;
    let frame = format.frame(&ListHead {
        generated_at,
        own_id,
        categories: categories.unique,
    });
    let mut body = frame.open;
    body.reserve(known.map_or(0, CachedList::size));
    let mut places = Segments::new();
    let mut tools = 0;
    let mut left_out = 0;
    let mut noted = Vec::new();
    let mut lines = Vec::with_capacity(view.len());
    let mut deferred = 0;
    for part in &view.parts {
        let before = body.len();
        if tools > 0 {
            body.push(b',');
        }
        let start = body.len();
        let written = if let Some((bytes, written)) = known.and_then(|known| known.find(part)) {
            body.extend_from_slice(bytes);
            written.clone()
        } else {
            Written::write(view, &part.tools, format, &mut spent, &mut body)
        };
        tools += written.tools;
        deferred += written.deferred;
        lines.extend_from_slice(&written.lines);
        left_out += written.left_out;
        noted.extend_from_slice(&written.findings);
        let range = start..body.len();
        if range.is_empty() {
            body.truncate(before);
        }
        places.extend(Segment::for_part(part, range, written));
    }
    if tools > 0 {
        mark_end(format.end_mark(deferred), &mut body, &mut places);
    }
    body.extend_from_slice(&frame.close);
    if let Some(empty) = format.without_tools().filter(|_| tools == 0) {
        body = empty.into();
        places.clear();
    }
    // Unused capacity would be kept as long as the body.
    body.shrink_to_fit();

    let (over, findings) = all_findings(view, format, noted, categories.findings);
    left_out += over;
    let (tokens, selection) = loaded(view, &lines, format);
    (
        Rendered {
            body,
            tools,
            deferred,
            tokens,
            selection,
            left_out,
            findings,
            lines,
        },
        places,
    )
}

/// The tokens of the tools that are loaded at once, and the text by which a conversation carries
/// them.
fn loaded(
    view: &View,
    lines: &[Option<WrittenTool>],
    format: &dyn Format,
) -> (usize, Option<String>) {
    let mut tokens: usize = 0;
    let mut marks: Vec<ToolMark> = Vec::new();
    for (tool, line) in view.tools().zip(lines) {
        if let Some(line) = line.filter(|_| !view.is_deferred(tool)) {
            tokens += format.limits().tokens(line.bytes as usize);
            if marks.len() <= StickyTools::MOST {
                marks.push(line.mark);
            }
        }
    }
    (tokens, StickyTools::text(&marks))
}

/// All findings for the client of a list, in order, and how many tools a limit left out.
fn all_findings(
    view: &View,
    format: &dyn Format,
    noted: Vec<Finding>,
    of_categories: Vec<Finding>,
) -> (usize, Vec<Finding>) {
    let over = view.left_out.iter().filter(|left| left.why.is_budget());
    let mut findings: Vec<_> = over.map(|left| over_limit(left, format)).collect();
    let over = findings.len();
    findings.extend(noted);
    if !format.for_llm() {
        // Lists for LLMs have no categories.
        findings.extend(of_categories);
    }
    findings.sort();
    (over, findings)
}

/// Marks the end of the tools for a prompt cache.
fn mark_end(mark: EndMark, body: &mut Vec<u8>, places: &mut Segments) {
    match mark {
        EndMark::None => {}
        EndMark::Behind(element) => body.extend_from_slice(element.as_bytes()),
        EndMark::InLast(members) => {
            // The last tool is written differently once another one follows it.
            places.retain(|_, segment| !segment.ends_at(body.len()));
            body.pop();
            body.extend_from_slice(members.as_bytes());
            body.push(b'}');
        }
    }
}

fn over_limit(LeftOut { tool, why }: &LeftOut, format: &dyn Format) -> Finding {
    let hint = match why {
        Absence::OverTokens(_) => {
            "have the tool always listed (`pinned`), give it a higher priority, or raise `max_tokens`"
        }
        Absence::Deferred | Absence::OverDeferred(_) => {
            "have the tool always listed (`pinned`), give it a higher priority, or request the list without `defer`"
        }
        _ => {
            "narrow the list by scenario, category, tag or `q`, have the tool always listed (`pinned`), give it a higher priority, or lift the limit with \
             `max_tools=0`"
        }
    };
    Finding::new(
        FindingCode::OverLimit,
        format!("left out of `{}`: {why}", format.id()),
    )
    .of_scenario(&tool.id.scenario)
    .of_tool(tool.id.tool.clone())
    .hint(hint)
}
