//! Scenarios that mean harm, in a whole daemon beside good ones: each is bounded, told to the
//! operator, and of no effect on the others.
//!
//! What leads an announced scenario to another host is in `daemon_trust.rs`. Names that are
//! resolved anew with each ask are left to the system's resolver and cannot be tested without one;
//! no trust hangs on them, since only configured addresses have names.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callsheet::config::Config;
use callsheet::formats::FORMATS;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::daemon::{Daemon, Home, Scenario, configured, tool};
use crate::support::hostile::{Hostile, hints, quick, slow};
use crate::support::upstream_server::{MIB, UpstreamServer, answer};

const JSON: &str = "Content-Type: application/json";

/// Two good scenarios.
async fn good_ones() -> [Scenario; 2] {
    [
        Scenario::start("kitchen", [tool("brew").category("drinks"), tool("stir")]).await,
        Scenario::of("pantry", &["stock"]).await,
    ]
}

async fn list(daemon: &Daemon) -> (Vec<u8>, String) {
    let answer = daemon.get("/api/v1/tools").await;
    assert_eq!(answer.status, 200);
    (answer.body.clone(), answer.header("etag").to_owned())
}

/// The list when nobody else is there.
async fn undisturbed(good: &[Scenario; 2]) -> Vec<u8> {
    let home = Home::new();
    let daemon = Daemon::ready(home.config(&[&good[0], &good[1]])).await;
    daemon.until_tools(&["brew", "stir", "stock"]).await;
    let (body, _) = list(&daemon).await;
    daemon.stop().await;
    body
}

/// Runs a daemon over the good and the hostile until each hostile one was asked three times.
async fn endure(hostile: &[Hostile], timeout: Duration) {
    let home = Home::new();
    let good = good_ones().await;
    let alone = undisturbed(&good).await;
    let mut config = home.config(&[&good[0], &good[1]]);
    config.scenarios.extend(
        hostile
            .iter()
            .map(|each| configured(each.name, each.server.address())),
    );
    config.refresh.timeout = timeout;
    config.refresh.max_body = MIB;
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["brew", "stir", "stock"]).await;
    let (body, etag) = list(&daemon).await;
    assert_eq!(
        tools_of(&body),
        tools_of(&alone),
        "the others are listed as if they were alone"
    );
    for each in hostile {
        let thrice = |answer: &crate::support::serving::Answer| {
            answer.json()["failures_in_a_row"].as_u64() >= Some(3)
        };
        let health = daemon
            .until(&format!("/api/v1/scenarios/{}", each.name), thrice)
            .await
            .json();
        assert_eq!(health["last_error"]["kind"], each.kind, "{health:#}");
        let message = health["last_error"]["message"].as_str().unwrap();
        assert!(message.contains(each.reason), "{}: {message}", each.name);
        assert!(
            message.len() < 700,
            "{}: {} bytes of message",
            each.name,
            message.len()
        );
        assert_eq!(health["tools"]["published"], 0, "{}", each.name);
        assert_eq!(
            list(&daemon).await,
            (body.clone(), etag.clone()),
            "beside {}",
            each.name
        );
    }
    for scenario in &good {
        let health = daemon
            .json(&format!("/api/v1/scenarios/{}", scenario.name))
            .await;
        assert_eq!(health["state"], "live", "{health:#}");
        assert_eq!(health["failures_in_a_row"], 0, "{health:#}");
    }
    daemon.stop().await;
    for each in hostile {
        // The limit, and what the buffers of two sockets hold on the way.
        let sent = each.sent.load(Ordering::Relaxed);
        let requests = each.server.requests().len();
        assert!(
            sent / requests.max(1) < 16 * MIB,
            "{}: {sent} bytes in {requests} answers",
            each.name
        );
    }
}

/// What a list tells of tools, without its revision and times.
fn tools_of(list: &[u8]) -> Value {
    serde_json::from_slice::<Value>(list).unwrap()["tools"].clone()
}

#[tokio::test]
async fn what_no_answer_should_be_is_cut_off_and_explained() {
    let elsewhere = UpstreamServer::answering(|_| answer("200 OK", &[JSON], b"{}")).await;
    let hostile = quick(&elsewhere).await;
    endure(&hostile, crate::support::daemon::PATIENCE).await;
    assert!(
        elsewhere.requests().is_empty(),
        "a redirect to another origin is not followed"
    );
    let roundabout = hostile
        .iter()
        .find(|each| each.name == "roundabout")
        .unwrap();
    let firsts = roundabout
        .server
        .requests()
        .iter()
        .filter(|request| request.target() == "/api/v1/tools")
        .count();
    // Three redirects after each first request; the last round may have been cut by the end.
    assert!(
        roundabout.server.requests().len() <= firsts * 4,
        "{firsts} asks"
    );
}

