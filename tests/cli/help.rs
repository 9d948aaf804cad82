//! What needs no daemon: help, version, completions, and wrong usage.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::command::{Home, is_installed, nobody, office, run};

const COMMANDS: [&str; 19] = [
    "serve",
    "demo",
    "tools",
    "search",
    "scenarios",
    "explain",
    "findings",
    "call",
    "logs",
    "prefs",
    "approvals",
    "operations",
    "refresh",
    "block",
    "trust",
    "check",
    "doctor",
    "config",
    "completions",
];

#[test]
fn the_help_names_every_command_and_ends_in_exit_codes() {
    let help = Home::new().run(&["--help"]).ok();
    for command in COMMANDS {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command}: {help}"
        );
    }
    let codes = help.split_once("Exit codes:\n").unwrap().1;
    assert_eq!(
        codes
            .lines()
            .map(|line| line.trim().chars().next().unwrap())
            .collect::<String>(),
        "0123456"
    );
    assert_eq!(Home::new().run(&["help"]).ok(), help);
}

#[test]
fn every_command_explains_itself_within_the_columns_of_its_terminal() {
    let home = Home::new();
    let below = [
        &["prefs", "list"][..],
        &["prefs", "set"],
        &["prefs", "reset"],
        &["config", "show"],
        &["approvals", "approve"],
        &["approvals", "reject"],
        &["operations", "cancel"],
    ];
    for path in COMMANDS.iter().map(std::slice::from_ref).chain(below) {
        let help = home.run(&[path, &["--help"][..]].concat()).ok();
        assert!(
            help.contains(&format!("\nUsage: callsheet {} ", path.join(" "))),
            "{help}"
        );
        assert!(
            !help.starts_with("Usage"),
            "it says what it does first: {help}"
        );
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{path:?}: {line}");
        }
        let mut narrow = home.command(&[path, &["--help"][..]].concat());
        for line in run(narrow.env("COLUMNS", "80")).ok().lines() {
            assert!(line.chars().count() <= 80, "{path:?}: {line}");
        }
        let about = help.lines().next().unwrap();
        assert!(!about.ends_with('.'), "{about}");
    }
}

