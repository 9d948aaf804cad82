//! `callsheet search`: what fits a text, as a table and as JSON.

use crate::support::command::{self, Home, Running, Scenario, json, office, rows, run, tool};

fn ask(home: &Home, daemon: &Running, args: &[&str]) -> command::Ran {
    home.run(&[&["search"], args, &["--url", &daemon.url]].concat())
}

fn names(answer: &str) -> Vec<String> {
    let answer = json(answer);
    answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_fits_best_comes_first() {
    let (home, daemon, _scenarios) = office();
    let out = ask(&home, &daemon, &["sends", "a", "letter"]).ok();
    let table = rows(&out);
    assert_eq!(
        table[0],
        ["TOOL", "SCENARIO", "FOUND IN", "NOTE", "DESCRIPTION"]
    );
    assert_eq!(
        table[1],
        [
            "send_mail",
            "mail",
            "name, description, tag",
            "approval",
            "Sends a letter"
        ]
    );
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
    assert_eq!(
        names(&ask(&home, &daemon, &["--typed", "send_m", "--json"]).ok()),
        ["send_mail"]
    );
    assert_eq!(
        names(&ask(&home, &daemon, &["--typed", "snd_mali", "--json"]).ok()),
        Vec::<String>::new()
    );
    assert_eq!(
        names(&ask(&home, &daemon, &["--typed", "send_mali", "--json"]).ok()),
        ["send_mail"]
    );
    assert_eq!(
        ask(&home, &daemon, &["submarine"]).ok(),
        "no tool has any of these words\n"
    );
    assert_eq!(home.run(&["search"]).code, Some(2));
}

#[test]
fn in_a_pipe_each_result_is_one_line_with_the_whole_text() {
    let about = format!(
        "Counts sheep {} until morning",
        "and more sheep ".repeat(60)
    );
    let text = format!("{about}\nAnd this is on another line.");
    let tools = vec![
        tool("count_sheep", &text, "night"),
        tool("count_goats", "Counts goats, not sheep", "night"),
    ];
    let farm = Scenario::start("farm", tools);
    let home = Home::naming(&[("farm", &farm.url)]);
    let daemon = home.serve(&[]);
    let out = ask(&home, &daemon, &["counts", "sheep"]).ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    let begins = |column: &str| lines[0].find(column).unwrap();
    for line in &lines[1..] {
        assert!(
            line.starts_with("count_") && line[begins("SCENARIO")..].starts_with("farm "),
            "{out}"
        );
        assert!(
            line[begins("DESCRIPTION")..].starts_with("Counts "),
            "{out}"
        );
    }
    assert!(
        lines.iter().any(|line| line.ends_with(&about)),
        "nothing is cut: {out}"
    );
    let narrow = run(home
        .command(&["search", "sheep", "--url", &daemon.url])
        .env("COLUMNS", "80"))
    .ok();
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80),
        "{narrow}"
    );
}
