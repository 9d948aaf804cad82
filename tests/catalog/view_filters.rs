//! Views of the catalog: filters, relevance, limits, scopes with their own names, and the
//! explanation of one tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use callsheet::catalog::{
    Absence, Catalog, Explanation, Inputs, NameLookup, View, ViewQuery, Visibility, build, explain,
    find_in_scope,
};
use callsheet::model::{ApprovalPolicy, NameRef, Permission, Profile, Settings};

use crate::support::assert_empty;
use crate::support::offers::{
    self, alias, catalog, enabled, id, inherit, inputs, offer, preferences, priority, put, tool,
};

fn everything() -> ViewQuery {
    ViewQuery::default()
}

fn chat(chat: &str) -> ViewQuery {
    ViewQuery {
        chat: Some(chat.to_owned()),
        ..ViewQuery::default()
    }
}

/// The names in a view; an `!` after a part that is not whole.
fn shown(catalog: &Catalog, query: &ViewQuery) -> Vec<String> {
    let view = View::select(catalog, query);
    let part = |part: &callsheet::catalog::Part| {
        let names: Vec<_> = part
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect();
        format!(
            "{}: {}{}",
            part.entry.name,
            names.join(" "),
            if part.whole { "" } else { "!" }
        )
    };
    view.parts.iter().map(part).collect()
}

fn offices() -> Inputs {
    let mut inputs = Inputs::default();
    put(&mut inputs, offer("empty", &[]));
    let read = tool("read")
        .category("io")
        .tag("safe")
        .about("Reads a FILE");
    let wipe = tool("wipe")
        .category("io")
        .risky()
        .about("removes everything");
    put(
        &mut inputs,
        offer(
            "files",
            &[read, wipe, tool("debug").internal(), tool("old").off()],
        ),
    );
    put(
        &mut inputs,
        offer(
            "mail",
            &[
                tool("send").tag("Ünder").about("sends a letter"),
                tool("sync").tag("safe"),
            ],
        ),
    );
    put(
        &mut inputs,
        offers::standing(
            offer("gone", &[tool("lost")]),
            Visibility::Withdrawn("down".to_owned()),
        ),
    );
    inputs
}

#[test]
fn the_plain_list_has_what_is_enabled_and_not_internal() {
    let catalog = build(&offices());
    assert_eq!(
        shown(&catalog, &everything()),
        ["empty: ", "files: read wipe", "mail: send sync"]
    );
    let view = View::select(&catalog, &everything());
    assert!(Arc::ptr_eq(
        &view.parts[1].tools,
        &view.parts[1].entry.listed
    ));
    assert_eq!(view.len(), 4);

    let disabled = ViewQuery {
        include_disabled: true,
        ..everything()
    };
    assert_eq!(
        shown(&catalog, &disabled),
        ["empty: ", "files: old read wipe!", "mail: send sync"]
    );
    let internal = ViewQuery {
        include_internal: true,
        ..everything()
    };
    assert_eq!(
        shown(&catalog, &internal),
        ["empty: ", "files: debug read wipe!", "mail: send sync"]
    );
}

