//! The report of a list for its client: the list itself, why each tool is in it, and why the others
//! are not.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::cost::{CostJson, ToolCost};
use super::latest_lists::WrittenTool;
use super::render::Rendered;
use crate::catalog::{Catalog, ToolMark, View, ViewNote, ViewQuery};
use crate::formats::Format;
use crate::model::{Finding, FindingCode, ScenarioName, Severity, ToolId, ViewTool};

/// The inputs of a report.
pub(super) struct ReportBuilder<'a> {
    pub(super) view: &'a View,
    pub(super) query: &'a ViewQuery,
    pub(super) format: &'a dyn Format,
}

/// The part of a conversation's earlier list that a prompt cache can still use.
struct Prefix {
    /// How many tools, from the first on, are written unchanged.
    kept: usize,
    /// Whether these are all.
    whole: bool,
}

/// One explained decision.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(crate) struct FindingJson<'a> {
    /// How much it matters.
    #[schemars(schema_with = "severities")]
    severity: &'static str,
    /// What kind of decision.
    #[schemars(schema_with = "codes")]
    code: &'static str,
    /// The scenario it is about.
    scenario: Option<&'a str>,
    /// The tool it is about, by its original name.
    tool: Option<&'a str>,
    /// What was decided and why.
    message: &'a str,
    /// The next step for a person.
    hint: Option<&'a str>,
    /// Where in the document (RFC 6901).
    pointer: Option<&'a str>,
    /// Other tools that the decision is about, as `scenario/tool`, such as those of the same name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
    /// The format that it is about, if it is about one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a str>,
}

/// The decision about each published tool, for one client.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub(crate) struct ReportJson<'a> {
    /// The shape of the list.
    format: &'a str,
    /// The catalog's revision in the client's scope.
    revision: String,
    /// Estimated tokens of the tools that are not deferred.
    tokens: usize,
    budget: BudgetJson,
    /// What a conversation hands back as `sticky`.
    selection: Option<&'a str>,
    /// What became of the tools that the conversation carries; `null` when it carries none.
    sticky: Option<StickyJson>,
    /// What to know of the choice.
    notes: Vec<NoteJson>,
    /// The tools in the list, in its order.
    listed: Vec<ListedJson<'a>>,
    /// Every other published tool, each with its one reason.
    left_out: Vec<AbsentJson>,
    /// What the list costs, and what would save tokens.
    cost: Box<CostJson<'a>>,
    /// What a limit or the format left out or changed.
    findings: Vec<FindingJson<'a>>,
}

/// What the list had to fit in; `null` means no limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Budget")]
struct BudgetJson {
    max_tools: Option<usize>,
    max_tokens: Option<usize>,
    /// The format's own limit in tools.
    cap: Option<usize>,
}

/// What became of the tools that a conversation carries.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Sticky")]
struct StickyJson {
    /// How many it carries.
    carried: usize,
    /// How many of them, from the first on, are written as they were: what a prompt cache still
    /// has.
    prefix: usize,
    /// Why it is not all of them.
    broken: Option<String>,
}

/// What to know of a choice.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Note")]
struct NoteJson {
    code: &'static str,
    message: String,
}

/// A tool in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
struct ListedJson<'a> {
    /// The published name.
    name: &'a str,
    /// `scenario/tool`.
    id: String,
    /// Estimated.
    #[serde(flatten)]
    cost: ToolCost,
    /// Why it is in the list.
    why: &'static str,
    /// Its place in what was chosen.
    rank: Option<usize>,
    /// How well it fits `q`.
    score: Option<f64>,
    /// Whether it is there by name only.
    deferred: bool,
}

/// A published tool that is not in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LeftOut")]
struct AbsentJson {
    name: String,
    /// `scenario/tool`.
    id: String,
    code: &'static str,
    reason: String,
}

/// The list does not start with the tools that the conversation carries.
const BROKEN: &str = "prefix-broken";

