//! The daemon with modules around it, which are real programs in Python: found by the
//! configuration, listed, filtered, kept.
//!
//! Rows of the original's list of features are named at each test. Where its Redis stands, the
//! daemon's own store does.

use std::net::SocketAddr;
use std::time::Duration;

use callsheet::config::Config;
use callsheet::model::{Permission, Profile, Secret, SecretSource, UnknownLevel};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::calm;
use crate::support::daemon::{Daemon, Home, Scenario, configured};
use crate::support::module::{Module, example, tool};

/// A profile that may see these modules up to a level.
fn persona(config: &mut Config, name: &str, modules: &[&str], permission: Permission) {
    let scenarios = Some(modules.iter().map(|name| name.parse().unwrap()).collect());
    config.profiles.insert(
        name.into(),
        Profile {
            scenarios,
            permission: Some(permission),
            ..Profile::default()
        },
    );
}

async fn originals(daemon: &Daemon, query: &str) -> Vec<String> {
    let list = daemon.json(&format!("/api/v1/tools{query}")).await;
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["original_name"].as_str().unwrap().to_owned())
        .collect()
}

/// S4-03, S4-06, S4-31, S4-34, S4-36 to S4-38: who may see three modules as a user gets five of the
/// seven tools. The order is that of names (S4-35 has that of the map), so that equal offers are
/// equal bytes.
#[tokio::test]
async fn the_worked_example_gives_five_of_seven_tools() {
    let modules = example().await;
    let home = Home::new();
    let mut config = calm(&home, &modules.iter().collect::<Vec<_>>());
    let three = ["research", "file_manager", "code_executor"];
    persona(&mut config, "assistant", &three, Permission::User);
    persona(&mut config, "visitor", &three, Permission::Guest);
    persona(
        &mut config,
        "boss",
        &["code_executor", "scheduler"],
        Permission::Owner,
    );
    persona(&mut config, "nobody", &[], Permission::Owner);
    let daemon = Daemon::ready(config).await;
    assert_eq!(originals(&daemon, "").await.len(), 7);
    let five = [
        "code_executor.run_python",
        "file_manager.create_document",
        "file_manager.delete_file",
        "research.fetch_webpage",
        "research.web_search",
    ];
    assert_eq!(originals(&daemon, "?profile=assistant").await, five);
    assert_eq!(
        originals(&daemon, "?profile=visitor").await,
        [five[1], five[3], five[4]]
    );
    let all = [
        "code_executor.run_python",
        "code_executor.run_shell",
        "scheduler.add_job",
    ];
    assert_eq!(originals(&daemon, "?profile=boss").await, all);
    assert!(originals(&daemon, "?profile=nobody").await.is_empty());
    // S4-05, S4-39, S4-56, S4-60: each vendor's shape, under a name that it takes; the dotted one
    // is kept beside it and finds the tool.
    let named = [
        "code_executor_run_python",
        "file_manager_create_document",
        "file_manager_delete_file",
    ];
    let named: Vec<_> = named
        .into_iter()
        .chain(["research_fetch_webpage", "research_web_search"])
        .collect();
    for format in ["openai", "anthropic", "mcp"] {
        assert_eq!(
            daemon
                .tools(&format!("?profile=assistant&format={format}"))
                .await,
            named,
            "{format}"
        );
    }
    let one = daemon.json("/api/v1/tools/research.web_search").await;
    assert_eq!(one["name"], "research_web_search");
    assert_eq!(one["scenario"], "research");
    daemon.stop().await;
}

/// A slip in a profile's name opens nothing: wherever one asks with it, the answer names it, the
/// known ones and the next step.
#[tokio::test]
async fn a_profile_that_is_not_configured_sees_nothing() {
    let modules = example().await;
    let home = Home::new();
    let mut config = calm(&home, &modules.iter().collect::<Vec<_>>());
    persona(&mut config, "guest", &["research"], Permission::Guest);
    persona(&mut config, "owner", &["scheduler"], Permission::Owner);
    let daemon = Daemon::ready(config.clone()).await;
    let expected = "no profile is called `gest`, so it may see and call no tools; known are `guest`, `owner`; \
        add it as [[profiles]] to the configuration, or leave it out; did you mean `guest`?";
    let list = "/api/v1/tools?profile=gest";
    for target in [
        list,
        list,
        "/api/v1/tools/search?q=web&profile=gest",
        "/api/v1/tools/research.web_search?profile=gest",
        "/api/v1/tools/research.web_search/explain?profile=gest",
        "/api/v1/events?profile=gest",
    ] {
        let refused = daemon.get(target).await;
        assert_eq!(refused.status, 403, "{target}: {refused:?}");
        let problem = refused.json();
        assert_eq!(problem["code"], "unknown_profile", "{target}");
        assert_eq!(problem["detail"], json!(expected), "{target}");
        assert_eq!(problem["known"], json!(["guest", "owner"]), "{target}");
    }
    let page = daemon.get("/dashboard/tools?scope=profile:gest").await;
    assert!(
        String::from_utf8_lossy(&page.body).contains("no profile is called"),
        "the dashboard says it, too"
    );

    let preference = json!({"scope": "profile:gest", "target": "tool:research/research.web_search", "enabled": true});
    assert_eq!(
        daemon
            .send_json("PUT", "/api/v1/preferences", &preference)
            .await
            .status,
        200
    );
    assert_eq!(
        daemon.get(list).await.status,
        403,
        "a preference gives no bounds"
    );
    let findings = daemon.findings("preference-unmatched").await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0]["message"].as_str().unwrap().contains(expected),
        "{findings:?}"
    );
    daemon.stop().await;

    config.profiles.clear();
    let open = Daemon::ready(config).await;
    assert_eq!(
        open.tools("?profile=gest").await.len(),
        7,
        "without bounds a profile is a scope of preferences"
    );
    assert!(open.findings("preference-unmatched").await.is_empty());
    open.stop().await;
}

