//! Serves a registry over HTTP, as the Tool Discovery Protocol 1.0 requires.
//!
//! Answers carry `Cache-Control` and a strong `ETag` over their content; a request whose
//! `If-None-Match` names it gets 304 with the same headers (RFC 9110 section 15.4.5). The tag
//! leaves `generated_at` out: a restarted scenario that offers the same has the same tag, so a
//! consumer that knows the offer need not read it again.
//!
//! Calls are answered as the protocol's first implementations answer them: 200 with `success`, and
//! `result` or `error` and `code`, also when the tool failed; 404 and 400 with the same members
//! when nothing ran.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, ORIGIN, RETRY_AFTER};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::registry::{CallStart, JsonDocument, Registry};
use crate::{conditional, json_rpc};

/// How long requests that are under way may take once stopping was requested.
const DRAIN: Duration = Duration::from_secs(5);

/// The tool that has the name of a route.
const EXECUTE: &str = "execute";

/// The routes of a scenario: `GET /api/v1/tools`, `GET /api/v1/tools/{name}`,
/// `POST /api/v1/tools/execute`, `POST /rpc` ([`json_rpc`]) and `GET /health`. Merge it with a
/// program's own.
pub fn router(registry: Registry) -> Router {
    Router::new()
        .route("/api/v1/tools", get(manifest).options(options))
        .route("/api/v1/tools/", get(no_name).options(options))
        .route("/api/v1/tools/{name}", get(tool).options(options))
        .route(
            "/api/v1/tools/execute",
            get(tool_of_that_name)
                .post(execute)
                .options(options_of_calls),
        )
        .route("/rpc", post(messages).options(options_of_messages))
        .route("/health", get(health).options(options))
        .route_layer(middleware::from_fn_with_state(registry.clone(), started))
        .method_not_allowed_fallback(wrong_method)
        .fallback(no_route)
        .with_state(registry)
}

/// Serves [`router()`] on a bound listener until `shutdown` completes. It then stops accepting at
/// once, so that the port is refused, and gives requests under way five seconds to finish.
///
/// # Errors
/// None from the network: accepting is tried again (see [`axum::serve()`]).
pub async fn serve(
    listener: TcpListener,
    registry: Registry,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, router(registry)).with_graceful_shutdown(async move {
        shutdown.await;
        // The receiver is gone if serving was dropped.
        let _ = stopping.send(());
    });
    let cut = async {
        let _ = stopped.await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        ended = serving.into_future() => ended,
        () = cut => Ok(()),
    }
}

async fn manifest(State(registry): State<Registry>, headers: HeaderMap) -> Response {
    answer(&registry, &registry.offer().manifest, &headers)
}

async fn tool(
    State(registry): State<Registry>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match registry.offer().tools.get(&name) {
        Some(document) => answer(&registry, document, &headers),
        None => refuse(StatusCode::NOT_FOUND, &format!("tool not found: {name}")),
    }
}

async fn tool_of_that_name(registry: State<Registry>, headers: HeaderMap) -> Response {
    tool(registry, Path(EXECUTE.to_owned()), headers).await
}

/// The refusal of a request that a web page had its browser send.
const NO_PAGES: &str = "web pages may not call tools here";

