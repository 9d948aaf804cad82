//! Preferences over HTTP: durable, each setting on its own, and in the list at once.

use callsheet::config::Config;
use callsheet::model::{PreferenceAuthor, Scope, Secret, Settings};
use callsheet::runtime::Clock;
use callsheet::state::{
    CLIENT_PREFERENCES_MAX, CLIENT_PREFERENCES_OF_SCOPE_MAX, PREFERENCES_MAX, Write, sqlite,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, NEVER, Scenario, configured, tool};
use crate::support::mcp_server::{McpServer, modern};
use crate::support::serving::{Answer, ask};

/// A scenario with tools of two categories and tags, a second one, and a daemon that asks them only
/// once.
async fn daemon() -> (Home, [Scenario; 2], Config, Daemon) {
    let home = Home::new();
    let files = Scenario::start(
        "files",
        [
            tool("read").category("disk").tags(["safe"]),
            tool("wipe")
                .category("disk")
                .tags(["risky", "slow"])
                .requires_approval(true),
            tool("zip").category("pack").tags(["slow"]),
            tool("shred").category("disk").enabled_by_default(false),
        ],
    )
    .await;
    let mail = Scenario::start("mail", [tool("send"), tool("sort").category("pack")]).await;
    let mut config = home.config(&[&files, &mail]);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    let daemon = Daemon::ready(config.clone()).await;
    assert_eq!(
        daemon.tools("").await,
        ["read", "wipe", "zip", "send", "sort"]
    );
    (home, [files, mail], config, daemon)
}

/// Puts a preference and returns it as acknowledged.
async fn put(daemon: &Daemon, scope: &str, target: &str, settings: Value) -> Value {
    let mut body = json!({"scope": scope, "target": target});
    body.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let answer = daemon.send_json("PUT", "/api/v1/preferences", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["preference"].clone()
}

async fn delete(daemon: &Daemon, query: &str) -> Value {
    let answer = daemon
        .send("DELETE", &format!("/api/v1/preferences?{query}"))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["preference"].clone()
}

async fn preferences(daemon: &Daemon) -> Value {
    daemon.json("/api/v1/preferences").await["preferences"].clone()
}

fn preference(scope: &str, target: &str, settings: [Value; 4]) -> Value {
    let [enabled, approval, alias, priority] = settings;
    json!({"scope": scope, "target": target, "enabled": enabled, "approval": approval, "alias": alias, "priority": priority,
        "pinned": null, "pins": null, "description": null, "parameters": null})
}

const NULL: Value = Value::Null;

/// Every client may set some. Each change of a tag built all scenarios again, and what operators
/// decide waited for it.
#[tokio::test]
async fn preferences_that_come_together_cost_as_much_as_one() {
    let home = Home::new();
    let tools = (0..4_000).map(|number| tool(&format!("tool_{number}")).tags(["common"]));
    let files = Scenario::start("files", tools.collect::<Vec<_>>()).await;
    let daemon = Daemon::ready(home.config(&[&files])).await;
    let clock = Clock::system();
    let change = |priority: usize| {
        put(
            &daemon,
            "global",
            "tag:common",
            json!({"priority": priority}),
        )
    };
    let began = clock.now();
    change(1).await;
    let one = clock.now() - began;
    let began = clock.now();
    let settings = join_all((2..32).map(change)).await;
    let many = clock.now() - began;
    assert!(many < 12 * one, "{many:?} for 30 of {one:?}");
    assert_eq!(settings.len(), 30);
    let kept = preferences(&daemon).await[0]["priority"].clone();
    assert!(settings.iter().any(|one| one["priority"] == kept), "{kept}");
    daemon.stop().await;
}

#[tokio::test]
async fn one_setting_leaves_the_others_and_all_outlive_the_daemon() {
    let (_home, _scenarios, config, daemon) = daemon().await;
    let target = "tool:files/read";
    put(&daemon, "global", target, json!({"enabled": false})).await;
    put(&daemon, "global", target, json!({"approval": "require"})).await;
    put(&daemon, "global", target, json!({"alias": "load"})).await;
    let all = put(&daemon, "global", target, json!({"priority": 7})).await;
    assert_eq!(
        all,
        preference(
            "global",
            target,
            [json!(false), json!("require"), json!("load"), json!(7)]
        )
    );
    let after_null = put(
        &daemon,
        "global",
        target,
        json!({"approval": null, "enabled": true}),
    )
    .await;
    assert_eq!(
        after_null,
        preference(
            "global",
            target,
            [json!(true), NULL, json!("load"), json!(7)]
        )
    );
    daemon.stop().await;

    let daemon = Daemon::ready(config.clone()).await;
    assert_eq!(preferences(&daemon).await, json!([after_null]));
    assert_eq!(
        daemon.tools("?scenario=files").await,
        ["load", "wipe", "zip"]
    );
    let after_reset = delete(&daemon, "scope=global&target=tool:files/read&setting=alias").await;
    assert_eq!(
        after_reset,
        preference("global", target, [json!(true), NULL, NULL, json!(7)])
    );
    assert_eq!(
        daemon.tools("?scenario=files").await,
        ["read", "wipe", "zip"]
    );
    let none = delete(&daemon, "scope=global&target=tool:files/read").await;
    assert_eq!(none, preference("global", target, [NULL, NULL, NULL, NULL]));
    daemon.stop().await;

    let daemon = Daemon::ready(config).await;
    assert_eq!(preferences(&daemon).await, json!([]));
    daemon.stop().await;
}

#[tokio::test]
async fn the_list_and_its_tag_change_with_the_acknowledgement() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    for format in ["native", "openai"] {
        let target = format!("/api/v1/tools?format={format}");
        let before = daemon.get(&target).await;
        put(
            &daemon,
            "global",
            "scenario:mail",
            json!({"enabled": false}),
        )
        .await;
        let without = daemon.get(&target).await;
        assert_eq!(
            crate::support::daemon::names_of(&without.json()),
            ["read", "wipe", "zip"]
        );
        assert_ne!(without.header("etag"), before.header("etag"));
        assert_ne!(
            without.header("callsheet-revision"),
            before.header("callsheet-revision")
        );
        delete(&daemon, "scope=global&target=scenario:mail").await;
        let again = daemon.get(&target).await;
        assert_eq!(
            again.body, before.body,
            "an earlier content has its earlier bytes"
        );
        assert_eq!(again.header("etag"), before.header("etag"));
    }
    let disabled = daemon.findings("disabled").await;
    assert_eq!(disabled.len(), 1, "{disabled:?}");
    put(
        &daemon,
        "global",
        "scenario:mail",
        json!({"enabled": false}),
    )
    .await;
    assert_eq!(daemon.findings("disabled").await.len(), 3);
    let health = daemon.json("/api/v1/scenarios/mail").await;
    assert_eq!(
        health["tools"],
        json!({"offered": 2, "published": 0, "disabled": 2, "quarantined": 0})
    );
    daemon.stop().await;
}

