//! Profiles and definitions that operators add while the daemon runs, and the level of a caller.

use std::net::SocketAddr;

use callsheet::catalog::ViewQuery;
use callsheet::model::Permission;
use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool, tool_with};
use crate::support::house::{House, scenario};
use crate::support::mcp_client::McpClient;
use crate::support::serving::ask;

/// A scenario with a tool for each of three levels.
async fn leveled() -> Callee {
    let of = |name: &str, level: &str| {
        let metadata = json!({"enabled_by_default": true, "required_permission": level});
        tool_with(name, &json!({"type": "object"}), &metadata)
    };
    let tools = [
        of("look", "guest"),
        of("change", "user"),
        of("wipe", "admin"),
    ];
    Callee::echo(manifest("files", &tools)).await
}

async fn send(address: SocketAddr, method: &str, target: &str, body: &Value) -> (u16, Value) {
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let headers = [("content-type", "application/json")];
    let answer = ask(address, method, target, &headers, &text).await;
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

async fn get(address: SocketAddr, target: &str) -> Value {
    let (status, answer) = send(address, "GET", target, &Value::Null).await;
    assert_eq!(status, 200, "{target}: {answer}");
    answer
}

async fn listed(address: SocketAddr, query: &str) -> Vec<String> {
    let list = get(address, &format!("/api/v1/tools?{query}")).await;
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_profile_is_added_changed_and_taken_away_while_the_daemon_runs() {
    let files = leveled().await;
    let others = Callee::echo(manifest("others", &[tool("talk")])).await;
    let scenarios = [("files", files.url()), ("others", others.url())];
    let house = House::of(&scenarios).await;
    let address = house.serve().await;
    let all = ["change", "look", "wipe", "talk"];
    assert_eq!(listed(address, "profile=anything").await, all);

    let bounds = json!({"scenarios": ["files"], "permission": "user"});
    let (status, added) = send(address, "PUT", "/api/v1/profiles/intern", &bounds).await;
    assert_eq!(status, 200, "{added}");
    assert_eq!(added["profile"]["origin"], "store");
    assert!(
        added["note"].as_str().unwrap().contains("first profile"),
        "{added}"
    );
    assert_eq!(listed(address, "profile=intern").await, ["change", "look"]);
    // As with a profile of the configuration, another name sees no tools from now on.
    let (status, refused) = send(
        address,
        "GET",
        "/api/v1/tools?profile=anything",
        &Value::Null,
    )
    .await;
    assert_eq!(status, 403, "{refused}");
    assert_eq!(refused["known"], json!(["intern"]));

    // A change replaces all bounds, and holds at once for calls too.
    let (_, changed) = send(
        address,
        "PUT",
        "/api/v1/profiles/intern",
        &json!({"permission": "guest"}),
    )
    .await;
    assert_eq!(changed["profile"]["scenarios"], Value::Null);
    assert!(changed.get("note").is_none(), "{changed}");
    assert_eq!(listed(address, "profile=intern").await, ["look", "talk"]);
    let call = json!({"tool_name": "change", "arguments": {}, "profile": "intern"});
    let (status, denied) = send(address, "POST", "/api/v1/tools/execute", &call).await;
    assert_eq!(status, 403, "{denied}");
    assert_eq!(denied["code"], json!("not_allowed"));

    // It outlives a restart.
    let house = house.restart().await;
    let address = house.serve().await;
    let profiles = get(address, "/api/v1/profiles").await;
    assert_eq!(
        profiles["profiles"],
        json!([{"name": "intern", "origin": "store", "scenarios": null, "permission": "guest",
            "mcp_mode": null, "is_default": false, "is_hidden": false}])
    );
    house
        .until("listed again", |snapshot| {
            snapshot.catalog.entry(&scenario("files")).is_some()
        })
        .await;
    assert!(
        !listed(address, "profile=intern")
            .await
            .contains(&"change".to_owned())
    );

    let (status, gone) = send(address, "DELETE", "/api/v1/profiles/intern", &Value::Null).await;
    assert_eq!(status, 200);
    assert!(
        gone["message"].as_str().unwrap().contains("last profile"),
        "{gone}"
    );
    assert!(
        listed(address, "profile=intern")
            .await
            .contains(&"change".to_owned())
    );
    let (status, unknown) = send(address, "DELETE", "/api/v1/profiles/intern", &Value::Null).await;
    assert_eq!(status, 404, "{unknown}");
    assert_eq!(unknown["known"], json!([]));
    house.finish().await;
}

#[tokio::test]
async fn a_profile_of_the_configuration_is_shown_and_not_changed_by_route() {
    let files = leveled().await;
    let house = House::with(&[("files", files.url())], |config| {
        let narrow = callsheet::model::Profile {
            permission: Some(Permission::Guest),
            ..Default::default()
        };
        config.profiles.insert("narrow".into(), narrow);
    })
    .await;
    let address = house.serve().await;
    for (method, body) in [
        ("PUT", json!({"permission": "owner"})),
        ("DELETE", Value::Null),
    ] {
        let (status, refused) = send(address, method, "/api/v1/profiles/narrow", &body).await;
        assert_eq!(status, 409, "{refused}");
        assert!(
            refused["next_step"]
                .as_str()
                .unwrap()
                .contains("`[[profiles]]`"),
            "{refused}"
        );
    }
    assert_eq!(listed(address, "profile=narrow").await, ["look"]);
    // What is wrong is named with its member, by the rules of the file.
    for (body, named) in [
        (
            json!({"permission": "root"}),
            "`permission`: `root` is not a level",
        ),
        (json!({"scenarios": ["a/b"]}), "`scenarios[0]`"),
        (json!({"mcp_mode": "all"}), "`mcp_mode`"),
        (json!({"scenario": ["files"]}), "scenario"),
    ] {
        let (status, refused) = send(address, "PUT", "/api/v1/profiles/other", &body).await;
        assert_eq!(status, 400, "{refused}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(named), "{body}: {detail}");
    }
    assert_eq!(
        get(address, "/api/v1/profiles").await["profiles"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    house.finish().await;
}

/// N people and M personas need N + M entries: the level is the person's, the scenarios are the
/// persona's, and neither widens the other.
#[tokio::test]
async fn the_level_of_a_caller_lowers_that_of_its_profile_on_every_face() {
    let files = leveled().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let bounds = json!({"scenarios": ["files"], "permission": "user"});
    send(address, "PUT", "/api/v1/profiles/desk", &bounds).await;
    let lists = [
        ("profile=desk", &["change", "look"][..]),
        ("profile=desk&permission=guest", &["look"]),
        ("profile=desk&permission=owner", &["change", "look"]),
        ("permission=user", &["change", "look"]),
        ("permission=admin", &["change", "look", "wipe"]),
        ("permission=guest", &["look"]),
    ];
    for (query, names) in lists {
        assert_eq!(listed(address, query).await, names, "{query}");
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let (_, list) = send(address, "POST", &format!("/rpc?{query}"), &rpc).await;
        assert_eq!(
            list["result"]["tools"].as_array().unwrap().len(),
            names.len()
        );
        let found = get(
            address,
            &format!("/api/v1/tools/search?q=wipe+change+look&{query}"),
        )
        .await;
        assert_eq!(found["results"].as_array().unwrap().len(), names.len());
    }
    let explained = get(address, "/api/v1/tools/wipe/explain?permission=guest").await;
    assert_eq!(
        explained["verdict"],
        "not in the list: it requires the permission `admin`, and the caller has `guest`"
    );

    // Calls: over HTTP, JSON-RPC, MCP and in a turn.
    let call =
        json!({"tool_name": "change", "arguments": {}, "profile": "desk", "permission": "guest"});
    let (status, denied) = send(address, "POST", "/api/v1/tools/execute", &call).await;
    assert_eq!(status, 403, "{denied}");
    assert_eq!(denied["code"], json!("not_allowed"));
    let rpc =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "change"}});
    let (_, denied) = send(address, "POST", "/rpc?permission=guest", &rpc).await;
    assert_eq!(denied["error"]["data"]["code"], "not_allowed", "{denied}");
    let response = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "change", "arguments": "{}"}}]}}]});
    let at = "/api/v1/turns?format=openai&permission=guest";
    let (_, turn) = send(address, "POST", at, &response).await;
    assert_eq!(turn["calls"][0]["code"], "not_allowed", "{turn}");
    assert!(files.ran().is_empty(), "none was sent");
    let (status, _) = send(
        address,
        "POST",
        "/api/v1/tools/execute",
        &json!({"tool_name": "change", "arguments": {}, "profile": "desk", "permission": "admin"}),
    )
    .await;
    assert_eq!(status, 200);

    // An empty or unknown level lifts no bound.
    for query in ["permission=", "permission=root"] {
        let target = format!("/api/v1/tools?{query}");
        let (status, _) = send(address, "GET", &target, &Value::Null).await;
        assert_eq!(status, 400, "{query}");
    }
    let (status, _) = send(
        address,
        "POST",
        "/api/v1/tools/execute",
        &json!({"tool_name": "look", "arguments": {}, "permission": ""}),
    )
    .await;
    assert_eq!(status, 400);
    let mcp = McpClient::modern(address, json!({})).at("/mcp/desk?permission=guest");
    let list = mcp.result("tools/list", json!({})).await;
    let named: Vec<_> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["files__look"]);
    house.finish().await;
}

