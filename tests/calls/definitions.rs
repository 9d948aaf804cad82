//! Definitions: what runs their calls, and what becomes of calls that no program runs.

use std::convert::Infallible;

use callsheet::app::Builder;
use callsheet::calls::{CallMode, CallResponse, ExecuteError, Request, WaitLimits};
use callsheet::catalog::ViewQuery;
use callsheet::model::{ApprovalPolicy, FindingCode, ScenarioName, SettingsPatch};
use callsheet::native::NativeTools;
use callsheet::protocols::definitions::Definition;
use callsheet::runtime::Clock;
use serde_json::{Value, json};

use crate::support::callee::{Callee, PATIENCE, manifest, tool, tool_with};
use crate::support::house::{House, request, switched};

/// A definition of a tool that rates a text.
fn rating(name: &str) -> Definition {
    let schema = json!({"type": "object", "description": "Rates a text", "required": ["text"], "properties": {
        "_tool": {"type": "string", "const": name}, "text": {"type": "string"},
        "_output": {"type": "object", "required": ["stars"], "properties": {"stars": {"type": "number"}}}}});
    Definition::from_schema(Some(name), schema).unwrap()
}

async fn house(definitions: Vec<Definition>, scenarios: &[&Callee]) -> House {
    let places: Vec<_> = scenarios
        .iter()
        .enumerate()
        .map(|(i, callee)| (["ratings", "others"][i], callee.url()))
        .collect();
    let house = House::with(&places, |config| config.definitions = definitions).await;
    let definitions = "definitions".parse().unwrap();
    house
        .until("defined", |snapshot| {
            snapshot.catalog.entry(&definitions).is_some()
        })
        .await;
    house
}

async fn until_run(house: &House, name: &str, execution: &str) {
    house
        .until(execution, |snapshot| {
            let found = snapshot.catalog.find(&callsheet::model::NameRef::parse(name));
            matches!(found, callsheet::catalog::NameLookup::One(tool) if tool.execution.to_string() == execution)
        })
        .await;
}

fn result(answered: Result<CallResponse, ExecuteError>) -> Value {
    serde_json::from_str(answered.unwrap().outcome.result.unwrap().get()).unwrap()
}

