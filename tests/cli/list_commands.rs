//! `callsheet tools`, `scenarios` and `explain`: what a newcomer reads of a running daemon.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::command::{
    self, Home, Running, Scenario, json, nobody, office, rows, run, tool, until,
};

/// Runs a command against a daemon.
fn ask(home: &Home, daemon: &Running, args: &[&str]) -> command::Ran {
    home.run(&[args, &["--url", &daemon.url][..]].concat())
}

fn names(table: &str) -> Vec<&str> {
    let is_count = |line: &&str| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|word| word.trim_matches(',') == "tools" || word == "tool")
    };
    let lines = table.lines().skip(1).filter(|line| !is_count(line));
    lines
        .map(|line| line.split_whitespace().next().unwrap())
        .collect()
}

#[test]
fn tools_are_a_table() {
    let (home, daemon, _scenarios) = office();
    let out = ask(&home, &daemon, &["tools"]).ok();
    assert_eq!(
        rows(&out),
        [
            vec!["TOOL", "SCENARIO", "CATEGORY", "NOTE", "DESCRIPTION"],
            vec!["mail__search", "mail", "reading", "Finds letters"],
            vec!["send_mail", "mail", "writing", "approval", "Sends a letter"],
            vec!["add_note", "notes", "writing", "Writes a note down"],
            vec![
                "notes__search",
                "notes",
                "reading",
                "Finds notes by their words"
            ],
            vec!["4 tools"],
        ]
    );
    assert!(out.lines().all(|line| line == line.trim_end()), "{out}");
    assert!(!out.contains('\u{1b}'));
    let all = ask(&home, &daemon, &["tools", "--all"]).ok();
    assert!(
        rows(&all).contains(&vec![
            "wipe",
            "notes",
            "writing",
            "off, approval",
            "Deletes every note"
        ]),
        "{all}"
    );
    assert!(all.ends_with("\n5 tools, 1 of them off\n"), "{all}");
}

#[test]
fn tools_are_filtered() {
    let (home, daemon, _scenarios) = office();
    for (filter, expected) in [
        (
            &["--scenario", "notes"][..],
            &["add_note", "notes__search"][..],
        ),
        (
            &[
                "--scenario",
                "notes",
                "--scenario",
                "mail",
                "--category",
                "reading",
            ],
            &["mail__search", "notes__search"],
        ),
        (&["--tag", "letters"], &["mail__search", "send_mail"]),
        (&["-q", "note words"], &["add_note", "notes__search"]),
        (&["-q", "note words", "--max", "1"], &["notes__search"]),
        (
            &["-q", "letters", "--defer", "relevance"],
            &["mail__search", "send_mail"],
        ),
        (
            &["--category", "writing", "--all"],
            &["send_mail", "add_note", "wipe"],
        ),
    ] {
        let out = ask(&home, &daemon, &[&["tools"], filter].concat()).ok();
        assert_eq!(names(&out), expected, "{filter:?}");
    }
    let none = ask(&home, &daemon, &["tools", "--tag", "unused"]).ok();
    assert_eq!(none, "no matching tools; `--all` includes disabled ones\n");
    let first = ask(&home, &daemon, &["tools", "--max", "1"]);
    assert!(
        first
            .err
            .starts_with("note: 3 tools left out, by `--max 1`"),
        "{first:?}"
    );
    assert_eq!(names(&first.ok()).len(), 1);
}

