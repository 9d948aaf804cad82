//! A daemon with a scenario for each way in which a call can end.

use std::net::SocketAddr;
use std::time::Duration;

use axum::response::Response;
use callsheet::config::Config;
use callsheet::discovery::SourceTrust;
use callsheet::model::{Profile, ScenarioState};
use callsheet::protocols::definitions::Definition;
use callsheet::runtime::Tasks;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::call_end_faces::{Face, Wanted, line, masked, post};
use crate::call_ends::Row;
use crate::support::callee::{Callee, Ran, answer, done, manifest, text, tool, tool_with};
use crate::support::house::House;
use crate::support::module::{self, Module};
use crate::support::scripted_session::Script;
use crate::support::serving::{Answer, ask};

/// The largest answer of a tool that is accepted.
const MOST_BODY: usize = 20_000;
/// Calls of one scenario that may be under way: one more may run beside the poll of an operation.
const HELD: usize = 2;
/// Failures in a row after which a tool is not called: more than there are faces, each of which
/// has it fail once.
const BREAKER_FAILURES: u32 = 10;
/// A bundle of stored tools.
const BUNDLE: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    house: House,
    callees: Vec<Callee>,
    script: Script,
    module: Module,
    held: Vec<JoinHandle<Answer>>,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let script = Script::of(&["inert", "input"]);
        let module = Module::start(
            "box",
            &["box.open", "box.off", "box.lock"].map(|name| module::tool(name, "guest")),
        )
        .await;
        let house = House::speaking(script.protocol(), |config| configure(config, &module)).await;
        house.place(
            "script",
            "local:script".parse().unwrap(),
            SourceTrust::Trusted,
        );
        let mut callees = Vec::new();
        for (name, tools) in offers() {
            let callee =
                Callee::start(manifest(name, &tools), |ran| async move { run(&ran).await }).await;
            house.place(name, callee.url(), SourceTrust::Trusted);
            callees.push(callee);
        }
        for (name, _) in offers() {
            house.until_state(name, ScenarioState::Live).await;
        }
        house.until_state("script", ScenarioState::Live).await;
        house.until_state("box", ScenarioState::Live).await;
        for (callee, (name, _)) in callees.iter_mut().zip(offers()) {
            if name.starts_with("gone") || name == "absent" {
                callee.kill().await;
            }
        }
        let address = house.serve().await;
        let held = (0..HELD).map(|_| hold(address)).collect();
        let stage = Self {
            address,
            house,
            callees,
            script,
            module,
            held,
        };
        stage.prepare().await;
        stage
    }

    /// Brings scenarios into the states that the cases name.
    async fn prepare(&self) {
        self.callee("narrow").until_ran(HELD).await;
        let blocked = post(self.address, "/api/v1/scenarios/shady/block", &json!({})).await;
        assert_eq!(blocked.status, 200, "{blocked:?}");
        for _ in 0..20 {
            if self.house.refresh("absent").await.state == ScenarioState::Down {
                break;
            }
        }
        assert_eq!(self.house.health("absent").state, ScenarioState::Down);
        let frail = Wanted::of("frail");
        for _ in 0..BREAKER_FAILURES {
            Face::Http.call(self.address, &frail).await;
        }
    }

    fn callee(&self, name: &str) -> &Callee {
        let number = offers()
            .iter()
            .position(|(offered, _)| *offered == name)
            .unwrap();
        &self.callees[number]
    }

    /// The id of the one approval that waits.
    pub(crate) async fn waiting(&self) -> String {
        let all = ask(
            self.address,
            "GET",
            "/api/v1/approvals?state=waiting",
            &[],
            "",
        )
        .await
        .json();
        assert_eq!(all["approvals"].as_array().unwrap().len(), 1, "{all:#}");
        all["approvals"][0]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn finish(self) {
        self.held.iter().for_each(JoinHandle::abort);
        drop(self.script);
        drop(self.module);
        self.house.finish().await;
    }
}

fn configure(config: &mut Config, module: &Module) {
    config.calls.max_body = MOST_BODY;
    config.calls.concurrency = HELD;
    config.calls.queue = 0;
    config.calls.retries = 0;
    config.calls.breaker_failures = BREAKER_FAILURES;
    config.calls.breaker_open = Duration::from_secs(3600);
    config.calls.poll_min = Duration::from_millis(5);
    config.calls.reroute_wait = Duration::from_millis(20);
    config.health.grace = Duration::from_millis(1);
    config.modules.timeout = Duration::from_millis(900);
    let guest = Profile {
        scenarios: Some(["desk".parse().unwrap()].into()),
        ..Profile::default()
    };
    config.profiles.insert("guest".to_owned(), guest);
    config.definitions = vec![
        definition("rate", ""),
        definition("adrift", "missing_program"),
    ];
    module.configure(config);
    config.bundles.path = Some(config.state.path.with_file_name("bundles"));
    config.bundles.allowed_hosts = vec!["127.0.0.1".parse().unwrap()];
}

