//! The published list of a whole daemon: limits, collisions, stable bytes, and one daemon as the
//! scenario of another.

use callsheet::provide::Parameter;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, Scenario, configured, names_of, tool};

async fn many(name: &str, tools: usize) -> Scenario {
    Scenario::start(name, (0..tools).map(|n| tool(&format!("{name}_{n:03}")))).await
}

#[tokio::test]
async fn the_list_for_llms_has_at_most_128_tools_and_says_what_is_not_in_it() {
    let home = Home::new();
    let first = many("first", 100).await;
    let second = many("second", 50).await;
    let daemon = Daemon::ready(home.config(&[&first, &second])).await;
    let list = daemon.get("/api/v1/tools?format=openai").await;
    let names = names_of(&list.json());
    assert_eq!(names.len(), 128);
    assert_eq!(names[0].as_str(), "first_000");
    assert_eq!(names[127].as_str(), "second_027");
    assert_eq!(list.header("callsheet-tools"), "128");
    assert_eq!(list.header("callsheet-left-out"), "22");
    // The other API of the same vendor has the same limit, and a finding of its own.
    let mut findings = daemon.findings("over-limit").await;
    findings.retain(|finding| finding["message"].as_str().unwrap().contains("`openai`"));
    let left_out: Vec<_> = findings
        .iter()
        .map(|finding| finding["tool"].as_str().unwrap())
        .collect();
    assert_eq!(findings.len(), 22);
    assert_eq!(left_out[0], "second_028");
    assert_eq!(left_out[21], "second_049");

    let lifted = daemon.get("/api/v1/tools?format=openai&max_tools=0").await;
    assert_eq!(names_of(&lifted.json()).len(), 150);
    assert_eq!(lifted.header("callsheet-left-out"), "");
    let native = daemon.get("/api/v1/tools").await;
    assert_eq!(native.header("callsheet-tools"), "150");
    assert_eq!(native.header("callsheet-left-out"), "");

    let first_to_go = json!({"scope": "global", "target": "scenario:first", "priority": -1});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &first_to_go)
            .await
            .status,
        200
    );
    let names = daemon.tools("?format=openai").await;
    assert_eq!(names[77].as_str(), "first_077");
    assert_eq!(names[78].as_str(), "second_000");
    assert_eq!(names[127].as_str(), "second_049");
    assert_eq!(daemon.findings("over-limit").await[0]["tool"], "first_078");
    daemon.stop().await;
}

