//! Servers of the Model Context Protocol that mean harm.

use std::time::Duration;

use callsheet::runtime::Clock;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::faulty_scenario::ok;

/// What the names of such scenarios begin with; they are configured with the protocol.
pub(crate) const PREFIX: &str = "mcp-";

/// The bad habit of one server. Otherwise it is one of revision 2026-07-28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum McpTrick {
    /// Each page of its list names a next one.
    PagesWithoutEnd,
    /// Says that its list changed, a thousand times a second.
    ChangesWithoutEnd,
    /// Answers with the ids of requests that nobody made.
    OtherIds,
    /// A page of twenty megabytes.
    LargePage,
    /// Takes the request for its list and says nothing.
    Silence,
}

/// Answers one request.
pub(crate) async fn play(stream: &mut TcpStream, head: &str, body: &[u8], trick: McpTrick) {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let id = &message["id"];
    let result = |result: Value| {
        ok(json!({"jsonrpc": "2.0", "id": id, "result": result})
            .to_string()
            .as_bytes())
    };
    let answer = match message["method"].as_str().unwrap_or_default() {
        _ if !head.starts_with("post") => {
            b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        "server/discover" => result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 1_000, "cacheScope": "public",
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}},
        })),
        "subscriptions/listen" if trick == McpTrick::ChangesWithoutEnd => {
            return changes(stream).await;
        }
        "tools/list" => match trick {
            McpTrick::PagesWithoutEnd => result(
                json!({"tools": [tool(1)], "nextCursor": Clock::system().wall().to_string()}),
            ),
            McpTrick::ChangesWithoutEnd => {
                result(json!({"tools": [tool(1), tool(2)], "ttlMs": 1_000}))
            }
            McpTrick::OtherIds => ok(
                json!({"jsonrpc": "2.0", "id": "another", "result": {"tools": [tool(1)]}})
                    .to_string()
                    .as_bytes(),
            ),
            McpTrick::LargePage => result(json!({"tools": [tool(1)], "pad": "x".repeat(20 << 20)})),
            McpTrick::Silence => std::future::pending().await,
        },
        _ if id.is_null() => b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => {
            let error = json!({"code": -32_601, "message": "Method not found"});
            ok(json!({"jsonrpc": "2.0", "id": id, "error": error})
                .to_string()
                .as_bytes())
        }
    };
    // Nobody minds when it is not taken.
    let _ = stream.write_all(&answer).await;
}

/// A stream of changes that ends when nobody reads it.
async fn changes(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let event = |message: Value| format!("event: message\ndata: {message}\n\n");
    let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}});
    let changed = event(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let mut next = head.to_owned() + &event(acknowledged);
    while stream.write_all(next.as_bytes()).await.is_ok() {
        Clock::system().sleep(Duration::from_millis(1)).await;
        next.clone_from(&changed);
    }
}

fn tool(at: usize) -> Value {
    json!({"name": format!("hostile_{at}"), "description": "Does harm.", "inputSchema": {"type": "object"}})
}
