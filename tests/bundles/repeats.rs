//! Which requests of HTTP tools are sent again: those that may be, and no more often than the file
//! says.

use serde_json::{Value, json};

use crate::calls::{Api, secret};
use crate::support::daemon::Home;
use crate::support::upstream_server::{Request, answer};
use crate::{config, http_tool, invoke, with_tools};

/// S1-74, S1-87: an overloaded API is asked again where that is safe, and no more often than the
/// file says.
#[tokio::test]
async fn what_may_be_repeated_is_tried_again() {
    let home = Home::new();
    let busy = |target: &str, number: usize| {
        if target == "/third" && number > 2 {
            answer("200 OK", &[], b"1")
        } else {
            answer("503 Busy", &[], b"")
        }
    };
    let first = Api::answering(busy).await;
    let second = Api::answering(busy).await;
    let third = Api::answering(busy).await;
    let tools = [
        (
            "get",
            http_tool(&json!({"urlTemplate": first.at("/third")})),
        ),
        (
            "post",
            http_tool(&json!({"urlTemplate": second.at("/third"), "method": "POST"})),
        ),
        (
            "once",
            http_tool(&json!({"urlTemplate": third.at("/never"), "maxRetries": 1})),
        ),
    ];
    let daemon = with_tools(config(&home), &tools).await;
    assert_eq!(
        invoke(&daemon, "get", &json!({})).await.1,
        json!({"ok": true, "value": 1})
    );
    assert_eq!(first.server.requests().len(), 3);
    assert_eq!(
        invoke(&daemon, "post", &json!({})).await.1["code"],
        "http_status"
    );
    assert_eq!(second.server.requests().len(), 1, "a POST is sent once");
    assert_eq!(
        invoke(&daemon, "once", &json!({})).await.1["code"],
        "http_status"
    );
    assert_eq!(third.server.requests().len(), 2);
    daemon.stop().await;
}

/// What became of a request whose connection broke is not known.
#[tokio::test]
async fn a_request_whose_connection_broke_is_sent_again_where_that_is_safe() {
    let home = Home::new();
    // An answer without a byte: the connection is closed.
    let broken = |_: &str, number: usize| {
        if number > 1 {
            answer("200 OK", &[], b"1")
        } else {
            Vec::new()
        }
    };
    let first = Api::answering(broken).await;
    let second = Api::answering(broken).await;
    let tools = [
        (
            "put",
            http_tool(&json!({"urlTemplate": first.at("/"), "method": "PUT", "body": {"x": 1}})),
        ),
        (
            "post",
            http_tool(&json!({"urlTemplate": second.at("/"), "method": "POST", "body": {"x": 1}})),
        ),
    ];
    let daemon = with_tools(config(&home), &tools).await;
    assert_eq!(
        invoke(&daemon, "put", &json!({})).await.1,
        json!({"ok": true, "value": 1})
    );
    assert_eq!(first.bodies(), [r#"{"x":1}"#, r#"{"x":1}"#]);
    let (_, failed) = invoke(&daemon, "post", &json!({})).await;
    assert_eq!(failed["code"], "broken", "{failed}");
    assert_eq!(second.server.requests().len(), 1, "a POST is sent once");
    daemon.stop().await;
}

/// A token that is refused is replaced, and the request sent again with the new one where that is
/// safe.
#[tokio::test]
async fn a_refused_token_is_replaced_and_only_a_safe_request_sent_again() {
    let refuse = "WWW-Authenticate: Bearer error=\"invalid_token\"";
    for (method, first, both) in [
        (
            "GET",
            json!({"ok": true, "value": 1}),
            &["/token", "/work", "/token", "/work", "/work"][..],
        ),
        ("POST", Value::Null, &["/token", "/work", "/token", "/work"]),
    ] {
        let api = Api::answering(move |target, number| match target {
            "/token" => {
                let token = json!({"access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": 3600});
                answer("200 OK", &["Content-Type: application/json"], token.to_string().as_bytes())
            }
            _ if number < 4 => answer("401 Unauthorized", &[refuse], b""),
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
            &json!({"method": method, "urlTemplate": api.at("/work"), "auth": {"type": "oauth2",
            "tokenUrl": api.at("/token"), "clientId": "me", "clientSecret": "${CLIENT}"}}),
        );
        let daemon = with_tools(config, &[("work", content)]).await;
        let (_, answered) = invoke(&daemon, "work", &json!({})).await;
        if first == Value::Null {
            assert_eq!(answered["ok"], false, "{answered}");
        } else {
            assert_eq!(answered, first);
        }
        assert_eq!(
            invoke(&daemon, "work", &json!({})).await.1,
            json!({"ok": true, "value": 1})
        );
        let requests = api.server.requests();
        assert_eq!(
            requests.iter().map(Request::target).collect::<Vec<_>>(),
            both,
            "{method}"
        );
        daemon.stop().await;
    }
}
