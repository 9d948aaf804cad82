//! One call on its way to a scenario: what is sent, what counts as an answer, and what each failure
//! says, against real servers on this machine.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::sync::Arc;
use std::time::Duration;

use callsheet::model::JsonText;
use callsheet::protocols::tool_discovery::ToolDiscoverySession;
use callsheet::protocols::{Call, CallError, Fault, NoCaller, Outcome, RunningCall, Session as _};
use callsheet::runtime::{Clock, Tasks};
use callsheet::transports::http::{CallLimits, Client, ClientLimits, Upstream};
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use crate::support::assert_empty;
use crate::support::call_of::call_of;
use crate::support::callee::{self, Callee, PATIENCE, manifest, text, tool};
use crate::support::upstream_server::{self, UpstreamServer, answer, hang, limits, upstream};

async fn call(upstream: &Upstream, call: &Call) -> Result<Outcome, CallError> {
    let session = ToolDiscoverySession::new(upstream.clone());
    tokio::time::timeout(PATIENCE, session.call(call, &NoCaller))
        .await
        .unwrap()
}

/// What a scenario that answers so comes to.
async fn answering(status: u16, body: &str) -> Result<Outcome, CallError> {
    let body = body.to_owned();
    let callee = Callee::start(manifest("files", &[]), move |_| {
        std::future::ready(text(status, body.clone()))
    })
    .await;
    call(&upstream(callee.url()), &call_of("read", &json!({}))).await
}

#[tokio::test]
async fn what_is_sent_is_the_tools_own_name_and_the_arguments_as_they_are() {
    let callee = Callee::echo(manifest("files", &[tool("read")])).await;
    let mut base = callee.url();
    base.set_username("me").unwrap();
    let given = json!({"path": "a \"b\"", "big": 12_345_678_901_234_567_890_u64, "nested": {"x": [1, null, "ü"]}});
    let outcome = call(&upstream(base), &call_of("read \"all\"", &given))
        .await
        .unwrap();

    assert!(outcome.success && outcome.running.is_none() && outcome.error.is_none());
    assert_eq!(
        serde_json::from_str::<Value>(outcome.result.unwrap().get()).unwrap(),
        given
    );
    let ran = &callee.ran()[0];
    assert_eq!(ran.tool.as_str(), "read \"all\"");
    assert_eq!(ran.arguments, given);
    let header = |name: &str| ran.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("accept"), Some("application/json"));
    assert_eq!(
        header("user-agent"),
        Some(concat!("callsheet/", env!("CARGO_PKG_VERSION")))
    );
    assert!(
        header("authorization").unwrap().starts_with("Basic "),
        "the credentials of the address go along"
    );
    assert_eq!(header("accept-encoding"), None);
}

#[tokio::test]
async fn a_result_may_be_any_json() {
    for result in [
        "{\"a\":1}",
        "[1,2]",
        "\"text\"",
        "7",
        "-1.50",
        "true",
        "null",
    ] {
        let outcome = answering(200, &format!("{{\"success\":true,\"result\": {result}}}"))
            .await
            .unwrap();
        assert!(outcome.success);
        assert_eq!(
            outcome.result.as_ref().map(JsonText::get),
            Some(result),
            "as it was written"
        );
    }
    let outcome = answering(200, "{\"success\":true}").await.unwrap();
    assert!(outcome.success && outcome.result.is_none());
    assert_eq!(outcome.document.unwrap().get(), "{\"success\":true}");
}

/// What real scenarios answer, status by status.
#[tokio::test]
async fn a_tools_own_failure_is_an_answer_whatever_its_status() {
    for (status, code) in [
        (200, "validation_error"),
        (400, "invalid_args"),
        (400, "validation_error"),
        (404, "not_found"),
        (404, "unknown_tool"),
        (409, "conflict"),
        (429, "rate_limited"),
        (429, "cooldown"),
        (500, "unknown_tool"),
        (500, "internal_error"),
        (503, "unavailable"),
    ] {
        let body =
            json!({"success": false, "error": "it did not work", "code": code, "result": null});
        let outcome = answering(status, &body.to_string()).await.unwrap();
        assert!(!outcome.success, "{status} {code}");
        assert_eq!(outcome.status, Some(status));
        assert_eq!(outcome.code.as_deref(), Some(code));
        assert_eq!(outcome.error.as_deref(), Some("it did not work"));
    }
}

#[tokio::test]
async fn failures_in_other_words_are_understood() {
    let cases = [
        (
            404,
            json!({"error": "Not Found", "message": "tool not found: x"}),
            "Not Found: tool not found: x",
        ),
        (404, json!({"error": "tool_not_found"}), "tool_not_found"),
        (
            500,
            json!({"error": "no such tool", "status": "error"}),
            "no such tool",
        ),
        (
            200,
            json!({"error": "left out because it was false"}),
            "left out because it was false",
        ),
        (
            500,
            json!({"success": false}),
            "it failed without a message, and answered 500 Internal Server Error",
        ),
        (
            500,
            json!({"success": true, "result": 1}),
            "it has `success`, and answered 500 Internal Server Error",
        ),
        (
            400,
            json!({"success": false, "error": {"field": "path"}, "code": 7}),
            "{\"field\":\"path\"}",
        ),
    ];
    for (status, body, error) in cases {
        let outcome = answering(status, &body.to_string()).await.unwrap();
        assert!(!outcome.success, "{body}");
        assert_eq!(outcome.error.as_deref(), Some(error), "{body}");
    }
}

