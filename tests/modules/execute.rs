//! Calls of modules through the daemon, by the modules' own route and by everybody's: where they
//! go, who may make them, and what they come to, word for word. The modules are real programs in
//! Python.
//!
//! Rows of the original's list of features: S4-04, S4-36, S4-37, S4-40 to S4-43, S4-45 to S4-51,
//! S4-55, S4-63, S4-72, S4-80, S4-81.

use std::time::Duration;

use callsheet::model::{Permission, Profile, Secret, UnknownLevel};
use serde_json::{Value, json};

use crate::calm;
use crate::support::daemon::{Daemon, Home, Scenario};
use crate::support::module::{Module, example, tool};

/// What the modules' own route answers, which is always 200.
async fn execute(daemon: &Daemon, module: &str, body: &Value) -> Value {
    let answer = daemon
        .send_json("POST", &format!("/api/modules/{module}/execute"), body)
        .await;
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    answer.json()
}

fn failed(tool: &str, error: &str) -> Value {
    json!({"tool_name": tool, "success": false, "result": null, "error": error})
}

/// S4-04, S4-40, S4-44, S4-45, S4-46, S4-51, S4-55, S4-72: the module gets the call as the original
/// sends it, and its result comes back.
#[tokio::test]
async fn a_call_arrives_as_the_original_sends_it() {
    let desk = Module::start("git_desk", &[tool("git_desk.issue.open", "guest")]).await;
    let home = Home::new();
    let daemon = Daemon::ready(calm(&home, &[&desk])).await;
    let name = "git_desk.issue.open";
    let sent = json!({"tool_name": name, "arguments": {"title": "a"}});
    let result = json!({"received": sent, "runs": 1});
    let expected = json!({"tool_name": name, "success": true, "result": result, "error": null});
    assert_eq!(execute(&daemon, "git_desk", &sent).await, expected);
    let mut with_user = sent.clone();
    with_user["user_id"] = json!("u-7");
    let answer = execute(&daemon, "git_desk", &with_user).await;
    assert_eq!(answer["result"]["received"], with_user);
    // By everybody's route, under its published name, its own name and its identity.
    for called in ["git_desk_issue_open", name, "git_desk/git_desk.issue.open"] {
        let body = json!({"tool_name": called, "arguments": {"title": "a"}, "user_id": "u-7"});
        let answer = daemon
            .send_json("POST", "/api/v1/tools/execute", &body)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        assert_eq!(answer["success"], true, "{called}");
        assert_eq!(answer["tool_name"], json!(name), "{called}");
        assert_eq!(answer["result"]["received"], with_user, "{called}");
    }
    daemon.stop().await;
}

/// Sends bodies that describe no call.
async fn assert_unfit_bodies_are_refused(daemon: &Daemon) {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"tool_name":7}"#,
        r#"{"tool_name":"desk.try","arguments":[]}"#,
    ] {
        let json = [("content-type", "application/json")];
        let answer = crate::support::serving::ask(
            daemon.address,
            "POST",
            "/api/modules/desk/execute",
            &json,
            body,
        )
        .await;
        let outcome = if answer.status == 200 {
            answer.json()["success"].clone()
        } else {
            json!(answer.status)
        };
        assert!(
            outcome == json!(400) || outcome == json!(false) || outcome == json!(415),
            "{body}: {answer:?}"
        );
    }
    // What the description of the body rules out is refused before anything is looked up.
    let body = json!({"tool_name": "desk.try", "call_id": "AAA"});
    for module in ["desk", "xyz"] {
        let answer = daemon
            .send_json("POST", &format!("/api/modules/{module}/execute"), &body)
            .await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(answer.json()["code"], "invalid_call_id", "{answer:?}");
    }
}