/// What a call says. Members beyond these are ignored.
#[derive(Deserialize)]
struct ExecuteRequest {
    tool_name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

/// `POST /api/v1/tools/execute`. A web page is refused: a browser sends its request without a
/// question, so it could call tools of a program on the machine of its reader.
async fn execute(State(registry): State<Registry>, headers: HeaderMap, body: Bytes) -> Response {
    if headers.contains_key(ORIGIN) {
        return failed(StatusCode::FORBIDDEN, "forbidden", NO_PAGES);
    }
    let call = match read_call(&body) {
        Ok(call) => call,
        Err(why) => {
            let message =
                format!("the body {why}; send {{\"tool_name\": ..., \"arguments\": {{...}}}}");
            return failed(StatusCode::BAD_REQUEST, "invalid_args", &message);
        }
    };
    let ExecuteRequest {
        tool_name,
        arguments,
    } = call;
    match registry.run(&tool_name, arguments.unwrap_or_default().into()) {
        CallStart::Unknown => failed(
            StatusCode::NOT_FOUND,
            "unknown_tool",
            &format!("tool not found: {tool_name}"),
        ),
        CallStart::ListedOnly => {
            let message = format!("{tool_name} is listed here, but this program does not run it");
            failed(StatusCode::NOT_IMPLEMENTED, "not_callable", &message)
        }
        CallStart::Runs(running) => match running.await {
            Ok(result) => called(
                StatusCode::OK,
                &json!({ "success": true, "result": result }),
            ),
            // The tool's own failure is an answer.
            Err(message) => failed(StatusCode::OK, "failed", &message),
        },
    }
}

/// Reads a call. An array is refused: serde would take it as the members in their order. The error
/// is the end of a sentence about the body.
fn read_call(body: &[u8]) -> Result<ExecuteRequest, String> {
    match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => Err(format!("is not JSON: {error}")),
        Ok(_) if !body.trim_ascii_start().starts_with(b"{") => {
            Err("must be a JSON object".to_owned())
        }
        Ok(_) => serde_json::from_slice(body).map_err(|error| format!("is not a call: {error}")),
    }
}

fn failed(status: StatusCode, code: &str, message: &str) -> Response {
    called(
        status,
        &json!({ "success": false, "error": message, "code": code }),
    )
}

fn called(status: StatusCode, answer: &Value) -> Response {
    (
        status,
        [(CONTENT_TYPE, "application/json")],
        answer.to_string(),
    )
        .into_response()
}

/// `POST /rpc`. Web pages are refused, as by [`execute`].
async fn messages(State(registry): State<Registry>, headers: HeaderMap, body: Bytes) -> Response {
    if headers.contains_key(ORIGIN) {
        return refuse(StatusCode::FORBIDDEN, NO_PAGES);
    }
    json_rpc::receive(&registry, &body).await
}

async fn no_name() -> Response {
    refuse(
        StatusCode::BAD_REQUEST,
        "the tool's name is missing: ask for /api/v1/tools/{name}",
    )
}

async fn health(State(registry): State<Registry>) -> Response {
    let config = registry.config();
    let health = json!({ "status": "ok", "scenario": config.scenario_name, "version": config.scenario_version });
    ([(CONTENT_TYPE, "application/json")], health.to_string()).into_response()
}

async fn options() -> Response {
    (StatusCode::NO_CONTENT, [(ALLOW, "GET, HEAD, OPTIONS")]).into_response()
}

async fn options_of_calls() -> Response {
    (
        StatusCode::NO_CONTENT,
        [(ALLOW, "GET, HEAD, POST, OPTIONS")],
    )
        .into_response()
}

async fn options_of_messages() -> Response {
    (StatusCode::NO_CONTENT, [(ALLOW, "POST, OPTIONS")]).into_response()
}

/// Answers 503 while the program starts.
async fn started(State(registry): State<Registry>, request: Request, next: Next) -> Response {
    if !registry.is_starting() {
        return next.run(request).await;
    }
    let message = format!(
        "{} is still starting: try again soon",
        registry.config().scenario_name
    );
    (
        [(RETRY_AFTER, "1")],
        refuse(StatusCode::SERVICE_UNAVAILABLE, &message),
    )
        .into_response()
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let allowed = if uri.path() == "/rpc" { "POST" } else { "GET" };
    refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("{method} is not allowed on {}: use {allowed}", uri.path()),
    )
}

async fn no_route(uri: Uri) -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        &format!(
            "no such path: {}; the tools are at /api/v1/tools",
            uri.path()
        ),
    )
}

/// The document, or 304 if the client has it.
fn answer(registry: &Registry, document: &JsonDocument, headers: &HeaderMap) -> Response {
    let tag = format!("\"{:032x}\"", document.digest);
    let known = conditional::is_known(headers, &tag);
    let caching = [
        (
            CACHE_CONTROL,
            format!("public, max-age={}", registry.config().max_age.as_secs()),
        ),
        (ETAG, tag),
    ];
    if known {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (
        caching,
        [(CONTENT_TYPE, "application/json")],
        document.body.clone(),
    )
        .into_response()
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let body = json!({ "error": status.canonical_reason().unwrap_or("Error"), "message": message });
    (
        status,
        [(CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}
