//! A Rust program becomes a scenario: what it registers is served as the Tool Discovery Protocol
//! asks, and changes while it is served.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::provide::{
    self, CategoryDefinition, Cost, InvalidDefinition, Parameter, Provider, Registry,
    RegistryConfig, Shadowed, StaticProvider, ToolDefinition,
};
use callsheet::runtime::{StopTrigger, Tasks};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

fn registry() -> Registry {
    let config = RegistryConfig {
        scenario_name: "workshop".to_owned(),
        scenario_version: "2.1.0".to_owned(),
        scenario_description: "Saws and glues".to_owned(),
        ..RegistryConfig::default()
    };
    Registry::new(config).unwrap()
}

fn tool(name: &str, description: &str) -> ToolDefinition {
    ToolDefinition::new(name, description).unwrap()
}

fn category(id: &str, name: &str) -> CategoryDefinition {
    CategoryDefinition::new(id, name).unwrap()
}

/// A tool with everything set.
fn cut_board() -> ToolDefinition {
    tool("cut_board", "Cuts a board to length")
        .category("wood")
        .parameter(
            "length",
            Parameter::integer("Length in millimetres")
                .required()
                .minimum(10)
                .maximum(4000),
        )
        .parameter(
            "blade",
            Parameter::choice("Which saw", ["fine", "coarse"]).default_value("fine"),
        )
        .requires_approval(true)
        .timeout_seconds(30)
        .rate_limit_per_minute(6)
        .cost_estimate(Cost::Medium)
        .long_running(true)
        .idempotent(false)
        .tags(["wood", "saw"])
        .example("A shelf", json!({ "length": 800 }))
        .metadata("modifies_state", true)
}

/// A registry as it is really served.
struct Scenario {
    base: String,
    trigger: StopTrigger,
    serving: JoinHandle<std::io::Result<()>>,
    client: reqwest::Client,
}

/// An answer, read whole.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Scenario {
    async fn start(registry: &Registry) -> Self {
        // A second installation is refused, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (trigger, stop) = StopTrigger::new();
        let serving = Tasks::new().spawn(provide::serve(listener, registry.clone(), async move {
            stop.wait().await;
        }));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            base,
            trigger,
            serving,
            client,
        }
    }

    async fn ask(&self, method: Method, path: &str, if_none_match: Option<&str>) -> Answer {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(tag) = if_none_match {
            request = request.header("if-none-match", tag);
        }
        let mut response = request.send().await.unwrap();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            body.extend_from_slice(&chunk);
        }
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    /// The status and the answer of a call.
    async fn call(&self, body: impl ToString) -> (u16, Value) {
        let url = format!("{}/api/v1/tools/execute", self.base);
        let mut response = self
            .client
            .post(url)
            .body(body.to_string())
            .send()
            .await
            .unwrap();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            body.extend_from_slice(&chunk);
        }
        (
            response.status().as_u16(),
            serde_json::from_slice(&body).unwrap(),
        )
    }
}

impl Answer {
    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn tag(&self) -> &str {
        self.header("etag").unwrap()
    }
}

fn names(manifest: &Value) -> Vec<&str> {
    manifest["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_manifest_is_in_the_protocols_spelling() {
    let registry = Registry::with_clock(
        RegistryConfig {
            base_url: Some("http://127.0.0.1:15999".to_owned()),
            max_age: Duration::from_secs(90),
            ..registry().config().clone()
        },
        || "2026-02-03T04:05:06Z".parse().unwrap(),
    )
    .unwrap();
    registry.register(
        StaticProvider::new("saws").tool(cut_board()).category(
            category("wood", "Wood")
                .icon("axe")
                .description("What was a tree")
                .display_order(2),
        ),
    );
    let manifest = registry.manifest();
    let expected = json!({
        "protocol_version": "1.0",
        "scenario": {
            "name": "workshop", "version": "2.1.0", "description": "Saws and glues", "base_url": "http://127.0.0.1:15999"
        },
        "tools": [{
            "name": "cut_board",
            "description": "Cuts a board to length",
            "category": "wood",
            "parameters": {
                "type": "object",
                "properties": {
                    "length": { "type": "integer", "description": "Length in millimetres", "minimum": 10, "maximum": 4000 },
                    "blade": { "type": "string", "description": "Which saw", "enum": ["fine", "coarse"], "default": "fine" }
                },
                "required": ["length"]
            },
            "metadata": {
                "enabled_by_default": true,
                "requires_approval": true,
                "timeout_seconds": 30,
                "rate_limit_per_minute": 6,
                "cost_estimate": "medium",
                "long_running": true,
                "idempotent": false,
                "tags": ["wood", "saw"],
                "examples": [{ "description": "A shelf", "input": { "length": 800 } }],
                "modifies_state": true
            }
        }],
        "categories": [
            { "id": "wood", "name": "Wood", "description": "What was a tree", "icon": "axe", "display_order": 2 }
        ],
        "generated_at": "2026-02-03T04:05:06Z"
    });
    assert_eq!(
        serde_json::to_string_pretty(&manifest).unwrap(),
        serde_json::to_string_pretty(&expected).unwrap()
    );

    let scenario = Scenario::start(&registry).await;
    let answer = scenario.get("/api/v1/tools").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json(), manifest);
    assert_eq!(answer.header("cache-control"), Some("public, max-age=90"));
}