/// A definition of a tool that rates a text, run by this activity.
fn definition(name: &str, activity: &str) -> Definition {
    let schema = json!({"type": "object", "description": "Rates a text", "required": ["text"], "properties": {
        "_tool": {"type": "string", "const": name}, "_activity": {"type": "string", "const": activity},
        "text": {"type": "string"},
        "_output": {"type": "object", "required": ["stars"], "properties": {"stars": {"type": "number"}}}}});
    Definition::from_schema(Some(name), schema).unwrap()
}

/// A schema that not everything fits.
fn numbers() -> Value {
    json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "m": {"type": "string"}}})
}

/// The scenarios and their tools.
fn offers() -> Vec<(&'static str, Vec<Value>)> {
    let desk = vec![
        tool("give"),
        tool("fail"),
        with("off", &json!({"enabled_by_default": false})),
        tool_with("strict", &numbers(), &json!({"enabled_by_default": true})),
        with(
            "wipe",
            &json!({"enabled_by_default": true, "requires_approval": true}),
        ),
        with(
            "shred",
            &json!({"enabled_by_default": true, "requires_approval": true}),
        ),
        with(
            "often",
            &json!({"enabled_by_default": true, "rate_limit_per_minute": 1}),
        ),
        with(
            "slow",
            &json!({"enabled_by_default": true, "timeout_seconds": 1}),
        ),
        tool("garbled"),
        tool("crash"),
        tool("large"),
    ];
    let takes_run = json!({"type": "object", "required": ["run_id"], "properties": {"run_id": {"type": "string"}}});
    let runs = vec![
        with("start", &long_running(&json!("get_run"))),
        with("start_badly", &long_running(&json!("get_bad_run"))),
        with(
            "start_alone",
            &json!({"enabled_by_default": true, "long_running": true}),
        ),
        tool_with("get_run", &takes_run, &json!({"enabled_by_default": true})),
        tool_with(
            "get_bad_run",
            &takes_run,
            &json!({"enabled_by_default": true}),
        ),
    ];
    vec![
        ("desk", desk),
        ("left", vec![tool("twin")]),
        ("right", vec![tool("twin")]),
        ("shady", vec![tool("peek")]),
        ("narrow", vec![tool("hold"), tool("squeeze")]),
        ("frail", vec![tool("frail")]),
        ("runs", runs),
        ("absent", vec![tool("work")]),
        ("gone-http", vec![tool("vanish")]),
        ("gone-mcp", vec![tool("vanish")]),
        ("gone-json-rpc", vec![tool("vanish")]),
        ("gone-turns", vec![tool("vanish")]),
    ]
}

fn with(name: &str, metadata: &Value) -> Value {
    tool_with(name, &json!({"type": "object", "properties": {}}), metadata)
}

fn long_running(status_tool: &Value) -> Value {
    json!({"enabled_by_default": true, "long_running": true, "async_behavior": {
        "status_polling": {"status_tool": status_tool, "operation_id_field": "run_id", "status_tool_id_param": "run_id",
            "poll_interval_seconds": 0.02},
        "completion_conditions": {"status_field": "status", "success_values": ["done"], "failure_values": ["failed"],
            "error_field": "why", "result_field": "output"}}})
}