#[test]
fn the_cost_of_a_list_is_shown_by_scenario_and_tool() {
    let (home, daemon, _scenarios) = office();
    let report = ask(&home, &daemon, &["tools", "--cost", "--json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let report = &report["report"];
    let cost = &report["cost"];
    let sum = |rows: &serde_json::Value, member: &str| -> u64 {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row[member].as_u64().unwrap()).sum()
    };
    for member in ["tokens", "description_tokens", "schema_tokens"] {
        assert_eq!(
            sum(&cost["scenarios"], member),
            sum(&report["listed"], member)
        );
        assert_eq!(cost[member], sum(&report["listed"], member), "{member}");
    }
    assert_eq!(cost["tokens"], report["tokens"]);
    let saved = cost["saved"]["signatures"].as_u64().unwrap();
    assert!(
        saved > 0 && saved < cost["tokens"].as_u64().unwrap(),
        "{cost}"
    );

    let out = ask(&home, &daemon, &["tools", "--cost", "--format", "openai"]).ok();
    let lines = rows(&out);
    assert_eq!(lines[0], ["SCENARIO", "TOKENS", "DESCRIPTION", "SCHEMA"]);
    assert!(
        lines.contains(&vec!["TOOL", "TOKENS", "DESCRIPTION", "SCHEMA"]),
        "{out}"
    );
    for id in [
        "mail/search",
        "mail/send_mail",
        "notes/add_note",
        "notes/search",
    ] {
        assert!(
            lines.iter().any(|line| line.first() == Some(&id)),
            "{id}: {out}"
        );
    }
    assert!(
        out.contains("tokens for 4 tools as `format=openai`"),
        "{out}"
    );
    assert!(out.contains("`mode=search` at /mcp"), "{out}");
}

#[test]
fn a_choice_is_told_and_carried_on() {
    let (home, daemon, _scenarios) = office();
    let output = ask(
        &home,
        &daemon,
        &["tools", "-q", "note", "--max", "1", "--report"],
    )
    .ok();
    assert_eq!(
        rows(&output)[0],
        ["TOOL", "LISTED", "RANK", "SCORE", "TOKENS", "WHY"]
    );
    let of = |id: &str| {
        output
            .lines()
            .find(|line| line.starts_with(id))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        of("mail/send_mail").contains("not relevant to `q`"),
        "{output}"
    );
    assert!(of("notes/wipe").contains("switched off"), "{output}");
    let last = output.lines().last().unwrap();
    assert!(last.starts_with("1 tool in the list, about "), "{output}");
    assert!(
        last.contains(" tokens as `format=native`; `--format NAME --report` "),
        "{output}"
    );
    let output = ask(&home, &daemon, &["tools", "-q", "note mail", "--report"]).ok();
    let ranks: Vec<u64> = rows(&output)
        .iter()
        .filter(|row| row.get(1) == Some(&"yes"))
        .map(|row| row[2].parse().unwrap())
        .collect();
    assert!(ranks.len() > 1 && ranks.is_sorted(), "{output}");

    let first = ask(
        &home,
        &daemon,
        &[
            "tools", "-q", "letter", "--sticky", "", "--format", "openai",
        ],
    );
    let selection = first
        .err
        .split("--sticky ")
        .nth(1)
        .unwrap()
        .trim()
        .to_owned();
    let before = first.ok();
    let next = [
        "tools",
        "-q",
        "writes a note",
        "--sticky",
        &selection,
        "--format",
        "openai",
    ];
    let next = ask(&home, &daemon, &next).ok();
    assert!(
        next.starts_with(before.trim_end().trim_end_matches(']')) && next.len() > before.len(),
        "{next}"
    );

    let strict = ask(
        &home,
        &daemon,
        &["tools", "--format", "anthropic", "--strict", "--cache"],
    )
    .ok();
    assert!(
        strict.contains("\"strict\":true") && strict.contains("cache_control"),
        "{strict}"
    );
    let few = ask(&home, &daemon, &["tools", "--max-tokens", "1"]);
    assert!(few.err.contains("4 tools left out"), "{few:?}");
    let watched = ask(&home, &daemon, &["tools", "--watch", "--max-tokens", "1"]);
    assert!(watched.err.contains("cannot be used with"), "{watched:?}");
}

#[test]
fn machines_get_the_daemons_very_bytes() {
    let (home, daemon, _scenarios) = office();
    for format in ["openai", "native"] {
        let ran = run(home
            .command(&["tools", "--format", format])
            .env("CALLSHEET_URL", &daemon.url));
        let (status, body) = daemon.get(&format!("/api/v1/tools?format={format}"));
        assert_eq!(status, 200, "{format}");
        assert_eq!(ran.ok().into_bytes(), body, "{format}");
    }
    for (args, target) in [
        (&["tools", "--json"][..], "/api/v1/tools"),
        (
            &["tools", "--all", "--scenario", "notes", "--json"],
            "/api/v1/tools?scenario=notes&include_disabled=true",
        ),
        (&["explain", "wipe", "--json"], "/api/v1/tools/wipe/explain"),
    ] {
        let (_, body) = daemon.get(target);
        assert_eq!(
            ask(&home, &daemon, args).ok(),
            String::from_utf8(body).unwrap() + "\n",
            "{args:?}"
        );
    }
    let openai = json(&ask(&home, &daemon, &["tools", "--format", "openai"]).ok());
    assert_eq!(openai.as_array().unwrap().len(), 4);
    let error = ask(&home, &daemon, &["tools", "--format", "openai", "--all"]).failed(1);
    assert!(
        error.starts_with("error: `--all` does not go with `--format openai`: "),
        "{error}"
    );
    assert!(
        error.ends_with("\n  hint: use `--format native`\n"),
        "{error}"
    );
}

#[test]
fn scenarios_are_a_table_with_the_reason_for_each_state() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let dead = nobody();
    let home = Home::naming(&[("notes", &notes.url), ("dead", &dead)]);
    let daemon = home.serve(&[]);
    let out = ask(&home, &daemon, &["scenarios"]).ok();
    let lines = rows(&out);
    assert_eq!(
        lines[0],
        [
            "SCENARIO",
            "STATE",
            "ADDRESS",
            "TOOLS",
            "OFF",
            "BAD",
            "LAST ANSWER",
            "NEXT POLL",
            "FROM",
            "WHY"
        ]
    );
    assert_eq!(
        lines[1][..7],
        ["dead", "connecting", dead.as_str(), "0", "0", "0", "-"]
    );
    assert_eq!(
        lines[1][9],
        format!("not working yet: connection refused by {dead}/api/v1/tools")
    );
    assert_eq!(
        lines[2][..6],
        ["notes", "live", notes.url.as_str(), "1", "0", "0"]
    );
    assert!(
        lines[2][6].ends_with(" ago") && lines[2][7].starts_with("in "),
        "{out}"
    );

    let live = ask(&home, &daemon, &["scenarios", "--state", "live"]).ok();
    assert_eq!(names(&live), ["notes"]);
    assert_eq!(
        ask(&home, &daemon, &["scenarios", "--state", "blocked"]).ok(),
        "no scenario is blocked\n"
    );
    let listed = json(&ask(&home, &daemon, &["scenarios", "--json"]).ok());
    assert_eq!(listed["scenarios"][0]["last_error"]["kind"], "refused");
    let one = json(&ask(&home, &daemon, &["scenarios", "notes", "--json"]).ok());
    assert_eq!(one["name"], "notes");
    // What its author got wrong is told to operators as well.
    let findings: Vec<_> = one["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| &finding["code"])
        .collect();
    assert_eq!(findings, ["category-unknown"]);
}

#[test]
fn one_scenario_is_told_in_full() {
    let (home, daemon, scenarios) = office();
    let out = ask(&home, &daemon, &["scenarios", "notes"]).ok();
    let value = |key: &str| {
        let line = out
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{key}  ")));
        line.unwrap_or_else(|| panic!("{key}: {out}"))
            .split_once("  ")
            .unwrap()
            .1
            .trim()
            .to_owned()
    };
    let shown = |key: &str| value(key).trim_start_matches(key).trim().to_owned();
    assert_eq!(shown("state"), "live: up to date");
    assert_eq!(shown("description"), "Says what the test says");
    assert_eq!(shown("address"), format!("{}/", scenarios[0].url));
    assert!(!out.contains("  origin  "), "the address says it: {out}");
    assert_eq!(shown("tools"), "2 published, 1 off, 0 quarantined");
    assert_eq!(shown("failures"), "0");
    assert!(
        shown("last answer").contains(" UTC (") && shown("last answer").ends_with(" ago)"),
        "{out}"
    );
    assert!(out.contains("\ninfo[disabled] notes/wipe\n"), "{out}");
    assert!(
        out.contains(
            "\n  hint: to enable it: `callsheet prefs set tool:notes/wipe --enabled true`\n"
        ),
        "{out}"
    );

    let unknown = ask(&home, &daemon, &["scenarios", "nots"]).failed(1);
    assert_eq!(
        unknown,
        "error: no scenario is called `nots`\n  hint: did you mean notes?\n"
    );
    let far = ask(&home, &daemon, &["scenarios", "zebra"]).failed(1);
    assert_eq!(
        far,
        "error: no scenario is called `zebra`\n  hint: `callsheet scenarios` lists those that are known\n"
    );
}

#[test]
fn the_verdict_and_its_cause_come_first() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let gone = nobody();
    let home = Home::naming(&[("notes", &notes.url), ("gone", &gone)]);
    let daemon = home.serve(&[]);
    let first = |name: &str| {
        ask(&home, &daemon, &["explain", name])
            .out
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    until("the tool", || {
        first("add_note") == "add_note (notes/add_note): in the list"
    });
    ask(
        &home,
        &daemon,
        &["prefs", "set", "tool:notes/add_note", "--enabled", "false"],
    )
    .ok();
    assert_eq!(
        first("add_note"),
        "add_note (notes/add_note): not in the list: the preference global tool:notes/add_note disables it"
    );
    ask(&home, &daemon, &["prefs", "reset", "tool:notes/add_note"]).ok();
    // A name that was published is remembered with what became of it.
    ask(
        &home,
        &daemon,
        &[
            "prefs",
            "set",
            "tool:notes/add_note",
            "--alias",
            "write_down",
        ],
    )
    .ok();
    assert_eq!(
        first("write_down"),
        "write_down (notes/add_note): in the list"
    );
    ask(&home, &daemon, &["block", "notes"]).ok();
    for name in ["write_down", "add_note", "notes/add_note"] {
        let line = first(name);
        assert!(
            line.contains("(notes/add_note): not in the list: notes is hidden: "),
            "{name}: {line}"
        );
        assert!(
            line.starts_with("add_note ("),
            "it has no published name: {line}"
        );
    }
    let unknown = ask(&home, &daemon, &["explain", "fly_away"]).failed(1);
    assert!(
        unknown.contains("1 scenario has not answered") && unknown.contains("gone ("),
        "{unknown}"
    );
}

#[test]
fn the_name_of_a_scenario_is_explained_and_what_a_program_wrote_splits_no_error() {
    let script = "printf 'Traceback:; first line\\nValueError: no key\\n' >&2; exit 3";
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n[[scenarios]]\nname = \"filesystem\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n",
        notes.url
    ));
    let daemon = home.serve(&[]);
    let explained = || ask(&home, &daemon, &["explain", "filesystem"]).ok();
    until("why it ended", || explained().contains("exit code 3"));
    let shown = explained();
    assert!(
        shown.starts_with("filesystem: a tool provider (scenario) and no tool; it is "),
        "{shown}"
    );
    assert!(
        shown.contains("0 published, 0 disabled, 0 malformed"),
        "{shown}"
    );
    let live = ask(&home, &daemon, &["explain", "notes"]).ok();
    assert!(
        live.starts_with("notes: a tool provider (scenario) and no tool; it is live: "),
        "{live}"
    );
    assert!(live.contains("1 published"), "{live}");
    let unknown = ask(&home, &daemon, &["explain", "fly_away"]).failed(1);
    let (message, hint) = unknown.split_once("\n  hint: ").unwrap();
    assert!(
        message.starts_with("error: no tool is called `fly_away`"),
        "{unknown}"
    );
    assert!(
        hint.contains("filesystem (")
            && hint.contains("exit code 3")
            && !hint.contains("last lines on stderr"),
        "{unknown}"
    );
}

