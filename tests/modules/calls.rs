//! One call on its way to a module: what is sent, and what each failure says, word for word. Real
//! modules in Python, and servers that do what no module should.
//!
//! Rows of the original's list of features: S4-04, S4-40, S4-44 to S4-53, S4-55, S4-63.

use std::time::Duration;

use callsheet::model::{Auth, HttpTarget, Secret};
use callsheet::protocols::module::{ModuleSession, error_message};
use callsheet::protocols::{Call, CallError, NoCaller, Outcome, Session as _};
use callsheet::runtime::Clock;
use callsheet::transports::http::Upstream;
use serde_json::{Value, json};
use url::Url;

use crate::support::call_of::call_of;
use crate::support::module::{Module, tool};
use crate::support::upstream_server::{UpstreamServer, answer, client, hang, limits, upstream};

const PATIENCE: Duration = Duration::from_secs(30);

async fn call(upstream: &Upstream, call: &Call) -> Result<Outcome, CallError> {
    let session = ModuleSession::new(upstream.clone());
    tokio::time::timeout(PATIENCE, session.call(call, &NoCaller))
        .await
        .unwrap()
}

fn to(module: &Module) -> Upstream {
    upstream(
        format!("http://{}/", module.address)
            .parse::<Url>()
            .unwrap(),
    )
}

fn result(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.result.as_ref().expect("a result").get()).unwrap()
}

/// What a server that answers so comes to.
async fn answering(status: &'static str, body: &'static str) -> Result<Outcome, CallError> {
    let server = UpstreamServer::answering(move |_| answer(status, &[], body.as_bytes())).await;
    call(&upstream(server.url()), &call_of("desk.try", &json!({}))).await
}

/// S4-44, S4-45, S4-55: the name, the arguments, and whose call it is where that is known. S4-40: a
/// name of several parts goes on whole.
#[tokio::test]
async fn what_is_sent_is_what_the_original_sends() {
    let desk = Module::start("git_desk", &[tool("git_desk.issue.open", "guest")]).await;
    let arguments = json!({"title": "a \"b\"", "big": 12_345_678_901_234_567_890_u64, "nested": {"x": [1, null, "ü"]}});
    let mut open = call_of("git_desk.issue.open", &arguments);
    let outcome = call(&to(&desk), &open).await.unwrap();
    assert!(outcome.success && outcome.error.is_none() && outcome.running.is_none());
    let sent = json!({"tool_name": "git_desk.issue.open", "arguments": arguments});
    assert_eq!(result(&outcome), json!({"received": sent, "runs": 1}));
    open.user_id = Some("6f6f1a3e".into());
    let sent =
        json!({"tool_name": "git_desk.issue.open", "arguments": arguments, "user_id": "6f6f1a3e"});
    assert_eq!(
        result(&call(&to(&desk), &open).await.unwrap()),
        json!({"received": sent, "runs": 2})
    );
    open.user_id = Some("".into());
    let unknown = result(&call(&to(&desk), &open).await.unwrap());
    assert!(unknown["received"].get("user_id").is_none(), "{unknown}");
}

