//! `docs/examples/rpc_client.py`: a client that keeps the list by its identity and makes each tool a
//! subcommand, against a scripted server, and against callsheet that has this server as a scenario.

use std::process::{Command, Output};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::markdown::root;
use crate::support::command::is_installed;
use crate::support::command::{Home, json as parsed};
use crate::support::rpc_server::{RpcServer, listed, offer};

/// Runs the client against a server.
fn run(home: &Home, url: &str, args: &[&str]) -> Output {
    let mut client = Command::new("python3");
    client
        .arg(root().join("docs/examples/rpc_client.py"))
        .args(args)
        .current_dir(home.path(""));
    for proxy in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "all_proxy",
        "ALL_PROXY",
    ] {
        client.env_remove(proxy);
    }
    client
        .env("RPC_URL", url)
        .env("RPC_CACHE", home.path("kept.json"))
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

#[track_caller]
fn printed(ran: &Output) -> String {
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout.clone()).unwrap()
}

#[test]
fn the_client_lists_again_only_when_the_identity_differs() {
    if !is_installed("python3") {
        return;
    }
    let runtime = Runtime::new().unwrap();
    let home = Home::new();
    let server = runtime.block_on(RpcServer::offering("a", &[listed("read_file")]));
    let url = format!("http://{}/rpc", server.address);
    for _ in 0..3 {
        let result = printed(&run(&home, &url, &["read_file", "--path", "/tmp/a"]));
        assert_eq!(
            parsed(&result),
            json!({"called": "read_file", "with": {"path": "/tmp/a"}})
        );
    }
    assert_eq!(server.count("tools/list"), 1);
    assert_eq!(server.count("server/identity"), 3);
    server.script(offer("b", &[listed("read_file"), listed("fails")]));
    let failed = run(&home, &url, &["fails", "--path", "x"]);
    assert_eq!(server.count("tools/list"), 2);
    assert!(!failed.status.success());
    let refused = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(refused.contains("the disk is full"), "{refused}");
}

#[test]
fn the_client_works_against_callsheet_and_through_it_against_another_server() {
    if !is_installed("python3") {
        return;
    }
    let runtime = Runtime::new().unwrap();
    let mut lines = listed("count_lines");
    lines["inputSchema"]["properties"]["most"] =
        json!({"type": "integer", "description": "Stop at 100% of these"});
    let server = runtime.block_on(RpcServer::offering("a", &[lines, listed("fails")]));
    let config = format!(
        "[[scenarios]]\nname = \"plain\"\nurl = \"http://{}/rpc\"\nprotocol = \"json-rpc\"\n",
        server.address
    );
    let home = Home::with(&config);
    let daemon = home.serve(&[]);
    let url = format!("{}/rpc", daemon.url.trim_end_matches('/'));
    let help = printed(&run(&home, &url, &["--help"]));
    assert!(
        help.contains("count_lines") && help.contains("Does count_lines"),
        "{help}"
    );
    let help = printed(&run(&home, &url, &["count_lines", "--help"]));
    assert!(
        help.contains("--most MOST") && help.contains("Stop at 100% of these"),
        "{help}"
    );
    let result = parsed(&printed(&run(
        &home,
        &url,
        &["count_lines", "--path", "/a", "--most", "7"],
    )));
    assert_eq!(
        result,
        json!({"called": "count_lines", "with": {"path": "/a", "most": 7}})
    );
    let failed = run(&home, &url, &["fails", "--path", "x"]);
    let refused = String::from_utf8_lossy(&failed.stderr).into_owned();
    let error: Value = parsed(refused.trim().strip_prefix("refused: ").unwrap());
    assert_eq!(
        error,
        json!({"code": -32600, "message": "the disk is full", "data": {"code": "-32600"}}),
        "{refused}"
    );
    let missing = run(&home, &url, &["count_lines"]);
    assert_eq!(
        missing.status.code(),
        Some(2),
        "the schema says that the path is required"
    );
}
