//! Hints name commands that work as they are printed, and long texts keep to the terminal.

use serde_json::json;

use crate::support::command::{Home, office, run};

#[test]
fn a_scenario_that_nobody_knows_is_an_error_wherever_it_is_named() {
    let (home, daemon, _scenarios) = office();
    let of = |command: &[&str], name: &str| {
        home.run(&[command, &["--scenario", name, "--url", &daemon.url][..]].concat())
    };
    for command in [
        &["findings"][..],
        &["logs"],
        &["tools"],
        &["tools", "--format", "openai"],
        &["tools", "--all"],
    ] {
        let error = of(command, "nots").failed(1);
        assert!(
            error.contains("no scenario is called `nots`\n  hint: did you mean notes?"),
            "{command:?}: {error}"
        );
        of(command, "notes").ok();
    }
}

#[test]
fn refusals_name_the_command_that_helps() {
    let (home, daemon, _scenarios) = office();
    home.write("mcp.json", &json!({"mcpServers": {}}).to_string());
    home.write("odd.json", "{}");
    for (args, code, hint) in [
        (
            &["forget", "notes"][..],
            1,
            "`callsheet remove notes` takes it out of the configuration first",
        ),
        (
            &["prefs", "set", "foo", "--enabled", "true"],
            1,
            "use `scenario:<name>`, `tool:<scenario>/<tool>`",
        ),
        (
            &["prefs", "set", "add_note", "--enabled", "true"],
            1,
            "did you mean `tool:notes/add_note`?",
        ),
        (
            &["prefs", "set", "tool:add_note", "--enabled", "true"],
            1,
            "did you mean `tool:notes/add_note`?",
        ),
        (
            &["prefs", "reset", "notes/add_note"],
            1,
            "did you mean `tool:notes/add_note`?",
        ),
        (
            &["prefs", "reset", "tool:notes/ad_note"],
            1,
            "`callsheet prefs list` shows those that are set",
        ),
        (&["login", "notes"], 1, "notes answers without a login"),
        (
            &["bundle", "put", "mcp.json"],
            2,
            "`callsheet import mcp.json` takes such servers",
        ),
        (
            &["bundle", "put", "odd.json"],
            2,
            "a bundle has a `slug` and a `displayName`",
        ),
    ] {
        let error = home
            .run(&[args, &["--url", &daemon.url][..]].concat())
            .failed(code);
        assert!(
            error.contains(&format!("\n  hint: {hint}")),
            "{args:?}: {error}"
        );
    }
    let slip = home
        .run(&["call", "--url", &daemon.url, "add_note", "--txet", "x"])
        .failed(2);
    assert!(
        slip.contains("\n  hint: did you mean `--text`? `callsheet call add_note --help`"),
        "{slip}"
    );
    let wrong = run(home.command(&["tools"]).env("CALLSHEET_URL", "notes")).failed(2);
    assert!(
        wrong.starts_with(
            "error: environment CALLSHEET_URL: `notes` is not the address of a daemon"
        ),
        "{wrong}"
    );
    // A variable is none of the options that a command lacks.
    let usage = run(home.command(&["explain"]).env("CALLSHEET_URL", &daemon.url)).failed(2);
    assert!(
        usage.contains("Usage: callsheet explain") && !usage.contains("--url"),
        "{usage}"
    );
    let bare = Home::with("");
    let doctor = bare.run(&["doctor"]);
    assert!(
        doctor.out.contains("`callsheet init`") && doctor.out.contains("`callsheet add NAME"),
        "{doctor:?}"
    );
}

