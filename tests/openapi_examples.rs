//! The examples of the API's description are what a daemon really answers. With `CALLSHEET_BLESS=1` they are written anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

mod support {
    pub(crate) mod api;
    pub(crate) mod daemon;
    pub(crate) mod serving;
}

use std::path::PathBuf;

use serde_json::{Value, json};
use support::api::{described, set};
use support::daemon::{Daemon, NEVER};
use support::serving::ask;
use tokio::net::TcpListener;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/server/api/examples.json")
}

/// What differs from run to run, as one run might have it.
fn steady(value: &mut Value, key: &str, ports: &[(u16, u16)]) {
    match value {
        Value::String(text) => {
            let words = text.split([' ', '(', ')', ',', ';', '"']).map(str::to_owned).collect::<Vec<_>>();
            for time in words.iter().filter(|word| word.parse::<jiff::Timestamp>().is_ok()) {
                *text = text.replace(time, "2026-03-01T09:30:00Z");
            }
            for (port, shown) in ports {
                *text = text.replace(&format!(":{port}"), &format!(":{shown}"));
            }
        }
        Value::Number(_) => match key {
            "latency_ms" => *value = json!(3),
            "age" => *value = json!(12),
            "tasks" => *value = json!(24),
            _ => {}
        },
        Value::Array(items) if key == "via" => *items = vec![json!("5f2b1d0c-8a34-4c0e-9d55-0b1f6a7c2e11")],
        Value::Array(items) => items.iter_mut().for_each(|item| steady(item, "", ports)),
        Value::Object(members) => members.iter_mut().for_each(|(key, value)| steady(value, key, ports)),
        _ => {}
    }
}

/// Whether `part` is what the beginning of each list, some members of each object and some lines of each text of `whole` say.
fn is_cut_from(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|all| is_cut_from(value, all)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(part, whole)| is_cut_from(part, whole))
        }
        (Value::String(part), Value::String(whole)) => part.lines().all(|line| whole.lines().any(|l| l == line)),
        _ => part == whole,
    }
}

#[tokio::test]
async fn examples_are_what_a_daemon_answers() {
    let (_home, daemon, files, notes) = described().await;
    let (starting, _listener, _other) = starting().await;
    let ports = [(files.address.port(), 9001), (notes.address.port(), 9002)];
    let bless = std::env::var_os("CALLSHEET_BLESS").is_some();
    let mut examples: Vec<Value> = serde_json::from_slice(&std::fs::read(file()).unwrap()).unwrap();
    let mut problems = Vec::new();
    for example in &mut examples {
        let (method, target) = example["ask"].as_str().unwrap().split_once(' ').unwrap();
        if example["operation"] == "followEvents" {
            // A stream that does not end; `tests/openapi.rs` looks at what it says.
            continue;
        }
        let asked = if example["starting"] == true { &starting } else { &daemon };
        let answer = match example.get("body") {
            Some(body) => asked.send_json(method, target, body).await,
            None => ask(asked.address, method, target, &[], "").await,
        };
        assert_eq!(answer.status, example["status"], "{method} {target}: {}", String::from_utf8_lossy(&answer.body));
        let is_text = answer.header("content-type").contains("text");
        let mut told = if is_text { json!(String::from_utf8(answer.body).unwrap()) } else { answer.json() };
        steady(&mut told, "", &ports);
        if example["cut"] == true {
            if !is_cut_from(&example["answer"], &told) {
                problems.push(format!("{method} {target} is not cut from what is answered: {told:#}"));
            }
        } else if bless {
            set(example, "answer", told);
        } else if example["answer"] != told {
            problems.push(format!("{method} {target} is answered with {told:#}"));
        }
    }
    if bless {
        std::fs::write(file(), serde_json::to_string_pretty(&examples).unwrap() + "\n").unwrap();
    }
    assert!(problems.is_empty(), "CALLSHEET_BLESS=1 writes the examples anew:\n{}", problems.join("\n"));
    starting.stop_as_it_may().await;
    daemon.stop().await;
}

/// A daemon that still awaits its scenario, which never answers.
async fn starting() -> (Daemon, TcpListener, support::daemon::Home) {
    let home = support::daemon::Home::new();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = home.config(&[]);
    config.scenarios = vec![support::daemon::configured("files", silent.local_addr().unwrap())];
    config.server.ready_timeout = NEVER;
    (Daemon::start(config).await, silent, home)
}
