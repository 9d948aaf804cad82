//! The results of the checks, printed for people or for machines.

use serde_json::{Value, json};

use super::super::output;
use super::super::paragraph::Paragraph;

/// Up to this many healthy scenarios are shown one by one; more are summed up.
const SHOWN_WELL: usize = 5;

/// The subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckArea {
    /// The layers of the configuration.
    Configuration,
    /// The listen address.
    Port,
    /// A daemon that was named.
    Daemon,
    /// The Unix socket of the command line.
    Socket,
    /// Where the database is.
    State,
    /// The local network.
    Mdns,
    /// The proxy to public hosts.
    Proxy,
    /// The scenarios.
    Scenarios,
    /// The right to decide approvals.
    Approvals,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckStatus {
    /// As it should be.
    Ok,
    /// It could not be checked.
    Skipped,
    /// It works, but an operator should look at it.
    Warning,
    /// It does not work.
    Error,
}

/// One checked thing.
#[derive(Debug)]
struct CheckResult {
    check: CheckArea,
    status: CheckStatus,
    /// What it is about: a file, an address, a name.
    subject: String,
    message: String,
    /// The next step; `None` if there is no problem.
    hint: Option<String>,
}

/// All results, in order.
#[derive(Debug, Default)]
pub(super) struct DoctorReport(Vec<CheckResult>);

impl CheckArea {
    fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Port => "port",
            Self::Daemon => "daemon",
            Self::Socket => "socket",
            Self::State => "state",
            Self::Mdns => "mdns",
            Self::Proxy => "proxy",
            Self::Scenarios => "scenarios",
            Self::Approvals => "approvals",
        }
    }
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl DoctorReport {
    /// Adds a good result.
    pub(super) fn ok(&mut self, check: CheckArea, subject: &str, message: impl Into<String>) {
        self.add(check, CheckStatus::Ok, subject, message.into(), None);
    }

    /// Adds a check that could not be made.
    pub(super) fn skipped(
        &mut self,
        check: CheckArea,
        subject: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(
            check,
            CheckStatus::Skipped,
            subject,
            message.into(),
            Some(hint.into()),
        );
    }

    /// Adds something that works but that an operator should look at.
    pub(super) fn warning(
        &mut self,
        check: CheckArea,
        subject: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(
            check,
            CheckStatus::Warning,
            subject,
            message.into(),
            Some(hint.into()),
        );
    }

    /// Adds something that does not work.
    pub(super) fn error(
        &mut self,
        check: CheckArea,
        subject: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(
            check,
            CheckStatus::Error,
            subject,
            message.into(),
            Some(hint.into()),
        );
    }

    fn add(
        &mut self,
        check: CheckArea,
        status: CheckStatus,
        subject: &str,
        message: String,
        hint: Option<String>,
    ) {
        let hint = hint.filter(|hint| !hint.is_empty());
        self.0.push(CheckResult {
            check,
            status,
            subject: subject.to_owned(),
            message,
            hint,
        });
    }

    /// Whether all results of this check are good.
    pub(super) fn is_well(&self, check: CheckArea) -> bool {
        self.0
            .iter()
            .filter(|entry| entry.check == check)
            .all(|entry| entry.status == CheckStatus::Ok)
    }

    fn count(&self, status: CheckStatus) -> usize {
        self.0.iter().filter(|entry| entry.status == status).count()
    }

    /// The number of errors.
    pub(super) fn errors(&self) -> usize {
        self.count(CheckStatus::Error)
    }

    /// Prints a line for each good result, then a paragraph for each other one, and a line that
    /// sums it up.
    pub(super) fn print(&self) {
        let healthy = |entry: &&CheckResult| {
            entry.check == CheckArea::Scenarios && entry.status == CheckStatus::Ok
        };
        let summed_up = self.0.iter().filter(healthy).count() > SHOWN_WELL;
        let (well, problems): (Vec<_>, Vec<_>) = self
            .0
            .iter()
            .partition(|entry| entry.status == CheckStatus::Ok);
        for entry in well
            .into_iter()
            .filter(|entry| !(summed_up && healthy(entry)))
        {
            let subject = if entry.subject.is_empty() {
                String::new()
            } else {
                format!("{}: ", entry.subject)
            };
            ok_line(entry.check, &format!("{subject}{}", entry.message));
        }
        if summed_up {
            ok_line(
                CheckArea::Scenarios,
                &format!("{} are healthy", self.0.iter().filter(healthy).count()),
            );
        }
        for entry in problems {
            output::line("");
            entry.paragraph().print();
        }
        output::line("");
        output::line(&self.summary());
    }

    /// `2 errors, 1 warning`.
    fn summary(&self) -> String {
        let counts = [
            (CheckStatus::Error, "error"),
            (CheckStatus::Warning, "warning"),
        ]
        .map(|(status, word)| (self.count(status), word))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| output::count(count, word))
        .collect::<Vec<_>>()
        .join(", ");
        if counts.is_empty() {
            "no problems found".to_owned()
        } else {
            counts
        }
    }

    /// Prints one JSON object:
    /// `{"errors", "warnings", "checks": [{"check", "status", "subject", "message", "hint"}]}`.
    pub(super) fn print_json(&self) {
        let checks: Vec<Value> = self.0.iter().map(CheckResult::json).collect();
        output::json(&json!({
            "errors": self.count(CheckStatus::Error),
            "warnings": self.count(CheckStatus::Warning),
            "checks": checks,
        }));
    }
}

/// Prints a good result.
fn ok_line(check: CheckArea, text: &str) {
    output::wrapped(
        &format!("{}[{}] ", CheckStatus::Ok.as_str(), check.as_str()),
        &output::sanitize(text),
    );
}

impl CheckResult {
    fn paragraph(&self) -> Paragraph {
        Paragraph {
            severity: self.status.as_str().to_owned(),
            code: self.check.as_str().to_owned(),
            subject: output::sanitize(&self.subject),
            message: output::sanitize(&self.message),
            hint: output::sanitize(self.hint.as_deref().unwrap_or_default()),
            ..Paragraph::default()
        }
    }

    fn json(&self) -> Value {
        json!({
            "check": self.check.as_str(),
            "status": self.status.as_str(),
            "subject": self.subject,
            "message": self.message,
            "hint": self.hint,
        })
    }
}