#[tokio::test]
async fn what_nothing_offers_now_is_kept_and_said() {
    let (_home, [files, _mail], _config, daemon) = daemon().await;
    put(
        &daemon,
        "global",
        "tool:files/later",
        json!({"alias": "soon"}),
    )
    .await;
    put(
        &daemon,
        "chat:7",
        "scenario:absent",
        json!({"enabled": false}),
    )
    .await;
    put(&daemon, "global", "tag:nowhere", json!({"priority": 1})).await;
    let unmatched = daemon.findings("preference-unmatched").await;
    let named: Vec<_> = unmatched
        .iter()
        .map(|finding| (&finding["scenario"], &finding["tool"]))
        .collect();
    let expected = [
        (json!(null), json!(null)),
        (json!("absent"), json!(null)),
        (json!("files"), json!("later")),
    ];
    assert_eq!(
        named,
        expected
            .iter()
            .map(|(scenario, tool)| (scenario, tool))
            .collect::<Vec<_>>()
    );
    files.offer([tool("later")]);
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/files/refresh")
            .await
            .status,
        200
    );
    assert_eq!(daemon.tools("?scenario=files").await, ["soon"]);
    assert_eq!(daemon.findings("preference-unmatched").await.len(), 2);
    files.offer([]);
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/files/refresh")
            .await
            .status,
        200
    );
    assert_eq!(preferences(&daemon).await.as_array().unwrap().len(), 3);
    daemon.stop().await;
}

#[tokio::test]
async fn a_preference_for_what_is_not_there_says_so_and_suggests() {
    let (_home, _scenarios, _, daemon) = daemon().await;
    for (target, part) in [
        (
            "tool:files/raed",
            "no tool is called `files/raed` now; did you mean tool:files/read?",
        ),
        ("tool:mail/zip", "did you mean tool:files/zip?"),
        (
            "scenario:flies",
            "no scenario is called `flies` now; did you mean scenario:files?",
        ),
        ("category:dsk", "did you mean category:disk?"),
        ("tag:risk", "did you mean tag:risky?"),
        (
            "tag:unheard-of",
            "no tool has the tag `unheard-of` now. The preference is kept",
        ),
    ] {
        let body = json!({"scope": "global", "target": target, "enabled": false});
        let answer = daemon
            .send_json("PUT", "/api/v1/preferences", &body)
            .await
            .json();
        assert!(
            answer["note"]
                .as_str()
                .is_some_and(|note| note.contains(part)),
            "{target}: {answer}"
        );
        let reset = daemon
            .send(
                "DELETE",
                &format!("/api/v1/preferences?scope=global&target={target}"),
            )
            .await
            .json();
        assert!(
            reset.get("note").is_none(),
            "what is taken away needs no target: {reset}"
        );
        assert_eq!(reset["was_set"], true, "{reset}");
        let again = daemon
            .send(
                "DELETE",
                &format!("/api/v1/preferences?scope=global&target={target}"),
            )
            .await
            .json();
        assert_eq!(again["was_set"], false, "{again}");
        let nothing = part
            .strip_suffix(". The preference is kept")
            .unwrap_or(part);
        assert!(
            again["note"]
                .as_str()
                .is_some_and(|note| note.contains(nothing)),
            "{target}: {again}"
        );
    }
    let body = json!({"scope": "global", "target": "tool:files/read", "enabled": false});
    let answer = daemon
        .send_json("PUT", "/api/v1/preferences", &body)
        .await
        .json();
    assert!(answer.get("note").is_none(), "{answer}");
    daemon.stop().await;
}

