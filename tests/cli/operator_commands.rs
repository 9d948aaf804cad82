//! `callsheet prefs`, `refresh`, `block`, `trust` and `forget`: what an operator changes.

use crate::support::command::{
    Home, Ran, Running, Scenario, json, nobody, office, rows, tool, until,
};

fn ask(home: &Home, daemon: &Running, args: &[&str]) -> Ran {
    home.run(&[args, &["--url", &daemon.url][..]].concat())
}

fn listed(home: &Home, daemon: &Running, args: &[&str]) -> Vec<String> {
    let list = json(&ask(home, daemon, &[&["tools", "--json"], args].concat()).ok());
    list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Enables `wipe` and gives it a priority, which the answer shows.
fn assert_set(home: &Home, daemon: &Running) {
    let set = ask(
        home,
        daemon,
        &[
            "prefs",
            "set",
            "tool:notes/wipe",
            "--enabled",
            "true",
            "--priority",
            "-5",
        ],
    )
    .ok();
    let heads = [
        "SCOPE",
        "TARGET",
        "ENABLED",
        "APPROVAL",
        "ALIAS",
        "PRIORITY",
        "ALWAYS",
        "PINS",
        "OVERRIDES",
    ];
    assert_eq!(
        rows(&set),
        [
            heads.to_vec(),
            vec![
                "global",
                "tool:notes/wipe",
                "true",
                "inherit",
                "inherit",
                "-5",
                "inherit",
                "inherit",
                "none"
            ]
        ]
    );
}

/// Resets the alias of `wipe`, and then every setting that is left.
fn assert_reset(home: &Home, daemon: &Running) {
    let partly = ask(
        home,
        daemon,
        &["prefs", "reset", "tool:notes/wipe", "--setting", "alias"],
    )
    .ok();
    assert_eq!(
        rows(&partly)[1],
        [
            "global",
            "tool:notes/wipe",
            "true",
            "inherit",
            "inherit",
            "-5",
            "inherit",
            "inherit",
            "none"
        ]
    );
    let wholly = ask(home, daemon, &["prefs", "reset", "tool:notes/wipe"]).ok();
    assert_eq!(
        wholly,
        "tool:notes/wipe inherits every setting in scope global\n"
    );
    assert!(!listed(home, daemon, &[]).contains(&"wipe".to_owned()));
}

#[test]
fn preferences_are_set_listed_and_reset() {
    let (home, daemon, _scenarios) = office();
    assert_eq!(
        ask(&home, &daemon, &["prefs", "list"]).ok(),
        "no preferences; set one with `callsheet prefs set`\n"
    );
    assert_set(&home, &daemon);
    assert!(listed(&home, &daemon, &[]).contains(&"wipe".to_owned()));

    ask(
        &home,
        &daemon,
        &["prefs", "set", "tool:notes/wipe", "--alias", "erase"],
    )
    .ok();
    assert!(
        listed(&home, &daemon, &[]).contains(&"erase".to_owned()),
        "one setting leaves the others"
    );
    let for_intern = [
        "prefs",
        "set",
        "scenario:mail",
        "--enabled",
        "false",
        "--scope",
        "profile:intern",
    ];
    ask(&home, &daemon, &for_intern).ok();
    assert!(
        !listed(&home, &daemon, &["--profile", "intern"])
            .iter()
            .any(|name| name.starts_with("send"))
    );
    assert!(listed(&home, &daemon, &[]).contains(&"send_mail".to_owned()));

    let all = ask(&home, &daemon, &["prefs", "list"]).ok();
    assert_eq!(
        rows(&all)[1..],
        [
            vec![
                "global",
                "tool:notes/wipe",
                "true",
                "inherit",
                "erase",
                "-5",
                "inherit",
                "inherit",
                "none"
            ],
            vec![
                "profile:intern",
                "scenario:mail",
                "false",
                "inherit",
                "inherit",
                "inherit",
                "inherit",
                "inherit",
                "none"
            ],
        ]
    );
    let one = ask(
        &home,
        &daemon,
        &["prefs", "list", "--scope", "profile:intern", "--json"],
    )
    .ok();
    assert_eq!(json(&one)["preferences"].as_array().unwrap().len(), 1);

    assert_reset(&home, &daemon);
}

#[test]
fn an_acceptance_says_whether_definitions_are_pinned_and_differ() {
    let (home, daemon, _scenarios) = office();
    let accept = |more: &[&str]| {
        ask(
            &home,
            &daemon,
            &[&["pins", "accept", "notes"], more].concat(),
        )
    };
    assert_eq!(accept(&[]).ok(), "notes is as it was accepted\n");
    let pinned = json(&accept(&["--json"]).ok());
    assert_eq!(
        [&pinned["scenario"], &pinned["mode"]],
        ["notes", "warn"],
        "{pinned}"
    );
    assert_eq!(pinned["differences"], json("[]"), "{pinned}");

    let off = ["prefs", "set", "scenario:notes", "--pins", "off"];
    ask(&home, &daemon, &off).ok();
    until("they are not pinned", || {
        let listed = json(&ask(&home, &daemon, &["pins", "notes", "--json"]).ok());
        listed["pins"] == json("[]")
    });
    for more in [&[][..], &["wipe"]] {
        assert_eq!(
            accept(more).failed(1),
            "error: the definitions of `notes` are not pinned\n  \
             hint: `callsheet prefs set scenario:notes --pins warn` has them compared\n"
        );
    }
}

#[test]
fn all_preferences_of_scopes_are_counted_and_reset() {
    let (home, daemon, _scenarios) = office();
    for scope in ["global", "chat:1", "chat:2"] {
        ask(
            &home,
            &daemon,
            &[
                "prefs",
                "set",
                "scenario:mail",
                "--pinned",
                "true",
                "--scope",
                scope,
            ],
        )
        .ok();
    }
    let reset = |more: &[&str]| ask(&home, &daemon, &[&["prefs", "reset"], more].concat());
    assert_eq!(
        reset(&["--scope", "chat:*", "--preview"]).ok(),
        "2 preferences in scope chat:* would be reset\n"
    );
    assert_eq!(
        reset(&["--scope", "chat:1"]).ok(),
        "1 preference in scope chat:1 reset\n"
    );
    assert_eq!(
        json(&reset(&["--scope", "chat:*", "--json"]).ok())["preferences"],
        1
    );
    assert_eq!(
        rows(&ask(&home, &daemon, &["prefs", "list"]).ok()).len(),
        2,
        "the head and that of the scope `global`"
    );
    for wrong in [
        &[][..],
        &["--preview"],
        &["tag:mail", "--preview"],
        &["tag:mail", "--scope", "chat:*", "--preview"],
    ] {
        let refused = reset(wrong).failed(2);
        assert!(
            refused.contains("--scope SCOPE") && refused.contains("TARGET"),
            "{refused}"
        );
    }
    assert!(reset(&["--scope", "team:*"]).failed(1).contains("`team:*`"));
}

#[test]
fn preferences_that_cannot_be_are_refused() {
    let (home, daemon, _scenarios) = office();
    for (args, part) in [
        (
            &["notes", "--enabled", "true"][..],
            "unknown target `notes`",
        ),
        (
            &["scenario:notes", "--enabled", "true", "--scope", "team:a"],
            "`team:a`",
        ),
        (
            &["scenario:notes", "--alias", "x"],
            "an alias needs a single tool",
        ),
        (&["tool:notes/wipe", "--alias", "no blanks"], "`no blanks`"),
    ] {
        let error = ask(&home, &daemon, &[&["prefs", "set"], args].concat()).failed(1);
        assert!(
            error.starts_with("error: ") && error.contains(part),
            "{error}"
        );
    }
    assert_eq!(
        json(&ask(&home, &daemon, &["prefs", "list", "--json"]).ok())["preferences"],
        json("[]")
    );
}

#[test]
fn a_refresh_tells_whether_everyone_answered() {
    let (home, daemon, [_notes, mail]) = office();
    let all = ask(&home, &daemon, &["refresh"]).ok();
    let states: Vec<_> = rows(&all)[1..].iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(states, [("mail", "live"), ("notes", "live")]);
    let named = ask(&home, &daemon, &["refresh", "notes", "mail"]).ok();
    assert_eq!(rows(&named)[1][0], "notes", "in the order of the question");

    mail.stop();
    for args in [
        &["refresh"][..],
        &["refresh", "mail"],
        &["refresh", "notes", "mail", "--json"],
    ] {
        let ran = ask(&home, &daemon, args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let message = "no good answer from mail";
        let hint = "`callsheet scenarios mail` shows details";
        let error = if args.contains(&"--json") {
            assert_eq!(json(&ran.err)["error"], message, "{ran:?}");
            json(&ran.err)["hint"].as_str().unwrap().to_owned()
        } else {
            ran.err
                .strip_prefix(&format!("error: {message}\n  hint: "))
                .unwrap()
                .trim_end()
                .to_owned()
        };
        assert_eq!(error, hint);
        assert!(
            ran.out.contains("mail") && ran.out.contains("refused"),
            "what came of it is shown: {ran:?}"
        );
    }
    ask(&home, &daemon, &["refresh", "notes"]).ok();
    let unknown = ask(&home, &daemon, &["refresh", "nots"]).failed(1);
    assert_eq!(
        unknown,
        "error: no scenario is called `nots`\n  hint: did you mean notes?\n"
    );
}

#[test]
fn a_call_of_a_disabled_tool_says_what_disables_it_as_explain_does() {
    let (home, daemon, _scenarios) = office();
    let by_default = "notes disables it by default";
    let refused = home
        .run(&["call", "--url", &daemon.url, "notes/wipe", "--text", "x"])
        .failed(1);
    assert!(
        refused.starts_with(&format!(
            "error: `notes/wipe` may not be called: {by_default}\n"
        )),
        "{refused}"
    );
    let explained = ask(&home, &daemon, &["explain", "notes/wipe"]).ok();
    assert!(
        explained.contains(&format!("not in the list: {by_default}\n")),
        "{explained}"
    );
    ask(
        &home,
        &daemon,
        &["prefs", "set", "scenario:notes", "--enabled", "false"],
    )
    .ok();
    let by_preference = "the preference global scenario:notes disables it";
    let refused = home
        .run(&["call", "--url", &daemon.url, "notes/search", "--text", "x"])
        .failed(1);
    assert!(
        refused.starts_with(&format!(
            "error: `notes/search` may not be called: {by_preference}\n"
        )),
        "{refused}"
    );
    let explained = ask(&home, &daemon, &["explain", "notes/search"]).ok();
    assert!(
        explained.contains(&format!("not in the list: {by_preference}\n")),
        "{explained}"
    );
}

#[test]
fn a_blocked_scenario_is_kept_out_until_it_is_let_in() {
    let (home, daemon, [_notes, mail]) = office();
    let blocked = ask(&home, &daemon, &["block", "mail"]).ok();
    let peer = mail.url.replace("127.0.0.1", "localhost");
    let expected =
        format!("mail is blocked: an operator blocked it\nblocked: at {peer}, found by static\n");
    assert_eq!(blocked, expected);
    assert_eq!(listed(&home, &daemon, &[]), ["add_note", "search"]);
    let error = ask(&home, &daemon, &["refresh", "mail"]).failed(1);
    assert_eq!(
        error,
        "error: `mail` is blocked\n  hint: take the block back with `callsheet block mail --undo`\n"
    );
    for name in ["mail", "mail/send_mail"] {
        let explained = ask(&home, &daemon, &["explain", name]).ok();
        assert!(
            explained.contains("an operator blocked it; `callsheet block mail --undo` lifts that"),
            "{explained}"
        );
    }
    let (_, steps) = daemon.get("/api/v1/tools/mail/explain");
    let steps = json(&String::from_utf8(steps).unwrap());
    assert_eq!(
        steps["steps"][0]["next"][0]["path"], "/api/v1/scenarios/mail/block",
        "{steps}"
    );
    // Nobody asks it, so its silence is no failure of a refresh.
    mail.stop();
    ask(&home, &daemon, &["refresh"]).ok();
    let undone = ask(&home, &daemon, &["block", "mail", "--undo"]).ok();
    assert!(
        undone.starts_with("mail is ") && !undone.contains("blocked"),
        "{undone}"
    );
    assert!(
        listed(&home, &daemon, &[]).contains(&"send_mail".to_owned()),
        "its last good list is back"
    );
    let error = ask(&home, &daemon, &["block", "nobody"]).failed(1);
    assert_eq!(
        error,
        "error: no scenario is called `nobody`\n  hint: `callsheet scenarios` lists those that are known\n"
    );
}

#[test]
fn trust_lifts_a_block_and_can_be_taken_back() {
    let (home, daemon, _scenarios) = office();
    let blocked = json(&ask(&home, &daemon, &["block", "notes", "--json"]).ok());
    assert_eq!(blocked["name"], json("\"notes\""));
    assert_eq!(blocked["state"], json("\"blocked\""));
    let error = ask(&home, &daemon, &["trust", "notes", "--undo"]).failed(1);
    let hint = "`callsheet block notes --undo` takes the block back";
    assert_eq!(
        error,
        format!("error: `notes` is blocked, not trusted\n  hint: {hint}\n")
    );
    let trusted = json(&ask(&home, &daemon, &["trust", "notes", "--json"]).ok());
    assert_eq!(trusted["trusted"], true);
    assert_ne!(trusted["state"], "blocked");
    assert!(listed(&home, &daemon, &[]).contains(&"add_note".to_owned()));
    assert!(
        ask(&home, &daemon, &["trust", "notes", "--undo"])
            .ok()
            .starts_with("notes is ")
    );
}

#[test]
fn forget_ends_a_down_scenario_and_refuses_a_live_one() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let entries = [("notes", notes.url.clone()), ("attic", nobody())];
    let entry = |(name, url): &(&str, String)| {
        format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\n")
    };
    let config = entries.iter().map(entry).collect::<String>();
    // One failure is enough, and the next poll is far.
    let home = Home::with(&format!(
        "health.failures = 1\nrefresh.backoff_base = \"1m\"\n{config}"
    ));
    let daemon = home.serve(&[]);
    assert_eq!(
        json(&ask(&home, &daemon, &["scenarios", "attic", "--json"]).ok())["state"],
        "down"
    );
    let output = ask(&home, &daemon, &["forget", "attic"]).ok();
    assert!(
        output.starts_with("`attic` is forgotten, but its source (static) still names it"),
        "{output}"
    );
    let refused = ask(&home, &daemon, &["forget", "notes"]).failed(1);
    assert!(
        refused.contains("`notes` is live, and only a removed or down scenario can be forgotten"),
        "{refused}"
    );
    assert!(
        ask(&home, &daemon, &["forget", "nothing"])
            .failed(1)
            .contains("no scenario is called `nothing`")
    );
}

#[test]
fn forget_takes_all_that_is_unreachable_after_a_preview() {
    let notes = Scenario::start("notes", vec![tool("add_note", "Writes a note", "writing")]);
    let home = Home::with(&format!(
        "health.failures = 1\nrefresh.backoff_base = \"1m\"\n[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n\
         [[scenarios]]\nname = \"attic\"\nurl = \"{}\"\n",
        notes.url,
        nobody()
    ));
    let daemon = home.serve(&[]);
    let named = ask(&home, &daemon, &["forget", "--unreachable", "--preview"]).ok();
    assert_eq!(named, "would be forgotten: attic\n");
    let state = json(&ask(&home, &daemon, &["scenarios", "attic", "--json"]).ok());
    assert_eq!(state["state"], "down", "a preview changes nothing");
    let done = ask(&home, &daemon, &["forget", "--unreachable", "--json"]).ok();
    let done = json(&done);
    assert_eq!(done["scenarios"], serde_json::json!(["attic"]));
    assert_eq!(done["still_named"], serde_json::json!(["attic"]));
    assert_eq!(listed(&home, &daemon, &[]), ["add_note"]);
    // One name, or all: not neither, and not both.
    ask(&home, &daemon, &["forget"]).failed(2);
    ask(&home, &daemon, &["forget", "attic", "--unreachable"]).failed(2);
}

#[test]
fn profiles_are_set_listed_shown_and_removed() {
    let (home, daemon, _scenarios) = office();
    let none = ask(&home, &daemon, &["profiles"]).ok();
    assert!(none.starts_with("no profiles: every client"), "{none}");
    let set = [
        "profiles",
        "set",
        "intern",
        "--scenario",
        "notes",
        "--permission",
        "user",
    ];
    let ran = ask(&home, &daemon, &set);
    let heads = ["NAME", "SCENARIOS", "PERMISSION", "MCP MODE", "FROM"];
    assert_eq!(
        rows(&ran.ok()),
        [
            heads.to_vec(),
            vec!["intern", "notes", "user", "as all", "store"]
        ]
    );
    ask(
        &home,
        &daemon,
        &["profiles", "set", "nobody", "--no-scenarios"],
    )
    .ok();
    assert_eq!(
        listed(&home, &daemon, &["--profile", "nobody"]),
        Vec::<String>::new()
    );
    let all = json(&ask(&home, &daemon, &["profiles", "list", "--json"]).ok());
    assert_eq!(all["profiles"].as_array().unwrap().len(), 2);
    let one = json(&ask(&home, &daemon, &["profiles", "show", "nobody", "--json"]).ok());
    assert_eq!(one["profiles"][0]["scenarios"], serde_json::json!([]));
    let refused = ask(&home, &daemon, &["profiles", "show", "absent"]).failed(1);
    assert!(
        refused.contains("no profile is called `absent`"),
        "{refused}"
    );
    let removed = ask(&home, &daemon, &["profiles", "remove", "nobody"]).ok();
    assert!(removed.starts_with("nobody is taken away: "), "{removed}");
    let refused = ask(&home, &daemon, &["profiles", "remove", "nobody"]).failed(1);
    assert!(
        refused.contains("no profile is called `nobody`"),
        "{refused}"
    );
    ask(
        &home,
        &daemon,
        &["profiles", "set", "x", "--permission", "root"],
    )
    .failed(2);
}
