//! The command line as a client of a list that changes: its identity, schemas, the tools as
//! subcommands, and answers that are kept.

use std::fs;

use serde_json::{Value, json};

use crate::support::command::{Home, Ran, Running, Scenario, json as parsed, office, tool};

fn ask(home: &Home, daemon: &Running, args: &[&str]) -> Ran {
    home.run(&[args, &["--url", &daemon.url][..]].concat())
}

/// How often the daemon answered requests of this route with this status.
fn answered(daemon: &Running, route: &str, status: u16) -> usize {
    let metrics = String::from_utf8(daemon.get("/metrics").1).unwrap();
    let of = |line: &&str| {
        line.starts_with("callsheet_http_requests_total{")
            && line.contains(&format!("route=\"{route}\""))
            && line.contains(&format!("status=\"{status}\""))
    };
    metrics.lines().find(of).map_or(0, |line| {
        line.split(' ').next_back().unwrap().parse().unwrap()
    })
}

#[test]
fn the_identity_is_that_of_the_list_it_is_wanted_for() {
    let (home, daemon, _scenarios) = office();
    let identity = parsed(&ask(&home, &daemon, &["identity", "--json"]).ok());
    assert_eq!(identity["tools_count"], 4);
    let printed = ask(&home, &daemon, &["identity"]).ok();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines[0],
        format!("identity      {}", identity["server_id"].as_str().unwrap())
    );
    assert_eq!(
        lines[1],
        format!("with schemas  {}", identity["schema_id"].as_str().unwrap())
    );
    assert_eq!(lines[2..], ["protocol      1.0", "tools         4"]);
    ask(
        &home,
        &daemon,
        &[
            "prefs",
            "set",
            "tool:notes/add_note",
            "--enabled",
            "false",
            "--scope",
            "chat:7",
        ],
    )
    .ok();
    let other = parsed(&ask(&home, &daemon, &["identity", "--chat", "7", "--json"]).ok());
    assert_eq!(other["tools_count"], 3);
    assert_ne!(other["server_id"], identity["server_id"]);
    assert_eq!(
        parsed(&ask(&home, &daemon, &["identity", "--json"]).ok()),
        identity
    );
}

#[test]
fn the_list_may_be_shown_with_its_schemas() {
    let (home, daemon, _scenarios) = office();
    let shown = ask(&home, &daemon, &["list", "--schemas", "--scenario", "mail"]).ok();
    let (first, rest) = shown.split_once("\n  {\n").unwrap();
    assert_eq!(first, "mail__search\n  Finds letters");
    let schema: String = rest.lines().take_while(|line| *line != "  }").collect();
    let schema: Value = serde_json::from_str(&format!("{{{schema}}}")).unwrap();
    assert_eq!(schema["required"], json!(["text"]));
    assert!(shown.ends_with("\n2 tools\n"), "{shown}");
    let both = ask(
        &home,
        &daemon,
        &["tools", "--schemas", "--format", "openai"],
    );
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn the_tools_stand_in_the_help_of_call() {
    let (home, daemon, _scenarios) = office();
    let help = ask(&home, &daemon, &["call", "--help"]).ok();
    let (options, tools) = help.split_once("\nTools:\n").unwrap();
    assert!(
        options.contains("Usage: callsheet call [OPTIONS] <NAME> [FLAGS]..."),
        "{options}"
    );
    let tools: Vec<&str> = tools.lines().map(str::trim).collect();
    assert_eq!(
        tools,
        [
            "mail__search   Finds letters",
            "send_mail      Sends a letter",
            "add_note       Writes a note down",
            "notes__search  Finds notes by their words",
        ]
    );
    let of_one = ask(&home, &daemon, &["call", "-h", "--scenario", "mail"]).ok();
    assert!(
        of_one.contains("send_mail") && !of_one.contains("add_note"),
        "{of_one}"
    );

    let many = (0..60)
        .map(|n| tool(&format!("t_{n}"), &"does something long ".repeat(40), "all"))
        .collect();
    let many = Scenario::start("many", many);
    let home = Home::naming(&[("many", &many.url)]);
    let daemon = home.serve(&[]);
    let help = ask(&home, &daemon, &["call", "--help"]).ok();
    assert!(
        help.ends_with("\n  and 20 more; `callsheet tools` lists all of them\n"),
        "{help}"
    );
    assert!(
        help.lines().all(|line| line.chars().count() <= 100),
        "{help}"
    );

    let without = home
        .run(&["call", "--help", "--url", "http://127.0.0.1:9"])
        .ok();
    assert!(
        without.ends_with(
            "\nTools:\n  listed here while a daemon runs; `callsheet serve` starts one\n"
        ),
        "{without}"
    );
}

#[test]
fn an_unchanged_list_and_tool_are_not_sent_again() {
    let (home, daemon, _scenarios) = office();
    let first = ask(&home, &daemon, &["tools"]).ok();
    assert_eq!(answered(&daemon, "/api/v1/tools", 200), 1);
    assert_eq!(answered(&daemon, "/api/v1/tools", 304), 0);
    for times in 1..=2 {
        assert_eq!(ask(&home, &daemon, &["tools"]).ok(), first);
        assert_eq!(answered(&daemon, "/api/v1/tools", 304), times);
    }
    let one = "/api/v1/tools/{*name}";
    for times in 0..=1 {
        let help = home
            .run(&["call", "--url", &daemon.url, "add_note", "--help"])
            .ok();
        assert!(help.contains("What to work on"), "{help}");
        assert_eq!(answered(&daemon, one, 200), 1);
        assert_eq!(answered(&daemon, one, 304), times);
    }
    // A change is seen at once, and a damaged file is no more than a transfer.
    ask(
        &home,
        &daemon,
        &["prefs", "set", "tool:notes/add_note", "--enabled", "false"],
    )
    .ok();
    let changed = ask(&home, &daemon, &["tools"]).ok();
    assert!(
        !changed.contains("add_note") && changed.contains("3 tools"),
        "{changed}"
    );
    let cache = home.path(".cache/callsheet");
    for file in fs::read_dir(&cache).unwrap() {
        fs::write(file.unwrap().path(), "damaged").unwrap();
    }
    let before = answered(&daemon, "/api/v1/tools", 200);
    assert_eq!(ask(&home, &daemon, &["tools"]).ok(), changed);
    assert_eq!(answered(&daemon, "/api/v1/tools", 200), before + 1);
    fs::remove_dir_all(&cache).unwrap();
    home.write(".cache/callsheet", "a file where the folder would be");
    assert_eq!(ask(&home, &daemon, &["tools"]).ok(), changed);
}
