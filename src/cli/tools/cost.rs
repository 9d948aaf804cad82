//! What a list costs, as `callsheet tools --cost` prints it.

use serde_json::Value;

use crate::cli::output;
use crate::cli::table::{ColumnFit, TextTable, cell};

/// Tools that are named with what they cost, the dearest first.
const TOOLS_SHOWN: usize = 20;

/// Prints the cost that a report has: the scenarios, the dearest tools, and what would save tokens.
pub(super) fn show(report: &Value) {
    let cost = &report["cost"];
    let scenarios = output::list(cost, "scenarios");
    table("SCENARIO", "/scenario", scenarios.iter()).print();
    let mut tools: Vec<&Value> = output::list(report, "listed")
        .iter()
        .filter(|tool| tool["deferred"] != Value::Bool(true))
        .collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(output::number(tool, "/tokens")));
    output::line("");
    table("TOOL", "/id", tools.iter().take(TOOLS_SHOWN).copied()).print();
    if tools.len() > TOOLS_SHOWN {
        output::line(&format!(
            "and {} with fewer tokens",
            output::count(tools.len() - TOOLS_SHOWN, "tool")
        ));
    }
    output::line("");
    for sentence in summary(report, tools.len()) {
        output::wrapped("", &sentence);
    }
}

fn table<'a>(head: &'static str, name: &str, rows: impl Iterator<Item = &'a Value>) -> TextTable {
    let mut sheet = TextTable::new(&[
        (head, ColumnFit::Whole),
        ("TOKENS", ColumnFit::Whole),
        ("DESCRIPTION", ColumnFit::Rank(1)),
        ("SCHEMA", ColumnFit::Rank(2)),
    ]);
    for row in rows {
        let number = |pointer: &str| cell(output::number(row, pointer).to_string());
        sheet.row([
            cell(output::text(row, name)),
            number("/tokens"),
            number("/description_tokens"),
            number("/schema_tokens"),
        ]);
    }
    sheet
}

/// The sums, the limits that are exceeded, and what would save tokens.
fn summary(report: &Value, tools: usize) -> Vec<String> {
    let cost = &report["cost"];
    let number = |pointer: &str| output::number(cost, pointer);
    let mut sentences = vec![format!(
        "about {} tokens for {} as `format={}`: {} of descriptions, {} of schemas",
        number("/tokens"),
        output::count(tools, "tool"),
        output::text(report, "/format"),
        number("/description_tokens"),
        number("/schema_tokens"),
    )];
    for cap in output::list(cost, "caps") {
        let over = output::number(cap, "/over");
        if over > 0 {
            sentences.push(format!(
                "`{}` takes {} tools at once: {over} too many",
                output::text(cap, "/format"),
                output::number(cap, "/max_tools"),
            ));
        }
    }
    if let Some(dearest) = output::list(cost, "scenarios").first() {
        sentences.push(format!(
            "switching off {} saves {} tokens, `mode=search` at /mcp {}, signatures in place of schemas {}",
            output::text(dearest, "/scenario"),
            output::number(dearest, "/tokens"),
            number("/saved/search_mode"),
            number("/saved/signatures"),
        ));
    }
    sentences
}
