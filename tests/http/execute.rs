//! `POST /api/v1/tools/execute`: each answer and each refusal with its status, over HTTP.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::callee::{Callee, answer, done, manifest, text, tool, tool_with};
use crate::support::house::{House, switched};
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

async fn execute(address: SocketAddr, body: &Value) -> Answer {
    execute_text(address, &body.to_string()).await
}

async fn execute_text(address: SocketAddr, body: &str) -> Answer {
    ask(address, "POST", "/api/v1/tools/execute", &[JSON], body).await
}

/// One that does what its arguments say.
async fn obedient() -> Callee {
    let strict =
        json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let on = json!({"enabled_by_default": true});
    let limited = json!({"enabled_by_default": true, "rate_limit_per_minute": 1});
    let any = json!({"type": "object", "properties": {}});
    let needs = json!({"enabled_by_default": true, "requires_approval": true});
    let tools = [
        tool("say"),
        tool_with("strict", &strict, &on),
        tool_with("seldom", &any, &limited),
        tool_with("wipe", &any, &needs),
    ];
    Callee::start(manifest("files", &tools), |ran| async move {
        let status = ran.arguments["status"].as_u64().unwrap_or(200);
        match &ran.arguments["body"] {
            Value::Null => done(&ran.arguments),
            Value::String(body) => text(u16::try_from(status).unwrap(), body.clone()),
            body => answer(u16::try_from(status).unwrap(), body),
        }
    })
    .await
}

/// A call that has the scenario answer so.
fn saying(status: u16, body: &Value) -> Value {
    json!({"tool_name": "say", "arguments": {"status": status, "body": body}})
}

