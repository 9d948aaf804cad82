//! What is sent to `/rpc` wrongly: each gets the exact answer, and nothing is run.

use serde_json::{Value, json};

use super::json_rpc::{post, serving, text};

fn invalid(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","error":{{"code":-32600,"message":"Invalid request"}},"id":{id}}}"#
    )
}

fn parse_error() -> String {
    r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#.to_owned()
}

/// The malformed examples of JSON-RPC 2.0 section 7, with a tool where they have a method.
#[tokio::test]
async fn the_examples_of_the_specification_are_answered_as_it_says() {
    let (_home, daemon, callee) = serving().await;
    for (body, expected) in [
        (
            r#"{"jsonrpc": "2.0", "method": "tools/call, "params": "bar", "baz]"#,
            parse_error(),
        ),
        (
            r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#,
            invalid("null"),
        ),
        (
            r#"[
                {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "agent_list"}, "id": "1"},
                {"jsonrpc": "2.0", "method"
            ]"#,
            parse_error(),
        ),
        ("[]", invalid("null")),
        ("[1]", format!("[{}]", invalid("null"))),
        ("[1,2,3]", format!("[{0},{0},{0}]", invalid("null"))),
        (r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#, {
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"}"#
                .to_owned()
        }),
    ] {
        assert_eq!(text(&daemon, body).await, expected, "{body}");
    }
    assert_eq!(callee.ran().len(), 0);
    daemon.stop().await;
}

#[tokio::test]
async fn a_request_with_a_member_of_another_type_is_refused_and_not_run() {
    let (_home, daemon, callee) = serving().await;
    let call = |member: &str, value: &Value| {
        let mut call = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "agent_list"}, "id": 1});
        call[member] = value.clone();
        call.to_string()
    };
    for value in [json!(true), json!({}), json!([1])] {
        assert_eq!(
            text(&daemon, &call("id", &value)).await,
            invalid("null"),
            "{value}"
        );
    }
    for value in [json!(null), json!(1), json!(["tools/call"]), json!({})] {
        assert_eq!(
            text(&daemon, &call("method", &value)).await,
            invalid("1"),
            "{value}"
        );
    }
    for value in [json!("x"), json!(1), json!(true)] {
        assert_eq!(
            text(&daemon, &call("params", &value)).await,
            invalid("1"),
            "{value}"
        );
    }
    for value in [json!("1.0"), json!(2.0), json!(null), json!(2)] {
        let answer = text(&daemon, &call("jsonrpc", &value)).await;
        assert!(
            answer.contains("Unsupported JSON-RPC protocol version"),
            "{value}: {answer}"
        );
    }
    // Twice the same member: programs disagree about which one counts.
    let twice = r#"{"jsonrpc":"2.0","method":"tools/list","method":"tools/call","params":{"name":"agent_list"},"id":1}"#;
    assert_eq!(text(&daemon, twice).await, invalid("null"));
    assert_eq!(callee.ran().len(), 0);
    daemon.stop().await;
}

#[tokio::test]
async fn ids_come_back_as_they_were_written() {
    let (_home, daemon, callee) = serving().await;
    let ids = [
        "0",
        "-7",
        "1.50",
        "1e3",
        "123456789012345678901234567890",
        "null",
        r#""""#,
        r#""\u00e9\n""#,
    ];
    for id in ids {
        let call = format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"agent_list"}},"id":{id}}}"#
        );
        assert_eq!(
            text(&daemon, &call).await,
            format!(r#"{{"jsonrpc":"2.0","result":{{}},"id":{id}}}"#)
        );
    }
    assert_eq!(callee.ran().len(), ids.len());
    daemon.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_text_and_bodies_that_are_too_deep_or_large_are_refused() {
    let (_home, daemon, callee) = serving().await;
    let nested = |levels: usize| {
        let arguments = format!(r#"{{"a":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
        format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"agent_list","arguments":{arguments}}},"id":1}}"#
        )
    };
    let answer = text(&daemon, &nested(99)).await;
    assert!(
        answer.starts_with(r#"{"jsonrpc":"2.0","result":{"a":[["#),
        "{answer}"
    );
    assert_eq!(callee.ran().len(), 1);
    for levels in [100, 100_000] {
        let answer: Value = serde_json::from_str(&text(&daemon, &nested(levels)).await).unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{levels}: {answer}");
    }
    let deep_batch = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        text(&daemon, &deep_batch).await,
        format!("[{}]", invalid("null"))
    );
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"agent_list"},"id":1}"#;
    let too_large = post(&daemon, "/rpc", &format!("{call}{}", " ".repeat(2 << 20))).await;
    assert_eq!(too_large.status, 413);
    for body in [
        "\u{feff}{}",
        "\0",
        "nul",
        "NaN",
        "{'jsonrpc':'2.0'}",
        "// none\n{}",
        "{}{}",
    ] {
        assert_eq!(text(&daemon, body).await, parse_error(), "{body:?}");
    }
    assert_eq!(callee.ran().len(), 1, "nothing else was run");
    daemon.stop().await;
}
