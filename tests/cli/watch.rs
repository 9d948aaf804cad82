//! `--watch`: what is printed of changes, until Ctrl-C and over a restart of the daemon.

use crate::support::command::{self, Home, Running, Scenario, json, office, tool};

fn watching(home: &Home, url: &str, args: &[&str], first: &str) -> Running {
    Running::start(
        home.command(&[args, &["--watch", "--url", url]].concat()),
        first,
    )
}

#[test]
fn tools_are_listed_and_then_followed_until_ctrl_c() {
    let (home, daemon, _scenarios) = office();
    let mut watch = watching(&home, &daemon.url, &["tools"], "TOOL");
    assert_eq!(watch.line(|line| line.ends_with(" tools")), "4 tools");
    home.run(&[
        "prefs",
        "set",
        "tool:notes/add_note",
        "--enabled",
        "false",
        "--url",
        &daemon.url,
    ])
    .ok();
    watch.line(|line| line.ends_with("  - add_note  (switched off by global tool:notes/add_note)"));
    home.run(&[
        "prefs",
        "set",
        "tool:mail/send_mail",
        "--approval",
        "skip",
        "--url",
        &daemon.url,
    ])
    .ok();
    let changed = "  ~ send_mail  (requires no approval any more, by global tool:mail/send_mail)";
    watch.line(|line| line.ends_with(changed));
    home.run(&["block", "mail", "--url", &daemon.url]).ok();
    watch.line(|line| line.ends_with("  - send_mail  (an operator blocked it)"));
    watch.line(|line| line.ends_with("  + search  (published as `notes__search` before)"));
    watch.signal("INT");
    assert_eq!(watch.ended(), (Some(0), String::new()));
}

#[test]
fn states_are_followed_with_their_reasons() {
    let (home, daemon, _scenarios) = office();
    let mut all = watching(&home, &daemon.url, &["scenarios"], "SCENARIO");
    all.line(|line| line.starts_with("notes"));
    let mut one = watching(&home, &daemon.url, &["scenarios", "notes"], "       name");
    one.line(|line| line.trim_start().starts_with("restarts"));
    for scenario in ["mail", "notes"] {
        home.run(&["block", scenario, "--url", &daemon.url]).ok();
        all.line(|line| {
            line.ends_with(&format!(
                "  {scenario}: live -> blocked (an operator blocked it)"
            ))
        });
    }
    let first = one.line(|line| line.contains(" -> "));
    assert!(first.contains("  notes: live -> blocked"), "{first}");
    for watch in [&mut all, &mut one] {
        watch.signal("TERM");
        assert_eq!(watch.ended(), (Some(0), String::new()));
    }
}

#[test]
fn a_daemon_that_goes_away_is_waited_for_and_what_was_missed_is_told() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::naming(&[("notes", &notes.url)]);
    let mut daemon = home.serve(&[]);
    let address = daemon.url.strip_prefix("http://").unwrap().to_owned();
    let mut watch = watching(&home, &daemon.url, &["tools"], "TOOL");
    watch.line(|line| line == "1 tool");
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
    // While nobody could be asked, the configuration changed.
    let mail = Scenario::start("mail", vec![tool("send_mail", "Sends a letter", "writing")]);
    let entry =
        |name: &str, url: &str| format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    let config = format!(
        "server.listen = \"{address}\"\n{}{}",
        entry("notes", &notes.url),
        entry("mail", &mail.url)
    );
    home.write("callsheet.toml", &config);
    let again = home.serve(&[]);
    watch.line(|line| line.contains("  + send_mail"));
    home.run(&[
        "prefs",
        "set",
        "tool:notes/add_note",
        "--enabled",
        "false",
        "--url",
        &again.url,
    ])
    .ok();
    watch.line(|line| line.contains("  - add_note  (switched off by"));
    watch.signal("INT");
    let (code, output) = watch.ended();
    assert_eq!(code, Some(0));
    let notes: Vec<_> = output.lines().collect();
    let gone = "note: the daemon is stopping; looking for the daemon again until Ctrl-C";
    assert_eq!(
        notes,
        [gone, "note: the daemon is there again"],
        "said once each"
    );
}

#[test]
fn machines_get_a_line_of_json_for_each_event() {
    let (home, daemon, _scenarios) = office();
    let mut watch = watching(
        &home,
        &daemon.url,
        &["tools", "--json", "--scenario", "notes"],
        "{\"event\":\"snapshot\",",
    );
    home.run(&[
        "prefs",
        "set",
        "tool:mail/send_mail",
        "--enabled",
        "false",
        "--url",
        &daemon.url,
    ])
    .ok();
    home.run(&[
        "prefs",
        "set",
        "tool:notes/add_note",
        "--enabled",
        "false",
        "--url",
        &daemon.url,
    ])
    .ok();
    let event = json(&watch.line(|line| !line.is_empty()));
    assert_eq!(event["event"], "catalog");
    assert_eq!(event["data"]["removed"][0], "add_note");
    assert!(event["id"].as_str().unwrap().contains('.'), "{event}");
    watch.signal("INT");
    assert_eq!(watch.ended().0, Some(0));
}

#[test]
fn what_cannot_be_followed_is_told_like_elsewhere() {
    let home = Home::new();
    let nobody = command::nobody();
    let error = home.run(&["tools", "--watch", "--url", &nobody]).failed(3);
    assert!(
        error.starts_with(&format!("error: no daemon answers at {nobody}: ")),
        "{error}"
    );
    let (home, daemon, _scenarios) = office();
    let error = home
        .run(&["tools", "--watch", "--profile", "", "--url", &daemon.url])
        .failed(1);
    assert!(error.contains("`profile` cannot be"), "{error}");
    let error = home
        .run(&["tools", "--watch", "--format", "openai"])
        .failed(2);
    assert!(error.contains("--watch"), "{error}");
}
