//! What wakes a program besides calls of its tools, and what a client sees meanwhile.

use std::fs;

use callsheet::model::ScenarioState;
use serde_json::{Value, json};

use crate::sleeping::{Program, place, sleepy, until_ended};
use crate::support::callee::PATIENCE;
use crate::support::house::{House, scenario};
use crate::support::mcp_client::McpClient;

/// A house with this program asleep, and a client of its MCP server.
async fn asleep(program: &Program) -> (House, McpClient) {
    let house = House::with(&[], sleepy).await;
    place(&house, "child", program.behaving("offering"));
    until_asleep(&house, program).await;
    let address = house.serve().await;
    (house, McpClient::modern(address, json!({})))
}

async fn until_asleep(house: &House, program: &Program) {
    house.until_state("child", ScenarioState::Asleep).await;
    until_ended(program).await;
}

#[tokio::test]
async fn requests_for_prompts_and_resources_wake_a_program() {
    let program = Program::offering("pid");
    let (house, client) = asleep(&program).await;
    for (number, (method, params, expected)) in [
        (
            "prompts/get",
            json!({"name": "child__greet", "arguments": {"who": "Ada"}}),
            "Hello",
        ),
        ("resources/read", json!({"uri": "test://a"}), "Content"),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "child__greet"},
                "argument": {"name": "who", "value": "A"}}),
            "Ada",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        until_asleep(&house, &program).await;
        assert_eq!(program.starts().len(), number + 1, "{method}");
        let listed = client.result("prompts/list", json!({})).await;
        assert_eq!(
            listed["prompts"][0]["name"], "child__greet",
            "listed as ever"
        );
        assert_eq!(program.starts().len(), number + 1, "a list wakes none");
        let answer = client.result(method, params).await;
        assert!(answer.to_string().contains(expected), "{method}: {answer}");
        assert_eq!(program.starts().len(), number + 2, "{method}");
    }
    house.finish().await;
}

/// Lets another program fall asleep a few times, each of which takes as long as one that is not
/// used.
async fn let_another_sleep(house: &House, other: &Program) {
    for _ in 0..3 {
        house.call("other__pid", &json!({})).await.unwrap();
        house.until_state("other", ScenarioState::Asleep).await;
        until_ended(other).await;
    }
}

#[tokio::test]
async fn a_program_does_not_sleep_while_a_client_follows_its_resources() {
    let program = Program::offering("pid");
    let other = Program::offering("pid");
    let (house, client) = asleep(&program).await;
    place(&house, "other", other.behaving("legacy"));
    house.until_state("other", ScenarioState::Asleep).await;
    let wanted = json!({"notifications": {"resourceSubscriptions": ["test://a"]}});
    let mut following = client
        .follow(&json!("F"), "subscriptions/listen", wanted)
        .await;
    following.next().await.expect("acknowledged");
    let updated = following
        .next()
        .await
        .expect("the update that it was woken for");
    assert_eq!(updated["method"], "notifications/resources/updated");
    let starts = program.starts().len();
    assert_eq!(starts, 2, "the subscription woke it");
    let_another_sleep(&house, &other).await;
    assert_eq!(house.health("child").state, ScenarioState::Live);
    drop(following);
    until_asleep(&house, &program).await;
    assert_eq!(
        program.starts().len(),
        starts,
        "and it was not started anew"
    );
    house.finish().await;
}

/// A call of this tool whose progress is followed.
fn call(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}})
}

#[tokio::test]
async fn a_client_sees_that_a_program_wakes_and_may_cancel_meanwhile() {
    let program = Program::offering("note pid");
    let (house, client) = asleep(&program).await;
    fs::write(program.path("late"), "").unwrap();
    let mut cancelled = client
        .follow(&json!("C"), "tools/call", call("child__note"))
        .await;
    let progress = cancelled.next().await.expect("a progress");
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(
        progress["params"]["message"], "starting the program of `child`",
        "{progress}"
    );
    // A client of this era cancels by closing the stream of its answer.
    drop(cancelled);
    let is_over = async {
        while house.app.calls().under_way(&scenario("child")) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, is_over)
        .await
        .expect("the cancelled call is over before its program has woken");
    fs::remove_file(program.path("late")).unwrap();
    until_asleep(&house, &program).await;
    assert!(!program.path("noted").exists(), "it was not sent");

    let mut called = client
        .follow(&json!("D"), "tools/call", call("child__note"))
        .await;
    let mut last = Value::Null;
    while let Some(message) = called.next().await {
        last = message;
    }
    assert!(
        last["error"].is_null() && last["result"]["isError"] != true,
        "{last}"
    );
    assert_eq!(fs::read_to_string(program.path("noted")).unwrap(), "x");
    house.finish().await;
}