#[tokio::test]
async fn an_answer_has_the_keys_of_the_original_and_more() {
    let files = obedient().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    // A number that no type of ours holds comes back as it was written.
    let body = r#"{"tool_name":"say","arguments":{"n":123456789012345678901234567890}}"#;
    let answer = execute_text(address, body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-store");
    let raw = String::from_utf8(answer.body.clone()).unwrap();
    // Ours; the scenario of this test reads numbers into a tree.
    assert!(raw.contains(r#""success":true"#), "{raw}");
    let mut shown = answer.json();
    assert!(shown["execution_time_ms"].is_u64());
    shown["execution_time_ms"] = json!(0);
    shown["result"] = json!(0);
    let call_id = shown["call_id"].clone();
    assert!(
        call_id.as_str().is_some_and(|id| id.len() == 36),
        "{call_id}"
    );
    let expected = json!({
        "success": true, "result": 0, "status": "completed", "execution_time_ms": 0, "scenario": "files",
        "tool_name": "say", "name": "say", "url": files.url().as_str(), "attempts": 1,
        "call_id": call_id,
    });
    assert_eq!(shown, expected);

    // With the keys that the original's clients send.
    let theirs =
        json!({"scenario": "files", "tool_name": "say", "arguments": {"a": 1}, "chat_id": "7"});
    assert_eq!(
        execute(address, &theirs).await.json()["result"],
        json!({"a": 1})
    );
    for arguments in [
        json!({"tool_name": "say"}),
        json!({"tool_name": "say", "arguments": null}),
    ] {
        assert_eq!(
            execute(address, &arguments).await.json()["result"],
            json!({})
        );
    }
    house.finish().await;
}

#[tokio::test]
async fn a_tools_own_failure_is_200_and_what_goes_on_is_202() {
    let files = obedient().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    for (status, code) in [
        (400, "invalid_args"),
        (404, "not_found"),
        (409, "conflict"),
        (500, "unknown_tool"),
    ] {
        let body = json!({"success": false, "error": "it did not work", "code": code});
        let answer = execute(address, &saying(status, &body)).await;
        let shown = answer.json();
        assert_eq!(answer.status, 200);
        assert_eq!(shown["success"], false);
        assert_eq!(shown["code"], json!(code));
        assert_eq!(shown["error"], "it did not work");
        assert_eq!(shown["status"], "failed");
    }
    let body = json!({"success": true, "is_async": true, "run_id": 17, "status": "pending", "result": [1]});
    let answer = execute(address, &saying(202, &body)).await;
    let shown = answer.json();
    assert_eq!(answer.status, 202);
    assert_eq!(shown["is_async"], true);
    assert_eq!(shown["run_id"], "17");
    assert_eq!(shown["status"], "pending");
    assert_eq!(shown["result"], json!([1]));
    house.finish().await;
}

/// The tool would run without them.
#[tokio::test]
async fn arguments_under_another_name_are_refused() {
    let files = obedient().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    for name in ["args", "input", "parameters", "params"] {
        let answer = execute(address, &json!({"tool_name": "say", name: {"a": 1}})).await;
        assert_eq!(answer.status, 400);
        let text = answer.json()["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(
            text,
            format!("`{name}` is no member of a call; name the arguments of the tool `arguments`")
        );
    }
    let both = json!({"tool_name": "say", "arguments": {"a": 1}, "params": 7});
    assert_eq!(
        execute(address, &both).await.json()["result"],
        json!({"a": 1})
    );
    house.finish().await;
}

/// Status, code and whether the tool was run.
async fn refused(address: SocketAddr, body: &Value) -> (u16, String) {
    let answer = execute(address, body).await;
    answer.problem();
    let shown = answer.json();
    assert_eq!(shown["success"], json!(false), "{shown}");
    (answer.status, shown["code"].as_str().unwrap().to_owned())
}

fn expected(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Programs need not look for it in the text.
#[tokio::test]
async fn the_next_step_of_a_refusal_is_the_end_of_its_text_and_a_member() {
    let files = obedient().await;
    let mails = Callee::echo(manifest("mails", &[tool("strict")])).await;
    let house = House::of(&[("files", files.url()), ("mails", mails.url())]).await;
    let address = house.serve().await;
    let call = |body: Value| ("POST", "/api/v1/tools/execute", body.to_string());
    let scope = "use `global`, `profile:<name>` or `chat:<id>`";
    for ((method, target, body), next) in [
        (
            ("GET", "/api/v1/nope", String::new()),
            Some("`GET /` lists all"),
        ),
        (
            ("GET", "/api/v1/tools/sey", String::new()),
            Some("did you mean say?"),
        ),
        (
            ("GET", "/api/v1/tools?q=a&q=b", String::new()),
            Some("give it once"),
        ),
        (("GET", "/api/v1/tools?max_tools=x", String::new()), None),
        (
            ("GET", "/api/v1/preferences?scope=all", String::new()),
            Some(scope),
        ),
        (
            ("DELETE", "/healthz", String::new()),
            Some("`Allow` names what it takes"),
        ),
        (
            call(json!({"tool_name": "strict"})),
            Some("call files/strict or mails/strict"),
        ),
        (
            call(json!({"tool_name": "say", "revision": "0"})),
            Some("fetch the list again, or name the tool as `scenario/tool`"),
        ),
        (
            call(json!({"tool_name": "files/strict", "arguments": {}})),
            None,
        ),
        (call(json!({"tool_name": "say", "call_id": "?"})), None),
    ] {
        let headers = [("content-type", "application/json")];
        let answer = ask(
            address,
            method,
            target,
            if body.is_empty() { &[] } else { &headers },
            &body,
        )
        .await;
        let problem = answer.json();
        assert_eq!(
            problem["next_step"].as_str(),
            next,
            "{target} {body}: {problem}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .ends_with(next.unwrap_or_default()),
            "{problem}"
        );
    }
    house.finish().await;
}

#[tokio::test]
async fn every_refusal_has_its_status_and_its_code() {
    let files = obedient().await;
    let mails = Callee::echo(manifest("mails", &[tool("strict")])).await;
    let house = House::of(&[("files", files.url()), ("mails", mails.url())]).await;
    let address = house.serve().await;
    let call = |name: &str| json!({"tool_name": name, "arguments": {}});

    let answer = execute(address, &call("sey")).await;
    assert!(answer.problem().contains("did you mean say?"), "{answer:?}");
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json()["code"], "unknown_tool");
    let answer = execute(address, &call("strict")).await;
    assert_eq!(answer.status, 409);
    assert_eq!(
        answer.json()["candidates"],
        json!(["files/strict", "mails/strict"])
    );
    let old = json!({"tool_name": "say", "revision": "0123456789abcdef"});
    assert_eq!(
        refused(address, &old).await,
        expected(409, "unknown_revision")
    );

    let answer = execute(
        address,
        &json!({"tool_name": "files/strict", "arguments": {"path": 7}}),
    )
    .await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["code"], "invalid_arguments");
    assert_eq!(answer.json()["violations"][0]["pointer"], "/path");
    assert_eq!(answer.json()["more_violations"], json!(false));
    let answer = execute(address, &call("wipe")).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json()["code"], "approval_required");
    let stranger = json!({"tool_name": "say", "profile": "nobody"});
    assert_eq!(
        refused(address, &stranger).await,
        expected(403, "unknown_profile")
    );
    house
        .prefer("global", "tool:mails/strict", switched(false))
        .await;
    let answer = execute(address, &call("mails/strict")).await;
    assert!(
        answer
            .problem()
            .contains("`tool:mails/strict` switches it on"),
        "{answer:?}"
    );
    assert_eq!(answer.status, 403);

    assert_eq!(execute(address, &call("seldom")).await.status, 200);
    let answer = execute(address, &call("seldom")).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.json()["code"], "rate_limited");
    assert!(
        answer
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|wait| (50..=60).contains(&wait)),
        "{answer:?}"
    );
    house.finish().await;
}

