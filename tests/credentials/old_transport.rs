//! Credentials over HTTP+SSE of the revision 2024-11-05: with the stream and with each message, and
//! never to the address of another origin that a stream names.

use std::sync::Arc;

use callsheet::model::{Auth, HttpTarget, Secret, SecretSource, Target};
use serde_json::json;

use crate::support::assert_empty;
use crate::support::mcp_server::{self, Answer, Came, McpServer};
use crate::support::upstream_server::{UpstreamServer, answer};
use crate::support::watched::{Setting, setting};

/// What every request has to carry.
const SENT: [(&str, &str); 2] = [("authorization", "Bearer t0ken"), ("x-key", "k3y")];

fn text(text: &str) -> SecretSource {
    Secret::new(text).into()
}

/// The one scenario, with these credentials.
fn with_credentials(server: &McpServer, auth: &Auth, headers: &[(&str, &str)]) -> Setting {
    setting([("old", server.url())]).with(|config| {
        let scenario = &mut config.scenarios[0];
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), text(value)))
            .collect();
        let target = HttpTarget {
            auth: Some(auth.clone()),
            headers,
            ..scenario.target.http().unwrap().clone()
        };
        scenario.target = Target::Http(Arc::new(target));
        scenario.protocol = Some("mcp".to_owned());
    })
}

fn is_sent(came: &Came) -> bool {
    SENT.iter()
        .all(|(name, value)| came.header(name) == Some(*value))
}

#[tokio::test]
async fn a_bearer_token_and_headers_go_with_the_stream_and_with_every_message() {
    let server = McpServer::start(|came| match (came.http.as_str(), came.path.as_str()) {
        _ if !is_sent(came) => Answer::Text(401, String::new()),
        ("GET", _) => Answer::Endpoint("/message?sessionId=7"),
        ("POST", "/message?sessionId=7") => Answer::Text(202, String::new()),
        _ => Answer::Text(405, String::new()),
    })
    .await;
    let sheet = with_credentials(&server, &Auth::Bearer(text("t0ken")), &[("x-key", "k3y")])
        .start()
        .await;
    // The first one is the POST that the address does not take.
    server.until("initialize", 2).await;
    let id = server.of("initialize").pop().unwrap().message["id"].clone();
    let about = json!({"name": "old", "version": "1"});
    let begun = json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": about});
    server.push(json!({"jsonrpc": "2.0", "id": id, "result": begun}));
    server.until("tools/list", 1).await;
    let id = server.of("tools/list")[0].message["id"].clone();
    server
        .push(json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [mcp_server::tool("find")]}}));
    sheet.until_listed(&["find"]).await;
    let came = server.came();
    assert!(came.iter().all(is_sent), "{came:?}");
    for method in [
        "GET",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ] {
        assert!(came.iter().any(|came| came.method() == method), "{method}");
    }
}

#[tokio::test]
async fn no_credential_goes_where_a_stream_of_another_origin_points() {
    let elsewhere = UpstreamServer::answering(|_| answer("202 Accepted", &[], b"")).await;
    let other = elsewhere.address();
    for place in [
        format!("http://{other}/message"),
        format!("//{other}/message"),
        format!("http://localhost:{}/message", other.port()),
        format!("https://{other}/message"),
        format!("http://127.0.0.1@{other}/message"),
    ] {
        let place: &'static str = place.leak();
        let server = McpServer::start(move |came| match came.http.as_str() {
            "GET" => Answer::Endpoint(place),
            _ => Answer::Text(405, String::new()),
        })
        .await;
        let key = Auth::Header("x-key".parse().unwrap(), text("k3y"));
        let sheet = with_credentials(&server, &key, &[("authorization", "Bearer t0ken")])
            .start()
            .await;
        let refused = |health: &callsheet::model::Health| health.reason.contains("redirects to");
        sheet.until_health("old", "refused", refused).await;
        assert!(
            server.came().iter().all(is_sent),
            "{place}: {:?}",
            server.came()
        );
        assert_empty!(elsewhere.requests());
    }
}