#[tokio::test]
async fn a_latent_call_gives_back_the_result_of_the_model_and_is_sent_nowhere() {
    let house = house(vec![rating("rate")], &[]).await;
    let call = json!({"_tool": "rate", "_activity": "", "_reasoningForCall": "they asked", "text": "good",
        "_output": {"stars": 5}});
    let answered = house.call("rate", &call).await.unwrap();
    assert_eq!(
        answered.outcome.result.as_ref().unwrap().get(),
        r#"{"stars":5}"#
    );
    assert_eq!(answered.attempts, 0);
    assert_eq!(answered.url, "");

    let missing = house
        .call("rate", &json!({"text": "good"}))
        .await
        .unwrap_err();
    assert_eq!(missing.kind(), "output_missing");
    assert!(
        missing
            .to_string()
            .contains("gives its result as `_output`"),
        "{missing}"
    );
    let refused = house
        .call(
            "rate",
            &json!({"text": "good", "_output": {"stars": "five"}}),
        )
        .await
        .unwrap_err();
    let ExecuteError::OutputUnfit { violations, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(violations[0].pointer, "/_output/stars");
    // The parameters are checked as for every other tool.
    let unfit = house
        .call("rate", &json!({"_output": {"stars": 5}}))
        .await
        .unwrap_err();
    assert_eq!(unfit.kind(), "invalid_arguments");
    house.finish().await;
}

#[tokio::test]
async fn a_scenario_with_a_tool_of_that_name_makes_a_definition_explicit_and_its_end_latent_again()
{
    let ratings = Callee::echo(manifest("ratings", &[tool("rate")])).await;
    let house = house(vec![rating("rate")], &[]).await;
    let latent = house.revision(&ViewQuery::default());
    house.place(
        "ratings",
        ratings.url(),
        callsheet::discovery::SourceTrust::Trusted,
    );
    until_run(&house, "rate", "explicit by ratings/rate as rate").await;
    assert_ne!(house.revision(&ViewQuery::default()), latent);
    assert_eq!(house.names(), ["rate"]);

    // No meta field reaches the scenario, and what the model says of the result does not count.
    let call =
        json!({"_tool": "rate", "_activity": "rate", "text": "good", "_output": {"stars": 1}});
    let answered = house.call("rate", &call).await.unwrap();
    assert_eq!(answered.tool.id.to_string(), "ratings/rate");
    assert_eq!(
        answered.definition.as_ref().unwrap().id.to_string(),
        "definitions/rate"
    );
    assert_eq!(result(Ok(answered)), json!({"text": "good"}));
    assert_eq!(ratings.ran()[0].arguments, json!({"text": "good"}));
    // The definition is the contract, whatever the scenario takes.
    assert_eq!(
        house.refusal(request("rate", &json!({"text": 7}))).await,
        "invalid_arguments"
    );
    assert_eq!(ratings.ran().len(), 1);

    // Once its scenario is gone for good, the definition is what it was before.
    house.remove("ratings");
    drop(ratings);
    let forgotten = async {
        let ratings: ScenarioName = "ratings".parse().unwrap();
        while house.app.engine().forget(ratings.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, forgotten)
        .await
        .expect("it is removed and forgotten");
    until_run(&house, "rate", "latent").await;
    assert_eq!(house.revision(&ViewQuery::default()), latent);
    let answered = house
        .call("rate", &json!({"text": "good", "_output": {"stars": 1}}))
        .await;
    assert_eq!(result(answered), json!({"stars": 1}));
    house.finish().await;
}

#[tokio::test]
async fn a_result_that_does_not_fit_a_definition_or_a_tool_is_given_and_told() {
    let schema = json!({"type": "object", "properties": {}});
    let mut own = tool_with("count", &schema, &json!({"enabled_by_default": true}));
    own["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let ratings = Callee::echo(manifest("ratings", &[tool("rate"), own])).await;
    let house = house(vec![rating("rate")], &[&ratings]).await;
    until_run(&house, "rate", "explicit by ratings/rate as rate").await;
    let messages = || {
        let findings = house.app.calls().findings(&house.app.snapshot().catalog);
        let of_results = findings
            .into_iter()
            .filter(|finding| finding.code == FindingCode::OutputMismatch);
        of_results
            .map(|finding| format!("{}: {}", finding.tool.unwrap(), finding.message))
            .collect::<Vec<_>>()
    };
    let unfit = |tool: &str, place: &str| {
        format!(
            "{tool}: its last result does not fit the schema of results that it declares: it breaks `{place}` of the schema; it was passed on"
        )
    };
    let rated = unfit("rate", "/required");
    // A result is checked beside its answer, and not while another one is.
    while messages() != [&*rated] {
        assert_eq!(
            result(house.call("rate", &json!({"text": "good"})).await),
            json!({"text": "good"})
        );
    }
    while messages() != [unfit("count", "/properties/n/type"), rated.clone()]
        && messages() != [rated.clone(), unfit("count", "/properties/n/type")]
    {
        house.call("count", &json!({"n": "secret"})).await.unwrap();
    }
    // The next result that fits takes it back.
    while messages() != [&*rated] {
        house.call("count", &json!({"n": 7})).await.unwrap();
    }
    house.finish().await;
}

#[tokio::test]
async fn a_named_activity_that_is_not_there_refuses_the_call_until_it_is() {
    let ratings = Callee::echo(manifest("ratings", &[tool("judge")])).await;
    let house = house(vec![rating("rate").run_by("ratings/judge").unwrap()], &[]).await;
    let refused = house
        .call("rate", &json!({"text": "good", "_output": {"stars": 5}}))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), "no_activity");
    assert!(
        refused.to_string().contains("`ratings/judge` is not there"),
        "{refused}"
    );
    house.place(
        "ratings",
        ratings.url(),
        callsheet::discovery::SourceTrust::Trusted,
    );
    until_run(&house, "rate", "explicit by ratings/judge as ratings/judge").await;
    house.call("rate", &json!({"text": "good"})).await.unwrap();
    assert_eq!(ratings.ran()[0].tool, "judge");
    house.finish().await;
}

#[tokio::test]
async fn a_profile_chooses_the_implementation() {
    let real = Callee::echo(manifest("ratings", &[tool("rate")])).await;
    let mock = Callee::echo(manifest("others", &[tool("rate_mock")])).await;
    let definition = rating("rate")
        .run_for("dev", "others/rate_mock")
        .run_for("prototype", "nobody/rate");
    let house = House::with(
        &[("ratings", real.url()), ("others", mock.url())],
        |config| {
            config.definitions = vec![definition];
            for name in ["dev", "prod", "prototype"] {
                config
                    .profiles
                    .insert(name.to_owned(), callsheet::model::Profile::default());
            }
        },
    )
    .await;
    until_run(&house, "rate", "explicit by ratings/rate as rate").await;
    let by = |profile: &str, arguments: &Value| Request {
        profile: Some(profile.to_owned()),
        ..request("rate", arguments)
    };
    let text = json!({"text": "good"});
    assert_eq!(
        house
            .request(by("dev", &text))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "others/rate_mock"
    );
    assert_eq!(
        house
            .request(by("prod", &text))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "ratings/rate"
    );
    assert_eq!(
        house.refusal(by("prototype", &text)).await,
        "output_missing"
    );
    let latent = json!({"text": "good", "_output": {"stars": 2}});
    assert_eq!(
        result(house.request(by("prototype", &latent)).await),
        json!({"stars": 2})
    );
    assert_eq!(real.ran().len(), 1);
    assert_eq!(mock.ran().len(), 1);
    house.finish().await;
}

#[tokio::test]
async fn preferences_of_the_definition_and_of_its_activity_hold() {
    let ratings = Callee::echo(manifest("ratings", &[tool("rate")])).await;
    let house = house(vec![rating("rate"), rating("guess")], &[&ratings]).await;
    until_run(&house, "rate", "explicit by ratings/rate as rate").await;
    let approval = |policy| SettingsPatch {
        approval: Some(Some(policy)),
        ..SettingsPatch::default()
    };
    let text = json!({"text": "good"});
    for target in ["tool:definitions/rate", "tool:ratings/rate"] {
        house
            .prefer("global", target, approval(ApprovalPolicy::Require))
            .await;
        assert_eq!(
            house.refusal(request("rate", &text)).await,
            "approval_required",
            "{target}"
        );
        house.prefer("global", target, switched(false)).await;
        assert_eq!(
            house.refusal(request("rate", &text)).await,
            "disabled",
            "{target}: no person is asked"
        );
        house
            .prefer("global", target, approval(ApprovalPolicy::Skip))
            .await;
        assert_eq!(
            house.refusal(request("rate", &text)).await,
            "disabled",
            "{target}"
        );
        house.prefer("global", target, switched(true)).await;
    }
    house.call("rate", &text).await.unwrap();
    // A latent call waits for its approval with the result in it.
    house
        .prefer(
            "global",
            "tool:definitions/guess",
            approval(ApprovalPolicy::Require),
        )
        .await;
    let guess = json!({"text": "good", "_output": {"stars": 3}});
    let Err(ExecuteError::ApprovalRequired {
        waiting: Some(waiting),
        ..
    }) = house.call("guess", &guess).await
    else {
        panic!("it waits for approval")
    };
    let decided = house
        .app
        .calls()
        .approve(&waiting.id, "ada", WaitLimits::within(PATIENCE))
        .await
        .unwrap();
    let answer = decided.answer.as_ref().unwrap();
    assert_eq!(answer.result.as_ref().unwrap().get(), r#"{"stars":3}"#);
    house.finish().await;
}

#[tokio::test]
async fn a_function_of_the_program_runs_a_definition_as_soon_as_it_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let functions = NativeTools::new("functions", "Rates", Clock::system()).unwrap();
    let config = callsheet::config::Config::for_state(folder.path().join("state.db"));
    let builder: Builder = callsheet::Callsheet::builder(config)
        .native(functions.clone())
        .definition(rating("rate"));
    let running = crate::support::in_process::InProcess::start(builder).await;
    let runs = async |execution: &str| {
        let what = execution.to_owned();
        running
            .until(execution, move |snapshot| {
                let found = snapshot.catalog.find(&callsheet::model::NameRef::parse("rate"));
                matches!(found, callsheet::catalog::NameLookup::One(tool) if tool.execution.to_string() == what)
            })
            .await;
    };
    runs("latent").await;
    let rate = |call: Value| async move {
        let stars = call["text"].as_str().map_or(0, str::len);
        Ok::<_, Infallible>(json!({"stars": stars}))
    };
    functions.add_activity("rate", rate).unwrap();
    runs("explicit by functions/rate as rate").await;
    let answered = running
        .app
        .call(request("rate", &json!({"text": "good"})))
        .await;
    assert_eq!(result(answered), json!({"stars": 4}));
    assert_eq!(
        running
            .now()
            .catalog
            .activities()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["functions/rate"]
    );
    // A test double takes its place.
    let double = |_: Value| async { Ok::<_, Infallible>(json!({"stars": 1})) };
    functions.add_activity("rate", double).unwrap();
    let answered = running
        .app
        .call(request("rate", &json!({"text": "good"})))
        .await;
    assert_eq!(result(answered), json!({"stars": 1}));
    assert!(functions.remove("rate"));
    runs("latent").await;
    assert!(functions.add_activity("no name", double).is_err());
    running.finish().await;
}

#[tokio::test]
async fn a_tool_that_its_scenario_leaves_to_the_model_is_never_sent_to_it() {
    let schema = json!({"type": "object", "properties": {}});
    let think = tool_with(
        "think",
        &schema,
        &json!({"enabled_by_default": true, "tags": ["latent"]}),
    );
    let ratings = Callee::echo(manifest("ratings", &[think, tool("read")])).await;
    let house = house(vec![rating("rate")], &[&ratings]).await;
    assert_eq!(
        house.refusal(request("think", &json!({}))).await,
        "output_missing"
    );
    assert_eq!(
        result(house.call("think", &json!({"_output": {"idea": 1}})).await),
        json!({"idea": 1})
    );
    // A parameter of that name is an argument, and a meta field of another tool is none.
    house
        .call(
            "read",
            &json!({"a": 1, "_reasoningForCall": "why", "_other": 2}),
        )
        .await
        .unwrap();
    assert_eq!(ratings.ran().len(), 1);
    assert_eq!(ratings.ran()[0].arguments, json!({"a": 1, "_other": 2}));
    house.finish().await;
}

#[tokio::test]
async fn a_definition_competes_where_what_runs_it_may() {
    let any = json!({"type": "object", "properties": {}});
    let safe = json!({"enabled_by_default": true, "idempotent": true});
    let ratings = Callee::echo(manifest(
        "ratings",
        &[tool_with("rate", &any, &safe), tool("send")],
    ))
    .await;
    let house = house(
        vec![rating("rate"), rating("send"), rating("guess")],
        &[&ratings],
    )
    .await;
    until_run(&house, "rate", "explicit by ratings/rate as rate").await;
    until_run(&house, "send", "explicit by ratings/send as send").await;
    let calls = |names: &[&str]| {
        names
            .iter()
            .map(|name| request(name, &json!({"text": "good"})))
            .collect::<Vec<_>>()
    };
    let several = async |names: &[&str]| {
        house
            .app
            .calls()
            .execute_several(calls(names), CallMode::Any, 8)
            .await
    };
    let refused = several(&["rate", "send", "guess"]).await.unwrap_err();
    assert_eq!(
        refused
            .tools
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["ratings/send"]
    );
    assert_eq!(ratings.ran().len(), 0);
    let first = several(&["rate", "guess"]).await.unwrap().swap_remove(0);
    assert_eq!(result(first.unwrap()), json!({"text": "good"}));
    house.finish().await;
}
