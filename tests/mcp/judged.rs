//! What servers say of their tools and results, and what is made of it: approval by hints, and
//! findings for results that do not fit.

use callsheet::catalog::{ViewQuery, explain};
use callsheet::config::Config;
use callsheet::model::{ApprovalPolicy, FindingCode, SettingsPatch};
use serde_json::{Value, json};

use crate::support::house::{House, request};
use crate::support::mcp_server::{Came, McpServer, modern, tool};

/// A tool with these annotations.
fn annotated(name: &str, annotations: &Value) -> Value {
    let mut tool = tool(name);
    tool["annotations"] = annotations.clone();
    tool
}

async fn server() -> McpServer {
    McpServer::start(modern(&json!([
        annotated("erase", &json!({"destructiveHint": true})),
        annotated("look", &json!({"readOnlyHint": true})),
        annotated("named", &json!({"title": "A title is no hint"})),
        tool("plain"),
    ])))
    .await
}

/// The tools whose calls need approval.
fn needing(house: &House) -> Vec<String> {
    let view = house.app.view(&ViewQuery::default());
    view.tools()
        .filter(|tool| tool.effective.requires_approval)
        .map(|tool| tool.name.to_string())
        .collect()
}

fn destructive(config: &mut Config) {
    config.calls.require_approval = vec!["hint:destructive".to_owned()];
}

#[tokio::test]
async fn one_setting_requires_approval_by_hints_and_a_preference_lifts_it() {
    let server = server().await;
    let house = House::of(&[("disk", server.url())]).await;
    assert_eq!(needing(&house), Vec::<String>::new(), "off by default");
    assert!(house.call("erase", &json!({})).await.is_ok());
    house.finish().await;

    let house = House::with(&[("disk", server.url())], destructive).await;
    assert_eq!(needing(&house), ["erase"]);
    assert_eq!(
        house.refusal(request("erase", &json!({}))).await,
        "approval_required"
    );
    assert!(house.call("plain", &json!({})).await.is_ok());
    let skip = SettingsPatch {
        approval: Some(Some(ApprovalPolicy::Skip)),
        ..SettingsPatch::default()
    };
    house.prefer("global", "tool:disk/erase", skip).await;
    assert_eq!(needing(&house), Vec::<String>::new());
    house.finish().await;
}

#[tokio::test]
async fn tools_without_hints_count_as_configured_also_before_their_server_answers_again() {
    let server = server().await;
    let change = |config: &mut Config| {
        destructive(config);
        config.calls.unannotated = vec!["hint:destructive".to_owned()];
    };
    let house = House::with(&[("disk", server.url())], change).await;
    assert_eq!(needing(&house), ["erase", "named", "plain"]);
    let snapshot = house.app.snapshot();
    let query = ViewQuery::default();
    let view = house.app.view(&query);
    let plain = view.tools().find(|tool| &*tool.id.tool == "plain").unwrap();
    let explained = explain(&snapshot.catalog, &query, plain);
    let why = explained
        .steps
        .iter()
        .find(|step| step.subject == "approval" && step.outcome.contains("in effect"));
    assert_eq!(why.unwrap().source, "global tag:hint:destructive");
    drop(server);
    let house = house.restart_with(change).await;
    house
        .until("the stored list", |now| {
            now.catalog.entries().any(|entry| entry.tools.len() == 4)
        })
        .await;
    assert_eq!(needing(&house), ["erase", "named", "plain"]);
    house.finish().await;
}

#[tokio::test]
async fn a_preference_for_a_hint_takes_tools_without_hints_where_the_configuration_says_so() {
    let server = server().await;
    let listed = |house: &House| -> Vec<String> {
        let view = house.app.view(&ViewQuery::default());
        view.tools().map(|tool| tool.id.tool.to_string()).collect()
    };
    let off = SettingsPatch {
        enabled: Some(Some(false)),
        ..SettingsPatch::default()
    };
    let house = House::of(&[("disk", server.url())]).await;
    house
        .prefer("global", "tag:hint:destructive", off.clone())
        .await;
    assert!(
        listed(&house).contains(&"plain".to_owned()),
        "without the key it has no tag"
    );
    assert!(!listed(&house).contains(&"erase".to_owned()));
    house.finish().await;
    let change = |config: &mut Config| config.assumed_tags = vec!["hint:destructive".to_owned()];
    let house = House::with(&[("disk", server.url())], change).await;
    assert!(listed(&house).contains(&"plain".to_owned()));
    house.prefer("global", "tag:hint:destructive", off).await;
    assert!(
        !listed(&house).contains(&"plain".to_owned()),
        "{:?}",
        listed(&house)
    );
    assert!(needing(&house).is_empty(), "it asks for no approval");
    house.finish().await;
}

#[tokio::test]
async fn a_result_that_breaks_the_output_schema_is_passed_on_with_a_finding() {
    let mut weather = tool("weather");
    weather["outputSchema"] =
        json!({"type": "object", "properties": {"t": {"type": "number"}}, "required": ["t"]});
    let mut own = modern(&json!([weather]));
    let server = McpServer::start(move |came: &Came| {
        if came.method() != "tools/call" {
            return own(came);
        }
        let mut result =
            json!({"resultType": "complete", "content": [{"type": "text", "text": "warm"}]});
        match &came.message["params"]["arguments"]["give"] {
            Value::Null => {}
            give => result["structuredContent"] = give.clone(),
        }
        came.result(&result)
    })
    .await;
    let house = House::of(&[("sky", server.url())]).await;
    let found = || {
        let snapshot = house.app.snapshot();
        let findings = house.app.calls().findings(&snapshot.catalog);
        findings
            .into_iter()
            .find(|finding| finding.code == FindingCode::OutputMismatch)
            .map(|finding| finding.message)
    };
    for _ in 0..2 {
        let outcome = house
            .call("weather", &json!({"give": {"t": 21}}))
            .await
            .unwrap()
            .outcome;
        assert_eq!(outcome.result.unwrap().get(), r#"{"t":21}"#);
    }
    assert_eq!(found(), None);
    // A result is not checked while another one is.
    let message = loop {
        let outcome = house
            .call("weather", &json!({"give": {"t": "secret"}}))
            .await
            .unwrap()
            .outcome;
        assert!(outcome.success, "it is passed on");
        assert_eq!(outcome.result.unwrap().get(), r#"{"t":"secret"}"#);
        if let Some(message) = found() {
            break message;
        }
    };
    assert!(
        message.contains("`/properties/t/type`") && !message.contains("secret"),
        "{message}"
    );
    // Without structured content the result is its text.
    while !found().unwrap().contains("`/type`") {
        assert!(
            house
                .call("weather", &json!({}))
                .await
                .unwrap()
                .outcome
                .success
        );
    }
    house.finish().await;
}
