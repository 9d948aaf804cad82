//! What a person is shown for approval is what is sent, and what could be read in two ways is
//! refused.

use callsheet::calls::{ExecuteError, Request, Requester};
use callsheet::model::JsonText;
use serde_json::{Value, json};

use crate::support::callee::{Callee, answer, manifest, text, tool, tool_with};
use crate::support::daemon::{Daemon, Home, configured};
use crate::support::house::House;
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A scenario with a tool that needs approval and one that does not, for any arguments.
fn disks() -> Value {
    let parameters = json!({"type": "object", "properties": {"path": {"enum": ["/tmp/harmless"]}}});
    let wipe = json!({"enabled_by_default": true, "requires_approval": true});
    let look = json!({"enabled_by_default": true, "requires_approval": false});
    manifest(
        "disks",
        &[
            tool_with("look", &parameters, &look),
            tool_with("wipe", &json!({"type": "object"}), &wipe),
        ],
    )
}

async fn daemon(home: &Home, callee: &Callee) -> Daemon {
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    Daemon::ready(config).await
}

async fn post(daemon: &Daemon, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: Vec<_> = headers.iter().copied().chain([JSON]).collect();
    ask(daemon.address, "POST", target, &headers, body).await
}

/// Asks for a call of `wipe` with arguments written like this; the id of what waits.
async fn waiting(daemon: &Daemon, arguments: &str) -> String {
    let body = format!(r#"{{"tool_name":"wipe","arguments":{arguments}}}"#);
    let answer = post(daemon, "/api/v1/tools/execute", &[], &body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["approval_id"].as_str().unwrap().to_owned()
}

async fn page(daemon: &Daemon) -> String {
    String::from_utf8(daemon.get("/dashboard/calls/now").await.body).unwrap()
}

#[tokio::test]
async fn arguments_with_equal_members_are_refused_with_the_pointer_on_every_way_in() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = daemon(&home, &callee).await;
    let pointers = |answer: &Answer| {
        let problem = answer.json();
        (
            answer.status,
            problem["code"].clone(),
            problem["violations"][0]["pointer"].clone(),
        )
    };
    // The first of both is what the schema does not allow; a reader that takes it would get it past
    // the check.
    for (written, place) in [
        (r#"{"path":"/etc/shadow","path":"/tmp/harmless"}"#, "/path"),
        (
            r#"{"path":"/tmp/harmless","more":[{"a":1},{"b":{"c":1,"\u0063":2}}]}"#,
            "/more/1/b/c",
        ),
    ] {
        let in_a_text = json!(written).to_string();
        for tool in ["look", "wipe", "disks/look"] {
            for arguments in [written, &in_a_text] {
                let body = format!(r#"{{"tool_name":"{tool}","arguments":{arguments}}}"#);
                let answer = post(&daemon, "/api/v1/tools/execute", &[], &body).await;
                assert_eq!(
                    pointers(&answer),
                    (400, json!("invalid_arguments"), json!(place)),
                    "{body}: {answer:?}"
                );
            }
            let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{written},"_meta":{meta}}}}}"#
            );
            let headers = [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", tool),
            ];
            let answer = post(&daemon, "/mcp", &headers, &call).await.json();
            let failed = &answer["result"]["isError"];
            let text = answer["result"]["content"][0]["text"].to_string();
            let named = format!("{place}: is given more than once");
            assert!(
                tool == "disks/look" || *failed == true && text.contains(&named),
                "MCP {tool}: {answer}"
            );
        }
    }
    assert_eq!(
        daemon.json("/api/v1/approvals").await["approvals"],
        json!([]),
        "nothing waits"
    );
    assert_eq!(callee.ran().len(), 0, "nothing was sent");
    daemon.stop().await;
}

