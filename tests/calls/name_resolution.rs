//! From a name to the tool it means and whether it may be called: in every scope, in old lists, and
//! with arguments that fit.

use std::collections::BTreeSet;

use callsheet::calls::{ExecuteError, Request};
use callsheet::catalog::ViewQuery;
use callsheet::discovery::SourceTrust;
use callsheet::model::{ApprovalPolicy, Permission, Profile, SettingsPatch};
use callsheet::state::Decision;
use serde_json::{Value, json};

use crate::call_end_faces::post;
use crate::support::assert_empty;
use crate::support::callee::{Callee, manifest, tool, tool_with};
use crate::support::house::{House, called, request, scenario, switched};

/// Two scenarios that both offer `read`; the first also offers `write`.
async fn two() -> (Callee, Callee, House) {
    let files = Callee::echo(manifest("files", &[tool("read"), tool("write")])).await;
    let mails = Callee::echo(manifest("mails", &[tool("read"), tool("send mail")])).await;
    let house = House::of(&[("files", files.url()), ("mails", mails.url())]).await;
    (files, mails, house)
}

/// What each was asked to run, in order.
fn ran(callee: &Callee) -> Vec<String> {
    callee.ran().into_iter().map(|ran| ran.tool).collect()
}

#[tokio::test]
async fn every_way_to_name_a_tool_leads_to_its_owner() {
    let (files, mails, house) = two().await;
    let own = |name: &str, owner: &str| Request {
        scenario: Some(scenario(owner)),
        ..request(name, &json!({"a": 1}))
    };
    for (request, expected) in [
        (request("write", &json!({})), "files/write"),
        (request("files__read", &json!({})), "files/read"),
        (request("mails/read", &json!({})), "mails/read"),
        (request("send mail", &json!({})), "mails/send mail"),
        (own("read", "files"), "files/read"),
        (own("mails__read", "mails"), "mails/read"),
        (own("mails/read", "mails"), "mails/read"),
    ] {
        let answered = house.request(request.clone()).await.unwrap();
        assert_eq!(answered.tool.id.to_string(), expected, "{request:?}");
        assert!(answered.outcome.success);
        let owner = if expected.starts_with("files") {
            &files
        } else {
            &mails
        };
        assert_eq!(answered.url, owner.url().as_str());
        assert_eq!(
            answered.outcome.result.unwrap().get(),
            request.arguments.get(),
            "the answer of the owner"
        );
    }
    assert_eq!(ran(&files), ["write", "read", "read"]);
    assert_eq!(ran(&mails), ["read", "send mail", "read", "read"]);

    let ExecuteError::Ambiguous { candidates, .. } =
        house.call("read", &json!({})).await.unwrap_err()
    else {
        unreachable!("it is ambiguous")
    };
    assert_eq!(
        candidates
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["files/read", "mails/read"]
    );
    for refused in [
        request("rite", &json!({})),
        request("nobody/read", &json!({})),
        own("files__read", "mails"),
    ] {
        assert_eq!(house.refusal(refused).await, "unknown_tool");
    }
    house.finish().await;
}

#[tokio::test]
async fn a_name_of_an_older_list_means_what_it_meant_there() {
    let files = Callee::echo(manifest("files", &[tool("read"), tool("write")])).await;
    let mails = Callee::echo(manifest("mails", &[tool("send")])).await;
    let house = House::of(&[("files", files.url()), ("mails", mails.url())]).await;
    let global = ViewQuery::default();
    let first = house.revision(&global);
    let old = |name: &str, revision: &str| Request {
        revision: Some(revision.into()),
        ..request(name, &json!({}))
    };
    assert!(
        house.request(old("read", &first)).await.is_ok(),
        "the present list"
    );

    // Somebody else offers the same name: in the old list it still means the one.
    mails.lists(manifest("mails", &[tool("read"), tool("send")]));
    house.refresh("mails").await;
    assert_eq!(
        house.refusal(request("read", &json!({}))).await,
        "ambiguous"
    );
    assert_eq!(
        house
            .request(old("read", &first))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "files/read"
    );

    // The one is gone, and the name means the other now: the old list's name leads nowhere.
    files.lists(manifest("files", &[tool("write")]));
    house.refresh("files").await;
    assert_eq!(
        house
            .call("read", &json!({}))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "mails/read"
    );
    let ExecuteError::Gone { id, revision, .. } =
        house.request(old("read", &first)).await.unwrap_err()
    else {
        unreachable!("it is gone")
    };
    assert_eq!(id.to_string(), "files/read".to_owned());
    assert_eq!(revision, Some(first.clone()));
    assert_eq!(ran(&mails), ["read"], "only the call that meant it");
    assert!(house.request(old("write", &first)).await.is_ok());
    // An identity means the same in every list.
    assert!(
        house
            .request(old("mails/send", "0000000000000000"))
            .await
            .is_ok()
    );
    assert_eq!(
        house.refusal(old("write", "0000000000000000")).await,
        "unknown_revision"
    );
    house.finish().await;
}