#[tokio::test]
async fn colliding_names_are_qualified_for_both_and_the_bare_one_is_refused() {
    let home = Home::new();
    let files = Scenario::of("files", &["find", "read"]).await;
    let mail = Scenario::of("mail", &["find"]).await;
    let daemon = Daemon::ready(home.config(&[&files])).await;
    assert_eq!(daemon.tools("").await, ["find", "read"]);
    home.write_process("mail", mail.address.port());
    let both = ["files__find", "read", "mail__find"];
    daemon.until_tools(&both).await;
    assert_eq!(daemon.tools("?format=openai").await, both);

    let bare = daemon.get("/api/v1/tools/find").await;
    assert_eq!(bare.status, 409);
    assert_eq!(
        bare.json()["candidates"],
        json!(["files/find", "mail/find"])
    );
    let problem = bare.problem();
    assert!(
        problem.contains("files/find") && problem.contains("mail/find"),
        "{problem}"
    );
    assert_eq!(daemon.get("/api/v1/tools/find/explain").await.status, 409);
    for (asked, scenario) in [
        ("files__find", "files"),
        ("mail/find", "mail"),
        ("mail%2Ffind", "mail"),
    ] {
        let found = daemon.json(&format!("/api/v1/tools/{asked}")).await;
        assert_eq!(found["scenario"], json!(scenario));
        assert_eq!(found["original_name"], "find");
    }
    let explained = daemon.json("/api/v1/tools/files__find/explain").await;
    assert_eq!(explained["listed"], true);
    assert_eq!(explained["id"], "files/find");
    assert_eq!(explained["findings"][0]["code"], "name-collision");
    assert!(
        explained["findings"][0]["message"]
            .as_str()
            .unwrap()
            .contains("mail/find"),
        "{explained}"
    );
    let findings = daemon.findings("name-collision").await;
    let scenarios: Vec<_> = findings
        .iter()
        .map(|finding| finding["scenario"].as_str().unwrap())
        .collect();
    assert_eq!(scenarios, ["files", "mail"]);

    // An operator's block ends the collision; an alias settles it otherwise.
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/mail/block")
            .await
            .status,
        200
    );
    assert_eq!(daemon.tools("").await, ["find", "read"]);
    assert_eq!(
        daemon
            .send("DELETE", "/api/v1/scenarios/mail/block")
            .await
            .status,
        200
    );
    let alias = json!({"scope": "global", "target": "tool:mail/find", "alias": "search_mail"});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &alias)
            .await
            .status,
        200
    );
    assert_eq!(daemon.tools("").await, ["find", "read", "search_mail"]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_tool_with_the_name_of_a_route_is_reached_by_its_id() {
    let home = Home::new();
    let files = Scenario::of("files", &["execute", "sync"]).await;
    let mail = Scenario::of("mail", &["execute"]).await;
    let daemon = Daemon::ready(home.config(&[&files, &mail])).await;
    for route in ["execute", "sync"] {
        assert_eq!(
            daemon.get(&format!("/api/v1/tools/{route}")).await.status,
            405,
            "{route}"
        );
        assert_eq!(
            daemon.json(&format!("/api/v1/tools/files/{route}")).await["original_name"],
            route
        );
    }
    assert_eq!(
        daemon.json("/api/v1/tools/mail/execute").await["scenario"],
        "mail"
    );
    daemon.stop().await;
}

/// A tool with a schema in which everything that is easily lost has a place.
fn rich() -> callsheet::provide::ToolDefinition {
    let place = Parameter::object("Where")
        .property(
            "zone",
            Parameter::choice("Which", ["north", "south"]).default_value("north"),
        )
        .property(
            "row",
            Parameter::integer("Which row")
                .minimum(1)
                .maximum(9)
                .required(),
        );
    tool("store")
        .category("stock")
        .parameter("place", place.required())
        .parameter(
            "labels",
            Parameter::array("Labels", Parameter::string("One").min_length(1)),
        )
        .parameter(
            "note",
            Parameter::string("A note").keyword("x-hint", json!({"camelCase": [null, 1]})),
        )
        .requires_approval(true)
        .tags(["slow", "safe"])
        .example(
            "One crate",
            json!({"place": {"row": 3}, "labels": ["glass"]}),
        )
        .metadata("x_custom", json!({"keptAs": "itIs"}))
}

fn the_tool(list: &Value, name: &str) -> Value {
    list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap()
        .clone()
}

#[tokio::test]
async fn a_daemon_can_be_the_scenario_of_another() {
    let inner_home = Home::new();
    let outer_home = Home::new();
    let stock = Scenario::start("stock", [rich(), tool("list")]).await;
    let mail = Scenario::of("mail", &["list"]).await;
    let inner = Daemon::ready(inner_home.config(&[&stock, &mail])).await;
    let own = Scenario::of("own", &["brew"]).await;
    let mut config = outer_home.config(&[&own]);
    config.scenarios.push(configured("inner", inner.address));
    let outer = Daemon::ready(config).await;
    assert_eq!(
        outer.tools("").await,
        ["mail__list", "stock__list", "store", "brew"]
    );

    let within = inner.json("/api/v1/tools").await;
    let without = outer.json("/api/v1/tools").await;
    let theirs = the_tool(&within, "store");
    let ours = the_tool(&without, "store");
    for member in [
        "description",
        "category",
        "parameters",
        "metadata",
        "requires_approval",
    ] {
        assert_eq!(ours[member], theirs[member], "{member}");
    }
    assert_eq!(ours["scenario"], "inner");
    assert_eq!(theirs["scenario"], "stock");
    assert_eq!(without["categories"], within["categories"]);
    let functions = async |daemon: &Daemon| {
        let list = daemon.json("/api/v1/tools?format=openai").await;
        list.as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["function"]["name"] == "store")
            .unwrap()
            .clone()
    };
    assert_eq!(functions(&outer).await, functions(&inner).await);
    assert!(outer.findings("tool-quarantined").await.is_empty());

    // Approval that a preference of the inner one asks for is not lost on the way.
    let approval = json!({"scope": "global", "target": "tool:mail/list", "approval": "require"});
    assert_eq!(
        inner
            .send_json("PUT", "/api/v1/preferences", &approval)
            .await
            .status,
        200
    );
    let asks = |list: Value| the_tool(&list, "mail__list")["requires_approval"] == true;
    outer
        .until("/api/v1/tools", |answer| asks(answer.json()))
        .await;

    // What the inner one switches off, and what it finds, reaches the outer one.
    let off = json!({"scope": "global", "target": "tool:stock/store", "enabled": false});
    assert_eq!(
        inner
            .send_json("PUT", "/api/v1/preferences", &off)
            .await
            .status,
        200
    );
    outer
        .until_tools(&["mail__list", "stock__list", "brew"])
        .await;
    mail.offer([tool("send")]);
    outer.until_tools(&["list", "send", "brew"]).await;
    outer.stop().await;
    inner.stop().await;
}