impl ReportBuilder<'_> {
    /// Notes for the client, by short names.
    pub(super) fn notes(&self, lines: &[Option<WrittenTool>]) -> Arc<[&'static str]> {
        let broken = self
            .prefix(lines)
            .filter(|prefix| !prefix.whole)
            .map(|_| BROKEN);
        self.view
            .notes
            .iter()
            .map(|note| note.code())
            .chain(broken)
            .collect()
    }

    /// The rendered list with its report.
    pub(super) fn report(&self, catalog: &Catalog, rendered: &Rendered) -> Vec<u8> {
        let report = ReportJson {
            format: self.format.id().split('+').next().unwrap_or_default(),
            revision: catalog.revision_for(self.query).to_string(),
            tokens: rendered.tokens,
            budget: BudgetJson {
                max_tools: self.query.max_tools,
                max_tokens: self.query.max_tokens,
                cap: self.query.cap,
            },
            selection: rendered.selection.as_deref(),
            sticky: self.sticky(rendered),
            notes: self.spelled(rendered),
            listed: self.listed(rendered),
            left_out: self.left_out(catalog, rendered),
            cost: Box::new(self.cost(rendered)),
            findings: rendered.findings.iter().map(finding).collect(),
        };
        let mut body = br#"{"tools":"#.to_vec();
        body.extend_from_slice(&rendered.body);
        body.extend_from_slice(br#","report":"#);
        // Texts and numbers can always be serialised.
        body.extend_from_slice(&serde_json::to_vec(&report).unwrap_or_default());
        body.push(b'}');
        body
    }

    /// The tools in the list, in its order.
    fn listed(&self, rendered: &Rendered) -> Vec<ListedJson<'_>> {
        let written = self
            .view
            .tools()
            .zip(&rendered.lines)
            .filter_map(|(tool, line)| Some((tool, (*line)?)));
        written.map(|(tool, line)| self.line(tool, line)).collect()
    }

    fn line<'a>(&self, tool: &'a ViewTool, line: WrittenTool) -> ListedJson<'a> {
        let pick = self.view.picks.get(&tool.id);
        ListedJson {
            name: tool.name.as_str(),
            id: tool.id.to_string(),
            cost: ToolCost::new(tool, line.bytes as usize, self.format),
            // Without a selection, every tool that the client may see is in the list.
            why: pick.map_or("all", |pick| pick.why.as_str()),
            rank: pick.map(|pick| pick.rank),
            score: pick.and_then(|pick| pick.score).map(rounded),
            deferred: pick.is_some_and(|pick| pick.deferred),
        }
    }

    /// What the list costs.
    fn cost(&self, rendered: &Rendered) -> CostJson<'_> {
        let bytes = rendered
            .lines
            .iter()
            .map(|line| line.map(|line| line.bytes as usize));
        CostJson::new(self.view, self.format, bytes)
    }

    /// Every other published tool, in order, each with one reason.
    fn left_out(&self, catalog: &Catalog, rendered: &Rendered) -> Vec<AbsentJson> {
        let mut first_findings: BTreeMap<(ToolId, &str), &Finding> = BTreeMap::new();
        for finding in &rendered.findings {
            if let (Some(scenario), Some(tool)) = (&finding.scenario, &finding.tool) {
                let key = (
                    ToolId::new(scenario.clone(), Arc::clone(tool)),
                    finding.code.as_str(),
                );
                first_findings.entry(key).or_insert(finding);
            }
        }
        let absences = self.view.absences(catalog, self.query).into_iter();
        let mut left: Vec<(ToolId, AbsentJson)> = absences
            .map(|left| {
                (
                    left.tool.id.clone(),
                    absent(&left.tool, left.why.code(), &left.why.to_string()),
                )
            })
            .collect();
        let unrendered = self
            .view
            .tools()
            .zip(&rendered.lines)
            .filter(|(_, line)| line.is_none())
            .map(|(tool, _)| tool);
        left.extend(unrendered.map(|tool| {
            // The native list reports a tool that it cannot embed as `lossy`, because programs
            // still get the rest of the tool elsewhere.
            let why = ["tool-quarantined", "lossy"]
                .iter()
                .find_map(|code| first_findings.get(&(tool.id.clone(), *code)));
            let why = why.map_or("the format cannot express it", |finding| {
                finding.message.as_str()
            });
            (tool.id.clone(), absent(tool, "tool-quarantined", why))
        }));
        left.sort_by(|(a, _), (b, _)| a.cmp(b));
        left.into_iter().map(|(_, left)| left).collect()
    }

    /// The state of the tools that the conversation carries.
    fn sticky(&self, rendered: &Rendered) -> Option<StickyJson> {
        let carried = self.query.sticky.as_ref()?;
        let prefix = self.prefix(&rendered.lines)?;
        let place = carried.marks().get(prefix.kept);
        let here = place.and_then(|mark| {
            self.view
                .tools()
                .find(|tool| ToolMark::new(&tool.id, b"").tool == mark.tool)
        });
        let broken = place.map(|_| match here {
            Some(tool) => format!("`{}` changed or moved", tool.name),
            None => format!(
                "the tool at place {} is not in the list any more",
                prefix.kept + 1
            ),
        });
        Some(StickyJson {
            carried: carried.marks().len(),
            prefix: prefix.kept,
            broken,
        })
    }

    fn prefix(&self, lines: &[Option<WrittenTool>]) -> Option<Prefix> {
        let carried = self.query.sticky.as_ref()?.marks();
        let loaded = self
            .view
            .tools()
            .zip(lines)
            .filter(|(tool, _)| !self.view.is_deferred(tool));
        let marks = loaded.filter_map(|(_, line)| Some((*line)?.mark));
        let kept = carried
            .iter()
            .zip(marks)
            .take_while(|(was, is)| *was == is)
            .count();
        Some(Prefix {
            kept,
            whole: kept == carried.len(),
        })
    }

    /// The notes as texts.
    fn spelled(&self, rendered: &Rendered) -> Vec<NoteJson> {
        let prefix = self
            .prefix(&rendered.lines)
            .filter(|prefix| !prefix.whole)
            .map(|prefix| {
                let kept = prefix.kept;
                (
                    BROKEN,
                    format!(
                        "a prompt cache is of use up to the tool at place {kept}, and not beyond"
                    ),
                )
            });
        let notes = self
            .view
            .notes
            .iter()
            .map(|note| (note.code(), note_text(*note)))
            .chain(prefix);
        notes
            .map(|(code, message)| NoteJson { code, message })
            .collect()
    }
}

