//! `callsheet check` of modules: what is wrong with a manifest, and with how a module answers.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

use callsheet::protocols::module::inspect;
use serde_json::Value;

use crate::support::command::{Home, json};
use crate::support::module::{Module, tool};
use crate::support::upstream_server::{UpstreamServer, answer};

/// Each finding as `code at pointer`.
fn told(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    findings.map(|finding| format!("{} {}", text(&finding["code"]), text(&finding["pointer"]))).collect()
}

/// The places are those of the document, whose parameters are a list, and nobody is asked for what modules do not have.
#[test]
fn a_document_is_judged_where_its_author_wrote_it() {
    let document = br#"{"module_name": "desk", "description": "d", "tools": [
        {"name": "desk.b", "description": "Does b", "parameters": [{"name": "x", "type": "string", "description": "The x"},
            {"name": "y", "type": "array"}, {"name": "z", "type": "str", "description": "The z"}], "required_permission": "boss"},
        {"name": "a", "description": "", "parameters": 7}, {"name": "desk.a", "parameters": []}]}"#;
    let findings = inspect(document).findings;
    let told: Vec<_> = findings
        .iter()
        .map(|finding| format!("{} {}", finding.code, finding.pointer.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        told,
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

#[test]
fn a_file_and_an_address_are_told_from_other_protocols() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let module = runtime.block_on(Module::start("desk", &[tool("desk.try", "guest")]));
    let home = Home::new();
    let url = format!("http://{}", module.address);
    for subject in [url.clone(), format!("{url}/manifest")] {
        let report = json(&home.run(&["check", &subject, "--json"]).ok());
        assert_eq!((&report["scenario"], &report["tools"]), (&"desk".into(), &1.into()), "{report}");
        assert_eq!(told(&report), ["cache-control-missing -"]);
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/manifests/module/faults.json");
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
            let cached = ["Cache-Control: max-age=60", "ETag: \"1\"", "Content-Type: application/json"];
            match (request.target(), health) {
                ("/manifest", _) if request.header("if-none-match").is_some() => {
                    answer("304 Not Modified", &cached, b"")
                }
                ("/manifest", _) => answer("200 OK", &cached, manifest.as_bytes()),
                ("/health", Some(health)) => answer("200 OK", &[], health.as_bytes()),
                _ => answer("404 Not Found", &[], b""),
            }
        }));
        let report = json(&Home::new().run(&["check", server.url().as_str(), "--json"]).ok());
        assert_eq!(told(&report), ["health-route -"]);
        assert!(report["findings"][0]["message"].as_str().unwrap().contains(part), "{report}");
    }
}
