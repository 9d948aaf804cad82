//! Which revision a server speaks is found out for each server alone.

use std::sync::Arc;

use callsheet::discovery::SourceTrust;
use callsheet::model::{Health, ScenarioState};
use serde_json::{Value, json};

use crate::support::house::{House, scenario};
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};

/// What a server answers to a message.
type Reply = fn(&Came) -> Answer;

fn tools() -> Value {
    json!([tool("read"), tool("write")])
}

#[tokio::test]
async fn a_modern_server_gets_no_handshake_and_its_headers() {
    let server = McpServer::start(modern(&tools())).await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(house.names(), ["read", "write"]);
    assert!(server.of("initialize").is_empty());
    let listed = &server.of("tools/list")[0];
    assert_eq!(listed.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(listed.header("mcp-method"), Some("tools/list"));
    assert_eq!(listed.header("mcp-name"), None);
    assert_eq!(
        listed.header("accept"),
        Some("application/json, text/event-stream")
    );
    let meta = &listed.message["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientInfo"]["name"],
        "callsheet"
    );
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    house.finish().await;
}

#[tokio::test]
async fn a_legacy_server_is_greeted_once_and_keeps_its_session() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let server = McpServer::start(legacy(revision, &tools())).await;
        let house = House::of(&[("files", server.url())]).await;
        assert_eq!(house.names(), ["read", "write"], "{revision}");
        house.refresh("files").await;
        assert_eq!(server.of("initialize").len(), 1);
        assert_eq!(server.of("notifications/initialized").len(), 1);
        let greeted = &server.of("initialize")[0];
        assert_eq!(greeted.header("mcp-protocol-version"), None);
        assert_eq!(greeted.header("mcp-session-id"), None);
        let listed = server.of("tools/list").pop().unwrap();
        assert_eq!(listed.header("mcp-protocol-version"), Some(revision));
        assert_eq!(listed.header("mcp-session-id"), Some("s-1"));
        assert!(
            listed.message["params"].get("_meta").is_none(),
            "{}",
            listed.message
        );
        house.finish().await;
    }
}

/// The answer of a server that does not know the session any more.
fn session_not_found() -> Answer {
    let error = json!({"code": -32_001, "message": "Session not found"});
    Answer::Json(404, json!({"jsonrpc": "2.0", "id": null, "error": error}))
}