#[tokio::test]
async fn what_goes_on_running_says_so_by_status_or_by_word() {
    let started = |body: Value| RunningCall {
        run_id: body["run_id"].as_str().map(str::to_owned),
        status: body["status"].as_str().map(str::to_owned),
    };
    for (status, body, expected) in [
        (
            202,
            json!({"success": true, "result": {}, "is_async": true, "run_id": "r-1", "status": "pending"}),
            json!({"run_id": "r-1", "status": "pending"}),
        ),
        (
            200,
            json!({"success": true, "is_async": true, "run_id": 4711}),
            json!({"run_id": "4711"}),
        ),
        (
            202,
            json!({"success": true, "result": {"pid": 7}}),
            json!({}),
        ),
        (
            200,
            json!({"success": true, "isAsync": true, "runId": "r-2"}),
            json!({"run_id": "r-2"}),
        ),
    ] {
        let outcome = answering(status, &body.to_string()).await.unwrap();
        assert_eq!(outcome.running, Some(started(expected)), "{body}");
    }
    for (status, body) in [
        (
            200,
            json!({"success": true, "is_async": false, "run_id": "r-3"}),
        ),
        (202, json!({"success": false, "error": "could not start"})),
    ] {
        assert_eq!(
            answering(status, &body.to_string()).await.unwrap().running,
            None,
            "{body}"
        );
    }
}

