//! Versions of definitions: what a caller saw is what it calls.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::call_end_faces::post;
use crate::support::callee::{Callee, manifest, tool_with};
use crate::support::daemon::{Daemon, Home, configured};
use crate::support::serving::Answer;

/// A daemon with one tool, whose definition the test changes.
struct Stage {
    callee: Callee,
    daemon: Daemon,
    _home: Home,
}

fn offer(description: &str, parameters: &Value) -> Value {
    let mut pay = tool_with("pay", parameters, &json!({"enabled_by_default": true, "tags": ["money"]}));
    pay["description"] = description.into();
    manifest("bank", &[pay])
}

fn amount(types: &Value) -> Value {
    json!({"type": "object", "properties": {"amount": {"type": types}}, "required": ["amount"]})
}

impl Stage {
    async fn start() -> Self {
        let callee = Callee::echo(offer("Pays an amount", &amount(&json!(["number", "string"])))).await;
        let home = Home::new();
        let mut config = home.config(&[]);
        config.scenarios = vec![configured("bank", ([127, 0, 0, 1], callee.port()).into())];
        let daemon = Daemon::ready(config).await;
        Self { callee, daemon, _home: home }
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
        list["tools"][0]["definition_version"].as_str().unwrap().to_owned()
    }

    async fn call(&self, version: &str) -> Answer {
        let body = json!({"tool_name": "pay", "arguments": {"amount": 1}, "definition_version": version});
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

    stage.lists(offer("Pays an amount twice", &amount(&json!(["number", "string"])))).await;
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
    stage.lists(offer("Pays an amount", &amount(&json!(["number", "string"])))).await;
    assert_eq!(stage.call(&first).await.status, 200);
    stage.daemon.stop().await;
}

#[tokio::test]
async fn a_turn_runs_calls_of_the_definitions_that_its_model_saw() {
    let stage = Stage::start().await;
    let list = stage.daemon.get("/api/v1/tools?format=openai").await;
    let revision = list.headers["callsheet-revision"].to_str().unwrap().to_owned();
    let turn = async |id: &str| {
        let function = json!({"name": "pay", "arguments": "{\"amount\":1}"});
        let call = json!({"id": id, "type": "function", "function": function});
        let response = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let body = json!({"response": response, "revision": revision});
        post(stage.address(), "/api/v1/turns?format=openai", &body).await.json()
    };
    assert_eq!(turn("c1").await["calls"][0]["status"], "result");
    stage.lists(offer("Pays an amount twice", &amount(&json!("number")))).await;
    let later = turn("c2").await;
    assert_eq!(later["calls"][0]["status"], "refused", "{later}");
    assert_eq!(later["calls"][0]["code"], "stale_definition", "{later}");
    assert_eq!(stage.callee.ran().len(), 1);
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
        assert_eq!(list["tools"][0]["definition_version"].as_str().unwrap().len(), 32);
        assert_eq!(stage.daemon.get("/api/v1/tools/pay/explain").await.json()["provider_version"], shown);
    }
    let mut offered = offer("Pays an amount", &amount(&json!("number")));
    offered["tools"][0]["metadata"]["version"] = json!("3");
    stage.lists(offered).await;
    assert_eq!(stage.daemon.get("/api/v1/tools").await.json()["tools"][0]["provider_version"], "3");
    stage.daemon.stop().await;
}
