//! What was decided about each tool of a list, for who asks for it: the list itself, why each tool is in it, and why others are not.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::render::Rendered;
use super::segment::Line;
use crate::catalog::{Catalog, Mark, View, ViewNote, ViewQuery};
use crate::formats::Format;
use crate::model::{Finding, ToolId, ViewTool};

/// What a report is made of.
pub(super) struct Told<'a> {
    pub(super) view: &'a View,
    pub(super) query: &'a ViewQuery,
    pub(super) format: &'a dyn Format,
}

/// What a prompt cache still has of a list that a conversation carries.
struct Prefix {
    /// Tools from the first on that are written as they were.
    kept: usize,
    /// Whether those are all.
    whole: bool,
}

/// A list that is not what the conversation carries from its first tool on.
const BROKEN: &str = "prefix-broken";

impl Told<'_> {
    /// What the asker should know, by short names.
    pub(super) fn notes(&self, lines: &[Option<Line>]) -> Arc<[&'static str]> {
        let broken = self.prefix(lines).filter(|prefix| !prefix.whole).map(|_| BROKEN);
        self.view.notes.iter().map(|note| note.code()).chain(broken).collect()
    }

    /// The list as it was rendered, with what was decided.
    pub(super) fn report(&self, catalog: &Catalog, rendered: &Rendered) -> Vec<u8> {
        let report = json!({
            "format": self.format.id().split('+').next(),
            "revision": catalog.revision_for(self.query).to_string(),
            "tokens": rendered.tokens,
            "budget": {"max_tools": self.query.max_tools, "max_tokens": self.query.max_tokens, "cap": self.query.cap},
            "selection": rendered.selection,
            "sticky": self.sticky(rendered),
            "notes": self.spelled(rendered),
            "listed": self.listed(rendered),
            "left_out": self.left_out(catalog, rendered),
            "findings": rendered.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        let mut body = br#"{"tools":"#.to_vec();
        body.extend_from_slice(&rendered.body);
        body.extend_from_slice(br#","report":"#);
        body.extend_from_slice(report.to_string().as_bytes());
        body.push(b'}');
        body
    }

    /// The tools in the list, in its order.
    fn listed(&self, rendered: &Rendered) -> Vec<Value> {
        let written = self.view.tools().zip(&rendered.lines).filter_map(|(tool, line)| Some((tool, (*line)?)));
        written.map(|(tool, line)| self.line(tool, line)).collect()
    }

    fn line(&self, tool: &ViewTool, line: Line) -> Value {
        let pick = self.view.picks.get(&tool.id);
        json!({
            "name": tool.name.as_str(),
            "id": tool.id.to_string(),
            "tokens": self.format.limits().tokens(line.bytes as usize),
            // Without a choice every tool that the asker may see is in the list.
            "why": pick.map_or("all", |pick| pick.why.as_str()),
            "rank": pick.map(|pick| pick.rank),
            "score": pick.and_then(|pick| pick.score).map(rounded),
            "deferred": pick.is_some_and(|pick| pick.deferred),
        })
    }

    /// Every other published tool, in order, each with its one reason.
    fn left_out(&self, catalog: &Catalog, rendered: &Rendered) -> Vec<Value> {
        let mut told: BTreeMap<(ToolId, &str), &Finding> = BTreeMap::new();
        for finding in &rendered.findings {
            if let (Some(scenario), Some(tool)) = (&finding.scenario, &finding.tool) {
                let key = (ToolId::new(scenario.clone(), Arc::clone(tool)), finding.code.as_str());
                told.entry(key).or_insert(finding);
            }
        }
        let absences = self.view.absences(catalog, self.query).into_iter();
        let mut left: Vec<(ToolId, Value)> = absences
            .map(|left| (left.tool.id.clone(), absent(&left.tool, left.why.code(), &left.why.to_string())))
            .collect();
        let unsaid = self.view.tools().zip(&rendered.lines).filter(|(_, line)| line.is_none()).map(|(tool, _)| tool);
        left.extend(unsaid.map(|tool| {
            // The native list calls a tool that it cannot embed lossy: programs still get the rest of it elsewhere.
            let why = ["tool-quarantined", "lossy"].iter().find_map(|code| told.get(&(tool.id.clone(), *code)));
            let why = why.map_or("the format cannot say it", |finding| finding.message.as_str());
            (tool.id.clone(), absent(tool, "tool-quarantined", why))
        }));
        left.sort_by(|(a, _), (b, _)| a.cmp(b));
        left.into_iter().map(|(_, left)| left).collect()
    }

    /// What became of the tools that the conversation carries.
    fn sticky(&self, rendered: &Rendered) -> Value {
        let (Some(carried), Some(prefix)) = (&self.query.sticky, self.prefix(&rendered.lines)) else {
            return Value::Null;
        };
        let place = carried.marks().get(prefix.kept);
        let here = place.and_then(|mark| self.view.tools().find(|tool| Mark::of(&tool.id, b"").tool == mark.tool));
        let broken = place.map(|_| match here {
            Some(tool) => format!("`{}` is written otherwise or stands elsewhere now", tool.name),
            None => format!("the tool at place {} is not in the list any more", prefix.kept + 1),
        });
        json!({"carried": carried.marks().len(), "prefix": prefix.kept, "broken": broken})
    }

    fn prefix(&self, lines: &[Option<Line>]) -> Option<Prefix> {
        let carried = self.query.sticky.as_ref()?.marks();
        let loaded = self.view.tools().zip(lines).filter(|(tool, _)| !self.view.is_deferred(tool));
        let marks = loaded.filter_map(|(_, line)| Some((*line)?.mark));
        let kept = carried.iter().zip(marks).take_while(|(was, is)| *was == is).count();
        Some(Prefix { kept, whole: kept == carried.len() })
    }

    /// The notes in words.
    fn spelled(&self, rendered: &Rendered) -> Vec<Value> {
        let prefix = self.prefix(&rendered.lines).filter(|prefix| !prefix.whole).map(|prefix| {
            let kept = prefix.kept;
            (BROKEN, format!("a prompt cache is of use up to the tool at place {kept}, and not beyond"))
        });
        let notes = self.view.notes.iter().map(|note| (note.code(), note_text(*note))).chain(prefix);
        notes.map(|(code, message)| json!({"code": code, "message": message})).collect()
    }
}

fn note_text(note: ViewNote) -> String {
    match note {
        ViewNote::PinnedOverBudget => "the pinned tools alone are beyond the budget; they stay".to_owned(),
        ViewNote::OneLoaded => "no tool would be loaded, so the best one is: not all tools can be deferred".to_owned(),
        ViewNote::StickyUnknown => {
            "`sticky` is no selection of an earlier list; tools were chosen as without it".to_owned()
        }
        ViewNote::StickyGone(gone) => {
            format!("tools that the conversation carries and that are not in the list: {gone}")
        }
    }
}

fn absent(tool: &ViewTool, code: &str, reason: &str) -> Value {
    json!({"name": tool.name.as_str(), "id": tool.id.to_string(), "code": code, "reason": reason})
}

/// A finding: `{"severity", "code", "scenario", "tool", "message", "hint", "pointer"}`.
pub(crate) fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity().as_str(),
        "code": finding.code.as_str(),
        "scenario": finding.scenario.as_ref().map(ToString::to_string),
        "tool": finding.tool.as_deref(),
        "message": finding.message,
        "hint": finding.hint,
        "pointer": finding.pointer,
    })
}

/// Three digits after the point: what is beyond says nothing, and a list of scores is read by people.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1_000.0).round() / 1_000.0
}