/// S4-41, S4-42, S4-43, S4-47 to S4-50, S4-63: every failure is an answer, in the words of the
/// original, after one try.
#[tokio::test]
async fn every_failure_is_an_answer_in_the_words_of_the_original() {
    let desk = Module::start("desk", &[tool("desk.try", "guest")]).await;
    let mut gone = Module::start("gone", &[tool("gone.work", "guest")]).await;
    let scenario = Scenario::of("files", &["read"]).await;
    let home = Home::new();
    let mut config = calm(&home, &[&desk, &gone]);
    config.scenarios.push(scenario.configured());
    config.modules.timeout = Duration::from_millis(900);
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["desk_try", "read", "gone_work"]).await;
    gone.stop();
    for (module, body, error) in [
        (
            "desk",
            json!({"tool_name": "xyz"}),
            "Invalid tool name format: xyz. Expected 'module.tool_name'.",
        ),
        (
            "xyz",
            json!({"tool_name": "xyz.try"}),
            "Unknown module: xyz",
        ),
        (
            "desk",
            json!({"tool_name": "xyz.try"}),
            "Unknown module: xyz",
        ),
        (
            "files",
            json!({"tool_name": "files.read"}),
            "Unknown module: files",
        ),
        (
            "desk",
            json!({"tool_name": "desk.nope"}),
            "Unknown tool: desk.nope",
        ),
        (
            "desk",
            json!({"tool_name": "desk.try", "arguments": {"fail": "stuck"}}),
            "stuck",
        ),
        (
            "desk",
            json!({"tool_name": "desk.try", "arguments": {"status": 500, "say": "Internal Server Error"}}),
            "Module returned status 500: Internal Server Error",
        ),
        (
            "desk",
            json!({"tool_name": "desk.try", "arguments": {"hang": true}}),
            "Tool execution timed out (1s).",
        ),
        (
            "gone",
            json!({"tool_name": "gone.work"}),
            "Tool execution error: Connection refused",
        ),
    ] {
        let tool = body["tool_name"].as_str().unwrap();
        assert_eq!(
            execute(&daemon, module, &body).await,
            failed(tool, error),
            "{body}"
        );
    }
    let runs = execute(
        &daemon,
        "desk",
        &json!({"tool_name": "desk.try", "arguments": {}}),
    )
    .await;
    assert_eq!(
        runs["result"]["runs"], 4,
        "each call that was sent was sent once"
    );
    assert_unfit_bodies_are_refused(&daemon).await;
    daemon.stop().await;
}

/// S4-03, S4-36, S4-37, S4-38 at call time: what a profile does not see, it cannot call either;
/// unlike the original, also by its modules.
#[tokio::test]
async fn a_profile_calls_what_it_may_see_and_nothing_else() {
    let modules = example().await;
    let home = Home::new();
    let mut config = calm(&home, &modules.iter().collect::<Vec<_>>());
    let three = ["research", "file_manager", "code_executor"].map(|name| name.parse().unwrap());
    let user = Profile {
        scenarios: Some(three.into()),
        permission: Some(Permission::User),
        ..Profile::default()
    };
    config.profiles.insert("assistant".into(), user);
    let daemon = Daemon::ready(config).await;
    let mut may = Vec::new();
    for (module, tools) in crate::support::module::EXAMPLE {
        for (tool, _) in tools {
            let body = json!({"tool_name": tool, "arguments": {}, "profile": "assistant"});
            let answer = execute(&daemon, module, &body).await;
            let everybodys = daemon
                .send_json("POST", "/api/v1/tools/execute", &body)
                .await;
            assert_eq!(
                everybodys.status == 200,
                answer["success"] == true,
                "{everybodys:?}"
            );
            match &answer["error"] {
                Value::Null => may.push(*tool),
                error => {
                    assert_eq!(everybodys.status, 403);
                    assert!(
                        error.as_str().unwrap().starts_with("Permission denied: "),
                        "{answer}"
                    );
                }
            }
        }
    }
    let five = [
        "research.web_search",
        "research.fetch_webpage",
        "file_manager.create_document",
    ];
    assert_eq!(
        may,
        [
            &five[..],
            &["file_manager.delete_file", "code_executor.run_python"]
        ]
        .concat()
    );
    let shell = json!({"tool_name": "code_executor.run_shell", "profile": "assistant"});
    let expected =
        "Permission denied: code_executor.run_shell requires 'admin' but user has 'user'";
    assert_eq!(
        execute(&daemon, "code_executor", &shell).await,
        failed("code_executor.run_shell", expected)
    );
    let mistyped =
        json!({"tool_name": "research.web_search", "arguments": {}, "profile": "asistant"});
    let refused = execute(&daemon, "research", &mistyped).await;
    assert_eq!(refused["success"], false, "{refused}");
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("did you mean `assistant`?"),
        "{refused}"
    );
    let refused = daemon
        .send_json("POST", "/api/v1/tools/execute", &mistyped)
        .await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.json()["code"], "unknown_profile", "{refused:?}");
    daemon.stop().await;
}

