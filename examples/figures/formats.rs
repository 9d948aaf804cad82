//! What becomes of real tools in each format, and how fast a list is encoded.
//!
//! The tools are the 527 of 70 MCP servers in the corpus (`CALLSHEET_CORPUS`); without it there is
//! nothing to tell.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use callsheet::formats::{self, FORMATS, Format, FormatOptions, Loading, Spent, schema};
use callsheet::model::{
    Effective, Execution, Extra, Facts, FindingCode, JsonText, Provenance, PublishedName,
    ScenarioName, Tool, ToolId, VersionCell, ViewTool,
};
use callsheet::runtime::Clock;
use serde_json::Value;

use crate::plan::{self, Plan};
use crate::report::Row;

/// Tools in a list whose encoding is timed.
const TOOLS_TIMED: usize = 1_000;
/// The fastest of so many rounds counts: the machine is shared.
const ROUNDS: usize = 20;

/// What became of the tools in one format.
#[derive(Default)]
struct Outcome {
    as_they_came: usize,
    changed: usize,
    left_out: usize,
    strict: usize,
    /// Tools by the step that changed something in them.
    by: BTreeMap<&'static str, usize>,
    /// Tools by what was told of them.
    findings: BTreeMap<String, usize>,
}

pub(crate) fn run(_: &Plan) -> Result<Vec<Row>> {
    let path = plan::corpus().join("schemas/livemcpbench.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!(
            "formats: {} is not there, so there are no real tools to tell of",
            path.display()
        );
        return Ok(Vec::new());
    };
    let tools = real_tools(&text)?;
    println!(
        "{} real tools, by what became of them in each format:\n",
        tools.len()
    );
    println!(
        "| format | as they came | changed | left out | strict | steps that changed how many | told of how many |\n\
         |---|---|---|---|---|---|---|"
    );
    let mut rows = Vec::new();
    for format in variants() {
        let Outcome {
            as_they_came,
            changed,
            left_out,
            strict,
            by,
            findings,
        } = outcome(&tools, format);
        let id = format.id();
        let by = most_first(by);
        let findings = most_first(findings);
        println!(
            "| `{id}` | {as_they_came} | {changed} | {left_out} | {strict} | {by} | {findings} |"
        );
        rows.push(timed(&tools, format));
    }
    println!();
    Ok(rows)
}

/// What was counted, the most frequent first.
fn most_first<T: Ord + std::fmt::Display>(counted: BTreeMap<T, usize>) -> String {
    let mut counted: Vec<_> = counted.into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let counted: Vec<String> = counted
        .into_iter()
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    counted.join("; ")
}

/// Every format, plain and with each option that changes more than its end.
fn variants() -> impl Iterator<Item = &'static dyn Format> {
    let strict = FormatOptions {
        strict: true,
        ..FormatOptions::default()
    };
    FORMATS.iter().flat_map(move |format| {
        [Some(*format), formats::with_options(*format, strict)]
            .into_iter()
            .flatten()
    })
}

/// The tools of the corpus, each server a scenario.
fn real_tools(text: &str) -> Result<Vec<ViewTool>> {
    let servers: Vec<Value> = serde_json::from_str(text)?;
    let mut tools = Vec::new();
    for (number, server) in servers.iter().enumerate() {
        let scenario: ScenarioName = format!("server-{number:02}").parse()?;
        let parts = server["tools"]
            .as_object()
            .context("a server without tools")?
            .values();
        for tool in parts.filter_map(|part| part["tools"].as_array()).flatten() {
            tools.push(view_tool(&scenario, tool)?);
        }
    }
    Ok(tools)
}

