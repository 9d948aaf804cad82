//! `callsheet check` of servers that speak plain JSON-RPC.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::command::{Home, json as parsed, office};
use crate::support::rpc_server::{RpcServer, listed, offer};

const IDENTITY: &str = "550e8400-e29b-41d4-a716-446655440000";

fn codes(checked: &Value) -> Vec<String> {
    let findings = checked["findings"].as_array().unwrap().iter();
    let place = |finding: &Value| finding["pointer"].as_str().unwrap_or("-").to_owned();
    findings
        .map(|finding| format!("{} {}", finding["code"].as_str().unwrap(), place(finding)))
        .collect()
}

#[test]
fn a_good_server_passes_at_either_address() {
    let runtime = Runtime::new().unwrap();
    let home = Home::new();
    let server = runtime.block_on(RpcServer::offering(
        IDENTITY,
        &[listed("read"), listed("write")],
    ));
    for path in ["", "/rpc"] {
        let ran = home.run(&[
            "check",
            "--json",
            "--strict",
            &format!("http://{}{path}", server.address),
        ]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let checked = parsed(&ran.out);
        assert_eq!(checked["tools"], 2, "{checked}");
        assert_eq!(checked["findings"], json!([]), "{checked}");
    }
    let (home, daemon, _scenarios) = office();
    let ran = home.run(&[
        "check",
        "--json",
        "--strict",
        &format!("{}/rpc", daemon.url.trim_end_matches('/')),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(parsed(&ran.out)["findings"], json!([]), "{ran:?}");
}

#[test]
fn faults_of_the_identity_and_of_the_list_are_found() {
    let runtime = Runtime::new().unwrap();
    let home = Home::new();
    let mut count = 0;
    let mut untyped = listed("untyped");
    untyped["inputSchema"]["properties"]["path"]["type"] = json!("text");
    let tools = json!([
        listed("fine"),
        {"name": "bare", "description": ""},
        {"name": "spelled", "description": "d", "input_schema": {"type": "object"}},
        untyped,
        {"name": ""},
    ]);
    let server = runtime.block_on(RpcServer::start(move |method, _| {
        count += 1;
        Ok(match method {
            "server/identity" => {
                json!({"server_id": format!("v{count}"), "tool_count": 5, "protocol_version": 1})
            }
            _ => json!({"tools": tools, "nextCursor": "2"}),
        })
    }));
    let url = format!("http://{}", server.address);
    let ran = home.run(&["check", "--json", &url]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let codes = codes(&parsed(&ran.out));
    for expected in [
        "server-identity /server_id",
        "server-identity /tools_count",
        "server-identity /protocol_version",
        "server-identity -",
        "unknown-key /tool_count",
        "paging /nextCursor",
        "tool-undescribed /tools/1/description",
        "schema-missing /tools/1",
        "unknown-key /tools/2/input_schema",
        "schema-type /tools/3/inputSchema/properties/path/type",
        "tool-quarantined /tools/4/name",
    ] {
        assert!(
            codes.iter().any(|code| code == expected),
            "{expected} is missing in {codes:#?}"
        );
    }
    let table = home.run(&["check", &url]).out;
    assert!(table.contains("did you mean `inputSchema`?"), "{table}");

    server.script(|method, _| match method {
        "tools/list" => Ok(json!({"tools": []})),
        _ => Err(json!({"code": -32601, "message": "Method not found"})),
    });
    let ran = home.run(&["check", &url]);
    assert!(ran.out.contains("it has no `server/identity`"), "{ran:?}");
    assert_eq!(ran.code, Some(0), "that is no error: {ran:?}");
}

#[test]
fn a_server_whose_list_cannot_be_read_says_why() {
    let runtime = Runtime::new().unwrap();
    let home = Home::new();
    let server = runtime.block_on(RpcServer::start(offer(IDENTITY, &[])));
    for (list, part) in [
        (json!({"tools": {}}), "in its list is an object, not a list"),
        (json!([]), "`tools/list` cannot be read"),
    ] {
        server.script(move |method, _| match method {
            "tools/list" => Ok(list.clone()),
            _ => Ok(json!({"server_id": IDENTITY})),
        });
        let ran = home.run(&["check", &format!("http://{}", server.address)]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.out.contains("manifest-refused") && ran.out.contains(part),
            "{part}: {ran:?}"
        );
    }
}
