//! `benches/compare` tells what got better and what got worse between two runs of
//! `callsheet-bench --json`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// A figure as a run writes it.
fn row(id: &str, ours: f64, ratio: Option<f64>, better: &str, holds: Option<bool>) -> Value {
    json!({"id": id, "name": id, "ours": ours, "theirs": ratio.map(|ratio| ours / ratio), "against": "", "unit": "ms",
        "ratio": ratio, "wanted": null, "holds": holds, "better": better, "note": ""})
}

/// What the script says of two runs, and whether it is content.
fn compare(before: &[Value], after: &[Value], options: &[&str]) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let files = [("before", before), ("after", after)].map(|(name, rows)| {
        let report = json!({"machine": "one", "commit": null, "command": "callsheet-bench", "load_before": "0.1",
            "rows": rows, "failed": []});
        let file = folder.path().join(name);
        std::fs::write(&file, report.to_string()).unwrap();
        file
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/compare");
    let out = Command::new("python3")
        .arg(script)
        .args(files)
        .args(options)
        .output()
        .unwrap();
    assert!(
        out.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    (String::from_utf8(out.stdout).unwrap(), out.status.success())
}

#[test]
fn what_moves_within_the_noise_is_not_told() {
    let before = [
        row("time", 10.0, None, "lower", None),
        row("rate", 10.0, Some(0.98), "higher", Some(true)),
    ];
    let after = [
        row("time", 12.0, None, "lower", None),
        row("rate", 99.0, Some(0.90), "higher", Some(true)),
    ];
    let (output, content) = compare(&before, &after, &[]);
    assert!(
        content && output.contains("2 figures did not move by more than 25 %"),
        "{output}"
    );
    let (output, content) = compare(&before, &after, &["--noise", "10"]);
    assert!(
        !content && output.contains("worse:\n  time: 10 ms -> 12 ms"),
        "{output}"
    );
}

#[test]
fn lower_is_better_for_times_and_worse_for_rates() {
    let before = [
        row("time", 10.0, Some(2.0), "lower", None),
        row("rate", 10.0, Some(0.5), "higher", None),
    ];
    let after = [
        row("time", 10.0, Some(1.0), "lower", None),
        row("rate", 10.0, Some(1.0), "higher", None),
    ];
    let (output, content) = compare(&before, &after, &[]);
    assert!(
        content && output.contains("better:\n") && !output.contains("worse:"),
        "{output}"
    );
    let (output, content) = compare(&after, &before, &[]);
    assert!(
        !content && output.contains("worse:\n") && !output.contains("better:"),
        "{output}"
    );
    assert!(
        output.contains("time: 1.00x -> 2.00x") && output.contains("rate: 1.00x -> 0.50x"),
        "{output}"
    );
}

#[test]
fn what_holds_no_more_or_is_gone_is_worse_however_little_it_moved() {
    let before = [
        row("rate", 10.0, Some(0.951), "higher", Some(true)),
        row("other", 1.0, None, "lower", None),
    ];
    let after = [
        row("rate", 10.0, Some(0.949), "higher", Some(false)),
        row("another", 1.0, None, "lower", None),
    ];
    let (output, content) = compare(&before, &after, &[]);
    assert!(!content, "{output}");
    assert!(
        output.contains("rate: 0.95x -> 0.95x (does not hold any more)"),
        "{output}"
    );
    assert!(
        output.contains("gone:\n  other\n") && output.contains("new:\n  another\n"),
        "{output}"
    );
}