#[tokio::test]
async fn the_page_of_preferences_shows_sets_and_removes_profiles() {
    let files = leveled().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let json = [("content-type", "application/json")];
    let post = async |what: &str, body: Value| {
        let target = format!("/dashboard/profiles/{what}");
        ask(address, "POST", &target, &json, &body.to_string())
            .await
            .status
    };
    let page = async || {
        let answer = ask(address, "GET", "/dashboard/preferences", &[], "").await;
        String::from_utf8(answer.body).unwrap()
    };
    assert!(page().await.contains("id=\"set-profile\""));
    let form = json!({"name": "<intern>", "scenarios": "files, others", "permission": "user"});
    assert_eq!(post("set", form).await, 204);
    let text = page().await;
    assert!(
        text.contains("&lt;intern&gt;") && text.contains("files, others"),
        "{text}"
    );
    assert_eq!(
        post("set", json!({"name": "shut", "none": "none"})).await,
        204
    );
    assert_eq!(listed(address, "profile=shut").await, Vec::<String>::new());
    assert_eq!(
        post("set", json!({"name": "x", "permission": "root"})).await,
        400
    );
    assert_eq!(post("remove", json!({"name": "<intern>"})).await, 204);
    assert!(!page().await.contains("intern"));
    house.finish().await;
}

