//! How good search is, and how fast: on the corpus when it is there, and on generated catalogs.
//!
//! The corpus is in `search/` below [`plan::corpus`]: the in-domain part of Seal-Tools
//! (`sealtools-*.jsonl`), and everyday questions of `MetaTool` that are answered by one tool or by
//! two (`metatool-*.jsonl`). The weights were chosen by every other query of the first (the even
//! ones), with the odd ones in sight.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use callsheet::catalog::{Catalog, Change, Inputs, Offer, View, ViewQuery, Visibility, build};
use callsheet::model::{
    Category, Digest, Facts, JsonText, Manifest, ScenarioInfo, ScenarioName, Tool, VersionCell,
};
use callsheet::runtime::Clock;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::manifests;
use crate::plan::{self, Plan};
use crate::report::{Row, median, percentile};

/// What a plain BM25F reaches on the same tools and queries.
const BASELINE: (f64, f64) = (0.902, 0.956);
const ROUNDS: usize = 400;

pub(crate) fn run(_: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let corpus = plan::corpus();
    if corpus.join("search").is_dir() {
        rows.extend(quality(&corpus)?);
        rows.extend(everyday_quality(&corpus)?);
    }
    for (tools, most) in [(10_000, 1.0), (100_000, 10.0)] {
        rows.extend(speed(tools, most)?);
    }
    Ok(rows)
}

