//! Findings for people, one paragraph each, as compilers print theirs: what kind, of what, where,
//! what is wrong, what to do. Names stay whole, and lines keep to the terminal.
//! Findings of one cause are one paragraph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::output;
use crate::model::FindingCode;

/// The most tools or places that one paragraph names where lines have a width. In a pipe it names
/// all.
const NAMED: usize = 20;
/// The most scenarios that the first line of a paragraph names.
const SCENARIOS: usize = 5;
/// Fewer findings of one cause have a paragraph each.
const TOGETHER: usize = 3;

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
    /// The tools or places, if it stands for several findings.
    pub(super) items: Vec<String>,
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
            items: Vec::new(),
            hint: text("/hint"),
        }
    }

    /// One paragraph for several findings of one cause. `title` is its message if theirs differ.
    fn from_group(title: &str, findings: &[&Value]) -> Self {
        let all: Vec<Self> = findings
            .iter()
            .map(|finding| Self::from_finding(finding))
            .collect();
        let Some(first) = all.first() else {
            return Self::default();
        };
        let is_same = all.iter().all(|one| one.message == first.message);
        let mut items: Vec<String> = all
            .iter()
            .take(named())
            .map(|one| one.item(!is_same))
            .collect();
        if is_same && all.iter().all(|one| one.place.is_empty()) {
            items = vec![items.join(", ")];
        }
        if let Some(more) = all.len().checked_sub(named()).filter(|more| *more > 0) {
            items.push(format!("and {more} more, which `--json` shows"));
        }
        let hint = if first.hint.is_empty() || all.iter().all(|one| one.hint == first.hint) {
            first.hint.clone()
        } else {
            format!("for {}: {}", first.subject, first.hint)
        };
        Self {
            severity: first.severity.clone(),
            code: first.code.clone(),
            subject: group_subject(findings),
            place: String::new(),
            message: if is_same {
                first.message.clone()
            } else {
                title.to_owned()
            },
            items,
            hint,
        }
    }

    /// It in one line of a group.
    fn item(&self, with_message: bool) -> String {
        let place = if self.place.is_empty() {
            String::new()
        } else {
            format!(" at {}", self.place)
        };
        let message = if with_message {
            format!(": {}", self.message)
        } else {
            String::new()
        };
        format!("{}{place}{message}", self.subject)
            .trim_start()
            .to_owned()
    }

    /// Prints it.
    pub(super) fn print(&self) {
        let colour = match self.severity.as_str() {
            "error" => "\u{1b}[1;31m",
            "warning" => "\u{1b}[1;33m",
            _ => "\u{1b}[1m",
        };
        let gap = if self.subject.is_empty() { "" } else { " " };
        output::line(&format!(
            "{colour}{}[{}]\u{1b}[0m{gap}{}",
            self.severity, self.code, self.subject
        ));
        let items = self.items.iter().map(|item| ("    ", item));
        let lines = [("  at ", &self.place), ("  ", &self.message)]
            .into_iter()
            .chain(items);
        for (label, text) in lines
            .chain([("  hint: ", &self.hint)])
            .filter(|(_, text)| !text.is_empty())
        {
            output::wrapped(label, text);
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
/// for all scenarios that have them, what a format changes is one for the format, and others of the
/// same message are one as well.
pub(super) fn of_findings(findings: &[Value]) -> Vec<Paragraph> {
    let mut collisions: BTreeMap<BTreeSet<String>, Vec<&Value>> = BTreeMap::new();
    let mut groups: Vec<(ParagraphCause<'_>, Vec<&Value>)> = Vec::new();
    let mut places: HashMap<ParagraphCause<'_>, usize> = HashMap::new();
    for finding in findings {
        if let Some(scenarios) = colliding(finding) {
            collisions.entry(scenarios).or_default().push(finding);
            continue;
        }
        let cause = ParagraphCause::from_finding(finding);
        let place = *places.entry(cause).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(finding),
            None => groups.push((cause, vec![finding])),
        }
    }
    let mut paragraphs = Vec::new();
    for (ParagraphCause { text, .. }, group) in &groups {
        if group.len() < TOGETHER {
            paragraphs.extend(group.iter().map(|finding| Paragraph::from_finding(finding)));
        } else {
            paragraphs.push(Paragraph::from_group(
                &format!("changed for `{text}`"),
                group,
            ));
        }
    }
    paragraphs.extend(
        collisions
            .iter()
            .map(|(scenarios, findings)| collision(scenarios, findings)),
    );
    let rank = |paragraph: &Paragraph| match paragraph.severity.as_str() {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    };
    paragraphs.sort_by_key(rank);
    paragraphs
}

/// What the findings of one paragraph have in common: the code, and the message or the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ParagraphCause<'a> {
    code: &'a str,
    text: &'a str,
}

impl<'a> ParagraphCause<'a> {
    fn from_finding(finding: &'a Value) -> Self {
        let text = |member: &str| finding[member].as_str().unwrap_or_default();
        let code = text("code");
        let format = finding["format"]
            .as_str()
            .filter(|_| code == FindingCode::Lossy.as_str() && finding["tool"].is_string());
        Self {
            code,
            text: format.unwrap_or(text("message")),
        }
    }
}

/// `5 tools of mail, notes`, or what else the findings are about.
fn group_subject(findings: &[&Value]) -> String {
    let distinct = |pointers: &[&str]| {
        let key = |finding: &&Value| {
            pointers
                .iter()
                .map(|pointer| output::text(finding, pointer))
                .collect::<Vec<_>>()
        };
        findings.iter().map(key).collect::<BTreeSet<_>>()
    };
    let names: Vec<String> = distinct(&["/scenario"])
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .collect();
    let scenarios = match names.len() {
        0 => return output::count(findings.len(), "finding"),
        1..=SCENARIOS => names.join(", "),
        more => output::count(more, "scenario"),
    };
    let of_tools = findings
        .iter()
        .filter(|finding| finding["tool"].is_string())
        .count();
    if of_tools == findings.len() {
        format!(
            "{} of {scenarios}",
            output::count(distinct(&["/scenario", "/tool"]).len(), "tool")
        )
    } else {
        format!("{scenarios}: {}", output::count(findings.len(), "finding"))
    }
}

/// How many tools or places one paragraph names.
fn named() -> usize {
    if output::line_width().is_some() {
        NAMED
    } else {
        usize::MAX
    }
}

/// The scenarios that have a tool of the same name; `None` for findings of another kind, and where
/// another tool has the name by its alias: the message says which.
fn colliding(finding: &Value) -> Option<BTreeSet<String>> {
    let is_collision = finding["code"] == FindingCode::NameCollision.as_str();
    let own = finding["scenario"].as_str().filter(|_| is_collision)?;
    let others = output::list(finding, "others")
        .iter()
        .filter_map(|id| id.as_str()?.split_once('/'));
    if others.clone().any(|(_, tool)| finding["tool"] != tool) {
        return None;
    }
    let all: BTreeSet<String> = others
        .map(|(scenario, _)| scenario)
        .chain([own])
        .map(output::sanitize)
        .collect();
    (all.len() > 1).then_some(all)
}

/// One paragraph for all tools of equal names of some scenarios.
fn collision(scenarios: &BTreeSet<String>, findings: &[&Value]) -> Paragraph {
    let names: BTreeSet<String> = findings
        .iter()
        .map(|finding| output::text(finding, "/tool"))
        .collect();
    let shown: Vec<String> = names
        .iter()
        .take(named())
        .map(|name| format!("`{name}`"))
        .collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let tools = output::count(names.len(), "tool");
    let message = format!(
        "they have {tools} of the same name, published under longer names: {}{more}",
        shown.join(", ")
    );
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