impl Stage {
    /// The rows of the modules' own route.
    pub(crate) async fn of_modules(&self) -> Vec<Row> {
        let require =
            json!({"scope": "global", "target": "tool:box/box.lock", "approval": "require"});
        self.prefer(&require).await;
        let off = json!({"scope": "global", "target": "tool:box/box.off", "enabled": false});
        self.prefer(&off).await;
        let calls = [
            (
                "done",
                "box",
                json!({"tool_name": "box.open", "arguments": {"n": 1}}),
            ),
            (
                "failed by the tool",
                "box",
                json!({"tool_name": "box.open", "arguments": {"fail": "stuck"}}),
            ),
            (
                "answered with 500",
                "box",
                json!({"tool_name": "box.open", "arguments": {"status": 500, "say": "broken"}}),
            ),
            (
                "timeout",
                "box",
                json!({"tool_name": "box.open", "arguments": {"hang": true}}),
            ),
            ("no module's name", "box", json!({"tool_name": "open"})),
            (
                "unknown module",
                "crate",
                json!({"tool_name": "crate.open"}),
            ),
            ("unknown tool", "box", json!({"tool_name": "box.nope"})),
            (
                "out of bounds",
                "box",
                json!({"tool_name": "box.open", "profile": "guest"}),
            ),
            (
                "unknown profile",
                "box",
                json!({"tool_name": "box.open", "profile": "ghost"}),
            ),
            ("disabled", "box", json!({"tool_name": "box.off"})),
            (
                "waits for approval",
                "box",
                json!({"tool_name": "box.lock", "arguments": {}}),
            ),
            ("no call", "box", json!({"tool_name": 7})),
        ];
        let mut rows = Vec::new();
        for (way, module, body) in calls {
            let answer = post(
                self.address,
                &format!("/api/modules/{module}/execute"),
                &body,
            )
            .await;
            rows.push(Row {
                face: "modules",
                way,
                answer: masked(&line(&answer)),
            });
        }
        rows
    }

    /// The rows of the route of stored tools.
    pub(crate) async fn of_stored_tools(&self) -> Vec<Row> {
        self.store(
            "",
            &json!({"slug": "net", "displayName": "Net", "isEnabled": true}),
        )
        .await;
        for slug in ["get", "off", "fails", "lock", "strict"] {
            let schema = if slug == "strict" {
                numbers()
            } else {
                json!({})
            };
            let path = if slug == "fails" {
                "nowhere"
            } else {
                "api/v1/tools"
            };
            let url = format!("{}{path}", self.callee("left").url());
            let tool = json!({"displayName": slug, "description": "Does something", "type": "http", "argSchema": schema,
                "isEnabled": slug != "off", "impl": {"method": "GET", "urlTemplate": url}});
            self.store(&format!("/tools/{slug}/version/v1"), &tool)
                .await;
        }
        let require =
            json!({"scope": "global", "target": "tool:net/lock_v1", "approval": "require"});
        self.prefer(&require).await;
        let calls = [
            ("done", "get", json!({"args": {}})),
            ("failed by the tool", "fails", json!({"args": {}})),
            ("disabled", "off", json!({"args": {}})),
            (
                "invalid arguments",
                "strict",
                json!({"args": {"n": "many"}}),
            ),
            ("arguments that are no object", "get", json!({"args": 7})),
            ("waits for approval", "lock", json!({"args": {}})),
            ("unknown tool", "nope", json!({"args": {}})),
        ];
        let mut rows = Vec::new();
        for (way, slug, body) in calls {
            let target = format!("/tools/bundles/{BUNDLE}/tools/{slug}/version/v1/invoke");
            let answer = post(self.address, &target, &body).await;
            rows.push(Row {
                face: "stored tools",
                way,
                answer: masked(&line(&answer)),
            });
        }
        rows
    }

    async fn prefer(&self, preference: &Value) {
        let json_body = [("content-type", "application/json")];
        let answer = ask(
            self.address,
            "PUT",
            "/api/v1/preferences",
            &json_body,
            &preference.to_string(),
        )
        .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    async fn store(&self, path: &str, document: &Value) {
        let target = format!("/tools/bundles/{BUNDLE}{path}");
        let json_body = [("content-type", "application/json")];
        let answer = ask(
            self.address,
            "PUT",
            &target,
            &json_body,
            &document.to_string(),
        )
        .await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
}

/// Runs a tool of any of the scenarios.
async fn run(ran: &Ran) -> Response {
    match ran.tool.as_str() {
        "fail" | "shred" => answer(
            200,
            &json!({"success": false, "error": "no paper", "code": "E_PAPER"}),
        ),
        "slow" | "hold" => std::future::pending().await,
        "garbled" | "frail" => text(200, "<html>not JSON"),
        "crash" => answer(500, &json!({"error": "it broke"})),
        "large" => done(&json!("x".repeat(2 * MOST_BODY))),
        "start" | "start_badly" | "start_alone" => answer(
            202,
            &json!({"success": true, "is_async": true, "run_id": "r-1", "status": "running", "result": {"run_id": "r-1"}}),
        ),
        "get_run" => done(&json!({"status": "done", "output": {"rows": 3}})),
        "get_bad_run" => done(&json!({"status": "failed", "why": "the disk is full"})),
        _ => done(&ran.arguments),
    }
}

/// A call that is under way for the whole test.
fn hold(address: SocketAddr) -> JoinHandle<Answer> {
    let wanted = Wanted::of("narrow/hold");
    Tasks::new().spawn(async move { Face::Http.call(address, &wanted).await })
}
