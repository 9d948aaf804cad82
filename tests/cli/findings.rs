//! `callsheet findings`: grouped, filtered, and without what concerns formats that nobody uses.

use callsheet::provide::{Parameter, ToolDefinition};

use crate::support::command::{Home, Running, Scenario, json, nobody, office, run, tool};

fn ask(home: &Home, daemon: &Running, args: &[&str]) -> String {
    home.run(&[&["findings"], args, &["--url", &daemon.url][..]].concat())
        .ok()
}

#[test]
fn scenarios_that_collide_have_one_paragraph_and_the_worst_comes_first() {
    let names = ["search", "list_all", "open_one"];
    let tools = || {
        names
            .iter()
            .map(|name| tool(name, "Does it", "work"))
            .collect::<Vec<_>>()
    };
    let notes = Scenario::start("notes", tools());
    let mail = Scenario::start("mail", tools());
    let gone = nobody();
    let home = Home::with(&format!(
        "health.grace = \"1ms\"\nhealth.failures = 1\n\
        [[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n[[scenarios]]\nname = \"mail\"\nurl = \"{}\"\n[[scenarios]]\nname = \"gone\"\nurl = \"{gone}\"\n",
        notes.url, mail.url
    ));
    let daemon = home.serve(&[]);
    let out = ask(&home, &daemon, &[]);
    assert_eq!(out.matches("[name-collision]").count(), 1, "{out}");
    let together = "warning[name-collision] mail, notes\n  they have 3 tools of the same name, published under longer names: `list_all`, `open_one`, `search`\n  hint: `callsheet prefs set tool:mail/list_all --alias NAME` gives it a name of its own\n";
    assert!(out.contains(together), "{out}");
    assert!(
        out.contains("take it out with `callsheet remove gone`\n"),
        "{out}"
    );
    // Each finding counts, as on the page, and not each paragraph.
    let (_, all) = daemon.get("/api/v1/findings?severity=warning&formats=used");
    let all = json(std::str::from_utf8(&all).unwrap())["findings"]
        .as_array()
        .unwrap()
        .len();
    assert!(all > out.matches("warning[").count(), "{out}");
    assert!(out.contains(&format!("\n\n{all} warnings")), "{out}");
    let severities: Vec<_> = out
        .lines()
        .filter_map(|line| line.split_once('['))
        .map(|(word, _)| word)
        .collect();
    let rank = |word: &&str| {
        ["error", "warning", "info"]
            .iter()
            .position(|known| known == word)
    };
    assert!(severities.is_sorted_by_key(rank), "{out}");
    let narrow = run(home
        .command(&["findings", "--url", &daemon.url])
        .env("COLUMNS", "60"))
    .ok();
    let long = |line: &&str| line.chars().count() > 60 && line.trim_start().split(' ').count() > 2;
    assert_eq!(narrow.lines().find(long), None, "{narrow}");
    let one = ask(&home, &daemon, &["--scenario", "mail"]);
    assert!(
        one.contains("[name-collision] mail, notes\n") && !one.contains("gone"),
        "{one}"
    );
    // The same is shown with the scenario itself.
    let shown = home.run(&["scenarios", "mail", "--url", &daemon.url]).ok();
    assert!(
        shown.contains("\nwarning[name-collision] mail, notes\n"),
        "{shown}"
    );
}