/// S4-01, S4-07: what a module is, is found out by asking too, and nothing else is taken for one.
#[tokio::test]
async fn protocols_are_distinguished_by_probing() {
    let module = Module::start("research", &[tool("research.web_search", "guest")]).await;
    let scenario = Scenario::of("files", &["read"]).await;
    let home = Home::new();
    let mut config = home.config(&[&scenario]);
    config.scenarios.push(configured("found", module.address));
    let daemon = Daemon::ready(config).await;
    let found = daemon.until_state("found", "live").await;
    assert_eq!(found["protocol"], "module");
    assert_eq!(found["protocol_version"], Value::Null);
    // It is filed under the name that it was given, and says so.
    assert_eq!(daemon.findings("name-mismatch").await.len(), 1);
    assert_eq!(
        daemon.until_state("files", "live").await["protocol"],
        "tool-discovery"
    );
    daemon.until_tools(&["read", "research_web_search"]).await;
    daemon.stop().await;
}

/// S4-14 to S4-16, S4-20, S4-62, S4-70: one that is dead, or no module, costs nobody else anything,
/// is told with its reason, and is back when it answers.
#[tokio::test]
async fn one_that_fails_stops_nobody() {
    let good = Module::start("good", &[tool("good.work", "guest")]).await;
    let mut late = Module::start("late", &[tool("late.work", "guest")]).await;
    let stranger = Scenario::of("stranger", &["read"]).await;
    late.stop();
    let home = Home::new();
    let mut config = calm(&home, &[&good, &late]);
    config.modules.services.insert(
        "stranger".parse().unwrap(),
        format!("http://{}", stranger.address).parse().unwrap(),
    );
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["good_work"]).await;
    for (name, kind) in [("late", "refused"), ("stranger", "status")] {
        let health = daemon.json(&format!("/api/v1/scenarios/{name}")).await;
        assert_eq!(health["last_error"]["kind"], kind, "{health:#}");
    }
    late.run().await;
    daemon.until_tools(&["good_work", "late_work"]).await;
    daemon.stop().await;
}

/// S4-17, S4-18, S4-21, S4-69: all are asked again when someone wants it, and are shown.
#[tokio::test]
async fn modules_are_shown_and_asked_again() {
    let one = Module::start("one", &[tool("one.a", "guest")]).await;
    let mut two = Module::start("two", &[tool("two.a", "admin")]).await;
    two.stop();
    let scenario = Scenario::of("files", &["read"]).await;
    let home = Home::new();
    let mut config = calm(&home, &[&one, &two]);
    config.scenarios.push(scenario.configured());
    let daemon = Daemon::ready(config).await;
    daemon.until_tools(&["read", "one_a"]).await;
    let refreshed = daemon.send("POST", "/refresh-tools").await;
    assert_eq!(refreshed.status, 200);
    assert_eq!(
        refreshed.json(),
        json!({"status": "ok", "modules": ["one"]})
    );
    one.offer(&[tool("one.a", "guest"), tool("one.b", "user")]);
    two.run().await;
    // Asked at most once a moment: what was asked just now is asked when the moment is over.
    let refreshed = daemon.send("POST", "/refresh-tools").await.json();
    assert_eq!(
        refreshed,
        json!({"status": "ok", "modules": ["one", "two"]})
    );
    daemon
        .until_tools(&["read", "one_a", "one_b", "two_a"])
        .await;
    let shown = daemon.json("/api/modules").await;
    let modules: Vec<_> = shown["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| {
            let offers = module["offers"].as_array().unwrap().iter();
            let offers: Vec<_> = offers
                .map(|offer| {
                    format!(
                        "{} {} {}",
                        offer["name"], offer["published_as"], offer["required_permission"]
                    )
                })
                .collect();
            (
                module["name"].as_str().unwrap(),
                module["state"].as_str().unwrap(),
                offers.join(", ").replace('"', ""),
            )
        })
        .collect();
    assert_eq!(
        modules[0],
        ("one", "live", "one.a one_a guest, one.b one_b user".into())
    );
    assert_eq!(modules[1], ("two", "live", "two.a two_a admin".into()));
    assert_eq!(
        modules.len(),
        2,
        "scenarios of other protocols are none: {shown:#}"
    );
    daemon.stop().await;
}

