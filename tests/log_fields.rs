//! The fields of the log are those of the one list, each of which is used.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use callsheet::runtime::fields::FIELDS;

const MACROS: [&str; 10] = [
    "error!(",
    "warn!(",
    "info!(",
    "debug!(",
    "trace!(",
    "error_span!(",
    "warn_span!(",
    "info_span!(",
    "debug_span!(",
    "trace_span!(",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The arguments of each macro of `tracing` in a text.
fn calls(text: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    for after in text.split("tracing::").skip(1) {
        if let Some(arguments) = MACROS.iter().find_map(|name| after.strip_prefix(name)) {
            calls.push(split(arguments));
        }
    }
    calls
}

/// What stands between commas until the bracket that closes.
fn split(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut depth = 0;
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if quoted => drop(characters.next()),
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted && depth == 0 => break,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part.trim().to_owned());
    parts
}

/// The names of the fields among the arguments. What comes behind the first text is the message of
/// an event; that of a span comes first.
fn fields(arguments: &[String]) -> Vec<String> {
    let is_text = |part: &&String| part.starts_with('"');
    let rest = if arguments.first().as_ref().is_some_and(is_text)
        && arguments.get(1).is_some_and(|next| !next.is_empty())
    {
        &arguments[1..]
    } else {
        arguments
    };
    let fields = rest
        .iter()
        .take_while(|part| !is_text(part))
        .filter(|part| !part.is_empty());
    let name = |part: &String| {
        part.split('=')
            .next()
            .unwrap()
            .trim()
            .trim_start_matches(['%', '?'])
            .to_owned()
    };
    fields
        .map(name)
        .filter(|name| name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'))
        .collect()
}

#[test]
fn the_code_and_the_list_have_the_same_fields() {
    let mut files = Vec::new();
    sources(
        &PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let listed: BTreeSet<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let mut used = BTreeSet::new();
    let mut unknown = Vec::new();
    for file in &files {
        for call in calls(&fs::read_to_string(file).unwrap()) {
            for name in fields(&call) {
                if !listed.contains(name.as_str()) {
                    unknown.push(format!("{}: `{name}`", file.display()));
                }
                used.insert(name);
            }
        }
    }
    assert!(unknown.is_empty(), "not in runtime::fields: {unknown:#?}");
    let unused: Vec<_> = listed
        .iter()
        .filter(|name| !used.contains(**name))
        .collect();
    assert!(
        unused.is_empty(),
        "in runtime::fields and never used: {unused:?}"
    );
    assert!(FIELDS.is_sorted_by_key(|(name, _)| *name) && listed.len() == FIELDS.len());
}

#[test]
fn fields_are_found_in_every_form() {
    let text = r#"tracing::warn!(a = b(c, d), %e, ?f, "g = {}, h", i); tracing::info_span!("x", j = %k, l);
        tracing::info!("only words"); tracing::error!(error = %e.to_string(), "{m}, \", n")"#;
    let found: Vec<Vec<String>> = calls(text).iter().map(|call| fields(call)).collect();
    assert_eq!(
        found,
        [vec!["a", "e", "f"], vec!["j", "l"], vec![], vec!["error"]]
    );
}