/// Otherwise one bad tool takes away all others of its scenario.
#[tokio::test]
async fn a_tool_that_always_fails_is_refused_alone() {
    let files = obedient().await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.breaker_failures = 2;
        config.calls.breaker_open = std::time::Duration::from_secs(3600);
    })
    .await;
    let address = house.serve().await;
    for _ in 0..2 {
        assert_eq!(
            refused(address, &saying(200, &json!("<html>"))).await,
            expected(502, "bad_answer")
        );
    }
    let answer = execute(address, &json!({"tool_name": "say"})).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["code"], "circuit_open");
    assert!(
        answer
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|wait| wait > 3500),
        "{answer:?}"
    );
    let why = "`files/say` failed 2 times in a row, the last time with `bad_answer`, and is not called for 3600 s; \
               other tools of `files` are";
    assert_eq!(answer.json()["error"], why);
    assert_eq!(files.ran().len(), 2, "left alone");
    let works = execute(
        address,
        &json!({"tool_name": "strict", "arguments": {"path": "/"}}),
    )
    .await;
    assert_eq!(works.status, 200, "{works:?}");

    let health = ask(address, "GET", "/api/v1/scenarios/files", &[], "")
        .await
        .json();
    assert_eq!(health["calls"]["breaker"], "closed", "{health}");
    let own = &health["calls"]["tools"][0];
    assert_eq!(own["tool"], "say", "{health}");
    assert_eq!(own["breaker"], "open");
    assert_eq!(own["failures_in_a_row"], 2);
    assert_eq!(own["last_failure"], "bad_answer");
    let until = own["until"].as_str().unwrap();
    let explained = ask(address, "GET", "/api/v1/tools/say/explain", &[], "")
        .await
        .json();
    let step = explained["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["subject"] == "circuit")
        .unwrap();
    assert_eq!(step["source"], "calls");
    assert!(
        step["outcome"]
            .as_str()
            .unwrap()
            .contains("failed 2 times in a row"),
        "{step}"
    );
    assert!(
        step["outcome"]
            .as_str()
            .unwrap()
            .contains(&until[.."2026-01-01T00:00".len()]),
        "{step}, {until}"
    );
    let explained = ask(address, "GET", "/api/v1/tools/strict/explain", &[], "")
        .await
        .json();
    assert!(!explained.to_string().contains("circuit"), "{explained}");
    let metrics = String::from_utf8(ask(address, "GET", "/metrics", &[], "").await.body).unwrap();
    assert!(
        metrics.contains(r#"callsheet_circuits_open{of="tool"} 1"#),
        "{metrics}"
    );
    house.finish().await;
}

/// They say how the process before was called, and refuse no call of this one.
#[tokio::test]
async fn breakers_of_the_process_before_are_not_shown() {
    let mut files = obedient().await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.reroute_wait = std::time::Duration::ZERO;
        config.calls.breaker_failures = 2;
        config.calls.breaker_open = std::time::Duration::from_secs(3600);
    })
    .await;
    let address = house.serve().await;
    let shown = async || {
        let health = ask(address, "GET", "/api/v1/scenarios/files", &[], "")
            .await
            .json();
        let explained = ask(address, "GET", "/api/v1/tools/say/explain", &[], "")
            .await
            .json();
        let metrics =
            String::from_utf8(ask(address, "GET", "/metrics", &[], "").await.body).unwrap();
        let open = metrics.contains(r#"callsheet_circuits_open{of="scenario"} 1"#);
        (
            health["calls"]["breaker"].clone(),
            explained.to_string().contains("circuit"),
            open,
        )
    };
    files.kill().await;
    for _ in 0..2 {
        assert_eq!(
            refused(address, &json!({"tool_name": "say"})).await,
            expected(503, "unreachable")
        );
    }
    assert_eq!(shown().await, (json!("open"), true, true));
    let before = house.route("files").unwrap().generation;
    let next = obedient().await;
    house.place(
        "files",
        next.url(),
        callsheet::discovery::SourceTrust::Trusted,
    );
    let moved = |_: &callsheet::catalog::Snapshot| {
        house
            .route("files")
            .is_some_and(|now| now.generation != before)
    };
    house.until("it is at another address", moved).await;
    assert_eq!(shown().await, (json!(null), false, false));
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_that_does_not_answer_well_is_told_apart_by_how() {
    let mut files = obedient().await;
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.reroute_wait = std::time::Duration::ZERO;
        config.calls.breaker_failures = 3;
    })
    .await;
    let address = house.serve().await;
    assert_eq!(
        refused(address, &saying(500, &json!("<html>"))).await,
        expected(502, "bad_answer")
    );
    assert_eq!(
        refused(address, &saying(200, &json!("{}"))).await,
        expected(502, "bad_answer")
    );
    files.kill().await;
    let answer = execute(address, &json!({"tool_name": "say"})).await;
    answer.problem();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["sent"], false);
    for _ in 0..2 {
        assert_eq!(
            refused(address, &json!({"tool_name": "say"})).await,
            expected(503, "unreachable")
        );
    }
    let answer = execute(address, &json!({"tool_name": "say"})).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["code"], "circuit_open");
    assert!(
        answer.header("retry-after").parse::<u64>().is_ok(),
        "{answer:?}"
    );

    let health = ask(address, "GET", "/api/v1/scenarios/files", &[], "")
        .await
        .json();
    assert_eq!(health["calls"]["breaker"], json!("open"));
    assert!(
        health["calls"]["failures_in_a_row"]
            .as_u64()
            .is_some_and(|failures| failures == 3),
        "{health}"
    );
    assert_eq!(health["calls"]["last_failure"], "unreachable");
    let all = ask(address, "GET", "/api/v1/scenarios", &[], "")
        .await
        .json();
    assert_eq!(all["scenarios"][0]["calls"]["breaker"], json!("open"));
    let metrics = ask(address, "GET", "/metrics", &[], "").await;
    let metrics = String::from_utf8(metrics.body).unwrap();
    for line in [
        r#"callsheet_calls_total{outcome="bad_answer"} 2"#,
        r#"callsheet_calls_total{outcome="unreachable"} 3"#,
        r#"callsheet_calls_total{outcome="circuit_open"} 1"#,
        r#"callsheet_circuits_open{of="scenario"} 1"#,
        r#"callsheet_circuits_open{of="tool"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
    house.finish().await;
}

