//! How the end of a call is waited for by the library, as faces do: within one limit, and by the id
//! under which the call is known afterwards.

use std::sync::Arc;
use std::time::Duration;

use callsheet::calls::active::ActiveCall;
use callsheet::calls::turns::{self, TurnRequest};
use callsheet::calls::{
    CallEnd, CallId, CallMode, CallerRole, FULL_ACCESS, FailureCode, GoingOn, Request, Requester,
    ToolAnswer, WaitLimits,
};
use callsheet::model::{ApprovalState, JsonText};
use callsheet::protocols::LogLevel;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::operations::{behaviour, runs};
use crate::support::callee::{Callee, PATIENCE, Ran, answer, done, manifest, tool, tool_with};
use crate::support::house::{House, request};

/// Long enough that a call is sent, and short for a test.
const BRIEF: WaitLimits = WaitLimits::within(Duration::from_secs(2));

/// A scenario whose tool `hold` answers once the gate is open, and whose tool `wipe` needs
/// approval.
async fn gated() -> (Callee, watch::Sender<bool>) {
    let (gate, open) = watch::channel(false);
    let any = json!({"type": "object", "properties": {}});
    let risky = json!({"enabled_by_default": true, "requires_approval": true});
    let tools = [tool("hold"), tool_with("wipe", &any, &risky)];
    let callee = Callee::start(manifest("disks", &tools), move |ran: Ran| {
        let mut open = open.clone();
        async move {
            if ran.tool == "hold" || ran.arguments["hold"] == true {
                open.wait_for(|open| *open).await.unwrap();
            }
            done(&json!("done"))
        }
    })
    .await;
    (callee, gate)
}

fn answered(end: Option<CallEnd>) -> ToolAnswer {
    match end {
        Some(CallEnd::Answered(answer)) => answer,
        other => panic!("no answer: {other:?}"),
    }
}

fn is_overdue(end: &CallEnd) -> bool {
    matches!(end, CallEnd::Failed(failure) if failure.code == FailureCode::Timeout && failure.was_sent && !failure.is_refusal())
}

fn attend(house: &House, request: &Request) -> Arc<ActiveCall> {
    house
        .app
        .calls()
        .attend(request, None, LogLevel::Info)
        .unwrap()
}

