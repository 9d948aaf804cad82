//! Health, findings, preferences and the original agent-inbox's reads over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use callsheet::catalog::{Inputs, Visibility};
use callsheet::model::{
    Category, Finding, FindingCode, Health, LastError, PreferenceSet, ScenarioState, Settings,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::offers::{offer, put, scenario, standing, tool};
use crate::support::serving::{Served, health, serve, serve_inputs, snapshot};

/// A live scenario, one that is down and one never asked; some preferences.
async fn served() -> Served {
    let mut inputs = Inputs::default();
    put(
        &mut inputs,
        offer(
            "files",
            &[
                tool("read").category("disk"),
                tool("wipe").risky(),
                tool("secret").internal(),
            ],
        ),
    );
    put(
        &mut inputs,
        standing(
            offer("gone", &[tool("lost").category("disk")]),
            Visibility::Withdrawn("refused".into()),
        ),
    );
    let mut preferences = PreferenceSet::default();
    let mut prefer = |scope: &str, target: &str, settings| {
        preferences.set(scope.parse().unwrap(), target.parse().unwrap(), settings);
    };
    prefer(
        "global",
        "tool:files/read",
        Settings {
            enabled: Some(false),
            ..Settings::default()
        },
    );
    prefer(
        "chat:7",
        "tool:files/wipe",
        Settings {
            approval: "skip".parse().ok(),
            ..Settings::default()
        },
    );
    inputs.preferences = Arc::new(preferences);
    let at = Timestamp::from_second(1_700_000_000).unwrap();
    let live = Health {
        last_attempt: Some(at),
        ..health("files", ScenarioState::Live)
    };
    let error = LastError {
        kind: "refused".into(),
        message: "connection refused".into(),
        at,
    };
    let down = Health {
        last_attempt: Some(at),
        last_error: Some(error),
        failures_in_a_row: 3,
        ..health("gone", ScenarioState::Down)
    };
    let finding = Finding::new(FindingCode::NameMismatch, "calls itself `archive`")
        .of_scenario(&scenario("files"));
    serve(snapshot(
        &inputs,
        vec![live, down, health("new", ScenarioState::Connecting)],
        vec![finding],
    ))
    .await
}

fn texts(list: &Value, member: &str) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item[member].as_str().unwrap_or("-").to_owned())
        .collect()
}

#[tokio::test]
async fn readiness_names_what_is_awaited() {
    let server = serve_inputs(&Inputs::default()).await;
    let live = server.get("/healthz").await.json();
    assert_eq!(live["status"], "ok");
    assert!(live["tasks"].as_u64() > Some(0), "{live}");
    let latch = server.readiness.latch("files");
    let waiting = server.get("/readyz").await;
    assert_eq!(waiting.status, 503);
    assert_eq!(
        waiting.json(),
        json!({"status": "starting", "awaited": ["files"]})
    );
    drop(latch);
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json(), json!({"status": "ready", "awaited": []}));
}

#[tokio::test]
async fn every_scenario_is_shown_with_its_state() {
    let server = served().await;
    let all = server.get("/api/v1/scenarios").await.json();
    assert_eq!(texts(&all["scenarios"], "name"), ["files", "gone", "new"]);
    assert_eq!(
        texts(&all["scenarios"], "state"),
        ["live", "down", "connecting"]
    );
    assert_eq!(all["scenarios"][1]["last_error"]["kind"], "refused");
    let some = server.get("/api/v1/scenarios?state=down,live").await.json();
    assert_eq!(texts(&some["scenarios"], "name"), ["files", "gone"]);
    assert!(
        server
            .get("/api/v1/scenarios?state=dead")
            .await
            .problem()
            .contains("incompatible")
    );
    let one = server.get("/api/v1/scenarios/files").await.json();
    assert!(texts(&one["findings"], "code").contains(&"name-mismatch".to_owned()));
    let near = server.get("/api/v1/scenarios/file").await;
    assert_eq!(near.status, 404);
    assert_eq!(near.json()["candidates"], json!(["files"]));
    assert_eq!(server.get("/api/v1/scenarios/a%20b").await.status, 400);
}

#[tokio::test]
async fn findings_are_filtered_by_what_they_are_and_of_whom() {
    let server = served().await;
    let all = server.get("/api/v1/findings").await.json();
    let codes = texts(&all["findings"], "code");
    for code in ["name-mismatch", "disabled", "internal-only", "withdrawn"] {
        assert!(codes.contains(&code.to_owned()), "{code}: {codes:?}");
    }
    let some = server
        .get("/api/v1/findings?scenario=files&code=disabled,withdrawn")
        .await
        .json();
    assert_eq!(texts(&some["findings"], "tool"), ["read"]);
    let warnings = server.get("/api/v1/findings?severity=warning").await.json();
    assert!(
        texts(&warnings["findings"], "severity")
            .iter()
            .all(|severity| severity == "warning")
    );
    assert!(
        server
            .get("/api/v1/findings?code=nonsense")
            .await
            .problem()
            .contains("name-collision")
    );
}

