//! Calls of HTTP tools: the request that a real server gets, and what its answer is to the caller.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::bundles::BundleSecret;
use callsheet::model::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::daemon::Home;
use crate::support::mcp_client::McpClient;
use crate::support::serving::ask;
use crate::support::upstream_server::{Request, UpstreamServer, answer, hang};
use crate::{NET, bundle, config, expect, http_tool, invoke, tool, with_tools};

/// An API that answers every request as a closure says, and remembers the bodies.
pub(crate) struct Api {
    pub(crate) server: UpstreamServer,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Api {
    /// The closure gets the target and the number of the request, from 1.
    pub(crate) async fn answering(
        reply: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        let reply = Arc::new(reply);
        let server = UpstreamServer::serving(move |request, mut stream| {
            let kept = Arc::clone(&kept);
            let reply = Arc::clone(&reply);
            Box::pin(async move {
                let length = request
                    .header("content-length")
                    .map_or(0, |length| length.parse().unwrap());
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await.unwrap();
                kept.lock().unwrap().push(String::from_utf8(body).unwrap());
                let _ = stream
                    .write_all(&reply(request.target(), request.number))
                    .await;
            })
        });
        Self {
            server: server.await,
            bodies,
        }
    }

    /// One that answers everything with this document.
    async fn saying(document: &Value) -> Self {
        let body = document.to_string();
        Self::answering(move |_, _| {
            answer(
                "200 OK",
                &["Content-Type: application/json"],
                body.as_bytes(),
            )
        })
        .await
    }

    /// An address of it.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}

/// A secret for this machine.
pub(crate) fn secret(text: &str, host: &str) -> BundleSecret {
    BundleSecret {
        source: Secret::new(text).into(),
        hosts: vec![host.parse().unwrap()],
    }
}

/// S1-11, S1-25 to S1-28, S1-35, S1-73, S1-76: the request has what the file says, with the values
/// of the call and of the configuration in their places.
#[tokio::test]
async fn a_request_is_what_the_file_says() {
    let api = Api::saying(&json!({"current": {"condition": {"text": "Sunny"}}})).await;
    let home = Home::new();
    let mut config = config(&home);
    config
        .bundles
        .secrets
        .insert("KEY".into(), secret("s3cr3t", "127.0.0.1"));
    let weather = http_tool(&json!({
        "method": "GET", "urlTemplate": api.at("/v1/${place.country}/${place.cities[0]}.json?q=${q}&lang=${lang}"),
        "query": {"units": "${units}", "tool": "${slug}"},
        "headers": {"User-Agent": "MyApp/${version}", "X-Absent": "${absent}"},
        "auth": {"type": "bearer", "valueTemplate": "${KEY}"},
        "bodyTemplate": "", "successCodes": [200], "timeoutMs": 10000, "responseEncoding": "json",
        "extractExpr": "$.current.condition.text", "errorMode": "fail",
    }));
    let note = http_tool(&json!({
        "method": "POST", "urlTemplate": api.at("/notes"),
        "auth": {"type": "basic", "valueTemplate": "me:${KEY}"},
        "bodyTemplate": "{\"text\": \"<${text}>\", \"tags\": ${tags}, \"absent\": ${absent}}",
        "extractExpr": "$..text",
    }));
    let form = http_tool(&json!({
        "method": "PUT", "urlTemplate": api.at("/form"), "auth": {"type": "apiKey", "in": "query", "name": "key",
            "valueTemplate": "${KEY}"},
        "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": "a=${text}&b=1",
    }));
    let daemon = with_tools(
        config,
        &[("weather", weather), ("note", note), ("form", form)],
    )
    .await;
    let args =
        json!({"place": {"country": "fr", "cities": ["São Paulo/x"]}, "q": "a b&c", "units": 3});
    assert_eq!(
        invoke(&daemon, "weather", &args).await,
        (200, json!({"ok": true, "value": "Sunny"}))
    );
    let (status, value) = invoke(&daemon, "note", &json!({"text": "\"}", "tags": ["a", 1]})).await;
    assert_eq!(status, 200);
    assert_eq!(value, json!({"ok": true, "value": ["Sunny"]}));
    // The origin's form of arguments, a text.
    let (status, _) = invoke(&daemon, "form", &json!("{\"text\": \"x=1&y\"}")).await;
    assert_eq!(status, 200);
    let seen = api.server.requests();
    assert_eq!(
        seen[0].target(),
        "/v1/fr/S%C3%A3o%20Paulo%2Fx.json?q=a%20b%26c&units=3&tool=weather"
    );
    assert_eq!(seen[0].header("user-agent"), Some("MyApp/v1"));
    assert_eq!(seen[0].header("authorization"), Some("Bearer s3cr3t"));
    assert_eq!(
        seen[0].header("host"),
        Some(api.server.address().to_string().as_str())
    );
    assert_eq!(seen[0].header("accept"), Some("application/json"));
    assert_eq!(seen[0].header("x-absent"), None);
    assert_eq!(seen[1].header("authorization"), Some("Basic bWU6czNjcjN0"));
    assert_eq!(seen[1].header("content-type"), Some("application/json"));
    assert_eq!(seen[2].target(), "/form?key=s3cr3t");
    assert_eq!(
        api.bodies(),
        ["", r#"{"text":"<\"}>","tags":["a",1]}"#, "a=x%3D1%26y&b=1"]
    );
    // S1-78: usage is counted.
    daemon
        .until(&tool(NET, "weather", "v1"), |answer| {
            answer.json()["callCount"] == 1
        })
        .await;
    let stored = daemon.json(&tool(NET, "weather", "v1")).await;
    assert!(stored["lastCalledAt"].is_string(), "{stored}");
    assert!(!stored.to_string().contains("s3cr3t"));
    daemon.stop().await;
}

/// S1-83: what is signed is what is sent, and the key is neither sent nor shown. The first two are
/// the examples of RFC 4231 (4.3).
#[tokio::test]
async fn a_signed_request_has_the_signature_of_what_is_sent() {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use ring::hmac;

    let api = Api::saying(&json!({})).await;
    let home = Home::new();
    let mut config = config(&home);
    let secrets = &mut config.bundles.secrets;
    secrets.insert("KEY".into(), secret("Jefe", "127.0.0.1"));
    let body = "what do ya want for nothing?";
    let with = |auth: Value| {
        http_tool(&json!({
            "method": "POST", "urlTemplate": api.at("/v1/${city}?q=${q}"), "auth": auth,
            "headers": {"Content-Type": "text/plain"}, "body": body,
        }))
    };
    let short = with(
        json!({"type": "hmac", "secret": "${KEY}", "header": "X-Signature", "prefix": "sha256="}),
    );
    let long = with(
        json!({"type": "hmac", "algorithm": "sha512", "secret": "${KEY}", "header": "X-Signature"}),
    );
    let whole = with(json!({
        "type": "hmac", "secret": "${KEY}", "header": "X-Signature", "encoding": "base64",
        "signs": "${timestamp}.${method} ${path} ${query} ${host}\n${body}", "timestampHeader": "X-Timestamp",
    }));
    let daemon = with_tools(
        config,
        &[("short", short), ("long", long), ("whole", whole)],
    )
    .await;
    for name in ["short", "long", "whole"] {
        let (status, answer) = invoke(&daemon, name, &json!({"city": "a b", "q": "c&d"})).await;
        assert_eq!(status, 200, "{answer}");
    }
    let seen = api.server.requests();
    assert_eq!(
        seen[0].header("x-signature"),
        Some("sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    );
    assert_eq!(
        seen[1].header("x-signature"),
        Some(concat!(
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554",
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        ))
    );
    let time = seen[2].header("x-timestamp").unwrap();
    assert!(time.parse::<u64>().unwrap() > 1_700_000_000, "{time}");
    let (path, query) = seen[2].target().split_once('?').unwrap();
    let host = seen[2].header("host").unwrap();
    let signed = format!("{time}.POST {path} {query} {host}\n{body}");
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
    let tag = BASE64_STANDARD.encode(hmac::sign(&key, signed.as_bytes()));
    assert_eq!(seen[2].header("x-signature"), Some(tag.as_str()));
    for request in &seen {
        assert_eq!(request.header("authorization"), None);
        assert!(
            !format!("{request:?}").contains("Jefe"),
            "the key is not sent"
        );
    }
    daemon.stop().await;
}

/// A key that the caller could choose, and forms that cannot be, are refused.
#[tokio::test]
async fn a_signature_that_proves_nothing_is_refused() {
    let api = Api::saying(&json!({})).await;
    let home = Home::new();
    let mut config = config(&home);
    config
        .bundles
        .secrets
        .insert("KEY".into(), secret("s3cr3t", "127.0.0.1"));
    let daemon = with_tools(config, &[]).await;
    let put = async |name: &str, auth: Value| {
        let content = http_tool(&json!({"urlTemplate": api.at("/"), "auth": auth}));
        let stored = daemon
            .send_json("PUT", &tool(NET, name, "v1"), &content)
            .await;
        (stored.status, stored.json())
    };
    for (auth, named) in [
        (json!({"type": "hmac", "header": "X-S"}), "secret"),
        (
            json!({"type": "hmac", "header": "X-S", "secret": "s3cr3t"}),
            "one placeholder",
        ),
        (
            json!({"type": "hmac", "header": "Host", "secret": "${KEY}"}),
            "no header",
        ),
        (
            json!({"type": "hmac", "header": "X-S", "secret": "${KEY}", "algorithm": "md5"}),
            "sha256",
        ),
        (
            json!({"type": "hmac", "header": "X-S", "secret": "${KEY}", "signs": "${timestamp}"}),
            "signs",
        ),
        (
            json!({"type": "hmac", "header": "X-S", "secret": "${KEY}", "signs": "${timestamp}${body}"}),
            "timestampHeader",
        ),
        (
            json!({"type": "hmac", "header": "X-S", "secret": "${KEY}", "signs": "${city}"}),
            "names no part",
        ),
    ] {
        let (status, refused) = put("bad", auth).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused.to_string().contains(named), "{named}: {refused}");
    }
    // An argument called like the secret is no key.
    let mut content = http_tool(&json!({
        "urlTemplate": api.at("/"), "auth": {"type": "hmac", "header": "X-S", "secret": "${KEY}"},
    }));
    content["argSchema"] = json!({"type": "object", "properties": {"KEY": {"type": "string"}}});
    let stored = daemon
        .send_json("PUT", &tool(NET, "chosen", "v1"), &content)
        .await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let (_, answer) = invoke(&daemon, "chosen", &json!({"KEY": "mine"})).await;
    assert_eq!(answer["ok"], false, "{answer}");
    assert!(api.server.requests().is_empty());
    daemon.stop().await;
}

/// Numbers may have more digits than any number type holds.
#[tokio::test]
async fn numbers_reach_the_api_with_the_digits_of_the_caller() {
    let api = Api::saying(&json!({})).await;
    let home = Home::new();
    let send = http_tool(&json!({
        "method": "POST", "urlTemplate": api.at("/n/${a}/${list[1]}?q=${in.c}"), "headers": {"X-List": "${list}"},
        "bodyTemplate": "{\"raw\":${b},\"in\":${in},\"text\":\"<${in.c}>\",\"none\":${none},\"list\":[${list[1]}],\"own\":[12345678901234567890123,2.50]}",
    }));
    let daemon = with_tools(config(&home), &[("send", send)]).await;
    let args = concat!(
        r#"{"args":{"a":18446744073709551616,"b":12345678901234567890123,"none":null,"#,
        "\"in\":{\"c\": 1.10},\"list\":[\n 1e2, 1.10]}}"
    );
    let target = format!("{}/invoke", tool(NET, "send", "v1"));
    let answer = ask(
        daemon.address,
        "POST",
        &target,
        &[("content-type", "application/json")],
        args,
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = api.server.requests();
    assert_eq!(seen[0].target(), "/n/18446744073709551616/1.10?q=1.10");
    assert_eq!(seen[0].header("x-list"), Some("[1e2,1.10]"));
    let expected = r#"{"raw":12345678901234567890123,"in":{"c":1.10},"text":"<1.10>","list":[1.10],"own":[12345678901234567890123,2.50]}"#;
    assert_eq!(api.bodies(), [expected]);
    daemon.stop().await;
}

/// S1-20, S1-71: arguments that do not fit are refused before anything is sent.
#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_with_400() {
    let api = Api::saying(&json!({})).await;
    let home = Home::new();
    let mut content =
        http_tool(&json!({"urlTemplate": api.at("/${city}"), "maxCallsPerMinute": 1}));
    content["argSchema"] = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": false});
    let daemon = with_tools(config(&home), &[("weather", content)]).await;
    for args in [
        json!({}),
        json!({"city": 7}),
        json!({"city": "x", "more": 1}),
        json!([]),
        json!("no JSON"),
    ] {
        let (status, answer) = invoke(&daemon, "weather", &args).await;
        assert_eq!(status, 400, "{args}: {answer}");
        assert_eq!(answer["ok"], false);
        assert_eq!(answer["code"], "invalid_arguments", "{answer}");
    }
    assert!(api.server.requests().is_empty(), "nothing was sent");
    // S1-91: the limit of the file.
    assert_eq!(
        invoke(&daemon, "weather", &json!({"city": "x"})).await.0,
        200
    );
    let (status, answer) = invoke(&daemon, "weather", &json!({"city": "x"})).await;
    assert_eq!(status, 429, "{answer}");
    let refused = expect(
        &daemon,
        404,
        "POST",
        &format!("{}/invoke", tool(NET, "nope", "v1")),
        &json!({}),
    )
    .await;
    assert_eq!(refused.json()["code"], "unknown_tool");
    daemon.stop().await;
}

/// An API that answers in the ways that its paths say.
async fn odd_api() -> Api {
    Api::answering(|target, _| match target {
        "/missing" => answer(
            "404 Not Found",
            &["Content-Type: text/plain"],
            b"no such \x1b[31mcity",
        ),
        "/moved" => answer("302 Found", &["Location: /ok"], b""),
        "/created" => answer("201 Created", &[], b"{\"id\": 7}"),
        "/empty" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "/text" => answer("200 OK", &["Content-Type: text/plain"], b"temp: 21 C"),
        "/large" => answer("200 OK", &[], &[b'1'; 5_000]),
        _ => answer("200 OK", &[], b"{\"a\": 1}"),
    })
    .await
}

/// Paths of it, what the tool says besides, and what a call gives: a value, or a code and an error.
fn cases() -> Vec<(&'static str, Value, Value)> {
    let value = |value: Value| json!({"ok": true, "value": value});
    let failed = |code: &str, error: &str| json!({"ok": false, "code": code, "error": error});
    let text = |expression: &str| json!({"responseEncoding": "text", "extractExpr": expression});
    let missing = "the API answered 404 Not Found: `no such \\u{1b}[31mcity`";
    let moved = "the API answered 302 Found; redirects are not followed";
    let created = "the API answered 201 Created: `{\"id\": 7}`";
    let no_json = "the answer of the API is no JSON: expected ident at line 1 column 2";
    let nowhere = "`extractExpr` finds nothing in the answer of the API";
    let escape =
        json!({"successCodes": [404], "responseEncoding": "text", "extractExpr": "such (.)"});
    vec![
        ("missing", json!({}), failed("http_status", missing)),
        ("missing", json!({"errorMode": "empty"}), value(json!(null))),
        ("missing", escape, value(json!("\u{1b}"))),
        ("moved", json!({}), failed("http_status", moved)),
        ("created", json!({"extractExpr": "$.id"}), value(json!(7))),
        (
            "created",
            json!({"successCodes": [200]}),
            failed("http_status", created),
        ),
        ("empty", json!({}), value(json!(null))),
        ("text", json!({}), failed("bad_answer", no_json)),
        (
            "text",
            json!({"responseEncoding": "text"}),
            value(json!("temp: 21 C")),
        ),
        ("text", text("(\\d+) C"), value(json!("21"))),
        (
            "ok",
            json!({"extractExpr": "$.b"}),
            failed("bad_answer", nowhere),
        ),
        (
            "ok",
            json!({"extractExpr": "$.b", "errorMode": "empty"}),
            value(json!(null)),
        ),
        ("ok", json!({"extractExpr": "$.*"}), value(json!([1]))),
    ]
}

/// S1-29 to S1-33, S1-77: what is no success, and what that gives.
#[tokio::test]
async fn what_is_no_success_fails_or_is_empty() {
    let api = odd_api().await;
    let home = Home::new();
    let cases = cases();
    let tool = |(n, (path, more, _)): (usize, &(&str, Value, Value))| {
        let mut implementation = json!({"urlTemplate": api.at(&format!("/{path}"))});
        implementation
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        (format!("t{n}"), http_tool(&implementation))
    };
    let tools: Vec<(String, Value)> = cases.iter().enumerate().map(tool).collect();
    let named: Vec<(&str, Value)> = tools
        .iter()
        .map(|(slug, content)| (slug.as_str(), content.clone()))
        .collect();
    let daemon = with_tools(config(&home), &named).await;
    for ((slug, _), (path, more, expected)) in tools.iter().zip(&cases) {
        let (status, answer) = invoke(&daemon, slug, &json!({})).await;
        assert_eq!(status, 200, "{path} {more}: {answer}");
        assert_eq!(&answer, expected, "{path} {more}");
    }
    daemon.stop().await;
}

/// S1-85, S1-86: the limits of bytes, both ways.
#[tokio::test]
async fn bytes_are_limited_both_ways() {
    let api = odd_api().await;
    let home = Home::new();
    let large = http_tool(&json!({"urlTemplate": api.at("/large"), "maxResponseBytes": 4999}));
    let posted = http_tool(
        &json!({"method": "POST", "urlTemplate": api.at("/ok"), "body": {"x": "${x}"},
        "maxRequestBytes": 20}),
    );
    let daemon = with_tools(config(&home), &[("large", large), ("posted", posted)]).await;
    let (_, answer) = invoke(&daemon, "large", &json!({})).await;
    assert_eq!(answer["code"], "too-large", "{answer}");
    assert_eq!(
        invoke(&daemon, "posted", &json!({"x": "short"})).await.1["ok"],
        true
    );
    let (_, answer) = invoke(&daemon, "posted", &json!({"x": "x".repeat(20)})).await;
    assert_eq!(answer["code"], "refused_argument", "{answer}");
    daemon.stop().await;
}

/// S1-30: the time of a call is limited, all tries together, and one tool that fails costs no
/// other.
#[tokio::test]
async fn one_slow_or_dead_api_costs_its_own_tool() {
    let slow = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let dead = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let api = Api::saying(&json!(1)).await;
    let home = Home::new();
    let tools = [
        (
            "slow",
            http_tool(&json!({"urlTemplate": slow.url().as_str(), "timeoutMs": 50})),
        ),
        (
            "dead",
            http_tool(&json!({"urlTemplate": format!("http://{dead}/"), "maxRetries": 0})),
        ),
        ("well", http_tool(&json!({"urlTemplate": api.at("/")}))),
    ];
    let mut config = config(&home);
    config.calls.breaker_failures = 1;
    config.calls.breaker_open = Duration::from_secs(3600);
    let daemon = with_tools(config, &tools).await;
    assert_eq!(
        invoke(&daemon, "slow", &json!({})).await.1["code"],
        "timeout"
    );
    assert_eq!(
        invoke(&daemon, "dead", &json!({})).await.1["code"],
        "refused"
    );
    assert_eq!(
        invoke(&daemon, "well", &json!({})).await.1,
        json!({"ok": true, "value": 1})
    );
    daemon.stop().await;
}

/// S1-21, S1-75: a result that does not fit its schema is passed on, with a finding until one fits.
#[tokio::test]
async fn a_result_that_does_not_fit_is_a_failure_and_a_finding() {
    let api = Api::answering(|target, _| {
        answer(
            "200 OK",
            &[],
            if target == "/?v=number" {
                b"7"
            } else {
                b"\"seven\""
            },
        )
    })
    .await;
    let home = Home::new();
    let mut content = http_tool(&json!({"urlTemplate": api.at("/?v=${v}")}));
    content["outputSchema"] = json!({"type": "string"});
    let daemon = with_tools(config(&home), &[("number", content)]).await;
    let (status, failed) = invoke(&daemon, "number", &json!({"v": "number"})).await;
    assert_eq!(status, 200, "{failed}");
    assert_eq!(failed["ok"], false, "{failed}");
    assert_eq!(failed["code"], "output_mismatch", "{failed}");
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("does not fit its `outputSchema`"),
        "{failed}"
    );
    assert!(failed.get("value").is_none(), "{failed}");
    let found = "/api/v1/findings?code=output-mismatch";
    daemon
        .until(found, |answer| {
            answer.json()["findings"].to_string().contains("number_v1")
        })
        .await;
    let listed = daemon.json("/api/v1/tools?format=native").await;
    assert_eq!(
        listed["tools"][0]["outputSchema"],
        json!({"type": "string"}),
        "{listed}"
    );
    assert_eq!(
        invoke(&daemon, "number", &json!({"v": "text"})).await.1["value"],
        "seven"
    );
    daemon
        .until(found, |answer| answer.json()["findings"] == json!([]))
        .await;
    daemon.stop().await;
}

/// A stored tool is a tool like any other: in the list, in every format, switched by preferences,
/// approved by people, and called by an MCP client.
#[tokio::test]
async fn a_stored_tool_is_a_tool_like_any_other() {
    let api = Api::saying(&json!({"sunny": true})).await;
    let home = Home::new();
    let mut content = http_tool(&json!({"urlTemplate": api.at("/${city}")}));
    content["argSchema"] =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    content["tags"] = json!(["sky"]);
    let daemon = with_tools(config(&home), &[("weather", content)]).await;
    daemon.until_tools(&["weather_v1"]).await;
    let listed = daemon.json("/api/v1/tools?format=openai&tag=sky").await;
    assert_eq!(
        listed[0]["function"]["parameters"]["required"],
        json!(["city"]),
        "{listed}"
    );
    let health = daemon.json("/api/v1/scenarios/net").await;
    assert_eq!(health["protocol"], "bundle");
    assert_eq!(health["source"], "bundles");
    assert_eq!(health["url"], format!("bundle:{NET}"));
    assert_eq!(health["state"], "live");
    let call = json!({"tool_name": "weather_v1", "arguments": {"city": "Paris"}});
    let answer = expect(&daemon, 200, "POST", "/api/v1/tools/execute", &call)
        .await
        .json();
    assert_eq!(answer["result"], json!({"sunny": true}), "{answer}");
    let mcp = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "net__weather_v1", "arguments": {"city": "Paris"}}});
    let rpc = expect(&daemon, 200, "POST", "/rpc", &mcp).await.json();
    assert_eq!(rpc["result"], json!({"sunny": true}), "{rpc}");
    let client = McpClient::modern(daemon.address, json!({}));
    let result = client
        .result(
            "tools/call",
            json!({"name": "net__weather_v1", "arguments": {"city": "Paris"}}),
        )
        .await;
    assert!(result["content"].to_string().contains("sunny"), "{result}");
    assert_ne!(result["isError"], true, "{result}");
    let offered = client.result("tools/list", json!({})).await;
    assert_eq!(offered["tools"][0]["title"], "Tool", "{offered}");
    let response = json!({"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
        "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "weather_v1", "arguments": "{\"city\": \"Oslo\"}"}}]}}]});
    let turn = expect(
        &daemon,
        200,
        "POST",
        "/api/v1/turns?format=openai",
        &response,
    )
    .await
    .json();
    assert_eq!(turn["status"], "complete", "{turn}");
    assert_eq!(turn["calls"][0]["scenario"], "net", "{turn}");
    assert_eq!(turn["messages"][0]["tool_call_id"], "c1", "{turn}");
    assert_eq!(
        turn["messages"][0]["content"], r#"{"sunny":true}"#,
        "{turn}"
    );
    assert_eq!(
        api.server
            .requests()
            .last()
            .map(|request| request.target().to_owned())
            .as_deref(),
        Some("/Oslo")
    );
    let approve =
        json!({"scope": "global", "target": "tool:net/weather_v1", "approval": "require"});
    expect(&daemon, 200, "PUT", "/api/v1/preferences", &approve).await;
    let (status, waits) = invoke(&daemon, "weather", &json!({"city": "Paris"})).await;
    assert_eq!(status, 202, "{waits}");
    assert_eq!(waits["code"], "approval_required");
    let off = json!({"scope": "global", "target": "tool:net/weather_v1", "enabled": false});
    expect(&daemon, 200, "PUT", "/api/v1/preferences", &off).await;
    let (status, refused) = invoke(&daemon, "weather", &json!({"city": "Paris"})).await;
    assert_eq!(status, 403, "{refused}");
    assert_eq!(refused["code"], "disabled");
    // The switch of the bundle is above all preferences.
    let on = json!({"scope": "global", "target": "tool:net/weather_v1", "enabled": true});
    expect(&daemon, 200, "PUT", "/api/v1/preferences", &on).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": false}),
    )
    .await;
    daemon.until_tools(&[]).await;
    daemon.stop().await;
}