#[tokio::test]
async fn a_caller_waits_within_one_limit_and_the_tool_goes_on() {
    let (disks, gate) = gated().await;
    let house = House::of(&[("disks", disks.url())]).await;
    let calls = house.app.calls();
    let end = calls
        .settle(request("hold", &json!({})), CallerRole::Absent, BRIEF)
        .await;
    assert!(is_overdue(&end), "{end:?}");
    let CallEnd::Failed(failure) = end else {
        unreachable!()
    };
    assert_eq!(failure.status_number(), 504);
    assert!(
        failure
            .text
            .contains("`hold` did not end while its caller waited"),
        "{}",
        failure.text
    );

    let wanted = request("hold", &json!({}));
    let call = attend(&house, &wanted);
    let end = calls
        .settle(wanted, CallerRole::ById(Arc::clone(&call)), BRIEF)
        .await;
    assert!(is_overdue(&end), "{end:?}");
    let id = CallId::Call(call.id());
    let own = Requester::full_access();
    let early = calls
        .end_by_id(id, &own, BRIEF)
        .await
        .expect("it is under way");
    assert!(is_overdue(&early), "{early:?}");
    disks.until_ran(2).await;
    gate.send_replace(true);
    let answer = answered(calls.end_by_id(id, &own, WaitLimits::NONE).await);
    assert_eq!(answer.result.unwrap().get(), "\"done\"");
    let other = Requester::with_access("without-token");
    assert!(
        calls
            .end_by_id(id, &other, WaitLimits::NONE)
            .await
            .is_none(),
        "it belongs to another access"
    );
    assert!(
        calls
            .end_by_id(CallId::Call("no such call"), &own, BRIEF)
            .await
            .is_none()
    );
    assert_eq!(
        disks.ran().len(),
        2,
        "both went on, and none was sent again"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_call_that_needs_approval_is_found_by_the_id_of_that() {
    let (disks, _gate) = gated().await;
    let house = House::of(&[("disks", disks.url())]).await;
    let calls = house.app.calls();
    let end = calls
        .settle(
            request("wipe", &json!({})),
            CallerRole::Absent,
            WaitLimits::NONE,
        )
        .await;
    let CallEnd::AwaitsApproval(awaited) = end else {
        panic!("{end:?}")
    };
    let id = CallId::Approval(&awaited.request.id);
    let own = Requester::full_access();
    let waits = calls.end_by_id(id, &own, WaitLimits::NONE).await;
    assert!(
        matches!(waits, Some(CallEnd::AwaitsApproval(_))),
        "{waits:?}"
    );
    let (end, approved) = tokio::join!(
        calls.end_by_id(id, &own, WaitLimits::within(Duration::from_secs(60))),
        calls.approve(&awaited.request.id, "kim", WaitLimits::within(PATIENCE))
    );
    approved.unwrap();
    assert_eq!(
        answered(end).approval,
        Some(Arc::clone(&awaited.request.id))
    );
    let other = Requester::with_access("without-token");
    assert!(
        calls
            .end_by_id(id, &other, WaitLimits::NONE)
            .await
            .is_none(),
        "it belongs to another access"
    );
    assert_eq!(disks.ran().len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn the_limits_of_an_approver_say_how_long_it_waits_for_the_answer() {
    let (disks, gate) = gated().await;
    let house = House::of(&[("disks", disks.url())]).await;
    let calls = house.app.calls();
    let end = calls
        .settle(
            request("wipe", &json!({"hold": true})),
            CallerRole::Absent,
            WaitLimits::NONE,
        )
        .await;
    let CallEnd::AwaitsApproval(awaited) = end else {
        panic!("{end:?}")
    };
    let id = &awaited.request.id;
    let approved = tokio::time::timeout(PATIENCE, calls.approve(id, "kim", WaitLimits::NONE))
        .await
        .unwrap();
    assert_eq!(
        approved.unwrap().state,
        ApprovalState::Started,
        "its answer is not waited for"
    );
    disks.until_ran(1).await;
    gate.send_replace(true);
    let own = Requester::full_access();
    let end = calls
        .end_by_id(CallId::Approval(id), &own, WaitLimits::for_work(PATIENCE))
        .await;
    assert_eq!(answered(end).result.unwrap().get(), "\"done\"");
    assert!(
        calls.approve(id, "kim", WaitLimits::NONE).await.is_err(),
        "it is decided once"
    );
    house.finish().await;
}

#[tokio::test]
async fn an_operation_is_found_by_its_id_and_waited_for() {
    let (over, is_over) = watch::channel(false);
    let work = Callee::start(runs("work", &behaviour(), "string"), move |ran: Ran| {
        let status = if *is_over.borrow() { "done" } else { "busy" };
        let state = json!({"status": status, "output": {"rows": 3}});
        async move {
            match ran.tool.as_str() {
                "start" => answer(
                    202,
                    &json!({"success": true, "is_async": true, "run_id": "r", "status": "running", "result": {"run": {"id": "r"}}}),
                ),
                _ => done(&state),
            }
        }
    })
    .await;
    let house = House::of(&[("work", work.url())]).await;
    let calls = house.app.calls();
    let end = calls
        .settle(
            request("start", &json!({})),
            CallerRole::Absent,
            WaitLimits::NONE,
        )
        .await;
    let GoingOn::As(id) = answered(Some(end)).going else {
        panic!("it goes on")
    };
    let own = Requester::full_access();
    let goes_on = answered(
        calls
            .end_by_id(CallId::Operation(&id), &own, WaitLimits::NONE)
            .await,
    );
    assert_eq!(goes_on.going, GoingOn::As(Arc::clone(&id)));
    over.send_replace(true);
    let limits = WaitLimits::for_work(Duration::from_secs(60));
    let ended = answered(calls.end_by_id(CallId::Operation(&id), &own, limits).await);
    let result: Value = serde_json::from_str(ended.result.unwrap().get()).unwrap();
    assert_eq!(result, json!({"rows": 3}));
    assert_eq!(ended.operation.unwrap().state, "succeeded");
    house.finish().await;
}

#[tokio::test]
async fn the_call_of_a_turn_is_found_by_its_id_once_it_is_over() {
    let (disks, gate) = gated().await;
    gate.send_replace(true);
    let house = House::of(&[("disks", disks.url())]).await;
    let calls = house.app.calls();
    let function = json!({"name": "hold", "arguments": "{}"});
    let called = json!([{"id": "c0", "type": "function", "function": function}]);
    let response = json!({"role": "assistant", "content": null, "tool_calls": called}).to_string();
    let format = turns::by_id("openai").unwrap();
    let wanted = TurnRequest {
        format,
        read: turns::read_response(format, &response).unwrap(),
        response: JsonText::parse(&response).unwrap(),
        id: None,
        owner: FULL_ACCESS.into(),
        permission: None,
        profile: None,
        chat: None,
        user_id: None,
        list: None,
        revision: None,
        parallel: None,
        mode: CallMode::All,
        own_tools: None,
        tells_approvals: false,
        text_bytes: None,
    };
    let turn = calls.begin_turn(wanted).await.unwrap();
    calls.wait_for_turn(&turn, std::future::pending()).await;
    let id = format!("{}.0", turn.id);
    let answer = answered(
        calls
            .end_by_id(CallId::Call(&id), &Requester::full_access(), BRIEF)
            .await,
    );
    assert_eq!(answer.result.unwrap().get(), "\"done\"");
    let other = Requester::with_access("without-token");
    assert!(
        calls
            .end_by_id(CallId::Call(&id), &other, BRIEF)
            .await
            .is_none(),
        "it belongs to another access"
    );
    house.finish().await;
}
