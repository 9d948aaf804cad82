//! `callsheet search`: what fits a text, as a table and as JSON.

use crate::support::command::{self, Home, Running, json, office, rows};

fn ask(home: &Home, daemon: &Running, args: &[&str]) -> command::Ran {
    home.run(&[&["search"], args, &["--url", &daemon.url]].concat())
}

fn names(answer: &str) -> Vec<String> {
    let answer = json(answer);
    answer["results"].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_fits_best_comes_first() {
    let (home, daemon, _scenarios) = office();
    let out = ask(&home, &daemon, &["sends", "a", "letter"]).ok();
    let table = rows(&out);
    assert_eq!(table[0], ["TOOL", "SCENARIO", "FOUND IN", "NOTE", "DESCRIPTION"]);
    assert_eq!(table[1], ["send_mail", "mail", "name, description, tag", "approval", "Sends a letter"]);
    let best = ask(&home, &daemon, &["note", "--limit", "1", "--json"]).ok();
    assert_eq!(names(&best), ["add_note"]);
    let only = ask(&home, &daemon, &["search", "--scenario", "notes", "--json"]).ok();
    assert_eq!(names(&only), ["notes__search"]);
    let off = ask(&home, &daemon, &["deletes", "every", "--json"]).ok();
    assert!(!names(&off).contains(&"wipe".to_owned()));
    let off = ask(&home, &daemon, &["deletes", "every", "--all", "--json"]).ok();
    assert_eq!(names(&off)[0], "wipe");
}

#[test]
fn a_name_being_typed_is_found_in_spite_of_a_slip() {
    let (home, daemon, _scenarios) = office();
    assert_eq!(names(&ask(&home, &daemon, &["--typed", "send_m", "--json"]).ok()), ["send_mail"]);
    assert_eq!(names(&ask(&home, &daemon, &["--typed", "snd_mali", "--json"]).ok()), Vec::<String>::new());
    assert_eq!(names(&ask(&home, &daemon, &["--typed", "send_mali", "--json"]).ok()), ["send_mail"]);
    assert_eq!(ask(&home, &daemon, &["submarine"]).ok(), "no tool has any of these words\n");
    assert_eq!(home.run(&["search"]).code, Some(2));
}
