//! What programs read only grows: `fixtures/contract/promises.txt` has a line for each operation,
//! parameter, status, JSON member and value of the API, each metric, finding, code, command and
//! flag that was ever promised. Lines are added, never taken out.
//!
//! `CALLSHEET_BLESS=1 cargo test --test cli contract` adds what is new.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use callsheet::model::FindingCode;
use serde_json::Value;

use crate::support::command::{Home, json};

const PROMISES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/fixtures/contract/promises.txt"
);
/// The keys of the first version that was followed by others, each with its default.
const DEFAULTS: &str = include_str!("../../fixtures/contract/default.toml");

#[test]
fn nothing_that_was_promised_is_gone() {
    let home = Home::with("");
    let daemon = home.serve(&[]);
    let text = |target: &str| String::from_utf8(daemon.get(target).1).unwrap();
    let mut kept = operations(&json(&text("/openapi.json")));
    kept.extend(metrics(&text("/metrics")));
    kept.extend(
        FindingCode::ALL
            .iter()
            .map(|code| format!("finding {code}")),
    );
    commands(&home, &mut Vec::new(), &mut kept);
    let promised: BTreeSet<String> = fs::read_to_string(PROMISES)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let codes = promised.iter().filter(|line| line.starts_with("code "));
    kept.extend(
        codes
            .filter(|line| is_written_somewhere(&line["code ".len()..]))
            .cloned(),
    );
    let broken: Vec<&String> = promised.difference(&kept).collect();
    assert!(broken.is_empty(), "these were promised: {broken:#?}");
    if std::env::var_os("CALLSHEET_BLESS").is_some() {
        let all: BTreeSet<String> = promised.union(&kept).cloned().collect();
        fs::write(
            PROMISES,
            all.into_iter().map(|line| line + "\n").collect::<String>(),
        )
        .unwrap();
    }
}

#[test]
fn every_key_that_was_ever_written_is_still_read() {
    let home = Home::new();
    // Commented keys have no default; the others are read as they stand.
    home.write("callsheet.toml", DEFAULTS);
    home.run(&["config", "show"]).ok();
}

/// The operations, parameters, statuses, members and values that the API describes.
fn operations(document: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, operation)| operation.is_object())
        {
            let operation_of = format!("{} {path}", method.to_uppercase());
            lines.insert(format!("operation {operation_of}"));
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let place = parameter["in"].as_str().unwrap();
                let name = parameter["name"].as_str().unwrap();
                lines.insert(format!("parameter {operation_of} {place} {name}"));
            }
            for status in operation["responses"].as_object().unwrap().keys() {
                lines.insert(format!("response {operation_of} {status}"));
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        members(name, schema, &mut lines);
    }
    lines
}

fn members(of: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let member = format!("{of}.{name}");
        lines.insert(format!("member {member}"));
        members(&member, below, lines);
    }
    let values = schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .chain([&schema["const"]]);
    lines.extend(
        values
            .filter_map(Value::as_str)
            .map(|value| format!("value {of} {value}")),
    );
    for branches in ["anyOf", "oneOf", "allOf"] {
        schema[branches]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|branch| members(of, branch, lines));
    }
    if schema["items"].is_object() {
        members(&format!("{of}[]"), &schema["items"], lines);
    }
}

/// The names and types of metrics.
fn metrics(text: &str) -> impl Iterator<Item = String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|metric| format!("metric {metric}"))
}

/// The commands and their flags, as help lists them.
fn commands(home: &Home, path: &mut Vec<String>, lines: &mut BTreeSet<String>) {
    let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let help = home.run(&arguments).ok();
    if !path.is_empty() {
        lines.insert(format!("command {}", path.join(" ")));
        for line in help.lines() {
            let flag = line
                .split_whitespace()
                .take(2)
                .find(|word| word.starts_with("--"));
            let is_entry = line.trim_start().starts_with('-');
            lines.extend(
                flag.filter(|_| is_entry)
                    .map(|flag| format!("flag {} {flag}", path.join(" "))),
            );
        }
    }
    let Some((_, rest)) = help.split_once("\nCommands:\n") else {
        return;
    };
    for line in rest.lines().take_while(|line| !line.is_empty()) {
        let Some(name) = line
            .strip_prefix("  ")
            .and_then(|line| line.split_whitespace().next())
        else {
            continue;
        };
        if line.starts_with("   ") || name == "help" {
            continue;
        }
        path.push(name.to_owned());
        commands(home, path, lines);
        path.pop();
    }
}

/// Whether a code stands as a text somewhere in the program.
fn is_written_somewhere(code: &str) -> bool {
    fn holds(folder: &Path, text: &str) -> bool {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .any(|path| {
                if path.is_dir() {
                    return holds(&path, text);
                }
                path.extension().is_some_and(|ending| ending == "rs")
                    && fs::read_to_string(&path).unwrap().contains(text)
            })
    }
    holds(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &format!("\"{code}\""),
    )
}