/// A tool that is there, and in no list, is not one that nobody knows.
#[test]
fn a_tool_of_a_blocked_scenario_is_told_with_what_blocks_it() {
    let (home, daemon, _scenarios) = office();
    home.run(&["block", "notes", "--url", &daemon.url]).ok();
    let told = home
        .run(&["call", "--url", &daemon.url, "add_note", "--text", "x"])
        .failed(1);
    assert!(
        told.contains("`add_note` is not in the list: notes") && told.contains("blocked"),
        "{told}"
    );
    assert!(
        told.contains("\n  hint: `callsheet explain add_note` shows every decision about it"),
        "{told}"
    );
    let list = home
        .run(&["tools", "--scenario", "notes", "--url", &daemon.url])
        .ok();
    assert!(
        list.starts_with("no tools: notes is blocked: ")
            && list.contains("`callsheet scenarios notes`"),
        "{list}"
    );
    let unknown = home
        .run(&["call", "--url", &daemon.url, "submarine"])
        .failed(1);
    assert!(
        unknown.contains("no tool is called `submarine`"),
        "{unknown}"
    );
}

#[test]
fn the_result_of_a_latent_tool_is_given_with_args() {
    let schema = json!({"type": "object", "description": "Rates a text", "properties": {
        "_tool": {"type": "string", "const": "rate_text"}, "text": {"type": "string"},
        "_output": {"type": "object", "properties": {"stars": {"type": "number"}}}}});
    let home = Home::with(&format!("[[definitions]]\nschema = '{schema}'\n"));
    let daemon = home.serve(&[]);
    let call = |args: &[&str]| home.run(&[&["call", "--url", &daemon.url], args].concat());
    let way = r#"--args '{..., "_output": {...}}'"#;
    let error = call(&["rate_text", "--text", "hello"]).failed(1);
    assert!(
        error.contains(&format!("\n  hint: call it again with `{way}`")),
        "{error}"
    );
    let help = call(&["rate_text", "--help"]).ok();
    assert!(help.contains(way), "{help}");
    let rated = call(&[
        "rate_text",
        "--text",
        "hello",
        "--args",
        r#"{"_output": {"stars": 5}}"#,
    ])
    .ok();
    assert!(rated.contains("\"stars\": 5"), "{rated}");
}

#[test]
fn a_file_that_cannot_be_made_or_is_not_there_is_called_so() {
    let home = Home::new();
    home.write("file", "");
    let ran = home.run(&["init", "--write", "--config", "file/below/own.toml"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("own.toml cannot be created: "),
        "{ran:?}"
    );
    assert!(
        ran.err
            .contains("\n  hint: write these lines to the file yourself"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("#[[scenarios]]\n#name = \"notes\""),
        "{ran:?}"
    );
    let error = home
        .run(&["remove", "z", "--config", "none.toml"])
        .failed(1);
    assert!(
        error.starts_with("error: there is no file none.toml, ") && error.contains("\n  hint: "),
        "{error}"
    );
}

#[test]
fn the_command_that_writes_an_import_names_its_files() {
    let home = Home::with("");
    home.write(
        "two files.json",
        &json!({"mcpServers": {"two": {"command": "true"}}}).to_string(),
    );
    let shown = home
        .run(&["import", "two files.json", "--config", "callsheet.toml"])
        .ok();
    let command = "callsheet import --write --config callsheet.toml 'two files.json'";
    assert!(
        shown.contains(&format!("1 server can be taken; `{command}` writes")),
        "{shown}"
    );
    let words = [
        "import",
        "--write",
        "--config",
        "callsheet.toml",
        "two files.json",
    ];
    assert!(home.run(&words).ok().contains("1 server written to "));
}

#[test]
fn long_lines_are_broken_between_words() {
    let (home, daemon, _scenarios) = office();
    for args in [&["forget", "notes"][..], &["logs"]] {
        let args = [args, &["--url", &daemon.url][..]].concat();
        let ran = run(home.command(&args).env("COLUMNS", "40"));
        let text = format!("{}{}", ran.out, ran.err);
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        let whole = home.run(&args);
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words(&text),
            words(&format!("{}{}", whole.out, whole.err)),
            "no word is cut"
        );
        let longest = format!("{}{}", whole.out, whole.err)
            .lines()
            .map(str::len)
            .max();
        assert!(longest > Some(40), "a pipe gets whole lines: {whole:?}");
    }
}