#[tokio::test]
async fn the_order_of_discovery_changes_no_byte() {
    let names = ["files", "mail", "notes", "pantry"];
    let mut scenarios = Vec::new();
    for name in names {
        let own = format!("{name}_only");
        scenarios.push(
            Scenario::start(name, [tool("search").category("find"), tool(&own), rich()]).await,
        );
    }
    let mut seen = Vec::new();
    for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
        let home = Home::new();
        let mut config = home.config(&[]);
        // The native list names the daemon that wrote it.
        config.discovery.mdns.id = Some("the-same".into());
        let daemon = Daemon::start(config).await;
        for (count, index) in order.into_iter().enumerate() {
            home.write_process(names[index], scenarios[index].address.port());
            daemon
                .wait_until("it is found", |all| {
                    all.catalog.entries().count() == count + 1
                })
                .await;
        }
        let openai = daemon.get("/api/v1/tools?format=openai").await;
        let native = daemon.get("/api/v1/tools").await;
        let mut document = native.json();
        assert!(
            document
                .as_object_mut()
                .unwrap()
                .remove("generated_at")
                .is_some()
        );
        seen.push((
            openai.header("etag").to_owned(),
            openai.header("callsheet-revision").to_owned(),
            String::from_utf8(openai.body).unwrap(),
            document.to_string(),
        ));
        daemon.stop().await;
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn what_says_the_same_again_changes_no_byte() {
    let home = Home::new();
    let files = Scenario::start("files", [tool("read"), rich()]).await;
    let daemon = Daemon::ready(home.config(&[&files])).await;
    let before = daemon.get("/api/v1/tools").await;
    for offer in [
        vec![rich(), tool("read")],
        vec![tool("read"), rich(), tool("more")],
        vec![tool("read"), rich()],
    ] {
        let count = offer.len();
        files.offer(offer);
        assert_eq!(
            daemon
                .send("POST", "/api/v1/scenarios/files/refresh")
                .await
                .status,
            200
        );
        let now = daemon.get("/api/v1/tools").await;
        assert_eq!(now.body == before.body, count == 2);
        assert_eq!(now.header("etag") == before.header("etag"), count == 2);
    }
    daemon.stop().await;
}
