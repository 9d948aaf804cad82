//! Every link between documents leads to a file that is there, and to a heading of it.

use crate::markdown::{Document, all_documents, root};

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut problems = Vec::new();
    for document in all_documents() {
        for (line, text) in document.prose() {
            for target in targets(text) {
                if let Err(problem) = check(&document, target) {
                    problems.push(format!("{}:{line}: {problem}", document.path));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The targets of the links in a line: what stands in brackets behind `]`.
fn targets(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

fn check(document: &Document, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = root().join(&document.path).parent().unwrap().to_owned();
    let path = if file.is_empty() {
        root().join(&document.path)
    } else {
        folder.join(file)
    };
    let path = path
        .canonicalize()
        .map_err(|error| format!("`{target}`: {error}"))?;
    if anchor.is_empty() {
        return Ok(());
    }
    let relative = path
        .strip_prefix(root().canonicalize().unwrap())
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let anchors = Document::read(&relative).anchors();
    anchors
        .iter()
        .any(|known| known == anchor)
        .then_some(())
        .ok_or_else(|| format!("`{target}`: no such heading"))
}