#[tokio::test]
async fn chat_beats_profile_beats_global_beats_the_manifest() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    let target = "tool:files/shred";
    let listed = async |query: &str| daemon.tools(query).await.contains(&"shred".to_owned());
    let scopes = [
        "",
        "?profile=coder",
        "?chat_id=7",
        "?profile=coder&chat_id=7",
    ];
    let everywhere = async || {
        let mut all = Vec::new();
        for query in scopes {
            all.push(listed(query).await);
        }
        all
    };
    assert_eq!(everywhere().await, [false; 4], "the manifest disables it");
    put(&daemon, "global", target, json!({"enabled": true})).await;
    assert_eq!(everywhere().await, [true; 4]);
    put(&daemon, "profile:coder", target, json!({"enabled": false})).await;
    assert_eq!(everywhere().await, [true, false, true, false]);
    put(&daemon, "chat:7", target, json!({"enabled": true})).await;
    assert_eq!(everywhere().await, [true, false, true, true]);
    put(&daemon, "global", target, json!({"enabled": false})).await;
    assert_eq!(everywhere().await, [false, false, true, true]);
    // A wider target in a narrower scope wins over a narrower target in a wider scope.
    delete(&daemon, "scope=chat:7&target=tool:files/shred").await;
    put(
        &daemon,
        "chat:7",
        "scenario:files",
        json!({"enabled": true}),
    )
    .await;
    assert_eq!(everywhere().await, [false, false, true, true]);
    let tool = daemon
        .json("/api/v1/tools/files%2Fshred?profile=coder")
        .await;
    assert_eq!(tool["enabled"].as_bool(), Some(false));
    assert!(
        tool["enabled_source"]
            .as_str()
            .unwrap()
            .contains("profile:coder")
    );
    let explained = daemon
        .json("/api/v1/tools/shred/explain?profile=coder&chat_id=7")
        .await;
    assert_eq!(explained["listed"], true);
    assert!(
        explained["steps"].to_string().contains("chat:7"),
        "{explained}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn the_narrower_target_wins_within_a_scope() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    for scope in ["global", "profile:coder", "chat:7"] {
        let query = match scope.split_once(':') {
            None => "?",
            Some(("profile", _)) => "?profile=coder",
            Some(_) => "?chat_id=7",
        };
        put(&daemon, scope, "scenario:files", json!({"enabled": false})).await;
        assert_eq!(daemon.tools(query).await, ["send", "sort"]);
        put(&daemon, scope, "category:disk", json!({"enabled": true})).await;
        assert_eq!(
            daemon.tools(query).await,
            ["read", "shred", "wipe", "send", "sort"]
        );
        put(&daemon, scope, "tag:risky", json!({"enabled": false})).await;
        assert_eq!(daemon.tools(query).await, ["read", "shred", "send", "sort"]);
        put(&daemon, scope, "tool:files/wipe", json!({"enabled": true})).await;
        assert_eq!(
            daemon.tools(query).await,
            ["read", "shred", "wipe", "send", "sort"]
        );
        put(&daemon, scope, "category:pack", json!({"enabled": true})).await;
        assert_eq!(
            daemon.tools(query).await,
            ["read", "shred", "wipe", "zip", "send", "sort"]
        );
        for target in [
            "scenario:files",
            "category:disk",
            "category:pack",
            "tag:risky",
            "tool:files/wipe",
        ] {
            delete(&daemon, &format!("scope={scope}&target={target}")).await;
        }
        assert_eq!(
            daemon.tools(query).await,
            ["read", "wipe", "zip", "send", "sort"]
        );
    }
    // Tags that disagree: the safer one.
    put(
        &daemon,
        "global",
        "tag:risky",
        json!({"enabled": true, "approval": "skip"}),
    )
    .await;
    put(
        &daemon,
        "global",
        "tag:slow",
        json!({"enabled": false, "approval": "require"}),
    )
    .await;
    assert_eq!(daemon.tools("").await, ["read", "send", "sort"]);
    let wipe = daemon.json("/api/v1/tools/files/wipe").await;
    assert_eq!(wipe["requires_approval"], true);
    daemon.stop().await;
}

#[tokio::test]
async fn an_approval_may_be_asked_for_or_waived() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    put(
        &daemon,
        "global",
        "category:disk",
        json!({"approval": "require"}),
    )
    .await;
    put(
        &daemon,
        "chat:7",
        "tool:files/wipe",
        json!({"approval": "skip"}),
    )
    .await;
    let approval = async |query: &str| {
        let list = daemon
            .json(&format!("/api/v1/tools?scenario=files{query}"))
            .await;
        let tools = list["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["requires_approval"].as_bool().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(approval("").await, [true, true, false]);
    assert_eq!(approval("&chat_id=7").await, [true, false, false]);
    daemon.stop().await;
}

#[tokio::test]
async fn aliases_hold_globally_and_in_a_chat() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    put(
        &daemon,
        "global",
        "tool:files/read",
        json!({"alias": "load"}),
    )
    .await;
    put(
        &daemon,
        "chat:7",
        "tool:files/read",
        json!({"alias": "fetch"}),
    )
    .await;
    assert_eq!(
        daemon.tools("?scenario=files").await,
        ["load", "wipe", "zip"]
    );
    assert_eq!(
        daemon
            .tools("?scenario=files&chat_id=7&format=openai")
            .await,
        ["fetch", "wipe", "zip"]
    );
    assert_eq!(
        daemon.tools("?scenario=files&chat_id=8").await,
        ["load", "wipe", "zip"]
    );
    let found = daemon.json("/api/v1/tools/fetch?chat_id=7").await;
    assert_eq!(found["name"], "fetch");
    assert_eq!(found["original_name"], "read");
    assert_eq!(
        daemon.json("/api/v1/tools/load").await["original_name"],
        "read"
    );
    assert_eq!(
        daemon.get("/api/v1/tools/fetch").await.status,
        404,
        "that name is the chat's alone"
    );
    // An alias that is another tool's alias is given to neither, and the answer says so.
    let body = json!({"scope": "global", "target": "tool:files/zip", "alias": "load"});
    let answer = daemon
        .send_json("PUT", "/api/v1/preferences", &body)
        .await
        .json();
    let note = answer["note"].as_str().unwrap();
    let refused = "the alias `load` is not available: it is the alias of files/read; published as `files__zip`";
    assert!(note.starts_with(refused), "{answer}");
    assert!(
        note.contains("and `files/read` is published as `files__read`; choose an alias"),
        "{answer}"
    );
    let names = daemon.tools("?scenario=files").await;
    assert_eq!(names, ["files__read", "wipe", "files__zip"]);
    assert_eq!(daemon.findings("alias-refused").await.len(), 2);
    daemon.stop().await;
}

