//! `callsheet check`: what is wrong with a manifest and with how it is served, for people, for
//! machines and by exit code.

use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use callsheet::provide::ToolDefinition;
use serde_json::Value;

use crate::support::command::{Home, Ran, Running, Scenario, json, nobody, run};
use crate::support::upstream_server::{UpstreamServer, answer};

const CLEAN: &str = include_str!("../../fixtures/manifests/check/clean.json");
const FAULTS: &str = include_str!("../../fixtures/manifests/check/faults.json");
const WRAPPED: &str = include_str!("../../fixtures/manifests/check/wrapped.json");

/// Checks a file with this text.
fn file(text: &str, flags: &[&str]) -> Ran {
    let home = Home::new();
    home.write("manifest.json", text);
    home.run(&[&["check", "manifest.json"], flags].concat())
}

fn codes(checked: &Value) -> Vec<&str> {
    checked["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

#[test]
fn a_clean_file_passes() {
    for flags in [&[][..], &["--strict"]] {
        let last = file(CLEAN, flags).ok();
        assert!(
            last.starts_with(
                "no problems found in 4 tools of kiln 3.1.0\n4 of 4 tools would be listed; "
            ),
            "{last}"
        );
    }
}

/// The first lines of the paragraphs.
fn heads(out: &str) -> Vec<&str> {
    out.split("\n\n")
        .filter_map(|paragraph| paragraph.lines().next())
        .filter(|line| line.contains('['))
        .collect()
}

#[test]
fn findings_are_paragraphs_by_tool_with_their_lines_and_exit_code_1() {
    let ran = file(WRAPPED, &[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.err.as_str(), "");
    assert_eq!(
        heads(&ran.out),
        [
            "info[version-newer]",
            "info[spelling]",
            "warning[default-unfit] water_beds",
            "warning[example-unfit] water_beds",
            "error[async-tool-missing] water_beds",
        ],
        "{}",
        ran.out
    );
    let line = WRAPPED
        .lines()
        .position(|line| line.contains("\"protocolVersion\""))
        .unwrap()
        + 1;
    let place = format!("\n  at manifest.json:{line} /protocolVersion\n  ");
    assert!(ran.out.contains(&place), "{place}: {}", ran.out);
    assert!(ran.out.matches("\n  hint: ").count() >= 3, "{}", ran.out);
    let summary = ran.out.lines().rev().nth(1);
    assert_eq!(
        summary,
        Some("1 error, 2 warnings, 2 infos in 1 tool of greenhouse 1.0.0"),
        "{}",
        ran.out
    );
}

#[test]
fn a_terminal_of_80_columns_has_everything_and_whole_names() {
    let home = Home::new();
    home.write("manifest.json", FAULTS);
    let whole = home.run(&["check", "manifest.json"]).out;
    let ran = run(home
        .command(&["check", "manifest.json"])
        .env("COLUMNS", "80"));
    let long = |line: &&str| line.chars().count() > 80 && line.trim_start().split(' ').count() > 2;
    assert_eq!(ran.out.lines().find(long), None, "{}", ran.out);
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(&ran.out),
        words(&whole),
        "no word is broken, and none is left out"
    );
}

#[test]
fn workflows_of_github_see_each_finding_at_its_line() {
    let ran = file(WRAPPED, &["--format", "github"]);
    assert_eq!(ran.code, Some(1));
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 5, "{}", ran.out);
    let line = WRAPPED
        .lines()
        .position(|line| line.contains("\"protocolVersion\""))
        .unwrap()
        + 1;
    assert!(
        lines[0].starts_with(&format!(
            "::notice file=manifest.json,line={line},title=version-newer::"
        )),
        "{}",
        ran.out
    );
    assert!(
        lines[4].starts_with("::error file=manifest.json,line="),
        "{}",
        ran.out
    );
    assert!(
        lines[4].contains(",title=async-tool-missing::water_beds: "),
        "{}",
        ran.out
    );
    let json_form = json(&file(WRAPPED, &["--format", "json"]).out);
    assert_eq!(json_form, json(&file(WRAPPED, &["--json"]).out));
    assert_eq!(json_form["findings"][0]["line"], line);
    assert_eq!(file(CLEAN, &["--format", "github"]).ok(), "");
}

#[test]
fn warnings_pass_unless_they_are_to_be_errors() {
    let warned = CLEAN.replace("\"category\": \"firing\"", "\"category\": \"fire\"");
    let ran = file(&warned, &[]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.out.contains("warning") && ran.out.contains("\n3 warnings in 4 tools of kiln 3.1.0\n"),
        "{}",
        ran.out
    );
    let ran = file(&warned, &["--strict"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        !ran.out.contains("warning") && ran.out.contains("\n3 errors in 4 tools of kiln 3.1.0\n"),
        "{}",
        ran.out
    );
}

#[test]
fn json_says_the_same() {
    let ran = file(FAULTS, &["--json"]);
    assert_eq!(ran.code, Some(1));
    let checked = json(&ran.out);
    assert_eq!(checked["checked"], "manifest.json");
    assert_eq!(checked["scenario"], "hot air");
    assert_eq!(checked["tools"], 11);
    assert_eq!(checked["errors"], 20);
    let findings = checked["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 41);
    let quarantined = findings
        .iter()
        .find(|finding| finding["code"] == "tool-quarantined")
        .unwrap();
    assert_eq!(quarantined["severity"], "error");
    assert_eq!(quarantined["tool"], "lost");
    assert_eq!(quarantined["pointer"], "/tools/12/parameters");
    let refused = file("no manifest", &["--json"]);
    assert_eq!(refused.code, Some(1));
    assert_eq!(codes(&json(&refused.out)), vec!["manifest-refused"]);
    assert_eq!(json(&refused.out)["tools"], Value::Null);
}

#[test]
fn a_dash_is_standard_input() {
    let home = Home::new();
    let mut child = home
        .command(&["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(CLEAN.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output
            .stdout
            .starts_with(b"no problems found in 4 tools of kiln 3.1.0\n"),
        "{output:?}"
    );
}

#[test]
fn what_cannot_be_read_is_exit_code_2() {
    let home = Home::new();
    for subject in ["no-such-file.json", "ftp://127.0.0.1/", &nobody()] {
        let error = home.run(&["check", subject]).failed(2);
        assert!(
            error.starts_with("error: ") && error.contains("\n  hint: "),
            "{error}"
        );
    }
    let error = home
        .run(&["check", &nobody().replace("http://", "http://user:secret@")])
        .failed(2);
    assert!(
        error.contains("refused") && !error.contains("secret"),
        "{error}"
    );
}

/// The two likeliest typing errors, each of which takes the tool out of the list or its parameters
/// from it.
#[test]
fn what_would_not_be_listed_is_said_and_typing_errors_are_named() {
    let text = r#"{"protocol_version":"1.0","scenario":{"name":"mine","version":"1.0.0","description":"d"},"tools":[
        {"name":"hello","description":"Says hello","paramters":{"type":"object","properties":{}},
            "metadata":{"enabled_by_defualt":true}},
        {"name":"hidden","description":"Does more","metadata":{"enabled_by_default":true,"internal_only":true}},
        {"name":"wave","description":"Waves","metadata":{"enabled_by_default":true,"requires_approval":true},"x-own":1},
        {"name":"wipe","description":"Wipes","metadata":{"enabled_by_default":true},"requires_approval":true}],
        "categories":[],"generated_at":"2026-02-03T04:05:06Z"}"#;
    let report = json(&file(text, &["--json"]).ok());
    let found: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["code"] == "unknown-key")
        .map(|finding| {
            (
                finding["pointer"].as_str().unwrap(),
                finding["hint"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("/tools/0/paramters", "did you mean `parameters`?"),
        (
            "/tools/0/metadata/enabled_by_defualt",
            "did you mean `enabled_by_default`?",
        ),
        (
            "/tools/3/requires_approval",
            "move `requires_approval` into the `metadata` of the tool",
        ),
    ];
    assert_eq!(found, expected, "{report:#}");
    assert_eq!(report["listed"], 2, "{report:#}");
    assert_eq!(report["need_approval"], 1, "{report:#}");
    let out = file(text, &[]).ok();
    assert!(
        out.contains("\ndisabled by default: hello\ninternal, never shown to an LLM: hidden\n"),
        "{out}"
    );
    let last = out.lines().last().unwrap();
    assert!(
        last.ends_with("2 of 4 tools would be listed; 1 of these needs approval"),
        "{last}"
    );
    assert_eq!(file(text, &["--strict"]).code, Some(1));
}

#[test]
fn what_provide_serves_is_clean() {
    let tool = ToolDefinition::new("add_note", "Writes a note down").unwrap();
    let scenario = Scenario::start("notes", vec![tool]);
    let home = Home::new();
    for subject in [
        scenario.url.clone(),
        format!("{}/api/v1/tools", scenario.url),
    ] {
        let checked = home.run(&["check", &subject, "--strict"]).ok();
        assert_eq!(
            checked,
            "no problems found in 1 tool of notes 1.0.0\n1 of 1 tool would be listed; none of these needs approval\n"
        );
    }
}

#[test]
fn the_demo_is_clean() {
    let home = Home::new();
    let demo = Running::start(
        home.command(&["demo", "--turn", "600"]),
        "callsheet listens on ",
    );
    demo.line(|line| line.starts_with("try in another terminal"));
    let scenarios: Value = serde_json::from_slice(&demo.get("/api/v1/scenarios").1).unwrap();
    let scenarios = scenarios["scenarios"].as_array().unwrap();
    // The fourth one is a program, which the daemon started.
    let addresses: Vec<&str> = scenarios
        .iter()
        .filter_map(|scenario| scenario["url"].as_str())
        .filter(|url| url.starts_with("http"))
        .collect();
    assert_eq!(addresses.len(), 3, "{scenarios:?}");
    for address in addresses {
        let checked = home.run(&["check", address, "--strict"]).ok();
        assert!(checked.starts_with("no problems found in "), "{checked}");
    }
}

/// A daemon's own list has the values that count beside those within `metadata`.
#[test]
fn the_list_of_a_daemon_has_no_misplaced_members() {
    let home = Home::new();
    let demo = Running::start(
        home.command(&["demo", "--turn", "600"]),
        "callsheet listens on ",
    );
    demo.line(|line| line.starts_with("try in another terminal"));
    let checked = home.run(&["check", &demo.url]).ok();
    assert!(!checked.contains("unknown-key"), "{checked}");
    let misplaced = r#"{"protocol_version":"1.0","scenario":{"name":"notes","version":"1.0.0","description":"Notes"},
        "tools":[{"name":"add_note","description":"Writes a note down","parameters":{"type":"object"},"requires_approval":true,
        "metadata":{"enabled_by_default":true}}],"categories":[],"generated_at":"2026-01-01T00:00:00Z"}"#;
    let out = file(misplaced, &[]).out;
    assert!(
        out.contains("`requires_approval` has no effect here"),
        "{out}"
    );
}

#[test]
fn how_a_list_is_served_is_judged() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // A server like real ones: no caching headers but a tag, everything new and shuffled in each
    // answer, no route for single tools.
    let requests = AtomicU64::new(0);
    let server = runtime.block_on(UpstreamServer::answering(move |request| {
        let number = requests.fetch_add(1, Ordering::SeqCst);
        if request.target() != "/api/v1/tools" {
            return answer("200 OK", &["Content-Type: application/json"], b"{}");
        }
        let mut manifest: Value = serde_json::from_str(CLEAN).unwrap();
        manifest["generated_at"] = format!("2026-03-01T08:00:00.{number}Z").into();
        if number % 2 == 1 {
            manifest["tools"].as_array_mut().unwrap().reverse();
        }
        let tag = format!("ETag: \"{number}\"");
        answer(
            "200 OK",
            &["Content-Type: text/plain", &tag],
            manifest.to_string().as_bytes(),
        )
    }));
    let url = server.url().to_string();
    let ran = Home::new().run(&["check", &url, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        codes(&json(&ran.out)),
        [
            "cache-control-missing",
            "content-type",
            "generated-at-moves",
            "order-unstable",
            "etag-moves",
            "tool-route",
            "tool-route"
        ]
    );
}

#[test]
fn a_conditional_request_must_be_answered_as_one() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(UpstreamServer::answering(|request| {
        match request.target() {
            "/x/api/v1/tools" => answer(
                "200 OK",
                &[
                    "Content-Type: application/json",
                    "Cache-Control: max-age=60",
                    "ETag: \"a\"",
                ],
                CLEAN.as_bytes(),
            ),
            "/x/api/v1/tools/fire_kiln" => answer(
                "200 OK",
                &["Content-Type: application/json"],
                b"{\"name\":\"fire_kiln\"}",
            ),
            _ => answer(
                "404 Not Found",
                &["Content-Type: text/plain"],
                b"tool not found",
            ),
        }
    }));
    let url = server.url().join("x").unwrap().to_string();
    let ran = Home::new().run(&["check", &url, "--json"]);
    assert_eq!(
        codes(&json(&ran.out)),
        ["not-modified-missing", "tool-route"]
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[3].header("if-none-match"), Some("\"a\""));
}

#[test]
fn an_answer_that_is_no_manifest_is_told() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(UpstreamServer::answering(|_| {
        answer("200 OK", &[], b"<html>hello</html>")
    }));
    let ran = Home::new().run(&["check", server.url().as_str()]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("manifest-refused") && ran.out.contains("a web page"),
        "{}",
        ran.out
    );
    let server = runtime.block_on(UpstreamServer::answering(|_| {
        answer("503 Service Unavailable", &[], b"")
    }));
    let error = Home::new().run(&["check", server.url().as_str()]).failed(2);
    assert!(error.contains("503"), "{error}");
}

#[test]
fn what_calls_cannot_be_checked_by_is_found_and_flags_of_draft_4_are_no_fault() {
    let tool = |name: &str, level: &str| {
        format!(
            r#"{{"name": "{name}", "description": "Sets the level.", "parameters": {{"type": "object", "properties":
            {{"level": {level}}}}}, "metadata": {{"enabled_by_default": true, "requires_approval": false}}}}"#
        )
    };
    let flag = tool(
        "flag",
        r#"{"type": "number", "description": "Level", "minimum": 0, "exclusiveMinimum": true}"#,
    );
    let ahead = tool(
        "ahead",
        r#"{"type": "string", "description": "Level", "pattern": "^(?!0)[0-9]+$"}"#,
    );
    let text = format!(
        r#"{{"protocol_version": "1.0", "generated_at": "2026-01-01T00:00:00Z",
        "scenario": {{"name": "kiln", "version": "1.0.0", "description": "A kiln"}}, "tools": [{flag}, {ahead}]}}"#
    );
    let checked = json(&file(&text, &["--json"]).out);
    assert_eq!(codes(&checked), ["schema-unchecked"], "{checked:#}");
    let finding = &checked["findings"][0];
    assert_eq!(finding["tool"], "ahead", "{checked:#}");
    assert!(
        finding["message"].as_str().unwrap().contains("(?!0)"),
        "{checked:#}"
    );
}

