//! JSON-RPC on a Unix socket: one message a line.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use crate::support::callee::{Callee, done, manifest, text, tool};
use crate::support::daemon::{Daemon, Home, PATIENCE, Scenario, configured};

async fn serving() -> (Home, Daemon, Scenario, PathBuf) {
    let files = Scenario::of("files", &["read"]).await;
    let home = Home::new();
    let mut config = home.config(&[&files]);
    let path = home.state().with_file_name("rpc.sock");
    config.server.rpc_socket = Some(path.clone());
    config.server.max_body = 64 * 1024;
    let daemon = Daemon::ready(config).await;
    // Once it answers, it serves the socket, too.
    daemon.get("/healthz").await;
    (home, daemon, files, path)
}

async fn connected(path: &Path) -> BufReader<UnixStream> {
    BufReader::new(UnixStream::connect(path).await.unwrap())
}

async fn ask(connection: &mut BufReader<UnixStream>, line: &str) -> String {
    connection
        .write_all(format!("{line}\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, connection.read_line(&mut answer))
        .await
        .unwrap()
        .unwrap();
    answer
}

#[tokio::test]
async fn each_line_is_answered_by_a_line_until_the_daemon_stops() {
    let (_home, daemon, _files, path) = serving().await;
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let mut connection = connected(&path).await;
    let listed = ask(
        &mut connection,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    )
    .await;
    assert!(
        listed.starts_with(r#"{"jsonrpc":"2.0","result":{"tools":[{"name":"read","#),
        "{listed}"
    );
    let broken = ask(&mut connection, "{").await;
    assert_eq!(
        broken,
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"id\":null}\n"
    );
    let batch = ask(
        &mut connection,
        r#"[{"jsonrpc":"2.0","id":2,"method":"server/identity"}]"#,
    )
    .await;
    assert!(
        batch.starts_with(r#"[{"jsonrpc":"2.0","result":{"server_id":"#),
        "{batch}"
    );
    let mut other = connected(&path).await;
    ask(&mut other, "{}").await;
    let long = ask(&mut other, &"x".repeat(70_000)).await;
    assert!(long.contains("the line is too long"), "{long}");
    assert_eq!(
        other.read_to_end(&mut Vec::new()).await.unwrap(),
        0,
        "that connection is closed"
    );
    daemon.stop().await;
    assert_eq!(
        connection.read_to_end(&mut Vec::new()).await.unwrap(),
        0,
        "it is closed"
    );
    assert!(!path.exists(), "the file goes with the daemon");
}

#[tokio::test]
async fn a_client_that_speaks_something_else_is_disconnected() {
    let (_home, daemon, _files, path) = serving().await;
    for first in ["GET /rpc HTTP/1.1", "[]", "7", "{"] {
        let mut connection = connected(&path).await;
        assert_eq!(ask(&mut connection, first).await, "", "{first}");
    }
    daemon.stop().await;
}

/// They had all places for as long as they liked.
#[tokio::test]
async fn clients_that_send_no_line_keep_no_other_client_out() {
    let (_home, daemon, _files, path) = serving().await;
    let identity = r#"{"jsonrpc":"2.0","id":1,"method":"server/identity"}"#;
    let mut held = Vec::new();
    for _ in 0..70 {
        held.push(connected(&path).await);
    }
    let mut other = connected(&path).await;
    assert!(ask(&mut other, identity).await.contains("server_id"));
    let last = held.last_mut().unwrap();
    assert!(ask(last, identity).await.contains("server_id"));
    let rest = held[0].read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(rest, 0, "it rested longest, and is closed");
    daemon.stop().await;
}

#[tokio::test]
async fn the_socket_of_a_daemon_that_ended_is_replaced_and_other_files_are_not() {
    let (home, daemon, files, path) = serving().await;
    daemon.stop().await;
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let mut config = home.config(&[&files]);
    config.server.rpc_socket = Some(path.clone());
    let daemon = Daemon::ready(config.clone()).await;
    // Once it answers, it serves the socket, too.
    daemon.get("/healthz").await;
    let mut connection = connected(&path).await;
    assert!(
        ask(&mut connection, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#)
            .await
            .contains("-32601")
    );
    daemon.stop().await;

    std::fs::write(&path, "mine").unwrap();
    let app = callsheet::Callsheet::builder(config).start().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = app.serve(listener).await.unwrap_err().to_string();
    assert!(
        error.contains("`server.rpc_socket`") && error.contains("something else than a socket"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    app.stop();
    app.finish().await;
}

/// JSON may have line ends between its tokens, and results are passed on as they came.
#[tokio::test]
async fn a_result_with_line_ends_is_answered_in_one_line() {
    let indented = "{\"success\": true,\r\n \"result\": {\n  \"text\": \"a\\nb\"\n }\n}";
    let callee = Callee::start(manifest("files", &[tool("read")]), move |_| async move {
        text(200, indented)
    })
    .await;
    let home = Home::new();
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("files", ([127, 0, 0, 1], callee.port()).into())];
    let path = home.state().with_file_name("rpc.sock");
    config.server.rpc_socket = Some(path.clone());
    let daemon = Daemon::ready(config).await;
    let mut connection = connected(&path).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}"#;
    for _ in 0..2 {
        let answer: serde_json::Value =
            serde_json::from_str(&ask(&mut connection, call).await).unwrap();
        assert_eq!(answer["result"]["text"], "a\nb", "{answer}");
    }
    daemon.stop().await;
}

/// All large answers have some 800 KB. Each is longer than what the system holds for a client that
/// does not read.
#[tokio::test]
async fn a_result_whose_answer_has_no_room_is_left_out_with_the_reason() {
    let result = serde_json::json!("x".repeat(290_000));
    let callee = Callee::start(manifest("files", &[tool("read")]), move |_| {
        let answer = done(&result);
        async move { answer }
    })
    .await;
    let home = Home::new();
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("files", ([127, 0, 0, 1], callee.port()).into())];
    config.server.held_bytes = 2 << 20;
    let path = home.state().with_file_name("rpc.sock");
    config.server.rpc_socket = Some(path.clone());
    let daemon = Daemon::ready(config).await;
    // Once it answers, it serves the socket, too.
    daemon.get("/healthz").await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}"#;
    let mut unread = [connected(&path).await, connected(&path).await];
    for connection in &mut unread {
        connection
            .write_all(format!("{call}\n").as_bytes())
            .await
            .unwrap();
        connection.fill_buf().await.unwrap();
    }
    let mut other = connected(&path).await;
    let refused = ask(&mut other, call).await;
    assert!(
        refused.contains("this request was run, its answer is left out"),
        "{}",
        &refused[..refused.len().min(300)]
    );
    let mut first = String::new();
    tokio::time::timeout(PATIENCE, unread[0].read_line(&mut first))
        .await
        .unwrap()
        .unwrap();
    assert!(first.len() > 290_000, "{}", first.len());
    // The next line is read when the answer was written and is free.
    ask(
        &mut unread[0],
        r#"{"jsonrpc":"2.0","id":2,"method":"server/identity"}"#,
    )
    .await;
    assert!(ask(&mut other, call).await.len() > 290_000);
    daemon.stop().await;
}
