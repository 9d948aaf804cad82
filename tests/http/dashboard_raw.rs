//! What a scenario says right now is shown as it comes, and changes nothing.

use serde_json::json;

use crate::support::daemon::{Daemon, Home, NEVER, configured};
use crate::support::serving::Answer;
use crate::support::upstream_server::UpstreamServer;

/// A daemon that asks its scenario once, and the scenario, which answers with this head and body.
async fn daemon(head: &'static str, body: &'static str) -> (Home, UpstreamServer, Daemon) {
    let home = Home::new();
    let answer = format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let server = UpstreamServer::answering(move |_| answer.clone().into_bytes()).await;
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("odd", server.address())];
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.refresh.backoff_base = NEVER;
    config.refresh.backoff_max = NEVER;
    let daemon = Daemon::ready(config).await;
    (home, server, daemon)
}

async fn look(daemon: &Daemon) -> Answer {
    daemon
        .send_json("POST", "/dashboard/scenarios/odd/raw", &json!({}))
        .await
}

fn text(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    String::from_utf8(answer.body.clone()).unwrap()
}

#[tokio::test]
async fn it_is_shown_as_it_came_and_acts_on_nothing() {
    let body = "{\"protocol_version\":\"1.0\",\"scenario\":{\"name\":\"odd\"},\"tools\":[],\"twice\":1.50,\
                \"twice\":\"<img src=x onerror=alert(1)>\u{202e}\"}";
    let head = "200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=60\r\nSet-Cookie: secret=1";
    let (_home, server, daemon) = daemon(head, body).await;
    let before = daemon.json("/api/v1/scenarios/odd").await;
    let asked = server.requests().len();
    let shown = text(&look(&daemon).await);
    assert_eq!(server.requests().len(), asked + 1, "asked once more");
    assert!(
        shown.contains("<strong>200 OK</strong>") && shown.contains("max-age=60"),
        "{shown}"
    );
    // What a tree of values would hide is there: both members, and the number as it was written.
    assert!(
        shown.contains("  &quot;twice&quot;: 1.50,\n  &quot;twice&quot;: &quot;&lt;img src=x"),
        "{shown}"
    );
    assert!(
        !shown.contains("<img") && shown.contains("<span class=\"mark\">U+202E</span>"),
        "{shown}"
    );
    assert!(
        !shown.contains("secret"),
        "only what says what it is and how long it holds: {shown}"
    );
    let after = daemon.json("/api/v1/scenarios/odd").await;
    for member in [
        "state",
        "since",
        "last_success",
        "failures_in_a_row",
        "tools",
    ] {
        assert_eq!(before[member], after[member], "{member}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_no_manifest_is_shown_too() {
    let (_home, _server, daemon) = daemon("500 Internal Server Error", "<h1>no</h1>").await;
    let shown = text(&look(&daemon).await);
    assert!(
        shown.contains("<strong>500 Internal Server Error</strong>"),
        "{shown}"
    );
    assert!(
        shown.contains("This is not JSON.") && shown.contains("&lt;h1&gt;no&lt;/h1&gt;"),
        "{shown}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn who_does_not_answer_or_may_not_be_asked_is_told_so() {
    let (_home, server, daemon) = daemon("200 OK", "{}").await;
    drop(server);
    let shown = text(&look(&daemon).await);
    assert!(
        shown.contains("It gave no answer: ") && shown.contains("/api/v1/tools"),
        "{shown}"
    );
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/odd/block")
            .await
            .status,
        200
    );
    let refused = look(&daemon).await;
    assert_eq!(refused.status, 409);
    assert!(refused.problem().contains("is blocked"), "{refused:?}");
    let unknown = daemon
        .send_json("POST", "/dashboard/scenarios/nobody/raw", &json!({}))
        .await;
    assert_eq!(unknown.status, 404);
    daemon.stop().await;
}