/// S1-84: a tool that is a client of an authorization server gets a token by itself, once, and
/// shows it.
#[tokio::test]
async fn a_client_of_an_authorization_server_gets_its_own_token() {
    let api = Api::answering(|target, _| match target {
        "/token" => {
            let token = r#"{"access_token": "t0ken", "token_type": "Bearer", "expires_in": 3600}"#;
            answer(
                "200 OK",
                &["Content-Type: application/json"],
                token.as_bytes(),
            )
        }
        _ => answer("200 OK", &[], b"1"),
    })
    .await;
    let home = Home::new();
    let mut config = config(&home);
    config
        .bundles
        .secrets
        .insert("CLIENT".into(), secret("s3cr3t", "127.0.0.1"));
    let content = http_tool(
        &json!({"urlTemplate": api.at("/work"), "auth": {"type": "oauth2",
        "tokenUrl": api.at("/token"), "clientId": "me", "clientSecret": "${CLIENT}", "scopes": ["work"]}}),
    );
    let daemon = with_tools(config, &[("work", content)]).await;
    for _ in 0..2 {
        assert_eq!(
            invoke(&daemon, "work", &json!({})).await.1,
            json!({"ok": true, "value": 1})
        );
    }
    let requests = api.server.requests();
    let targets: Vec<&str> = requests.iter().map(Request::target).collect();
    assert_eq!(targets, ["/token", "/work", "/work"]);
    assert!(
        api.bodies()[0].contains("grant_type=client_credentials"),
        "{:?}",
        api.bodies()
    );
    assert_eq!(requests[1].header("authorization"), Some("Bearer t0ken"));
    daemon.stop().await;
}