#[test]
fn explains_by_published_name_and_by_identity() {
    let (home, daemon, _scenarios) = office();
    for name in ["notes__search", "notes/search"] {
        let out = ask(&home, &daemon, &["explain", name]).ok();
        assert!(
            out.starts_with("notes__search (notes/search): in the list\n\n  offered  "),
            "{out}"
        );
        assert!(out.contains("\n     name  "), "{out}");
    }
    let off = ask(&home, &daemon, &["explain", "wipe"]).ok();
    assert!(
        off.starts_with("wipe (notes/wipe): not in the list: notes disables it by default\n"),
        "{off}"
    );
    assert!(
        rows(&off).contains(&vec![
            "enabled",
            "disabled by default; in effect",
            "[manifest]"
        ]),
        "{off}"
    );
    assert!(
        off.contains(
            "\n  hint: to enable it: `callsheet prefs set tool:notes/wipe --enabled true`\n"
        ),
        "{off}"
    );
}

#[test]
fn a_name_that_nothing_has_is_refused_with_near_ones() {
    let (home, daemon, _scenarios) = office();
    for (name, hint) in [
        ("ad_note", "did you mean add_note?"),
        ("notes/serch", "did you mean notes/search?"),
        (
            "zebra",
            "`callsheet tools --all` lists those that are offered now",
        ),
    ] {
        let error = ask(&home, &daemon, &["explain", name]).failed(1);
        assert_eq!(
            error,
            format!("error: no tool is called `{name}`\n  hint: {hint}\n")
        );
    }
    let ambiguous = ask(&home, &daemon, &["explain", "search"]).failed(1);
    assert!(
        ambiguous.contains("mail/search") && ambiguous.contains("notes/search"),
        "{ambiguous}"
    );
}

