//! The dashboard over a running daemon: it is told what changes, and what operators do in it holds.

use std::net::SocketAddr;

use callsheet::catalog::Inputs;
use callsheet::model::{Finding, FindingCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::daemon::{Daemon, Home, PATIENCE, Scenario, tool};
use crate::support::serving::{Answer, ask, serve, snapshot};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon with two scenarios that offer a tool of the same name.
async fn daemon() -> (Home, [Scenario; 2], Daemon) {
    let home = Home::new();
    let files = Scenario::start(
        "files",
        [tool("search"), tool("read").requires_approval(true)],
    )
    .await;
    let mail = Scenario::start("mail", [tool("search")]).await;
    let daemon = Daemon::ready(home.config(&[&files, &mail])).await;
    (home, [files, mail], daemon)
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

async fn prefer(daemon: &Daemon, body: &Value) -> Answer {
    ask(
        daemon.address,
        "PUT",
        "/dashboard/tools/preference",
        &[JSON],
        &body.to_string(),
    )
    .await
}

#[tokio::test]
async fn a_toggle_answers_its_row_and_changes_the_list() {
    let (_home, _scenarios, daemon) = daemon().await;
    let off = json!({"scope": "global", "target": "tool:files/search", "enabled": false});
    let row = text(&prefer(&daemon, &off).await);
    assert!(
        row.contains("data-tool=\"files/search\"")
            && row.contains("by <bdi>global tool:files/search</bdi>"),
        "{row}"
    );
    assert!(row.contains("-enabled-reset\""), "{row}");
    // The other tool of that name is not touched.
    assert_eq!(daemon.tools("").await, ["read", "mail__search"]);
    let reset = json!({"scope": "global", "target": "tool:files/search", "enabled": null});
    let row = text(&prefer(&daemon, &reset).await);
    assert!(
        row.contains("scenario default") && !row.contains("-enabled-reset\""),
        "{row}"
    );
    assert_eq!(
        daemon.tools("").await,
        ["read", "files__search", "mail__search"]
    );
    let chat = json!({"scope": "chat:7", "target": "tool:files/read", "approval": "skip"});
    assert!(text(&prefer(&daemon, &chat).await).contains("by <bdi>chat:7 tool:files/read</bdi>"));
    let seen = text(
        &daemon
            .get("/dashboard/tools/rows?scope=chat:7&q=read")
            .await,
    );
    assert!(
        seen.contains("by <bdi>chat:7 tool:files/read</bdi>"),
        "{seen}"
    );
    let globally = text(&daemon.get("/dashboard/tools/rows?q=read").await);
    assert!(!globally.contains("chat:7"), "{globally}");
    let shown = text(&daemon.get("/dashboard/preferences").await);
    assert!(shown.contains("data-scope=\"chat:7\"") && shown.contains("not needed"));
    daemon.stop().await;
}

#[tokio::test]
async fn the_page_of_a_tool_says_what_its_switch_changed() {
    let (_home, _scenarios, daemon) = daemon().await;
    let now = "/dashboard/tool/now?id=files%2Fread";
    assert!(text(&daemon.get(now).await).contains(">in the list<"));
    let off = json!({"scope": "global", "target": "tool:files/read", "enabled": false});
    assert_eq!(prefer(&daemon, &off).await.status, 200);
    let hidden = text(&daemon.get(now).await);
    assert!(
        hidden.contains(">not in the list<") && hidden.contains("global tool:files/read"),
        "{hidden}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_refused_change_says_why() {
    let (_home, _scenarios, daemon) = daemon().await;
    for (body, part) in [
        (
            json!({"scope": "global", "target": "scenario:files", "enabled": true}),
            "a row is of one tool",
        ),
        (
            json!({"scope": "nowhere", "target": "tool:files/read", "enabled": true}),
            "unknown scope",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read", "enabled": "yes"}),
            "`enabled`",
        ),
    ] {
        let refused = prefer(&daemon, &body).await;
        assert_eq!(refused.status, 400);
        assert!(refused.problem().contains(part), "{refused:?}");
    }
    let body =
        json!({"scope": "global", "target": "tool:files/read", "enabled": false}).to_string();
    let foreign = [JSON, ("origin", "https://evil.example")];
    let refused = ask(
        daemon.address,
        "PUT",
        "/dashboard/tools/preference",
        &foreign,
        &body,
    )
    .await;
    assert_eq!(refused.status, 403);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(
        ask(
            daemon.address,
            "PUT",
            "/dashboard/tools/preference",
            &form,
            &body
        )
        .await
        .status,
        415
    );
    assert!(
        daemon.tools("").await.contains(&"read".to_owned()),
        "nothing changed"
    );
    daemon.stop().await;
}

/// The stream of an open page.
async fn follow(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /dashboard/live?seen=0 HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
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
    let mut stream = follow(daemon.address).await;
    // The page was made from an older snapshot, so it is told to look again at once.
    let first = until(&mut stream, "event: catalog").await;
    assert!(
        first.contains("text/event-stream") && first.contains("event: health"),
        "{first}"
    );
    files.stop().await;
    until(&mut stream, "files is stale").await;
    files.run().await;
    let back = until(&mut stream, "files is live").await;
    assert!(back.contains("event: news"), "{back}");
    let page = text(&daemon.get("/dashboard/scenarios/files").await);
    assert!(
        page.contains("band state-live") && page.contains("changes of state"),
        "{page}"
    );
    // The stream is open, and does not hold up the end.
    daemon.stop().await;
}

#[tokio::test]
async fn decided_calls_are_in_the_order_of_the_times_that_are_shown() {
    let (_home, _scenarios, daemon) = daemon().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        let call = json!({"tool_name": "read", "arguments": {}, "chat_id": number.to_string()})
            .to_string();
        let waiting = ask(
            daemon.address,
            "POST",
            "/api/v1/tools/execute",
            &[JSON],
            &call,
        )
        .await
        .json();
        ids.push(waiting["approval_id"].as_str().unwrap().to_owned());
    }
    let decided = [&ids[1], &ids[2], &ids[0]];
    for id in decided {
        let target = format!("/api/v1/approvals/{id}/reject");
        let rejected = ask(
            daemon.address,
            "POST",
            &target,
            &[JSON],
            &json!({"by": "ann"}).to_string(),
        )
        .await;
        assert_eq!(rejected.status, 200, "{rejected:?}");
    }
    let page = text(&daemon.get("/dashboard/calls/now").await);
    let places = decided.map(|id| page.find(&format!("data-approval=\"{id}\"")).unwrap());
    assert!(
        places.iter().rev().is_sorted(),
        "the latest is the first: {places:?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_open_page_is_sent_that_a_call_ended() {
    let (_home, _scenarios, daemon) = daemon().await;
    let mut stream = follow(daemon.address).await;
    until(&mut stream, "event: number-findings\n").await;
    let call = json!({"tool_name": "files__search", "arguments": {}}).to_string();
    ask(
        daemon.address,
        "POST",
        "/api/v1/tools/execute",
        &[JSON],
        &call,
    )
    .await;
    until(&mut stream, "event: calls\n").await;
    let page = text(
        &ask(
            daemon.address,
            "GET",
            "/dashboard/tool?id=files/search",
            &[("accept", "text/html")],
            "",
        )
        .await,
    );
    let fetched_again =
        "hx-get=\"/dashboard/tool/calls?id=files%2Fsearch\" hx-trigger=\"sse:calls\"";
    assert!(page.contains(fetched_again), "{page}");
    let calls = text(&daemon.get("/dashboard/tool/calls?id=files/search").await);
    assert!(calls.contains("data-call=\"1\""), "{calls}");
    assert!(
        calls.contains("<th scope=\"row\">Calls</th><td>1</td>"),
        "the counts too: {calls}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_open_page_is_sent_the_numbers_of_its_navigation() {
    let (_home, _scenarios, daemon) = daemon().await;
    let mut stream = follow(daemon.address).await;
    let first = until(&mut stream, "event: number-findings\ndata: \n").await;
    assert!(
        first.contains("event: number-calls\ndata: \n")
            && first.contains("event: number-scenarios\ndata: \n"),
        "{first}"
    );
    let call = json!({"tool_name": "read", "arguments": {}}).to_string();
    let waiting = ask(
        daemon.address,
        "POST",
        "/api/v1/tools/execute",
        &[JSON],
        &call,
    )
    .await
    .json();
    let id = waiting["approval_id"].as_str().unwrap().to_owned();
    let number = "<span class=\"tally\" aria-hidden=\"true\">1</span><span class=\"hidden\"> (1 waits for a decision)</span>";
    until(
        &mut stream,
        &format!("event: number-calls\ndata: {number}\n"),
    )
    .await;
    let page = text(
        &ask(
            daemon.address,
            "GET",
            "/dashboard/tools",
            &[("accept", "text/html")],
            "",
        )
        .await,
    );
    assert!(
        page.contains(&format!(
            "Calls<span sse-swap=\"number-calls\">{number}</span>"
        )),
        "{page}"
    );

    let reject = json!({"by": "Ann", "reason": "not today"}).to_string();
    let rejected = ask(
        daemon.address,
        "POST",
        &format!("/api/v1/approvals/{id}/reject"),
        &[JSON],
        &reject,
    )
    .await;
    assert_eq!(rejected.status, 200);
    until(&mut stream, "event: number-calls\ndata: \n").await;
    // What was decided has a page that people can read.
    let calls = text(&daemon.get("/dashboard/calls").await);
    assert!(
        calls.contains(&format!("href=\"/dashboard/calls/{id}\"")),
        "{calls}"
    );
    let one = text(&daemon.get(&format!("/dashboard/calls/{id}")).await);
    for part in [
        "files/read",
        "rejected",
        "Ann",
        "not today",
        "Arguments",
        "The same as JSON",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
    let unknown = ask(
        daemon.address,
        "GET",
        "/dashboard/calls/none",
        &[("accept", "text/html")],
        "",
    )
    .await;
    assert_eq!(unknown.status, 404);
    assert!(
        text(&unknown).contains("<nav aria-label=\"Pages\">"),
        "{unknown:?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn errors_among_findings_are_counted_in_the_navigation() {
    let error = |message: &str| Finding::new(FindingCode::StateFailed, message);
    let two = vec![
        error("one"),
        error("two"),
        Finding::new(FindingCode::Disabled, "no error"),
    ];
    let mut server = serve(snapshot(&Inputs::default(), Vec::new(), two)).await;
    let mut stream = follow(server.address).await;
    let begin = "event: number-findings\ndata: <span class=\"tally\" aria-hidden=\"true\">";
    until(
        &mut stream,
        &format!("{begin}2</span><span class=\"hidden\"> (2 errors)</span>\n"),
    )
    .await;
    // From then on pages are rendered with it.
    let page = text(
        &server
            .ask("GET", "/dashboard/calls", &[("accept", "text/html")], "")
            .await,
    );
    assert!(
        page.contains("<span class=\"hidden\"> (2 errors)</span>"),
        "{page}"
    );
    let mut next = snapshot(&Inputs::default(), Vec::new(), vec![error("one")]);
    next.sequence = 2;
    server.writer.publish(next);
    until(
        &mut stream,
        &format!("{begin}1</span><span class=\"hidden\"> (1 error)</span>\n"),
    )
    .await;
    let mut last = snapshot(&Inputs::default(), Vec::new(), Vec::new());
    last.sequence = 3;
    server.writer.publish(last);
    let end = until(&mut stream, "event: number-findings\ndata: \n").await;
    assert!(
        !end.contains("number-calls"),
        "only what changed is sent: {end}"
    );
}
