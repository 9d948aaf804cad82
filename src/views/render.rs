//! A view as the bytes of a format. Pure: the same view gives the same bytes.

use std::sync::Arc;

use jiff::Timestamp;

use super::categories;
use super::segment::Segment;
use crate::catalog::View;
use crate::formats::{Format, ListHead};
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

/// Renders a view. `generated_at` is when its revision came to be.
pub fn render(view: &View, generated_at: Timestamp, format: &dyn Format) -> Rendered {
    let segments: Vec<_> = view.parts.iter().map(|part| Arc::new(Segment::encode(&part.tools, format))).collect();
    join(view, generated_at, format, &segments)
}

/// Joins the segments of a view, one for each of its parts, in order.
pub fn join(view: &View, generated_at: Timestamp, format: &dyn Format, segments: &[Arc<Segment>]) -> Rendered {
    let categories = categories::of_view(view);
    let frame = format.frame(&ListHead { generated_at, categories: categories.unique });
    let size: usize = segments.iter().map(|segment| segment.bytes.len() + 1).sum();
    let mut body = frame.open;
    body.reserve_exact(size + frame.close.len());
    let mut tools = 0;
    for segment in segments.iter().filter(|segment| segment.tools > 0) {
        if tools > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&segment.bytes);
        tools += segment.tools;
    }
    body.extend_from_slice(&frame.close);

    let listed = view.len();
    let mut findings: Vec<_> = view.left_out.iter().map(|tool| over_limit(tool, listed, format)).collect();
    findings.extend(segments.iter().flat_map(|segment| segment.findings.iter().cloned()));
    if !format.for_llm() {
        // Lists for LLMs have no groupings.
        findings.extend(categories.findings);
    }
    findings.sort();
    let left_out = view.left_out.len() + segments.iter().map(|segment| segment.left_out).sum::<usize>();
    Rendered { body, tools, left_out, findings }
}

fn over_limit(tool: &ViewTool, most: usize, format: &dyn Format) -> Finding {
    let message =
        format!("left out of `{}`: the list takes at most {most} tools and others come before it", format.id());
    Finding::new(FindingCode::OverLimit, message)
        .of_scenario(&tool.id.scenario)
        .of_tool(tool.id.tool.clone())
        .hint("narrow the list by scenario, category, tag or words, give the tool a higher priority, or lift the limit with `max_tools=0`")
}
