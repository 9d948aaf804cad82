//! The texts of servers that a person should read before a model does, found by listing each server
//! once: programs are started for that and ended again. Calls no tool.

use serde_json::{Value, json};

use crate::cli::check::inspect_entry;
use crate::cli::import::ImportedServers;
use crate::cli::{output, paragraph};
use crate::config::Config;
use crate::model::{Finding, FindingCode};

/// What was found in the texts of some servers.
#[derive(Debug, Default)]
pub(super) struct CheckedTexts {
    /// How many servers were listed.
    listed: usize,
    /// The names of those that could not be.
    unlisted: Vec<String>,
    /// The findings, as the daemon answers them.
    findings: Vec<Value>,
}

impl CheckedTexts {
    /// Lists the servers, one after the other.
    pub(super) async fn of(servers: &ImportedServers, config: &Config) -> Self {
        let mut checked = Self::default();
        for server in &servers.taken {
            let (name, inspected) = inspect_entry(server, config).await;
            if inspected.manifest.is_some() {
                checked.listed += 1;
            } else {
                checked.unlisted.push(name.clone());
            }
            let found = inspected.findings.iter().filter(|one| is_about_text(one));
            checked.findings.extend(found.map(|one| shown(&name, one)));
        }
        checked
    }

    /// Prints the findings, and a verdict.
    pub(super) fn print(&self) {
        output::line("");
        if !self.findings.is_empty() {
            paragraph::print_all(&paragraph::of_findings(&self.findings));
            output::line("");
        }
        let servers = output::count(self.listed, "server");
        let verdict = match self.findings.len() {
            0 => format!("no suspicious text in the tools of {servers}"),
            count => format!(
                "{} in the tools of {servers}: read before a model does",
                output::count(count, "suspicious text")
            ),
        };
        output::wrapped("", &verdict);
        if !self.unlisted.is_empty() {
            let names = self.unlisted.join(", ");
            output::wrapped(
                "",
                &output::sanitize(&format!(
                    "not listed, so not checked: {names}; `callsheet check FILE` says why"
                )),
            );
        }
    }

    /// The same for programs.
    pub(super) fn to_json(&self) -> Value {
        json!({"listed": self.listed, "unlisted": self.unlisted, "findings": self.findings})
    }
}

/// Whether a finding is about what a text says to a model.
fn is_about_text(finding: &Finding) -> bool {
    matches!(
        finding.code,
        FindingCode::SuspiciousText | FindingCode::HiddenCharacters
    )
}

fn shown(server: &str, finding: &Finding) -> Value {
    json!({
        "severity": finding.severity().as_str(),
        "code": finding.code.as_str(),
        "scenario": server,
        "tool": finding.tool.as_deref(),
        "pointer": finding.pointer,
        "message": finding.message,
        "hint": finding.hint,
    })
}
