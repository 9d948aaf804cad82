//! `callsheet-bench signatures FOLDER`: the tokens of an answer of signatures, on real tools.
//!
//! The folder has the tools of real servers (`schemas/livemcpbench.json`) and questions of people
//! (`search/*.jsonl`). A token is estimated as three bytes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use callsheet::catalog::{Inputs, View, ViewQuery, build};
use callsheet::formats::signature;
use serde_json::Value;

use crate::report::{median, percentile};
use crate::search;

/// Signatures of one answer.
const ANSWERED: usize = 25;
/// Bytes of a token.
const TOKEN: usize = 3;

/// Runs the figure.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let folder = arguments
        .first()
        .context("name the folder with the tools and questions")?;
    let folder = Path::new(folder);
    let servers: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(
        folder.join("schemas/livemcpbench.json"),
    )?)?;
    let mut offers = BTreeMap::new();
    let mut count = 0;
    for (at, server) in servers.iter().enumerate() {
        let tools = tools_of(server)?;
        count += tools.len();
        let (name, offer) = search::offer(&format!("server-{at:02}"), tools, Vec::new())?;
        offers.insert(name, offer);
    }
    let catalog = build(&Inputs {
        offers,
        ..Inputs::default()
    });
    let view = View::select(&catalog, &ViewQuery::default());
    let mut lines = Vec::new();
    for tool in view.tools() {
        let line = signature(tool.name.as_str(), tool);
        let schema: Value = serde_json::from_str(tool.tool.parameters.get())?;
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            ensure!(
                line.contains(name),
                "`{name}` is required and not in {line}"
            );
        }
        ensure!(!line.contains('\n'), "two lines: {line}");
        lines.push(tokens(&line));
    }
    println!(
        "{count} tools: {:.0} tokens of signatures, median {:.0}, p95 {:.0}; every required parameter is named",
        lines.iter().sum::<f64>(),
        median(&lines),
        percentile(&lines, 95)
    );
    let mut answers = Vec::new();
    for question in questions(folder)? {
        let hits = view.rank(&question, ANSWERED);
        let answer = hits
            .iter()
            .map(|hit| tokens(&signature(hit.tool.name.as_str(), &hit.tool)) + 1.0);
        answers.push(answer.sum());
    }
    println!(
        "{} questions, {ANSWERED} signatures at most: median {:.0} tokens, p95 {:.0}",
        answers.len(),
        median(&answers),
        percentile(&answers, 95)
    );
    Ok(())
}

/// The tools of a server of the corpus.
fn tools_of(server: &Value) -> Result<Vec<callsheet::model::Tool>> {
    let parts = server["tools"]
        .as_object()
        .context("a server without tools")?
        .values();
    let mut tools = BTreeMap::new();
    for tool in parts.filter_map(|part| part["tools"].as_array()).flatten() {
        let text = |name: &str| tool[name].as_str().unwrap_or_default();
        let made = search::plain(text("name"), text("description"), &tool["inputSchema"])?;
        tools.insert(text("name").to_owned(), made);
    }
    Ok(tools.into_values().collect())
}

/// The questions of the corpus.
fn questions(folder: &Path) -> Result<Vec<String>> {
    let mut questions = Vec::new();
    for name in ["metatool-queries.jsonl", "sealtools-in-domain.jsonl"] {
        for line in search::read(folder, name)? {
            questions.extend(line["query"].as_str().map(str::to_owned));
        }
    }
    Ok(questions)
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
fn tokens(text: &str) -> f64 {
    text.len().div_ceil(TOKEN) as f64
}