#[test]
fn a_profile_sees_its_scenarios_and_what_its_permission_allows() {
    let mut inputs = offices();
    let level = |name: &str, permission| tool(name).asks(permission);
    let house = [
        level("ask", Permission::Guest),
        level("use", Permission::User),
        level("sell", Permission::Owner),
    ];
    put(&mut inputs, offer("house", &house));
    let named = |names: &[&str]| Some(names.iter().map(|name| name.parse().unwrap()).collect());
    inputs.profiles = Arc::new(
        BTreeMap::from([
            (
                "clerk".to_owned(),
                Profile {
                    scenarios: named(&["house", "mail"]),
                    permission: Some(Permission::User),
                    ..Profile::default()
                },
            ),
            (
                "nobody".to_owned(),
                Profile {
                    scenarios: named(&[]),
                    ..Profile::default()
                },
            ),
            ("anyone".to_owned(), Profile::default()),
        ])
        .into(),
    );
    let catalog = build(&inputs);
    let profile = |name: &str| ViewQuery {
        profile: Some(name.to_owned()),
        ..everything()
    };
    assert_eq!(
        shown(&catalog, &profile("clerk")),
        ["house: ask use!", "mail: send sync"]
    );
    assert_eq!(shown(&catalog, &profile("nobody")), Vec::<String>::new());
    let all = shown(&catalog, &everything());
    assert_eq!(all[2], "house: ask sell use");
    assert_eq!(shown(&catalog, &profile("anyone")), all);
    // A slip in a name must not show more than the name itself would.
    assert_eq!(
        shown(&catalog, &profile("unheard of")),
        Vec::<String>::new()
    );
    let message = catalog
        .unknown_profile(&profile("unheard of"))
        .unwrap()
        .to_string();
    assert!(
        message.contains("`unheard of`") && message.contains("`anyone`, `clerk`, `nobody`"),
        "{message}"
    );
    assert_eq!(catalog.unknown_profile(&profile("anyone")), None);
    inputs.profiles = Arc::default();
    assert_eq!(
        shown(&build(&inputs), &profile("unheard of")),
        all,
        "without bounds a profile is a scope of preferences"
    );

    let why = |tool: &str| {
        let NameLookup::One(tool) = catalog.find(&NameRef::Id(id(tool))) else {
            panic!()
        };
        let explanation = explain(&catalog, &profile("clerk"), &tool);
        let step = explanation
            .steps
            .iter()
            .find(|step| step.subject == "profile")
            .cloned();
        (
            explanation.listed,
            step.map(|step| (step.outcome, step.source)),
        )
    };
    assert_eq!(why("house/use"), (true, None));
    let (listed, step) = why("house/sell");
    assert!(!listed);
    assert_eq!(
        step.unwrap().0.as_str(),
        "it requires the permission `owner`, and the profile has `user`"
    );
    let (listed, step) = why("files/read");
    let expected = (
        "the profile may not see scenario files".to_owned(),
        "profile:clerk".to_owned(),
    );
    assert!(!listed);
    assert_eq!(step, Some(expected));
}

#[test]
fn filters_choose_by_scenario_category_and_tag() {
    let catalog = build(&offices());
    let scenarios = |names: &[&str]| ViewQuery {
        scenarios: names.iter().map(|name| offers::scenario(name)).collect(),
        ..everything()
    };
    assert_eq!(
        shown(&catalog, &scenarios(&["mail", "gone", "unknown"])),
        ["mail: send sync"]
    );
    assert_eq!(shown(&catalog, &scenarios(&["empty"])), ["empty: "]);
    let io = ViewQuery {
        categories: ["io".to_owned()].into(),
        ..everything()
    };
    assert_eq!(shown(&catalog, &io), ["files: read wipe"]);
    let safe = ViewQuery {
        tags: ["safe".to_owned(), "other".to_owned()].into(),
        ..everything()
    };
    assert_eq!(shown(&catalog, &safe), ["files: read!", "mail: sync!"]);
    let none = ViewQuery {
        tags: ["other".to_owned()].into(),
        ..everything()
    };
    assert!(
        View::select(&catalog, &none).is_empty(),
        "a filter that matches nothing"
    );
    assert_empty!(shown(&catalog, &none));
}

#[test]
fn a_search_keeps_what_is_relevant_in_the_usual_order() {
    let catalog = build(&offices());
    let found = |text: &str| {
        shown(
            &catalog,
            &ViewQuery {
                q: Some(text.to_owned()),
                ..everything()
            },
        )
    };
    assert_eq!(found("file"), ["files: read wipe"]);
    assert_eq!(
        found("letters, or something to READ"),
        ["files: read!", "mail: send!"]
    );
    assert_eq!(found("üNDER"), ["mail: send!"]);
    assert_eq!(found("submarine"), [] as [&str; 0]);
    let query = ViewQuery {
        q: Some("letters, or something to READ".to_owned()),
        ..everything()
    };
    let view = View::select(&catalog, &query);
    let ranks: Vec<_> = view
        .tools()
        .map(|tool| (view.picks[&tool.id].rank, view.picks[&tool.id].score))
        .collect();
    let ranked: Vec<_> = view
        .rank("letters, or something to READ", 9)
        .into_iter()
        .map(|hit| hit.tool.id.clone())
        .collect();
    for (tool, (rank, score)) in view.tools().zip(ranks) {
        assert_eq!(ranked[rank - 1], tool.id);
        assert!(score.is_some());
    }
    assert!(
        view.left_out
            .iter()
            .all(|left| left.why == Absence::Irrelevant)
            && view.left_out.len() == 2
    );
}

