//! A server that says that its list changed is listed at once.

use serde_json::json;

use crate::support::house::House;
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_change_is_heard_on_the_stream_of_either_era() {
    let first = json!([tool("read")]);
    let second = json!([tool("read"), tool("write")]);
    for is_modern in [true, false] {
        let server = if is_modern {
            McpServer::start(modern(&first)).await
        } else {
            McpServer::start(legacy("2025-11-25", &first)).await
        };
        let house = House::of(&[("files", server.url())]).await;
        server
            .until(
                if is_modern {
                    "subscriptions/listen"
                } else {
                    "GET"
                },
                1,
            )
            .await;
        // The stream stands; what changed before it did is listed once more.
        server.until("tools/list", 2).await;
        if is_modern {
            server.script(modern(&second));
        } else {
            server.script(legacy("2025-11-25", &second));
        }
        server.push(json!({"jsonrpc": "2.0", "method": CHANGED}));
        house
            .until("the new list", |_| house.names() == ["read", "write"])
            .await;
        house.finish().await;
    }
}

#[tokio::test]
async fn a_server_without_a_stream_is_polled_and_not_asked_for_it_again() {
    let mut own = legacy("2025-11-25", &json!([tool("read")]));
    let server = McpServer::start(move |came: &Came| {
        if came.http == http::Method::GET {
            Answer::Text(405, String::new())
        } else {
            own(came)
        }
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    server.until("GET", 1).await;
    for _ in 0..3 {
        house.refresh("files").await;
    }
    assert_eq!(server.of("GET").len(), 1);
    house.finish().await;
}