/// A model that must send every parameter sends `null` for what it leaves out.
#[tokio::test]
async fn a_module_is_not_sent_what_a_model_left_out() {
    let mut trying = tool("desk.try", "guest");
    trying["parameters"] =
        json!([{"name": "how", "type": "string", "description": "How", "required": false}]);
    let desk = Module::start("desk", &[trying]).await;
    let home = Home::new();
    let daemon = Daemon::ready(calm(&home, &[&desk])).await;
    let body = json!({"tool_name": "desk.try", "arguments": {"how": null}});
    let answer = execute(&daemon, "desk", &body).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(answer["adjusted"], json!(["/how"]), "{answer}");
    assert_eq!(
        answer["result"]["received"]["arguments"],
        json!({}),
        "{answer}"
    );
    let answer = execute(
        &daemon,
        "desk",
        &json!({"tool_name": "desk.try", "arguments": {}}),
    )
    .await;
    assert!(answer.get("adjusted").is_none(), "{answer}");
    daemon.stop().await;
}

/// A preference may ask for a human's yes to a module's tool as to any other.
#[tokio::test]
async fn a_call_that_needs_a_yes_waits_and_runs_once_when_it_is_given() {
    let desk = Module::start("desk", &[tool("desk.try", "guest")]).await;
    let home = Home::new();
    let daemon = Daemon::ready(calm(&home, &[&desk])).await;
    let ask = json!({"scope": "global", "target": "tool:desk/desk.try", "approval": "require"});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &ask)
            .await
            .status,
        200
    );
    let body = json!({"tool_name": "desk.try", "arguments": {"a": 1}});
    let answer = daemon
        .send_json("POST", "/api/modules/desk/execute", &body)
        .await;
    let waiting = daemon.json("/api/v1/approvals").await["approvals"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let answered = answer.json();
    assert_eq!(answer.status, 202);
    assert_eq!(answered["success"], false);
    assert_eq!(answered["result"], Value::Null);
    assert!(
        answered["error"].as_str().unwrap().contains(&waiting),
        "{answered}"
    );
    let yes = daemon
        .send_json(
            "POST",
            &format!("/api/v1/approvals/{waiting}/approve"),
            &json!({}),
        )
        .await
        .json();
    assert_eq!(
        yes["answer"]["result"],
        json!({"received": body, "runs": 1}),
        "{yes}"
    );
    daemon.stop().await;
}

/// S4-33, the safe way and the original's, at call time too.
#[tokio::test]
async fn a_level_that_nobody_knows_is_called_by_nobody() {
    let odd = Module::start("odd", &[tool("odd.boss", "boss")]).await;
    for (unknown, expected) in [(UnknownLevel::Refuse, false), (UnknownLevel::Guest, true)] {
        let home = Home::new();
        let mut config = calm(&home, &[&odd]);
        let owner = Profile {
            scenarios: None,
            permission: Some(Permission::Owner),
            unknown,
            searches: None,
            is_default: false,
        };
        config.profiles.insert("owner".into(), owner);
        let daemon = Daemon::ready(config).await;
        let answer = execute(
            &daemon,
            "odd",
            &json!({"tool_name": "odd.boss", "profile": "owner"}),
        )
        .await;
        assert_eq!(answer["success"], expected, "{unknown:?}: {answer}");
        daemon.stop().await;
    }
}

/// S4-46 for a module that wants a token: calls show it, and the list that was made with it is not
/// enough.
#[tokio::test]
async fn calls_show_the_token() {
    let desk = Module::guarded("desk", &[tool("desk.try", "guest")], Some("open-sesame")).await;
    let home = Home::new();
    let mut config = calm(&home, &[&desk]);
    config.modules.token = Some(Secret::new("open-sesame").into());
    let daemon = Daemon::ready(config).await;
    let answer = execute(
        &daemon,
        "desk",
        &json!({"tool_name": "desk.try", "arguments": {"a": 1}}),
    )
    .await;
    assert_eq!(answer["success"], true, "{answer}");
    assert!(!answer.to_string().contains("sesame"));
    daemon.stop().await;
}