#[test]
fn a_limit_keeps_the_highest_priorities_in_the_usual_order() {
    let mut inputs = offices();
    inputs.preferences = preferences(&[
        ("global", "tool:mail/sync", priority(5)),
        ("global", "tool:files/read", priority(-1)),
    ]);
    let catalog = build(&inputs);
    let limited = |max| {
        let query = ViewQuery {
            max_tools: Some(max),
            ..everything()
        };
        let left: Vec<_> = View::select(&catalog, &query)
            .left_out
            .iter()
            .map(|left| left.tool.id.to_string())
            .collect();
        (shown(&catalog, &query), left)
    };
    let texts = |parts: &[&str], left: &[&str]| {
        let owned = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        (owned(parts), owned(left))
    };
    assert_eq!(
        limited(4),
        texts(&["empty: ", "files: read wipe", "mail: send sync"], &[])
    );
    assert_eq!(
        limited(3),
        texts(
            &["empty: ", "files: wipe!", "mail: send sync"],
            &["files/read"]
        )
    );
    assert_eq!(
        limited(2),
        texts(
            &["empty: ", "files: wipe!", "mail: sync!"],
            &["files/read", "mail/send"]
        )
    );
    assert_eq!(
        limited(0),
        texts(
            &["empty: "],
            &["files/read", "files/wipe", "mail/send", "mail/sync"]
        )
    );
}

#[test]
fn chat_beats_profile_beats_global_and_untouched_parts_stay_whole() {
    let mut inputs = offices();
    inputs.preferences = preferences(&[
        ("global", "tool:mail/send", enabled(false)),
        ("profile:p", "scenario:mail", enabled(true)),
        (
            "chat:7",
            "tag:Ünder",
            Settings {
                approval: Some(ApprovalPolicy::Require),
                enabled: Some(false),
                ..inherit()
            },
        ),
    ]);
    let catalog = build(&inputs);
    let profile = ViewQuery {
        profile: Some("p".to_owned()),
        ..everything()
    };
    let both = ViewQuery {
        chat: Some("7".to_owned()),
        ..profile.clone()
    };
    assert_eq!(shown(&catalog, &everything())[2], "mail: sync");
    // `sync` is enabled as before, but by another authority, which shows in the list.
    assert_eq!(
        shown(&catalog, &profile),
        ["empty: ", "files: read wipe", "mail: send sync!"]
    );
    assert_eq!(shown(&catalog, &both)[2], "mail: sync!");
    assert_eq!(
        shown(&catalog, &chat("other")),
        shown(&catalog, &everything())
    );
    let NameLookup::One(send) = find_in_scope(&catalog, &both, &NameRef::parse("mail/send")) else {
        panic!()
    };
    assert_eq!(
        send.effective.enabled_source.to_string(),
        "chat:7 tag:Ünder"
    );
    assert!(send.effective.requires_approval);
}

#[test]
fn aliases_of_a_scope_resolve_the_names_they_touch_again() {
    let wanted = [
        ("chat:7", "tool:files/read", alias("send")),
        ("chat:8", "tool:files/read", alias("mail__send")),
    ];
    let catalog = catalog(
        &[("files", &["read"]), ("mail", &["send"]), ("web", &["get"])],
        &wanted,
    );
    assert_eq!(
        shown(&catalog, &everything()),
        ["files: read", "mail: send", "web: get"]
    );
    assert_eq!(
        shown(&catalog, &chat("7")),
        ["files: send!", "mail: mail__send!", "web: get"]
    );
    assert_eq!(
        shown(&catalog, &chat("8")),
        ["files: files__read!", "mail: send", "web: get"]
    );

    let find =
        |query: &ViewQuery, name: &str| match find_in_scope(&catalog, query, &NameRef::parse(name))
        {
            NameLookup::One(tool) => tool.id.to_string(),
            other => format!("{other:?}"),
        };
    assert_eq!(find(&chat("7"), "send"), "files/read");
    assert_eq!(find(&everything(), "send"), "mail/send");
    assert_eq!(find(&chat("7"), "mail__send"), "mail/send");
    assert_eq!(
        find(&everything(), "mail__send"),
        "mail/send",
        "its name for MCP clients"
    );
    assert_eq!(
        find(&chat("7"), "read"),
        "files/read",
        "the original name still finds it"
    );
}