/// Findings are kept for equal requests, and yet show what changed without a new list of tools.
#[tokio::test]
async fn findings_of_a_format_are_shown_as_soon_as_a_client_uses_it() {
    let tools: Vec<_> = (0..200).map(|at| tool(&format!("tool_{at}"))).collect();
    let mut inputs = Inputs::default();
    put(&mut inputs, offer("files", &tools));
    let server = serve_inputs(&inputs).await;
    let hidden = async || {
        let answer = server
            .get("/api/v1/findings?formats=used&code=over-limit")
            .await
            .json();
        (
            answer["findings"].as_array().unwrap().len(),
            answer["hidden"].as_u64(),
        )
    };
    let before = hidden().await;
    assert_eq!(before.0, 0, "no client used a format");
    assert_eq!(hidden().await, before);
    assert_eq!(server.get("/api/v1/tools?format=openai").await.status, 200);
    let after = hidden().await;
    assert!(
        after.0 > 0 && after.1 < before.1,
        "{before:?} and then {after:?}"
    );
}

/// Providers of many equal names have a finding for each tool, and for most tools in each format.
#[tokio::test]
async fn findings_of_one_kind_are_listed_up_to_a_bound_and_then_counted() {
    const TOOLS: usize = 700;
    const SCENARIOS: usize = 4;
    let tools: Vec<_> = (0..TOOLS).map(|at| tool(&format!("same_{at}"))).collect();
    let mut inputs = Inputs::default();
    for at in 0..SCENARIOS {
        put(&mut inputs, offer(&format!("s{at}"), &tools));
    }
    let server = serve_inputs(&inputs).await;
    let counted = |finding: &Value| {
        let message = finding["message"].as_str().unwrap();
        let more = message.split_once(" more of this kind are not listed");
        more.map_or(1, |more| more.0.parse::<usize>().unwrap())
    };
    let all = server.get("/api/v1/findings").await;
    let found = all.json()["findings"].as_array().unwrap().clone();
    let mut kinds: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for finding in &found {
        let scenario = &finding["scenario"];
        let about = if finding["format"].is_null() {
            scenario
        } else {
            &finding["format"]
        };
        let kind = format!("{} {about}", finding["code"]);
        kinds.entry(kind).or_default().push(finding);
    }
    assert!(kinds.values().all(|of_kind| of_kind.len() <= 501));
    for at in 0..SCENARIOS {
        let collisions = &kinds[&format!("\"name-collision\" \"s{at}\"")];
        assert_eq!(collisions.len(), 501);
        let whole: usize = collisions.iter().map(|finding| counted(finding)).sum();
        assert_eq!(whole, TOOLS);
    }
    let over_limit = &kinds["\"over-limit\" \"openai\""];
    let left_out: usize = over_limit.iter().map(|finding| counted(finding)).sum();
    let list = server.get("/api/v1/tools?format=openai").await.json();
    assert_eq!(list.as_array().unwrap().len() + left_out, TOOLS * SCENARIOS);
    let rest = over_limit.iter().find(|finding| counted(finding) > 1);
    let hint = rest.unwrap()["hint"].as_str().unwrap();
    assert!(hint.contains("--scenario"), "{hint}");

    // Those of one scenario are all listed.
    let one = "/api/v1/findings?scenario=s1&code=name-collision";
    let found = server.get(one).await.json()["findings"].clone();
    assert_eq!(found.as_array().unwrap().len(), TOOLS);
    assert_eq!(found[0]["others"].as_array().unwrap().len(), SCENARIOS - 1);
}

#[tokio::test]
async fn preferences_are_listed_by_scope_and_target() {
    let server = served().await;
    let all = server.get("/api/v1/preferences").await.json();
    assert_eq!(texts(&all["preferences"], "scope"), ["global", "chat:7"]);
    let expected = json!({"scope": "chat:7", "target": "tool:files/wipe", "enabled": null, "approval": "skip",
        "alias": null, "priority": null, "pinned": null, "pins": null, "description": null, "parameters": null});
    assert_eq!(
        server.get("/api/v1/preferences?scope=chat:7").await.json()["preferences"],
        json!([expected])
    );
    let none = server
        .get("/api/v1/preferences?scope=chat:8&target=tool:files/wipe")
        .await;
    assert_eq!(none.json(), json!({"preferences": []}));
    assert!(
        server
            .get("/api/v1/preferences?scope=user")
            .await
            .problem()
            .contains("`user`")
    );
}