fn note_text(note: ViewNote) -> String {
    match note {
        ViewNote::PinnedOverBudget => {
            "the tools that are always listed are beyond the budget by themselves; they stay"
                .to_owned()
        }
        ViewNote::OneLoaded => {
            "no tool would be loaded, so the best one is: not all tools can be deferred".to_owned()
        }
        ViewNote::StickyUnknown => {
            "`sticky` is not a selection of an earlier list; it was ignored".to_owned()
        }
        ViewNote::StickyGone(gone) => {
            format!("tools that the conversation carries and that are not in the list: {gone}")
        }
    }
}

fn absent(tool: &ViewTool, code: &'static str, reason: &str) -> AbsentJson {
    AbsentJson {
        name: tool.name.as_str().to_owned(),
        id: tool.id.to_string(),
        code,
        reason: reason.to_owned(),
    }
}

/// A finding as it is written.
pub(crate) fn finding(finding: &Finding) -> FindingJson<'_> {
    FindingJson {
        severity: finding.severity().as_str(),
        code: finding.code.as_str(),
        scenario: finding.scenario.as_ref().map(ScenarioName::as_str),
        tool: finding.tool.as_deref(),
        message: &finding.message,
        hint: finding.hint.as_deref(),
        pointer: finding.pointer.as_deref(),
        others: finding.others.iter().map(ToString::to_string).collect(),
        format: finding.format,
    }
}

fn severities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Severity::ALL.map(Severity::as_str)})
}

fn codes(_: &mut SchemaGenerator) -> Schema {
    let codes: Vec<&str> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
    json_schema!({"type": "string", "enum": codes})
}

/// Rounds to three decimals: further digits carry no information, and people read the scores.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1_000.0).round() / 1_000.0
}