#[tokio::test]
async fn what_is_none_of_the_protocols_is_told_with_its_beginning() {
    let long = "x".repeat(5000);
    for (status, body, part) in [
        (404, "404 page not found\n", "404 page not found"),
        (503, "registry is nil", "registry is nil"),
        (502, "<html>\n<b>bad gateway", "it is a web page"),
        (200, "{}", "neither `success` nor `error`"),
        (200, "[1]", "not the JSON object"),
        (200, "{\"success\":\"yes\"}", "not the JSON object"),
        (200, "{\"success\":true", "not the JSON object"),
        (200, "", "the body is empty"),
        (200, &long, "xxxx"),
    ] {
        let error = answering(status, body).await.unwrap_err();
        let CallError::NotThisProtocol { status: seen, .. } = &error else {
            unreachable!("{error:?}")
        };
        assert_eq!(*seen, Some(status));
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().len() < 400, "only the beginning: {error}");
        assert!(
            error.was_sent()
                && error.fault() == Fault::Scenario
                && error.kind() == "unknown-protocol"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere =
        UpstreamServer::answering(|_| answer("200 OK", &[], b"{\"success\":true}")).await;
    let location = format!("Location: {}", elsewhere.url());
    let server =
        UpstreamServer::answering(move |_| answer("307 Temporary Redirect", &[&location], b""))
            .await;
    let error = call(&upstream(server.url()), &call_of("read", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "unknown-protocol");
    assert_empty!(elsewhere.requests());
}

#[tokio::test]
async fn retry_after_is_read_from_answers_of_both_kinds() {
    for body in [
        "{\"success\":false,\"error\":\"slowly\",\"code\":\"rate_limited\"}",
        "slowly",
    ] {
        let server = UpstreamServer::answering(move |_| {
            answer("429 Too Many", &["Retry-After: 7"], body.as_bytes())
        })
        .await;
        let wait = match call(&upstream(server.url()), &call_of("read", &json!({}))).await {
            Ok(outcome) => outcome.retry_after,
            Err(error) => error.retry_after(),
        };
        assert_eq!(wait, Some(Duration::from_secs(7)), "{body}");
    }
}

#[tokio::test]
async fn an_answer_may_be_so_large_and_no_larger() {
    let body = |size: usize| json!({"success": true, "result": "x".repeat(size)}).to_string();
    let small = answering(200, &body(60 * 1024)).await.unwrap();
    assert!(small.success);
    let error = answering(200, &body(70 * 1024)).await.unwrap_err();
    assert_eq!(error.kind(), "too-large");
    assert!(error.was_sent());
    // One that is read beside the async threads.
    let whole = body(600 * 1024);
    let callee = Callee::start(manifest("files", &[]), move |_| {
        std::future::ready(text(200, whole.clone()))
    })
    .await;
    let large = Call {
        max_body: 1024 * 1024,
        ..call_of("read", &json!({}))
    };
    let outcome = call(&upstream(callee.url()), &large).await.unwrap();
    assert_eq!(outcome.result.unwrap().get().len(), 600 * 1024 + 2);
}

#[tokio::test]
async fn it_is_known_whether_anything_was_sent() {
    let refused = TcpSocket::new_v4().unwrap();
    refused.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = |address| format!("http://{address}/").parse().unwrap();
    let unsent = [
        (url(refused.local_addr().unwrap().to_string()), "refused"),
        (
            "http://no-such-host.invalid/".parse().unwrap(),
            "unresolved",
        ),
    ];
    for (url, kind) in unsent {
        let error = call(&upstream(url), &call_of("read", &json!({})))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.was_sent(), "{error}");
    }

    let closes = UpstreamServer::serving(|_, stream| Box::pin(async move { drop(stream) })).await;
    let error = call(&upstream(closes.url()), &call_of("read", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "broken", "{error}");
    assert!(error.was_sent(), "{error}");
    assert_eq!(
        closes.requests().len(),
        1,
        "a call is not repeated by itself"
    );

    let cut = UpstreamServer::answering(|_| {
        let mut bytes = answer("200 OK", &[], b"{\"success\":true}");
        bytes.truncate(bytes.len() - 4);
        bytes
    })
    .await;
    let error = call(&upstream(cut.url()), &call_of("read", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "broken", "{error}");
    assert!(error.was_sent(), "{error}");

    let hangs = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let brief = Call {
        timeout: Some(Duration::from_millis(50)),
        ..call_of("read", &json!({}))
    };
    let error = call(&upstream(hangs.url()), &brief).await.unwrap_err();
    assert_eq!(error.kind(), "timeout", "{error}");
    assert!(error.was_sent(), "{error}");
    let capped = Call {
        timeout: None,
        longest: Duration::from_millis(50),
        ..brief
    };
    let error = call(&upstream(hangs.url()), &capped).await.unwrap_err();
    assert_eq!(error.kind(), "timeout", "whatever the tool says: {error}");
}

/// No one accepts: the kernel's queue is full, and further connections hang.
#[tokio::test]
async fn a_connection_that_does_not_come_to_stand_sent_nothing() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = socket.listen(1).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(
        Duration::from_millis(300),
        tokio::net::TcpStream::connect(address),
    )
    .await
    {
        waiting.push(stream);
    }
    let hasty = ClientLimits {
        connect: Duration::from_millis(100),
        ..limits()
    };
    let client = Client::new(
        hasty,
        1,
        Duration::from_secs(60),
        Clock::system(),
        Tasks::new(),
    );
    let upstream = client
        .upstream(format!("http://{address}/").parse().unwrap())
        .unwrap();
    let error = call(&upstream, &call_of("read", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "timeout", "{error}");
    assert!(!error.was_sent(), "{error}");
}

#[tokio::test]
async fn connections_are_kept_for_the_next_call_and_calls_run_side_by_side() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (connections, mut opened) = tokio::sync::watch::channel(0);
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            connections.send_modify(|count| *count += 1);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    seen.extend_from_slice(&buffer[..read]);
                    if seen.ends_with(b"}}") {
                        seen.clear();
                        stream
                            .write_all(&answer("200 OK", &[], b"{\"success\":true}"))
                            .await
                            .unwrap();
                    }
                }
            });
        }
    });
    let upstream = upstream(url.parse().unwrap());
    for _ in 0..5 {
        assert!(
            call(&upstream, &call_of("read", &json!({})))
                .await
                .unwrap()
                .success
        );
    }
    assert_eq!(*opened.borrow_and_update(), 1);
    serving.abort();

    // Each answers only when all three are there.
    let together = Arc::new(tokio::sync::Barrier::new(3));
    let callee = Callee::start(manifest("files", &[]), move |_| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            callee::done(&json!(null))
        }
    })
    .await;
    let upstream = upstream_server::upstream(callee.url());
    let one = call_of("read", &json!({}));
    let (a, b, c) = tokio::join!(
        call(&upstream, &one),
        call(&upstream, &one),
        call(&upstream, &one)
    );
    assert!(a.unwrap().success && b.unwrap().success && c.unwrap().success);
}

#[tokio::test]
async fn headers_go_along_and_any_status_is_an_answer() {
    let server = UpstreamServer::answering(|_| answer("418 I am a teapot", &[], b"short")).await;
    let bearer =
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer topsecret"))]);
    let limits = CallLimits {
        timeout: PATIENCE,
        max_body: 5,
        headers: bearer,
        repeatable: false,
    };
    let upstream = upstream(server.url());
    let answered = upstream.post("/execute", "{}", &limits).await.unwrap();
    assert_eq!(answered.head.status.as_u16(), 418);
    assert_eq!(answered.body[..], b"short"[..]);
    let request = &server.requests()[0];
    assert_eq!(request.target(), "/execute");
    assert_eq!(request.header("authorization"), Some("Bearer topsecret"));
    let error = upstream
        .post(
            "/execute",
            "{}",
            &CallLimits {
                max_body: 4,
                ..limits
            },
        )
        .await
        .unwrap_err();
    assert!(error.sent && error.error.kind() == "too-large", "{error}");
}
