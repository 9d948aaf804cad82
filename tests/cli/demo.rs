//! `callsheet demo`: the first thing a newcomer runs.

use crate::support::command::{Home, Running, nobody, rows};

#[test]
fn once_prints_health_and_the_merged_list_and_ends() {
    let home = Home::new();
    let out = home.run(&["demo", "--once"]).ok();
    let lines = rows(&out);
    // The dashboard comes first.
    assert!(out.starts_with("dashboard: http://127.0.0.1:"), "{out}");
    assert!(
        out.contains("\ncallsheet listens on http://127.0.0.1:"),
        "{out}"
    );
    for (name, source) in [
        ("mail", "static"),
        ("notes", "static"),
        ("units", "static"),
        ("weather", "vrooli"),
    ] {
        let row = lines.iter().find(|row| row.first() == Some(&name)).unwrap();
        assert_eq!(row[1], "live", "{out}");
        assert_eq!(row[8], source, "{out}");
    }
    let tool = |name: &str| {
        lines
            .iter()
            .find(|row| row.first() == Some(&name))
            .unwrap_or_else(|| panic!("{name}: {out}"))
    };
    assert_eq!(tool("mail__search")[1..3], ["mail", "mail"]);
    assert_eq!(tool("notes__search")[1..3], ["notes", "notes"]);
    assert_eq!(tool("add_note")[3], "Writes a note down");
    assert_eq!(tool("delete_all_notes")[3], "off, approval");
    assert!(
        !lines.iter().any(|row| row.first() == Some(&"search")),
        "{out}"
    );
    assert!(out.trim_end().ends_with("7 tools, 1 of them off"), "{out}");
    assert!(
        !home.path(".state/callsheet/state.db").exists(),
        "the demo keeps its state to itself"
    );
    assert!(
        !home.path(".state/callsheet/demo.json").exists(),
        "its address is gone with it"
    );
}

#[test]
fn follows_a_scenario_that_goes_away_and_comes_back_until_ctrl_c() {
    let home = Home::new();
    let mut demo = Running::start(
        home.command(&["demo", "--turn", "3"]),
        "callsheet listens on ",
    );
    assert_eq!(demo.get("/healthz").0, 200);
    for part in [
        " explain notes/search ",
        " notes/search --words lemons",
        " units/convert_length --value 26.2",
    ] {
        let printed = demo.line(|line| line.contains(part));
        let mut words = printed.split_whitespace();
        assert_eq!(
            words.next(),
            Some(env!("CARGO_BIN_EXE_callsheet")),
            "a command that a shell finds: {printed}"
        );
        let ran = home.run(&words.collect::<Vec<_>>());
        assert_eq!(ran.code, Some(0), "{printed}: {ran:?}");
    }
    demo.line(|line| line.starts_with("following changes until Ctrl-C"));
    demo.line(|line| {
        line.contains("weather: live -> stale (the last ")
            && line.contains("connection refused by ")
    });
    demo.line(|line| line.contains("  weather: ") && line.ends_with(" -> live (up to date)"));
    demo.signal("INT");
    assert_eq!(demo.ended(), (Some(0), String::new()));
}

/// Commands do not use a demo by themselves: what they change there is gone with it.
#[test]
fn a_command_without_a_daemon_names_the_demo_that_runs() {
    let home = Home::with("");
    let refused = home.run(&["tools"]).failed(3);
    assert!(!refused.contains("demo"), "{refused}");
    let mut demo = Running::start(home.command(&["demo"]), "callsheet listens on ");
    let refused = home.run(&["tools"]).failed(3);
    assert!(
        refused.contains(&format!(
            "hint: add `--url {}` to reach the demo that runs there",
            demo.url
        )),
        "{refused}"
    );
    let refused = home.run(&["tools", "--url", &nobody()]).failed(3);
    assert!(
        refused.contains(&format!(
            "hint: name `{}` in its place to reach the demo that runs there",
            demo.url
        )),
        "{refused}"
    );
    assert!(
        home.run(&["tools", "--url", &demo.url])
            .ok()
            .contains("notes__search")
    );
    demo.signal("INT");
    assert_eq!(demo.ended().0, Some(0));
    assert!(
        !home.run(&["tools"]).failed(3).contains("demo"),
        "it has ended"
    );
}

#[test]
fn its_tools_can_be_called() {
    let home = Home::new();
    let mut demo = Running::start(home.command(&["demo"]), "callsheet listens on ");
    demo.line(|line| line.contains(" notes/search --words lemons"));
    let call = |args: &[&str]| home.run(&[&["call", "--url", &demo.url], args].concat());
    assert!(
        call(&["notes/search", "--words", "lemons"])
            .ok()
            .contains("two lemons")
    );
    // The MCP server is a program of its own, which the daemon has started.
    let converted = call(&[
        "units/convert_length",
        "--value",
        "2",
        "--from",
        "kilometre",
        "--to",
        "metre",
    ])
    .ok();
    assert!(converted.contains("2000"), "{converted}");
    call(&["add_note", "--text", "three figs"]).ok();
    assert!(
        call(&["notes/search", "--words", "FIGS"])
            .ok()
            .contains("three figs")
    );
    let waits = call(&["send_mail", "--to", "ada@example.org", "--body", "Yes"]);
    assert!(format!("{waits:?}").contains("approval"), "{waits:?}");
    let listed = home.run(&["approvals", "--url", &demo.url]).ok();
    assert!(listed.contains("send_mail"), "{listed}");
    demo.signal("INT");
    assert_eq!(demo.ended().0, Some(0));
}

#[test]
fn an_address_that_is_taken_is_told() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = home
        .run(&["demo", "--once", "--listen", &address])
        .failed(5);
    assert!(
        error.starts_with(&format!("error: cannot listen on {address}: ")),
        "{error}"
    );
    assert!(
        error.contains("\n  hint: another program listens there"),
        "{error}"
    );
}