#[tokio::test]
async fn priorities_decide_who_stays_under_a_limit() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    assert_eq!(daemon.tools("?max_tools=2").await, ["read", "wipe"]);
    put(&daemon, "global", "tool:mail/sort", json!({"priority": 10})).await;
    put(&daemon, "global", "category:disk", json!({"priority": -1})).await;
    let limited = daemon.get("/api/v1/tools?max_tools=2&format=openai").await;
    assert_eq!(
        crate::support::daemon::names_of(&limited.json()),
        ["zip", "sort"]
    );
    assert_eq!(limited.header("callsheet-tools"), "2");
    assert_eq!(limited.header("callsheet-left-out"), "3");
    put(
        &daemon,
        "chat:7",
        "tool:files/read",
        json!({"priority": 99}),
    )
    .await;
    assert_eq!(
        daemon.tools("?max_tools=2&chat_id=7").await,
        ["read", "sort"]
    );
    assert_eq!(daemon.tools("?max_tools=1").await, ["sort"]);
    daemon.stop().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_name_and_changes_nothing() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    for (body, named) in [
        (
            json!({"scope": "team", "target": "tool:files/read", "enabled": true}),
            "`team`",
        ),
        (
            json!({"scope": "chat:", "target": "tool:files/read", "enabled": true}),
            "characters",
        ),
        (
            json!({"scope": "global", "target": "files/read", "enabled": true}),
            "`files/read`",
        ),
        (
            json!({"scope": "global", "target": "tool:read", "enabled": true}),
            "`read`",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read", "enabled": "no"}),
            "`enabled`",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read", "approval": "ask"}),
            "`approval`",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read", "alias": "load file"}),
            "`alias`",
        ),
        (
            json!({"scope": "global", "target": "tag:safe", "alias": "load"}),
            "single tool",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read", "priority": 0.5}),
            "`priority`",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read", "colour": "red"}),
            "`colour`",
        ),
        (
            json!({"scope": "global", "target": "tool:files/read"}),
            "has no setting",
        ),
        (
            json!({"target": "tool:files/read", "enabled": true}),
            "`scope`",
        ),
        (json!([]), "object"),
    ] {
        let answer = daemon.send_json("PUT", "/api/v1/preferences", &body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(
            answer.problem().contains(named),
            "{body}: {}",
            answer.problem()
        );
    }
    for (method, query, named) in [
        ("GET", "scope=team", "`team`"),
        ("GET", "targets=x", "`targets`"),
        ("DELETE", "scope=global", "`target`"),
        (
            "DELETE",
            "scope=global&target=tool:files/read&setting=colour",
            "`colour`",
        ),
    ] {
        let answer = daemon
            .send(method, &format!("/api/v1/preferences?{query}"))
            .await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(
            answer.problem().contains(named),
            "{query}: {}",
            answer.problem()
        );
    }
    let none = crate::support::serving::ask(
        daemon.address,
        "PUT",
        "/api/v1/preferences",
        &[("content-type", "application/json")],
        "{",
    )
    .await;
    assert_eq!(none.status, 400, "{none:?}");
    assert_eq!(preferences(&daemon).await, json!([]));
    daemon.stop().await;
}

