//! The dashboard for Grafana and the alert rules for Prometheus use the metrics that there are, and
//! Prometheus' own tool finds nothing to blame. The latter needs `promtool` (`.ci/prometheus`
//! brings it and runs these tests).

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::daemon::{Home, Scenario};
use crate::support::scrape::Scrape;
use crate::support::serving::{Answer, ask};

fn config(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("config")
        .join(file)
}

/// What a daemon with a scenario and some readers answers.
async fn scraped(accept: &str) -> Answer {
    let home = Home::new();
    let notes = Scenario::of("notes", &["add", "find"]).await;
    let daemon = home.start(&[&notes]).await;
    daemon.until_ready().await;
    daemon.tools("").await;
    let answer = ask(daemon.address, "GET", "/metrics", &[("accept", accept)], "").await;
    daemon.stop().await;
    answer
}

/// Every word that looks like the name of one of our metrics.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("callsheet_") || word.starts_with("process_"))
        .collect()
}

/// Every text behind `expr` or `query` in a document.
fn expressions(document: &Value, found: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text)
                        if ["expr", "query", "definition"].contains(&name.as_str()) =>
                    {
                        found.push(text.clone());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_metric_that_is_used_exists() {
    let answer = scraped("text/plain").await;
    let scrape = Scrape::parse(&answer);
    let names = scrape.names();
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(config("grafana/callsheet.json")).unwrap())
            .unwrap();
    let mut used = Vec::new();
    expressions(&dashboard, &mut used);
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(
        panels.len() > 20
            && panels
                .iter()
                .all(|panel| !panel["targets"].as_array().unwrap().is_empty())
    );
    let rules = fs::read_to_string(config("prometheus/callsheet.rules.yml")).unwrap();
    let texts = used.iter().map(String::as_str).chain([rules.as_str()]);
    let used: BTreeSet<&str> = texts.flat_map(metrics_in).collect();
    assert!(used.len() > 25, "{used:?}");
    let missing: Vec<_> = used.difference(&names).collect();
    assert!(missing.is_empty(), "not in a scrape: {missing:?}");
}

#[test]
fn every_alert_is_tested() {
    let rules = fs::read_to_string(config("prometheus/callsheet.rules.yml")).unwrap();
    let tests = fs::read_to_string(config("prometheus/callsheet.tests.yml")).unwrap();
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() >= 5, "{alerts:?}");
    for alert in alerts {
        assert!(
            tests.contains(&format!(
                "alertname: {alert}\n        exp_alerts:\n          -"
            )),
            "{alert} never fires in a test"
        );
    }
}

/// Runs `promtool` beside the rules, with this on its standard input.
fn promtool(arguments: &[&str], input: &[u8]) -> Output {
    let program = std::env::var_os("PROMTOOL").unwrap_or_else(|| "promtool".into());
    let piped = Stdio::piped;
    let mut command = Command::new(&program);
    let command = command.args(arguments).current_dir(config("prometheus"));
    let mut child = command
        .stdin(piped())
        .stdout(piped())
        .stderr(piped())
        .spawn()
        .expect("promtool runs");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input).unwrap();
    child.wait_with_output().unwrap()
}

fn assert_content(output: &Output) {
    let output_texts =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success(),
        "{}{}",
        output_texts[0],
        output_texts[1]
    );
}

#[tokio::test]
#[ignore = "needs promtool: .ci/prometheus"]
async fn promtool_finds_nothing_to_blame_in_a_scrape() {
    let answer = scraped("text/plain").await;
    let output = promtool(&["check", "metrics"], &answer.body);
    assert_content(&output);
    // What it would only advise comes with success.
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
#[ignore = "needs promtool: .ci/prometheus"]
fn promtool_finds_nothing_to_blame_in_the_rules() {
    assert_content(&promtool(&["check", "rules", "callsheet.rules.yml"], b""));
    assert_content(&promtool(&["test", "rules", "callsheet.tests.yml"], b""));
}
