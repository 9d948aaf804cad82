//! The findings, printed for people or for machines.

use serde_json::{Value, json};

use super::super::output;
use super::super::table::{ColumnFit, TextTable, cell};
use crate::model::{Finding, Manifest, Severity};
use crate::protocols::tool_discovery::Inspected;

/// The findings of one document or scenario.
pub(super) struct CheckReport {
    subject: String,
    inspected: Inspected,
    strict: bool,
}

impl CheckReport {
    /// With `strict`, warnings count and show as errors.
    pub(super) fn new(subject: String, inspected: Inspected, strict: bool) -> Self {
        Self { subject, inspected, strict }
    }

    /// How much a finding matters here.
    fn severity(&self, finding: &Finding) -> Severity {
        match finding.severity() {
            Severity::Warning if self.strict => Severity::Error,
            severity => severity,
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.inspected.findings.iter().filter(|finding| self.severity(finding) == severity).count()
    }

    /// How much the worst finding matters.
    pub(super) fn worst(&self) -> Option<Severity> {
        self.inspected.findings.iter().map(|finding| self.severity(finding)).max()
    }

    /// Prints a table grouped by tool, and a line that sums it up.
    pub(super) fn print(&self) {
        let mut sheet = TextTable::new(&[
            ("TOOL", ColumnFit::Whole),
            ("SEVERITY", ColumnFit::Whole),
            ("CODE", ColumnFit::Whole),
            ("POINTER", ColumnFit::Wrap),
            ("MESSAGE", ColumnFit::Wrap),
            ("HINT", ColumnFit::Wrap),
        ]);
        let mut group = None;
        for finding in &self.inspected.findings {
            let tool = subject(finding);
            let again = group.as_ref() == Some(&tool);
            let shown = |text: &str| cell(output::sanitize(text));
            sheet.row([
                shown(if again { "" } else { &tool }),
                output::severity(self.severity(finding).as_str()),
                cell(finding.code.as_str()),
                shown(finding.pointer.as_deref().unwrap_or_default()),
                shown(&finding.message),
                shown(finding.hint.as_deref().unwrap_or_default()),
            ]);
            group = Some(tool);
        }
        if group.is_some() {
            sheet.print();
            output::line("");
        }
        output::line(&output::sanitize(&self.summary()));
        let Some(offer) = self.inspected.manifest.as_ref().map(ListedTools::new) else { return };
        for (what, names) in offer.left_out() {
            let names = output::cut(&names.join(", "), 2_000);
            output::line(&output::sanitize(&format!("{what}: {names}")));
        }
        output::line(&offer.summary());
    }

    /// `2 errors, 3 warnings in 17 tools of agent-manager 1.0.0`.
    fn summary(&self) -> String {
        let counts = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "info")]
            .map(|(severity, word)| (self.count(severity), word))
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| output::count(count, word))
            .collect::<Vec<_>>()
            .join(", ");
        let found = if counts.is_empty() { "no problems found" } else { &counts };
        let Some(manifest) = &self.inspected.manifest else { return format!("{found} in {}", self.subject) };
        let who = match (manifest.scenario.name.as_ref(), manifest.scenario.version.as_ref()) {
            ("", _) => self.subject.clone(),
            (name, "") => name.to_owned(),
            (name, version) => format!("{name} {version}"),
        };
        format!("{found} in {} of {}", output::count(manifest.tools.len(), "tool"), output::cut(&who, 200))
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
        let findings: Vec<Value> = self.inspected.findings.iter().map(|finding| self.finding(finding)).collect();
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
        let all = [("disabled by default", &self.disabled), ("internal, never shown to an LLM", &self.internal)];
        all.into_iter().map(|(what, names)| (what, names.as_slice())).filter(|(_, names)| !names.is_empty())
    }

    /// `2 of 3 tools would be listed; 1 of these needs approval`.
    fn summary(&self) -> String {
        let approval = match (self.listed, self.need_approval) {
            (0, _) => String::new(),
            (_, 0) => "; none of these needs approval".to_owned(),
            (_, 1) => "; 1 of these needs approval".to_owned(),
            (_, several) => format!("; {several} of these need approval"),
        };
        format!("{} of {} would be listed{approval}", self.listed, output::count(self.tools, "tool"))
    }
}

/// The tool that a finding is about; by its position in the list if it has no usable name.
fn subject(finding: &Finding) -> String {
    let place = || finding.pointer.as_deref()?.strip_prefix("/tools/")?.split('/').next();
    match (&finding.tool, place()) {
        (Some(tool), _) => tool.to_string(),
        (None, Some(index)) => format!("(tool {index})"),
        (None, None) => "(scenario)".to_owned(),
    }
}
