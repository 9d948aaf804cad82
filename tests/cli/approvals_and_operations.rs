//! `callsheet approvals` and `operations`: what a human sees of calls that are not over, and
//! decides.

use std::path::Path;

use serde_json::{Value, json as value};
use tokio::sync::watch;

use crate::support::assert_empty;
use crate::support::callee::{Callee, Ran, answer, done, manifest, tool_with};
use crate::support::command::{self, Home, Running, json, rows};
use crate::support::torn::send;

/// A scenario with a tool that needs a yes, and one that goes on.
async fn works() -> (Home, Running, Callee) {
    let takes = value!({"type": "object", "properties": {"disk": {"type": "string"}}});
    let id = value!({"type": "object", "properties": {"id": {"type": "string"}}});
    let behaviour = value!({
        "status_polling": {"status_tool": "get", "operation_id_field": "id", "status_tool_id_param": "id"},
        "completion_conditions": {"status_field": "status", "success_values": ["done"]},
        "cancellation": {"cancel_tool": "stop", "cancel_tool_id_param": "id"},
    });
    let on = value!({"enabled_by_default": true});
    let tools = [
        tool_with(
            "wipe",
            &takes,
            &value!({"enabled_by_default": true, "requires_approval": true}),
        ),
        tool_with(
            "build",
            &takes,
            &value!({"enabled_by_default": true, "async_behavior": behaviour}),
        ),
        tool_with("get", &id, &on),
        tool_with("stop", &id, &on),
    ];
    let callee = Callee::start(manifest("works", &tools), |ran: Ran| async move {
        match ran.tool.as_str() {
            "build" => answer(
                202,
                &value!({"success": true, "is_async": true, "result": {"id": "b-1"}}),
            ),
            "get" => done(&value!({"status": "running"})),
            _ => done(&ran.arguments),
        }
    })
    .await;
    let home = Home::naming(&[("works", callee.url().as_str())]);
    let daemon = tokio::task::block_in_place(|| home.serve(&[]));
    (home, daemon, callee)
}

fn call(daemon: &Running, tool: &str, arguments: &Value) -> Value {
    let body = value!({"tool_name": tool, "arguments": arguments, "user_id": "kim"});
    let answer = tokio::task::block_in_place(|| {
        send(&daemon.url, "POST", "/api/v1/tools/execute", Some(&body))
    })
    .unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()
}

