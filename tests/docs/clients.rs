//! The clients in `clients/`: each runs the calls of a response against a real daemon, waits for a
//! person, and gets a list again only when it has changed. A test is skipped, with a message, where
//! its interpreter is not installed.

use std::process::Command;

use serde_json::{Value, json};

use crate::markdown::root;
use crate::programs::without_types;
use crate::support::command::is_installed;
use crate::support::command::{Home, Running, json as parsed};

/// The demo's tool that needs a person's approval is told from the others by its answer.
const PYTHON: &str = r#"
import json, sys, urllib.request
from callsheet import Callsheet, Refused

sheet = Callsheet("anthropic", url=sys.argv[1], own_tools=["mine"])
tools = sheet.tools()
assert sheet.tools() is tools, "an unchanged list is not transferred again"

def approve(turn):
    for call in turn["calls"]:
        if call["status"] == "waiting_for_approval":
            url = f"{sys.argv[1]}/api/v1/approvals/{call['approval_id']}/approve"
            headers = {"Content-Type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(url, b"{}", headers)).read()

turn = sheet.run(json.loads(sys.argv[2]), on_wait=approve, wait=0)
try:
    sheet.run({"choices": []})
except Refused as refused:
    looks_like = refused.problem["looks_like"]
result = sheet.result(turn.calls[0])
print(json.dumps({"messages": turn.messages, "calls": turn.calls, "own": turn.own, "like": looks_like, "result": result}))
"#;

const NODE: &str = r#"
import { Callsheet, Refused } from "./callsheet.mjs";

const [, , url, response] = process.argv;
const sheet = new Callsheet("anthropic", { url, ownTools: ["mine"] });
const tools = await sheet.tools();
if ((await sheet.tools()) !== tools) throw new Error("an unchanged list is not transferred again");

const approve = async (turn) => {
  for (const call of turn.calls.filter((call) => call.status === "waiting_for_approval")) {
    const headers = { "Content-Type": "application/json" };
    await fetch(`${url}/api/v1/approvals/${call.approval_id}/approve`, { method: "POST", headers, body: "{}" });
  }
};
const turn = await sheet.run(JSON.parse(response), { wait: 0 }, approve);
const like = await sheet.run({ choices: [] }).catch((refused) => refused instanceof Refused && refused.problem.looks_like);
console.log(JSON.stringify({ ...turn, like, result: await sheet.result(turn.calls[0]) }));
"#;

#[test]
fn the_python_client_runs_a_turn() {
    if is_installed("python3") {
        let home = Home::new();
        home.write("callsheet.py", &client("python/callsheet.py"));
        let program = home.write("agent.py", PYTHON);
        assert_client_works(&home, "python3", program.to_str().unwrap());
    }
}

#[test]
fn the_typescript_client_runs_a_turn() {
    if is_installed("node") {
        let home = Home::new();
        home.write(
            "callsheet.mjs",
            &without_types(&client("typescript/callsheet.ts")),
        );
        let program = home.write("agent.mjs", NODE);
        assert_client_works(&home, "node", program.to_str().unwrap());
    }
}

fn client(file: &str) -> String {
    std::fs::read_to_string(root().join("clients").join(file)).unwrap()
}

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn assert_client_works(home: &Home, interpreter: &str, program: &str) {
    let demo = Running::start(
        home.command(&["demo", "--turn", "3600"]),
        "callsheet listens on ",
    );
    demo.line(|line| line.starts_with("following changes"));
    let note = call("a", "add_note", &json!({"text": "seven limes"}));
    let mail = call(
        "b",
        "send_mail",
        &json!({"to": "ada@example.org", "body": "Lunch?"}),
    );
    let response =
        json!({"role": "assistant", "content": [note, mail, call("c", "mine", &json!({}))]});
    let mut run = Command::new(interpreter);
    run.args([program, &demo.url, &response.to_string()])
        .current_dir(home.path(""));
    for proxy in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "all_proxy",
        "ALL_PROXY",
    ] {
        run.env_remove(proxy);
    }
    let output = run.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let turn = parsed(&String::from_utf8(output.stdout).unwrap());
    let statuses: Vec<&Value> = turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["status"])
        .collect();
    assert_eq!(statuses, ["result", "result", "not_ours"], "{turn}");
    let results = turn["messages"][0]["content"].as_array().unwrap();
    let ids: Vec<&Value> = results
        .iter()
        .map(|result| &result["tool_use_id"])
        .collect();
    assert_eq!(ids, ["a", "b"], "{turn}");
    assert_eq!(turn["own"][0]["name"], "mine");
    assert_eq!(turn["like"], "openai");
    assert_eq!(turn["result"]["status"], "result");
    let found = home
        .run(&[
            "call",
            "--url",
            &demo.url,
            "notes/search",
            "--words",
            "limes",
        ])
        .ok();
    assert!(found.contains("seven limes"), "the tool was run: {found}");
}
