//! Versions of definitions: what a caller saw is what it calls.

use std::net::SocketAddr;
use std::sync::Arc;

use callsheet::calls::{ExecuteError, Request, WaitLimits};
use callsheet::catalog::{NameLookup, Snapshot};
use callsheet::model::{ApprovalState, Execution, NameRef, NamedVersion, ViewTool};
use callsheet::protocols::definitions::Definition;
use serde_json::{Value, json};

use crate::call_end_faces::post;
use crate::support::callee::{Callee, PATIENCE, manifest, tool_with};
use crate::support::daemon::{Daemon, Home, configured};
use crate::support::house::{House, request};
use crate::support::serving::Answer;

/// A daemon with one tool, whose definition the test changes.
struct Stage {
    callee: Callee,
    daemon: Daemon,
    home: Home,
}

fn offer(description: &str, parameters: &Value) -> Value {
    let mut pay = tool_with(
        "pay",
        parameters,
        &json!({"enabled_by_default": true, "tags": ["money"]}),
    );
    pay["description"] = description.into();
    manifest("bank", &[pay])
}

fn amount(types: &Value) -> Value {
    json!({"type": "object", "properties": {"amount": {"type": types}}, "required": ["amount"]})
}

impl Stage {
    async fn start() -> Self {
        let callee = Callee::echo(offer(
            "Pays an amount",
            &amount(&json!(["number", "string"])),
        ))
        .await;
        Self::with(callee, Home::new()).await
    }

    async fn with(callee: Callee, home: Home) -> Self {
        let mut config = home.config(&[]);
        config.scenarios = vec![configured("bank", ([127, 0, 0, 1], callee.port()).into())];
        let daemon = Daemon::ready(config).await;
        Self {
            callee,
            daemon,
            home,
        }
    }

    /// The same state and scenario with a new daemon.
    async fn restarted(self) -> Self {
        self.daemon.stop().await;
        Self::with(self.callee, self.home).await
    }

    /// The changes of the tool that are kept.
    async fn changes(&self, name: &str) -> Vec<Value> {
        let history = self
            .daemon
            .get(&format!("/api/v1/tools/{name}/history"))
            .await;
        assert_eq!(history.status, 200, "{history:?}");
        history.json()["changes"].as_array().unwrap().clone()
    }

    fn address(&self) -> SocketAddr {
        self.daemon.address
    }

    async fn lists(&self, manifest: Value) {
        self.callee.lists(manifest);
        let refreshed = post(self.address(), "/api/v1/scenarios/bank/refresh", &json!({})).await;
        assert_eq!(refreshed.status, 200, "{refreshed:?}");
    }