#[test]
fn findings_are_filtered_and_programs_get_the_answer() {
    let (home, daemon, _scenarios) = office();
    let infos = ask(&home, &daemon, &["--severity", "info"]);
    assert!(
        infos.contains("info[disabled] notes/wipe\n") && !infos.contains("warning["),
        "{infos}"
    );
    let kind = ask(&home, &daemon, &["--code", "disabled"]);
    assert!(kind.ends_with("\n\n1 info\n"), "{kind}");
    assert_eq!(
        ask(&home, &daemon, &["--severity", "error"]),
        "no findings\n"
    );
    let (_, body) = daemon.get("/api/v1/findings?severity=info&formats=used");
    assert_eq!(
        ask(&home, &daemon, &["--severity", "info", "--json"])
            .trim_end()
            .as_bytes(),
        body
    );
    let collision = json(&ask(
        &home,
        &daemon,
        &["--code", "name-collision", "--json"],
    ));
    assert_eq!(
        collision["findings"][0]["others"],
        json(r#"["notes/search"]"#),
        "{collision}"
    );
    let error = home
        .run(&["findings", "--code", "no-such", "--url", &daemon.url])
        .failed(2);
    assert!(error.contains("invalid value 'no-such'"), "{error}");
}

#[test]
fn findings_of_one_cause_have_one_paragraph() {
    let off = |name: String| {
        ToolDefinition::new(name, "Does it")
            .unwrap()
            .enabled_by_default(false)
    };
    let many = Scenario::start(
        "many",
        (0..24).map(|n| off(format!("tool_{n:02}"))).collect(),
    );
    let two = Scenario::start("two", (0..2).map(|n| off(format!("other_{n}"))).collect());
    let home = Home::naming(&[("many", &many.url), ("two", &two.url)]);
    let daemon = home.serve(&[]);
    let all = ask(&home, &daemon, &["--code", "disabled"]);
    assert_eq!(all.matches("info[disabled]").count(), 1, "{all}");
    assert!(all.starts_with("info[disabled] 26 tools of many, two\n  its manifest does not enable it by default\n    many/tool_00, many/tool_01, "), "{all}");
    assert!(
        all.contains("many/tool_23, two/other_0, two/other_1\n"),
        "a pipe gets all of them: {all}"
    );
    let narrow = run(home
        .command(&["findings", "--code", "disabled", "--url", &daemon.url])
        .env("COLUMNS", "90"))
    .ok();
    assert!(
        narrow.contains("many/tool_19\n    and 6 more, which `--json` shows\n"),
        "{narrow}"
    );
    let hint = "  hint: for many/tool_00: to enable it: `callsheet prefs set tool:many/tool_00 --enabled true`\n";
    assert!(
        all.contains(hint) && all.ends_with("\n\n26 infos in 1 paragraph\n"),
        "{all}"
    );
    let found = json(&ask(&home, &daemon, &["--code", "disabled", "--json"]));
    assert_eq!(
        found["findings"].as_array().unwrap().len(),
        26,
        "programs get each of them"
    );
    // Two are not worth a group.
    let few = ask(&home, &daemon, &["--code", "disabled", "--scenario", "two"]);
    assert!(
        few.contains("info[disabled] two/other_0\n")
            && few.contains("info[disabled] two/other_1\n"),
        "{few}"
    );
}

#[test]
fn what_a_format_changes_has_one_paragraph_for_each_format() {
    let odd = |name: &str, keyword: bool| {
        let code = Parameter::string("A code").required();
        let code = if keyword {
            code.pattern("^[a-z]+$")
        } else {
            code.min_length(2).pattern("^[a-z]+$")
        };
        ToolDefinition::new(name, "Finds it")
            .unwrap()
            .parameter("code", code)
    };
    let stock = Scenario::start(
        "stock",
        vec![odd("one", true), odd("two", false), odd("three", true)],
    );
    let home = Home::naming(&[("stock", &stock.url)]);
    let daemon = home.serve(&[]);
    let out = ask(&home, &daemon, &["--code", "lossy"]);
    let of = |format: &str| {
        out.split("\n\n")
            .filter(|shown| shown.contains(&format!("`{format}`")))
            .collect::<Vec<_>>()
    };
    let ollama = of("ollama");
    assert_eq!(ollama.len(), 1, "{out}");
    assert!(
        ollama[0].starts_with("warning[lossy] 3 tools of stock\n"),
        "{out}"
    );
    for name in ["one", "two", "three"] {
        assert!(
            ollama[0].contains(&format!("    stock/{name} at /parameters")),
            "{out}"
        );
    }
    // Programs need no text for it.
    let found = json(&ask(&home, &daemon, &["--code", "lossy", "--json"]));
    let of_ollama = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["format"] == "ollama")
        .collect::<Vec<_>>();
    assert!(of_ollama.len() >= 3, "{found:#}");
    assert!(
        of_ollama
            .iter()
            .all(|finding| finding["message"].as_str().unwrap().contains("`ollama`")),
        "{found:#}"
    );
}

#[test]
fn what_a_format_cannot_express_is_hidden_until_the_format_is_used() {
    let odd = Parameter::string("A code").required().pattern("^[a-z]+$");
    let stock = Scenario::start(
        "stock",
        vec![
            ToolDefinition::new("find", "Finds it")
                .unwrap()
                .parameter("code", odd),
        ],
    );
    let home = Home::naming(&[("stock", &stock.url)]);
    let daemon = home.serve(&[]);
    let lossy = |out: &str| out.matches("[lossy]").count();
    let all = ask(&home, &daemon, &["--all"]);
    assert!(lossy(&all) > 0, "{all}");
    assert_eq!(
        lossy(&ask(&home, &daemon, &["--code", "lossy"])),
        lossy(&all),
        "who names a kind sees it"
    );
    let before = ask(&home, &daemon, &[]);
    assert_eq!(lossy(&before), 0, "{before}");
    assert!(
        before.contains("about formats that no client uses: `--all` shows them"),
        "{before}"
    );
    for format in [
        "openai",
        "openai-responses",
        "anthropic",
        "gemini",
        "bedrock",
        "mistral",
        "cohere",
        "ollama",
        "mcp",
    ] {
        assert_eq!(
            daemon.get(&format!("/api/v1/tools?format={format}")).0,
            200,
            "{format}"
        );
    }
    let after = ask(&home, &daemon, &[]);
    assert!(
        lossy(&after) > 0 && !after.contains("no client uses"),
        "{after}"
    );
}

#[test]
fn a_name_that_an_alias_takes_is_told_as_such() {
    let (home, daemon, _scenarios) = office();
    let set = home.run(&[
        "prefs",
        "set",
        "tool:notes/add_note",
        "--alias",
        "send_mail",
        "--url",
        &daemon.url,
    ]);
    let note = "`send_mail` is now the alias of `notes/add_note`, so `mail/send_mail` is published as `mail__send_mail`";
    assert!(set.err.contains(note), "{set:?}");
    let found = ask(
        &home,
        &daemon,
        &["--code", "name-collision", "--scenario", "mail"],
    );
    let told = "warning[name-collision] mail/send_mail\n  `send_mail` is not available: it is the alias of notes/add_note; published as `mail__send_mail`\n";
    assert!(found.contains(told), "{found}");
    assert!(
        found.contains("they have 1 tool of the same name, published under longer names: `search`"),
        "{found}"
    );
    let other = home.run(&[
        "prefs",
        "set",
        "tool:notes/add_note",
        "--alias",
        "jot",
        "--url",
        &daemon.url,
    ]);
    assert!(!other.err.contains("now the alias"), "{other:?}");
}