#[tokio::test]
async fn the_tool_set_has_the_original_keys() {
    let server = served().await;
    let set = server.get("/api/v1/tools/set").await.json();
    assert_eq!(
        set["scenarios"],
        json!([{"name": "files", "version": "1", "description": ""}])
    );
    assert_eq!(set["categories"], json!([{"id": "disk", "name": "disk"}]));
    assert_eq!(set["generated_at"], "2023-11-14T22:13:20Z");
    let parameters = json!({"type": "object", "properties": {}});
    let read = json!({"scenario": "files", "tool": {"name": "read", "description": "", "category": "disk",
        "parameters": parameters, "metadata": {"enabled_by_default": true}},
        "enabled": false, "source": "global", "requires_approval": false});
    assert_eq!(set["tools"][0], read);
    assert_eq!(
        set["tools"].as_array().unwrap().len(),
        3,
        "internal ones too"
    );
    assert_eq!(set["tools"][2]["requires_approval"], true);
    assert_eq!(set["tools"][2]["source"], "");
    let chat = server.get("/api/v1/tools/set?chat_id=7").await.json();
    let wipe = &chat["tools"][2];
    assert_eq!(wipe["requires_approval"], false);
    assert_eq!(wipe["approval_source"], "chat");
    assert_eq!(wipe["approval_override"], "skip");
    let revision = async |query: &str| {
        server
            .get(&format!("/api/v1/tools{query}"))
            .await
            .header("callsheet-revision")
            .to_owned()
    };
    assert_eq!(
        revision("").await,
        revision("?chat_id=8").await,
        "a chat without preferences sees the global content"
    );
    assert_ne!(revision("").await, revision("?chat_id=7").await);
    assert_eq!(server.get("/api/v1/tools/set?chat_id=").await.json(), set);
}

#[tokio::test]
async fn a_category_that_is_shown_as_another_scenario_defines_it_is_a_finding() {
    let mut inputs = Inputs::default();
    put(
        &mut inputs,
        offer("files", &[tool("read").category("disk")]),
    );
    put(&mut inputs, offer("same", &[tool("copy").category("disk")]));
    let mut other = offer("tape", &[tool("wind").category("disk")]);
    let manifest = Arc::get_mut(&mut other.manifest).unwrap();
    manifest.categories = manifest
        .categories
        .iter()
        .map(|known| Category {
            name: "Reels".into(),
            ..known.clone()
        })
        .collect();
    put(&mut inputs, other);
    let server = serve_inputs(&inputs).await;
    let list = server.get("/api/v1/tools").await.json();
    assert_eq!(list["categories"], json!([{"id": "disk", "name": "disk"}]));
    let expected =
        "its category `disk` is shown as `files` defines it, because lists name each category once";
    for target in [
        "/api/v1/findings?code=category-ignored",
        "/api/v1/findings?code=category-ignored&scenario=tape",
    ] {
        let findings = server.get(target).await.json()["findings"].clone();
        assert_eq!(
            texts(&findings, "scenario"),
            vec!["tape".to_owned()],
            "{target}"
        );
        assert_eq!(
            texts(&findings, "message"),
            vec![expected.to_owned()],
            "{target}"
        );
    }
    let none = server
        .get("/api/v1/findings?code=category-ignored&scenario=same")
        .await
        .json();
    assert_eq!(none, json!({"findings": []}));
}

#[tokio::test]
async fn an_empty_tool_set_has_lists_and_no_null() {
    let server = serve_inputs(&Inputs::default()).await;
    let set = server.get("/api/v1/tools/set").await.json();
    assert_eq!(set["scenarios"], json!([]));
    assert_eq!(set["tools"], json!([]));
    assert_eq!(set["categories"], json!([]));
    assert_eq!(
        server.get("/api/v1/tools/scenarios").await.json(),
        json!([])
    );
}

#[tokio::test]
async fn a_dead_scenario_stays_in_the_list_as_not_available() {
    let server = served().await;
    let expected = json!([
        {"scenario": "files", "available": true, "last_checked": "2023-11-14T22:13:20Z", "tool_count": 3},
        {"scenario": "gone", "available": false, "last_checked": "2023-11-14T22:13:20Z", "tool_count": 1,
            "error": "connection refused"},
        {"scenario": "new", "available": false, "last_checked": "", "tool_count": 0, "error": "as the test says"},
    ]);
    assert_eq!(server.get("/api/v1/tools/scenarios").await.json(), expected);
}
