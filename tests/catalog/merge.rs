//! The merge through the library: names, preferences, findings, revisions, lookups and what is
//! shared between catalogs.

use std::sync::Arc;

use callsheet::catalog::{
    Catalog, Change, Inputs, NameLookup, NamingStyle, Offer, View, ViewQuery, Visibility, build,
};
use callsheet::model::{ApprovalPolicy, NameRef, Provenance, Settings};

use crate::support::offers::{
    self, alias, catalog, change, enabled, finding_lines, id, inherit, inputs, names, offer,
    preferences, put, scenario, tool,
};

fn bare(catalog: &Catalog, name: &str) -> Vec<String> {
    match catalog.find(&NameRef::parse(name)) {
        NameLookup::One(tool) => vec![tool.id.to_string()],
        NameLookup::Ambiguous(tools) => tools.iter().map(|tool| tool.id.to_string()).collect(),
        NameLookup::None => Vec::new(),
    }
}

fn with_message(catalog: &Catalog, start: &str) -> String {
    let lines = finding_lines(catalog);
    lines
        .iter()
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no `{start}` in {lines:#?}"))
        .clone()
}

#[test]
fn a_sole_name_stays_and_a_shared_one_is_qualified_for_everybody() {
    let both = catalog(&[("files", &["list", "read"]), ("mail", &["read"])], &[]);
    assert_eq!(
        names(&both),
        [
            "list = files/list",
            "files__read = files/read",
            "mail__read = mail/read"
        ]
    );
    assert_eq!(bare(&both, "mail__read"), ["mail/read"]);
    assert_eq!(bare(&both, "read"), ["files/read", "mail/read"]);
    assert_eq!(bare(&both, "files/read"), ["files/read"]);
    assert_eq!(bare(&both, "nothing"), [] as [&str; 0]);
    let message = with_message(&both, "name-collision files/read");
    assert!(
        message.contains("also the name of mail/read; published as `files__read`"),
        "{message}"
    );

    let alone = both.with(Change::Offer(scenario("mail"), None));
    assert_eq!(names(&alone), ["list = files/list", "read = files/read"]);
    assert_eq!(finding_lines(&alone), [] as [&str; 0]);
}

#[test]
fn one_alias_holder_gets_the_name_and_several_get_nothing() {
    let scenarios: &[(&str, &[&str])] = &[("files", &["read"]), ("mail", &["fetch", "read"])];
    let one = catalog(scenarios, &[("global", "tool:mail/fetch", alias("read"))]);
    assert_eq!(
        names(&one),
        [
            "files__read = files/read",
            "read = mail/fetch",
            "mail__read = mail/read"
        ]
    );
    assert_eq!(
        bare(&one, "read"),
        ["mail/fetch"],
        "a published name goes before original ones"
    );
    assert_eq!(
        bare(&one, "fetch"),
        ["mail/fetch"],
        "the original name still finds it"
    );
    assert!(
        with_message(&one, "aliased mail/fetch")
            .contains("by the preference global tool:mail/fetch")
    );
    assert!(with_message(&one, "name-collision files/read").contains("the alias of mail/fetch"));

    let two = [
        ("global", "tool:mail/fetch", alias("get")),
        ("global", "tool:files/read", alias("get")),
    ];
    let two = catalog(
        &[
            ("files", &["read"]),
            ("mail", &["fetch"]),
            ("web", &["get"]),
        ],
        &two,
    );
    assert_eq!(
        names(&two),
        [
            "files__read = files/read",
            "mail__fetch = mail/fetch",
            "web__get = web/get"
        ]
    );
    assert!(with_message(&two, "alias-refused files/read").contains("the alias of mail/fetch"));
    assert!(with_message(&two, "alias-refused mail/fetch").contains("the alias of files/read"));
}

#[test]
fn nothing_gets_the_qualified_name_of_another_tool() {
    // `b/read` may come to need `b__read` at any time, so a tool of that name cannot have it, and
    // neither takes it from the other.
    let quiet = catalog(&[("a", &["b__read"]), ("b", &["read"])], &[]);
    assert_eq!(names(&quiet), ["a__b__read = a/b__read", "read = b/read"]);
    let crowded = quiet.with(change(offer("c", &[tool("read")])));
    let tool = found_one(&crowded, "b/read");
    assert!(
        tool.name.as_str().starts_with("_b__read_"),
        "expected the unique form of b/read, found {}",
        tool.name
    );
    assert!(
        tool.name.is_reserved(),
        "{} could be another tool's",
        tool.name
    );
    assert_eq!(
        bare(&crowded, "b__read"),
        ["b/read"],
        "its name for MCP clients goes before an original name"
    );
    assert_eq!(bare(&crowded, tool.name.as_str()), ["b/read"]);
    let message = with_message(&crowded, "name-collision b/read: `b__read`");
    assert!(message.contains("also the name of a/b__read"), "{message}");
}

#[test]
fn meeting_qualified_names_and_forged_ones_stay_apart() {
    let forged = callsheet::model::PublishedName::unique(&id("a/b__c")).to_string();
    let clash = catalog(
        &[
            ("a", &["b__c"]),
            ("a__b", &["c"]),
            ("x", &["b__c", "c", &forged]),
        ],
        &[],
    );
    let names = names(&clash);
    assert!(
        names[0].starts_with("_a__b__c_")
            && names[1].starts_with("_a__b__c_")
            && names[0] != names[1],
        "{names:?}"
    );
    assert!(
        names
            .iter()
            .any(|line| line.starts_with("x__") && line.ends_with(&format!("= x/{forged}"))),
        "{names:?}"
    );
    assert_eq!(bare(&clash, &forged), ["a/b__c"]);
}

#[test]
fn illegal_names_are_repaired_with_a_finding() {
    let catalog = catalog(&[("files", &["read file"])], &[]);
    let tool = found_one(&catalog, "files/read file");
    assert!(
        tool.name.as_str().starts_with("read_file_"),
        "{}",
        tool.name
    );
    assert_eq!(bare(&catalog, "read file"), ["files/read file"]);
    assert!(with_message(&catalog, "name-repaired files/read file").contains(tool.name.as_str()));
}

#[test]
fn tools_that_are_not_in_the_list_keep_their_names_unless_their_scenario_is_hidden() {
    for other in [tool("read").off(), tool("read").internal()] {
        let mut inputs = inputs(&[("files", &["read"])]);
        put(&mut inputs, offer("mail", &[other]));
        assert_eq!(names(&build(&inputs))[0], "files__read = files/read");
    }
    let published = catalog(&[("files", &["read"]), ("mail", &["read"])], &[]);
    let mail = offer("mail", &[tool("read")]);
    let down = Visibility::Withdrawn("no answer for 5 minutes".to_owned());
    let down = published.with(change(offers::standing(mail.clone(), down)));
    assert_eq!(names(&down)[0], "files__read = files/read");
    assert_eq!(bare(&down, "mail__read"), ["mail/read"]);
    let hidden = down.with(change(offers::standing(
        mail,
        Visibility::Hidden("an operator said no".to_owned()),
    )));
    assert_eq!(names(&hidden)[0], "read = files/read");
    assert_eq!(bare(&hidden, "mail__read"), [] as [&str; 0]);
    assert_eq!(bare(&hidden, "mail/read"), ["mail/read"]);
    assert_eq!(View::select(&hidden, &ViewQuery::default()).len(), 1);
}

#[test]
fn the_style_always_qualifies_all_but_aliased_tools() {
    let wanted = preferences(&[("global", "tool:files/list", alias("ls"))]);
    let inputs = Inputs {
        naming: NamingStyle::Always,
        preferences: wanted,
        ..inputs(&[("files", &["list", "read"])])
    };
    let catalog = build(&inputs);
    assert_eq!(
        names(&catalog),
        ["ls = files/list", "files__read = files/read"]
    );
    assert_eq!(bare(&catalog, "read"), ["files/read"]);
}

#[test]
fn withdrawal_findings_are_per_scenario_and_others_per_tool() {
    let mut inputs = inputs(&[("ok", &["go"])]);
    put(
        &mut inputs,
        offers::standing(
            offer("gone", &[tool("a"), tool("b")]),
            Visibility::Withdrawn("it is down".into()),
        ),
    );
    put(
        &mut inputs,
        offers::standing(
            offer("new", &[tool("c")]),
            Visibility::Hidden("waiting for a yes".into()),
        ),
    );
    put(
        &mut inputs,
        offer(
            "mixed",
            &[
                tool("d").off(),
                tool("e").internal(),
                tool("f").tag("noisy"),
            ],
        ),
    );
    inputs.preferences = preferences(&[
        ("global", "tag:noisy", enabled(false)),
        ("chat:7", "tool:ok/missing", enabled(true)),
        ("profile:p", "category:none", enabled(true)),
        ("global", "scenario:new", enabled(true)),
    ]);
    let catalog = build(&inputs);
    let codes: Vec<_> = finding_lines(&catalog)
        .iter()
        .map(|line| line.split(':').next().unwrap().to_owned())
        .collect();
    let expected = [
        "preference-unmatched /",
        "withdrawn gone/",
        "disabled mixed/d",
        "internal-only mixed/e",
        "disabled mixed/f",
        "withdrawn new/",
        "preference-unmatched ok/missing",
    ];
    assert_eq!(codes, expected);
    assert!(
        with_message(&catalog, "withdrawn gone/")
            .contains("its 2 tools are withdrawn from the list")
    );
    assert!(with_message(&catalog, "withdrawn gone/").ends_with("it is down"));
    assert!(with_message(&catalog, "disabled mixed/f").contains("global tag:noisy"));
    let findings = catalog.findings_of(&scenario("mixed"));
    assert_eq!(findings.len(), 3);
    assert!(
        findings[0]
            .hint
            .as_deref()
            .unwrap()
            .contains("callsheet prefs set tool:mixed/d --enabled true")
    );
}

#[test]
fn the_narrower_target_wins_setting_by_setting() {
    let on = |settings: Settings| Settings {
        enabled: Some(true),
        ..settings
    };
    let mut inputs = Inputs::default();
    put(
        &mut inputs,
        offer(
            "files",
            &[tool("read").category("io").tag("z").tag("a").off()],
        ),
    );
    let steps = [
        (
            "scenario:files",
            on(Settings {
                priority: Some(1),
                approval: Some(ApprovalPolicy::Require),
                ..inherit()
            }),
        ),
        (
            "category:io",
            Settings {
                enabled: Some(false),
                priority: Some(2),
                ..inherit()
            },
        ),
        ("tag:a", on(inherit())),
        (
            "tag:z",
            Settings {
                enabled: Some(false),
                approval: Some(ApprovalPolicy::Skip),
                ..inherit()
            },
        ),
        ("tool:files/read", on(inherit())),
    ];
    let expected = [
        (
            true,
            "global scenario:files",
            true,
            "global scenario:files",
            1,
        ),
        (
            false,
            "global category:io",
            true,
            "global scenario:files",
            2,
        ),
        (true, "global tag:a", true, "global scenario:files", 2),
        // The tags disagree: the safer one holds.
        (false, "global tag:z", false, "global tag:z", 2),
        (true, "global tool:files/read", false, "global tag:z", 2),
    ];
    let mut given = Vec::new();
    for ((target, settings), (on, on_source, approval, approval_source, priority)) in
        steps.into_iter().zip(expected)
    {
        given.push(("global", target, settings));
        inputs.preferences = preferences(&given);
        let effective = found_one(&build(&inputs), "files/read").effective.clone();
        assert_eq!(effective.enabled, on, "{target}");
        assert_eq!(
            &*effective.enabled_source.to_string(),
            on_source,
            "{target}"
        );
        let source = effective.approval_source.to_string();
        assert_eq!(effective.requires_approval, approval, "{target}");
        assert_eq!(&*source, approval_source, "{target}");
        assert_eq!(effective.priority, priority, "{target}");
    }
}

#[test]
fn of_two_tags_that_disagree_the_safer_one_holds_in_every_order() {
    let off = Settings {
        enabled: Some(false),
        approval: Some(ApprovalPolicy::Require),
        ..inherit()
    };
    let on = Settings {
        enabled: Some(true),
        approval: Some(ApprovalPolicy::Skip),
        ..inherit()
    };
    for tags in [["a", "z"], ["z", "a"]] {
        for (safer, other) in [("tag:a", "tag:z"), ("tag:z", "tag:a")] {
            let mut inputs = Inputs::default();
            put(
                &mut inputs,
                offer("files", &[tool("read").tag(tags[0]).tag(tags[1])]),
            );
            inputs.preferences = preferences(&[
                ("global", safer, off.clone()),
                ("global", other, on.clone()),
            ]);
            let effective = found_one(&build(&inputs), "files/read").effective.clone();
            assert!(
                !effective.enabled,
                "tags {tags:?}, {safer} switches off: {effective:?}"
            );
            assert!(
                effective.requires_approval,
                "tags {tags:?}, {safer} requires approval: {effective:?}"
            );
        }
    }
}

#[test]
fn the_manifest_decides_what_no_preference_sets_and_provenances_are_shared() {
    let mut inputs = inputs(&[("files", &["a", "b"])]);
    put(&mut inputs, offer("mail", &[tool("send").risky()]));
    inputs.preferences = preferences(&[("global", "scenario:files", enabled(false))]);
    let catalog = build(&inputs);
    let sources: Vec<_> = ["files/a", "files/b"]
        .map(|id| found_one(&catalog, id).effective.enabled_source.clone())
        .into();
    match &sources[..] {
        [Provenance::Preference(a), Provenance::Preference(b)] => assert!(Arc::ptr_eq(a, b)),
        other => panic!("{other:?}"),
    }
    let send = found_one(&catalog, "mail/send").effective.clone();
    assert!(send.enabled && send.requires_approval);
    assert_eq!(send.enabled_source, Provenance::Manifest);
    assert_eq!(send.approval_source, Provenance::Manifest);
}

#[test]
fn the_revision_tells_content_and_nothing_else() {
    let scenarios: &[(&str, &[&str])] = &[("files", &["read"]), ("mail", &["send"])];
    let first = catalog(scenarios, &[]);
    assert_eq!(first.revision(), catalog(scenarios, &[]).revision());

    let mut later = offers::manifest("mail", &[tool("send")]);
    later.generated_at = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let later = Offer {
        manifest: Arc::new(later),
        visibility: Visibility::Published,
    };
    assert_eq!(first.with(change(later)).revision(), first.revision());

    let down = |why: &str| {
        first.with(change(offers::standing(
            offer("mail", &[tool("send")]),
            Visibility::Withdrawn(why.to_owned()),
        )))
    };
    assert_eq!(down("slow").revision(), down("silent").revision());
    assert_ne!(down("slow").revision(), first.revision());
    assert_ne!(
        first
            .with(change(offer("mail", &[tool("send").about("x")])))
            .revision(),
        first.revision()
    );
    assert_ne!(
        catalog(
            scenarios,
            &[("global", "tool:mail/send", offers::priority(1))]
        )
        .revision(),
        first.revision()
    );
}

#[test]
fn another_scopes_preferences_only_change_its_own_revision() {
    let scenarios: &[(&str, &[&str])] = &[("files", &["read"])];
    let chat = |chat: &str| ViewQuery {
        chat: Some(chat.to_owned()),
        ..ViewQuery::default()
    };
    let plain = catalog(scenarios, &[]);
    let scoped = plain.with(Change::Preferences(preferences(&[(
        "chat:7",
        "tool:files/read",
        enabled(false),
    )])));
    assert_eq!(scoped.revision(), plain.revision());
    assert_eq!(scoped.revision_for(&chat("8")), plain.revision());
    assert_ne!(scoped.revision_for(&chat("7")), plain.revision());
    let again = catalog(scenarios, &[("chat:7", "tool:files/read", enabled(false))]);
    assert_eq!(
        scoped.revision_for(&chat("7")),
        again.revision_for(&chat("7"))
    );
}

#[test]
fn a_change_leaves_every_entry_alone_whose_names_do_not_change() {
    let before = catalog(
        &[
            ("a", &["go"]),
            ("b", &["go"]),
            ("c", &["run"]),
            ("d", &["walk"]),
        ],
        &[],
    );
    // A third `go` changes no name: all of them are qualified already. `run` gets company, `walk`
    // does not.
    let after = before.with(change(offer("z", &[tool("go"), tool("run")])));
    let same = |name: &str| {
        let entry = |catalog: &Catalog| Arc::clone(catalog.entry(&scenario(name)).unwrap());
        Arc::ptr_eq(&entry(&before), &entry(&after))
    };
    assert_eq!(["a", "b", "c", "d"].map(same), [true, true, false, true]);
    assert!(with_message(&after, "name-collision a/go").contains("b/go, z/go"));

    let preferred = after.with(Change::Preferences(preferences(&[(
        "chat:1",
        "scenario:a",
        enabled(false),
    )])));
    assert!(
        after
            .entries()
            .zip(preferred.entries())
            .all(|(old, new)| Arc::ptr_eq(old, new))
    );
}

#[test]
fn a_finding_names_only_some_of_a_crowd() {
    let crowd: Vec<String> = (10..30).map(|number| format!("s{number}")).collect();
    let crowd: Vec<(&str, &[&str])> = crowd
        .iter()
        .map(|name| (name.as_str(), &["health"] as &[&str]))
        .collect();
    let message = with_message(&catalog(&crowd, &[]), "name-collision s10/health");
    assert!(
        message.contains("s11/health, s12/health") && message.contains("s18/health and more;"),
        "{message}"
    );
}

fn found_one(catalog: &Catalog, identity: &str) -> Arc<callsheet::model::ViewTool> {
    let id = id(identity);
    let entry = catalog.entry(&id.scenario).unwrap();
    Arc::clone(entry.tool(&id.tool).unwrap())
}
