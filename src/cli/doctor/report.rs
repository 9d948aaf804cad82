//! The results of the checks, printed for people or for machines.

use comfy_table::{Cell, Color};
use serde_json::{Value, json};

use super::super::output;
use super::super::table::{ColumnFit, TextTable, cell};

/// Up to this many healthy scenarios are shown one by one in the table; more are summed up.
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
    /// Where the database is.
    State,
    /// The local network.
    Mdns,
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
            Self::State => "state",
            Self::Mdns => "mdns",
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

    fn cell(self) -> Cell {
        match self {
            Self::Ok => Cell::new(self.as_str()).fg(Color::DarkGreen),
            Self::Skipped => Cell::new(self.as_str()),
            Self::Warning | Self::Error => output::severity(self.as_str()),
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
        self.add(check, CheckStatus::Skipped, subject, message.into(), Some(hint.into()));
    }

    /// Adds something that works but that an operator should look at.
    pub(super) fn warning(
        &mut self,
        check: CheckArea,
        subject: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(check, CheckStatus::Warning, subject, message.into(), Some(hint.into()));
    }

    /// Adds something that does not work.
    pub(super) fn error(
        &mut self,
        check: CheckArea,
        subject: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(check, CheckStatus::Error, subject, message.into(), Some(hint.into()));
    }

    fn add(&mut self, check: CheckArea, status: CheckStatus, subject: &str, message: String, hint: Option<String>) {
        let hint = hint.filter(|hint| !hint.is_empty());
        self.0.push(CheckResult { check, status, subject: subject.to_owned(), message, hint });
    }

    /// Whether all results of this check are good.
    pub(super) fn is_well(&self, check: CheckArea) -> bool {
        self.0.iter().filter(|entry| entry.check == check).all(|entry| entry.status == CheckStatus::Ok)
    }

    fn count(&self, status: CheckStatus) -> usize {
        self.0.iter().filter(|entry| entry.status == status).count()
    }

    /// The number of errors.
    pub(super) fn errors(&self) -> usize {
        self.count(CheckStatus::Error)
    }

    /// Prints a table, and a line that sums it up.
    pub(super) fn print(&self) {
        let mut sheet = TextTable::new(&[
            ("CHECK", ColumnFit::Whole),
            ("STATUS", ColumnFit::Whole),
            ("OF", ColumnFit::Wrap),
            ("FOUND", ColumnFit::Wrap),
            ("WHAT TO DO", ColumnFit::Wrap),
        ]);
        let well = |entry: &&CheckResult| entry.check == CheckArea::Scenarios && entry.status == CheckStatus::Ok;
        let summed_up = self.0.iter().filter(well).count() > SHOWN_WELL;
        let shown = |text: &str| cell(output::sanitize(text));
        for entry in self.0.iter().filter(|entry| !(summed_up && well(entry))) {
            sheet.row([
                cell(entry.check.as_str()),
                entry.status.cell(),
                shown(&entry.subject),
                shown(&entry.message),
                shown(entry.hint.as_deref().unwrap_or_default()),
            ]);
        }
        if summed_up {
            let message = format!("{} are healthy", self.0.iter().filter(well).count());
            sheet.row([
                cell(CheckArea::Scenarios.as_str()),
                CheckStatus::Ok.cell(),
                cell(""),
                shown(&message),
                cell(""),
            ]);
        }
        sheet.print();
        output::line("");
        output::line(&self.summary());
    }

    /// `2 errors, 1 warning`.
    fn summary(&self) -> String {
        let counts = [(CheckStatus::Error, "error"), (CheckStatus::Warning, "warning")]
            .map(|(status, word)| (self.count(status), word))
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| output::count(count, word))
            .collect::<Vec<_>>()
            .join(", ");
        if counts.is_empty() { "no problems found".to_owned() } else { counts }
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

impl CheckResult {
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
