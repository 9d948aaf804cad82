//! What an operator puts in place of a tool's texts and parameters: what lists show, what calls are
//! sent with, and what becomes of it when the tool changes.

use std::net::SocketAddr;

use callsheet::model::{FindingCode, ParameterOverrides, Secret, SettingsPatch};
use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool_with};
use crate::support::house::House;
use crate::support::mcp_client::McpClient;
use crate::support::serving::{Answer, ask};

const TARGET: &str = "tool:files/read";
const TOKEN: &str = "0123456789abcdef-topsecret";

/// A tool with a required root, a required path and an optional limit.
fn offered(properties: &Value, required: &Value) -> Value {
    let parameters = json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": false});
    manifest(
        "files",
        &[tool_with(
            "read",
            &parameters,
            &json!({"enabled_by_default": true}),
        )],
    )
}

fn properties() -> Value {
    json!({"root": {"type": "string", "description": "The folder."},
        "path": {"type": "string"}, "limit": {"type": "integer"}})
}

fn required() -> Value {
    json!(["root", "path"])
}

/// The overrides of most tests: one parameter fixed, one with a default, one described.
fn overrides() -> Value {
    json!({"root": {"fixed": "/srv"}, "limit": {"default": 10}, "path": {"description": "Below /srv."}})
}

struct Stage {
    callee: Callee,
    house: House,
    address: SocketAddr,
}

