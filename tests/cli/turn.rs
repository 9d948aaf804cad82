//! `callsheet turn`: a model's response on standard input, the messages on standard output.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::support::command::{Home, Ran, Running};

/// Runs the command with this response on standard input.
fn turn(home: &Home, args: &[&str], response: &str) -> Ran {
    let mut command = home.command(&[&["turn"], args].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(response.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_response_comes_to_messages_and_says_what_became_of_its_calls() {
    let home = Home::new();
    let demo = Running::start(home.command(&["demo", "--turn", "3600"]), "callsheet listens on ");
    demo.line(|line| line.starts_with("following changes"));
    let call = |id: &str, name: &str, input| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let note = call("a", "add_note", json!({"text": "seven limes"}));
    let response = json!({"role": "assistant", "content": [note, call("b", "add_note", json!({}))]}).to_string();
    let at = ["--format", "anthropic", "--url", &demo.url];
    let ran = turn(&home, &[&at[..], &["--turn-id", "turn-of-a-script"]].concat(), &response);
    let messages: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(messages[0]["content"][0]["tool_use_id"], "a");
    assert_eq!(messages[0]["content"][1]["is_error"], true);
    assert!(ran.err.contains("add_note: result") && ran.err.contains("add_note: refused: The arguments"), "{ran:?}");
    let again = turn(&home, &[&at[..], &["--turn-id", "turn-of-a-script"]].concat(), &response);
    assert_eq!(again.out, ran.out);
    let found = home.run(&["call", "--url", &demo.url, "notes/search", "--words", "limes"]).ok();
    assert_eq!(found.matches("seven limes").count(), 1, "it was run once: {found}");

    // Adding a note twice adds two of them, so such calls do not compete.
    let error = turn(&home, &[&at[..], &["--mode", "any"]].concat(), &response).failed(1);
    assert!(error.contains("these are not declared so: `notes/add_note`\n"), "{error}");
    turn(&home, &[&at[..], &["--mode", "first"]].concat(), &response).failed(2);

    let whole = turn(&home, &[&at[..], &["--json"]].concat(), &response);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&whole.out).unwrap()["status"], "complete");
    let mail = call("c", "send_mail", json!({"to": "ada@example.org", "body": "Lunch?"}));
    let mail = json!({"role": "assistant", "content": [mail]}).to_string();
    let ran = turn(&home, &at, &mail);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.err.contains("send_mail: waiting for approval") && ran.err.contains("--turn-id"), "{ran:?}");
    assert!(ran.err.contains("`callsheet turn --wait SECONDS --turn-id "), "{ran:?}");
    let ran = turn(&home, &[&at[..], &["--tell-approvals"]].concat(), &mail);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("waits for the approval of a person"), "{ran:?}");
}

#[test]
fn what_is_no_response_is_refused_with_the_next_step() {
    let home = Home::new();
    let demo = Running::start(home.command(&["demo", "--turn", "3600"]), "callsheet listens on ");
    let at = ["--format", "anthropic", "--url", &demo.url];
    let error = turn(&home, &at, "event: message_start\ndata: {}\n\n").failed(1);
    assert!(error.contains("join it first"), "{error}");
    let error = turn(&home, &at, r#"{"choices": []}"#).failed(1);
    assert!(error.contains("\n  hint: name it by `--format openai`\n"), "{error}");
    let error = turn(&home, &at, "{}").failed(1);
    assert!(
        error.contains("\n  hint: send the vendor's whole response, or the assistant's message in it\n"),
        "{error}"
    );
    for broken in ["", "{"] {
        let error = turn(&home, &at, broken).failed(2);
        assert!(error.contains("is not JSON") && error.contains("< response.json"), "{error}");
    }
    turn(&home, &["--format", "native"], "{}").failed(2);
}
