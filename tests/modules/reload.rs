//! The map of modules follows the file, tokens and times too (S4-67, S4-71, S4-77 of the original's
//! list of features).

#![cfg(unix)]

use serde_json::Value;

use crate::support::command::{Home, Running, until};
use crate::support::module::{Module, tool};

fn get(daemon: &Running, target: &str) -> Value {
    serde_json::from_slice(&daemon.get(target).1).unwrap()
}

fn names(daemon: &Running, query: &str) -> Vec<String> {
    let list = get(daemon, &format!("/api/v1/tools{query}"));
    list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_entry_more_is_a_module_more() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let one = runtime.block_on(Module::start("one", &[tool("one.a", "guest")]));
    let two = runtime.block_on(Module::guarded(
        "two",
        &[tool("two.a", "user")],
        Some("topsecret"),
    ));
    let first = format!("[modules]\none = \"http://{}\"\n", one.address);
    let second = format!("two = \"http://{}\"\n", two.address);
    let home = Home::with(&first);
    let daemon = home.serve(&[]);
    assert_eq!(names(&daemon, ""), ["one_a"]);
    let write = |rest: &str| {
        home.write(
            "callsheet.toml",
            &format!("server.listen = \"127.0.0.1:0\"\n{first}{rest}"),
        )
    };
    write(&second);
    let error = || get(&daemon, "/api/v1/scenarios/two")["last_error"]["message"].to_string();
    until("the new module is asked", || error().contains("401"));
    // It is asked again at once when there is a token to show.
    let profile =
        "[[profiles]]\nname = \"guest\"\nallowed_modules = \"one,two\"\npermission = \"guest\"\n";
    write(&format!(
        "{second}[module_settings]\ntokens = {{ two = \"topsecret\" }}\n{profile}"
    ));
    until("its token is shown", || {
        names(&daemon, "") == ["one_a", "two_a"]
    });
    until("the profile is there", || {
        names(&daemon, "?profile=guest") == ["one_a"]
    });
    write("");
    until("the module is taken back", || {
        names(&daemon, "") == ["one_a"]
    });
}
