//! What a list of tools becomes: every page, every byte of a schema, every member.

use callsheet::model::FindingCode;
use serde_json::{Value, json};

use crate::support::house::{House, scenario};
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};
use crate::support::serving::ask;

/// A valid schema of draft 2020-12 with everything that a rewrite would touch.
const SCHEMA: &str = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string","default":null}}}},"properties":{"address":{"$ref":"#/$defs/address"},"contact":{"type":"string","enum":["phone","email"]},"list":{"type":"array","items":{}}},"required":[],"allOf":[{"anyOf":[{"required":["address"]},{"required":["contact"]}]}],"if":{"properties":{"contact":{"const":"phone"}}},"then":{"required":["address"]},"additionalProperties":false}"##;

async fn json_at(address: std::net::SocketAddr, target: &str) -> Value {
    let answer = ask(address, "GET", target, &[], "").await;
    serde_json::from_slice(&answer.body).unwrap()
}

fn odd_tool() -> String {
    format!(
        r#"{{"name":"odd","title":"Odd","description":"Is odd.","inputSchema":{SCHEMA},"outputSchema":{{"type":"object","properties":{{"t":{{"type":"number"}}}}}},"annotations":{{"readOnlyHint":true,"destructiveHint":false,"vendorHint":7}},"icons":[{{"src":"data:,"}}],"_meta":{{"vendor/x":1}},"vendor":{{"kept":true}}}}"#
    )
}

#[tokio::test]
async fn schemas_and_unknown_members_come_through_byte_for_byte() {
    let tools: Value = serde_json::from_str(&format!("[{}]", odd_tool())).unwrap();
    let server = McpServer::start(modern(&tools)).await;
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    let list = json_at(address, "/api/v1/tools?format=mcp").await;
    let mut listed = list["tools"][0].clone();
    // Callsheet's own.
    let version = listed["_meta"]
        .as_object_mut()
        .unwrap()
        .remove("callsheet/definition_version");
    assert_eq!(version.unwrap().as_str().unwrap().len(), 32);
    // The order of members is part of the text.
    assert_eq!(
        listed["inputSchema"].to_string(),
        tools[0]["inputSchema"].to_string()
    );
    for member in ["title", "outputSchema", "annotations", "icons", "_meta"] {
        assert_eq!(listed[member], tools[0][member], "{member}");
    }
    let native = json_at(address, "/api/v1/tools").await;
    let listed = &native["tools"][0];
    assert_eq!(
        listed["parameters"].to_string(),
        tools[0]["inputSchema"].to_string()
    );
    assert_eq!(listed["vendor"], json!({"kept": true}));
    assert_eq!(listed["title"], "Odd");
    assert_eq!(listed["metadata"]["tags"], json!(["hint:read-only"]));
    house.finish().await;
}

/// A framework refuses the whole list for one key that the protocol does not allow.
#[tokio::test]
async fn keys_of_meta_outside_the_grammar_are_left_out_with_a_finding() {
    let tools = json!([{"name": "brew", "description": "Brews", "inputSchema": {"type": "object"},
        "_meta": {"_fastmcp": {"tags": []}, "vendor/x": 1}}]);
    let server = McpServer::start(modern(&tools)).await;
    let house = House::of(&[("kitchen", server.url())]).await;
    let address = house.serve().await;
    let list = json_at(address, "/api/v1/tools?format=mcp").await;
    let version = list["tools"][0]["_meta"]["callsheet/definition_version"].clone();
    assert_eq!(
        list["tools"][0]["_meta"],
        json!({"callsheet/definition_version": version, "vendor/x": 1})
    );
    for target in ["/api/v1/tools", "/api/v1/tools/brew", "/api/v1/tools/set"] {
        let list = json_at(address, target).await.to_string();
        assert!(
            list.contains("vendor/x") && !list.contains("_fastmcp"),
            "{target}: {list}"
        );
    }
    let findings = json_at(address, "/api/v1/findings?scenario=kitchen").await;
    let mut all = findings["findings"].as_array().unwrap().iter();
    let found = all
        .find(|found| found["code"] == "meta-key-left-out")
        .unwrap_or_else(|| panic!("{findings}"));
    assert!(
        found["message"].as_str().unwrap().contains("_fastmcp"),
        "{found}"
    );
    house.finish().await;
}

