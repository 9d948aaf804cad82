//! Turns whose calls go on as operations that another call makes needless.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, Ran, answer, done, manifest, tool, tool_with};
use crate::support::house::House;
use crate::support::serving::ask;

const JSON: (&str, &str) = ("content-type", "application/json");

/// Tools that go on after their answer: one that can be cancelled, one that cannot, and one that
/// answers only once `late` is opened. `wait` answers once `open` is.
struct Stage {
    callee: Callee,
    house: House,
    address: SocketAddr,
    open: watch::Sender<bool>,
    late: watch::Sender<bool>,
}

async fn stage() -> Stage {
    let mut behaviour = json!({
        "status_polling": {"status_tool": "get_run", "operation_id_field": "run", "status_tool_id_param": "run",
            "poll_interval_seconds": 0.02},
        "completion_conditions": {"status_field": "status", "success_values": ["done"]},
        "cancellation": {"cancel_tool": "stop_run", "cancel_tool_id_param": "run"},
    });
    let any = json!({"type": "object", "properties": {}});
    let takes =
        json!({"type": "object", "properties": {"run": {"type": "string"}}, "required": ["run"]});
    let on = json!({"enabled_by_default": true});
    let start = |behaviour: &Value| json!({"enabled_by_default": true, "idempotent": true, "long_running": true, "async_behavior": behaviour});
    let can_stop = start(&behaviour);
    behaviour.as_object_mut().unwrap().remove("cancellation");
    let tools = [
        tool_with("start", &any, &can_stop),
        tool_with("start_late", &any, &can_stop),
        tool_with("start_for_good", &any, &start(&behaviour)),
        tool_with(
            "wait",
            &any,
            &json!({"enabled_by_default": true, "idempotent": true}),
        ),
        tool_with("get_run", &takes, &on),
        tool_with("stop_run", &takes, &on),
        tool("other"),
    ];
    let open = watch::Sender::new(false);
    let late = watch::Sender::new(false);
    let gates = (open.clone(), late.clone());
    let callee = Callee::start(manifest("builds", &tools), move |ran: Ran| {
        let mut open = gates.0.subscribe();
        let mut late = gates.1.subscribe();
        async move {
            let gate = match ran.tool.as_str() {
                "wait" => Some(&mut open),
                "start_late" => Some(&mut late),
                _ => None,
            };
            if let Some(gate) = gate {
                let _ = gate.wait_for(|open| *open).await;
            }
            match ran.tool.as_str() {
                "get_run" => done(&json!({"status": "running"})),
                "wait" | "stop_run" => done(&json!("well")),
                begun => answer(
                    202,
                    &json!({"success": true, "is_async": true, "result": {"run": format!("run of {begun}")}}),
                ),
            }
        }
    })
    .await;
    let house = House::with(&[("builds", callee.url())], |config| {
        config.calls.poll_min = Duration::from_millis(5);
    })
    .await;
    let address = house.serve().await;
    Stage {
        callee,
        house,
        address,
        open,
        late,
    }
}

impl Stage {
    async fn turn(&self, mode: &str, names: &[&str]) -> Value {
        let calls: Vec<Value> = names.iter().map(|name| json!({"_tool": name})).collect();
        let body = json!({"response": {"calls": calls}, "mode": mode}).to_string();
        let answer = ask(
            self.address,
            "POST",
            "/api/v1/turns?format=calls",
            &[JSON],
            &body,
        )
        .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    fn ran(&self, tool: &str) -> Vec<Value> {
        self.callee
            .ran()
            .into_iter()
            .filter(|ran| ran.tool == tool)
            .map(|ran| ran.arguments)
            .collect()
    }

    /// Waits until this tool ran so often.
    async fn until_ran(&self, tool: &str, times: usize) {
        let waiting = async {
            while self.ran(tool).len() < times {
                self.callee.until_ran(self.callee.ran().len() + 1).await;
            }
        };
        let reached = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        assert!(
            reached,
            "{tool} ran {} times, not {times}",
            self.ran(tool).len()
        );
    }

    async fn operations(&self) -> Vec<Value> {
        let list = ask(self.address, "GET", "/api/v1/operations", &[], "")
            .await
            .json();
        list["operations"].as_array().unwrap().clone()
    }
}

fn statuses(turn: &Value) -> Vec<&str> {
    turn["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn an_operation_that_is_not_needed_any_more_is_cancelled_by_its_own_tool() {
    for mode in ["any", "race"] {
        let stage = stage().await;
        let decided = async {
            // It is followed, so it goes on as an operation.
            stage.until_ran("get_run", 1).await;
            stage.open.send_replace(true);
        };
        let (answered, ()) = tokio::join!(stage.turn(mode, &["start", "wait"]), decided);
        assert_eq!(statuses(&answered), ["not_needed", "result"], "{answered}");
        let said = answered["calls"][0]["error"].as_str().unwrap();
        assert!(said.contains("this one was cancelled"), "{said}");
        assert_eq!(stage.ran("stop_run"), [json!({"run": "run of start"})]);
        let operations = stage.operations().await;
        assert_eq!(operations.len(), 1);
        assert_eq!(operations[0]["state"], "cancelled", "{operations:?}");
        stage.house.finish().await;
    }
}

#[tokio::test]
async fn an_operation_that_begins_after_another_call_was_enough_is_cancelled_too() {
    let stage = stage().await;
    stage.open.send_replace(true);
    let answered = stage.turn("any", &["start_late", "wait"]).await;
    assert_eq!(statuses(&answered), ["not_needed", "result"], "{answered}");
    assert_eq!(stage.ran("stop_run").len(), 0, "it answers later");
    stage.late.send_replace(true);
    stage.until_ran("stop_run", 1).await;
    assert_eq!(stage.ran("stop_run"), [json!({"run": "run of start_late"})]);
    let id = answered["turn_id"].as_str().unwrap();
    let later = ask(
        stage.address,
        "GET",
        &format!("/api/v1/turns/{id}"),
        &[],
        "",
    )
    .await
    .json();
    assert_eq!(later, answered, "what was handed out does not change");
    stage.house.finish().await;
}

#[tokio::test]
async fn an_operation_without_a_tool_that_cancels_it_runs_on_and_says_so() {
    let stage = stage().await;
    let decided = async {
        stage.until_ran("get_run", 1).await;
        stage.open.send_replace(true);
    };
    let (answered, ()) = tokio::join!(stage.turn("any", &["start_for_good", "wait"]), decided);
    assert_eq!(statuses(&answered), ["not_needed", "result"], "{answered}");
    let said = answered["calls"][0]["error"].as_str().unwrap();
    assert!(said.ends_with("Its tool may have done its work."), "{said}");
    let operations = stage.operations().await;
    assert_eq!(operations[0]["state"], "abandoned", "{operations:?}");
    let note = operations[0]["note"].as_str().unwrap();
    assert!(
        note.contains("its tool declares no way to cancel it"),
        "{note}"
    );
    stage.house.finish().await;
}