#[test]
fn tables_keep_to_the_width_and_names_stay_whole() {
    let long = "look_up_everything_that_is_known_of_a_customer";
    let about = "Looks up everything that is known of a customer, in every system there is, and tells what is missing";
    let crm = Scenario::start(
        "crm",
        vec![
            tool(long, about, "customers_and_their_contracts"),
            tool(
                "wipe",
                "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
                "misc",
            ),
        ],
    );
    let home = Home::naming(&[
        ("crm", &crm.url),
        ("a-scenario-with-a-rather-long-name", &nobody()),
    ]);
    let daemon = home.serve(&[]);
    let at = |columns: &str, args: &[&str]| {
        let mut command = home.command(args);
        run(command
            .env("CALLSHEET_URL", &daemon.url)
            .env("COLUMNS", columns))
        .ok()
    };
    for columns in [80, 140] {
        for args in [&["tools"][..], &["scenarios"]] {
            let out = at(&columns.to_string(), args);
            // An ideograph takes two columns.
            let width = |line: &str| {
                line.chars()
                    .map(|c| if c >= '\u{2e80}' { 2 } else { 1 })
                    .sum::<usize>()
            };
            assert!(
                out.lines().all(|line| width(line) <= columns),
                "{columns}: {out}"
            );
            if args == ["tools"] {
                // There is no room for the scenario beside the tools at 80 columns.
                assert_eq!(
                    out.lines().count(),
                    if columns == 80 { 5 } else { 4 },
                    "one line each: {out}"
                );
            }
        }
    }
    let short = at("80", &["scenarios"]);
    let host = crm.url.strip_prefix("http://").unwrap();
    assert!(
        !short.contains(host),
        "there is no room for the address beside the longest name: {short}"
    );
    let wide = at("140", &["scenarios"]);
    assert!(wide.contains(&format!("live        {host}  ")), "{wide}");
    let narrow = at("80", &["tools"]);
    assert!(
        narrow.contains(long) && !narrow.contains("CATEGORY") && narrow.contains('…'),
        "{narrow}"
    );
    assert!(
        narrow.contains("\ncrm:\n  look_up_everything"),
        "what they are sorted by is shown: {narrow}"
    );
    assert!(at("140", &["tools"]).contains("CATEGORY"));
    let reasons = at("80", &["scenarios"]);
    assert!(
        reasons.contains("a-scenario-with-a-rather-long-name  connecting"),
        "{reasons}"
    );
    let words: Vec<&str> = reasons.split_whitespace().collect();
    let whole = ["not", "working", "yet:", "connection", "refused", "by"];
    assert!(
        whole.iter().all(|word| words.contains(word)) && !reasons.contains('…'),
        "nothing is cut: {reasons}"
    );
    // An explanation is told in full, over several lines.
    let explained = at("80", &["explain", long]);
    assert!(
        !explained.contains('…') && explained.lines().all(|line| line.chars().count() <= 80),
        "{explained}"
    );
    let whole = ask(&home, &daemon, &["tools"]).ok();
    assert!(whole.contains(about), "a pipe gets everything: {whole}");
}

