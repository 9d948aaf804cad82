//! `[[definitions]]`: what a wrong one gets, and what a running daemon makes of another one.

use crate::support::command::until;
use crate::support::config::Machine;
use crate::support::config_file::{Following, replace};

/// An entry with this schema, after these lines.
fn entry(lines: &str, properties: &str) -> String {
    format!(
        "[[definitions]]\n{lines}schema = '{{\"type\": \"object\", \"properties\": {{{properties}}}}}'\n"
    )
}

const RATE: &str = r#""_tool": {"type": "string", "const": "rate"}, "text": {"type": "string"}, "_output": {"type": "object"}"#;

/// The first problem of a file, without its place and its hint.
fn problem(file: &str) -> String {
    let error = Machine::new().file(file).error();
    let line = error.lines().next().unwrap();
    line.split_once(": ").unwrap().1.to_owned()
}

#[test]
fn a_schema_that_is_no_definition_is_refused_with_its_place_and_the_next_step() {
    let no_output = r#""_tool": {"type": "string", "const": "rate"}"#;
    let no_tool = r#""_output": {"type": "object"}"#;
    for (file, expected) in [
        (
            entry("", no_output),
            "definitions[0].schema: `_output` is missing",
        ),
        (
            entry("", no_tool),
            "definitions[0].schema: `_tool` is missing",
        ),
        (
            entry("name = \"other\"\n", RATE),
            "definitions[0].schema: `_tool` is `rate`, but the definition is called `other`",
        ),
        (
            "[[definitions]]\nname = \"rate\"\n".to_owned(),
            "definitions[0]: this definition has no schema",
        ),
        (
            "[[definitions]]\nschema = \"{\"\n".to_owned(),
            "definitions[0].schema: the schema is no JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            entry("", RATE) + &entry("", RATE),
            "definitions[1]: `rate` is defined already",
        ),
        (
            entry("file = \"x.json\"\n", RATE),
            "definitions[0].file: this definition has a `schema` too",
        ),
        (
            entry("activity = \"\"\n", RATE),
            "definitions[0].activity: the activity is empty",
        ),
        (
            entry("activity = [{ profile = \"dev\" }]\n", RATE),
            "definitions[0].activity[0].activity: this activity names no tool",
        ),
        (
            entry("activity = [{ activity = \"a/b\" }]\n", RATE),
            "definitions[0].activity[0].profile: this activity has no profile",
        ),
        (
            entry("activity = 7\n", RATE),
            "definitions[0].activity: expected a text or a list of tables, found the number 7",
        ),
        (
            format!(
                "[[profiles]]\nname = \"dev\"\n{}",
                entry(
                    "activity = [{ profile = \"prod\", activity = \"a/b\" }]\n",
                    RATE
                )
            ),
            "definitions[0].activity[0].profile: no profile is called \"prod\"",
        ),
        (
            format!(
                "{}[[scenarios]]\nname = \"definitions\"\nurl = \"http://127.0.0.1:1\"\n",
                entry("", RATE)
            ),
            "definitions: a scenario is called `definitions`, which is the name of the scenario that these become",
        ),
    ] {
        assert_eq!(problem(&file), expected);
    }
    let error = Machine::new().file(&entry("", no_output)).error();
    assert!(
        error.contains("hint: write `\"_output\": {\"type\": \"object\""),
        "{error}"
    );
}

#[test]
fn a_schema_in_a_file_counts_from_the_folder_of_the_configuration() {
    let machine = Machine::new().file("[[definitions]]\nfile = \"tools/rate.json\"\n");
    let missing = machine.error();
    assert!(
        missing.contains("definitions[0].file: ") && missing.contains("rate.json cannot be read: "),
        "{missing}"
    );
    machine.write(
        "work/tools/rate.json",
        &format!("{{\"type\": \"object\", \"properties\": {{{RATE}}}}}"),
    );
    assert_eq!(machine.config().definitions[0].name(), "rate");
    assert_eq!(
        machine.shown("definitions[0].file").0,
        "\"tools/rate.json\""
    );
}

#[test]
fn a_running_daemon_takes_another_definition_with_the_next_revision() {
    let following = Following::start("");
    replace(&following.path, &entry("", RATE));
    following.until_tools(&["rate"]);
    let list = following.json("/api/v1/tools");
    assert_eq!(list["tools"][0]["_activity"], "");
    assert_eq!(list["tools"][0]["scenario"], "definitions");
    assert_eq!(following.health("definitions")["protocol"], "definitions");
    let two = entry("", RATE) + &entry("activity = \"gone/sort\"\n", &RATE.replace("rate", "sort"));
    replace(&following.path, &two);
    following.until_tools(&["rate", "sort"]);
    until("the finding about its activity", || {
        following.findings("activity-missing").len() == 1
    });
    // A wrong one changes nothing.
    replace(&following.path, &entry("name = \"other\"\n", RATE));
    following.until_refused(true);
    assert_eq!(following.tools(), ["rate", "sort"]);
    replace(&following.path, "");
    following.until_tools(&[]);
}