#[tokio::test]
async fn an_empty_registry_is_a_valid_scenario() {
    let scenario = Scenario::start(&registry()).await;
    let answer = scenario.get("/api/v1/tools").await;
    assert_eq!(answer.header("cache-control"), Some("public, max-age=60"));
    let manifest = answer.json();
    assert_eq!(manifest["tools"], json!([]));
    assert_eq!(manifest["categories"], json!([]));
    assert!(
        manifest["generated_at"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .is_ok()
    );
    let health = scenario.get("/health").await;
    assert_eq!(
        health.json(),
        json!({ "status": "ok", "scenario": "workshop", "version": "2.1.0" })
    );
}

#[tokio::test]
async fn a_known_manifest_is_not_sent_again() {
    let registry = registry();
    registry.register(StaticProvider::new("saws").tool(tool("cut", "Cuts")));
    let scenario = Scenario::start(&registry).await;
    let first = scenario.get("/api/v1/tools").await;
    assert!(
        first.tag().starts_with('"'),
        "a strong tag: {}",
        first.tag()
    );
    let second = scenario.get("/api/v1/tools").await;
    assert_eq!(
        first.body, second.body,
        "the same content is the same bytes, its time included"
    );

    for known in [
        first.tag(),
        "*",
        &format!("\"other\", {}", first.tag()),
        &format!("W/{}", first.tag()),
    ] {
        let answer = scenario
            .ask(Method::GET, "/api/v1/tools", Some(known))
            .await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED, "{known}");
        assert!(answer.body.is_empty(), "{known}");
        assert_eq!(answer.tag(), first.tag());
        assert_eq!(
            answer.header("cache-control"),
            first.header("cache-control")
        );
    }
    let unknown = scenario
        .ask(Method::GET, "/api/v1/tools", Some("\"other\""))
        .await;
    assert_eq!(unknown.status, StatusCode::OK);
    assert_eq!(unknown.body, first.body.clone());

    let head = scenario.ask(Method::HEAD, "/api/v1/tools", None).await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.body.len(), 0);
    assert_eq!(head.tag(), first.tag());
    assert_eq!(
        head.header("content-length"),
        Some(&*first.body.len().to_string())
    );

    // The same offer of another process has the same tag.
    let twin = self::registry();
    twin.register(StaticProvider::new("other").tool(tool("cut", "Cuts")));
    assert_eq!(
        Scenario::start(&twin)
            .await
            .get("/api/v1/tools")
            .await
            .tag(),
        first.tag()
    );
}

/// A provider whose tools come and go.
#[derive(Clone, Default)]
struct Plugins(Arc<Mutex<Vec<ToolDefinition>>>);