/// S4-02, S4-08, S4-24 to S4-28: what a module offered is kept where it outlives the daemon, and is
/// there before anybody was asked.
#[tokio::test]
async fn what_is_known_outlives_a_restart() {
    let mut module = Module::start(
        "research",
        &[
            tool("research.web_search", "user"),
            tool("research.odd", "boss"),
        ],
    )
    .await;
    let home = Home::new();
    let daemon = Daemon::ready(calm(&home, &[&module])).await;
    daemon
        .until_tools(&["research_odd", "research_web_search"])
        .await;
    let before = daemon.json("/api/v1/tools?include_disabled=true").await;
    daemon.stop().await;
    module.stop();
    let mut later = calm(&home, &[&module]);
    persona(&mut later, "user", &["research"], Permission::User);
    let daemon = Daemon::start(later).await;
    let after = daemon.json("/api/v1/tools?include_disabled=true").await;
    assert_eq!(after["tools"], before["tools"]);
    assert_eq!(
        originals(&daemon, "?profile=user").await,
        ["research.web_search"]
    );
    // Nothing is found about it that was not found before.
    let found = daemon
        .findings("state-repaired")
        .await
        .into_iter()
        .chain(daemon.findings("generated-at").await);
    assert_eq!(found.count(), 0);
    daemon.stop().await;
}