fn view_tool(scenario: &ScenarioName, tool: &Value) -> Result<ViewTool> {
    let name = tool["name"].as_str().context("a tool without a name")?;
    let id = ToolId::new(scenario.clone(), name);
    let raw =
        |json: &str| JsonText::parse(json).map_err(|error| anyhow::anyhow!("{name}: {error}"));
    let offered = Tool {
        name: name.into(),
        description: tool["description"].as_str().unwrap_or_default().into(),
        category: None,
        parameters: raw(&tool["inputSchema"].to_string())?,
        metadata: raw("{}")?,
        facts: Arc::new(Facts {
            enabled_by_default: true,
            ..Facts::default()
        }),
        extra: Extra::default(),
        definition: None,
        version: VersionCell::default(),
    };
    Ok(ViewTool {
        name: PublishedName::qualified(&id),
        id,
        tool: Arc::new(offered),
        effective: Effective {
            enabled: true,
            enabled_source: Provenance::Manifest,
            requires_approval: false,
            approval_source: Provenance::Manifest,
            priority: 0,
            pinned: false,
        },
        companions: Arc::default(),
        overridden: None,
        execution: Execution::default(),
    })
}

/// Each tool as if it were alone in its request, so that a strict place is a matter of the tool.
fn outcome(tools: &[ViewTool], format: &dyn Format) -> Outcome {
    let mut outcome = Outcome::default();
    for tool in tools {
        let encoded = format.encode(tool);
        let applied = schema::apply(&tool.tool.parameters, format.steps());
        let by: BTreeSet<&str> = applied
            .iter()
            .flat_map(|applied| &applied.by)
            .map(|step| step.name())
            .collect();
        for name in by {
            *outcome.by.entry(name).or_default() += 1;
        }
        let kinds: BTreeSet<String> = encoded
            .findings
            .iter()
            .map(|finding| kind(&finding.message))
            .collect();
        for kind in kinds {
            *outcome.findings.entry(kind).or_default() += 1;
        }
        let Some(json) = encoded.json else {
            outcome.left_out += 1;
            continue;
        };
        let text = String::from_utf8_lossy(&json);
        outcome.strict += usize::from(text.contains(r#""strict":true"#));
        let lost = encoded
            .findings
            .iter()
            .any(|finding| finding.code != FindingCode::DescriptionLong);
        if !lost && text.contains(tool.tool.parameters.get()) {
            outcome.as_they_came += 1;
        } else {
            outcome.changed += 1;
        }
    }
    outcome
}

/// What a finding says, whatever it says it of: names and numbers give way to `_`.
fn kind(message: &str) -> String {
    let parts: Vec<&str> = message.split('`').collect();
    let plain: Vec<&str> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at % 2 == 0 { *part } else { "_" })
        .collect();
    let words: Vec<&str> = plain
        .iter()
        .flat_map(|part| part.split_whitespace())
        .collect();
    let words = words.iter().map(|word| {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            "_"
        } else {
            word
        }
    });
    let mut kind: Vec<&str> = words
        .filter(|word| *word != "," && *word != "and" && *word != "others")
        .collect();
    kind.dedup();
    kind.join(" ")
}

/// How fast a list of a thousand tools is encoded, on one core.
fn timed(tools: &[ViewTool], format: &dyn Format) -> Row {
    let many: Vec<&ViewTool> = tools.iter().cycle().take(TOOLS_TIMED).collect();
    let clock = Clock::system();
    let mut bytes = 0;
    let mut taken = std::time::Duration::MAX;
    for _ in 0..ROUNDS {
        let mut spent = Spent::default();
        let start = clock.now();
        let encoded = many
            .iter()
            .filter_map(|tool| format.encode_within(tool, Loading::AtOnce, &mut spent).json);
        bytes = encoded.map(|json| json.len()).sum();
        taken = taken.min(start.elapsed());
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "bytes of a list, far below 2^52"
    )]
    let rate = bytes as f64 / taken.as_secs_f64() / 1e6;
    let name = format!("encoding {TOOLS_TIMED} tools as `{}`", format.id());
    let note = format!(
        "{} KB in {:.1} ms",
        bytes / 1_000,
        taken.as_secs_f64() * 1e3
    );
    Row::new(format!("formats.{}", format.id()), name, rate, "MB/s").note(note)
}