impl Provider for Plugins {
    fn name(&self) -> &'static str {
        "plugins"
    }

    fn tools(&self) -> Vec<ToolDefinition> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn what_changes_while_it_is_served_shows_at_once() {
    let registry = registry();
    let plugins = Plugins::default();
    registry.register(plugins.clone());
    let scenario = Scenario::start(&registry).await;
    let mut seen = vec![scenario.get("/api/v1/tools").await];

    registry.register(StaticProvider::new("saws").tool(tool("cut", "Cuts")));
    seen.push(scenario.get("/api/v1/tools").await);
    assert_eq!(names(&seen[1].json()), ["cut"]);

    plugins.0.lock().unwrap().push(tool("bend", "Bends"));
    seen.push(scenario.get("/api/v1/tools").await);
    assert_eq!(names(&seen[2].json()), ["bend", "cut"]);
    assert_eq!(
        scenario.get("/api/v1/tools/bend").await.status,
        StatusCode::OK
    );

    registry.register(StaticProvider::new("saws").tool(tool("slice", "Slices")));
    seen.push(scenario.get("/api/v1/tools").await);
    assert_eq!(names(&seen[3].json()), ["bend", "slice"]);

    assert!(registry.unregister("plugins") && !registry.unregister("plugins"));
    seen.push(scenario.get("/api/v1/tools").await);
    assert_eq!(names(&seen[4].json()), ["slice"]);
    assert_eq!(
        scenario.get("/api/v1/tools/bend").await.status,
        StatusCode::NOT_FOUND
    );

    for pair in seen.windows(2) {
        let time = |answer: &Answer| {
            answer.json()["generated_at"]
                .as_str()
                .unwrap()
                .parse::<jiff::Timestamp>()
                .unwrap()
        };
        assert_ne!(pair[0].tag(), pair[1].tag());
        assert!(time(&pair[0]) <= time(&pair[1]));
        let answer = scenario
            .ask(Method::GET, "/api/v1/tools", Some(pair[0].tag()))
            .await;
        assert_eq!(answer.status, StatusCode::OK, "an old tag is not confirmed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_whole_manifests_while_providers_change() {
    let registry = registry();
    let scenario = Scenario::start(&registry).await;
    let pair = |n: u32| {
        StaticProvider::new("pair").with_tools(["a", "b"].map(|name| tool(name, &n.to_string())))
    };
    registry.register(pair(0));
    let changing = registry.clone();
    let changes =
        Tasks::new().spawn_blocking(move || (1..300).for_each(|n| changing.register(pair(n))));
    for _ in 0..50 {
        let manifest = scenario.get("/api/v1/tools").await.json();
        assert_eq!(names(&manifest), ["a", "b"]);
        assert_eq!(
            manifest["tools"][0]["description"],
            manifest["tools"][1]["description"]
        );
    }
    changes.await.unwrap();
    assert_eq!(registry.manifest()["tools"][0]["description"], "299");
}

#[tokio::test]
async fn offers_are_merged_in_a_stable_way() {
    let saws = || {
        let provider = StaticProvider::new("saws")
            .tool(tool("cut", "Saws it"))
            .tool(tool("trim", "Trims"));
        provider
            .category(category("work", "Sawing"))
            .category(category("wood", "Wood"))
    };
    let lasers = || {
        let provider = StaticProvider::new("lasers")
            .tool(tool("cut", "Burns it"))
            .tool(tool("aim", "Aims"));
        provider.category(category("work", "Burning"))
    };
    let registry = registry();
    registry.register(saws());
    registry.register(lasers());
    let manifest = registry.manifest();
    assert_eq!(names(&manifest), ["aim", "cut", "trim"]);
    assert_eq!(
        manifest["tools"][1]["description"], "Saws it",
        "no newcomer takes a tool over"
    );
    assert_eq!(
        manifest["categories"],
        json!([{ "id": "wood", "name": "Wood" }, { "id": "work", "name": "Burning" }])
    );
    let shadowed = |provider: &str, kept: &str| Shadowed {
        tool: "cut".into(),
        provider: provider.into(),
        kept: kept.into(),
    };
    assert_eq!(registry.shadowed(), [shadowed("lasers", "saws")]);

    // Replacing a provider keeps its place; leaving gives it up.
    registry.register(saws());
    assert_eq!(registry.shadowed(), [shadowed("lasers", "saws")]);
    registry.unregister("saws");
    assert_eq!(registry.manifest()["tools"][1]["description"], "Burns it");
    assert_eq!(registry.shadowed(), []);
    registry.register(saws());
    assert_eq!(registry.shadowed(), [shadowed("saws", "lasers")]);
}

#[tokio::test]
async fn one_tool_is_served_by_its_name() {
    let registry = registry();
    let cut = tool("cut", "Cuts").category("wood");
    registry.register(
        StaticProvider::new("saws")
            .tool(cut.clone())
            .tool(tool("trim", "Trims")),
    );
    let scenario = Scenario::start(&registry).await;
    let answer = scenario.get("/api/v1/tools/cut").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json(), cut.to_json());
    assert_eq!(answer.header("cache-control"), Some("public, max-age=60"));
    assert_ne!(answer.tag(), scenario.get("/api/v1/tools/trim").await.tag());
    let known = scenario
        .ask(Method::GET, "/api/v1/tools/cut", Some(answer.tag()))
        .await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    assert_eq!(known.tag(), answer.tag());
}

#[tokio::test]
async fn tools_with_a_function_run_when_they_are_called() {
    let registry = registry();
    let cut = |given: Value| async move {
        let length = given["length"].as_u64().ok_or("`length` is missing")?;
        Ok::<_, &str>(json!({ "pieces": 4000 / length }))
    };
    let none = |_: Value| async { Ok::<_, String>(Value::Null) };
    let saws = StaticProvider::new("saws")
        .runs(cut_board(), cut)
        .runs(tool("execute", "Named like a route"), none);
    registry.register(saws.tool(tool("sharpen", "Only listed")));
    let late =
        |_: Value| async { Ok::<_, String>(json!("never: the first provider owns the tool")) };
    registry.register(StaticProvider::new("late").runs(cut_board(), late));
    let scenario = Scenario::start(&registry).await;
    let called = scenario
        .call(json!({ "tool_name": "cut_board", "arguments": { "length": 800 } }))
        .await;
    assert_eq!(
        called,
        (200, json!({ "success": true, "result": { "pieces": 5 } }))
    );
    let failed = scenario.call(json!({ "tool_name": "cut_board" })).await;
    assert_eq!(
        failed,
        (
            200,
            json!({ "success": false, "error": "`length` is missing", "code": "failed" })
        )
    );
    assert_eq!(
        scenario.get("/api/v1/tools/execute").await.json()["name"],
        "execute"
    );
    assert_eq!(
        scenario.call(json!({ "tool_name": "execute" })).await.1["success"],
        true
    );
    for (body, status, code) in [
        (json!({ "tool_name": "sharpen" }), 501, "not_callable"),
        (json!({ "tool_name": "weld" }), 404, "unknown_tool"),
        (
            json!({ "tool_name": "cut_board", "arguments": [] }),
            400,
            "invalid_args",
        ),
        (json!({ "arguments": {} }), 400, "invalid_args"),
        (json!("nonsense"), 400, "invalid_args"),
        // An array of the members in their order.
        (json!(["cut_board", { "length": 800 }]), 400, "invalid_args"),
    ] {
        let (answered, answer) = scenario.call(&body).await;
        assert_eq!(answered, status, "{body}");
        assert_eq!(answer["code"], json!(code), "{body}");
        assert_eq!(answer["success"], false, "{body}");
    }
    let options = scenario
        .ask(Method::OPTIONS, "/api/v1/tools/execute", None)
        .await;
    assert_eq!(options.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
}

#[tokio::test]
async fn what_is_not_there_is_refused_as_the_protocol_says() {
    let scenario = Scenario::start(&registry()).await;
    for (method, path, status, error, message) in [
        (
            Method::GET,
            "/api/v1/tools/weld",
            404,
            "Not Found",
            "tool not found: weld",
        ),
        (
            Method::GET,
            "/api/v1/tools/a%20%22b%22",
            404,
            "Not Found",
            "tool not found: a \"b\"",
        ),
        (
            Method::GET,
            "/api/v1/tools/",
            400,
            "Bad Request",
            "the tool's name is missing",
        ),
        (
            Method::GET,
            "/api/v2/tools",
            404,
            "Not Found",
            "/api/v2/tools",
        ),
        (
            Method::POST,
            "/api/v1/tools",
            405,
            "Method Not Allowed",
            "POST is not allowed on /api/v1/tools",
        ),
    ] {
        let answer = scenario.ask(method, path, None).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
        let body = answer.json();
        assert_eq!(body["error"], error);
        assert!(
            body["message"].as_str().unwrap().contains(message),
            "{body}"
        );
        assert_eq!(answer.header("etag"), None);
    }
    let options = scenario.ask(Method::OPTIONS, "/api/v1/tools", None).await;
    assert_eq!(options.status, StatusCode::NO_CONTENT);
    assert_eq!(options.header("allow"), Some("GET, HEAD, OPTIONS"));
}

#[tokio::test]
async fn a_stopped_scenario_refuses_connections() {
    let scenario = Scenario::start(&registry()).await;
    // Leaves an idle connection in the client's pool, which must not hold up stopping.
    scenario.get("/health").await;
    scenario.trigger.stop();
    scenario.serving.await.unwrap().unwrap();
    let error = scenario
        .client
        .get(&scenario.base)
        .send()
        .await
        .unwrap_err();
    assert!(error.is_connect(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_end_holds_up_stopping_for_a_limited_time() {
    let registry = registry();
    let begun = watch::Sender::new(false);
    let mut running = begun.subscribe();
    let hang = move |_: Value| {
        begun.send_replace(true);
        std::future::pending::<Result<Value, String>>()
    };
    registry.register(StaticProvider::new("slow").runs(tool("hang", "Never ends"), hang));
    let scenario = Scenario::start(&registry).await;
    let url = format!("{}/api/v1/tools/execute", scenario.base);
    let call = scenario
        .client
        .post(url)
        .body(json!({ "tool_name": "hang" }).to_string())
        .send();
    let calling = Tasks::new().spawn(call);
    running.wait_for(|running| *running).await.unwrap();
    scenario.trigger.stop();
    let stopped = tokio::time::timeout(Duration::from_secs(60), scenario.serving)
        .await
        .expect("it stops");
    stopped.unwrap().unwrap();
    calling.abort();
}

#[test]
fn definitions_that_the_protocol_does_not_allow_are_refused() {
    for name in [
        "",
        "has space",
        "dash-ed",
        "dir/read",
        "ключ",
        &"x".repeat(101),
    ] {
        let error = ToolDefinition::new(name, "").unwrap_err();
        assert!(matches!(error, InvalidDefinition::ToolName(_)));
        assert!(
            error
                .to_string()
                .contains("letters, digits and underscores"),
            "{error}"
        );
    }
    assert!(
        ToolDefinition::new("x".repeat(100), "").is_ok()
            && ToolDefinition::new("Read_2", "").is_ok()
    );
    assert!(
        CategoryDefinition::new("", "Nothing").is_err()
            && CategoryDefinition::new("a\n", "Line").is_err()
    );

    for schema in [
        json!([]),
        json!({ "type": "string" }),
        json!({ "properties": [] }),
    ] {
        let error = tool("cut", "").parameters(schema).unwrap_err().to_string();
        assert!(
            error.contains("`cut`") && error.contains("object"),
            "{error}"
        );
    }
    let filled = tool("cut", "")
        .parameters(json!({ "additionalProperties": false }))
        .unwrap()
        .to_json();
    let expected = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(filled["parameters"], expected);

    let base = registry().config().clone();
    let named = |name: &str| {
        Registry::new(RegistryConfig {
            scenario_name: name.into(),
            ..base.clone()
        })
    };
    assert!(named("").is_err() && named("a/b").is_err() && named("a-b.c_1").is_ok());
    for url in ["/api", "ftp://127.0.0.1", "127.0.0.1:80"] {
        let config = RegistryConfig {
            base_url: Some(url.into()),
            ..base.clone()
        };
        let error = Registry::new(config).err().unwrap().to_string();
        assert!(error.contains(url) && error.contains("http"), "{error}");
    }
}

#[test]
fn parameters_of_every_kind_can_be_built() {
    let built = tool("order", "Orders")
        .parameter("count", Parameter::number("How many").minimum(1).maximum(9))
        .parameter("urgent", Parameter::boolean("At once").required())
        .parameter(
            "codes",
            Parameter::array(
                "Codes",
                Parameter::string("One").pattern("^[A-Z]+$").max_length(4),
            ),
        )
        .parameter(
            "address",
            Parameter::object("Where to")
                .property("street", Parameter::string("Street").required())
                .required(),
        )
        .parameter(
            "mail",
            Parameter::string("Whom to tell")
                .format("email")
                .keyword("deprecated", true),
        )
        // The last word on a parameter counts, also on whether it is required.
        .parameter("urgent", Parameter::boolean("Soon"))
        .to_json();
    let expected = json!({
        "type": "object",
        "properties": {
            "count": { "type": "number", "description": "How many", "minimum": 1, "maximum": 9 },
            "urgent": { "type": "boolean", "description": "Soon" },
            "codes": {
                "type": "array",
                "description": "Codes",
                "items": { "type": "string", "description": "One", "pattern": "^[A-Z]+$", "maxLength": 4 }
            },
            "address": {
                "type": "object",
                "description": "Where to",
                "properties": { "street": { "type": "string", "description": "Street" } },
                "required": ["street"]
            },
            "mail": { "type": "string", "description": "Whom to tell", "format": "email", "deprecated": true }
        },
        "required": ["address"]
    });
    assert_eq!(built["parameters"], expected);
}
