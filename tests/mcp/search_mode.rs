//! A search in place of the list: few fixed tools, every tool still callable, and what that saves
//! on real tools.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "also helpers of a test fail it by panicking"
)]

use std::path::{Path, PathBuf};

use callsheet::model::{Profile, SettingsPatch};
use serde_json::{Value, json};

use crate::face::names;
use crate::support::house::House;
use crate::support::mcp_client::{McpClient, rpc};
use crate::support::mcp_server::{McpServer, modern, tool};

fn about(name: &str, text: &str) -> Value {
    json!({"name": name, "description": text, "inputSchema": {"type": "object",
        "properties": {"path": {"type": "string", "description": "Where it is."}}}})
}

fn pinned() -> SettingsPatch {
    SettingsPatch {
        pinned: Some(Some(true)),
        ..SettingsPatch::default()
    }
}

async fn called(client: &McpClient, name: &str, arguments: Value) -> Value {
    client
        .result("tools/call", json!({"name": name, "arguments": arguments}))
        .await
}

#[tokio::test]
async fn a_search_takes_the_place_of_the_list_and_every_tool_can_be_called() {
    let tools = json!([
        about("read", "Reads a file from the disk."),
        about("weather", "Forecast of rain."),
        tool("pin")
    ]);
    let server = McpServer::start(modern(&tools)).await;
    let house = House::with(&[("files", server.url())], |config| {
        let profile = Profile {
            searches: Some(true),
            ..Profile::default()
        };
        config.profiles.insert("brief".to_owned(), profile);
    })
    .await;
    let address = house.serve().await;
    house.prefer("global", "tool:files/pin", pinned()).await;
    let client = McpClient::modern(address, json!({}));
    let searching = client.at("/mcp?mode=search");
    let list =
        |client: McpClient| async move { names(&client.request("tools/list", json!({})).await.1) };
    let fixed = ["find_tools", "call_tool", "files__pin"];
    assert_eq!(
        list(client.clone()).await,
        ["files__pin", "files__read", "files__weather"],
        "off by default"
    );
    assert_eq!(list(searching.clone()).await, fixed);
    assert_eq!(list(client.at("/mcp/brief")).await, fixed);
    assert_eq!(list(client.at("/mcp/brief?mode=list")).await.len(), 3);
    assert_eq!(
        client
            .at("/mcp?mode=often")
            .send(&rpc("tools/list", &json!({})))
            .await,
        400
    );

    let found = called(&searching, "find_tools", json!({"query": "read a file"})).await;
    let best = &found["structuredContent"]["tools"][0];
    assert_eq!(best["name"], "files__read", "{found}");
    assert_eq!(best["inputSchema"]["properties"]["path"]["type"], "string");
    let tight = called(
        &searching,
        "find_tools",
        json!({"query": "read a file", "max_tokens": 1}),
    )
    .await;
    assert_eq!(tight["structuredContent"]["tools"], json!([]));
    assert_eq!(tight["structuredContent"]["others"][0], "files__read");
    for arguments in [
        json!({}),
        json!({"query": " "}),
        json!({"query": "read", "max_tokens": "many"}),
    ] {
        assert_eq!(
            called(&searching, "find_tools", arguments).await["isError"],
            true
        );
    }

    // What was found is called by its name, listed or not, or through the tool for that; both in
    // every mode.
    for client in [&searching, &client] {
        let direct = called(client, "files__read", json!({"path": "a"})).await;
        assert_eq!(
            direct["structuredContent"]["arguments"],
            json!({"path": "a"}),
            "{direct}"
        );
        let through = called(
            client,
            "call_tool",
            json!({"name": "files__read", "arguments": {"path": "b"}}),
        )
        .await;
        assert_eq!(
            through["structuredContent"]["arguments"],
            json!({"path": "b"}),
            "{through}"
        );
        assert_eq!(
            called(client, "call_tool", json!({"arguments": {}})).await["isError"],
            true
        );
    }

    // The list does not change with what it does not show.
    server.script(modern(&json!([tool("another"), tool("pin")])));
    house.refresh("files").await;
    house
        .until("the other list", |now| {
            now.catalog
                .entries()
                .any(|entry| entry.tool("another").is_some())
        })
        .await;
    assert_eq!(list(searching).await, fixed);
    house.finish().await;
}

/// The tools of a file of the corpus; none where it is not there.
fn corpus(file: &str) -> Vec<Value> {
    fn collect(value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(members)
                if members.contains_key("name") && members.contains_key("inputSchema") =>
            {
                found.push(value.clone());
            }
            Value::Object(members) => members.values().for_each(|inner| collect(inner, found)),
            _ => {}
        }
    }
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let folder = std::env::var_os("CALLSHEET_CORPUS").map_or_else(beside, PathBuf::from);
    let Ok(text) = std::fs::read_to_string(folder.join(file)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    collect(&serde_json::from_str(&text).unwrap(), &mut found);
    for (index, tool) in found.iter_mut().enumerate() {
        tool["name"] = format!("{index:03}_{}", tool["name"].as_str().unwrap_or_default()).into();
        tool["inputSchema"]["type"] = "object".into();
    }
    found
}

/// Tokens as callsheet estimates them for lists of MCP clients.
fn tokens(text: &Value) -> usize {
    text.to_string().len().div_ceil(3)
}

#[tokio::test]
async fn a_search_costs_a_part_of_the_tokens_of_a_long_list() {
    let all = corpus("schemas/livemcpbench.json");
    // Three real sets: all 70 servers, a third of their tools, and as many as five servers have.
    for (set, size) in [
        ("all", usize::MAX),
        ("a third", all.len() / 3),
        ("forty", 40),
    ] {
        let tools: Vec<_> = all.iter().take(size).cloned().collect();
        if tools.is_empty() {
            continue;
        }
        let server = McpServer::start(modern(&json!(tools))).await;
        let house = House::of(&[("real", server.url())]).await;
        let client = McpClient::modern(house.serve().await, json!({}));
        let list = tokens(&client.result("tools/list", json!({})).await["tools"]);
        let searching = client.at("/mcp?mode=search");
        let fixed = tokens(&searching.result("tools/list", json!({})).await["tools"]);
        let mut searches = Vec::new();
        for query in [
            "read a file",
            "search the web",
            "get the weather forecast",
            "create a chart",
        ] {
            let found = called(&searching, "find_tools", json!({"query": query})).await;
            searches.push(tokens(&found["structuredContent"]));
        }
        let search = searches.iter().sum::<usize>() / searches.len();
        assert!(
            searches.iter().all(|search| *search <= 2_200),
            "{searches:?}"
        );
        let figures = format!(
            "{set}: {} tools, list {list}, search tools {fixed}, one search {search}",
            tools.len()
        );
        assert!(
            fixed + 2 * search < list,
            "two searches cost less than the list: {figures} tokens"
        );
        house.finish().await;
    }
}