fn definition(name: &str) -> Value {
    json!({"schema": {"type": "object", "description": "Rates a text", "required": ["text"], "properties": {
        "_tool": {"type": "string", "const": name}, "text": {"type": "string"},
        "_output": {"type": "object", "required": ["stars"], "properties": {"stars": {"type": "number"}}}}}})
}

#[tokio::test]
async fn another_program_registers_definitions_while_the_daemon_runs() {
    let ratings = Callee::echo(manifest("ratings", &[tool("judge")])).await;
    let house = House::of(&[("ratings", ratings.url())]).await;
    let address = house.serve().await;
    let (status, added) = send(
        address,
        "PUT",
        "/api/v1/definitions/rate",
        &definition("rate"),
    )
    .await;
    assert_eq!(status, 200, "{added}");
    assert_eq!(added["replaced"], json!(false));
    house
        .until("defined", |snapshot| {
            snapshot.catalog.entry(&scenario("definitions")).is_some()
        })
        .await;
    assert!(listed(address, "").await.contains(&"rate".to_owned()));
    let latent =
        json!({"tool_name": "rate", "arguments": {"text": "good", "_output": {"stars": 5}}});
    let (status, answer) = send(address, "POST", "/api/v1/tools/execute", &latent).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"], json!({"stars": 5}));

    // The same with an activity, which then runs it.
    let mut explicit = definition("rate");
    explicit["activity"] = json!("ratings/judge");
    let (status, changed) = send(address, "PUT", "/api/v1/definitions/rate", &explicit).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed["replaced"], json!(true));
    let call = json!({"tool_name": "rate", "arguments": {"text": "good"}});
    let (status, answer) = send(address, "POST", "/api/v1/tools/execute", &call).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(ratings.ran().len(), 1);

    // They outlive a restart, and are shown apart from configured ones.
    let file = callsheet::protocols::definitions::Definition::from_schema(
        Some("sort"),
        definition("sort")["schema"].clone(),
    )
    .unwrap();
    let house = house
        .restart_with(|config| config.definitions = vec![file])
        .await;
    let address = house.serve().await;
    let list = get(address, "/api/v1/definitions").await;
    let shown: Vec<_> = list["definitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].clone(), one["origin"].clone()))
        .collect();
    assert_eq!(
        shown,
        [
            (json!("rate"), json!("store")),
            (json!("sort"), json!("configuration"))
        ]
    );
    let (status, refused) = send(
        address,
        "PUT",
        "/api/v1/definitions/sort",
        &definition("sort"),
    )
    .await;
    assert_eq!(status, 409, "{refused}");

    // The judgement is that of the file.
    for (name, body, named) in [
        (
            "other",
            definition("rate"),
            "is `rate`, but the definition is called `other`",
        ),
        (
            "rate",
            json!({"schema": {"type": "object"}}),
            "`schema`: the schema has no `properties`",
        ),
        (
            "rate",
            json!({"schema": definition("rate")["schema"], "activity": ""}),
            "`activity`: the activity is empty",
        ),
    ] {
        let target = format!("/api/v1/definitions/{name}");
        let (status, refused) = send(address, "PUT", &target, &body).await;
        assert_eq!(status, 400, "{refused}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(named), "{detail}");
    }

    let (status, _) = send(address, "DELETE", "/api/v1/definitions/rate", &Value::Null).await;
    assert_eq!(status, 200);
    house
        .until("gone", |snapshot| {
            let query = ViewQuery::default();
            let view = callsheet::catalog::View::select(&snapshot.catalog, &query);
            view.tools().all(|tool| tool.name.as_str() != "rate")
        })
        .await;
    let (status, _) = send(address, "DELETE", "/api/v1/definitions/rate", &Value::Null).await;
    assert_eq!(status, 404);
    house.finish().await;
}

#[tokio::test]
async fn all_that_is_down_is_forgotten_in_one_request() {
    let files = leveled().await;
    let house = House::with(&[("files", files.url())], |config| {
        config.health.grace = std::time::Duration::from_millis(1);
        config.health.failures = 1;
        config.health.isolation_count = 100;
    })
    .await;
    let address = house.serve().await;
    for (name, port) in [("one", 7), ("two", 9)] {
        // No program listens there.
        let url = format!("http://127.0.0.1:{port}").parse().unwrap();
        house.place(name, url, callsheet::discovery::SourceTrust::Trusted);
    }
    let is_down = |name: &'static str| {
        move |snapshot: &callsheet::catalog::Snapshot| {
            snapshot
                .health
                .get(&scenario(name))
                .is_some_and(|health| health.state == callsheet::model::ScenarioState::Down)
        }
    };
    house.until("one is down", is_down("one")).await;
    house.until("two is down", is_down("two")).await;
    house.remove("two");
    let target = "/api/v1/state/forget-unreachable";
    let (_, named) = send(address, "POST", target, &json!({"preview": true})).await;
    assert_eq!(named["scenarios"], json!(["one", "two"]), "{named}");
    assert_eq!(named["forgotten"], false);
    let (status, gone) = send(address, "POST", target, &json!({})).await;
    assert_eq!(status, 200, "{gone}");
    assert_eq!(gone["scenarios"], json!(["one", "two"]), "{gone}");
    assert_eq!(gone["still_named"], json!(["one"]), "{gone}");
    let snapshot = house.app.snapshot();
    assert!(!snapshot.health.contains_key(&scenario("two")));
    assert!(snapshot.catalog.entry(&scenario("files")).is_some());
    house.finish().await;
}
