//! The first list of a client while the daemon still greets its servers.

use std::time::Duration;

use callsheet::config::StaticScenario;
use callsheet::model::Target;
use callsheet::runtime::{Clock, Tasks};
use serde_json::json;
use url::Url;

use crate::face::names;
use crate::served::new;
use crate::support::house::House;
use crate::support::mcp_server::{Answer, Came, McpServer, modern, tool};
use crate::support::serving::ask;

/// How long a first answer is awaited at most, as the documents say.
const FIRST_LIST: Duration = Duration::from_secs(5);

fn configured(name: &str, url: Url) -> StaticScenario {
    StaticScenario {
        name: name.parse().unwrap(),
        target: Target::at(url),
        protocol: None,
        sleep_after: None,
    }
}

/// A server that is greeted, and lists its tools when the test says so.
async fn slow() -> McpServer {
    let mut own = modern(&json!([tool("read")]));
    McpServer::start(move |came: &Came| {
        if came.method() == "tools/list" {
            Answer::Later
        } else {
            own(came)
        }
    })
    .await
}

#[tokio::test]
async fn the_first_mcp_list_waits_for_a_configured_server_and_an_http_list_names_it() {
    let server = slow().await;
    let house = House::with(&[], |config| {
        config.scenarios = vec![configured("files", server.url())];
    })
    .await;
    let address = house.serve().await;
    let first = Tasks::new().spawn(async move { new(address, "tools/list", json!({})).await });
    server.until("tools/list", 1).await;

    let list = ask(address, "GET", "/api/v1/tools", &[], "").await;
    assert_eq!(list.status, 200);
    assert_eq!(list.header("callsheet-awaiting"), "files");
    let known = [("if-none-match", list.header("etag"))];
    let again = ask(address, "GET", "/api/v1/tools", &known, "").await;
    assert_eq!(again.status, 304);
    assert_eq!(again.header("callsheet-awaiting"), "files");
    assert!(!first.is_finished(), "an MCP list waits for the answer");

    let id = server.of("tools/list")[0].message["id"].clone();
    let result = json!({"resultType": "complete", "tools": [tool("read")], "ttlMs": 60_000, "cacheScope": "private"});
    server.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    assert_eq!(names(&first.await.unwrap().1), ["files__read"]);
    let list = ask(address, "GET", "/api/v1/tools", &[], "").await;
    assert_eq!(list.header("callsheet-awaiting"), "");
    house.finish().await;
}

#[tokio::test]
async fn a_server_that_hangs_is_awaited_once_and_all_clients_have_one_deadline() {
    let well = McpServer::start(modern(&json!([tool("read")]))).await;
    let hung = McpServer::start(|_: &Came| Answer::Silence).await;
    let scenarios = vec![
        configured("files", well.url()),
        configured("hung", hung.url()),
    ];
    let house = House::with(&[], |config| config.scenarios = scenarios).await;
    let address = house.serve().await;
    let begun = Clock::system().now();
    let both = tokio::join!(
        new(address, "tools/list", json!({})),
        new(address, "prompts/list", json!({}))
    );
    assert_eq!(names(&both.0.1), ["files__read"]);
    assert!(
        begun.elapsed() < 2 * FIRST_LIST,
        "the deadline counts from the start of the daemon"
    );

    let begun = Clock::system().now();
    assert_eq!(
        names(&new(address, "tools/list", json!({})).await.1),
        ["files__read"]
    );
    assert!(begun.elapsed() < FIRST_LIST / 2, "it was awaited once");
    house.finish().await;
}
