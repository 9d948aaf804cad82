//! Pins, as an operator meets them who changes the entry of a scenario.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::command::{Home, Running, json, until};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");

/// A program with this variable, whose new tools are held.
fn config(variable: &str) -> String {
    format!(
        "server.listen = \"127.0.0.1:0\"\npins.default = \"hold\"\n[[scenarios]]\nname = \"child\"\n\
         command = \"./server.sh\"\ncwd = \".\"\nenv = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\", KEY = \"{variable}\" }}\n"
    )
}

/// The tools that are listed.
fn tools(daemon: &Running) -> Vec<String> {
    let list = json(&String::from_utf8(daemon.get("/api/v1/tools").1).unwrap());
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["original_name"].as_str().unwrap().to_owned())
        .collect()
}

/// How many tools are held.
fn held(daemon: &Running) -> usize {
    let found = json(&String::from_utf8(daemon.get("/api/v1/findings").1).unwrap());
    let all = found["findings"].as_array().unwrap().iter();
    all.filter(|finding| finding["code"] == "tool-held").count()
}

#[test]
fn tools_of_a_changed_entry_are_accepted_and_later_ones_are_held() {
    let home = Home::new();
    let script = format!("#!/bin/sh\nexec python3 {SERVER} legacy names\n");
    let path = home.write("server.sh", &script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.write("names", "read");
    home.write("callsheet.toml", &config("one"));
    let daemon = home.serve(&[]);
    assert_eq!(tools(&daemon), ["read"]);
    // The program signals each change of its list.
    home.write("names", "read write");
    until("the new tool is held", || held(&daemon) == 1);
    assert_eq!(tools(&daemon), ["read"]);

    home.write("callsheet.toml", &config("another"));
    until("the tools of the changed entry are accepted", || {
        tools(&daemon) == ["read", "write"]
    });
    assert_eq!(held(&daemon), 0);

    home.write("names", "read write wipe");
    until("the next new tool is held", || held(&daemon) == 1);
    assert_eq!(tools(&daemon), ["read", "write"]);
}
