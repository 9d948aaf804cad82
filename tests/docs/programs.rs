//! The example programs in `docs/examples/`: each lets a scripted LLM call a tool of a real daemon.
//! A test is skipped, with a message, where its interpreter is not installed.

use std::process::Command;

use serde_json::{Value, json};

use crate::llm::{Llm, calls, says};
use crate::markdown::{Document, documents, root};
use crate::support::command::{Home, Running, is_installed};

const QUESTION: &str = "Note two lemons";

#[test]
fn the_python_agent_calls_tools_and_prints_the_answer() {
    if is_installed("python3") {
        let program = root().join("docs/examples/agent.py");
        assert_agent_works("python3", program.to_str().unwrap());
    }
}

#[test]
fn the_typescript_agent_calls_tools_and_prints_the_answer() {
    if is_installed("node") {
        let home = Home::new();
        let program = home.write("agent.mjs", &without_types(&example("agent.ts")));
        assert_agent_works("node", program.to_str().unwrap());
    }
}

/// What documents show of an example program is a part of it.
#[test]
fn excerpts_in_documents_are_of_the_example_programs() {
    let mut count = 0;
    for block in documents()
        .iter()
        .filter(|document| document.path != "docs/modules.md")
        .flat_map(Document::blocks)
    {
        let program = match block.language.as_str() {
            "python" => example("agent.py"),
            "ts" => example("agent.ts"),
            _ => continue,
        };
        assert!(
            program.contains(&block.text),
            "{}: not in the example program",
            block.location
        );
        count += 1;
    }
    assert!(count > 0, "no document shows an example program");
}

fn example(file: &str) -> String {
    std::fs::read_to_string(root().join("docs/examples").join(file)).unwrap()
}

/// TypeScript as JavaScript, for a Node that cannot strip types itself. The programs have these
/// annotations and no others.
pub(crate) fn without_types(program: &str) -> String {
    program
        .replace(": any[]", "")
        .replace(": any", "")
        .replace(": string", "")
}

/// Runs an agent whose model calls a tool wrongly, then rightly, then tools of two other scenarios,
/// and ends.
fn assert_agent_works(interpreter: &str, program: &str) {
    let home = Home::new();
    let demo = Running::start(
        home.command(&["demo", "--turn", "3600"]),
        "callsheet listens on ",
    );
    demo.line(|line| line.starts_with("following changes"));
    let right = json!({"text": "two lemons"});
    let llm = Llm::start(vec![
        calls("a", "add_note", &json!({})),
        calls("b", "add_note", &right),
        calls("c", "mail__search", &json!({"words": "lunch"})),
        calls("d", "get_forecast", &json!({"place": "Oslo"})),
        says("Noted."),
    ]);
    let mut agent = Command::new(interpreter);
    agent.args([program, QUESTION]).current_dir(home.path(""));
    let environment = [
        ("CALLSHEET_URL", &demo.url),
        ("OPENAI_BASE_URL", &llm.url),
        ("OPENAI_MODEL", &"any".to_owned()),
    ];
    for proxy in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "all_proxy",
        "ALL_PROXY",
    ] {
        agent.env_remove(proxy);
    }
    let output = agent.envs(environment).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Noted.\n",
        "{errors}"
    );

    let requests = llm.requests();
    assert_eq!(
        requests[0]["messages"],
        json!([{"role": "user", "content": QUESTION}])
    );
    let offered: Vec<&Value> = requests[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert!(offered.contains(&&json!("add_note")), "{offered:?}");
    let refused = tool_answer(&requests[1], "a");
    assert!(
        refused.contains("do not fit the parameters of `add_note`"),
        "the model is told what is wrong: {refused}"
    );
    let answered = tool_answer(&requests[2], "b");
    assert!(!answered.starts_with("Error"), "{answered}");
    let found = tool_answer(&requests[3], "c");
    assert!(
        found.contains("At noon"),
        "a tool of the second scenario: {found}"
    );
    let forecast = tool_answer(&requests[4], "d");
    assert!(
        forecast.contains("\"Oslo\""),
        "a tool of the third scenario: {forecast}"
    );
    let found = home
        .run(&[
            "call",
            "--url",
            &demo.url,
            "notes/search",
            "--words",
            "lemons",
        ])
        .ok();
    assert!(found.contains("two lemons"), "the tool was run: {found}");
}

/// What callsheet answered to the call with this identifier, from the last message of a chat
/// request.
#[track_caller]
fn tool_answer(request: &Value, id: &str) -> String {
    let message = request["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(message["role"], "tool", "{request}");
    assert_eq!(message["tool_call_id"], json!(id), "{request}");
    message["content"].as_str().unwrap().to_owned()
}