#[tokio::test]
async fn what_is_no_call_or_comes_from_a_web_page_is_refused() {
    let files = obedient().await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let members = r#"["say",{"text":"x"},null,null,null,null,null,null,null]"#;
    for body in [
        "",
        "[]",
        "{}",
        r#"{"tool_name":7}"#,
        r#"{"tool_name":"say","arguments":"{"}"#,
        members,
        "5",
    ] {
        let refused = execute_text(address, body).await;
        assert_eq!(refused.status, 400, "{body}");
        let detail = refused.json()["detail"].to_string();
        assert!(!detail.contains("ExecuteBody"), "{detail}");
        assert_eq!(
            detail.contains("must be a JSON object"),
            body.starts_with('[') || body == "5",
            "{body}: {detail}"
        );
    }
    let web = [JSON, ("origin", "http://evil.example")];
    let answer = ask(
        address,
        "POST",
        "/api/v1/tools/execute",
        &web,
        r#"{"tool_name":"say"}"#,
    )
    .await;
    assert_eq!(answer.status, 403, "the guard holds here too");
    let plain = [("content-type", "text/plain")];
    let answer = ask(
        address,
        "POST",
        "/api/v1/tools/execute",
        &plain,
        r#"{"tool_name":"say"}"#,
    )
    .await;
    assert_eq!(answer.status, 415);
    let answer = ask(address, "GET", "/api/v1/tools/execute", &[], "").await;
    assert_ne!(answer.status, 200);
    assert_empty!(files.ran());
    house.finish().await;
}

