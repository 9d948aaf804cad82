//! What reading a manifest costs, in each spelling, beside the least that any reader must do:
//! finding the members of every tool with plain borrowed [`RawValue`]s, nothing judged and nothing
//! kept. And what judging the decoded manifest costs after that.
//!
//! `cargo bench --bench decode` prints criterion's measurements and then a table of ratios. The
//! manifests are made here.

#![allow(
    missing_docs,
    reason = "criterion's macros make items without docstrings"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock itself"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use callsheet::lint;
use callsheet::model::{AcceptedVersions, Manifest};
use callsheet::protocols::tool_discovery::decode;
use callsheet::state::manifest::write;
use criterion::{Criterion, Throughput, criterion_group};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Tools in a manifest.
const TOOLS: usize = 20;

/// The least: one pass of a good parser that keeps places in the body.
#[derive(Deserialize)]
struct Plain<'a> {
    #[serde(borrow, rename = "tools")]
    _tools: Vec<PlainTool<'a>>,
}

#[derive(Deserialize)]
struct PlainTool<'a> {
    #[serde(rename = "name")]
    _name: &'a str,
    #[serde(borrow, rename = "parameters")]
    _parameters: &'a RawValue,
    #[serde(borrow, rename = "metadata")]
    _metadata: &'a RawValue,
}

fn tool(index: usize) -> Value {
    json!({
        "name": format!("sample_tool_{index:03}"),
        "description": format!("Sample operation {index}: reads the records that match a filter and gives them back, newest first."),
        "category": (["records", "reports", "admin"][index % 3]),
        "parameters": {
            "type": "object",
            "properties": {
                "collection": {"type": "string", "description": "Which collection to read from", "enum": ["open", "closed", "all"]},
                "limit": {"type": "integer", "description": "How many records to give at most", "default": 25},
                "since": {"type": "string", "format": "date-time", "description": "Only records that changed after this time"},
                "verbose": {"type": "boolean", "description": "Whether to give every field of a record", "default": false}
            },
            "required": ["collection"]
        },
        "metadata": {
            "enabled_by_default": true,
            "requires_approval": index.is_multiple_of(4),
            "timeout_seconds": 30,
            "rate_limit_per_minute": 60,
            "cost_estimate": "low",
            "sensitive_output": true,
            "idempotent": true,
            "tags": ["records", "read", "sample"],
            "examples": [{"description": "The newest open ones", "input": {"collection": "open", "limit": 5}}]
        }
    })
}

fn seed() -> Value {
    json!({
        "protocol_version": "1.0",
        "scenario": {"name": "sample-scenario", "version": "1.2.3", "description": "Made for measuring", "base_url": "http://127.0.0.1:15000"},
        "tools": (0..TOOLS).map(tool).collect::<Vec<_>>(),
        "categories": [
            {"id": "records", "name": "Records", "description": "Reading records", "icon": "list"},
            {"id": "reports", "name": "Reports", "description": "Making reports", "icon": "chart"},
            {"id": "admin", "name": "Administration", "description": "For operators", "icon": "cog"}
        ],
        "generated_at": "2026-01-15T10:30:00Z"
    })
}

/// Values as protojson and Go write them.
fn wrapped(value: &Value, go: bool) -> Value {
    let (name, value) = match value {
        Value::Bool(_) => ("boolValue", value.clone()),
        Value::Number(number) if go => ("intValue", json!(number)),
        Value::Number(number) => ("intValue", json!(number.to_string())),
        _ => ("stringValue", value.clone()),
    };
    if go {
        json!({"Kind": {(capital(name)): value}})
    } else {
        json!({name: value})
    }
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + &capital(part))
}

fn renamed(object: &Value) -> Map<String, Value> {
    object
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (camel(name), value.clone()))
        .collect()
}

/// The manifest in another spelling: protojson, with every unset field written out when `all` is
/// set, or Go structs.
fn other(go: bool, all: bool) -> Value {
    let mut manifest = seed();
    for tool in manifest["tools"].as_array_mut().unwrap() {
        for schema in tool["parameters"]["properties"]
            .as_object_mut()
            .unwrap()
            .values_mut()
        {
            if let Some(default) = schema.get_mut("default") {
                *default = wrapped(default, go);
            }
            let unset = json!({"enum": [], "default": null, "format": "", "items": null, "properties": {}, "required": [], "pattern": ""});
            for (name, value) in unset.as_object().filter(|_| all).into_iter().flatten() {
                schema
                    .as_object_mut()
                    .unwrap()
                    .entry(name)
                    .or_insert_with(|| value.clone());
            }
        }
        let input = &mut tool["metadata"]["examples"][0]["input"];
        let fields: Map<_, _> = input
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), wrapped(value, go)))
            .collect();
        *input = json!({"fields": fields});
        if !go {
            tool["metadata"] = renamed(&tool["metadata"]).into();
        }
    }
    if go {
        manifest["generated_at"] = json!({"seconds": 1_768_473_000, "nanos": 0});
        return manifest;
    }
    manifest["scenario"] = renamed(&manifest["scenario"]).into();
    renamed(&manifest).into()
}