#[tokio::test]
async fn a_name_of_an_older_list_of_a_chat_means_what_it_meant_there() {
    let (files, mails, house) = two().await;
    let chat = ViewQuery {
        chat: Some("7".into()),
        ..ViewQuery::default()
    };
    let in_chat = |name: &str, revision: Option<&str>| Request {
        chat: Some("7".into()),
        revision: revision.map(str::to_owned),
        ..request(name, &json!({}))
    };
    house
        .prefer("chat:7", "tool:files/read", called("fetch"))
        .await;
    let first = house.revision(&chat);
    assert_eq!(
        house
            .request(in_chat("fetch", None))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "files/read"
    );
    assert_eq!(
        house.refusal(request("fetch", &json!({}))).await,
        "unknown_tool",
        "only there"
    );
    // The alias goes to another tool: nobody who holds the old list is led there.
    let none = SettingsPatch {
        alias: Some(None),
        ..SettingsPatch::default()
    };
    house.prefer("chat:7", "tool:files/read", none).await;
    house
        .prefer("chat:7", "tool:mails/read", called("fetch"))
        .await;
    assert_eq!(
        house
            .request(in_chat("fetch", None))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "mails/read"
    );
    assert_eq!(
        house
            .request(in_chat("fetch", Some(&first)))
            .await
            .unwrap()
            .tool
            .id
            .to_string(),
        "files/read"
    );
    assert_eq!(ran(&files), vec!["read".to_owned(); 2]);
    assert_eq!(ran(&mails), vec!["read".to_owned()]);
    house.finish().await;
}

#[tokio::test]
async fn only_so_many_lists_are_remembered() {
    let (_files, _mails, house) = two().await;
    let global = ViewQuery::default();
    let first = house.revision(&global);
    let old = |revision: &str| Request {
        revision: Some(revision.into()),
        ..request("write", &json!({}))
    };
    for n in 0..callsheet::catalog::revision_history::KEPT {
        house
            .prefer("global", "tool:files/read", called(&format!("read_{n}")))
            .await;
        assert!(house.request(old(&first)).await.is_ok(), "{n} lists ago");
    }
    house
        .prefer("global", "tool:files/read", called("read_last"))
        .await;
    assert_eq!(house.refusal(old(&first)).await, "unknown_revision");
    house.finish().await;
}

/// What a list holds besides the usual members of tools did not count: servers with much of it that
/// change all the time took gigabytes.
#[tokio::test]
async fn fewer_lists_are_remembered_whose_tools_have_large_members_of_any_name() {
    let large = |edition: u32| {
        let tools = (0..16).map(|number| {
            let mut tool = tool(&format!("tool_{number}"));
            tool["x_more"] = format!("{edition:06}{}", "m".repeat(200_000)).into();
            tool
        });
        manifest("files", &tools.collect::<Vec<_>>())
    };
    let files = Callee::echo(large(0)).await;
    let house = House::of(&[("files", files.url())]).await;
    let address = house.serve().await;
    let first = house.revision(&ViewQuery::default());
    let old = || Request {
        revision: Some(first.as_str().into()),
        ..request("tool_1", &json!({}))
    };
    let mut refusals = Vec::new();
    for edition in 1..=4 {
        files.lists(large(edition));
        let refreshed = post(address, "/api/v1/scenarios/files/refresh", &json!({})).await;
        assert_eq!(refreshed.status, 200, "{refreshed:?}");
        refusals.push(house.request(old()).await.err().map(|error| error.kind()));
    }
    let forgotten = Some("unknown_revision");
    assert_eq!(refusals, [None, None, forgotten, forgotten]);
    house.finish().await;
}