fn explained(catalog: &Catalog, query: &ViewQuery, identity: &str) -> (Explanation, Vec<String>) {
    let id = id(identity);
    let explanation = explain(
        catalog,
        query,
        catalog.entry(&id.scenario).unwrap().tool(&id.tool).unwrap(),
    );
    let steps = explanation
        .steps
        .iter()
        .map(|step| format!("{} [{}] {}", step.subject, step.source, step.outcome));
    let steps = steps.collect();
    (explanation, steps)
}

#[test]
fn an_explanation_tells_every_decision_with_its_source() {
    let mut inputs = inputs(&[("mail", &["read"])]);
    put(
        &mut inputs,
        offer("files", &[tool("read").tag("x").risky()]),
    );
    inputs.preferences = preferences(&[
        ("global", "scenario:files", enabled(true)),
        ("global", "tag:x", enabled(false)),
        (
            "chat:7",
            "tool:files/read",
            Settings {
                approval: Some(ApprovalPolicy::Skip),
                ..priority(3)
            },
        ),
    ]);
    let catalog = build(&inputs);
    let (explanation, steps) = explained(&catalog, &chat("7"), "files/read");
    assert!(!explanation.listed);
    let expected = [
        "offered [manifest] scenario files offers it in its manifest (not dated, protocol 1.0)",
        "standing [scenario files] its tools are published",
        "enabled [manifest] enabled by default; overridden",
        "enabled [global scenario:files] enabled; overridden",
        "enabled [global tag:x] disabled; in effect",
        "approval [manifest] the manifest requires approval; overridden",
        "approval [chat:7 tool:files/read] skip; in effect",
        "internal [manifest] not marked as internal",
        "name [catalog] name-collision: `read` is not available: it is also the name of mail/read; published as `files__read`",
        "priority [manifest] 0 by default; overridden",
        "priority [chat:7 tool:files/read] 3; in effect",
    ];
    assert_eq!(steps, expected);
    let codes: Vec<_> = explanation
        .findings
        .iter()
        .map(|finding| finding.code.as_str())
        .collect();
    assert_eq!(codes, ["name-collision", "disabled"]);
    let hint = explanation.findings[1].hint.as_deref().unwrap();
    assert!(
        hint.contains("callsheet prefs set tool:files/read --enabled true --scope chat:7"),
        "{hint}"
    );
}

#[test]
fn an_explanation_mentions_aliases_withdrawal_and_absence() {
    let mut inputs = inputs(&[("files", &["read"])]);
    put(
        &mut inputs,
        offers::standing(
            offer("gone", &[tool("lost")]),
            Visibility::Withdrawn("it is down".to_owned()),
        ),
    );
    inputs.preferences = preferences(&[("global", "tool:files/read", alias("cat"))]);
    let catalog = build(&inputs);
    let (explanation, steps) = explained(&catalog, &everything(), "files/read");
    assert!(explanation.listed);
    assert!(
        steps.contains(&"alias [global tool:files/read] alias `cat`: given".to_owned()),
        "{steps:?}"
    );
    assert!(
        !steps.iter().any(|step| step.starts_with("mcp-name")),
        "MCP clients have the alias, too: {steps:?}"
    );

    let (explanation, steps) = explained(&catalog, &everything(), "gone/lost");
    assert!(!explanation.listed && explanation.findings[0].message.ends_with("it is down"));
    assert!(
        steps[1].ends_with("keep their names: it is down"),
        "{steps:?}"
    );

    let gone = explain(&Catalog::default(), &everything(), &explanation.tool);
    assert!(!gone.listed);
    assert_eq!(
        gone.steps[0].outcome,
        "scenario gone does not offer it any more"
    );
}