#[test]
fn what_a_scenario_says_cannot_steer_the_terminal() {
    let sly = "Harmless\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m \u{202e}txt";
    let scenario = Scenario::start("sly", vec![tool("sly", sly, "x")]);
    let home = Home::naming(&[("sly", &scenario.url)]);
    let daemon = home.serve(&[]);
    // Even where colour is forced, the only sequences are ours.
    let out = run(home
        .command(&["tools"])
        .env("CALLSHEET_URL", &daemon.url)
        .env("CLICOLOR_FORCE", "1"))
    .ok();
    let line = out.lines().nth(1).unwrap();
    assert!(line.contains("Harmless[2J]0;owned31m txt"), "{line:?}");
    assert!(
        !line.contains('\u{1b}')
            && out
                .lines()
                .next()
                .unwrap()
                .contains("\u{1b}[1mTOOL\u{1b}[0m"),
        "{out:?}"
    );
    let none = run(home
        .command(&["scenarios"])
        .env("CALLSHEET_URL", &daemon.url)
        .env("NO_COLOR", "1"))
    .ok();
    assert!(!none.contains('\u{1b}'), "{none:?}");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let tools = (0..2_000)
        .map(|n| tool(&format!("tool_{n}"), "Does one thing of very many", "x"))
        .collect();
    let scenario = Scenario::start("many", tools);
    let home = Home::naming(&[("many", &scenario.url)]);
    let daemon = home.serve(&[]);
    for args in [
        &["tools"][..],
        &["tools", "--json"],
        &["tools", "--format", "native"],
        &["completions", "bash"],
    ] {
        let mut command = home.command(args);
        command
            .env("CALLSHEET_URL", &daemon.url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
        assert!(out.fill_buf().unwrap().len() <= 64);
        drop(out);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
        assert!(
            ended.stderr.is_empty(),
            "{args:?}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
}

/// Runs a command with a terminal as its standard output, and gives what the terminal got.
/// `script` is a part of util-linux, which every Linux has.
#[cfg(target_os = "linux")]
pub(crate) fn on_a_terminal(home: &Home, daemon: &Running, args: &[&str]) -> String {
    let command = [
        &[env!("CARGO_BIN_EXE_callsheet")],
        args,
        &["--url", &daemon.url][..],
    ]
    .concat()
    .join(" ");
    let environment = home.command(&[]);
    let mut script = std::process::Command::new("script");
    script
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .stdin(Stdio::null());
    script
        .env_clear()
        .env("TERM", "xterm")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    script
        .envs(
            environment
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(home.path(""));
    run(&mut script).ok()
}

#[cfg(target_os = "linux")]
#[test]
fn json_on_a_terminal_has_no_characters_that_steer_it() {
    let about = "red\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{200b}end";
    let scenario = Scenario::start("notes", vec![tool("add_note", about, "writing")]);
    let home = Home::naming(&[("notes", &scenario.url)]);
    let daemon = home.serve(&[]);
    for args in [&["tools", "--json"][..], &["tools", "--format", "openai"]] {
        let piped = ask(&home, &daemon, args).ok();
        assert!(
            piped.contains('\u{202e}'),
            "a pipe gets the bytes of the daemon: {args:?}"
        );
        let shown = on_a_terminal(&home, &daemon, args);
        let steers = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\r') || matches!(c, '\u{202e}' | '\u{200b}')
        };
        assert!(!shown.contains(steers), "{args:?}: {shown:?}");
        assert_eq!(json(&shown), json(&piped), "{args:?}");
    }
}

/// A command that is not found quotes the whole `PATH` of the daemon, which is one word.
#[test]
fn a_long_path_in_a_reason_costs_no_column_and_no_line_is_too_long() {
    let path = ["/opt/tools/a-rather-long-folder/bin"; 20].join(":");
    let home = Home::with("[[scenarios]]\nname = \"ghost\"\ncommand = \"no-such-command\"\n");
    let mut serve = home.command(&["serve"]);
    serve.env("PATH", &path);
    let daemon = Running::start(serve, "callsheet listens on ");
    let narrow = |args: &[&str]| {
        let ran = run(home
            .command(&[args, &["--url", &daemon.url][..]].concat())
            .env("COLUMNS", "80"));
        format!("{}{}", ran.out, ran.err)
    };
    until("it has failed", || {
        ask(&home, &daemon, &["scenarios", "ghost", "--json"])
            .out
            .contains("was not found")
    });
    let table = narrow(&["scenarios"]);
    assert!(
        table.starts_with("SCENARIO  STATE")
            && table.contains("ADDRESS")
            && table.contains("TOOLS"),
        "{table}"
    );
    for args in [
        &["scenarios"][..],
        &["scenarios", "ghost"],
        &["findings"],
        &["doctor"],
        &["refresh", "ghost"],
        &["logs", "ghost"],
        &["explain", "zebra"],
        &["call", "zebra"],
    ] {
        let shown = narrow(args);
        let long = shown.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{args:?}: {shown}");
    }
    let piped = ask(&home, &daemon, &["scenarios"]).ok();
    assert!(
        piped.contains("none of the 20 folders of PATH has it"),
        "a pipe gets all of it: {piped}"
    );
}

#[test]
fn a_pipe_gets_whole_addresses() {
    let url = format!(
        "{}/{}",
        nobody(),
        "a-long-path/".repeat(12).trim_end_matches('/')
    );
    let home = Home::naming(&[("far", &url)]);
    let daemon = home.serve(&[]);
    let piped = ask(&home, &daemon, &["scenarios"]).ok();
    assert!(piped.contains(&url), "{piped}");
}

#[test]
fn a_limit_that_left_tools_out_is_named() {
    let (home, daemon, _scenarios) = office();
    for (args, limit) in [
        (&["--max-tokens", "1"][..], "by `--max-tokens 1` or because"),
        (&["--max", "1"], "by `--max 1` or because"),
    ] {
        let ran = ask(&home, &daemon, &[&["tools"], args].concat());
        assert!(ran.err.contains(limit), "{ran:?}");
    }
}

#[test]
fn a_scenario_is_explained_with_commands() {
    let (home, daemon, _scenarios) = office();
    let shown = ask(&home, &daemon, &["explain", "notes"]).ok();
    assert!(
        shown.contains("`callsheet scenarios notes`") && !shown.contains("/api/v1/"),
        "{shown}"
    );
}

#[test]
fn the_history_of_a_tool_without_changes_says_so() {
    let (home, daemon, _scenarios) = office();
    let out = ask(&home, &daemon, &["history", "notes/search"]).ok();
    assert!(
        out.starts_with("notes__search (notes/search): version "),
        "{out}"
    );
    assert!(
        out.ends_with("\nno change of its definition is known\n"),
        "{out}"
    );
    let ambiguous = ask(&home, &daemon, &["history", "search"]).failed(1);
    assert!(ambiguous.contains("several tools"), "{ambiguous}");
}