#[tokio::test]
async fn a_tool_that_is_switched_off_for_the_asker_is_not_called() {
    let (files, mails, house) = two().await;
    let chat = |name: &str| Request {
        chat: Some("7".into()),
        ..request(name, &json!({}))
    };
    house
        .prefer("chat:7", "tool:files/write", switched(false))
        .await;
    let refused = house.request(chat("write")).await.unwrap_err();
    assert_eq!(refused.kind(), "disabled");
    assert!(
        refused.to_string().contains("chat:7 tool:files/write"),
        "{refused}"
    );
    assert!(
        house.call("write", &json!({})).await.is_ok(),
        "elsewhere it is on"
    );
    house
        .prefer("global", "scenario:mails", switched(false))
        .await;
    assert_eq!(
        house.refusal(request("mails/read", &json!({}))).await,
        "disabled"
    );
    house
        .prefer("chat:7", "tool:mails/read", switched(true))
        .await;
    assert!(
        house.request(chat("mails/read")).await.is_ok(),
        "and on where it was switched on"
    );
    assert_eq!(ran(&files).len(), 1);
    assert_eq!(ran(&mails).len(), 1);
    house.finish().await;
}

/// A tool that asks this permission, whatever it is.
fn asking(name: &str, permission: &Value) -> Value {
    let metadata = json!({"enabled_by_default": true, "required_permission": permission});
    tool_with(
        name,
        &json!({"type": "object", "properties": {}}),
        &metadata,
    )
}

#[tokio::test]
async fn a_profile_calls_within_its_bounds_only_and_what_is_unknown_is_out_of_them() {
    let tools = [
        tool("free"),
        asking("known", &json!("user")),
        asking("high", &json!("admin")),
    ];
    let odd = [
        asking("odd", &json!("superuser")),
        asking("odder", &json!(7)),
        asking("none", &json!(null)),
    ];
    let files = Callee::echo(manifest("files", &[&tools[..], &odd[..]].concat())).await;
    let mails = Callee::echo(manifest("mails", &[tool("send")])).await;
    let house = House::with(
        &[("files", files.url()), ("mails", mails.url())],
        |config| {
            let scenarios = Some(BTreeSet::from([scenario("files")]));
            let bounds = Profile {
                scenarios,
                permission: Some(Permission::User),
                ..Profile::default()
            };
            config.profiles = [
                ("clerk".to_owned(), bounds),
                ("anyone".to_owned(), Profile::default()),
            ]
            .into();
        },
    )
    .await;
    let by = |profile: &str, name: &str| Request {
        profile: Some(profile.into()),
        ..request(name, &json!({}))
    };
    for name in ["free", "known", "none"] {
        assert!(house.request(by("clerk", name)).await.is_ok(), "{name}");
    }
    for name in ["high", "odd", "odder", "send"] {
        assert_eq!(
            house.refusal(by("clerk", name)).await,
            "not_allowed",
            "{name}"
        );
    }
    for name in ["free", "high", "odd", "odder", "send"] {
        assert!(
            house.request(by("anyone", name)).await.is_ok(),
            "{name}: a profile without bounds"
        );
        assert!(
            house.call(name, &json!({})).await.is_ok(),
            "{name}: no profile"
        );
    }
    assert_eq!(house.refusal(by("nobody", "free")).await, "unknown_profile");
    house
        .prefer("profile:nobody", "tool:files/free", switched(true))
        .await;
    assert_eq!(
        house.refusal(by("nobody", "free")).await,
        "unknown_profile",
        "a preference gives no bounds"
    );
    house.finish().await;
    // Where no profile has bounds, one is known by the preferences that speak of it.
    let house = House::of(&[("files", files.url())]).await;
    assert_eq!(house.refusal(by("nobody", "free")).await, "unknown_profile");
    house
        .prefer("profile:nobody", "tool:files/free", switched(true))
        .await;
    assert!(
        house.request(by("nobody", "free")).await.is_ok(),
        "somebody spoke of it"
    );
    house.finish().await;
}

#[tokio::test]
async fn internal_tools_are_for_programs() {
    let internal = json!({"enabled_by_default": true, "internal_only": true});
    let hidden = tool_with(
        "housekeeping",
        &json!({"type": "object", "properties": {}}),
        &internal,
    );
    let files = Callee::echo(manifest("files", &[hidden])).await;
    let house = House::of(&[("files", files.url())]).await;
    assert!(house.names().is_empty(), "no LLM sees it");
    assert!(house.call("housekeeping", &json!({})).await.is_ok());
    house.finish().await;
}

