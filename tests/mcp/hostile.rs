//! Servers that do what they must not: each costs itself alone, and health says why.

use std::time::Duration;

use callsheet::discovery::SourceTrust;
use serde_json::json;

use crate::support::assert_empty;
use crate::support::house::{House, request, scenario};
use crate::support::mcp_server::{Answer, Came, McpServer, modern, tool};

/// A house with a good server and this hostile one, whose list fails. Gives the reason.
async fn reason(script: impl FnMut(&Came) -> Answer + Send + 'static) -> String {
    reason_within(Duration::from_millis(500), script).await
}

/// The same where a list may take so long.
async fn reason_within(
    limit: Duration,
    script: impl FnMut(&Came) -> Answer + Send + 'static,
) -> String {
    let good = McpServer::start(modern(&json!([tool("good")]))).await;
    let hostile = McpServer::start(script).await;
    let house = House::with(&[("good", good.url())], |config| {
        config.refresh.timeout = limit;
        config.refresh.max_body = 1024 * 1024;
    })
    .await;
    house.place("hostile", hostile.url(), SourceTrust::Trusted);
    let snapshot = house
        .until("the reason", |snapshot| {
            snapshot
                .health
                .get(&scenario("hostile"))
                .is_some_and(|health| health.last_error.is_some())
        })
        .await;
    assert_eq!(house.names(), ["good"]);
    let error = format!("{:?}", snapshot.health[&scenario("hostile")].last_error);
    house.finish().await;
    error
}

/// A modern server whose `tools/list` is answered so.
fn listing(
    mut list: impl FnMut(&Came) -> Answer + Send + 'static,
) -> impl FnMut(&Came) -> Answer + Send + 'static {
    let mut own = modern(&json!([]));
    move |came: &Came| {
        if came.method() == "tools/list" {
            list(came)
        } else {
            own(came)
        }
    }
}

#[tokio::test]
async fn pages_without_end_are_a_failure() {
    let mut page = 0;
    let endless = listing(move |came| {
        page += 1;
        came.result(&json!({"tools": [tool(&format!("t{page}"))], "nextCursor": page.to_string()}))
    });
    let reason = reason_within(Duration::from_secs(30), endless).await;
    assert!(reason.contains("more than 1000 pages"), "{reason}");
    let repeated = listing(|came| came.result(&json!({"tools": [], "nextCursor": "again"})));
    let reason = self::reason(repeated).await;
    assert!(
        reason.contains("cursor came for the second time"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_list_that_is_too_large_or_never_comes_is_a_failure() {
    let large =
        listing(|came| came.result(&json!({"tools": [], "pad": "x".repeat(2 * 1024 * 1024)})));
    assert!(reason(large).await.contains("larger than"), "too large");
    let streamed = listing(|_| {
        Answer::Events(vec![
            json!({"jsonrpc": "2.0", "method": "x", "params": {"pad": "x".repeat(2 * 1024 * 1024)}}),
        ])
    });
    assert!(
        reason(streamed).await.contains("larger than"),
        "too large an event"
    );
    assert!(
        reason(|_| Answer::Silence)
            .await
            .contains("no answer within"),
        "silent"
    );
}

#[tokio::test]
async fn answers_to_other_requests_are_no_answer() {
    for id in [json!("1"), json!(1.5), json!(77), json!([1])] {
        let wrong = listing(move |_| {
            Answer::Json(
                200,
                json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [tool("stolen")]}}),
            )
        });
        let reason = reason(wrong).await;
        assert!(reason.contains("not JSON-RPC"), "{reason}");
    }
}

#[tokio::test]
async fn a_page_that_is_no_list_is_a_failure() {
    for page in [json!({"tools": {}}), json!([]), json!({}), json!("tools")] {
        let shown = page.to_string();
        let reason = reason(listing(move |came| came.result(&page))).await;
        assert!(reason.contains("list"), "{shown}: {reason}");
    }
}

#[tokio::test]
async fn a_server_that_wants_authorization_says_so_in_health() {
    let server = McpServer::start(|_| Answer::Text(401, String::new())).await;
    let house = House::with(&[], |_| ()).await;
    house.place("hosted", server.url(), SourceTrust::Trusted);
    house
        .until("the state", |snapshot| {
            snapshot
                .health
                .get(&scenario("hosted"))
                .is_some_and(|health| health.state.as_str() == "needs-authorization")
        })
        .await;
    // One try in each era, and then the back-off.
    assert_eq!(server.of("server/discover").len(), 1);
    assert_eq!(server.of("initialize").len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn an_old_stream_that_points_elsewhere_is_refused() {
    let other = McpServer::start(|_| Answer::Text(202, String::new())).await;
    let elsewhere: &'static str = Box::leak(other.url().to_string().into_boxed_str());
    let pointing = move |came: &Came| match came.http.as_str() {
        "GET" => Answer::Endpoint(elsewhere),
        _ => Answer::Text(405, String::new()),
    };
    let reason = reason(pointing).await;
    assert!(reason.contains("redirects to"), "{reason}");
    assert_empty!(other.came());
}

#[tokio::test]
async fn an_answer_that_is_too_large_costs_that_call() {
    let mut own = modern(&json!([tool("dump")]));
    let server = McpServer::start(move |came: &Came| match came.method() {
        "tools/call" => came
            .result(&json!({"content": [{"type": "text", "text": "x".repeat(20 * 1024 * 1024)}]})),
        _ => own(came),
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(
        house.refusal(request("dump", &json!({}))).await,
        "too_large"
    );
    assert_eq!(house.names(), ["dump"]);
    house.finish().await;
}

#[tokio::test]
async fn a_thousand_changes_a_second_cost_a_few_listings() {
    let server = McpServer::start(modern(&json!([tool("read")]))).await;
    let house = House::of(&[("files", server.url())]).await;
    server.until("subscriptions/listen", 1).await;
    for _ in 0..900 {
        server.push(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    }
    server.until("tools/list", 3).await;
    assert!(
        server.of("tools/list").len() < 10,
        "{} listings",
        server.of("tools/list").len()
    );
    house.finish().await;
}