/// A hyphen in the name of a tool and a server's version of one number are usual there.
#[tokio::test]
async fn names_and_results_are_judged_by_the_rules_of_mcp() {
    let tools = json!([
        {"name": "get-sum", "description": "Adds", "inputSchema": {"type": "object"},
         "outputSchema": {"type": "object", "properties": {"terms": {"type": "array"}}}},
        {"name": "spaced name", "description": "Has a blank", "inputSchema": {"type": "object"}},
    ]);
    let server = McpServer::start(legacy("2025-06-18", &tools)).await;
    let house = House::of(&[("sums", server.url())]).await;
    let address = house.serve().await;
    let findings = json_at(address, "/api/v1/findings?scenario=sums").await;
    let judged = [
        "tool-name",
        "scenario-name",
        "scenario-version",
        "items-missing",
    ];
    let all = findings["findings"].as_array().unwrap().iter();
    let found: Vec<_> = all
        .filter(|finding| judged.iter().any(|code| finding["code"] == *code))
        .map(|finding| {
            (
                finding["code"].as_str().unwrap(),
                finding["tool"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(found, [("tool-name", "spaced name")], "{findings}");
    house.finish().await;
}

#[tokio::test]
async fn a_list_of_several_pages_is_read_to_its_end() {
    let mut own = modern(&json!([]));
    let server = McpServer::start(move |came: &Came| match came.method() {
        "tools/list" => {
            // The empty text is a cursor as good as any.
            let (name, lifetime, next) = match came.message["params"]["cursor"].as_str() {
                None => ("a", 900_000, Some("")),
                Some("") => ("b", 600_000, Some("3")),
                Some(_) => ("c", 1_200_000, None),
            };
            let mut page =
                json!({"resultType": "complete", "tools": [tool(name)], "ttlMs": lifetime, "cacheScope": "private"});
            if let Some(next) = next {
                page["nextCursor"] = next.into();
            }
            came.result(&page)
        }
        _ => own(came),
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(house.names(), ["a", "b", "c"]);
    let fresh = house.app.snapshot().health[&scenario("files")]
        .freshness
        .unwrap();
    let lifetime = fresh
        .fresh_until
        .duration_since(fresh.received_at)
        .as_secs();
    assert_eq!(
        lifetime, 600,
        "the page that lasts the shortest time decides"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_tool_whose_header_annotation_is_invalid_costs_that_tool_in_the_modern_era_only() {
    let bad = json!({"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}});
    let tools = json!([tool("good"), bad]);
    let server = McpServer::start(modern(&tools)).await;
    let older = McpServer::start(legacy("2025-11-25", &tools)).await;
    let house = House::of(&[("files", server.url()), ("older", older.url())]).await;
    let snapshot = house.app.snapshot();
    let names = |name: &str| -> Vec<_> {
        snapshot
            .catalog
            .entry(&scenario(name))
            .unwrap()
            .manifest
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect()
    };
    assert_eq!(names("files"), ["good"]);
    assert_eq!(names("older"), ["bad", "good"]);
    let finding = snapshot
        .findings
        .iter()
        .find(|finding| finding.code == FindingCode::ToolQuarantined)
        .unwrap()
        .clone();
    assert!(finding.message.contains("x-mcp-header"), "{finding:?}");
    house.finish().await;
}

#[tokio::test]
async fn a_server_without_tools_is_live_and_offers_none() {
    let server = McpServer::start(|came| match came.method() {
        "initialize" => came.result(&json!({"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}}, "serverInfo": {"name": "p", "version": "1"}})),
        "notifications/initialized" => Answer::Text(202, String::new()),
        _ => came.error(200, -32_601, "Method not found"),
    })
    .await;
    let house = House::of(&[("prompts", server.url())]).await;
    assert_eq!(
        house.app.snapshot().health[&scenario("prompts")]
            .state
            .as_str(),
        "live"
    );
    house.finish().await;
}

/// Every call of it would fail, so a model would spend its turn on a refusal.
#[tokio::test]
async fn a_tool_that_runs_as_a_task_only_is_left_out_and_the_reason_is_given_everywhere() {
    let tools = json!([
        {"name": "brew", "description": "Brews", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        {"name": "study", "description": "Studies", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
    ]);
    let server = McpServer::start(modern(&tools)).await;
    let house = House::of(&[("kitchen", server.url())]).await;
    let address = house.serve().await;
    let list = json_at(address, "/api/v1/tools").await;
    let names: Vec<&str> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["brew"]);
    let findings = json_at(address, "/api/v1/findings?code=task-required").await;
    assert_eq!(findings["findings"][0]["tool"], "study", "{findings}");
    let explained = json_at(address, "/api/v1/tools/study/explain").await;
    let verdict = explained["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("not in the list") && verdict.contains("`task-required`"),
        "{explained}"
    );
    let call = json!({"tool_name": "study", "arguments": {}}).to_string();
    let refused = ask(
        address,
        "POST",
        "/api/v1/tools/execute",
        &[("content-type", "application/json")],
        &call,
    )
    .await;
    assert_eq!(refused.status, 404);
    assert!(
        refused.json()["error"]
            .as_str()
            .unwrap()
            .contains("as a task only"),
        "{refused:?}"
    );
    house.finish().await;
}