/// S4-46, S4-50, S4-51: with 200 the module's own word counts, good or bad.
#[tokio::test]
async fn a_modules_own_failure_is_an_answer() {
    let desk = Module::start("desk", &[tool("desk.try", "guest")]).await;
    let failed = call(
        &to(&desk),
        &call_of("desk.try", &json!({"fail": "the drawer is stuck"})),
    )
    .await
    .unwrap();
    assert!(!failed.success);
    assert_eq!(failed.error.as_deref(), Some("the drawer is stuck"));
    assert_eq!(failed.status, Some(200));
    let unknown = call(&to(&desk), &call_of("desk.other", &json!({})))
        .await
        .unwrap();
    assert!(!unknown.success);
    assert_eq!(unknown.error.as_deref(), Some("Unknown tool: desk.other"));
    let silent = answering(
        "200 OK",
        r#"{"tool_name":"desk.try","success":false,"result":null,"error":null}"#,
    )
    .await
    .unwrap();
    assert!(!silent.success);
    assert!(silent.error.is_some());
    let bare = answering("200 OK", r#"{"success":true,"result":[1.50]}"#)
        .await
        .unwrap();
    assert_eq!(bare.result.unwrap().get(), "[1.50]", "as it was written");
}

/// S4-47, S4-63: another status is told with its body, and asked once only.
#[tokio::test]
async fn an_error_status_of_a_module_is_reported_with_its_body() {
    let desk = Module::start("desk", &[tool("desk.try", "guest")]).await;
    for (status, say) in [
        (500, "Internal Server Error"),
        (503, "Module not ready"),
        (404, ""),
        (307, "elsewhere"),
    ] {
        let arguments = json!({"status": status, "say": say});
        let outcome = call(&to(&desk), &call_of("desk.try", &arguments))
            .await
            .unwrap();
        assert_eq!(
            outcome.error,
            Some(format!("Module returned status {status}: {say}"))
        );
        assert!(!outcome.success);
        assert_eq!(outcome.status, Some(status));
    }
    let runs = result(
        &call(&to(&desk), &call_of("desk.try", &json!({})))
            .await
            .unwrap(),
    );
    assert_eq!(runs["runs"], 5, "each was asked once");
}

/// S4-48, S4-49, S4-50, S4-63: what did not answer is told in the original's words, and is not
/// asked again.
#[tokio::test]
async fn no_answer_is_told_in_the_words_of_the_original() {
    let desk = Module::start("desk", &[tool("desk.try", "guest")]).await;
    let hurried = to(&desk).with_call_timeout(Some(Duration::from_millis(900)));
    let error = call(&hurried, &call_of("desk.try", &json!({"hang": true})))
        .await
        .unwrap_err();
    assert_eq!(error_message(&error), "Tool execution timed out (1s).");
    assert!(error.was_sent());
    let runs = result(
        &call(&to(&desk), &call_of("desk.try", &json!({})))
            .await
            .unwrap(),
    );
    assert_eq!(runs["runs"], 2, "it was asked once");
    let mut gone = desk;
    gone.stop();
    let error = call(&to(&gone), &call_of("desk.try", &json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        error_message(&error),
        "Tool execution error: Connection refused"
    );
    assert!(!error.was_sent());
    let cut = UpstreamServer::serving(|_, stream| Box::pin(async move { drop(stream) })).await;
    let error = call(&upstream(cut.url()), &call_of("desk.try", &json!({})))
        .await
        .unwrap_err();
    assert!(
        error_message(&error).starts_with("Tool execution error: "),
        "{error}"
    );
    assert_eq!(cut.requests().len(), 1);
    for body in [
        "",
        "[]",
        "{}",
        r#"{"success":"yes"}"#,
        "<html>",
        r#"{"success":true"#,
    ] {
        let error = answering("200 OK", body).await.unwrap_err();
        assert!(
            error_message(&error).starts_with("Tool execution error: ") && error.was_sent(),
            "{body}: {error}"
        );
    }
}

/// S4-52, S4-53: half a minute unless the configuration says otherwise, and never longer than any
/// call may take.
#[tokio::test]
async fn a_call_has_the_time_of_its_module() {
    let server = UpstreamServer::serving(|_, stream| hang(stream)).await;
    for (own, of_tool, longest, expected) in [
        (None, None, 300, "Tool execution timed out (30s)."),
        (Some(120), None, 300, "Tool execution timed out (120s)."),
        (Some(120), Some(7), 300, "Tool execution timed out (7s)."),
        (Some(120), None, 60, "Tool execution timed out (60s)."),
    ] {
        let upstream = upstream(server.url()).with_call_timeout(own.map(Duration::from_secs));
        let call = Call {
            timeout: of_tool.map(Duration::from_secs),
            longest: Duration::from_secs(longest),
            ..call_of("desk.try", &json!({}))
        };
        // Time stands still from when the request is there, and goes on where nothing else is left
        // to do.
        let before = server.requests().len();
        let deadline = Clock::system().now() + PATIENCE;
        let there = async {
            while server.requests().len() == before {
                assert!(Clock::system().now() < deadline, "it never came");
                tokio::task::yield_now().await;
            }
            tokio::time::pause();
        };
        let session = ModuleSession::new(upstream);
        let (error, ()) = tokio::join!(session.call(&call, &NoCaller), there);
        tokio::time::resume();
        assert_eq!(error_message(&error.unwrap_err()), expected);
    }
}

/// The token goes along with a call too; without the right one the module's own words come back.
#[tokio::test]
async fn a_call_shows_the_token() {
    let desk = Module::guarded("desk", &[tool("desk.try", "guest")], Some("open-sesame")).await;
    let url: Url = format!("http://{}/", desk.address).parse().unwrap();
    let tried = |token: Option<&str>| {
        let auth = token.map(|token| Auth::Bearer(Secret::new(token).into()));
        client(limits(), 1)
            .upstream_to(&HttpTarget {
                auth,
                ..HttpTarget::at(url.clone())
            })
            .unwrap()
    };
    for (token, expected) in [
        (
            None,
            r#"Module returned status 401: {"detail": "Missing service auth token"}"#,
        ),
        (
            Some("wrong"),
            r#"Module returned status 401: {"detail": "Invalid service auth token"}"#,
        ),
    ] {
        let outcome = call(&tried(token), &call_of("desk.try", &json!({})))
            .await
            .unwrap();
        assert_eq!(outcome.error.as_deref(), Some(expected));
    }
    let right = tried(Some("open-sesame"));
    assert!(
        call(&right, &call_of("desk.try", &json!({})))
            .await
            .unwrap()
            .success
    );
    assert!(!format!("{right:?}").contains("sesame"));
}
