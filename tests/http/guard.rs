//! Who may ask over HTTP: hosts, web origins, kinds and sizes of bodies, methods; and how a stop
//! ends it.

use crate::support::offers::inputs;
use crate::support::serving::{Served, serve_inputs};

const JSON: (&str, &str) = ("content-type", "application/json");

async fn served() -> Served {
    serve_inputs(&inputs(&[("files", &["read"])])).await
}

#[tokio::test]
async fn a_foreign_host_is_refused_on_every_route() {
    let server = served().await;
    for target in [
        "/",
        "/healthz",
        "/api/v1/tools",
        "/api/v1/tools/read",
        "/nowhere",
    ] {
        let answer = server
            .ask("GET", target, &[("host", "evil.example")], "")
            .await;
        assert_eq!(answer.status, 403, "{target}");
        let detail = answer.problem();
        assert!(
            detail.contains("`evil.example`") && detail.contains("server.allowed_hosts"),
            "{detail}"
        );
    }
    for host in [
        "localhost:1",
        "a.localhost",
        "127.0.0.2",
        "[::1]:9",
        "tools.example:80",
    ] {
        assert_eq!(
            server
                .ask("GET", "/healthz", &[("host", host)], "")
                .await
                .status,
            200,
            "{host}"
        );
    }
    assert_eq!(
        server
            .ask("GET", "/healthz", &[("host", "")], "")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn a_foreign_origin_may_read_nothing_and_change_nothing() {
    let server = served().await;
    let body = r#"{"scope":"global","target":"tool:files/read","enabled":false}"#;
    for foreign in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let answer = server
            .ask("PUT", "/api/v1/preferences", &[JSON, foreign], body)
            .await;
        assert_eq!(answer.status, 403, "{foreign:?}");
        assert!(answer.problem().contains("server.allowed_origins"));
        let read = server.ask("GET", "/api/v1/tools", &[foreign], "").await;
        let expected = if foreign.1 == "cross-site" { 403 } else { 200 };
        assert_eq!(read.status, expected, "{foreign:?}");
        assert_eq!(
            read.header("access-control-allow-origin"),
            "",
            "{foreign:?}"
        );
    }
}

#[tokio::test]
async fn a_configured_origin_is_let_in_and_told_so() {
    let server = served().await;
    let origin = ("origin", "https://ui.example");
    let preflight = server
        .ask(
            "OPTIONS",
            "/api/v1/preferences",
            &[origin, ("access-control-request-method", "PUT")],
            "",
        )
        .await;
    assert_eq!(preflight.status, 204);
    assert_eq!(
        preflight.header("access-control-allow-origin"),
        "https://ui.example"
    );
    assert!(
        preflight
            .header("access-control-allow-methods")
            .contains("PUT")
    );
    let list = server.ask("GET", "/api/v1/tools", &[origin], "").await;
    assert_eq!(
        list.header("access-control-allow-origin"),
        "https://ui.example"
    );
    let vary: Vec<_> = list.headers.get_all("vary").iter().collect();
    assert_eq!(vary, ["accept-encoding", "origin"]);
}

/// Behind a proxy that ends TLS the pages have the origin of the proxy.
#[tokio::test]
async fn pages_behind_a_proxy_need_the_name_only() {
    let server = served().await;
    let body = r#"{"scope":"global","target":"tool:files/read","enabled":false}"#;
    let host = ("host", "tools.example");
    let own = ("origin", "https://tools.example");
    assert_ne!(
        server
            .ask("PUT", "/api/v1/preferences", &[JSON, host, own], body)
            .await
            .status,
        403
    );
    let other = ("origin", "https://pages.example");
    assert_eq!(
        server
            .ask("PUT", "/api/v1/preferences", &[JSON, host, other], body)
            .await
            .status,
        403
    );
}

/// RFC 9110 section 15.5.16. A program between that decodes bodies would see another one.
#[tokio::test]
async fn bodies_in_a_content_coding_are_refused_on_every_route() {
    let server = served().await;
    let preference = r#"{"scope":"global","target":"tool:files/read","enabled":false}"#;
    let call = r#"{"tool_name":"read"}"#;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let zip = ("content-type", "application/zip");
    for (method, target, media, body) in [
        ("PUT", "/api/v1/preferences", JSON, preference),
        ("POST", "/api/v1/tools/execute", JSON, call),
        ("POST", "/api/v1/turns?format=anthropic", JSON, "{}"),
        ("POST", "/api/v1/scenarios", JSON, "{}"),
        ("PUT", "/dashboard/tools/preference", JSON, "{}"),
        ("POST", "/tools/bundles/archive", zip, "PK"),
        ("POST", "/rpc", JSON, request),
        ("POST", "/mcp", JSON, request),
    ] {
        for coding in ["br", "GZIP", "identity, gzip", "x"] {
            let headers = [media, ("content-encoding", coding)];
            let answer = server.ask(method, target, &headers, body).await;
            assert_eq!(answer.status, 415, "{target} {coding}: {answer:?}");
            assert_eq!(answer.header("accept-encoding"), "identity", "{target}");
            let why = answer.problem();
            assert!(
                why.contains("content coding `") && why.contains("Content-Encoding"),
                "{why}"
            );
        }
        for coding in ["identity", "Identity,", ""] {
            let headers = [media, ("content-encoding", coding)];
            let answer = server.ask(method, target, &headers, body).await;
            assert_ne!(answer.status, 415, "{target} {coding}");
        }
    }
}

#[tokio::test]
async fn bodies_are_json_and_bounded() {
    let server = served().await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    assert_eq!(
        server
            .ask("POST", "/api/v1/tools/sync", &[form], "a=b")
            .await
            .status,
        415
    );
    assert_eq!(
        server
            .ask("PUT", "/api/v1/preferences", &[], "{}")
            .await
            .status,
        415
    );
    let large = format!("{{\"scope\":\"{}\"}}", "x".repeat(1_000));
    let announced = server
        .ask("PUT", "/api/v1/preferences", &[JSON], &large)
        .await;
    assert_eq!(announced.status, 413);
    assert!(announced.problem().contains("server.max_body"));
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let in_chunks = [JSON, ("transfer-encoding", "chunked")];
    let unannounced = server
        .ask_raw("PUT", "/api/v1/preferences", &in_chunks, &chunked)
        .await;
    assert_eq!(unannounced.status, 413);
    assert_eq!(
        server
            .ask("PUT", "/api/v1/preferences", &[JSON], "[1]")
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn methods_and_routes_that_are_not_there_say_what_is() {
    let server = served().await;
    let index = server.get("/").await.json();
    let routes = index["routes"].as_array().unwrap();
    assert!(routes.len() > 10);
    for route in routes {
        // The table says what the router does.
        let path = route["path"]
            .as_str()
            .unwrap()
            .replace("{*name}", "read")
            .replace("{name}", "files");
        let refused = server.ask("TRACE", &path, &[], "").await;
        assert_eq!(refused.status, 405, "{path}");
        let mut allowed: Vec<&str> = refused.header("allow").split(',').collect();
        let mut expected: Vec<&str> = route["methods"].as_str().unwrap().split(',').collect();
        allowed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(allowed, expected, "{path}");
        assert!(refused.problem().contains("TRACE"));
    }
    let unknown = server.get("/api/v2/tools").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.problem().contains("GET /"));
    assert_eq!(server.get("/api/v1/tools/").await.status, 404);
}

#[tokio::test]
async fn changes_are_refused_when_the_engine_has_ended() {
    let server = served().await;
    let body = r#"{"scope":"global","target":"tool:files/read","enabled":false}"#;
    let answer = server
        .ask("PUT", "/api/v1/preferences", &[JSON], body)
        .await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), "1");
    answer.problem();
}

#[tokio::test]
async fn a_stop_ends_it_cleanly() {
    let server = served().await;
    assert_eq!(server.get("/healthz").await.status, 200);
    server.stop.stop();
    server.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_guarded_and_answered_alike() {
    let server = served().await;
    // Nothing here is encrypted, but the client wants to know with what it would be. A second call
    // finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy()
        .build()
        .unwrap();
    let url = format!("http://{}/api/v1/tools", server.address);
    let get = client.get(&url).send().await.unwrap();
    assert_eq!(get.status().as_u16(), 200);
    assert_eq!(get.version(), http::Version::HTTP_2);
    let head = client.head(&url).send().await.unwrap();
    assert_eq!(head.headers()["etag"], get.headers()["etag"]);
    let refused = client
        .delete(&url)
        .header("origin", "https://evil.example")
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status().as_u16(), 403);
    let url = format!(
        "http://localhost.evil.example:{}/healthz",
        server.address.port()
    );
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy();
    let client = client
        .resolve("localhost.evil.example", server.address)
        .build()
        .unwrap();
    assert_eq!(client.get(url).send().await.unwrap().status().as_u16(), 403);
}