/// Servers answer a method that they do not know in many ways; none of them hides a legacy server.
#[tokio::test]
async fn whatever_a_legacy_server_answers_to_the_modern_greeting_it_is_found() {
    let odd: [(&str, Reply); 9] = [
        ("method not found", |came| {
            came.error(200, -32_601, "Method not found")
        }),
        ("invalid parameters", |came| {
            came.error(200, -32_602, "Invalid request parameters")
        }),
        ("no session", |_| {
            let error = json!({"code": -32_600, "message": "Missing session ID"});
            let answer = Answer::Json(
                400,
                json!({"jsonrpc": "2.0", "id": "server-error", "error": error}),
            );
            Answer::With("mcp-session-id", "wrong".to_owned(), Box::new(answer))
        }),
        ("a text", |_| {
            Answer::Text(400, "Mcp-Session-Id header is required".to_owned())
        }),
        ("a page", |_| Answer::Text(200, "<html></html>".to_owned())),
        ("an empty body", |_| Answer::Text(404, String::new())),
        ("another result", |came| came.result(&json!({"tools": []}))),
        ("unauthorized", |_| Answer::Text(401, String::new())),
        ("other versions", |came| {
            let error =
                json!({"code": -32_022, "message": "no", "data": {"supported": ["2025-11-25"]}});
            Answer::Json(
                400,
                json!({"jsonrpc": "2.0", "id": came.message["id"], "error": error}),
            )
        }),
    ];
    for (what, answer) in odd {
        let mut own = legacy("2025-06-18", &tools());
        let script = move |came: &Came| {
            if came.method() == "server/discover" {
                answer(came)
            } else {
                own(came)
            }
        };
        let server = McpServer::start(script).await;
        let house = House::of(&[("files", server.url())]).await;
        assert_eq!(house.names(), ["read", "write"], "{what}");
        house.finish().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_another_revision_first_is_asked_again() {
    let mut own = modern(&tools());
    let mut refused = false;
    let server = McpServer::start(move |came: &Came| {
        if came.method() == "server/discover" && !std::mem::replace(&mut refused, true) {
            let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
            let error =
                json!({"code": -32_022, "message": "Unsupported protocol version", "data": data});
            return Answer::Json(
                400,
                json!({"jsonrpc": "2.0", "id": came.message["id"], "error": error}),
            );
        }
        own(came)
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(house.names().len(), 2);
    assert_eq!(server.of("server/discover").len(), 2);
    assert!(server.of("initialize").is_empty());
    house.finish().await;
}

#[tokio::test]
async fn a_server_that_claims_the_modern_era_and_does_not_speak_it_is_greeted_the_old_way() {
    let mut claims = modern(&tools());
    let mut speaks = legacy("2025-11-25", &tools());
    let server = McpServer::start(move |came: &Came| match came.method() {
        "server/discover" => claims(came),
        _ => speaks(came),
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(house.names(), ["read", "write"]);
    assert_eq!(server.of("initialize").len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn the_old_transport_is_found_behind_an_address_that_takes_no_posts() {
    let server = McpServer::start(|came| match (came.http.as_str(), came.path.as_str()) {
        ("GET", _) => Answer::Endpoint("/message?sessionId=7"),
        ("POST", "/message?sessionId=7") => Answer::Text(202, String::new()),
        _ => Answer::Text(405, String::new()),
    })
    .await;
    let url = server.url();
    let house = House::with(&[], |config| {
        config.refresh.min_interval = std::time::Duration::from_secs(3600);
    })
    .await;
    house.place("files", url, SourceTrust::Trusted);
    server.until("initialize", 2).await;
    let id = server.of("initialize").pop().unwrap().message["id"].clone();
    let capabilities = json!({"tools": {}});
    server.push(json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2024-11-05", "capabilities": capabilities, "serverInfo": {"name": "old", "version": "1"}}}));
    server.until("tools/list", 1).await;
    let id = server.of("tools/list")[0].message["id"].clone();
    server.push(json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools()}}));
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("files")).is_some()
        })
        .await;
    assert_eq!(house.names(), ["read", "write"]);
    house.finish().await;
}

#[tokio::test]
async fn an_unknown_revision_is_incompatible_and_names_what_is_spoken() {
    let server = McpServer::start(legacy("2031-01-01", &tools())).await;
    let house = House::with(&[], |_| ()).await;
    house.place("files", server.url(), SourceTrust::Trusted);
    let snapshot = house
        .until("refused", |snapshot| {
            snapshot
                .health
                .get(&scenario("files"))
                .is_some_and(|health| health.last_error.is_some())
        })
        .await;
    let health = &snapshot.health[&scenario("files")];
    assert_eq!(health.state.as_str(), "incompatible");
    assert!(
        format!("{:?}", health.last_error).contains("2031-01-01"),
        "{:?}",
        health.last_error
    );
    house.finish().await;
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_begun_anew() {
    for (status, code) in [(404, -32_001), (400, -32_000)] {
        let server = McpServer::start(legacy("2025-06-18", &tools())).await;
        let house = House::of(&[("files", server.url())]).await;
        let mut own = legacy("2025-06-18", &json!([tool("other")]));
        let mut greeted = false;
        server.script(move |came| {
            greeted |= came.method() == "initialize";
            if greeted {
                return own(came);
            }
            let error = json!({"code": code, "message": "Session not found"});
            Answer::Json(
                status,
                json!({"jsonrpc": "2.0", "id": null, "error": error}),
            )
        });
        let called = house.call("read", &json!({})).await.unwrap();
        assert!(
            called.outcome.success,
            "the call was not lost: {:?}",
            called.outcome
        );
        house.refresh("files").await;
        assert_eq!(house.names(), vec!["other".to_owned()]);
        assert_eq!(server.of("initialize").len(), 2);
        house.finish().await;
    }
}

#[tokio::test]
async fn a_discovered_address_is_asked_by_this_protocol_after_trust_only() {
    let server = McpServer::start(modern(&tools())).await;
    let house = House::with(&[], |_| ()).await;
    house.place("files", server.url(), SourceTrust::Untrusted);
    house
        .until("looked at", |snapshot| {
            snapshot
                .health
                .get(&scenario("files"))
                .is_some_and(|health| health.last_error.is_some())
        })
        .await;
    assert!(
        server
            .came()
            .iter()
            .all(|came| came.http == http::Method::GET),
        "{:?}",
        server.came()
    );
    house
        .app
        .engine()
        .decide(scenario("files"), Some(callsheet::state::Decision::Trusted))
        .await
        .unwrap();
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("files")).is_some()
        })
        .await;
    house.finish().await;
}

#[tokio::test]
async fn a_modern_server_that_wants_credentials_says_so_although_it_refuses_the_old_greeting() {
    let server = McpServer::start(|came| match came.method() {
        "server/discover" => came.error(401, -32_001, "log in"),
        _ => came.error(400, -32_020, "the headers are missing"),
    });
    let server = server.await;
    let house = House::of(&[]).await;
    house.place("files", server.url(), SourceTrust::Trusted);
    let name = scenario("files");
    let is_refused = |health: &Arc<Health>| health.state == ScenarioState::NeedsAuthorization;
    house
        .until("needs authorization", |snapshot| {
            snapshot.health.get(&name).is_some_and(is_refused)
        })
        .await;
    assert_eq!(
        server.of("initialize").len(),
        1,
        "a legacy server might have answered it"
    );
    house.finish().await;
}

#[tokio::test]
async fn the_era_is_remembered_over_a_restart_and_found_out_again_when_it_changed() {
    let server = McpServer::start(legacy("2025-06-18", &tools())).await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(server.of("server/discover").len(), 1);
    let house = house.restart().await;
    server.until("tools/list", 2).await;
    assert_eq!(
        server.of("server/discover").len(),
        1,
        "the legacy greeting is tried first"
    );
    server.script(modern(&json!([tool("newer")])));
    let house = house.restart().await;
    house
        .until("the new list", |_| house.names() == ["newer"])
        .await;
    assert_eq!(server.of("server/discover").len(), 2);
    let house = house.restart().await;
    server.until("server/discover", 3).await;
    server.until("tools/list", 4).await;
    assert_eq!(
        server.of("initialize").len(),
        3,
        "the first two runs, and the third before it found out"
    );
    house.finish().await;
}

/// Its era was known from an earlier session, whose greeting it cannot take any more.
#[tokio::test]
async fn an_era_whose_greeting_failed_is_not_tried_first_again() {
    let server = McpServer::start(legacy("2025-06-18", &tools())).await;
    let house = House::of(&[("files", server.url())]).await;
    let mut newer = modern(&json!([tool("newer")]));
    server.script(move |came| match came.method() {
        "initialize" => Answer::Text(500, "the old way is broken".to_owned()),
        _ if came.header("mcp-session-id").is_some() => session_not_found(),
        _ => newer(came),
    });
    house.refresh("files").await;
    house.refresh("files").await;
    assert_eq!(house.names(), ["newer"]);
    assert_eq!(
        server.of("initialize").len(),
        2,
        "the first greeting, and the one that failed"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_server_that_never_answers_the_modern_greeting_is_greeted_in_the_old_way() {
    let mut own = legacy("2025-11-25", &tools());
    let script = move |came: &Came| {
        if came.method() == "server/discover" {
            Answer::Silence
        } else {
            own(came)
        }
    };
    let server = McpServer::start(script).await;
    // Each greeting has a time limit of its own: the first one costs the second nothing.
    let house = House::with(&[("files", server.url())], |config| {
        config.refresh.timeout = std::time::Duration::from_millis(300);
    })
    .await;
    assert_eq!(house.names(), ["read", "write"]);
    house.finish().await;
}