fn run(home: &Home, daemon: &Running, args: &[&str]) -> command::Ran {
    let args: Vec<&str> = [args, &["--url", &daemon.url][..]].concat();
    // The scenario answers on this test's runtime.
    tokio::task::block_in_place(|| home.run(&args))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_human_says_yes_and_no() {
    let (home, daemon, callee) = works().await;
    assert_eq!(
        run(&home, &daemon, &["approvals"]).ok(),
        "no call waits for approval\n"
    );
    let first = call(&daemon, "wipe", &value!({"disk": "sda1"}))["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = call(&daemon, "wipe", &value!({"disk": "sda2\u{1b}[2J"}))["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = run(&home, &daemon, &["approvals"]).ok();
    let table = rows(&listed);
    assert_eq!(
        table[0],
        ["ID", "TOOL", "STATE", "EXPIRES", "CALLER", "ARGUMENTS"]
    );
    assert_eq!(table[1][0], &first[..12]);
    assert_eq!(table[1][1], "works/wipe");
    assert_eq!(table[1][2], "waiting");
    assert_eq!(table[1][4], "user kim");
    assert!(
        !listed.contains('\u{1b}'),
        "arguments do not steer the terminal"
    );
    let one = run(&home, &daemon, &["approvals", &first[..8]]).ok();
    assert!(
        one.contains(r#"{"disk":"sda1"}"#) && one.contains("waiting"),
        "{one}"
    );

    let approved = run(
        &home,
        &daemon,
        &["approvals", "approve", &first[..8], "--by", "robin"],
    )
    .ok();
    assert!(
        approved.contains("answered") && approved.contains("by robin") && approved.contains("sda1"),
        "{approved}"
    );
    let again = run(&home, &daemon, &["approvals", "approve", &first]).failed(1);
    assert!(again.contains("already decided"), "{again}");
    let rejected = run(
        &home,
        &daemon,
        &[
            "approvals",
            "reject",
            &second,
            "--reason",
            "not now",
            "--json",
        ],
    )
    .ok();
    assert_eq!(json(&rejected)["state"], value!("rejected"));
    assert_eq!(json(&rejected)["reason"], value!("not now"));
    let unknown = run(&home, &daemon, &["approvals", "approve", "zzz"]).failed(1);
    assert!(unknown.contains("no call with this id"), "{unknown}");
    assert_eq!(
        run(&home, &daemon, &["approvals"]).ok(),
        "no call waits for approval\n"
    );
    assert_eq!(
        rows(&run(&home, &daemon, &["approvals", "--all"]).ok()).len(),
        3
    );
    assert_eq!(callee.ran().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_a_call_is_shown_while_it_waits_and_in_the_log() {
    let (home, daemon, _callee) = works().await;
    let client = concat!("callsheet/", env!("CARGO_PKG_VERSION"));
    let call = [
        "call",
        "--url",
        daemon.url.as_str(),
        "works/wipe",
        "--disk",
        "sda1",
    ];
    let waits = tokio::task::block_in_place(|| home.run(&call)).failed(6);
    let table = run(&home, &daemon, &["approvals"]).ok();
    let listed = rows(&table);
    assert_eq!(listed[1][4], client, "{waits}");
    let id = &listed[1][0];
    let shown = run(&home, &daemon, &["approvals", id]).ok();
    assert!(shown.contains(client), "{shown}");
    assert!(
        run(&home, &daemon, &["approvals", "show", id])
            .ok()
            .contains(client)
    );
    for wrong in ["", "a/b", "a b"] {
        let error = run(&home, &daemon, &["approvals", "show", wrong]).failed(2);
        assert!(
            error.starts_with(&format!(
                "error: `{wrong}` is not the beginning of an id\n  hint: "
            )),
            "{error}"
        );
    }
    let whole = json(&run(&home, &daemon, &["approvals", id, "--json"]).ok())["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let url = ["--url", daemon.url.as_str()];
    for command in [
        &["approvals"][..],
        &["approvals", "show"],
        &["approvals", "approve"],
        &["approvals", "reject"],
    ] {
        let words = [&["complete", "--"], command, &url, &[&id[..4]]].concat();
        assert_eq!(
            tokio::task::block_in_place(|| home.run(&words)).ok(),
            format!("{whole}\n"),
            "{command:?}"
        );
    }
    run(
        &home,
        &daemon,
        &[
            "approvals",
            "reject",
            id,
            "--by",
            "kim",
            "--reason",
            "not now",
        ],
    )
    .ok();
    let logged = run(&home, &daemon, &["logs"])
        .ok()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(logged.contains("works/wipe: rejected in "), "{logged}");
    assert!(
        logged.contains(&format!("(by {client}): rejected by kim: not now")),
        "{logged}"
    );
}

/// The token of the operator.
const TOKEN: &str = "0123456789abcdef-topsecret";

/// A daemon that has the token from its environment.
fn serving_with_token(home: &Home) -> Running {
    tokio::task::block_in_place(|| {
        let mut command = home.command(&["serve"]);
        command.env("CALLSHEET_CALLS__APPROVAL_TOKEN", TOKEN);
        let daemon = Running::start(command, "callsheet listens on ");
        command::until("the daemon is ready", || daemon.get("/readyz").0 == 200);
        daemon
    })
}

/// Without the token no command of an operator succeeds; `id` is that of a waiting approval.
fn assert_token_is_wanted(home: &Home, daemon: &Running, id: &str, skip: &[&str]) {
    for args in [
        &["approvals", "approve", id][..],
        &["approvals", "reject", id],
        skip,
        &["prefs", "set", "tool:works/wipe", "--enabled", "true"],
        &["prefs", "set", "tool:works/wipe", "--alias", "tidy"],
        &["prefs", "reset", "tool:works/wipe"],
        &["trust", "works"],
        &["trust", "works", "--undo"],
        &["block", "works"],
        &["block", "works", "--undo"],
    ] {
        let error = run(home, daemon, args).failed(1);
        assert!(
            error.contains("`server.operator_token`")
                && error.contains("`CALLSHEET_SERVER__OPERATOR_TOKEN`"),
            "{error}"
        );
        assert!(!error.contains("topsecret"), "{error}");
    }
}

/// Neither the configuration, `doctor` nor the dashboard shows the token.
fn assert_token_is_not_shown(home: &Home, daemon: &Running, file: &Path) {
    let shown = home
        .run(&["config", "show", "--config", file.to_str().unwrap()])
        .ok();
    assert!(
        shown.contains("calls.approval_token") && !shown.contains("topsecret"),
        "{shown}"
    );
    let doctor = run(home, daemon, &["doctor", "--json"]);
    assert!(
        !doctor.out.contains("topsecret") && !doctor.out.contains("server.operator_token`"),
        "{doctor:?}"
    );
    assert!(
        !std::str::from_utf8(&daemon.get("/dashboard/configuration").1)
            .unwrap()
            .contains("topsecret")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_decides_shows_the_token_of_the_configuration() {
    let callee = works().await.2;
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"works\"\nurl = \"{}\"\n",
        callee.url()
    ));
    let daemon = serving_with_token(&home);
    let id = call(&daemon, "wipe", &value!({"disk": "sda1"}))["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let skip = ["prefs", "set", "tool:works/wipe", "--approval", "skip"];
    assert_token_is_wanted(&home, &daemon, &id, &skip);
    assert_empty!(callee.ran());
    // From the environment, and from a file.
    let showing = |args: &[&str], token: &str| {
        let args: Vec<&str> = [args, &["--url", &daemon.url][..]].concat();
        tokio::task::block_in_place(|| {
            command::run(
                home.command(&args)
                    .env("CALLSHEET_CALLS__APPROVAL_TOKEN", token),
            )
        })
    };
    let wrong = showing(&["approvals", "approve", &id], "0123456789abcdef-hash").failed(1);
    assert!(wrong.contains("not the token"), "{wrong}");
    run(
        &home,
        &daemon,
        &[
            "prefs",
            "set",
            "tool:works/get",
            "--enabled",
            "false",
            "--priority",
            "3",
        ],
    )
    .ok();
    let approved = showing(&["approvals", "approve", &id], TOKEN).ok();
    assert!(approved.contains("answered"), "{approved}");
    assert_eq!(callee.ran().len(), 1);
    let file = home.write(
        "decider.toml",
        &format!("[calls]\napproval_token = \"{TOKEN}\"\n"),
    );
    run(
        &home,
        &daemon,
        &[&skip[..], &["--config", file.to_str().unwrap()]].concat(),
    )
    .ok();
    let new = home.write(
        "operator.toml",
        &format!("[server]\noperator_token = \"{TOKEN}\"\n"),
    );
    let going = call(&daemon, "build", &value!({"disk": "sda1"}))["operation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let error = run(&home, &daemon, &["operations", "cancel", &going]).failed(1);
    assert!(
        error.contains("cancelling an operation needs the token of `server.operator_token`"),
        "{error}"
    );
    for args in [
        &["operations", "cancel", &going][..],
        &["block", "works"],
        &["block", "works", "--undo"],
        &["trust", "works"],
    ] {
        run(
            &home,
            &daemon,
            &[args, &["--config", new.to_str().unwrap()]].concat(),
        )
        .ok();
    }
    assert_token_is_not_shown(&home, &daemon, &file);
}

/// The text of a tool's page without its tags.
fn page(daemon: &Running, tool: &str) -> String {
    let (status, page) = daemon.get(&format!("/dashboard/tool?id=works%2F{tool}"));
    assert_eq!(status, 200);
    let page = String::from_utf8(page).unwrap();
    let texts = page
        .split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text.trim());
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// What was counted outlives the end of a daemon; one that is killed loses what it counted since
/// `calls.usage_interval`, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_counted_of_a_tool_outlives_the_daemon() {
    let callee = works().await.2;
    let home = Home::naming(&[("works", callee.url().as_str())]);
    let serve = |interval: &str| {
        tokio::task::block_in_place(|| {
            let mut command = home.command(&["serve"]);
            command.env("CALLSHEET_CALLS__USAGE_INTERVAL", interval);
            let daemon = Running::start(command, "callsheet listens on ");
            command::until("the daemon is ready", || daemon.get("/readyz").0 == 200);
            daemon
        })
    };
    let execute = |daemon: &Running, arguments: &Value| {
        let body = value!({"tool_name": "get", "arguments": arguments});
        let answer = tokio::task::block_in_place(|| {
            send(&daemon.url, "POST", "/api/v1/tools/execute", Some(&body))
        })
        .unwrap();
        answer.status
    };
    let end = |mut daemon: Running, signal: &str| {
        tokio::task::block_in_place(|| {
            daemon.signal(signal);
            daemon.ended();
        });
    };
    // A day away: only the end stores it.
    let daemon = serve("24h");
    assert!(page(&daemon, "get").contains("No calls are recorded"));
    assert_eq!(execute(&daemon, &value!({"id": "a"})), 200);
    assert_eq!(execute(&daemon, &value!({"id": 7})), 400);
    end(daemon, "TERM");
    let daemon = serve("20ms");
    let shown = page(&daemon, "get");
    for part in [
        "Calls 2",
        "Failures 1",
        "invalid_arguments 1",
        "Longest duration",
        "Last called",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let metrics = String::from_utf8(daemon.get("/metrics").1).unwrap();
    assert!(
        !metrics.contains("callsheet_calls_total{outcome=\"ok\"} 1"),
        "counters of metrics begin anew"
    );
    assert_eq!(execute(&daemon, &value!({"id": "b"})), 200);
    // It is on the disk soon, as anybody can see there.
    let store = home.path(".state/callsheet/state.db");
    let stored = || {
        let store = rusqlite::Connection::open_with_flags(
            &store,
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
        )
        .unwrap();
        store
            .query_row(
                "SELECT calls FROM usage WHERE tool = 'works/get'",
                [],
                |row| row.get::<_, i64>(0),
            )
            .unwrap()
    };
    tokio::task::block_in_place(|| command::until("it is stored", || stored() == 3));
    end(daemon, "KILL");
    let daemon = serve("24h");
    assert!(page(&daemon, "get").contains("Calls 3"));
    assert_eq!(execute(&daemon, &value!({"id": "c"})), 200);
    assert!(page(&daemon, "get").contains("Calls 4"));
    end(daemon, "KILL");
    assert!(
        page(&serve("24h"), "get").contains("Calls 3"),
        "what was not stored yet is lost, and nothing else"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_seen_and_called_off() {
    let (home, daemon, callee) = works().await;
    assert_eq!(
        run(&home, &daemon, &["operations"]).ok(),
        "no operation is known\n"
    );
    let id = call(&daemon, "build", &value!({}))["operation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = run(&home, &daemon, &["operations"]).ok();
    assert_eq!(rows(&listed)[1][..3], [&id[..12], "works/build", "running"]);
    let one = run(&home, &daemon, &["operations", &id]).ok();
    assert!(one.contains("b-1") && one.contains("user kim"), "{one}");
    let cancelled = run(&home, &daemon, &["operations", "cancel", &id[..8]]).ok();
    assert!(cancelled.contains("cancelled"), "{cancelled}");
    let stopped: Vec<_> = callee
        .ran()
        .into_iter()
        .filter(|ran| ran.tool == "stop")
        .map(|ran| ran.arguments)
        .collect();
    assert_eq!(stopped, [value!({"id": "b-1"})]);
    let again = run(&home, &daemon, &["operations", "cancel", &id]).failed(1);
    assert!(again.contains("over already"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_killed_between_the_yes_and_the_answer_never_runs_it_twice() {
    let (home, mut daemon, callee) = works().await;
    let (let_go, wait) = watch::channel(false);
    callee.runs(move |ran: Ran| {
        let mut wait = wait.clone();
        async move {
            let _ = wait.wait_for(|open| *open).await;
            done(&ran.arguments)
        }
    });
    let id = call(&daemon, "wipe", &value!({"disk": "sda1"}))["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let url = daemon.url.clone();
    let target = format!("/api/v1/approvals/{id}/approve");
    // Its answer never comes.
    let approving = std::thread::spawn(move || {
        send(&url, "POST", &target, Some(&value!({"by": "kim"}))).is_err()
    });
    callee.until_ran(1).await;
    tokio::task::block_in_place(|| {
        daemon.signal("KILL");
        daemon.ended();
    });
    assert!(tokio::task::block_in_place(|| approving.join().unwrap()));
    let_go.send_replace(true);
    let daemon = tokio::task::block_in_place(|| home.serve(&[]));
    let kept = run(&home, &daemon, &["approvals", &id, "--json"]).ok();
    assert_eq!(json(&kept)["state"], value!("unknown-outcome"));
    assert_eq!(json(&kept)["decided_by"], value!("kim"));
    let again = run(&home, &daemon, &["approvals", "approve", &id]).failed(1);
    assert!(again.contains("`unknown-outcome`"), "{again}");
    assert_eq!(callee.ran().len(), 1);
}

/// Of a call that waits, standard output has nothing, so that a script takes it for no result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_for_approval_has_an_exit_code_and_can_be_waited_for() {
    let (home, daemon, _callee) = works().await;
    let call = [
        "call",
        "--url",
        daemon.url.as_str(),
        "wipe",
        "--disk",
        "sda1",
    ];
    let waits = tokio::task::block_in_place(|| home.run(&call)).failed(6);
    assert!(
        waits.contains("waits for approval as ") && waits.contains("`callsheet approvals approve "),
        "{waits}"
    );
    assert!(
        waits.contains("hint: `callsheet approvals approve "),
        "{waits}"
    );
    let json = [
        "call",
        "--json",
        "--url",
        daemon.url.as_str(),
        "wipe",
        "--disk",
        "sda1",
    ];
    let ran = tokio::task::block_in_place(|| home.run(&json));
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.out.contains("approval_id"), "{ran:?}");

    for (decision, code, part) in [
        ("approve", 0, "sda2"),
        ("reject", 1, "the call was rejected: not today"),
    ] {
        let waiting = [
            "call",
            "--wait",
            "--url",
            daemon.url.as_str(),
            "wipe",
            "--disk",
            "sda2",
        ];
        let mut command = home.command(&waiting);
        let started = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn();
        let id = waiting_for(&daemon, "sda2");
        let mut decide = vec!["approvals", decision, &id];
        if decision == "reject" {
            decide.extend(["--reason", "not today"]);
        }
        run(&home, &daemon, &decide).ok();
        let decided = command::json(&run(&home, &daemon, &["approvals", &id, "--json"]).ok());
        assert_eq!(decided["decided_by"], value!("operator"), "{decided}");
        let ended = tokio::task::block_in_place(|| started.unwrap().wait_with_output().unwrap());
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr)
        );
        assert_eq!(ended.status.code(), Some(code), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

/// The identifier of the call that waits with this text in its arguments.
fn waiting_for(daemon: &Running, text: &str) -> String {
    let find = || {
        let list: Value =
            serde_json::from_slice(&daemon.get("/api/v1/approvals?state=waiting").1).unwrap();
        let rows = list["approvals"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["arguments"].to_string().contains(text))?;
        Some(row["id"].as_str().unwrap().to_owned())
    };
    tokio::task::block_in_place(|| {
        command::until("the call waits", || find().is_some());
        find().unwrap()
    })
}
