//! The lists that MCP clients get: names that never change, pages, and calls of every name.

use std::net::SocketAddr;

use callsheet::catalog::NamingStyle;
use callsheet::config::StaticScenario;
use callsheet::discovery::SourceTrust;
use callsheet::model::{HttpTarget, Interaction};
use serde_json::{Value, json};

use crate::served::{new, old, served};
use crate::support::house::{House, called};
use crate::support::mcp_client::McpClient;
use crate::support::mcp_server::{McpServer, legacy, modern, tool};

/// The names in a list.
pub(crate) fn names(listed: &Value) -> Vec<String> {
    let tools = listed["result"]["tools"]
        .as_array()
        .expect("a list of tools");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

async fn listed(address: SocketAddr) -> Vec<String> {
    names(&new(address, "tools/list", json!({})).await.1)
}

#[tokio::test]
async fn a_name_is_the_same_whatever_scenarios_come_and_go() {
    let long = "x".repeat(60);
    let files = McpServer::start(modern(&json!([tool("read"), tool("a.b"), tool(&long)]))).await;
    let web = McpServer::start(modern(&json!([tool("read"), tool("fetch")]))).await;
    let (house, address) = served(&files).await;
    let alone = listed(address).await;
    assert_eq!(alone[..2], ["files__a__b", "files__read"]);
    assert!(
        alone[2].len() == 48 && alone[2].starts_with("files__xxxx"),
        "{alone:?}"
    );

    house.place("web", web.url(), SourceTrust::Trusted);
    house
        .until("the other scenario", |snapshot| {
            snapshot.catalog.entries().count() == 2
        })
        .await;
    let both = listed(address).await;
    assert_eq!(
        both,
        [
            &alone[..],
            &["web__fetch".to_owned(), "web__read".to_owned()]
        ]
        .concat()
    );

    // Each of them can be called, over HTTP too, and explained.
    for name in &both {
        let called = old(address, "tools/call", json!({"name": name})).await;
        assert_eq!(
            called["result"]["content"][0]["text"], "done",
            "{name}: {called}"
        );
    }
    assert_eq!(
        house
            .call("files__a__b", &json!({}))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "files/a.b"
    );
    house.finish().await;
}

#[tokio::test]
async fn an_alias_is_the_name_and_names_of_older_lists_go_on_meaning_their_tool() {
    let files = McpServer::start(modern(&json!([tool("read")]))).await;
    let web = McpServer::start(modern(&json!([tool("read")]))).await;
    let (house, address) = served(&files).await;
    let revision = house.revision(&callsheet::catalog::ViewQuery::default());
    house
        .prefer("global", "tool:files/read", called("open"))
        .await;
    assert_eq!(listed(address).await, ["open"]);
    house
        .prefer("global", "tool:files/read", called("view"))
        .await;
    assert_eq!(listed(address).await, ["view"]);
    house.place("web", web.url(), SourceTrust::Trusted);
    house
        .until("the other scenario", |snapshot| {
            snapshot.catalog.entries().count() == 2
        })
        .await;
    assert_ne!(
        house.revision(&callsheet::catalog::ViewQuery::default()),
        revision
    );
    // The first is the alias of an older list.
    for name in ["open", "files__read", "view"] {
        let before = files.of("tools/call").len();
        let called = old(address, "tools/call", json!({"name": name})).await;
        assert_eq!(
            called["result"]["content"][0]["text"], "done",
            "{name}: {called}"
        );
        assert_eq!(files.of("tools/call").len(), before + 1, "{name}");
    }
    let called = old(address, "tools/call", json!({"name": "write"})).await;
    assert_eq!(called["error"]["code"], -32_602, "{called}");
    house.finish().await;
}

#[tokio::test]
async fn names_are_the_published_ones_where_that_is_configured() {
    let files = McpServer::start(legacy(
        "2025-11-25",
        &json!([tool("get_operation"), tool("read")]),
    ))
    .await;
    let house = House::with(&[("files", files.url())], |config| {
        config.mcp_face.naming = NamingStyle::OnCollision;
    })
    .await;
    let address = house.serve().await;
    assert_eq!(listed(address).await, ["files__get_operation", "read"]);

    // A name that several tools have now means what it meant in the latest list where one had it.
    let web = McpServer::start(modern(&json!([tool("read")]))).await;
    house.place("web", web.url(), SourceTrust::Trusted);
    house
        .until("the other scenario", |snapshot| {
            snapshot.catalog.entries().count() == 2
        })
        .await;
    assert_eq!(
        listed(address).await,
        ["files__get_operation", "files__read", "web__read"]
    );
    let called = old(address, "tools/call", json!({"name": "read"})).await;
    assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
    assert_eq!(files.of("tools/call").len(), 1);
    assert_eq!(web.of("tools/call").len(), 0);
    house.finish().await;
}

#[tokio::test]
async fn a_list_has_pages_where_they_are_configured() {
    let tools = json!(["a", "b", "c", "d", "e"].map(tool));
    let files = McpServer::start(modern(&tools)).await;
    let house = House::with(&[("files", files.url())], |config| {
        config.mcp_face.page_size = 2;
    })
    .await;
    let address = house.serve().await;
    let mut seen = Vec::new();
    let mut cursor = None;
    let mut pages = 0;
    while pages < 4 {
        let params = cursor
            .as_ref()
            .map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let page = old(address, "tools/list", params).await;
        assert_eq!(page["result"]["resultType"], "complete");
        assert_eq!(page["result"]["ttlMs"], 60_000);
        pages += 1;
        seen.extend(names(&page));
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(pages, 3);
    assert_eq!(
        seen.join(" "),
        "files__a files__b files__c files__d files__e".to_owned()
    );

    // A cursor is good for the list that it came with only.
    let first = old(address, "tools/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].clone();
    let narrowed = McpClient::modern(address, json!({})).at("/mcp?max_tools=3");
    let (_, answer) = narrowed
        .request("tools/list", json!({"cursor": cursor}))
        .await;
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    for odd in [json!(""), json!("x"), json!("bm9wZSAx"), json!(7)] {
        let answer = old(address, "tools/list", json!({"cursor": odd})).await;
        assert_eq!(answer["error"]["code"], -32_602, "{odd}: {answer}");
    }
    house.finish().await;
}

#[tokio::test]
async fn a_schema_of_the_present_draft_comes_through_byte_for_byte() {
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}}, "then": {"required": ["phone"]},
        "else": {"required": ["email"]}, "additionalProperties": false});
    let files = McpServer::start(modern(
        &json!([{"name": "t", "description": "d", "inputSchema": schema}]),
    ))
    .await;
    let (house, address) = served(&files).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let client = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let headers = [
        ("content-type", "application/json"),
        ("mcp-session-id", client.session()),
    ];
    let answer = crate::support::serving::ask(address, "POST", "/mcp", &headers, &message).await;
    let text = String::from_utf8(answer.body).unwrap();
    assert!(
        text.contains(&format!(r#""inputSchema":{schema}"#)),
        "{text}"
    );
    house.finish().await;
}

#[tokio::test]
async fn instructions_of_servers_are_given_where_the_configuration_says_so() {
    let server = McpServer::start(legacy("2025-11-25", &json!([tool("read")]))).await;
    let entry = |name: &str, instructions: bool| {
        let interaction = Interaction {
            instructions,
            ..Interaction::default()
        };
        let target = HttpTarget {
            interaction,
            ..HttpTarget::at(server.url())
        }
        .into();
        StaticScenario {
            name: name.parse().unwrap(),
            target,
            protocol: Some("mcp".to_owned()),
            sleep_after: None,
        }
    };
    for given in [false, true] {
        let house = House::with(&[], |config| config.scenarios.push(entry("files", given))).await;
        house
            .until("listed", |snapshot| snapshot.catalog.entries().count() == 1)
            .await;
        let address = house.serve().await;
        let client = McpClient::modern(address, json!({}));
        let said = client.result("server/discover", json!({})).await["instructions"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            said.starts_with("The tools come from several providers;"),
            "{said}"
        );
        assert_eq!(
            said.ends_with("\n\nOf the tools of files: Use it well."),
            given,
            "{said}"
        );
        let narrowed = client
            .at("/mcp?scenario=other")
            .result("server/discover", json!({}))
            .await;
        assert!(
            !narrowed["instructions"]
                .as_str()
                .unwrap()
                .contains("Use it well."),
            "it does not see them"
        );
        house.finish().await;
    }
}

#[tokio::test]
async fn the_trace_of_a_call_is_passed_on_in_both_eras_and_what_is_none_is_not() {
    for is_modern in [true, false] {
        let tools = json!([tool("read")]);
        let server = if is_modern {
            McpServer::start(modern(&tools)).await
        } else {
            McpServer::start(legacy("2025-11-25", &tools)).await
        };
        let (house, address) = served(&server).await;
        let trace = json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1", "baggage": "k=v"});
        for (meta, passed) in [
            (trace.clone(), true),
            (
                json!({"traceparent": "made-up", "tracestate": "a=1"}),
                false,
            ),
            (json!({"traceparent": 7}), false),
        ] {
            let call = json!({"name": "files__read", "_meta": meta});
            new(address, "tools/call", call.clone()).await;
            old(address, "tools/call", call).await;
            let sent: Vec<_> = server.of("tools/call").into_iter().rev().take(2).collect();
            for came in sent {
                let meta = &came.message["params"]["_meta"];
                for name in ["traceparent", "tracestate", "baggage"] {
                    let expected = if passed { &trace[name] } else { &Value::Null };
                    assert_eq!(meta[name], *expected, "{is_modern}: {meta}");
                }
            }
        }
        house.finish().await;
    }
}
