//! The dashboard over a running daemon: it is told what changes, and what operators do in it holds.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::daemon::{Daemon, Home, PATIENCE, Scenario, tool};
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon with two scenarios that offer a tool of the same name.
async fn daemon() -> (Home, [Scenario; 2], Daemon) {
    let home = Home::new();
    let files = Scenario::start("files", [tool("search"), tool("read").requires_approval(true)]).await;
    let mail = Scenario::start("mail", [tool("search")]).await;
    let daemon = Daemon::ready(home.config(&[&files, &mail])).await;
    (home, [files, mail], daemon)
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

async fn prefer(daemon: &Daemon, body: &Value) -> Answer {
    ask(daemon.address, "PUT", "/dashboard/tools/preference", &[JSON], &body.to_string()).await
}

#[tokio::test]
async fn a_toggle_answers_its_row_and_changes_the_list() {
    let (_home, _scenarios, daemon) = daemon().await;
    let off = json!({"scope": "global", "target": "tool:files/search", "enabled": false});
    let row = text(&prefer(&daemon, &off).await);
    assert!(
        row.contains("data-tool=\"files/search\"") && row.contains("by <bdi>global tool:files/search</bdi>"),
        "{row}"
    );
    assert!(row.contains("-enabled-reset\""), "{row}");
    // The other tool of that name is not touched.
    assert_eq!(daemon.tools("").await, ["read", "mail__search"]);
    let reset = json!({"scope": "global", "target": "tool:files/search", "enabled": null});
    let row = text(&prefer(&daemon, &reset).await);
    assert!(row.contains("scenario default") && !row.contains("-enabled-reset\""), "{row}");
    assert_eq!(daemon.tools("").await, ["read", "files__search", "mail__search"]);
    let chat = json!({"scope": "chat:7", "target": "tool:files/read", "approval": "skip"});
    assert!(text(&prefer(&daemon, &chat).await).contains("by <bdi>chat:7 tool:files/read</bdi>"));
    let seen = text(&daemon.get("/dashboard/tools/rows?scope=chat:7&q=read").await);
    assert!(seen.contains("by <bdi>chat:7 tool:files/read</bdi>"), "{seen}");
    let globally = text(&daemon.get("/dashboard/tools/rows?q=read").await);
    assert!(!globally.contains("chat:7"), "{globally}");
    let shown = text(&daemon.get("/dashboard/preferences").await);
    assert!(shown.contains("data-scope=\"chat:7\"") && shown.contains("not needed"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_refused_change_says_why() {
    let (_home, _scenarios, daemon) = daemon().await;
    for (body, part) in [
        (json!({"scope": "global", "target": "scenario:files", "enabled": true}), "a row is of one tool"),
        (json!({"scope": "nowhere", "target": "tool:files/read", "enabled": true}), "unknown scope"),
        (json!({"scope": "global", "target": "tool:files/read", "enabled": "yes"}), "`enabled`"),
    ] {
        let refused = prefer(&daemon, &body).await;
        assert_eq!(refused.status, 400);
        assert!(refused.problem().contains(part), "{refused:?}");
    }
    let body = json!({"scope": "global", "target": "tool:files/read", "enabled": false}).to_string();
    let foreign = [JSON, ("origin", "https://evil.example")];
    let refused = ask(daemon.address, "PUT", "/dashboard/tools/preference", &foreign, &body).await;
    assert_eq!(refused.status, 403);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(ask(daemon.address, "PUT", "/dashboard/tools/preference", &form, &body).await.status, 415);
    assert!(daemon.tools("").await.contains(&"read".to_owned()), "nothing changed");
    daemon.stop().await;
}

/// Reads a stream until `part` was in it.
async fn until(stream: &mut TcpStream, part: &str) -> String {
    let mut all = String::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while !all.contains(part) {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "ended: {all}");
            all.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    };
    let came = tokio::time::timeout(PATIENCE, reading).await.is_ok();
    assert!(came, "never came: {part}; {all}");
    all
}

#[tokio::test]
async fn an_open_page_is_told_that_a_scenario_goes_and_comes() {
    let (_home, [mut files, _mail], daemon) = daemon().await;
    let mut stream = TcpStream::connect(daemon.address).await.unwrap();
    let head = format!("GET /dashboard/live?seen=0 HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address);
    stream.write_all(head.as_bytes()).await.unwrap();
    // The page was made from an older snapshot, so it is told to look again at once.
    let first = until(&mut stream, "event: catalog").await;
    assert!(first.contains("text/event-stream") && first.contains("event: health"), "{first}");
    files.stop().await;
    until(&mut stream, "files is stale").await;
    files.run().await;
    let back = until(&mut stream, "files is live").await;
    assert!(back.contains("event: news"), "{back}");
    let page = text(&daemon.get("/dashboard/scenarios/files").await);
    assert!(page.contains("band state-live") && page.contains("changes of state"), "{page}");
    // The stream is open, and does not hold up the end.
    daemon.stop().await;
}
