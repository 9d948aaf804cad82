//! `callsheet config show`: what is in force, where it comes from, and what is wrong with it.

use std::fs;

use crate::support::command::{Home, json, run, until};

const FILE: &str = "[refresh]\nconcurrency = 4\ntimeout = \"3s\"\n\n[[scenarios]]\nname = \"notes\"\nurl = \"http://u:lemon@127.0.0.1:9\"\n";

#[test]
fn shows_every_value_in_force() {
    let home = Home::new();
    home.write("callsheet.toml", FILE);
    let out = home.run(&["config", "show"]).ok();
    for line in [
        "server.listen = \"127.0.0.1:7400\"",
        "refresh.concurrency = 4",
        "refresh.timeout = \"3s\"",
        "scenarios[0].name = \"notes\"",
    ] {
        assert!(out.lines().any(|shown| shown == line), "{line}: {out}");
    }
    assert!(!out.contains("lemon"), "{out}");
    assert!(!out.contains('#'), "{out}");
}

#[test]
fn tells_where_each_value_comes_from() {
    let home = Home::new();
    let file = home.write("callsheet.toml", FILE);
    let mut command = home.command(&["config", "show", "--origin"]);
    let out = run(command.env("CALLSHEET_REFRESH__TIMEOUT", "4s")).ok();
    let origin = |setting: &str| {
        let line = out
            .lines()
            .find(|line| line.starts_with(&format!("{setting} ")))
            .unwrap_or_else(|| panic!("{out}"));
        line.split_once("  # ").unwrap().1.to_owned()
    };
    assert_eq!(origin("server.listen = \"127.0.0.1:7400\""), "default");
    assert_eq!(
        origin("refresh.concurrency = 4"),
        format!("file {}:2", file.display())
    );
    assert!(
        origin("refresh.timeout = \"4s\"").contains("CALLSHEET_REFRESH__TIMEOUT"),
        "{out}"
    );
    // The origins stand below each other, but beside a setting that is longer than most.
    let column = out.lines().next().unwrap().find("  # ").unwrap();
    for line in out.lines() {
        let (setting, _) = line.split_once("  # ").unwrap();
        let is_aligned = setting.len() == column || setting.trim_end().len() > column;
        assert!(is_aligned, "{line}");
    }
}

#[test]
fn origins_that_do_not_fit_beside_their_values_stand_above_them() {
    let home = Home::new();
    let path = "/home/ada/.local/share/tools/bin:".repeat(5);
    let long = format!(
        "{FILE}\n[[scenarios]]\nname = \"a\"\ncommand = \"sh\"\nenv = {{ PATH = \"{path}\" }}\n"
    );
    home.write("callsheet.toml", &long);
    let out = run(home
        .command(&["config", "show", "--origin"])
        .env("COLUMNS", "80"))
    .ok();
    let is_file = |line: &&str| line.starts_with("# file ");
    let above = out
        .lines()
        .zip(out.lines().skip(1))
        .find(|(line, _)| is_file(line));
    assert!(
        above.is_some_and(|(_, setting)| setting.contains(" = ")),
        "{out}"
    );
    let wide = out.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{out}");
}

#[test]
fn json_has_typed_values_and_origins() {
    let home = Home::new();
    let file = home.write("callsheet.toml", FILE);
    let shown = json(&home.run(&["config", "show", "--json"]).ok());
    assert_eq!(shown["file"], file.to_str().unwrap());
    let value = |key: &str| {
        let values = shown["values"].as_array().unwrap();
        values
            .iter()
            .find(|value| value["key"] == key)
            .unwrap_or_else(|| panic!("{key}: {shown}"))
            .clone()
    };
    assert_eq!(value("refresh.concurrency")["value"], 4);
    assert_eq!(value("refresh.timeout")["value"], "3s");
    assert_eq!(value("discovery.vrooli.enabled")["value"], true);
    assert_eq!(value("server.allowed_hosts")["value"], json("[]"));
    assert_eq!(value("server.listen")["origin"], "default");
    assert_eq!(
        value("refresh.concurrency")["origin"],
        format!("file {}:2", file.display())
    );
}

#[test]
fn what_cannot_be_used_is_told_by_every_command_that_needs_it() {
    let home = Home::new();
    let file = home.write("callsheet.toml", "[server]\nlisten = \"somewhere\"\n");
    for args in [
        &["config", "show"][..],
        &["tools"],
        &["scenarios"],
        &["refresh"],
    ] {
        let error = home.run(args).failed(4);
        let (first, hint) = error.trim_end().split_once("\n  hint: ").unwrap();
        assert!(
            first.starts_with(&format!("error: {}:2:10: server.listen: ", file.display())),
            "{error}"
        );
        assert!(!hint.is_empty() && !hint.contains('\n'), "{error}");
    }
    // An address that is named needs no configuration.
    home.run(&["tools", "--url", "http://127.0.0.1:1"])
        .failed(3);
    let home = Home::new();
    let mut unknown = home.command(&["config", "show"]);
    let error = run(unknown.env("CALLSHEET_REFRESH__TIMEOUTS", "4s")).failed(4);
    assert!(
        error.contains("CALLSHEET_REFRESH__TIMEOUTS")
            && error.contains("CALLSHEET_REFRESH__TIMEOUT`"),
        "{error}"
    );
}

#[test]
fn empty_variables_are_not_set() {
    let home = Home::new();
    home.write("callsheet.toml", FILE);
    let mut command = home.command(&["config", "show"]);
    assert!(
        run(command.env("CALLSHEET_CONFIG", ""))
            .ok()
            .contains("refresh.concurrency = 4")
    );
    let mut command = home.command(&["tools"]);
    let error = run(command.env("CALLSHEET_URL", "")).failed(3);
    assert!(
        error.starts_with("error: no daemon answers at http://127.0.0.1:7400: "),
        "{error}"
    );
}

/// The one who sets it believes that it counts.
#[test]
fn a_variable_that_sets_no_key_is_named() {
    let home = Home::with("");
    let shown = run(home
        .command(&["config", "show"])
        .env("CALLSHEET_LISTEN", "127.0.0.1:9"));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.err.contains("`CALLSHEET_LISTEN`"), "{shown:?}");
    let quiet = home.run(&["config", "show"]);
    assert!(!quiet.err.contains("CALLSHEET_"), "{quiet:?}");
}

/// A log that was redirected to the wrong name, or the hole of a restore.
#[test]
fn a_file_far_too_large_is_refused_unread() {
    let home = Home::with("");
    let daemon = home.serve(&[]);
    let large = fs::File::create(home.path("large.toml")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    fs::rename(home.path("large.toml"), home.path("callsheet.toml")).unwrap();
    let refused = home.run(&["config", "show"]).failed(4);
    assert!(
        refused
            .contains("callsheet.toml: the configuration cannot be read: it is larger than 16 MiB"),
        "{refused}"
    );
    assert!(
        refused.contains("hint: make it a readable text file"),
        "{refused}"
    );
    let at_the_start = home.run(&["serve"]).failed(4);
    assert!(
        at_the_start.contains("it is larger than 16 MiB"),
        "{at_the_start}"
    );
    let changed = home.run(&["remove", "notes"]);
    assert!(
        changed.code != Some(0) && changed.err.contains("it is larger than 16 MiB"),
        "{changed:?}"
    );
    until("the daemon refuses it, too", || {
        String::from_utf8_lossy(&daemon.get("/api/v1/findings").1)
            .contains("it is larger than 16 MiB")
    });
    assert_eq!(daemon.get("/healthz").0, 200);
}