/// S4-23, S4-29, S4-30: what is kept can be looked at and taken out with any SQLite shell while the
/// daemon is stopped, one by one or all of it.
#[tokio::test]
async fn what_is_kept_can_be_looked_at_and_forgotten() {
    let mut modules = [
        Module::start("files", &[tool("files.read", "guest")]).await,
        Module::start("research", &[tool("research.web_search", "guest")]).await,
    ];
    let home = Home::new();
    let config = calm(&home, &modules.iter().collect::<Vec<_>>());
    let daemon = Daemon::ready(config.clone()).await;
    daemon
        .until_tools(&["files_read", "research_web_search"])
        .await;
    daemon.stop().await;
    modules.iter_mut().for_each(Module::stop);
    let store = rusqlite::Connection::open(home.state()).unwrap();
    let document: String = store
        .query_row(
            "SELECT document FROM manifests WHERE scenario = 'research'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert!(document.contains("research.web_search"), "{document}");
    assert_eq!(
        store
            .execute("DELETE FROM manifests WHERE scenario = 'research'", [])
            .unwrap(),
        1
    );
    drop(store);
    let daemon = Daemon::start(config.clone()).await;
    assert_eq!(daemon.tools("").await, ["files_read"]);
    daemon.stop().await;
    std::fs::remove_file(home.state()).unwrap();
    let daemon = Daemon::start(config.clone()).await;
    assert!(daemon.tools("").await.is_empty());
    for module in &mut modules {
        module.run().await;
    }
    assert_eq!(daemon.send("POST", "/refresh-tools").await.status, 200);
    daemon
        .until_tools(&["files_read", "research_web_search"])
        .await;
    daemon.stop().await;
}

/// The caching headers of a module hold as those of any other scenario.
#[tokio::test]
async fn a_manifest_that_did_not_change_is_not_sent_again() {
    let module = Module::start("research", &[tool("research.web_search", "guest")]).await;
    let home = Home::new();
    let mut config = calm(&home, &[&module]);
    config.refresh.min_interval = Duration::from_millis(20);
    config.refresh.max_interval = Duration::from_millis(50);
    let daemon = Daemon::ready(config).await;
    let unchanged = r#"callsheet_listings_total{outcome="unchanged"}"#;
    let metrics = |answer: &crate::support::serving::Answer| {
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    daemon
        .until("/metrics", |answer| {
            metrics(answer).lines().any(|line| {
                line.strip_prefix(unchanged)
                    .is_some_and(|count| count.trim() != "0")
            })
        })
        .await;
    module.offer(&[tool("research.other", "guest")]);
    daemon.until_tools(&["research_other"]).await;
    daemon.stop().await;
}

/// The token goes to the module that it is for, and to nobody who is shown anything.
#[tokio::test]
async fn a_module_is_shown_its_token() {
    let open = Module::start("open", &[tool("open.a", "guest")]).await;
    let shared = Module::guarded("shared", &[tool("shared.a", "guest")], Some("for-all")).await;
    let own = Module::guarded("own", &[tool("own.a", "guest")], Some("for-one")).await;
    let home = Home::new();
    let wrong = calm(&home, &[&open, &shared, &own]);
    let mut right = wrong.clone();
    right.modules.token = Some(Secret::new("for-all").into());
    let folder = TempDir::new().unwrap();
    let own_token = "own".parse().unwrap();
    let path = folder.path().join("token");
    right.modules.tokens.insert(
        own_token,
        SecretSource::File {
            path: path.clone(),
            key: None,
        },
    );
    let daemon = Daemon::ready(wrong).await;
    daemon.until_tools(&["open_a"]).await;
    let refused = daemon.json("/api/v1/scenarios/own").await;
    assert!(
        refused["last_error"]["message"]
            .as_str()
            .unwrap()
            .contains("401"),
        "{refused:#}"
    );
    daemon.stop().await;
    assert!(!format!("{right:?}").contains("for-"));
    let daemon = Daemon::ready(right).await;
    daemon.until_tools(&["open_a", "shared_a"]).await;
    let missing = daemon.json("/api/v1/scenarios/own").await;
    assert_eq!(missing["state"], "needs-authorization", "{missing:#}");
    std::fs::write(&path, "for-one\n").unwrap();
    daemon.send("POST", "/api/v1/scenarios/own/refresh").await;
    daemon.until_tools(&["open_a", "own_a", "shared_a"]).await;
    for target in ["/api/v1/scenarios", "/api/modules", "/api/v1/findings"] {
        assert!(
            !daemon.json(target).await.to_string().contains("for-all"),
            "{target}"
        );
    }
    daemon.stop().await;
}

/// S4-32, S4-33, read the safe way: a level that nobody knows is nobody's. The switch brings the
/// original's reading back.
#[tokio::test]
async fn a_level_that_nobody_knows_is_nobodys() {
    let module = Module::start(
        "odd",
        &[tool("odd.boss", "boss"), tool("odd.plain", "guest")],
    )
    .await;
    for (unknown, expected) in [
        (UnknownLevel::Refuse, vec!["odd.plain"]),
        (UnknownLevel::Guest, vec!["odd.boss", "odd.plain"]),
    ] {
        let home = Home::new();
        let mut config = calm(&home, &[&module]);
        config.profiles.insert(
            "owner".into(),
            Profile {
                scenarios: None,
                permission: Some(Permission::Owner),
                unknown,
                searches: None,
                is_default: false,
            },
        );
        let daemon = Daemon::ready(config).await;
        assert_eq!(
            originals(&daemon, "?profile=owner").await,
            expected,
            "{unknown:?}"
        );
        assert_eq!(
            originals(&daemon, "").await.len(),
            2,
            "without a profile nothing is asked"
        );
        let found = daemon.findings("metadata-value").await;
        assert!(
            found[0]["message"].as_str().unwrap().contains("boss"),
            "{found:?}"
        );
        daemon.stop().await;
    }
}

/// S4-40: what stands before the first dot says whose a tool is, where several have a tool of that
/// name.
#[tokio::test]
async fn a_dotted_name_is_its_modules() {
    let desk = Module::start("git_desk", &[tool("git_desk.issue.open", "guest")]).await;
    let copy = Module::start("copy", &[tool("git_desk.issue.open", "guest")]).await;
    let home = Home::new();
    let daemon = Daemon::ready(calm(&home, &[&desk, &copy])).await;
    let found = daemon.json("/api/v1/tools/git_desk.issue.open").await;
    assert_eq!(found["scenario"], "git_desk");
    assert_eq!(found["original_name"], "git_desk.issue.open");
    let mine = daemon.json("/api/v1/tools/copy/git_desk.issue.open").await;
    assert_eq!(mine["scenario"], "copy");
    assert_ne!(mine["name"], found["name"]);
    daemon.stop().await;
}

/// What the listener of a module answers when it is none.
#[tokio::test]
async fn an_address_without_a_module_is_no_module() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let home = Home::new();
    let mut config = home.config(&[]);
    config.modules.services.insert(
        "gone".parse().unwrap(),
        format!("http://{nobody}").parse().unwrap(),
    );
    let daemon = Daemon::ready(config).await;
    let shown = daemon.json("/api/modules").await;
    assert_eq!(shown["modules"][0]["name"], "gone");
    assert_eq!(shown["modules"][0]["offers"], json!([]));
    assert_eq!(shown["modules"][0]["last_error"]["kind"], "refused");
    assert_eq!(
        daemon.send("POST", "/refresh-tools").await.json(),
        json!({"status": "ok", "modules": []})
    );
    daemon.stop().await;
}