#[test]
fn an_author_of_protojson_reads_the_names_of_the_own_document() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let requests = AtomicU64::new(0);
    let server = runtime.block_on(UpstreamServer::answering(move |request| {
        let number = requests.fetch_add(1, Ordering::SeqCst);
        if request.target() != "/api/v1/tools" {
            return answer(
                "404 Not Found",
                &["Content-Type: text/plain"],
                b"tool not found",
            );
        }
        let mut manifest: Value = serde_json::from_str(WRAPPED).unwrap();
        manifest["generatedAt"] = format!("2026-03-01T08:00:00.{number}Z").into();
        let headers = [
            "Content-Type: application/json",
            "Cache-Control: max-age=60",
        ];
        answer("200 OK", &headers, manifest.to_string().as_bytes())
    }));
    let report = json(
        &Home::new()
            .run(&["check", server.url().as_str(), "--json"])
            .out,
    );
    let moves = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == "generated-at-moves");
    let moves = moves.unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(moves["pointer"], "/generatedAt");
    for text in [&moves["message"], &moves["hint"]] {
        let text = text.as_str().unwrap();
        assert!(
            text.contains("`generatedAt`") && !text.contains("generated_at"),
            "{report:#}"
        );
    }
    let incomplete = file(WRAPPED, &["--json"]);
    assert!(
        !incomplete.out.contains("`long_running`") && !incomplete.out.contains("`async_behavior`"),
        "{incomplete:?}"
    );
}

/// Published names of a callsheet daemon may have a hyphen, as every vendor takes it.
#[test]
fn a_hyphen_in_a_name_is_no_fault() {
    let text = r#"{"protocol_version":"1.0","scenario":{"name":"notes","version":"1.0.0","description":"Notes"},
        "tools":[{"name":"add-note","description":"Writes a note down","parameters":{"type":"object"},
            "metadata":{"enabled_by_default":true}}],
        "categories":[],"generated_at":"2026-01-01T00:00:00Z"}"#;
    let checked = file(text, &["--strict", "--json"]);
    assert!(codes(&json(&checked.out)).is_empty(), "{checked:?}");
}
