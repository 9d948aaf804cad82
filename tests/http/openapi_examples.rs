//! The examples of the API's description are what a daemon really answers. With `CALLSHEET_BLESS=1`
//! they are written anew.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::api::{described, set};
use crate::support::callee::{self, Callee, Ran, done};
use crate::support::daemon::{Daemon, Home, NEVER, configured};
use crate::support::module::Module;
use crate::support::serving::ask;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/server/openapi/examples.json")
}

/// Ids that nobody can guess, as the examples write them.
const IDS: [&str; 5] = [
    "8d3f5a0e-4c1b-4f7e-9a26-c5d7e8f90a1b",
    "1f6b2d94-7a3e-4c58-b0d1-e2f3a4b5c6d7",
    "64c0e8a2-9d5f-4b17-83e6-0a1b2c3d4e5f",
    "2c7b9e1d-5f3a-4860-b1d2-e3f4a5968778",
    "b85d1f37-0e6c-4a92-97f4-d8c7b6a59483",
];

/// What differs from run to run: ports and ids, each with what is shown for it.
#[derive(Default)]
struct Seen {
    ports: Vec<(u16, u16)>,
    ids: Vec<(String, &'static str)>,
}

impl Seen {
    /// Remembers the ids that an answer gives.
    fn look(&mut self, answer: &Value) {
        for key in ["approval_id", "operation_id"] {
            if let Some(id) = answer[key]
                .as_str()
                .filter(|id| self.ids.iter().all(|(known, _)| known != id))
            {
                self.ids.push((id.to_owned(), IDS[self.ids.len()]));
            }
        }
    }

    /// A target of an example as it is to be asked for.
    fn target(&self, shown: &str) -> String {
        self.ids
            .iter()
            .fold(shown.to_owned(), |target, (id, shown)| {
                target.replace(shown, id)
            })
    }
}

/// What differs from run to run, as one run might have it.
fn steady(value: &mut Value, key: &str, seen: &Seen) {
    match value {
        Value::String(text) if matches!(key, "digest" | "definition") => {
            *text = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into();
        }
        Value::String(text) if key == "call_id" => {
            *text = "5a1c9f3e-8b7d-4c60-a2e4-f6071829304b".into();
        }
        Value::String(text) => {
            let words = text
                .split([' ', '(', ')', ',', ';', '"'])
                .map(str::to_owned)
                .collect::<Vec<_>>();
            for time in words
                .iter()
                .filter(|word| word.parse::<jiff::Timestamp>().is_ok())
            {
                *text = text.replace(time, "2026-03-01T09:30:00Z");
            }
            for (port, shown) in &seen.ports {
                *text = text.replace(&format!(":{port}"), &format!(":{shown}"));
            }
            for (id, shown) in &seen.ids {
                *text = text.replace(id, shown);
            }
        }
        Value::Number(_) => match key {
            "latency_ms" | "execution_time_ms" => *value = json!(3),
            "age" => *value = json!(12),
            "tasks" => *value = json!(24),
            _ => {}
        },
        Value::Array(items) if key == "via" => {
            *items = vec![json!("5f2b1d0c-8a34-4c0e-9d55-0b1f6a7c2e11")];
        }
        Value::Array(items) => items.iter_mut().for_each(|item| steady(item, "", seen)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(key, value)| steady(value, key, seen)),
        _ => {}
    }
}

/// Whether `part` is what the beginning of each list, some members of each object and some lines of
/// each text of `whole` say.
fn is_cut_from(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|all| is_cut_from(value, all))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len()
                && part
                    .iter()
                    .zip(whole)
                    .all(|(part, whole)| is_cut_from(part, whole))
        }
        (Value::String(part), Value::String(whole)) => {
            part.lines().all(|line| whole.lines().any(|l| l == line))
        }
        _ => part == whole,
    }
}

