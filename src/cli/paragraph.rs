//! Findings for people, one paragraph each, as compilers print theirs: what kind, of what, where,
//! what is wrong, what to do. Names stay whole, and lines keep to the terminal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::output;
use crate::model::FindingCode;

/// The most tools of equal names that one paragraph names.
const NAMED: usize = 20;

/// One paragraph. What is empty is left out.
#[derive(Debug, Default, Clone)]
pub(super) struct Paragraph {
    /// `error`, `warning`, `info` or another word for how it stands.
    pub(super) severity: String,
    /// What kind of thing.
    pub(super) code: String,
    /// What it is about.
    pub(super) subject: String,
    /// Where: a JSON pointer, or a place in a file.
    pub(super) place: String,
    /// What is wrong.
    pub(super) message: String,
    /// The next step.
    pub(super) hint: String,
}

impl Paragraph {
    /// A finding of an answer of the daemon.
    fn from_finding(finding: &Value) -> Self {
        let text = |pointer| output::text(finding, pointer);
        let subject = match (text("/scenario"), text("/tool")) {
            (scenario, tool) if tool.is_empty() => scenario,
            (scenario, tool) => format!("{scenario}/{tool}"),
        };
        Self {
            severity: text("/severity"),
            code: text("/code"),
            subject,
            place: text("/pointer"),
            message: text("/message"),
            hint: text("/hint"),
        }
    }

    /// Prints it.
    pub(super) fn print(&self) {
        let colour = match self.severity.as_str() {
            "error" => "\u{1b}[1;31m",
            "warning" => "\u{1b}[1;33m",
            _ => "\u{1b}[1m",
        };
        let gap = if self.subject.is_empty() { "" } else { " " };
        output::line(&format!("{colour}{}[{}]\u{1b}[0m{gap}{}", self.severity, self.code, self.subject));
        for (label, text) in [("  at ", &self.place), ("  ", &self.message), ("  hint: ", &self.hint)] {
            if !text.is_empty() {
                output::wrapped(label, text);
            }
        }
    }
}

/// Prints paragraphs with a blank line between each two.
pub(super) fn print_all(paragraphs: &[Paragraph]) {
    for (at, paragraph) in paragraphs.iter().enumerate() {
        if at > 0 {
            output::line("");
        }
        paragraph.print();
    }
}

/// The paragraphs of the daemon's findings, the worst first. Tools of equal names are one paragraph
/// for all scenarios that have them.
pub(super) fn of_findings(findings: &[Value]) -> Vec<Paragraph> {
    let mut collisions: BTreeMap<BTreeSet<String>, Vec<&Value>> = BTreeMap::new();
    let mut paragraphs = Vec::new();
    for finding in findings {
        match colliding(finding) {
            Some(scenarios) => collisions.entry(scenarios).or_default().push(finding),
            None => paragraphs.push(Paragraph::from_finding(finding)),
        }
    }
    paragraphs.extend(collisions.iter().map(|(scenarios, findings)| collision(scenarios, findings)));
    let rank = |paragraph: &Paragraph| match paragraph.severity.as_str() {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    };
    paragraphs.sort_by_key(rank);
    paragraphs
}

/// The scenarios that have a tool of the same name; `None` for findings of another kind.
fn colliding(finding: &Value) -> Option<BTreeSet<String>> {
    let is_collision = finding["code"] == FindingCode::NameCollision.as_str();
    let own = finding["scenario"].as_str().filter(|_| is_collision)?;
    let others = output::list(finding, "others").iter().filter_map(|id| id.as_str()?.split_once('/'));
    let all: BTreeSet<String> = others.map(|(scenario, _)| scenario).chain([own]).map(output::sanitize).collect();
    (all.len() > 1).then_some(all)
}

/// One paragraph for all tools of equal names of some scenarios.
fn collision(scenarios: &BTreeSet<String>, findings: &[&Value]) -> Paragraph {
    let names: BTreeSet<String> = findings.iter().map(|finding| output::text(finding, "/tool")).collect();
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let tools = output::count(names.len(), "tool");
    let message =
        format!("they have {tools} of the same name, published under longer names: {}{more}", shown.join(", "));
    let first = findings.first().copied().unwrap_or(&Value::Null);
    Paragraph {
        subject: scenarios.iter().cloned().collect::<Vec<_>>().join(", "),
        message,
        place: String::new(),
        ..Paragraph::from_finding(first)
    }
}

/// Prints the findings of an answer below what was printed before.
pub(super) fn print_findings(answer: &Value) {
    let paragraphs = of_findings(output::list(answer, "findings"));
    if !paragraphs.is_empty() {
        output::line("");
        print_all(&paragraphs);
    }
}