#[tokio::test]
async fn who_waits_for_a_yes_was_blocked_or_is_down_is_not_called() {
    let mut files = Callee::echo(manifest("files", &[tool("read")])).await;
    let house = House::with(&[], |config| {
        config.health.failures = 1;
        config.health.grace = std::time::Duration::ZERO;
        config.health.isolation_max = std::time::Duration::ZERO;
        config.refresh.forced_gap = std::time::Duration::ZERO;
    })
    .await;
    let name = scenario("files");
    house.place("files", files.url(), SourceTrust::Untrusted);
    house
        .until("pending", |snapshot| {
            snapshot.catalog.entry(&name).is_some()
        })
        .await;
    assert_eq!(
        house.refusal(request("read", &json!({}))).await,
        "unknown_tool"
    );
    assert_eq!(
        house.refusal(request("files/read", &json!({}))).await,
        "not_trusted"
    );
    house
        .app
        .engine()
        .decide(name.clone(), Some(Decision::Blocked))
        .await
        .unwrap();
    assert_eq!(
        house.refusal(request("files/read", &json!({}))).await,
        "not_trusted"
    );
    house
        .app
        .engine()
        .decide(name.clone(), Some(Decision::Trusted))
        .await
        .unwrap();
    assert!(house.call("read", &json!({})).await.is_ok());
    files.kill().await;
    house.refresh("files").await;
    let refused = house.call("read", &json!({})).await.unwrap_err();
    assert_eq!(refused.kind(), "unavailable", "{refused}");
    assert!(
        refused.to_string().contains("refused"),
        "with the reason: {refused}"
    );
    assert_eq!(ran(&files), ["read"]);
    house.finish().await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_with_every_place() {
    let parameters = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string", "minLength": 1},
        "lines": {"type": "array", "items": {"type": "integer"}},
    }});
    let read = tool_with("read", &parameters, &json!({"enabled_by_default": true}));
    let files = Callee::echo(manifest("files", &[read])).await;
    let house = House::of(&[("files", files.url())]).await;
    let refused = house
        .call("read", &json!({"lines": [1, "two", 3.5]}))
        .await
        .unwrap_err();
    let ExecuteError::Invalid {
        violations,
        more,
        tool: named,
    } = &refused
    else {
        unreachable!("{refused}")
    };
    let mut places: Vec<&str> = violations
        .iter()
        .map(|violation| violation.pointer.as_str())
        .collect();
    places.sort_unstable();
    assert_eq!(places, vec!["", "/lines/1", "/lines/2"]);
    assert!(!*more);
    assert_eq!(named.as_str(), "read");
    let text = refused.to_string();
    assert!(
        text.contains("/lines/1: ") && text.contains("; /lines/2: "),
        "{text}"
    );
    for arguments in [json!([]), json!("text"), json!(null)] {
        assert_eq!(
            house.refusal(request("read", &arguments)).await,
            "invalid_arguments",
            "{arguments}"
        );
    }
    // Large ones are checked beside the async threads, with the same outcome.
    let large: Vec<Value> = (0..10_000)
        .map(Value::from)
        .chain([json!("last")])
        .collect();
    let refused = house
        .call("read", &json!({"path": "p", "lines": large}))
        .await
        .unwrap_err();
    let ExecuteError::Invalid { violations, .. } = refused else {
        unreachable!()
    };
    assert_eq!(violations[0].pointer, "/lines/10000");
    assert_empty!(files.ran());
    assert!(
        house
            .call("read", &json!({"path": "p", "lines": [1]}))
            .await
            .is_ok()
    );

    // The schema in force is the one that counts.
    files.lists(manifest("files", &[tool("read")]));
    house.refresh("files").await;
    assert!(house.call("read", &json!({"lines": "any"})).await.is_ok());
    house.finish().await;
}

#[tokio::test]
async fn what_needs_a_humans_yes_is_not_run_without_it() {
    let needs = json!({"enabled_by_default": true, "requires_approval": true});
    let wipe = tool_with("wipe", &json!({"type": "object", "properties": {}}), &needs);
    let files = Callee::echo(manifest("files", &[wipe, tool("read")])).await;
    let house = House::of(&[("files", files.url())]).await;
    assert!(house.call("wipe", &json!({})).await.is_err());
    let required = SettingsPatch {
        approval: Some(Some(ApprovalPolicy::Require)),
        ..SettingsPatch::default()
    };
    house.prefer("chat:7", "tool:files/read", required).await;
    assert!(
        house
            .request(Request {
                chat: Some("7".into()),
                ..request("read", &json!({}))
            })
            .await
            .is_err()
    );
    assert_empty!(files.ran());
    let skipped = SettingsPatch {
        approval: Some(Some(ApprovalPolicy::Skip)),
        ..SettingsPatch::default()
    };
    house.prefer("global", "tool:files/wipe", skipped).await;
    assert!(house.call("wipe", &json!({})).await.is_ok());
    house.finish().await;
}
