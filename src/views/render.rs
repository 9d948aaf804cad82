//! A view as the bytes of a format. Pure: the same view gives the same bytes.

use jiff::Timestamp;

use super::categories;
use super::segment::{Known, Places, Segment, Written};
use crate::catalog::View;
use crate::formats::{EndMark, Format, ListHead, Spent};
use crate::model::{Finding, FindingCode, ViewTool};

/// A list in a format.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// Its JSON text.
    pub body: Vec<u8>,
    /// Tools in it.
    pub tools: usize,
    /// Tools that a limit or the format left out.
    pub left_out: usize,
    /// What a limit or the format left out or changed, in order.
    pub findings: Vec<Finding>,
}

/// Where a list comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    /// When its revision came to be.
    pub(super) generated_at: Timestamp,
    /// The daemon that writes it, if it has an id.
    pub(super) own_id: Option<&'a str>,
}

/// Renders a view of a daemon without an id. `generated_at` is when its revision came to be.
pub fn render(view: &View, generated_at: Timestamp, format: &dyn Format) -> Rendered {
    render_again(view, Origin { generated_at, own_id: None }, format, None).0
}

/// The same, with what can be taken over from a known list, and where in the body each scenario stands.
pub(super) fn render_again(
    view: &View,
    origin: Origin<'_>,
    format: &dyn Format,
    known: Option<&Known>,
) -> (Rendered, Places) {
    let known = known.filter(|_| !format.request_wide());
    let mut spent = Spent::default();
    let categories = categories::of_view(view);
    let Origin { generated_at, own_id } = origin;
    let frame = format.frame(&ListHead { generated_at, own_id, categories: categories.unique });
    let mut body = frame.open;
    body.reserve(known.map_or(0, Known::size));
    let (mut places, mut tools, mut left_out, mut noted) = (Places::new(), 0, 0, Vec::new());
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
            Written::of(&part.tools, format, &mut spent, &mut body)
        };
        tools += written.tools;
        left_out += written.left_out;
        noted.extend_from_slice(&written.findings);
        let range = start..body.len();
        if range.is_empty() {
            body.truncate(before);
        }
        places.extend(Segment::of(part, range, written));
    }
    if tools > 0 {
        mark_end(format.end_mark(), &mut body, &mut places);
    }
    body.extend_from_slice(&frame.close);
    if let Some(nothing) = format.without_tools().filter(|_| tools == 0) {
        body = nothing.into();
        places.clear();
    }
    // What the growth of the text left over would stay as long as the text.
    body.shrink_to_fit();

    let listed = view.len();
    let mut findings: Vec<_> = view.left_out.iter().map(|tool| over_limit(tool, listed, format)).collect();
    findings.extend(noted);
    if !format.for_llm() {
        // Lists for LLMs have no groupings.
        findings.extend(categories.findings);
    }
    findings.sort();
    (Rendered { body, tools, left_out: view.left_out.len() + left_out, findings }, places)
}

/// Marks the end of the tools for a prompt cache.
fn mark_end(mark: EndMark, body: &mut Vec<u8>, places: &mut Places) {
    match mark {
        EndMark::None => {}
        EndMark::Behind(element) => body.extend_from_slice(element.as_bytes()),
        EndMark::InLast(members) => {
            // The last tool is another one as soon as one comes behind it.
            places.retain(|_, segment| !segment.ends_at(body.len()));
            body.pop();
            body.extend_from_slice(members.as_bytes());
            body.push(b'}');
        }
    }
}

fn over_limit(tool: &ViewTool, most: usize, format: &dyn Format) -> Finding {
    let message =
        format!("left out of `{}`: the list takes at most {most} tools and others come before it", format.id());
    Finding::new(FindingCode::OverLimit, message)
        .of_scenario(&tool.id.scenario)
        .of_tool(tool.id.tool.clone())
        .hint("narrow the list by scenario, category, tag or words, give the tool a higher priority, or lift the limit with `max_tools=0`")
}