/// Draft 4 wrote strict bounds as flags, and many generators still do.
#[tokio::test]
async fn flags_of_draft_4_are_checked_and_what_is_not_checked_is_found_when_listed() {
    let on = json!({"enabled_by_default": true});
    let flag = json!({"type": "object", "properties": {"level": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}});
    let ahead =
        json!({"type": "object", "properties": {"level": {"type": "string", "pattern": "^(?!0)"}}});
    let tools = [
        tool_with("flag", &flag, &on),
        tool_with("ahead", &ahead, &on),
        tool_with("behind", &ahead, &on),
    ];
    let kiln = Callee::echo(manifest("kiln", &tools)).await;
    let house = House::of(&[("kiln", kiln.url())]).await;
    let address = house.serve().await;
    for route in [
        "/api/v1/findings?code=schema-unchecked",
        "/api/v1/scenarios/kiln",
    ] {
        let answer = ask(address, "GET", route, &[], "").await.json();
        let findings = answer["findings"].as_array().unwrap().iter();
        let found: Vec<&Value> = findings
            .filter(|finding| finding["code"] == "schema-unchecked")
            .collect();
        assert_eq!(found.len(), 2, "{answer:#}");
        assert_eq!(found[0]["tool"], "ahead", "{answer:#}");
        assert_eq!(found[1]["tool"], "behind", "{answer:#}");
    }
    let call = |level: i64| json!({"tool_name": "flag", "arguments": {"level": level}});
    assert_eq!(execute(address, &call(0)).await.status, 400);
    assert_eq!(execute(address, &call(1)).await.status, 200);
    let unchecked = json!({"tool_name": "ahead", "arguments": {"level": "01"}});
    assert_eq!(execute(address, &unchecked).await.status, 200);
    let answer = ask(
        address,
        "GET",
        "/api/v1/findings?code=schema-unchecked",
        &[],
        "",
    )
    .await
    .json();
    assert_eq!(
        answer["findings"].as_array().unwrap().len(),
        2,
        "a call adds no further one: {answer:#}"
    );
    house.finish().await;
}