/// The lines of a file of the corpus.
pub(crate) fn read(corpus: &Path, name: &str) -> Result<Vec<Value>> {
    let path = corpus.join("search").join(name);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// Recall among the first five for everyday questions, of which many are made of small words.
fn everyday_quality(corpus: &Path) -> Result<Vec<Row>> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let tools = read(corpus, "metatool-tools.jsonl")?;
    let tools = tools
        .iter()
        .map(|tool| plain(&text(tool, "name"), &text(tool, "description"), &json!({})));
    let tools = tools.collect::<Result<Vec<_>>>()?;
    let count = tools.len();
    let catalog = build(&Inputs {
        offers: BTreeMap::from([offer("meta", tools, Vec::new())?]),
        ..Inputs::default()
    });
    let view = View::select(&catalog, &ViewQuery::default());
    let queries = read(corpus, "metatool-queries.jsonl")?;
    let row = |kind: &str| {
        let asked: Vec<&Value> = queries
            .iter()
            .filter(|query| text(query, "id").starts_with(kind))
            .collect();
        let found = asked.iter().map(|query| {
            let right: BTreeSet<&str> = query["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let hits = view.rank(&text(query, "query"), 5);
            share(
                hits.iter()
                    .filter(|hit| right.contains(&*hit.tool.id.tool))
                    .count(),
                right.len(),
            )
        });
        let recall = found.sum::<f64>() / share(asked.len(), 1);
        let name = format!(
            "search, {count} tools, {} {kind} questions: right tools among the first five",
            asked.len()
        );
        Row::new(format!("search.everyday.{kind}"), name, recall, "").at_least(0.61)
    };
    Ok(vec![row("single"), row("multi")])
}

/// Recall among the first five and precision of the first.
fn quality(corpus: &Path) -> Result<Vec<Row>> {
    let tools = read(corpus, "sealtools-tools.jsonl")?
        .iter()
        .map(seal_tool)
        .collect::<Result<Vec<_>>>()?;
    let count = tools.len();
    let catalog = build(&Inputs {
        offers: BTreeMap::from([offer("seal", tools, Vec::new())?]),
        ..Inputs::default()
    });
    let view = View::select(&catalog, &ViewQuery::default());
    let queries = read(corpus, "sealtools-in-domain.jsonl")?;
    let mut scores = Vec::new();
    for query in &queries {
        let right: BTreeSet<&str> = query["calling"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|call| call["api"].as_str())
            .collect();
        let hits = view.rank(query["query"].as_str().unwrap_or_default(), 5);
        let found = hits
            .iter()
            .filter(|hit| right.contains(&*hit.tool.id.tool))
            .count();
        let first = hits
            .first()
            .is_some_and(|hit| right.contains(&*hit.tool.id.tool));
        scores.push((share(found, right.len()), f64::from(u8::from(first))));
    }
    let mean = |part: &mut dyn Iterator<Item = &(f64, f64)>| {
        let part: Vec<_> = part.collect();
        let of = |value: fn(&(f64, f64)) -> f64| {
            let sum: f64 = part.iter().map(|score| value(score)).sum();
            sum / share(part.len(), 1)
        };
        (of(|score| score.0), of(|score| score.1))
    };
    let all = mean(&mut scores.iter());
    for (name, (recall, first)) in [
        ("even", mean(&mut scores.iter().step_by(2))),
        ("odd", mean(&mut scores.iter().skip(1).step_by(2))),
    ] {
        println!("the {name} queries: recall among five {recall:.4}, first right {first:.4}");
    }
    let row = |id: &str, what: &str, value: f64, baseline: f64, least| {
        let name = format!("search, {count} tools, {} queries: {what}", queries.len());
        Row::new(format!("search.{id}"), name, value, "")
            .at_least(least)
            .note(format!("plain BM25F {baseline}"))
    };
    Ok(vec![
        row(
            "recall",
            "right tools among the first five",
            all.0,
            BASELINE.0,
            0.90,
        ),
        row("first", "the first is right", all.1, BASELINE.1, 0.95),
    ])
}

fn seal_tool(tool: &Value) -> Result<Tool> {
    let text = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
    let parameters =
        json!({"type": "object", "properties": tool["parameters"], "required": tool["required"]});
    Ok(Tool {
        category: Some(text("field").into()),
        ..plain(&text("api_name"), &text("api_description"), &parameters)?
    })
}

/// A tool that is listed by default.
pub(crate) fn plain(name: &str, description: &str, parameters: &Value) -> Result<Tool> {
    Ok(Tool {
        name: name.into(),
        description: description.to_owned().into(),
        category: None,
        parameters: JsonText::parse(&parameters.to_string())?,
        metadata: JsonText::parse("{}")?,
        facts: Arc::new(Facts {
            enabled_by_default: true,
            ..Facts::default()
        }),
        extra: Box::default(),
        definition: None,
        version: VersionCell::default(),
    })
}

/// What a scenario with these tools offers.
pub(crate) fn offer(
    scenario: &str,
    mut tools: Vec<Tool>,
    categories: Vec<Category>,
) -> Result<(ScenarioName, Offer)> {
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let digest = Digest(xxh3_128(format!("{tools:?}").as_bytes()));
    let manifest = Manifest {
        protocol_version: "1.0".into(),
        scenario: ScenarioInfo {
            name: scenario.into(),
            ..ScenarioInfo::default()
        },
        tools: tools.into_iter().map(Arc::new).collect(),
        categories: categories.into(),
        generated_at: None,
        extra: Box::default(),
        held: Arc::default(),
        relayed: callsheet::model::RelayedOffers::default(),
        digest,
        sent_findings: callsheet::model::SentFindings::default(),
    };
    Ok((
        scenario.parse()?,
        Offer {
            manifest: Arc::new(manifest),
            visibility: Visibility::Published,
        },
    ))
}

/// The generated manifest of the other figures as an offer.
fn generated(at: usize, edition: u64) -> Result<(ScenarioName, Offer)> {
    let manifest: Value = serde_json::from_str(&manifests::manifest(at, edition))?;
    let tools = manifest["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| {
            let text = |name: &str| tool[name].as_str().unwrap_or_default();
            let mut made = plain(text("name"), text("description"), &tool["parameters"])?;
            made.facts_mut().tags.extend(
                tool["metadata"]["tags"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(Arc::from),
            );
            Ok(Tool {
                category: Some(text("category").into()),
                ..made
            })
        });
    offer(
        &manifests::name(at),
        tools.collect::<Result<_>>()?,
        Vec::new(),
    )
}

fn speed(tools: usize, most: f64) -> Result<Vec<Row>> {
    let clock = Clock::system();
    let millis = |start: tokio::time::Instant| start.elapsed().as_secs_f64() * 1e3;
    let offers = (0..tools / manifests::TOOLS)
        .map(|at| generated(at, 0))
        .collect::<Result<_>>()?;
    let catalog = build(&Inputs {
        offers,
        ..Inputs::default()
    });
    let start = clock.now();
    let bytes: usize = catalog.entries().map(|entry| entry.index_bytes()).sum();
    let built = millis(start);
    println!(
        "{tools} tools: index made in {built:.0} ms, {:.0} bytes a tool",
        share(bytes, tools)
    );
    let text = |at: usize| {
        let texts = [
            "start the browser session",
            "deploy server and report an error",
            "work 0042 07",
            "memory metric for each process",
        ];
        format!(
            "{} scenario-{:04}",
            texts[at % texts.len()],
            at * 37 % (tools / manifests::TOOLS)
        )
    };
    let timed = |answer: &dyn Fn(&View, &str) -> usize| {
        let times: Vec<f64> = (0..ROUNDS)
            .map(|at| {
                let text = text(at);
                let start = clock.now();
                black_box(answer(
                    &View::select(&catalog, &ViewQuery::default()),
                    &text,
                ));
                millis(start)
            })
            .collect();
        (median(&times), percentile(&times, 99))
    };
    let (p50, p99) = timed(&|view, text| view.rank(text, 20).len());
    let (typed50, typed99) = timed(&|view, text| {
        view.palette(&text.replace('e', "ee")[..text.len().min(9)], &[], 20)
            .len()
    });
    let updates = (0..21)
        .map(|at| update(&catalog, at, clock))
        .collect::<Result<Vec<f64>>>()?;
    let update = median(&updates);
    let row = |id: &str, figure: &str, value, unit| {
        Row::new(
            format!("search.{tools}.{id}"),
            format!("search among {tools} tools: {figure}"),
            value,
            unit,
        )
    };
    Ok(vec![
        row("question", "a question, p50", p50, "ms")
            .at_most(most)
            .note(format!("p99 {p99:.2} ms")),
        row("typing", "typing a name, p50", typed50, "ms").note(format!("p99 {typed99:.2} ms")),
        row("update", "20 tools change, catalog and index", update, "ms").at_most(5.0),
        row(
            "memory",
            "memory of the index for each tool",
            share(bytes, tools),
            "bytes",
        ),
    ])
}

/// How long a change of one scenario takes until it can be searched.
fn update(catalog: &Catalog, at: usize, clock: Clock) -> Result<f64> {
    let (name, offer) = generated(at * 7, 1)?;
    let start = clock.now();
    let next = catalog.with(Change::Offer(name.clone(), Some(offer)));
    black_box(next.entry(&name).map(|entry| entry.index_bytes()));
    let took = start.elapsed().as_secs_f64() * 1e3;
    black_box(next);
    Ok(took)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below where that matters"
)]
fn share(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}
