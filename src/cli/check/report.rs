//! The findings, printed for people or for machines.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::output;
use super::super::paragraph::{self, Paragraph};
use super::position::lines_of;
use crate::calls::validate::listed;
use crate::model::{Finding, Manifest, Severity};
use crate::protocols::tool_discovery::Inspected;

/// The findings of one document or scenario.
pub(super) struct CheckReport {
    subject: String,
    inspected: Inspected,
    strict: bool,
    /// The lines of the findings' pointers, if it is a file.
    lines: Option<HashMap<String, usize>>,
}

impl CheckReport {
    /// With `strict`, warnings count and show as errors.
    pub(super) fn new(subject: String, mut inspected: Inspected, strict: bool) -> Self {
        let unusable = inspected
            .manifest
            .iter()
            .flat_map(listed::unusable_schemas_of);
        inspected.findings.extend(unusable);
        Self {
            subject,
            inspected,
            strict,
            lines: None,
        }
    }

    /// The same for a file with this text, whose lines are shown.
    pub(super) fn of_file(self, text: &[u8]) -> Self {
        let pointers = self
            .inspected
            .findings
            .iter()
            .filter_map(|finding| finding.pointer.as_deref());
        let lines = lines_of(std::str::from_utf8(text).unwrap_or_default(), pointers);
        Self {
            lines: Some(lines),
            ..self
        }
    }

    /// How much a finding matters here.
    fn severity(&self, finding: &Finding) -> Severity {
        match finding.severity() {
            Severity::Warning if self.strict => Severity::Error,
            severity => severity,
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.inspected
            .findings
            .iter()
            .filter(|finding| self.severity(finding) == severity)
            .count()
    }

    /// How much the worst finding matters.
    pub(super) fn worst(&self) -> Option<Severity> {
        self.inspected
            .findings
            .iter()
            .map(|finding| self.severity(finding))
            .max()
    }

    /// Prints a paragraph for each finding, those of a tool together, and a line that sums it up.
    pub(super) fn print(&self) {
        let paragraphs: Vec<Paragraph> = self
            .grouped()
            .map(|finding| self.paragraph(finding))
            .collect();
        if !paragraphs.is_empty() {
            paragraph::print_all(&paragraphs);
            output::line("");
        }
        output::line(&output::sanitize(&self.summary()));
        let Some(offer) = self.inspected.manifest.as_ref().map(ListedTools::new) else {
            return;
        };
        for (what, names) in offer.left_out() {
            let names = output::cut(&names.join(", "), 2_000);
            output::wrapped("", &output::sanitize(&format!("{what}: {names}")));
        }
        output::line(&offer.summary());
    }

    /// The findings, first those about the whole, then those of each tool in the order of the
    /// document.
    fn grouped(&self) -> impl Iterator<Item = &Finding> {
        let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
        for finding in &self.inspected.findings {
            let subject = subject(finding);
            match groups.iter_mut().find(|(known, _)| *known == subject) {
                Some((_, group)) => group.push(finding),
                None => groups.push((subject, vec![finding])),
            }
        }
        groups.sort_by_key(|(subject, _)| !subject.is_empty());
        groups.into_iter().flat_map(|(_, group)| group)
    }

    fn paragraph(&self, finding: &Finding) -> Paragraph {
        let shown = |text: &str| output::sanitize(text);
        Paragraph {
            severity: self.severity(finding).as_str().to_owned(),
            code: finding.code.as_str().to_owned(),
            subject: shown(&subject(finding)),
            place: shown(&self.place(finding)),
            message: shown(&finding.message),
            items: Vec::new(),
            hint: shown(finding.hint.as_deref().unwrap_or_default()),
        }
    }

    /// Where it is: the line of the file, and the JSON pointer.
    fn place(&self, finding: &Finding) -> String {
        let Some(pointer) = &finding.pointer else {
            return String::new();
        };
        match self.line(pointer) {
            Some(line) => format!("{}:{line} {pointer}", self.subject),
            None => pointer.clone(),
        }
    }

    /// The line of a place in the file that was checked, from 1 on.
    fn line(&self, pointer: &str) -> Option<usize> {
        self.lines.as_ref()?.get(pointer).copied()
    }

    /// Prints a workflow command of GitHub for each finding, which shows it at its line.
    pub(super) fn print_github(&self) {
        for finding in self.grouped() {
            let level = match self.severity(finding) {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "notice",
            };
            let line = finding
                .pointer
                .as_deref()
                .and_then(|pointer| self.line(pointer));
            let file = self
                .lines
                .is_some()
                .then(|| format!("file={},", github_property(&self.subject)));
            let line = line.map(|line| format!("line={line},"));
            let place = format!("{}{}", file.unwrap_or_default(), line.unwrap_or_default());
            let subject = subject(finding);
            let subject = if subject.is_empty() {
                subject
            } else {
                format!("{subject}: ")
            };
            let hint = finding
                .hint
                .as_ref()
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            let text = github_text(&format!("{subject}{}{hint}", finding.message));
            output::line(&format!("::{level} {place}title={}::{text}", finding.code));
        }
    }

    /// `2 errors, 3 warnings in 17 tools of agent-manager 1.0.0`.
    fn summary(&self) -> String {
        let counts = [
            (Severity::Error, "error"),
            (Severity::Warning, "warning"),
            (Severity::Info, "info"),
        ]
        .map(|(severity, word)| (self.count(severity), word))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| output::count(count, word))
        .collect::<Vec<_>>()
        .join(", ");
        let found = if counts.is_empty() {
            "no problems found"
        } else {
            &counts
        };
        let Some(manifest) = &self.inspected.manifest else {
            return format!("{found} in {}", self.subject);
        };
        let source = match (
            manifest.scenario.name.as_ref(),
            manifest.scenario.version.as_ref(),
        ) {
            ("", _) => self.subject.clone(),
            (name, "") => name.to_owned(),
            (name, version) => format!("{name} {version}"),
        };
        format!(
            "{found} in {} of {}",
            output::count(manifest.tools.len(), "tool"),
            output::cut(&source, 200)
        )
    }

