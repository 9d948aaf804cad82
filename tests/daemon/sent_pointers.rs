//! Findings of a running daemon lead to places of the document that the author wrote, in every
//! spelling and protocol, with the tools in the author's order.

use std::path::Path;

use callsheet::model::{AcceptedVersions, Finding};
use callsheet::protocols::{module, tool_discovery};
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, configured};
use crate::support::mcp_server::{McpServer, modern};
use crate::support::scripted::{Reply, Scripted};

fn document(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/manifests")
        .join(path);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The findings with a pointer: code, tool and pointer. Those of a format are about the tool as it
/// is published, and their pointers begin there.
fn places(findings: &Value) -> Vec<(String, String, String)> {
    let text =
        |finding: &Value, member: &str| finding[member].as_str().unwrap_or_default().to_owned();
    let all = findings["findings"].as_array().unwrap().iter();
    let placed = all.filter(|finding| finding["pointer"].is_string() && finding["code"] != "lossy");
    placed
        .map(|finding| {
            (
                text(finding, "code"),
                text(finding, "tool"),
                text(finding, "pointer"),
            )
        })
        .collect()
}

fn inspected(findings: &[Finding]) -> Vec<(String, String, String)> {
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    let place = |finding: &Finding| {
        (
            finding.code.to_string(),
            text(&finding.tool),
            finding.pointer.clone().unwrap_or_default(),
        )
    };
    findings.iter().map(place).collect()
}

async fn findings(daemon: &Daemon) -> Value {
    daemon.json("/api/v1/findings?scenario=kitchen").await
}

#[tokio::test]
async fn findings_lead_to_places_of_the_sent_document() {
    for (path, protocol) in [
        ("check/faults.json", "tool-discovery"),
        ("check/wrapped.json", "tool-discovery"),
        ("tool_discovery/broken-tools.json", "tool-discovery"),
        ("tool_discovery/seed.json", "tool-discovery"),
        ("tool_discovery/protojson.json", "tool-discovery"),
        ("tool_discovery/protojson-all-fields.json", "tool-discovery"),
        ("tool_discovery/go-structs.json", "tool-discovery"),
        ("module/faults.json", "module"),
    ] {
        let sent = document(path);
        let server = Scripted::saying(Reply::json(&sent));
        let home = Home::new();
        let mut config = home.config(&[]);
        let mut entry = configured("kitchen", server.address());
        entry.protocol = Some(protocol.to_owned());
        config.scenarios.push(entry);
        let daemon = Daemon::ready(config.clone()).await;
        daemon.until_state("kitchen", "live").await;
        let found = findings(&daemon).await;
        daemon.stop().await;

        let body = sent.to_string();
        let judged = match protocol {
            "module" => module::inspect(body.as_bytes()),
            _ => tool_discovery::inspect(body.as_bytes(), &AcceptedVersions::default()),
        };
        let known = inspected(&judged.findings);
        let placed = places(&found);
        for place in &placed {
            // A member that is missing has a place in the object that lacks it.
            let around = place.2.rsplit_once('/').map_or("", |(around, _)| around);
            assert!(
                sent.pointer(&place.2).or(sent.pointer(around)).is_some(),
                "{path}: {place:?} leads nowhere"
            );
            // Only the daemon knows under which name it is found.
            let is_known = place.0 == "name-mismatch" || known.contains(place);
            assert!(is_known, "{path}: {place:?} is none of {known:#?}");
        }
        if path.contains("faults") || path.contains("wrapped") {
            assert!(placed.len() > 2, "{path}: {placed:#?}");
        }
        // A restart keeps the manifest, and the places are known again with the first answer.
        let daemon = Daemon::ready(config).await;
        daemon.until_state("kitchen", "live").await;
        assert_eq!(
            places(&findings(&daemon).await),
            placed,
            "{path}: after a restart"
        );
        daemon.stop().await;
    }
}

/// A tool that has a pending status tool, which is not there.
fn brewing(spelling: [&str; 4]) -> Value {
    let [metadata, long, polling, tool] = spelling;
    json!({"name": "zest", "description": "Takes long.", "parameters": {"type": "object", "properties": {}},
        metadata: {"enabled_by_default": true, long: {polling: {tool: "nobody"}}}})
}

#[tokio::test]
async fn pointers_have_the_index_and_the_names_of_the_author() {
    let seed = [
        "metadata",
        "async_behavior",
        "status_polling",
        "status_tool",
    ];
    let camel = ["metadata", "asyncBehavior", "statusPolling", "statusTool"];
    for (version, names) in [("protocol_version", seed), ("protocolVersion", camel)] {
        let plain = |name: &str| json!({"name": name, "description": "Does it.", "metadata": {}});
        let sent = json!({version: "1.0", "scenario": {"name": "kitchen", "version": "1"},
            "tools": [plain("pour"), brewing(names), {"name": 7}, plain("brew")]});
        let server = Scripted::saying(Reply::json(&sent));
        let home = Home::new();
        let mut config = home.config(&[]);
        config
            .scenarios
            .push(configured("kitchen", server.address()));
        let daemon = Daemon::ready(config).await;
        daemon.until_state("kitchen", "live").await;
        let expected = format!("/tools/1/{}", names.join("/"));
        let found = daemon.findings("async-tool-missing").await;
        assert_eq!(found[0]["pointer"], json!(expected), "{found:#?}");
        assert_eq!(
            daemon.findings("tool-quarantined").await[0]["pointer"],
            "/tools/2/name"
        );
        let page = daemon.get("/dashboard/findings").await;
        assert!(
            String::from_utf8_lossy(&page.body).contains(&expected),
            "the page of findings"
        );
        let page = daemon.get("/dashboard/scenarios/kitchen").await;
        assert!(
            String::from_utf8_lossy(&page.body).contains(&expected),
            "the page of the scenario"
        );
        daemon.stop().await;
    }
}

#[tokio::test]
async fn pointers_of_mcp_tools_are_those_of_the_server() {
    let tools = json!([
        {"name": "pour", "description": "Pours.", "inputSchema": {"type": "object", "properties": {}}},
        {"name": "brew", "description": "Brews.", "inputSchema": {"type": "object", "properties": {"cups": {"type": "nmber"}},
            "required": ["sugar"]}},
    ]);
    let server = McpServer::start(modern(&tools)).await;
    let home = Home::new();
    let mut config = home.config(&[]);
    let mut entry = configured("kitchen", "127.0.0.1:1".parse().unwrap());
    entry.target = callsheet::model::Target::at(server.url());
    entry.protocol = Some("mcp".to_owned());
    config.scenarios.push(entry);
    let daemon = Daemon::ready(config).await;
    daemon.until_state("kitchen", "live").await;
    let placed = places(&findings(&daemon).await);
    assert!(
        placed.iter().any(|(_, tool, _)| tool == "brew"),
        "{placed:#?}"
    );
    let sent = json!({ "tools": tools });
    for (code, tool, pointer) in &placed {
        assert!(
            pointer.starts_with("/tools/1/inputSchema") && tool == "brew",
            "{code} {tool}: {pointer}"
        );
        assert!(sent.pointer(pointer).is_some(), "{pointer}");
    }
    daemon.stop().await;
}