#[tokio::test]
async fn preferences_are_filtered_by_scope_and_target() {
    let (_home, _scenarios, _config, daemon) = daemon().await;
    put(&daemon, "global", "tag:safe", json!({"priority": 1})).await;
    put(&daemon, "chat:7", "tag:safe", json!({"priority": 2})).await;
    put(&daemon, "chat:7", "scenario:mail", json!({"priority": 3})).await;
    let priorities = async |query: &str| {
        let found =
            daemon.json(&format!("/api/v1/preferences?{query}")).await["preferences"].clone();
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["priority"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(priorities("").await, [1, 3, 2]);
    assert_eq!(priorities("scope=chat:7").await, [3, 2]);
    assert_eq!(priorities("target=tag:safe").await, [1, 2]);
    assert!(
        priorities("scope=global&target=scenario:mail")
            .await
            .is_empty()
    );
    daemon.stop().await;
}

#[tokio::test]
async fn changes_at_the_same_time_lose_nothing() {
    let (_home, _scenarios, config, daemon) = daemon().await;
    let changes = (0..40).map(|n| {
        let scope = format!("chat:{}", n / 2);
        let setting = if n % 2 == 0 { "enabled" } else { "priority" };
        let value = if n % 2 == 0 { json!(false) } else { json!(n) };
        let daemon = &daemon;
        async move { put(daemon, &scope, "tool:files/read", json!({setting: value})).await }
    });
    futures_util::future::join_all(changes).await;
    let before = preferences(&daemon).await;
    let whole = |each: &Value| each["enabled"] == false && each["priority"].is_i64();
    assert_eq!(
        before
            .as_array()
            .unwrap()
            .iter()
            .filter(|each| whole(each))
            .count(),
        20
    );
    daemon.stop().await;
    let daemon = Daemon::start(config).await;
    assert_eq!(preferences(&daemon).await, before);
    daemon.stop().await;
}

#[tokio::test]
async fn preferences_are_not_without_end() {
    let home = Home::new();
    let store = sqlite::open(&home.state(), Clock::system()).unwrap();
    let off = Settings {
        enabled: Some(false),
        ..Settings::default()
    };
    let writes = (0..PREFERENCES_MAX).map(|chat| {
        let scope = format!("chat:{chat}").parse().unwrap();
        Write::Preference(
            scope,
            "tag:slow".parse().unwrap(),
            off.clone(),
            PreferenceAuthor::Operator,
        )
    });
    store.save(writes.collect()).await.unwrap();
    drop(store);
    let daemon = Daemon::start(home.config(&[])).await;
    let set = |chat: usize, enabled: Value| json!({"scope": format!("chat:{chat}"), "target": "tag:slow", "enabled": enabled});
    let refused = daemon
        .send_json(
            "PUT",
            "/api/v1/preferences",
            &set(PREFERENCES_MAX, json!(true)),
        )
        .await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(
        refused.problem().contains("10000 preferences already"),
        "{refused:?}"
    );
    for (chat, enabled) in [(7, json!(true)), (7, NULL), (PREFERENCES_MAX, json!(true))] {
        let changed = daemon
            .send_json("PUT", "/api/v1/preferences", &set(chat, enabled))
            .await;
        assert_eq!(
            changed.status, 200,
            "one that is there can be changed, and one that went makes room: {changed:?}"
        );
    }
    daemon.stop().await;
}

const TOKEN: &str = "a-token-of-sixteen-letters";

/// Stores a preference for each of so many chats, as its author wrote them.
async fn store_chats(
    home: &Home,
    count: usize,
    author: PreferenceAuthor,
    settings: impl Fn(usize) -> Settings,
) {
    let store = sqlite::open(&home.state(), Clock::system()).unwrap();
    let writes = (0..count).map(|chat| {
        let scope = format!("chat:{chat}").parse().unwrap();
        Write::Preference(scope, "tag:slow".parse().unwrap(), settings(chat), author)
    });
    store.save(writes.collect()).await.unwrap();
}

/// A daemon with an operator token.
async fn with_token(home: &Home) -> Daemon {
    let mut config = home.config(&[]);
    config.server.operator_token = Some(Secret::new(TOKEN));
    Daemon::start(config).await
}

/// Sends a change of preferences, by a client or with the token.
async fn sent(daemon: &Daemon, token: Option<&str>, request: [&str; 2], body: Value) -> Answer {
    let bearer = format!("Bearer {}", token.unwrap_or_default());
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let headers = if token.is_some() {
        &headers[..]
    } else {
        &headers[..1]
    };
    ask(
        daemon.address,
        request[0],
        request[1],
        headers,
        &body.to_string(),
    )
    .await
}

const PUT: [&str; 2] = ["PUT", "/api/v1/preferences"];

fn hint(chat: &str) -> Value {
    json!({"scope": format!("chat:{chat}"), "target": "tag:slow", "priority": 7})
}

fn priority() -> Settings {
    Settings {
        priority: Some(1),
        ..Settings::default()
    }
}

async fn chats(daemon: &Daemon) -> Vec<String> {
    let preferences = preferences(daemon).await;
    let scopes = preferences
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["scope"].as_str().unwrap().to_owned());
    scopes.filter(|scope| scope.starts_with("chat:")).collect()
}

#[tokio::test]
async fn hints_of_clients_give_way_to_newer_ones_and_never_keep_out_an_operator() {
    let home = Home::new();
    let mixed = |chat| {
        if chat == 1 {
            Settings {
                enabled: Some(false),
                ..priority()
            }
        } else {
            priority()
        }
    };
    store_chats(
        &home,
        CLIENT_PREFERENCES_MAX,
        PreferenceAuthor::Client,
        mixed,
    )
    .await;
    let daemon = with_token(&home).await;
    assert!(daemon.findings("preferences-gave-way").await.is_empty());
    let own = json!({"scope": "chat:own", "target": "tool:files/wipe", "approval": "require"});
    assert_eq!(
        sent(&daemon, Some(TOKEN), PUT, own.clone()).await.status,
        200
    );
    assert_eq!(
        sent(
            &daemon,
            None,
            PUT,
            json!({"scope": "chat:own", "target": "tool:files/wipe", "priority": 2})
        )
        .await
        .status,
        200
    );
    assert_eq!(
        chats(&daemon).await.len(),
        CLIENT_PREFERENCES_MAX + 1,
        "what a client adds to it stays an operator's"
    );

    assert_eq!(
        sent(&daemon, None, PUT, hint("0")).await.status,
        200,
        "it is the newest now"
    );
    assert_eq!(sent(&daemon, None, PUT, hint("a")).await.status, 200);
    let left = chats(&daemon).await;
    assert_eq!(left.len(), CLIENT_PREFERENCES_MAX + 1);
    assert!(
        !left.contains(&"chat:2".to_owned()),
        "chat:1 disables, so the next oldest gives way"
    );
    let findings = daemon.findings("preferences-gave-way").await;
    assert_eq!(findings.len(), 1);
    let message = findings[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("1 preferences that clients") && message.contains("`chat:2 tag:slow`"),
        "{message}"
    );
    daemon.stop().await;

    let daemon = with_token(&home).await;
    assert_eq!(sent(&daemon, None, PUT, hint("b")).await.status, 200);
    let left = chats(&daemon).await;
    assert!(
        !left.contains(&"chat:3".to_owned()),
        "their order outlives the daemon"
    );
    assert!(
        ["chat:0", "chat:1", "chat:a", "chat:b", "chat:own"]
            .iter()
            .all(|kept| left.contains(&(*kept).to_owned()))
    );
    daemon.stop().await;
}

#[tokio::test]
async fn what_clients_tightened_never_gives_way_and_leaves_the_operator_room() {
    let home = Home::new();
    let off = |_| Settings {
        enabled: Some(false),
        ..Settings::default()
    };
    store_chats(&home, CLIENT_PREFERENCES_MAX, PreferenceAuthor::Client, off).await;
    let daemon = with_token(&home).await;
    let refused = sent(&daemon, None, PUT, hint("new")).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(
        refused.problem().contains("none may give way"),
        "{refused:?}"
    );
    assert_eq!(
        sent(&daemon, Some(TOKEN), PUT, hint("new")).await.status,
        200
    );
    assert_eq!(chats(&daemon).await.len(), CLIENT_PREFERENCES_MAX + 1);

    let path = ["POST", "/api/v1/preferences/reset"];
    let all = json!({"scope": "chat:*"});
    assert_eq!(sent(&daemon, None, path, all.clone()).await.status, 401);
    let counted = sent(
        &daemon,
        Some(TOKEN),
        path,
        json!({"scope": "chat:9*", "preview": true}),
    )
    .await;
    assert_eq!(
        counted.json(),
        json!({"scope": "chat:9*", "preferences": 111, "reset": false})
    );
    assert_eq!(
        sent(&daemon, Some(TOKEN), path, json!({"scope": "chat:9*"}))
            .await
            .json()["reset"],
        true
    );
    assert_eq!(chats(&daemon).await.len(), CLIENT_PREFERENCES_MAX + 1 - 111);
    assert_eq!(
        sent(&daemon, None, PUT, hint("newer")).await.status,
        200,
        "there is room again"
    );
    let global = json!({"scope": "global", "target": "tag:slow", "enabled": false});
    assert_eq!(sent(&daemon, Some(TOKEN), PUT, global).await.status, 200);
    let exact = sent(&daemon, Some(TOKEN), path, json!({"scope": "chat:8"}))
        .await
        .json();
    assert_eq!(exact["preferences"], 1, "without a `*` it is one scope");
    assert_eq!(sent(&daemon, Some(TOKEN), path, all).await.status, 200);
    let left = preferences(&daemon).await;
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    daemon.stop().await;
}

/// One conversation that disables tools without end uses up its own share.
#[tokio::test]
async fn a_scope_has_a_share_of_what_clients_may_set_and_leaves_the_others_theirs() {
    let home = Home::new();
    let store = sqlite::open(&home.state(), Clock::system()).unwrap();
    let stored = |at: usize| {
        let settings = match at {
            0 => priority(),
            _ => Settings {
                enabled: Some(false),
                ..Settings::default()
            },
        };
        let target = format!("tag:t{at}").parse().unwrap();
        Write::Preference(
            "chat:0".parse().unwrap(),
            target,
            settings,
            PreferenceAuthor::Client,
        )
    };
    store
        .save((0..CLIENT_PREFERENCES_OF_SCOPE_MAX).map(stored).collect())
        .await
        .unwrap();
    drop(store);
    let daemon = with_token(&home).await;
    let off = |chat: &str, tag: &str| json!({"scope": chat, "target": format!("tag:{tag}"), "enabled": false});
    assert_eq!(
        sent(&daemon, None, PUT, off("chat:0", "more")).await.status,
        200,
        "its one hint gave way"
    );
    let message = daemon.findings("preferences-gave-way").await[0]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("`chat:0 tag:t0`"), "{message}");
    let refused = sent(&daemon, None, PUT, off("chat:0", "most")).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(
        refused.problem().contains("in the scope chat:0 already"),
        "{refused:?}"
    );
    assert_eq!(
        sent(&daemon, None, PUT, off("chat:1", "most")).await.status,
        200
    );
    assert_eq!(
        sent(&daemon, None, PUT, off("global", "most")).await.status,
        200
    );
    assert_eq!(
        sent(&daemon, Some(TOKEN), PUT, off("chat:0", "most"))
            .await
            .status,
        200
    );
    assert_eq!(
        chats(&daemon).await.len(),
        CLIENT_PREFERENCES_OF_SCOPE_MAX + 2
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_reset_of_scopes_counts_what_is_stored_and_not_what_is_configured() {
    let home = Home::new();
    let mut config = home.config(&[]);
    for target in ["tag:slow", "tag:risky"] {
        config
            .preferences
            .set(Scope::Global, target.parse().unwrap(), priority());
    }
    let daemon = Daemon::start(config).await;
    let path = ["POST", "/api/v1/preferences/reset"];
    let reset = async |preview: bool| {
        let body = json!({"scope": "global", "preview": preview});
        sent(&daemon, None, path, body).await.json()["preferences"].clone()
    };
    assert_eq!(
        [reset(true).await, reset(false).await],
        [json!(0), json!(0)]
    );
    put(&daemon, "global", "tag:slow", json!({"pinned": true})).await;
    put(&daemon, "global", "tag:fast", json!({"priority": 3})).await;
    assert_eq!(reset(true).await, json!(2));
    assert_eq!(
        preferences(&daemon).await.as_array().unwrap().len(),
        3,
        "a preview changes none"
    );
    assert_eq!(
        [reset(false).await, reset(false).await],
        [json!(2), json!(0)]
    );
    assert_eq!(
        preferences(&daemon).await.as_array().unwrap().len(),
        2,
        "the configured ones are in force"
    );
    daemon.stop().await;
}

/// An earlier version did not store who made a preference, and had one limit for all.
#[tokio::test]
async fn a_table_that_clients_filled_under_an_earlier_version_leaves_the_operator_room() {
    let home = Home::new();
    store_chats(&home, PREFERENCES_MAX, PreferenceAuthor::Operator, |_| {
        priority()
    })
    .await;
    let earlier = rusqlite::Connection::open(home.state()).unwrap();
    let columns = "ALTER TABLE preferences DROP COLUMN by_client; ALTER TABLE approvals DROP COLUMN client; \
                   ALTER TABLE operations DROP COLUMN access; ALTER TABLE approvals DROP COLUMN called; \
                   ALTER TABLE approvals DROP COLUMN called_version; DROP TABLE histories; DROP TABLE pins; \
                   ALTER TABLE preferences DROP COLUMN pins; DROP TABLE additions; \
                   ALTER TABLE approvals DROP COLUMN permission; ALTER TABLE preferences DROP COLUMN description; \
                   ALTER TABLE preferences DROP COLUMN parameters";
    earlier
        .execute_batch(&format!("{columns}; PRAGMA user_version = 13"))
        .unwrap();
    drop(earlier);
    let daemon = with_token(&home).await;
    assert_eq!(
        chats(&daemon).await.len(),
        PREFERENCES_MAX,
        "an upgrade loses none"
    );
    let own = json!({"scope": "global", "target": "tool:files/wipe", "approval": "require"});
    assert_eq!(sent(&daemon, Some(TOKEN), PUT, own).await.status, 200);
    assert_eq!(chats(&daemon).await.len(), PREFERENCES_MAX);
    assert_eq!(sent(&daemon, None, PUT, hint("new")).await.status, 200);
    let left = chats(&daemon).await;
    assert_eq!(
        left.len(),
        PREFERENCES_MAX,
        "one new one takes the place of one"
    );
    assert!(!left.contains(&"chat:0".to_owned()) && left.contains(&"chat:new".to_owned()));
    let findings = daemon.findings("preferences-gave-way").await;
    let message = findings[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("1 preferences that clients") && message.contains("`chat:0 tag:slow`"),
        "{message}"
    );
    daemon.stop().await;
}

/// Every face that gives lists, with a profile.
fn faces(profile: &str) -> [(&'static str, String, &'static str); 9] {
    let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    [
        ("GET", format!("/api/v1/tools?profile={profile}"), ""),
        ("GET", format!("/api/v1/tools/read?profile={profile}"), ""),
        (
            "GET",
            format!("/api/v1/tools/read/explain?profile={profile}"),
            "",
        ),
        (
            "GET",
            format!("/api/v1/tools/search?q=read&profile={profile}"),
            "",
        ),
        ("GET", format!("/api/v1/events?profile={profile}"), ""),
        ("GET", format!("/api/v1/ws?profile={profile}"), ""),
        ("POST", format!("/mcp/{profile}"), greeting),
        (
            "POST",
            format!("/rpc?profile={profile}"),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        ),
        (
            "POST",
            format!("/api/v1/turns?format=openai&profile={profile}"),
            r#"{"response":{"choices":[]}}"#,
        ),
    ]
}

#[tokio::test]
async fn the_first_preference_of_a_profile_has_every_list_refuse_names_that_none_knows() {
    let (_home, _scenarios, _, daemon) = daemon().await;
    assert_eq!(
        daemon.tools("?profile=ghost").await.len(),
        5,
        "no profile is known, so lists accept every name"
    );
    put(
        &daemon,
        "profile:intern",
        "scenario:mail",
        json!({"enabled": false}),
    )
    .await;
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    for (method, target, body) in faces("interm") {
        let refused = ask(daemon.address, method, &target, &headers, body).await;
        assert_eq!(refused.status, 403, "{target}: {refused:?}");
        let text = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(
            text.contains("unknown_profile") || target.starts_with("/mcp"),
            "{target}: {text}"
        );
        assert!(text.contains("did you mean `intern`?"), "{target}: {text}");
    }
    let call = json!({"tool_name": "read", "arguments": {}, "profile": "interm"});
    let refused = daemon
        .send_json("POST", "/api/v1/tools/execute", &call)
        .await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.json()["code"], "unknown_profile", "{refused:?}");
    for target in [
        "/api/v1/tools/set?profile=interm",
        "/api/modules?profile=interm",
        "/tools/tools?profile=interm",
    ] {
        let refused = daemon.get(target).await;
        assert_eq!(
            refused.status, 400,
            "a route that knows no profile takes none: {target}: {refused:?}"
        );
    }
    assert_eq!(
        daemon.tools("?profile=intern").await,
        ["read", "wipe", "zip"]
    );
    assert_eq!(
        daemon.tools("").await.len(),
        5,
        "a client that names none has the whole list"
    );

    for number in 0..30 {
        let refused = daemon
            .get(&format!("/api/v1/tools?profile=ghost-{number:02}"))
            .await;
        assert_eq!(refused.status, 403);
    }
    let found = daemon.findings("profile-unknown").await;
    assert_eq!(found.len(), 1, "{found:?}");
    let message = found[0]["message"].as_str().unwrap();
    assert_eq!(
        message.matches("`ghost-").count(),
        20,
        "the last 20: {message}"
    );
    assert!(
        message.contains("`ghost-29`") && !message.contains("`ghost-09`"),
        "{message}"
    );

    delete(&daemon, "scope=profile:intern&target=scenario:mail").await;
    assert_eq!(
        daemon.tools("?profile=ghost").await.len(),
        5,
        "no profile is known any more"
    );
    assert!(daemon.findings("profile-unknown").await.is_empty());
    daemon.stop().await;
}

#[tokio::test]
async fn only_the_token_makes_a_profile_known_or_unknown() {
    let home = Home::new();
    let files = Scenario::start("files", [tool("read"), tool("wipe")]).await;
    let mut config = home.config(&[&files]);
    config.server.operator_token = Some(Secret::new(TOKEN));
    let daemon = Daemon::ready(config).await;
    let bearer = format!("Bearer {TOKEN}");
    let operator = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let change = async |headers, body: Value| {
        ask(
            daemon.address,
            "PUT",
            "/api/v1/preferences",
            headers,
            &body.to_string(),
        )
        .await
        .status
    };
    let anybody = &operator[..1];
    let first = json!({"scope": "profile:intern", "target": "tool:files/wipe", "enabled": false});
    assert_eq!(
        change(anybody, first.clone()).await,
        401,
        "it would have lists refuse all other names"
    );
    assert_eq!(daemon.tools("?profile=ghost").await.len(), 2);
    assert_eq!(change(&operator, first).await, 200);
    assert_eq!(daemon.get("/api/v1/tools?profile=ghost").await.status, 403);
    let tighter = json!({"scope": "profile:intern", "target": "tool:files/read", "priority": 3});
    assert_eq!(
        change(anybody, tighter).await,
        200,
        "the profile is known already"
    );
    let reset = json!({"scope": "profile:intern", "target": "tool:files/read", "priority": null});
    assert_eq!(
        change(anybody, reset.clone()).await,
        401,
        "a reset may take away the last preference"
    );
    assert_eq!(change(&operator, reset).await, 200);
    daemon.stop().await;
}

#[tokio::test]
async fn a_change_says_how_many_tools_match_and_how_many_give_no_hints() {
    let home = Home::new();
    let schema = json!({"type": "object"});
    let erase =
        json!({"name": "erase", "inputSchema": schema, "annotations": {"destructiveHint": true}});
    let plain = ["write", "move"].map(|name| json!({"name": name, "inputSchema": schema}));
    let server = McpServer::start(modern(&json!([erase, plain[0], plain[1]]))).await;
    let files = Scenario::start("files", [tool("read")]).await;
    let mut config = home.config(&[&files]);
    let mut disk = configured("disk", "127.0.0.1:1".parse().unwrap());
    disk.target = callsheet::model::Target::at(server.url());
    disk.protocol = Some("mcp".to_owned());
    config.scenarios.push(disk);
    let daemon = Daemon::ready(config.clone()).await;
    daemon
        .until_tools(&["erase", "move", "write", "read"])
        .await;
    let put = async |daemon: &Daemon, target: &str| {
        let body = json!({"scope": "global", "target": target, "priority": 1});
        daemon
            .send_json("PUT", "/api/v1/preferences", &body)
            .await
            .json()
    };
    let told = put(&daemon, "tag:hint:destructive").await;
    assert_eq!(told["matched"], 1, "{told}");
    assert_eq!(told["unjudged"], 2, "{told}");
    let words = "1 tool matches; 2 cannot be judged, because their servers give no hints (see `permissions.unannotated`): disk/move, disk/write";
    assert_eq!(told["summary"], json!(words));
    let told = put(&daemon, "tag:hint:destructiv").await;
    assert_eq!(told["summary"], json!("0 tools match"), "it is no hint");
    let told = put(&daemon, "scenario:disk").await;
    assert_eq!(told["matched"], 3, "{told}");
    assert_eq!(told["unjudged"], 0, "{told}");
    daemon.stop().await;
    config.assumed_tags = vec!["hint:destructive".to_owned()];
    let daemon = Daemon::ready(config).await;
    daemon
        .until_tools(&["erase", "move", "write", "read"])
        .await;
    let told = put(&daemon, "tag:hint:destructive").await;
    assert_eq!(told["summary"], json!("3 tools match"));
    daemon.stop().await;
}
