//! The page on JSON-RPC has each row of the protocol's document, with a test that exists or with a
//! reason.

use std::collections::BTreeSet;

use crate::markdown::{Document, root};

/// The rows of the document.
const ROWS: std::ops::RangeInclusive<u32> = 1..=57;

#[test]
fn each_row_of_the_json_rpc_page_names_tests_that_exist() {
    let page = Document::read("docs/protocols/json-rpc.md").text;
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| S3-")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rows, _, by] = cells.as_slice() else {
            panic!("{line}")
        };
        for row in numbers(rows) {
            if !seen.insert(row) {
                problems.push(format!("S3-{row:02} stands twice"));
            }
        }
        if by.is_empty() {
            problems.push(format!("{rows}: neither a test nor a reason"));
        }
        let tests = by
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|span| span.contains("::") && span.contains(' '));
        problems.extend(
            tests
                .filter(|test| !exists(test))
                .map(|test| format!("{rows}: no test `{test}`")),
        );
    }
    problems.extend(
        ROWS.filter(|row| !seen.contains(row))
            .map(|row| format!("S3-{row:02} is missing")),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The numbers in `S3-02, 22 to 28`.
fn numbers(rows: &str) -> Vec<u32> {
    let number = |text: &str| text.trim().parse::<u32>().unwrap();
    let parts = rows.trim_start_matches("S3-").split(',');
    parts
        .flat_map(|part| match part.split_once(" to ") {
            Some((first, last)) => (number(first)..=number(last)).collect(),
            None => vec![number(part)],
        })
        .collect()
}

/// Whether there is a test `PROGRAM MODULE::NAME`, or `CRATE MODULE::tests::NAME`.
fn exists(test: &str) -> bool {
    let (program, path) = test.split_once(' ').unwrap();
    let (module, name) = path.rsplit_once("::").unwrap();
    let file = match program.strip_prefix("callsheet-") {
        Some(library) => format!(
            "crates/{library}/src/{}.rs",
            module.trim_end_matches("::tests").replace("::", "/")
        ),
        None => format!("tests/{program}/{}.rs", module.replace("::", "/")),
    };
    let code = std::fs::read_to_string(root().join(file)).unwrap_or_default();
    code.contains(&format!("fn {name}("))
}
