//! `callsheet check` of modules: what is wrong with a manifest, and with how a module answers.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use callsheet::protocols::module::inspect;
use serde_json::Value;

use crate::support::command::{Home, json};
use crate::support::module::{Module, tool};
use crate::support::upstream_server::{UpstreamServer, answer};

/// Each finding as `code at pointer`.
fn codes(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    findings
        .map(|finding| format!("{} {}", text(&finding["code"]), text(&finding["pointer"])))
        .collect()
}

/// The places are those of the document, whose parameters are a list, and nobody is asked for what
/// modules do not have.
#[test]
fn a_document_is_judged_where_its_author_wrote_it() {
    let document = br#"{"module_name": "desk", "description": "d", "tools": [
        {"name": "desk.b", "description": "Does b", "parameters": [{"name": "x", "type": "string", "description": "The x"},
            {"name": "y", "type": "array"}, {"name": "z", "type": "str", "description": "The z"}], "required_permission": "boss"},
        {"name": "a", "description": "", "parameters": 7}, {"name": "desk.a", "parameters": []}]}"#;
    let findings = inspect(document).findings;
    let places: Vec<_> = findings
        .iter()
        .map(|finding| {
            format!(
                "{} {}",
                finding.code,
                finding.pointer.as_deref().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            "metadata-value /tools/0/required_permission",
            "parameter-undescribed /tools/0/parameters/1",
            "items-missing /tools/0/parameters/1",
            "schema-type /tools/0/parameters/2/type",
            "tool-quarantined /tools/1/parameters",
            "tool-undescribed /tools/2",
        ]
    );
    assert!(inspect(b"<html>").manifest.is_none());
    assert_eq!(inspect(b"{\"module_name\":\"a\"}").findings.len(), 1);
}

/// S4-82: the module in the guide keeps the contract that the guide tells, and can be called.
#[test]
fn the_module_of_the_guide_works() {
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/modules.md")).unwrap();
    let program = guide
        .split("```python\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let mut python = std::process::Command::new("python3");
    let mut running = python
        .args(["-c", program])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(running.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let url = format!("http://127.0.0.1:{}", port.trim());
    let home = Home::new();
    let checked = home.run(&["check", &url, "--json"]);
    home.write(
        "callsheet.toml",
        &format!("server.listen = \"127.0.0.1:0\"\n[modules]\ndice = \"{url}\"\n"),
    );
    let daemon = home.serve(&[]);
    let shown = |how: &str| {
        let call = [
            "call",
            "--json",
            "--url",
            &daemon.url,
            "dice.count",
            "--one",
            "3",
            "--other",
            "4",
            "--how",
            how,
        ];
        json(&home.run(&call).ok())["result"].clone()
    };
    let results = [shown("sum"), shown("most")];
    let _ = running.kill();
    let _ = running.wait();
    let report = json(&checked.ok());
    // That nothing is sent twice is for larger ones.
    assert_eq!(codes(&report), ["etag-missing -"], "{report:#}");
    assert_eq!(
        results,
        [
            serde_json::json!({"total": 7}),
            serde_json::json!({"total": 4})
        ]
    );
}

#[test]
fn a_file_and_an_address_are_told_from_other_protocols() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let module = runtime.block_on(Module::start("desk", &[tool("desk.try", "guest")]));
    let home = Home::new();
    let url = format!("http://{}", module.address);
    for subject in [url.clone(), format!("{url}/manifest")] {
        let report = json(&home.run(&["check", &subject, "--json"]).ok());
        assert_eq!(report["scenario"], "desk", "{report}");
        assert_eq!(report["tools"], 1, "{report}");
        assert_eq!(codes(&report), ["cache-control-missing -"]);
    }
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/manifests/module/faults.json"
    );
    let ran = home.run(&["check", file, "--json"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(json(&ran.out)["scenario"], "attic");
}

#[test]
fn a_module_that_does_not_say_that_it_lives_is_told() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let manifest = r#"{"module_name":"desk","description":"d","tools":[]}"#;
    for (health, part) in [(None, "404"), (Some(r#"{"status":"ill"}"#), "ill")] {
        let server = runtime.block_on(UpstreamServer::answering(move |request| {
            let cached = [
                "Cache-Control: max-age=60",
                "ETag: \"1\"",
                "Content-Type: application/json",
            ];
            match (request.target(), health) {
                ("/manifest", _) if request.header("if-none-match").is_some() => {
                    answer("304 Not Modified", &cached, b"")
                }
                ("/manifest", _) => answer("200 OK", &cached, manifest.as_bytes()),
                ("/health", Some(health)) => answer("200 OK", &[], health.as_bytes()),
                _ => answer("404 Not Found", &[], b""),
            }
        }));
        let report = json(
            &Home::new()
                .run(&["check", server.url().as_str(), "--json"])
                .ok(),
        );
        assert_eq!(codes(&report), ["health-route -"]);
        assert!(
            report["findings"][0]["message"]
                .as_str()
                .unwrap()
                .contains(part),
            "{report}"
        );
    }
}
