//! `callsheet findings`: what was left out, renamed, hidden or kept from an older answer, and why.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output, paragraph};
use crate::model::{FindingCode, Severity};

/// Arguments of `findings`.
#[derive(Debug, Args)]
pub(super) struct FindingsArgs {
    /// Only findings that matter so much; may be given more than once.
    #[arg(long, value_name = "SEVERITY", value_parser = severities())]
    severity: Vec<String>,
    /// Only findings of this kind; may be given more than once.
    #[arg(long, value_name = "CODE", value_parser = codes(), hide_possible_values = true)]
    code: Vec<String>,
    /// Only findings about this scenario.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Include what concerns formats in which no client has requested a list.
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

fn severities() -> PossibleValuesParser {
    PossibleValuesParser::new(Severity::ALL.map(Severity::as_str))
}

fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(FindingCode::ALL.iter().map(|code| code.as_str()))
}

impl FindingsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let answer = daemon.get(&["findings"], self.query(), "findings").await?;
        if let Some(name) = self
            .scenario
            .as_ref()
            .filter(|_| output::list(&answer.value, "findings").is_empty())
        {
            let _ = daemon.require_scenario(name).await?;
        }
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            show(&answer.value);
        }
        Ok(())
    }

    fn query(&self) -> QueryPairs<'static> {
        let many = [("severity", &self.severity), ("code", &self.code)];
        let many = many
            .into_iter()
            .flat_map(|(key, values)| values.iter().map(move |value| (key, value.clone())));
        let mut query: QueryPairs = many.collect();
        query.extend(self.scenario.iter().map(|name| ("scenario", name.clone())));
        // A kind that is named is shown, also one that is hidden otherwise.
        if !self.all && self.code.is_empty() {
            query.push(("formats", "used".to_owned()));
        }
        query
    }
}

fn show(answer: &Value) {
    let findings = output::list(answer, "findings");
    let paragraphs = paragraph::of_findings(findings);
    paragraph::print_all(&paragraphs);
    let hidden = usize::try_from(output::number(answer, "/hidden")).unwrap_or(0);
    if findings.is_empty() {
        output::line("no findings");
    } else {
        output::line("");
        output::line(&summary(findings, paragraphs.len()));
    }
    if hidden > 0 {
        let many = output::count(hidden, "finding");
        output::wrapped(
            "",
            &format!("{many} about formats that no client uses: `--all` shows them"),
        );
    }
}

/// `1 error, 2 warnings, 3 infos`: how many findings there are, as the dashboard counts them, and in
/// how many paragraphs where some have several.
fn summary(findings: &[Value], paragraphs: usize) -> String {
    let of = |severity: Severity| {
        findings
            .iter()
            .filter(|finding| finding["severity"] == severity.as_str())
            .count()
    };
    let counts = Severity::ALL
        .into_iter()
        .rev()
        .map(|severity| (of(severity), severity.as_str()));
    let counts = counts
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| output::count(count, word));
    let counts = counts.collect::<Vec<_>>().join(", ");
    if paragraphs == findings.len() {
        return counts;
    }
    format!("{counts} in {}", output::count(paragraphs, "paragraph"))
}