#[tokio::test]
async fn examples_are_what_a_daemon_answers() {
    let (_home, daemon, files, notes) = described().await;
    let (starting, _listener, _other) = starting().await;
    let (calling, builds, desk, _third) = calling().await;
    let ports = [
        (files.address.port(), 9001),
        (notes.address.port(), 9002),
        (builds.port(), 9003),
        (desk.address.port(), 9004),
    ];
    let mut seen = Seen {
        ports: ports.into(),
        ids: Vec::new(),
    };
    let bless = std::env::var_os("CALLSHEET_BLESS").is_some();
    let mut examples: Vec<Value> = serde_json::from_slice(&std::fs::read(file()).unwrap()).unwrap();
    let mut problems = Vec::new();
    for example in &mut examples {
        let (method, target) = example["request"]
            .as_str()
            .unwrap()
            .split_once(' ')
            .unwrap();
        if example["operation"] == "followEvents" {
            // A stream that does not end; `openapi.rs` looks at what it says.
            continue;
        }
        let server = match (&example["starting"], &example["calling"]) {
            (Value::Bool(true), _) => &starting,
            (_, Value::Bool(true)) => &calling,
            _ => &daemon,
        };
        let target = &seen.target(target);
        let answer = match example.get("body") {
            Some(body) => server.send_json(method, target, body).await,
            None => ask(server.address, method, target, &[], "").await,
        };
        assert_eq!(
            answer.status,
            example["status"],
            "{method} {target}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        let is_text = answer.header("content-type").contains("text");
        let mut body = if is_text {
            json!(String::from_utf8(answer.body).unwrap())
        } else {
            answer.json()
        };
        seen.look(&body);
        steady(&mut body, "", &seen);
        if example["cut"] == true {
            if !is_cut_from(&example["answer"], &body) {
                problems.push(format!(
                    "{method} {target} is not cut from what is answered: {body:#}"
                ));
            }
        } else if bless {
            set(example, "answer", body);
        } else if example["answer"] != body {
            problems.push(format!("{method} {target} is answered with {body:#}"));
        }
    }
    if bless {
        std::fs::write(
            file(),
            serde_json::to_string_pretty(&examples).unwrap() + "\n",
        )
        .unwrap();
    }
    assert!(
        problems.is_empty(),
        "CALLSHEET_BLESS=1 writes the examples anew:\n{}",
        problems.join("\n")
    );
    starting.stop_as_it_may().await;
    calling.stop().await;
    daemon.stop().await;
}

/// A daemon whose scenario and module run their tools; nothing is asked for again by itself.
async fn calling() -> (Daemon, Callee, Module, Home) {
    let on = |metadata: Value| {
        let mut all = json!({"enabled_by_default": true});
        all.as_object_mut()
            .unwrap()
            .extend(metadata.as_object().unwrap().clone());
        all
    };
    let takes = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let followed = json!({
        "status_polling": {"status_tool": "get_run", "operation_id_field": "run.id", "status_tool_id_param": "run_id",
            "poll_interval_seconds": 600},
        "completion_conditions": {"status_field": "status", "success_values": ["done"], "failure_values": ["failed"]},
    });
    let tools = [
        callee::tool_with("read_log", &takes("build"), &on(json!({}))),
        callee::tool_with(
            "deploy",
            &takes("build"),
            &on(json!({"requires_approval": true})),
        ),
        callee::tool_with(
            "build",
            &takes("branch"),
            &on(json!({"long_running": true, "async_behavior": followed})),
        ),
        callee::tool_with("get_run", &takes("run_id"), &on(json!({}))),
    ];
    let run = |ran: Ran| async move {
        match ran.tool.as_str() {
            "build" => {
                let goes_on = json!({"success": true, "is_async": true, "run_id": "r-1", "status": "queued", "result": {"run": {"id": "r-1"}}});
                callee::answer(202, &goes_on)
            }
            _ => done(&json!({"lines": ["tests passed"]})),
        }
    };
    let builds = Callee::start(callee::manifest("builds", &tools), run).await;
    let desk = Module::start("desk", &[crate::support::module::tool("desk.book", "user")]).await;
    let home = Home::new();
    let mut config = home.config(&[]);
    // The second has no server, so that there is one to forget.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    config.scenarios = vec![
        configured("builds", ([127, 0, 0, 1], builds.port()).into()),
        configured("attic", nobody),
    ];
    config.health.failures = 1;
    desk.configure(&mut config);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.calls.poll_min = NEVER;
    config.calls.poll_max = NEVER;
    (Daemon::ready(config).await, builds, desk, home)
}

/// A daemon that still awaits its scenario, which never answers.
async fn starting() -> (Daemon, TcpListener, crate::support::daemon::Home) {
    let home = crate::support::daemon::Home::new();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = home.config(&[]);
    config.scenarios = vec![crate::support::daemon::configured(
        "files",
        silent.local_addr().unwrap(),
    )];
    config.server.ready_timeout = NEVER;
    (Daemon::start(config).await, silent, home)
}