#[tokio::test]
async fn what_takes_for_ever_is_cut_off_and_explained() {
    endure(&slow().await, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn calls_that_get_interim_responses_without_end_fail_and_hold_up_no_other() {
    let home = Home::new();
    let good = Scenario::of("kitchen", &["brew"]).await;
    let listed = answer(
        "200 OK",
        &[JSON],
        manifest("hinting", &[offering("hint")])
            .to_string()
            .as_bytes(),
    );
    let hints = hints();
    let server = UpstreamServer::serving(move |request, mut stream| {
        let listed = listed.clone();
        Box::pin(async move {
            if request.target() == "/api/v1/tools" {
                // A client that leaves early is no failure here.
                let _ = stream.write_all(&listed).await;
            } else {
                while stream.write_all(hints).await.is_ok() {}
            }
        })
    })
    .await;
    let mut config = home.config(&[&good]);
    config
        .scenarios
        .push(configured("hinting", server.address()));
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["hint", "brew"]).await;
    let call = json!({"tool_name": "hint", "arguments": {}});
    let calls = join_all((0..4).map(|_| daemon.send_json("POST", "/api/v1/tools/execute", &call)));
    let failed = tokio::time::timeout(crate::support::daemon::PATIENCE, calls)
        .await
        .expect("each call ends");
    for answer in failed {
        let error = answer.json().to_string();
        assert!(answer.status >= 500, "{answer:?}");
        assert!(
            error.contains("more than 65536 bytes of interim responses (1xx)"),
            "{error}"
        );
    }
    assert_eq!(daemon.get("/healthz").await.status, 200);
    daemon.stop().await;
}

/// A daemon over a good scenario and one that answers with what `manifest` makes of the number of
/// the request, once it was read twice.
async fn beside(
    name: &str,
    manifest: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
    change: impl FnOnce(&mut Config),
) -> (Home, Daemon, Scenario, UpstreamServer) {
    let home = Home::new();
    let good = Scenario::of("kitchen", &["brew"]).await;
    let polls = AtomicUsize::new(0);
    let server = UpstreamServer::answering(move |_| {
        answer(
            "200 OK",
            &[JSON],
            &manifest(polls.fetch_add(1, Ordering::Relaxed)),
        )
    })
    .await;
    let mut config = home.config(&[&good]);
    config.scenarios.push(configured(name, server.address()));
    config.refresh.timeout = crate::support::daemon::PATIENCE;
    change(&mut config);
    let daemon = Daemon::ready(config).await;
    daemon.until_state(name, "live").await;
    (home, daemon, good, server)
}

fn manifest(name: &str, tools: &[Value]) -> Value {
    json!({"protocol_version": "1.0", "scenario": {"name": name}, "tools": tools, "generated_at": "2026-02-03T04:05:06Z"})
}

fn offering(name: &str) -> Value {
    json!({"name": name, "description": "Does it", "parameters": {"type": "object", "properties": {}},
        "metadata": {"enabled_by_default": true}})
}

/// A hundred thousand tools, which come in another order each time.
fn crowd(round: usize) -> Vec<u8> {
    const TOOLS: usize = 100_000;
    let mut text = r#"{"protocol_version":"1.0","scenario":{"name":"crowd"},"tools":["#.to_owned();
    for n in 0..TOOLS {
        let at = (n * 7 + round * 1_003) % TOOLS;
        write!(
            text,
            r#"{}{{"name":"t{at:06}","metadata":{{"enabled_by_default":true}}}}"#,
            if n > 0 { "," } else { "" }
        )
        .unwrap();
    }
    (text + r#"],"generated_at":"2026-02-03T04:05:06Z"}"#).into_bytes()
}

#[tokio::test]
async fn of_a_hundred_thousand_tools_the_first_by_name_are_taken() {
    let (_home, daemon, _good, server) =
        beside("crowd", crowd, |config| config.refresh.max_tools = 50).await;
    let kept: Vec<String> = (0..50).map(|n| format!("t{n:06}")).collect();
    assert_eq!(daemon.tools("?scenario=crowd").await, kept);
    assert_eq!(daemon.tools("?scenario=kitchen").await, ["brew"]);
    let health = daemon.json("/api/v1/scenarios/crowd").await;
    assert_eq!(health["tools"]["offered"], 50);
    assert_eq!(health["tools"]["quarantined"], 99_950);
    let [finding] = &daemon.findings("tools-beyond-limit").await[..] else {
        panic!("one finding")
    };
    let expected = "99950 of its 100000 tools are left out: only 50 are taken from one scenario, the first by name";
    assert_eq!(finding["message"], json!(expected));
    assert_eq!(finding["scenario"], "crowd");
    assert!(
        finding["hint"]
            .as_str()
            .unwrap()
            .contains("`refresh.max_tools`")
    );
    // Another order is another body, and no change.
    let before = list(&daemon).await;
    let again = server.requests().len() + 1;
    daemon
        .wait_until("it is asked again", |_| server.requests().len() > again)
        .await;
    assert_eq!(list(&daemon).await, before);
    daemon.stop().await;
}

#[tokio::test]
async fn a_tool_that_is_too_large_or_too_deep_costs_itself() {
    let large = |_| {
        let mut huge = offering("huge");
        huge["parameters"]["properties"]["x"] =
            json!({"type": "string", "description": "x".repeat(300_000)});
        let whole = manifest("large", &[huge, offering("deep"), offering("fine")]).to_string();
        // A depth that no library would write.
        let open = "{\"items\":".repeat(5_000);
        let close = "}".repeat(5_000);
        let deep = format!(r#""properties":{{"x":{open}{{}}{close}}}"#);
        let at = whole.find(r#""name":"deep""#).unwrap();
        let (before, after) = whole.split_at(at);
        (before.to_owned() + &after.replacen(r#""properties":{}"#, &deep, 1)).into_bytes()
    };
    let (_home, daemon, _good, _server) = beside("large", large, |_| {}).await;
    assert_eq!(daemon.tools("").await, ["brew", "fine"]);
    let findings = daemon.findings("tool-quarantined").await;
    let messages: Vec<_> = findings
        .iter()
        .map(|finding| finding["message"].as_str().unwrap())
        .collect();
    let [deep, huge] = messages[..] else {
        panic!("{messages:?}")
    };
    assert!(
        deep.contains("`deep`") && deep.contains("nests deeper than"),
        "{deep}"
    );
    assert!(
        huge.contains("`huge`") && huge.contains("more than the 262144 of `refresh.max_tool`"),
        "{huge}"
    );
    assert_eq!(
        daemon.json("/api/v1/scenarios/large").await["tools"]["quarantined"],
        2
    );
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_too_large_beside_the_tools_costs_the_manifest() {
    let home = Home::new();
    let good = Scenario::of("kitchen", &["brew"]).await;
    let mut bloated = manifest("bloated", &[offering("fine")]);
    bloated["capabilities"] = json!(vec![json!({}); 100_000]);
    let server = UpstreamServer::answering(move |_| {
        answer("200 OK", &[JSON], bloated.to_string().as_bytes())
    })
    .await;
    let mut config = home.config(&[&good]);
    config
        .scenarios
        .push(configured("bloated", server.address()));
    let daemon = Daemon::ready(config).await;
    let failing = |answer: &crate::support::serving::Answer| !answer.json()["last_error"].is_null();
    let health = daemon
        .until("/api/v1/scenarios/bloated", failing)
        .await
        .json();
    let message = health["last_error"]["message"].as_str().unwrap();
    assert!(
        message.contains(
            "/capabilities is 300001 bytes long, more than the 262144 of `refresh.max_tool`"
        ),
        "{message}"
    );
    assert_eq!(daemon.tools("").await, ["brew"]);
    daemon.stop().await;
}

#[tokio::test]
async fn nothing_that_a_manifest_points_to_is_fetched() {
    let trap = UpstreamServer::answering(|_| answer("200 OK", &[JSON], b"{}")).await;
    let url = trap.url();
    let mut pointing = offering("pointing");
    pointing["parameters"] = json!({
        "$schema": format!("{url}schema"), "$id": format!("{url}id"), "type": "object",
        "properties": {"a": {"$ref": format!("{url}a.json#/x")}, "b": {"$ref": "file:///etc/passwd"},
            "c": {"$ref": "http://169.254.169.254/latest/meta-data"}, "d": {"type": "array", "items": {"$dynamicRef": format!("{url}d")}}},
    });
    let mut whole = manifest("pointing", &[pointing]);
    whole["scenario"]["base_url"] = json!(url.as_str());
    let (_home, daemon, _good, _server) =
        beside("pointing", move |_| whole.to_string().into_bytes(), |_| {}).await;
    for format in FORMATS {
        let answer = daemon
            .get(&format!("/api/v1/tools?format={}", format.id()))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/pointing/refresh")
            .await
            .status,
        200
    );
    assert!(trap.requests().is_empty(), "{:?}", trap.requests());
    daemon.stop().await;
}

#[tokio::test]
async fn who_claims_the_name_of_another_keeps_its_own() {
    let whole = manifest("kitchen", &[offering("poison")]);
    let (_home, daemon, _good, _server) =
        beside("impostor", move |_| whole.to_string().into_bytes(), |_| {}).await;
    assert_eq!(daemon.tools("?scenario=kitchen").await, ["brew"]);
    assert_eq!(daemon.tools("?scenario=impostor").await, ["poison"]);
    let [finding] = &daemon.findings("name-mismatch").await[..] else {
        panic!("one finding")
    };
    assert_eq!(finding["scenario"], "impostor");
    assert!(
        finding["message"].as_str().unwrap().contains("kitchen"),
        "{finding}"
    );
    daemon.stop().await;
}