#[test]
fn the_version_is_the_packages_and_may_name_the_commit() {
    let version = Home::new().run(&["--version"]).ok();
    assert_eq!(
        version,
        format!("callsheet {}\n", env!("CALLSHEET_VERSION"))
    );
    assert!(
        version.starts_with(concat!("callsheet ", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
}

#[test]
fn wrong_usage_ends_with_two_and_prints_nothing() {
    let home = Home::new();
    for args in [
        &[][..],
        &["prefs"],
        &["frobnicate"],
        &["tools", "--frobnicate"],
        &["tools", "--max", "many"],
        &["tools", "--format", "papyrus"],
        &["explain"],
        &["block"],
        &["scenarios", "--state", "resting"],
        &["scenarios", "notes", "--state", "live"],
        &["prefs", "set", "scenario:notes"],
        &["prefs", "set", "scenario:notes", "--approval", "maybe"],
        &["prefs", "reset", "scenario:notes", "--setting", "colour"],
        &["completions", "cmd"],
        &["tools", "--url", "ftp://127.0.0.1"],
        &["explain", "..", "--url", "http://127.0.0.1:1"],
        &["scenarios", "", "--url", "http://127.0.0.1:1"],
    ] {
        let error = home.run(args).failed(2);
        assert!(
            error.starts_with("error: ") || error.contains("Usage: "),
            "{args:?}: {error}"
        );
    }
    let error = home.run(&["prefs", "set", "scenario:notes"]).err;
    assert!(
        error.contains("callsheet prefs set [OPTIONS] <TARGET>\n           <--enabled|--approval|--alias|--priority|--pinned|--pins|\n            --description|--parameters>..."),
        "{error}"
    );
}

#[test]
fn completions_are_scripts_for_their_shells() {
    let home = Home::new();
    for (shell, part) in [
        ("bash", "complete -F _callsheet"),
        ("zsh", "#compdef callsheet"),
        ("fish", "complete -c callsheet"),
        ("elvish", "set edit:completion:arg-completer[callsheet]"),
        (
            "powershell",
            "Register-ArgumentCompleter -Native -CommandName 'callsheet'",
        ),
    ] {
        let script = home.run(&["completions", shell]).ok();
        assert!(script.contains(part), "{shell}");
        let file = home.write(&format!("callsheet.{shell}"), &script);
        // Where the shell is there, it says itself whether it can read the script.
        let parses = Command::new(shell)
            .arg("-n")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if matches!(shell, "bash" | "zsh" | "fish") {
            assert!(
                parses.map_or(true, |status| status.success()),
                "{shell} cannot read its script"
            );
        }
    }
}

/// The folders of programs, this one's first.
fn path() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_callsheet")).parent().unwrap();
    format!(
        "{}:{}",
        binary.display(),
        std::env::var("PATH").unwrap_or_default()
    )
}

/// What bash would offer for this line, whose last word is being typed.
fn offered(home: &Home, line: &str) -> Vec<String> {
    let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source ./callsheet.bash\nCOMP_WORDS=({})\nCOMP_CWORD={}\nCOMP_LINE='{line}'\nCOMP_POINT={}\n_callsheet_names callsheet \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        words.len() - 1,
        line.len(),
    );
    home.write("ask.bash", &script);
    let own = home.command(&[]);
    let mut bash = Command::new("bash");
    bash.arg("ask.bash").current_dir(home.path("")).env_clear();
    bash.envs(
        own.get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    bash.env("PATH", path());
    run(&mut bash)
        .ok()
        .lines()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn bash_offers_the_names_of_the_running_daemon() {
    if !is_installed("bash") {
        return;
    }
    let (home, daemon, _scenarios) = office();
    home.write("callsheet.bash", &home.run(&["completions", "bash"]).ok());
    for (line, names) in [
        ("callsheet scenarios ", &["mail", "notes"][..]),
        ("callsheet block no", &["notes"]),
        ("callsheet tools --scenario m", &["mail"]),
        (
            "callsheet call ",
            &[
                "mail__search",
                "send_mail",
                "add_note",
                "notes__search",
                "wipe",
            ],
        ),
        ("callsheet explain w", &["wipe"]),
        ("callsheet call add_note --", &["--text", "--help"]),
        ("callsheet call add_note --t", &["--text"]),
        ("callsheet call add_note --text x --h", &["--help"]),
        ("callsheet prefs set tool : notes/w", &["notes/wipe"]),
    ] {
        assert_eq!(offered(&home, line), names, "{line}");
    }
    // Everything else is as before, and without a daemon nothing is said.
    assert_eq!(offered(&home, "callsheet prefs re"), ["reset"]);
    drop(daemon);
    assert_eq!(offered(&home, "callsheet block no"), Vec::<String>::new());
    assert!(offered(&home, "callsheet scenarios --js").contains(&"--json".to_owned()));
}

/// Completes a line in fish; a stand-in for its completion system gives zsh its words.
#[test]
fn zsh_and_fish_offer_the_same_names() {
    let (home, _daemon, _scenarios) = office();
    for shell in ["zsh", "fish"] {
        if !is_installed(shell) {
            continue;
        }
        home.write("script", &home.run(&["completions", shell]).ok());
        for (words, name) in [
            (&["scenarios", "no"][..], "notes"),
            (&["tools", "--scenario", "ma"], "mail"),
            (&["call", "add"], "add_note"),
            (&["call", "add_note", "--te"], "--text"),
            (&["prefs", "set", "tool:notes/w"], "tool:notes/wipe"),
        ] {
            let (script, flag) = if shell == "fish" {
                (
                    format!("source script; complete -C 'callsheet {}'", words.join(" ")),
                    "--no-config",
                )
            } else {
                let offer = "compdef() {}; compadd() { shift; print -l -- ${(P)1} }; _arguments() { print static }";
                let words = words.join(" ");
                (
                    format!(
                        "{offer}; source ./script; words=(callsheet {words}); CURRENT=$#words; _callsheet"
                    ),
                    "-f",
                )
            };
            let own = home.command(&[]);
            let mut command = Command::new(shell);
            command
                .args([flag, "-c", &script])
                .current_dir(home.path(""))
                .env_clear();
            command
                .envs(
                    own.get_envs()
                        .filter_map(|(key, value)| Some((key, value?))),
                )
                .env("PATH", path());
            let ran = run(&mut command);
            assert!(
                ran.out.lines().any(|line| line == name),
                "{shell} {words:?}: {ran:?}"
            );
        }
    }
}

#[test]
fn completion_scripts_ask_for_names_by_a_command_that_never_fails() {
    let (home, daemon, _scenarios) = office();
    for (words, found) in [
        (&["trust", "ma"][..], "mail\n"),
        (&["no-such-command", ""], ""),
        (&[], ""),
    ] {
        let ran = home.run(&[&["complete", "--"], words].concat());
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
        assert_eq!(ran.out, found, "{words:?}");
        assert_eq!(ran.err, "", "{words:?}");
    }
    let named = home
        .run(&["complete", "--", "trust", "--url", &daemon.url, "ma"])
        .ok();
    assert_eq!(named, "mail\n");
    for command in ["remove", "logs"] {
        assert_eq!(
            home.run(&["complete", "--", command, "ma"]).ok(),
            "mail\n",
            "{command}"
        );
    }
    for url in [nobody(), "ftp://odd".to_owned()] {
        let ran = home.run(&["complete", "--", "trust", "--url", &url, "ma"]);
        assert_eq!(ran.code, Some(0), "{url}");
        assert_eq!(ran.out + &ran.err, "", "{url}");
    }
    for (shell, part) in [
        ("zsh", "_callsheet_words \"$@\""),
        ("fish", "function __callsheet_names"),
    ] {
        let script = home.run(&["completions", shell]).ok();
        assert!(
            script.contains(part) && script.contains(" complete -- "),
            "{shell}: {script}"
        );
    }
}

#[test]
fn colour_is_for_terminals_or_when_asked_for() {
    let home = Home::new();
    let colour = |name: &str, value: &str| {
        let ran = run(home
            .command(&["tools", "--url", "http://127.0.0.1:1"])
            .env(name, value));
        ran.err.contains('\u{1b}')
    };
    assert!(
        !home
            .run(&["tools", "--url", "http://127.0.0.1:1"])
            .err
            .contains('\u{1b}')
    );
    assert!(colour("CLICOLOR_FORCE", "1"));
    assert!(!colour("NO_COLOR", "1"));
    let mut both = home.command(&["tools", "--url", "http://127.0.0.1:1"]);
    assert!(
        !run(both.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"))
            .err
            .contains('\u{1b}')
    );
}

#[test]
fn words_that_people_try_first_are_commands_too() {
    let home = Home::new();
    assert_eq!(home.run(&["version"]).ok(), home.run(&["--version"]).ok());
    for (tried, command) in [
        ("list", "tools"),
        ("status", "scenarios"),
        ("start", "serve"),
    ] {
        assert_eq!(
            home.run(&[tried, "--help"]).ok(),
            home.run(&[command, "--help"]).ok(),
            "{tried}"
        );
    }
}

#[test]
fn an_address_needs_no_scheme_and_a_blocked_scenario_can_be_unblocked_by_that_word() {
    let home = Home::naming(&[("away", "http://127.0.0.1:9")]);
    let daemon = home.serve(&[]);
    let address = daemon
        .url
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/');
    let blocked = home.run(&["block", "away", "--url", address]).ok();
    assert!(blocked.contains("away is blocked"), "{blocked}");
    let unblocked = home.run(&["unblock", "away", "--url", address]).ok();
    assert!(!unblocked.contains("away is blocked"), "{unblocked}");
    assert!(unblocked.contains("decision taken back"), "{unblocked}");
    // The daemon's list is a manifest, so it can be checked at the same address.
    let checked = home.run(&["check", address]);
    assert!(
        checked.out.contains("of 0 tools") || checked.code == Some(0),
        "{checked:?}"
    );
}
