//! Prompts and resources of MCP servers: listed from memory, and passed on to the server that owns
//! them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "also helpers of a test fail it by panicking"
)]

use std::net::SocketAddr;

use callsheet::catalog::NamingStyle;
use callsheet::model::{FindingCode, Profile};
use serde_json::{Value, json};

use crate::support::house::House;
use crate::support::mcp_client::McpClient;
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};

/// What a server answers for prompts and resources with these; everything else is answered by
/// `others`.
pub(crate) fn offering(
    mut others: impl FnMut(&Came) -> Answer + Send + 'static,
    capabilities: Value,
    uris: &[&str],
) -> impl FnMut(&Came) -> Answer + Send + 'static {
    let resources: Vec<_> = uris
        .iter()
        .map(|uri| json!({"uri": uri, "name": "n", "_meta": {"b": 1, "_own": 3, "a": 2}}))
        .collect();
    move |came| {
        let params = &came.message["params"];
        match came.method() {
            "server/discover" | "initialize" => declaring(others(came), &capabilities),
            "prompts/list" if params["cursor"].is_null() => came.result(&json!({"prompts": [{"name": "greet",
                "title": "Greet", "arguments": [{"name": "who", "required": true}]}], "nextCursor": "2"})),
            "prompts/list" => came.result(&json!({"prompts": [{"name": "part"}, {"title": "nameless"}]})),
            "resources/list" => came.result(&json!({"resources": resources})),
            "resources/templates/list" => came
                .result(&json!({"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "by id"}]})),
            "prompts/get" => came.result(&json!({"messages": [{"role": "user",
                "content": {"type": "text", "text": format!("{} {}", params["name"], params["arguments"])}}]})),
            "resources/read" if params["uri"] == "test://gone" => came.error(200, -32_002, "no such resource"),
            "resources/read" => {
                came.result(&json!({"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "t", "_meta": {"_own": 1}}]}))
            }
            "completion/complete" => {
                came.result(&json!({"completion": {"values": [params["ref"]["name"], params["argument"]["value"]]}}))
            }
            _ => others(came),
        }
    }
}

fn declaring(answer: Answer, capabilities: &Value) -> Answer {
    match answer {
        Answer::Json(status, mut message) => {
            for (name, value) in capabilities.as_object().unwrap() {
                message["result"]["capabilities"][name] = value.clone();
            }
            Answer::Json(status, message)
        }
        Answer::With(name, value, answer) => {
            Answer::With(name, value, Box::new(declaring(*answer, capabilities)))
        }
        other => other,
    }
}

pub(crate) fn all() -> Value {
    json!({"prompts": {"listChanged": true}, "resources": {"listChanged": true}, "completions": {}})
}

/// A request of the modern era.
async fn new(address: SocketAddr, method: &str, params: Value) -> (u16, Value) {
    McpClient::modern(address, json!({}))
        .request(method, params)
        .await
}

/// A request of the older era.
async fn old(address: SocketAddr, method: &str, params: Value) -> Value {
    McpClient::legacy(address, "2025-11-25", json!({}))
        .await
        .request(method, params)
        .await
        .1
}

/// A request of the modern era at another address.
async fn at(address: SocketAddr, target: &str, method: &str, params: Value) -> Value {
    McpClient::modern(address, json!({}))
        .at(target)
        .request(method, params)
        .await
        .1
}

/// The values of a member in a list.
fn each(listed: &Value, list: &str, member: &str) -> Vec<String> {
    let items = listed["result"][list]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"));
    items
        .iter()
        .map(|item| item[member].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_scenario_without_prompts_and_resources_gives_empty_lists() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    for (method, list) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let expected =
            json!({"resultType": "complete", list: [], "ttlMs": 60_000, "cacheScope": "private"});
        assert_eq!(new(address, method, json!({})).await.1["result"], expected);
        assert_eq!(old(address, method, json!({})).await["result"], expected);
    }
    let (_, unknown) = new(address, "resources/read", json!({"uri": "test://none"})).await;
    assert_eq!(unknown["error"]["code"], -32_602);
    assert_eq!(unknown["error"]["data"]["uri"], "test://none");
    let unknown = old(address, "resources/read", json!({"uri": "test://none"})).await;
    assert_eq!(unknown["error"]["code"], -32_002);
    assert_eq!(unknown["error"]["data"]["uri"], "test://none");
    assert_eq!(
        old(address, "prompts/get", json!({"name": "greet"})).await["error"]["code"],
        -32_602
    );
    assert!(
        server.of("prompts/list").is_empty(),
        "what a server does not declare is not requested"
    );
    house.finish().await;
}

/// The lists have what both servers offer, and what is left out of them is found.
async fn assert_all_is_listed(house: &House, address: SocketAddr) {
    let (_, listed) = new(address, "prompts/list", json!({})).await;
    assert_eq!(
        each(&listed, "prompts", "name"),
        ["docs__greet", "docs__part", "notes__greet", "notes__part"]
    );
    assert_eq!(
        listed["result"]["prompts"][0]["arguments"],
        json!([{"name": "who", "required": true}])
    );
    let nameless = house
        .app
        .snapshot()
        .findings
        .iter()
        .filter(|found| found.code == FindingCode::OfferLeftOut)
        .count();
    assert_eq!(nameless, 2, "one of each server");
    let (_, listed) = new(address, "resources/list", json!({})).await;
    assert_eq!(
        each(&listed, "resources", "uri"),
        ["test://gone", "test://static", "note://1"]
    );
    assert_eq!(
        listed["result"]["resources"][0]["_meta"].to_string(),
        r#"{"b":1,"a":2}"#
    );
    let left_out = FindingCode::MetaKeyLeftOut;
    assert!(
        house
            .app
            .snapshot()
            .findings
            .iter()
            .any(|found| found.code == left_out),
        "the resources have such keys"
    );
    let (_, listed) = new(address, "resources/templates/list", json!({})).await;
    assert_eq!(each(&listed, "resourceTemplates", "uriTemplate").len(), 2);
}

/// Gets the prompt `greet` of each server, and none where it is not said of which.
async fn assert_prompts_are_got(address: SocketAddr, docs: &McpServer, notes: &McpServer) {
    for (name, server) in [("docs__greet", docs), ("notes__greet", notes)] {
        let (_, got) = new(
            address,
            "prompts/get",
            json!({"name": name, "arguments": {"who": "Ada"}}),
        )
        .await;
        assert_eq!(
            got["result"]["messages"][0]["content"]["text"], r#""greet" {"who":"Ada"}"#,
            "{got}"
        );
        assert_eq!(got["result"]["resultType"], "complete");
        let sent = server.of("prompts/get").pop().unwrap();
        let header = (server.url() == docs.url()).then_some("greet");
        assert_eq!(
            sent.header("mcp-name"),
            header,
            "only servers of the modern era want it"
        );
    }
    let (_, refused) = new(address, "prompts/get", json!({"name": "greet"})).await;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("docs__greet") && message.contains("notes__greet"),
        "{refused}"
    );
}

#[tokio::test]
async fn prompts_and_resources_of_servers_of_both_eras_are_passed_on() {
    let docs = offering(
        modern(&json!([tool("read")])),
        all(),
        &["test://static", "test://gone"],
    );
    let docs = McpServer::start(docs).await;
    let notes = offering(legacy("2025-06-18", &json!([])), all(), &["note://1"]);
    let notes = McpServer::start(notes).await;
    let house = House::of(&[("docs", docs.url()), ("notes", notes.url())]).await;
    let address = house.serve().await;

    assert_all_is_listed(&house, address).await;
    // By the name in the list, by its own name where that is clear, and by no other.
    assert_prompts_are_got(address, &docs, &notes).await;

    let (_, read) = new(address, "resources/read", json!({"uri": "note://1"})).await;
    let expected = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "contents": [{"uri": "note://1", "mimeType": "text/plain", "text": "t", "_meta": {}}]});
    assert_eq!(read["result"], expected);
    let (_, gone) = new(address, "resources/read", json!({"uri": "test://gone"})).await;
    assert_eq!(gone["error"]["code"], -32_602);
    assert_eq!(gone["error"]["data"]["uri"], "test://gone");
    let gone = old(address, "resources/read", json!({"uri": "test://gone"})).await;
    assert_eq!(gone["error"]["code"], -32_002);

    let (_, completed) = new(
        address,
        "completion/complete",
        json!({"ref": {"type": "ref/prompt", "name": "notes__part"},
        "argument": {"name": "a", "value": "v"}}),
    )
    .await;
    assert_eq!(
        completed["result"]["completion"]["values"],
        json!(["part", "v"]),
        "{completed}"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_uri_of_two_scenarios_is_refused_with_both_names_unless_the_address_has_one_of_them() {
    let mut servers = Vec::new();
    for uris in [&["test://same", "test://a"], &["test://same", "test://b"]] {
        servers.push(McpServer::start(offering(modern(&json!([])), all(), uris)).await);
    }
    let house = House::with(
        &[("a", servers[0].url()), ("b", servers[1].url())],
        |config| {
            config.mcp_face.naming = NamingStyle::OnCollision;
            let scenarios = Some(["b".parse().unwrap()].into());
            config.profiles.insert(
                "half".to_owned(),
                Profile {
                    scenarios,
                    ..Profile::default()
                },
            );
        },
    )
    .await;
    let address = house.serve().await;
    for uri in ["test://same", "test://template/7/data"] {
        let (_, refused) = new(address, "resources/read", json!({"uri": uri})).await;
        assert_eq!(
            refused["error"]["data"],
            json!({"uri": uri, "scenarios": ["a", "b"]}),
            "{refused}"
        );
        for target in ["/mcp?scenario=b", "/mcp/half"] {
            let answer = at(address, target, "resources/read", json!({"uri": uri})).await;
            assert_eq!(
                answer["result"]["contents"][0]["uri"], uri,
                "{target}: {answer}"
            );
        }
    }
    assert_eq!(servers[0].of("resources/read").len(), 0);
    assert_eq!(servers[1].of("resources/read").len(), 4);
    let names = each(
        &at(address, "/mcp/half", "prompts/list", json!({})).await,
        "prompts",
        "name",
    );
    assert_eq!(
        names,
        ["greet", "part"],
        "no other prompt that this client sees has the name"
    );
    let names = each(
        &new(address, "prompts/list", json!({})).await.1,
        "prompts",
        "name",
    );
    assert_eq!(names, ["a__greet", "a__part", "b__greet", "b__part"]);
    house.finish().await;
}

#[tokio::test]
async fn a_list_that_fails_keeps_the_last_good_one_and_costs_no_tool() {
    let mut good = offering(modern(&json!([tool("read")])), all(), &["test://a"]);
    let server = McpServer::start(offering(
        modern(&json!([tool("read")])),
        all(),
        &["test://a"],
    ))
    .await;
    let house = House::of(&[("docs", server.url())]).await;
    let address = house.serve().await;
    server.script(move |came| match came.method() {
        "prompts/list" => came.error(200, -32_603, "broken"),
        "tools/list" => came.result(&json!({"tools": [tool("read"), tool("write")]})),
        _ => good(came),
    });
    house.refresh("docs").await;
    house
        .until("two tools", |now| {
            now.catalog.entries().any(|entry| entry.tools.len() == 2)
        })
        .await;
    assert_eq!(
        each(
            &old(address, "prompts/list", json!({})).await,
            "prompts",
            "name"
        )
        .len(),
        2
    );
    let findings = house.app.snapshot().findings.clone();
    let found = findings
        .iter()
        .find(|found| found.code == FindingCode::OfferLeftOut)
        .expect("a finding");
    assert!(found.message.contains("`prompts/list` failed"), "{found:?}");
    house.finish().await;
}

/// What a server lists of all kinds together has the bytes of one list.
#[tokio::test]
async fn lists_of_other_kinds_have_the_bytes_that_the_tools_left() {
    let mut own = offering(modern(&json!([])), json!({"resources": {}}), &[]);
    let pad = "x".repeat(600_000);
    let server = McpServer::start(move |came| match came.method() {
        "tools/list" => came.result(&json!({"tools": [tool("read")], "pad": pad})),
        "resources/list" => {
            came.result(&json!({"resources": [{"uri": "test://a", "name": "a"}], "pad": pad}))
        }
        _ => own(came),
    })
    .await;
    let house = House::with(&[("docs", server.url())], |config| {
        config.refresh.max_body = 1_000_000;
    })
    .await;
    let snapshot = house.app.snapshot();
    assert_eq!(house.names(), ["read"]);
    let found = snapshot
        .findings
        .iter()
        .find(|found| found.code == FindingCode::OfferLeftOut)
        .expect("a finding");
    assert!(
        found.message.contains("`resources/list` failed") && found.message.contains("larger"),
        "{found:?}"
    );
    house.finish().await;
}

/// The URI of a request that no list has is compared with the templates of all servers.
#[tokio::test]
async fn a_server_has_200_templates_at_most_and_the_rest_is_a_finding() {
    let mut own = offering(modern(&json!([])), json!({"resources": {}}), &[]);
    let template = |number: usize| format!("f:{}{number}", "{+a}b".repeat(31));
    let templates: Vec<_> = (0..6_000)
        .map(|number| json!({"uriTemplate": template(number), "name": "n"}))
        .collect();
    let many = McpServer::start(move |came| match came.method() {
        "resources/templates/list" => came.result(&json!({"resourceTemplates": templates})),
        _ => own(came),
    })
    .await;
    let docs = offering(modern(&json!([])), json!({"resources": {}}), &[]);
    let docs = McpServer::start(docs).await;
    let house = House::of(&[("docs", docs.url()), ("many", many.url())]).await;
    let address = house.serve().await;

    let (_, listed) = new(address, "resources/templates/list", json!({})).await;
    assert_eq!(
        each(&listed, "resourceTemplates", "uriTemplate").len(),
        201,
        "that of the other one, too"
    );
    let findings = house.app.snapshot().findings.clone();
    let left_out =
        "one of its `resourceTemplates` is left out: is beyond the first 200 of the list";
    assert!(
        findings.iter().any(|found| found.message == left_out),
        "{findings:?}"
    );

    let fitting = format!("f:{}199", "xb".repeat(40));
    let beyond = format!("f:{}200", "xb".repeat(40));
    for (uri, is_found) in [
        (fitting.as_str(), true),
        (beyond.as_str(), false),
        ("test://template/7/data", true),
    ] {
        let (_, read) = new(address, "resources/read", json!({"uri": uri})).await;
        assert_eq!(read["error"].is_null(), is_found, "{read}");
    }
    assert_eq!(many.of("resources/read").len(), 1);
    assert_eq!(docs.of("resources/read").len(), 1);
    house.finish().await;
}

/// Clients of MCP put their own name for the daemon before each name.
#[tokio::test]
async fn the_longest_name_of_a_prompt_stays_its_own() {
    let mut own = offering(modern(&json!([])), all(), &[]);
    let names = ["p".repeat(48), "q".repeat(49)];
    let prompts: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let server = McpServer::start(move |came| match came.method() {
        "prompts/list" => came.result(&json!({"prompts": prompts})),
        _ => own(came),
    })
    .await;
    let naming =
        |config: &mut callsheet::config::Config| config.mcp_face.naming = NamingStyle::OnCollision;
    let house = House::with(&[("docs", server.url())], naming).await;
    let address = house.serve().await;
    let listed = new(address, "prompts/list", json!({})).await.1;
    let listed = each(&listed, "prompts", "name");
    assert!(listed.contains(&names[0]), "{listed:?}");
    assert!(listed.iter().all(|name| name.len() <= 48), "{listed:?}");
    house.finish().await;
}
