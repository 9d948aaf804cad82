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

/// What the tools that search and describe answer, and what they refuse.
async fn tools_are_found_and_described(searching: &McpClient, client: &McpClient) {
    let found = called(searching, "find_tools", json!({"query": "read a file"})).await;
    let line = "files__read(path?: string) - Reads a file from the disk.";
    assert_eq!(found["structuredContent"]["signatures"][0], line, "{found}");
    let text = found["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.lines().next(), Some(line), "a line for each tool");
    let whole = called(
        searching,
        "find_tools",
        json!({"query": "read a file", "detail": "full"}),
    )
    .await;
    let best = &whole["structuredContent"]["tools"][0];
    assert_eq!(best["name"], "files__read", "{whole}");
    assert_eq!(best["inputSchema"]["properties"]["path"]["type"], "string");
    for detail in ["signature", "full"] {
        let tight = called(
            searching,
            "find_tools",
            json!({"query": "read a file", "max_tokens": 1, "detail": detail}),
        )
        .await;
        assert_eq!(tight["structuredContent"]["others"][0], "files__read");
        let text = tight["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("files__read") && text.contains("`max_tokens`"),
            "{text}"
        );
    }
    let described = called(
        client,
        "describe_tools",
        json!({"names": ["files__weather", "files/read", "files__nothing"]}),
    )
    .await;
    let described = &described["structuredContent"];
    assert_eq!(described["tools"][0]["description"], "Forecast of rain.");
    assert_eq!(described["tools"][1], *best, "the same as the search gives");
    assert_eq!(described["unknown"], json!(["files__nothing"]));
    for names in [
        json!([]),
        json!(vec!["files__read"; 21]),
        json!("files__read"),
    ] {
        let refused = called(client, "describe_tools", json!({"names": names})).await;
        assert_eq!(refused["isError"], true, "{refused}");
    }
    for arguments in [
        json!({}),
        json!({"query": " "}),
        json!({"query": "read", "max_tokens": "many"}),
        json!({"query": "read", "detail": "some"}),
    ] {
        assert_eq!(
            called(searching, "find_tools", arguments).await["isError"],
            true
        );
    }
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
    let fixed = ["find_tools", "describe_tools", "call_tool", "files__pin"];
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

    tools_are_found_and_described(&searching, &client).await;

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

#[tokio::test]
async fn arguments_that_do_not_fit_are_answered_with_the_schema_to_clients_that_search() {
    let server = McpServer::start(modern(&json!([about("read", "Reads a file.")]))).await;
    let house = House::of(&[("files", server.url())]).await;
    let client = McpClient::modern(house.serve().await, json!({}));
    let unfit = json!({"path": 7});
    let through = json!({"name": "files__read", "arguments": unfit});
    let schema_of = |result: Value| {
        assert_eq!(result["isError"], true, "{result}");
        let reason = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(
            reason.contains("/path") && reason.contains("is not of type \"string\""),
            "{reason}"
        );
        let shown = result["content"][1]["text"].as_str();
        shown.map(|text| serde_json::from_str::<Value>(text).unwrap())
    };
    let expected = json!({"name": "files__read", "description": "Reads a file.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is."}}}});
    let answered = schema_of(called(&client, "call_tool", through).await);
    assert_eq!(answered, Some(expected.clone()));
    let searching = client.at("/mcp?mode=search");
    let answered = schema_of(called(&searching, "files__read", unfit.clone()).await);
    assert_eq!(answered, Some(expected));
    let answered = schema_of(called(&client, "files__read", unfit).await);
    assert_eq!(answered, None, "its list has the schema");
    house.finish().await;
}

#[tokio::test]
async fn the_longest_definitions_have_short_lines_and_answers_with_a_limit() {
    let properties: serde_json::Map<String, Value> = (0..400)
        .map(|n| (format!("parameter_{n}"), json!({"type": "string"})))
        .collect();
    let required: Vec<&String> = properties.keys().collect();
    let values: Vec<String> = (0..10_000).map(|n| format!("value-{n}")).collect();
    let tools = json!([
        {"name": "many", "description": "Many parameters.",
            "inputSchema": {"type": "object", "properties": properties, "required": required}},
        {"name": "choice", "description": "Many values.",
            "inputSchema": {"type": "object", "properties": {"one": {"enum": values}}, "required": ["one"]}},
        {"name": "prose", "description": format!("Many words {}", "and more ".repeat(11_000)),
            "inputSchema": {"type": "object"}},
    ]);
    let server = McpServer::start(modern(&tools)).await;
    let house = House::of(&[("large", server.url())]).await;
    let client = McpClient::modern(house.serve().await, json!({}));
    let query = json!({"query": "many", "max_tokens": 10_000});
    let found = called(&client, "find_tools", query).await;
    let lines = found["structuredContent"]["signatures"].as_array().unwrap();
    let line = |name: &str| {
        let begins = format!("large__{name}(");
        let mut lines = lines.iter().filter_map(Value::as_str);
        lines.find(|line| line.starts_with(&begins)).unwrap()
    };
    assert!(
        required
            .iter()
            .all(|name| line("many").contains(name.as_str()))
    );
    assert!(line("many").len() < 8_000);
    assert!(line("choice").len() < 250 && line("choice").contains("|..."));
    assert!(line("prose").len() < 250, "{}", line("prose"));
    let whole = called(
        &client,
        "describe_tools",
        json!({"names": ["large__choice", "large__many", "large__prose"]}),
    )
    .await;
    let whole = &whole["structuredContent"];
    assert_eq!(whole["others"], json!(["large__prose"]), "beyond the limit");
    assert_eq!(whole["tools"].as_array().unwrap().len(), 2);
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