fn manifests() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("seed, compact", serde_json::to_vec(&seed()).unwrap()),
        (
            "seed, indented",
            serde_json::to_vec_pretty(&seed()).unwrap(),
        ),
        (
            "protojson",
            serde_json::to_vec(&other(false, false)).unwrap(),
        ),
        (
            "protojson, all fields",
            serde_json::to_vec(&other(false, true)).unwrap(),
        ),
        (
            "Go structs",
            serde_json::to_vec(&other(true, false)).unwrap(),
        ),
    ]
}

fn plain(body: &[u8]) {
    black_box(serde_json::from_slice::<Plain<'_>>(body).unwrap());
}

fn tree(body: &[u8]) {
    black_box(serde_json::from_slice::<Value>(body).unwrap());
}

fn whole(body: &[u8]) {
    black_box(decode(body, &AcceptedVersions::default()).unwrap());
}

fn judge(manifest: &Manifest) {
    black_box(lint::check_manifest(manifest));
}

/// The texts of 100 tools: those of a manifest of the usual size, and a thing that every rule looks
/// at twice.
fn measure_texts(criterion: &mut Criterion) {
    let mut manifest = seed();
    let many: Vec<Value> = (0..100)
        .map(|index| {
            let mut tool = tool(index);
            tool["description"] = json!(format!(
                "Sample operation {index}: reads the records that match, ignores case, and sends them to the user. Do not call it twice."
            ));
            tool
        })
        .collect();
    manifest["tools"] = many.into();
    let body = serde_json::to_vec(&manifest).unwrap();
    let manifest = decode(&body, &AcceptedVersions::default())
        .unwrap()
        .manifest;
    criterion.bench_function("lint of 100 tools", |bencher| {
        bencher.iter(|| judge(&manifest));
    });
}

fn measure(criterion: &mut Criterion) {
    let like_seed = write(
        &decode(&manifests()[0].1, &AcceptedVersions::default())
            .unwrap()
            .manifest,
    );
    for (spelling, body) in manifests() {
        // Whatever is measured must be the same work: every spelling becomes the same manifest.
        assert!(
            write(
                &decode(&body, &AcceptedVersions::default())
                    .unwrap()
                    .manifest
            ) == like_seed,
            "{spelling}"
        );
        let mut group = criterion.benchmark_group(spelling);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function("plain borrowed parse", |bencher| {
            bencher.iter(|| plain(&body));
        });
        group.bench_function("tree of values", |bencher| bencher.iter(|| tree(&body)));
        group.bench_function("decode", |bencher| bencher.iter(|| whole(&body)));
        let manifest = decode(&body, &AcceptedVersions::default())
            .unwrap()
            .manifest;
        group.bench_function("lint", |bencher| bencher.iter(|| judge(&manifest)));
        group.finish();
    }
}

/// The fastest of many runs, which other work on the machine disturbs least.
fn fastest(work: impl Fn()) -> Duration {
    const RUNS: usize = 2_000;
    let once = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..RUNS).map(|_| once()).min().unwrap_or_default()
}

fn ratios() {
    println!(
        "{:<24}{:>10}{:>12}{:>12}{:>10}{:>10}{:>12}",
        "spelling", "bytes", "plain", "decode", "ratio", "tree", "lint"
    );
    for (spelling, body) in manifests() {
        let least = fastest(|| plain(&body));
        let decoded = fastest(|| whole(&body));
        let tree = fastest(|| tree(&body));
        let manifest = decode(&body, &AcceptedVersions::default())
            .unwrap()
            .manifest;
        let lint = fastest(|| judge(&manifest));
        let times = |time: Duration| format!("{:.2}x", time.as_secs_f64() / least.as_secs_f64());
        println!(
            "{spelling:<24}{:>10}{:>12}{:>12}{:>10}{:>10}{:>12}",
            body.len(),
            format!("{least:.1?}"),
            format!("{decoded:.1?}"),
            times(decoded),
            times(tree),
            format!("{lint:.1?}")
        );
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = measure, measure_texts
}

fn main() {
    benches();
    // A profile is of one measurement alone.
    if !std::env::args().any(|arg| arg == "--profile-time") {
        ratios();
    }
}