    /// The version that the list shows.
    async fn listed(&self) -> String {
        let list = self.daemon.get("/api/v1/tools").await.json();
        list["tools"][0]["definition_version"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn call(&self, version: &str) -> Answer {
        let body =
            json!({"tool_name": "pay", "arguments": {"amount": 1}, "definition_version": version});
        post(self.address(), "/api/v1/tools/execute", &body).await
    }
}

#[tokio::test]
async fn a_call_for_a_former_definition_is_refused_before_it_is_sent() {
    let stage = Stage::start().await;
    let first = stage.listed().await;
    assert_eq!(first.len(), 32, "{first}");
    assert_eq!(stage.call(&first).await.status, 200);

    // The same definition, written otherwise.
    let mut same = offer("Pays an amount", &amount(&json!(["string", "number"])));
    same["tools"][0]["icons"] = json!([{"src": "https://bank.example/pay.png"}]);
    same["tools"][0]["_meta"] = json!({"seen": 7});
    stage.lists(same).await;
    assert_eq!(stage.listed().await, first);
    assert_eq!(stage.call(&first).await.status, 200);

    stage
        .lists(offer(
            "Pays an amount twice",
            &amount(&json!(["number", "string"])),
        ))
        .await;
    let second = stage.listed().await;
    assert_ne!(first, second);
    let refused = stage.call(&first).await;
    assert_eq!(refused.status, 409);
    let problem = refused.json();
    assert_eq!(problem["code"], "stale_definition");
    assert_eq!(problem["definition"]["description"], "Pays an amount twice");
    assert_eq!(problem["definition"]["definition_version"], second.as_str());
    assert_eq!(stage.callee.ran().len(), 2, "the refused call was not sent");
    assert_eq!(stage.call(&second).await.status, 200);
    let whole = stage.daemon.get("/api/v1/tools/pay/explain").await.json();
    let whole = whole["definition_version"].as_str().unwrap();
    assert!(whole.len() == 64 && whole.starts_with(&second), "{whole}");
    assert_eq!(stage.call(whole).await.status, 200);
    assert_eq!(stage.call(&whole.to_uppercase()).await.status, 200);

    // Back to what it was: the first version is good again.
    stage
        .lists(offer(
            "Pays an amount",
            &amount(&json!(["number", "string"])),
        ))
        .await;
    assert_eq!(stage.call(&first).await.status, 200);
    stage.daemon.stop().await;
}

#[tokio::test]
async fn a_turn_runs_calls_of_the_definitions_that_its_model_saw() {
    let stage = Stage::start().await;
    let list = stage.daemon.get("/api/v1/tools?format=openai").await;
    let revision = list.headers["callsheet-revision"]
        .to_str()
        .unwrap()
        .to_owned();
    let turn = async |id: &str| {
        let function = json!({"name": "pay", "arguments": "{\"amount\":1}"});
        let call = json!({"id": id, "type": "function", "function": function});
        let response = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let body = json!({"response": response, "revision": revision});
        post(stage.address(), "/api/v1/turns?format=openai", &body)
            .await
            .json()
    };
    assert_eq!(turn("c1").await["calls"][0]["status"], "result");
    stage
        .lists(offer("Pays an amount twice", &amount(&json!("number"))))
        .await;
    let later = turn("c2").await;
    assert_eq!(later["calls"][0]["status"], "refused", "{later}");
    assert_eq!(later["calls"][0]["code"], "stale_definition", "{later}");
    assert_eq!(stage.callee.ran().len(), 1);
    stage.daemon.stop().await;
}

#[tokio::test]
async fn the_history_of_a_tool_shows_what_changed_also_after_a_restart() {
    let stage = Stage::start().await;
    assert!(stage.changes("pay").await.is_empty());
    let first =
        stage.daemon.get("/api/v1/tools/pay/explain").await.json()["definition_version"].clone();
    stage
        .lists(offer("Pays an amount twice", &amount(&json!(["number"]))))
        .await;
    let second =
        stage.daemon.get("/api/v1/tools/pay/explain").await.json()["definition_version"].clone();
    let stage = stage.restarted().await;
    let changes = stage.changes("bank/pay").await;
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["from"], first);
    assert_eq!(changes[0]["to"], second);
    let parts = changes[0]["parts"].as_array().unwrap();
    let description = parts
        .iter()
        .find(|part| part["pointer"] == "/description")
        .unwrap();
    assert_eq!(description["before"], "Pays an amount");
    assert_eq!(description["after"], "Pays an amount twice");
    let types = parts
        .iter()
        .find(|part| part["pointer"] == "/parameters/properties/amount/type")
        .unwrap();
    assert_eq!(types["before"], r#"["number","string"]"#);
    assert_eq!(types["after"], r#"["number"]"#);

    // A change while no daemon ran is seen, too.
    let Stage {
        callee,
        daemon,
        home,
    } = stage;
    daemon.stop().await;
    callee.lists(offer("Pays an amount thrice", &amount(&json!(["number"]))));
    let stage = Stage::with(callee, home).await;
    let refreshed = post(
        stage.address(),
        "/api/v1/scenarios/bank/refresh",
        &json!({}),
    )
    .await;
    assert_eq!(refreshed.status, 200, "{refreshed:?}");
    let changes = stage.changes("pay").await;
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!(changes[1]["to"], second, "the latest comes first");
    assert_eq!(
        stage
            .daemon
            .get("/api/v1/tools/unknown/history")
            .await
            .status,
        404
    );
    stage.daemon.stop().await;
}

#[tokio::test]
async fn a_tool_that_comes_back_with_another_definition_has_that_change_in_its_history() {
    let stage = Stage::start().await;
    let plain = amount(&json!("number"));
    stage.lists(offer("Pays an amount", &plain)).await;
    let before = stage.changes("pay").await.len();
    stage.lists(manifest("bank", &[])).await;
    stage.lists(offer("Pays an amount twice", &plain)).await;
    let changes = stage.changes("pay").await;
    assert_eq!(changes.len(), before + 1, "{changes:?}");
    assert!(
        changes[0]["parts"].to_string().contains("twice"),
        "{changes:?}"
    );
    stage.daemon.stop().await;
}

#[tokio::test]
async fn a_tool_that_changes_all_the_time_keeps_a_bounded_history() {
    let stage = Stage::start().await;
    let plain = amount(&json!("number"));
    for round in 0..30 {
        stage
            .lists(offer(&format!("Pays for the {round}th time"), &plain))
            .await;
    }
    let changes = stage.changes("pay").await;
    assert_eq!(changes.len(), 20);
    assert!(
        changes[0]["parts"].to_string().contains("29th"),
        "{}",
        changes[0]
    );
    stage.daemon.stop().await;
}

/// Each part below a long name repeated it: one tool of 250 KB took seconds of the loop of the
/// daemon.
#[tokio::test]
async fn a_part_below_a_long_name_is_shown_at_the_nearest_place() {
    let stage = Stage::start().await;
    let long = "k".repeat(10_000);
    let many = |value: u32| {
        let names = (0..500).map(|number| (format!("m{number}"), json!(value)));
        let members: serde_json::Map<String, Value> = names.collect();
        json!({"type": "object", "properties": {}, "x-more": {&long: members}})
    };
    stage.lists(offer("Pays", &many(1))).await;
    stage.lists(offer("Pays", &many(2))).await;
    let changes = stage.changes("pay").await;
    let parts = changes[0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 20, "{}", changes[0]);
    assert_eq!(parts[0]["pointer"], "/parameters/x-more");
    assert_eq!(changes[0]["more"], 480);
    stage.daemon.stop().await;
}

#[tokio::test]
async fn the_version_of_a_provider_is_shown_beside_that_of_the_definition() {
    let stage = Stage::start().await;
    let whole = stage.daemon.get("/api/v1/tools/pay/explain").await.json();
    assert!(whole.get("provider_version").is_none(), "{whole}");
    for (version, shown) in [(json!("2.1.0"), "2.1.0"), (json!(7), "7")] {
        let mut offered = offer("Pays an amount", &amount(&json!("number")));
        offered["tools"][0]["version"] = version;
        stage.lists(offered).await;
        let list = stage.daemon.get("/api/v1/tools").await.json();
        assert_eq!(list["tools"][0]["provider_version"], shown);
        assert_eq!(
            list["tools"][0]["definition_version"]
                .as_str()
                .unwrap()
                .len(),
            32
        );
        assert_eq!(
            stage.daemon.get("/api/v1/tools/pay/explain").await.json()["provider_version"],
            shown
        );
    }
    let mut offered = offer("Pays an amount", &amount(&json!("number")));
    offered["tools"][0]["metadata"]["version"] = json!("3");
    stage.lists(offered).await;
    assert_eq!(
        stage.daemon.get("/api/v1/tools").await.json()["tools"][0]["provider_version"],
        "3"
    );
    stage.daemon.stop().await;
}

#[tokio::test]
async fn a_call_is_logged_with_the_version_that_it_was_sent_for() {
    let stage = Stage::start().await;
    let version = stage.listed().await;
    assert_eq!(stage.call(&version).await.status, 200);
    let log = stage.daemon.get("/api/v1/log?kind=call").await.json();
    let logged = log["lines"][0]["call"]["definition_version"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(logged.len() == 64 && logged.starts_with(&version), "{log}");
    stage.daemon.stop().await;
}

/// A definition of a tool that rates a text, in these words.
fn rating(description: &str) -> Definition {
    let output = json!({"type": "object", "properties": {"stars": {"type": "number"}}});
    let meta = json!({"type": "string", "const": "rate"});
    let properties = json!({"_tool": meta, "_output": output, "text": {"type": "string"}});
    let schema = json!({"type": "object", "description": description, "properties": properties});
    Definition::from_schema(Some("rate"), schema)
        .unwrap()
        .run_by("ratings/judge")
        .unwrap()
}

async fn until_judged(house: &House) -> Arc<ViewTool> {
    let found = |snapshot: &Snapshot| match snapshot.catalog.find(&NameRef::parse("rate")) {
        NameLookup::One(tool) if matches!(tool.execution, Execution::By(_)) => Some(tool),
        _ => None,
    };
    let is_ready =
        |snapshot: &Snapshot| found(snapshot).is_some() && house.route("ratings").is_some();
    house.until("the activity can run it", is_ready).await;
    found(&house.app.snapshot()).unwrap()
}

/// Its activity needs the approval, so the call waits as one of the activity.
#[tokio::test]
async fn a_call_that_waits_for_approval_of_its_activity_is_for_the_version_that_was_called() {
    let risky = json!({"enabled_by_default": true, "requires_approval": true});
    let judge = tool_with("judge", &json!({"type": "object"}), &risky);
    let ratings = Callee::echo(manifest("ratings", &[judge])).await;
    let house = House::with(&[("ratings", ratings.url())], |config| {
        config.definitions = vec![rating("Rates a text")];
    })
    .await;
    let seen = until_judged(&house).await.tool.version();
    let waits = async |house: &House, text: &str, version: Option<NamedVersion>| {
        let made_for = Request {
            definition_version: version,
            ..request("rate", &json!({"text": text}))
        };
        let refused = house.request(made_for).await.unwrap_err();
        let ExecuteError::ApprovalRequired {
            waiting: Some(waiting),
            ..
        } = refused
        else {
            panic!("{refused}")
        };
        waiting.id.to_string()
    };
    let first = waits(&house, "one", Some(seen.into())).await;
    let second = waits(&house, "two", Some(seen.into())).await;
    let unnamed = waits(&house, "three", None).await;
    let approve = async |house: &House, id: &str| {
        house
            .app
            .calls()
            .approve(id, "kim", WaitLimits::for_work(PATIENCE))
            .await
    };

    // The same definition: the stored call runs.
    let house = house
        .restart_with(|config| config.definitions = vec![rating("Rates a text")])
        .await;
    until_judged(&house).await;
    let answered = approve(&house, &first).await.unwrap();
    assert_eq!(answered.state, ApprovalState::Answered, "{answered:?}");
    assert_eq!(ratings.ran().len(), 1);

    let house = house
        .restart_with(|config| config.definitions = vec![rating("Rates a person")])
        .await;
    until_judged(&house).await;
    let refused = approve(&house, &second).await.unwrap_err().to_string();
    assert!(
        refused.contains("the definition of `definitions/rate` is not the one"),
        "{refused}"
    );
    assert_eq!(ratings.ran().len(), 1, "it was not sent");
    // A caller that named no version wants the tool as it is.
    assert_eq!(
        approve(&house, &unnamed).await.unwrap().state,
        ApprovalState::Answered
    );
    house.finish().await;
}