impl Stage {
    async fn start() -> Self {
        let callee = Callee::echo(offered(&properties(), &required())).await;
        let house = House::of(&[("files", callee.url())]).await;
        let address = house.serve().await;
        Self {
            callee,
            house,
            address,
        }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        ask(self.address, method, path, &headers, &body).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.send("GET", path, &Value::Null).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    async fn prefer(&self, scope: &str, member: &str, value: &Value) -> Answer {
        let body = json!({"scope": scope, "target": TARGET, member: value});
        self.send("PUT", "/api/v1/preferences", &body).await
    }

    async fn call(&self, arguments: &Value) -> Answer {
        let body = json!({"tool_name": "files/read", "arguments": arguments});
        self.send("POST", "/api/v1/tools/execute", &body).await
    }

    /// The tool as the plain list has it.
    async fn listed(&self) -> Value {
        self.get("/api/v1/tools").await["tools"][0].clone()
    }

    async fn offers(&self, properties: &Value, required: &Value) {
        self.callee.lists(offered(properties, required));
        self.house.refresh("files").await;
    }

    fn unfit(&self) -> Vec<String> {
        let snapshot = self.house.now();
        let found = snapshot.catalog.findings();
        let of_override = found
            .into_iter()
            .filter(|finding| finding.code == FindingCode::OverrideDoesNotFit);
        of_override.map(|finding| finding.message.clone()).collect()
    }

    async fn finish(self) {
        self.house.finish().await;
    }
}

#[tokio::test]
async fn texts_and_values_are_replaced_in_lists_and_calls() {
    let stage = Stage::start().await;
    let before = stage.listed().await;
    let revision = stage
        .house
        .revision(&callsheet::catalog::ViewQuery::default());
    let set = stage
        .prefer("global", "description", &json!("Reads a note."))
        .await;
    assert_eq!(set.status, 200, "{set:?}");
    let set = stage.prefer("global", "parameters", &overrides()).await;
    assert_eq!(set.json()["preference"]["parameters"], overrides());

    let after = stage.listed().await;
    assert_eq!(after["description"], "Reads a note.");
    let shown = &after["parameters"];
    assert_eq!(
        shown["properties"],
        json!({"path": {"type": "string", "description": "Below /srv."}, "limit": {"type": "integer", "default": 10}})
    );
    assert_eq!(shown["required"], json!(["path"]));
    assert_eq!(
        after["definition_version"], before["definition_version"],
        "the version is the provider's"
    );
    assert_ne!(
        stage
            .house
            .revision(&callsheet::catalog::ViewQuery::default()),
        revision
    );
    let found = stage
        .get("/api/v1/tools/search?q=note&detail=signature")
        .await;
    assert_eq!(
        found["signatures"],
        json!(["read(path: string, limit?: integer) - Reads a note."])
    );

    for (given, sent) in [
        (
            json!({"path": "a"}),
            json!({"path": "a", "limit": 10, "root": "/srv"}),
        ),
        (
            json!({"path": "a", "limit": 3}),
            json!({"path": "a", "limit": 3, "root": "/srv"}),
        ),
    ] {
        let answer = stage.call(&given).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(stage.callee.ran().last().unwrap().arguments, sent);
    }
    let runs = stage.callee.ran().len();
    for (given, pointer, part) in [
        (
            json!({"path": "a", "root": "/etc"}),
            "/root",
            "is fixed by an operator",
        ),
        (
            json!({"path": "a", "root": "/srv"}),
            "/root",
            "is fixed by an operator",
        ),
        (json!({"limit": 1}), "", "\"path\" is a required property"),
    ] {
        let answer = stage.call(&given).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        let violation = &answer.json()["violations"][0];
        assert_eq!(violation["pointer"], pointer, "{violation}");
        assert!(
            violation["message"].as_str().unwrap().contains(part),
            "{violation}"
        );
    }
    assert_eq!(stage.callee.ran().len(), runs, "refused calls are not sent");

    let client = McpClient::modern(stage.address, json!({}));
    let result = client
        .result(
            "tools/call",
            json!({"name": "files__read", "arguments": {"path": "b"}}),
        )
        .await;
    assert_eq!(result.get("isError"), None, "{result}");
    let last = stage.callee.ran().last().unwrap().arguments.clone();
    assert_eq!(last, json!({"path": "b", "limit": 10, "root": "/srv"}));

    let reset = stage
        .send(
            "DELETE",
            "/api/v1/preferences?scope=global&target=tool:files/read&setting=description,parameters",
            &Value::Null,
        )
        .await;
    assert_eq!(reset.status, 200, "{reset:?}");
    assert_eq!(stage.listed().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn an_explanation_has_both_texts_and_the_changes_are_no_history() {
    let stage = Stage::start().await;
    stage
        .prefer("global", "description", &json!("Reads a note."))
        .await;
    stage.prefer("global", "parameters", &overrides()).await;
    let explained = stage.get("/api/v1/tools/files%2Fread/explain").await;
    let steps = explained["steps"].as_array().unwrap();
    let outcomes = |subject: &str| -> Vec<&str> {
        let of = steps.iter().filter(|step| step["subject"] == subject);
        of.map(|step| step["outcome"].as_str().unwrap()).collect()
    };
    let offered = stage.house.now();
    let offered = offered.catalog.entries().next().unwrap();
    let offered = offered.manifest.tools[0].description.clone();
    assert_eq!(
        outcomes("description"),
        [format!(
            "shown as \"Reads a note.\"; its scenario says {offered:?}"
        )]
    );
    assert_eq!(
        outcomes("parameters"),
        [
            "`limit`: 10 is sent if it is left out",
            "`path`: shown as \"Below /srv.\"; its scenario says \"\"",
            "`root`: fixed to \"/srv\" and not shown",
        ]
    );
    let history = stage.get("/api/v1/tools/files%2Fread/history").await;
    assert_eq!(history["changes"], json!([]), "{history}");
    stage.finish().await;
}

#[tokio::test]
async fn narrower_scopes_replace_part_by_part_for_their_clients_only() {
    let stage = Stage::start().await;
    stage.prefer("global", "parameters", &overrides()).await;
    let narrow = json!({"root": {"description": "Not shown."}, "limit": {"fixed": 2}});
    stage.prefer("chat:7", "parameters", &narrow).await;
    let in_chat = |arguments: Value| json!({"tool_name": "files/read", "arguments": arguments, "chat_id": "7"});
    let body = in_chat(json!({"path": "a"}));
    let answer = stage.send("POST", "/api/v1/tools/execute", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        stage.callee.ran().last().unwrap().arguments,
        json!({"path": "a", "limit": 2, "root": "/srv"}),
        "what the wider scope fixes stays fixed"
    );
    let body = in_chat(json!({"path": "a", "limit": 3}));
    assert_eq!(
        stage
            .send("POST", "/api/v1/tools/execute", &body)
            .await
            .status,
        400
    );
    assert_eq!(
        stage.call(&json!({"path": "a", "limit": 3})).await.status,
        200
    );
    let mine = stage.get("/api/v1/tools?chat_id=7").await;
    assert_eq!(
        mine["tools"][0]["parameters"]["properties"],
        json!({"path": {"type": "string", "description": "Below /srv."}})
    );
    stage.finish().await;
}

#[tokio::test]
async fn an_approval_shows_and_runs_the_final_arguments() {
    let stage = Stage::start().await;
    stage.prefer("global", "parameters", &overrides()).await;
    stage.prefer("global", "approval", &json!("require")).await;
    let answer = stage.call(&json!({"path": "a"})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let id = answer.json()["approval_id"].as_str().unwrap().to_owned();
    let sent = json!({"path": "a", "limit": 10, "root": "/srv"});
    let waiting = stage.get(&format!("/api/v1/approvals/{id}")).await;
    assert_eq!(waiting["arguments"], sent, "{waiting}");
    // What was approved is what runs, whatever is fixed by then.
    stage
        .prefer(
            "global",
            "parameters",
            &json!({"root": {"fixed": "/other"}}),
        )
        .await;
    let path = format!("/api/v1/approvals/{id}/approve");
    let approved = stage.send("POST", &path, &json!({})).await;
    assert_eq!(approved.status, 200, "{approved:?}");
    assert_eq!(stage.callee.ran().last().unwrap().arguments, sent);
    stage.finish().await;
}

#[tokio::test]
async fn a_hidden_parameter_that_becomes_required_is_still_sent() {
    let stage = Stage::start().await;
    stage.offers(&properties(), &json!(["path"])).await;
    stage
        .prefer("global", "parameters", &json!({"root": {"fixed": "/srv"}}))
        .await;
    stage.offers(&properties(), &required()).await;
    assert!(stage.unfit().is_empty());
    assert_eq!(
        stage.listed().await["parameters"]["required"],
        json!(["path"])
    );
    assert_eq!(stage.call(&json!({"path": "a"})).await.status, 200);
    assert_eq!(
        stage.callee.ran().last().unwrap().arguments,
        json!({"path": "a", "root": "/srv"})
    );
    stage.finish().await;
}

#[tokio::test]
async fn a_tool_is_withheld_while_a_fixed_value_does_not_fit_it() {
    let stage = Stage::start().await;
    stage.prefer("global", "parameters", &overrides()).await;
    let mut other_type = properties();
    other_type["root"] = json!({"type": "integer"});
    let gone = json!({"path": {"type": "string"}, "limit": {"type": "integer"}});
    for (properties, required, why) in [
        (
            &other_type,
            required(),
            "cannot have the fixed value: it is a text, not of the type `integer`",
        ),
        (&gone, json!(["path"]), "is not one of the tool any more"),
    ] {
        stage.offers(properties, &required).await;
        let unfit = stage.unfit();
        assert_eq!(unfit.len(), 1, "{unfit:?}");
        assert!(
            unfit[0].contains(&format!("the parameter `root` {why}"))
                && unfit[0].contains("neither listed nor called"),
            "{unfit:?}"
        );
        assert!(stage.house.names().is_empty(), "it is withheld");
        // Switching it on elsewhere does not lift that.
        stage.prefer("chat:7", "enabled", &json!(true)).await;
        let in_chat = stage.get("/api/v1/tools?chat_id=7").await;
        assert_eq!(in_chat["tools"], json!([]));
        let refused = stage.call(&json!({"path": "a"})).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        let explained = stage.get("/api/v1/tools/files%2Fread/explain").await;
        let verdict = explained["verdict"].as_str().unwrap();
        assert!(
            verdict.contains("fixes does not fit it any more"),
            "{verdict}"
        );
    }
    assert!(stage.callee.ran().is_empty());
    stage.offers(&properties(), &required()).await;
    assert_eq!(stage.house.names(), ["read"], "it fits again");
    assert!(stage.unfit().is_empty());
    stage.finish().await;
}

#[tokio::test]
async fn a_tool_is_listed_without_a_default_or_text_that_does_not_fit() {
    let stage = Stage::start().await;
    let set = json!({"limit": {"default": 10}, "path": {"description": "Below /srv."}, "gone": {"description": "x"}});
    stage.prefer("global", "parameters", &set).await;
    let mut other_type = properties();
    other_type["limit"] = json!({"type": "string"});
    stage.offers(&other_type, &required()).await;
    let unfit = stage.unfit();
    assert_eq!(unfit.len(), 2, "{unfit:?}");
    assert!(
        unfit
            .iter()
            .all(|message| message.contains("listed without this override"))
    );
    let shown = stage.listed().await;
    assert_eq!(
        shown["parameters"]["properties"]["limit"],
        json!({"type": "string"})
    );
    assert_eq!(
        shown["parameters"]["properties"]["path"]["description"],
        "Below /srv."
    );
    let given = json!({"root": "/a", "path": "b"});
    assert_eq!(stage.call(&given).await.status, 200);
    assert_eq!(stage.callee.ran().last().unwrap().arguments, given);
    let in_chat = json!({"gone": {"fixed": 1}});
    stage.prefer("chat:7", "parameters", &in_chat).await;
    let unfit = stage.unfit();
    assert!(
        unfit
            .iter()
            .any(|message| message.ends_with("(scope chat:7)")),
        "{unfit:?}"
    );
    stage.finish().await;
}

#[tokio::test]
async fn what_cannot_be_an_override_is_refused() {
    let stage = Stage::start().await;
    for (member, value, part) in [
        (
            "parameters",
            json!({"password": {"fixed": "hunter2"}}),
            "looks like a secret",
        ),
        (
            "parameters",
            json!({"root": {"default": "ghp_0123"}}),
            "looks like a secret",
        ),
        ("parameters", json!({"root": {}}), "sets no value"),
        (
            "parameters",
            json!({"root": {"default": 1, "fixed": 2}}),
            "a default and a fixed value",
        ),
        (
            "parameters",
            json!({"root": {"hidden": true}}),
            "cannot be read",
        ),
        ("parameters", json!([]), "cannot be read"),
        (
            "parameters",
            json!({"root": {"fixed": "x".repeat(20_000)}}),
            "may have 16384",
        ),
        ("description", json!("x".repeat(100_000)), "may have 8192"),
        ("description", json!("a\u{1b}b"), "control characters"),
        ("description", json!(7), "`description`"),
    ] {
        let refused = stage.prefer("global", member, &value).await;
        assert_eq!(refused.status, 400, "{member} {value}");
        let problem = refused.json();
        assert!(
            problem["error"].as_str().unwrap().contains(part),
            "{problem}"
        );
    }
    for target in ["scenario:files", "tag:x", "category:x"] {
        for (member, value) in [("description", json!("x")), ("parameters", overrides())] {
            let body = json!({"scope": "global", "target": target, member: value});
            let refused = stage.send("PUT", "/api/v1/preferences", &body).await;
            assert_eq!(refused.status, 400, "{target} {member}");
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn overrides_take_the_operators_token() {
    let callee = Callee::echo(offered(&properties(), &required())).await;
    let house = House::with(&[("files", callee.url())], |config| {
        config.server.operator_token = Some(Secret::new(TOKEN));
    })
    .await;
    let address = house.serve().await;
    let bearer = format!("Bearer {TOKEN}");
    for (member, value) in [("description", json!("x")), ("parameters", overrides())] {
        for value in [value, Value::Null] {
            let body = json!({"scope": "chat:7", "target": TARGET, member: value}).to_string();
            let plain = [("content-type", "application/json")];
            let refused = ask(address, "PUT", "/api/v1/preferences", &plain, &body).await;
            assert_eq!(refused.status, 401, "{member}: {refused:?}");
            let headers = [
                ("content-type", "application/json"),
                ("authorization", &*bearer),
            ];
            let set = ask(address, "PUT", "/api/v1/preferences", &headers, &body).await;
            assert_eq!(set.status, 200, "{member}: {set:?}");
        }
    }
    house.finish().await;
}

#[tokio::test]
async fn overrides_survive_a_restart() {
    let callee = Callee::echo(offered(&properties(), &required())).await;
    let house = House::of(&[("files", callee.url())]).await;
    let parameters = ParameterOverrides::parse(&overrides().to_string()).unwrap();
    let patch = SettingsPatch {
        description: Some(Some("Reads a note.".into())),
        parameters: Some(Some(parameters)),
        ..SettingsPatch::default()
    };
    house.prefer("global", TARGET, patch).await;
    let revision = house.revision(&callsheet::catalog::ViewQuery::default());
    let house = house.restart().await;
    house.until_listed(&["read"]).await;
    assert_eq!(
        house.revision(&callsheet::catalog::ViewQuery::default()),
        revision
    );
    let answer = house.call("read", &json!({"path": "a"})).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(
        callee.ran().last().unwrap().arguments,
        json!({"path": "a", "limit": 10, "root": "/srv"})
    );
    house.finish().await;
}