#[tokio::test]
async fn an_embedding_program_is_refused_in_the_same_way() {
    let callee = Callee::echo(disks()).await;
    let house = House::of(&[("disks", callee.url())]).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    for (written, place, why) in [
        (r#"{"a":1,"a":1}"#, "/a", "more than once"),
        (&*deep, "/a/0", "deeper"),
    ] {
        let arguments = JsonText::parse(written).unwrap();
        let refused = house
            .request(Request::new("look", arguments, Requester::full_access()))
            .await;
        let Err(ExecuteError::Invalid { violations, .. }) = refused else {
            panic!("{written}: {refused:?}")
        };
        assert!(violations[0].pointer.starts_with(place), "{violations:?}");
        assert!(violations[0].message.contains(why), "{violations:?}");
    }
    house.finish().await;
}

#[tokio::test]
async fn what_is_shown_for_approval_is_the_text_that_is_sent() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = daemon(&home, &callee).await;
    let written = r#"{"n":100000000000000000000000001,"x":1.50,"t":"\u202e\u00e9","blank":"/safe"#
        .to_owned()
        + "\u{3164}\u{2800}\u{200d}\u{fe0f}\u{e0101}\u{202e}x\"}";

    let id = waiting(&daemon, &written).await;

    for target in [
        format!("/api/v1/approvals/{id}"),
        "/api/v1/approvals".to_owned(),
    ] {
        let shown = String::from_utf8(daemon.get(&target).await.body).unwrap();
        assert!(
            shown.contains(&format!(r#""arguments":{written}"#)),
            "{target}: {shown}"
        );
    }
    let page = page(&daemon).await;
    for part in [
        "100000000000000000000000001",
        "1.50",
        r"\u202e\u00e9",
        "U+3164",
        "U+2800",
        "U+200D",
        "U+FE0F",
        "U+E0101",
        "U+202E",
    ] {
        assert!(page.contains(part), "{part} is not on the page: {page}");
    }
    let approved = post(
        &daemon,
        &format!("/api/v1/approvals/{id}/approve"),
        &[],
        "{}",
    )
    .await;
    assert_eq!(approved.status, 200, "{approved:?}");
    let sent: Vec<String> = callee.ran().into_iter().map(|ran| ran.text).collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(
        sent[0].contains(&written),
        "sent {}, shown {written}",
        sent[0]
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_call_that_the_page_cannot_show_whole_cannot_be_approved_there() {
    let home = Home::new();
    let callee = Callee::echo(disks()).await;
    let daemon = daemon(&home, &callee).await;
    let long = json!({"note": "A".repeat(21_000), "cmd": "rm -rf /"}).to_string();
    let id = waiting(&daemon, &long).await;
    let approve = format!("/api/v1/approvals/{id}/approve");
    let reject = format!("/api/v1/approvals/{id}/reject");

    let shown = page(&daemon).await;

    assert!(
        !shown.contains(&approve),
        "the page offers to approve what it does not show"
    );
    assert!(
        shown.contains(&reject),
        "rejecting needs no look at all of it"
    );
    assert!(
        shown.contains(&format!("href=\"/api/v1/approvals/{id}\"")),
        "the page links to the whole call"
    );
    let whole = daemon.json(&format!("/api/v1/approvals/{id}")).await;
    assert_eq!(whole["arguments"]["cmd"], "rm -rf /");
    assert_eq!(post(&daemon, &reject, &[], "{}").await.status, 200);
    // A caller may have a name that is longer than its place on the page.
    let body =
        json!({"tool_name": "wipe", "arguments": {}, "user_id": "u".repeat(300)}).to_string();
    let answer = post(&daemon, "/api/v1/tools/execute", &[], &body)
        .await
        .json();
    let id = answer["approval_id"].as_str().unwrap();
    assert!(
        !page(&daemon)
            .await
            .contains(&format!("/api/v1/approvals/{id}/approve")),
        "its user is cut"
    );
    daemon.stop().await;
}

/// A tool whose result nests deeper than readers read.
async fn deep() -> Callee {
    let nested = format!("{}{}", "[".repeat(3_000), "]".repeat(3_000));
    let approved = json!({"enabled_by_default": true, "requires_approval": true});
    let tools = [
        tool("dig"),
        tool_with("mine", &json!({"type": "object"}), &approved),
    ];
    Callee::start(manifest("disks", &tools), move |ran| {
        let nested = nested.clone();
        async move {
            if ran.arguments["flat"] == true {
                answer(200, &json!({"success": true, "result": [[[7]]]}))
            } else {
                text(200, format!(r#"{{"success":true,"result":{nested}}}"#))
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_result_that_is_too_deep_is_refused_with_that_reason_and_never_ends_in_a_500() {
    let home = Home::new();
    let callee = deep().await;
    let daemon = daemon(&home, &callee).await;
    let call = async |tool: &str, flat: bool| {
        let body = json!({"tool_name": tool, "arguments": {"flat": flat}}).to_string();
        post(&daemon, "/api/v1/tools/execute", &[], &body).await
    };
    let answer = call("dig", false).await;
    let problem = answer.json();
    assert_eq!(answer.status, 502, "{problem}");
    assert_eq!(problem["code"], "bad_answer", "{problem}");
    assert_eq!(problem["sent"], true, "{problem}");
    assert!(
        problem["error"]
            .as_str()
            .unwrap()
            .contains("nests deeper than 100 levels"),
        "{problem}"
    );
    assert_eq!(call("dig", true).await.json()["result"], json!([[[7]]]));

    let id = call("mine", false).await.json()["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let approved = post(
        &daemon,
        &format!("/api/v1/approvals/{id}/approve"),
        &[],
        "{}",
    )
    .await;
    let request = approved.json();
    assert_eq!(approved.status, 200, "{request}");
    assert_eq!(request["state"], "failed", "{request}");
    let kept = daemon.json(&format!("/api/v1/approvals/{id}")).await;
    assert!(
        kept["answer"]["error"]
            .as_str()
            .unwrap()
            .contains("nests deeper than 100 levels"),
        "{kept}"
    );
    daemon.stop().await;
}