    /// What was checked.
    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// Prints one JSON object.
    pub(super) fn print_json(&self) {
        output::json(&self.to_json());
    }

    /// The report as one JSON object.
    pub(super) fn to_json(&self) -> Value {
        let manifest = self.inspected.manifest.as_ref();
        let offer = manifest.map(ListedTools::new);
        let findings: Vec<Value> = self
            .inspected
            .findings
            .iter()
            .map(|finding| self.finding(finding))
            .collect();
        json!({
            "checked": self.subject,
            "scenario": manifest.map(|manifest| manifest.scenario.name.as_ref()),
            "version": manifest.map(|manifest| manifest.scenario.version.as_ref()),
            "tools": manifest.map(|manifest| manifest.tools.len()),
            "errors": self.count(Severity::Error),
            "warnings": self.count(Severity::Warning),
            "infos": self.count(Severity::Info),
            "listed": offer.as_ref().map(|offer| offer.listed),
            "need_approval": offer.as_ref().map(|offer| offer.need_approval),
            "disabled": offer.as_ref().map(|offer| &offer.disabled),
            "internal": offer.as_ref().map(|offer| &offer.internal),
            "findings": findings,
        })
    }

    fn finding(&self, finding: &Finding) -> Value {
        json!({
            "severity": self.severity(finding).as_str(),
            "code": finding.code.as_str(),
            "tool": finding.tool.as_deref(),
            "pointer": finding.pointer,
            "line": finding.pointer.as_deref().and_then(|pointer| self.line(pointer)),
            "message": finding.message,
            "hint": finding.hint,
        })
    }
}

/// What a list would have of a manifest if no preference says otherwise.
struct ListedTools<'a> {
    tools: usize,
    listed: usize,
    /// How many of those that are listed need approval.
    need_approval: usize,
    disabled: Vec<&'a str>,
    internal: Vec<&'a str>,
}

impl<'a> ListedTools<'a> {
    fn new(manifest: &'a Manifest) -> Self {
        let mut offer = Self {
            tools: manifest.tools.len(),
            listed: 0,
            need_approval: 0,
            disabled: Vec::new(),
            internal: Vec::new(),
        };
        for tool in &manifest.tools {
            let facts = &tool.facts;
            match (facts.enabled_by_default, facts.internal_only) {
                (false, _) => offer.disabled.push(&tool.name),
                (true, true) => offer.internal.push(&tool.name),
                (true, false) => {
                    offer.listed += 1;
                    offer.need_approval += usize::from(facts.requires_approval);
                }
            }
        }
        offer
    }

    /// The tools that would not be listed, by the reason, with the reason.
    fn left_out(&self) -> impl Iterator<Item = (&'static str, &[&'a str])> {
        let all = [
            ("disabled by default", &self.disabled),
            ("internal, never shown to an LLM", &self.internal),
        ];
        all.into_iter()
            .map(|(what, names)| (what, names.as_slice()))
            .filter(|(_, names)| !names.is_empty())
    }

    /// `2 of 3 tools would be listed; 1 of these needs approval`.
    fn summary(&self) -> String {
        let approval = match (self.listed, self.need_approval) {
            (0, _) => String::new(),
            (_, 0) => "; none of these needs approval".to_owned(),
            (_, 1) => "; 1 of these needs approval".to_owned(),
            (_, several) => format!("; {several} of these need approval"),
        };
        format!(
            "{} of {} would be listed{approval}",
            self.listed,
            output::count(self.tools, "tool")
        )
    }
}

/// The tool that a finding is about; by its position in the list if it has no usable name; empty
/// for the whole.
fn subject(finding: &Finding) -> String {
    let place = || {
        finding
            .pointer
            .as_deref()?
            .strip_prefix("/tools/")?
            .split('/')
            .next()
    };
    match (&finding.tool, place()) {
        (Some(tool), _) => tool.to_string(),
        (None, Some(index)) => format!("tool {index}"),
        (None, None) => String::new(),
    }
}

/// A text of a workflow command, with what would end it escaped.
fn github_text(text: &str) -> String {
    output::sanitize(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property of a workflow command.
fn github_property(text: &str) -> String {
    github_text(text).replace(':', "%3A").replace(',', "%2C")
}
