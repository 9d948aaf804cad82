//! The manual pages: one for each command, with each of its options, and readable by those who read
//! such pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::command::Home;

/// Every command that the help names, with those below it: `prefs set`.
fn commands(home: &Home, path: &[&str]) -> Vec<String> {
    let help = home.run(&[path, &["--help"]].concat()).ok();
    let mut found = vec![path.join(" ")];
    let Some((_, listed)) = help.split_once("Commands:\n") else {
        return found;
    };
    for line in listed.lines().take_while(|line| !line.is_empty()) {
        let Some(name) = line
            .strip_prefix("  ")
            .and_then(|rest| rest.split(' ').next())
        else {
            continue;
        };
        if !name.is_empty() && name != "help" {
            found.extend(commands(home, &[path, &[name]].concat()));
        }
    }
    found
}

/// The pages, written to a folder.
fn pages(home: &Home) -> PathBuf {
    let folder = home.path("deep/man1");
    assert_eq!(
        home.run(&["man", "--out", folder.to_str().unwrap()]).ok(),
        ""
    );
    folder
}

#[test]
fn every_command_has_a_page_and_no_page_is_of_anything_else() {
    let home = Home::new();
    let folder = pages(&home);
    let names = |command: &String| {
        format!(
            "{}.1",
            format!("callsheet {command}").trim().replace(' ', "-")
        )
    };
    let wanted: BTreeSet<String> = commands(&home, &[]).iter().map(names).collect();
    let written: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(written, wanted);
    assert!(
        wanted.contains("callsheet-prefs-set.1") && wanted.contains("callsheet-doctor.1"),
        "{wanted:?}"
    );
    assert_eq!(
        home.run(&["man"]).ok().into_bytes(),
        fs::read(folder.join("callsheet.1")).unwrap()
    );
}

#[test]
fn a_page_tells_every_option_that_the_help_tells() {
    let home = Home::new();
    let folder = pages(&home);
    for command in commands(&home, &[])
        .iter()
        .filter(|command| !command.is_empty())
    {
        let path: Vec<&str> = command.split(' ').collect();
        let help = home.run(&[&path[..], &["--help"]].concat()).ok();
        let page = fs::read_to_string(folder.join(format!("callsheet-{}.1", path.join("-"))))
            .unwrap()
            .replace('\\', "");
        for option in help
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("--"))
        {
            let option: String = option
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '-')
                .collect();
            assert!(
                page.contains(&format!("--{option}")),
                "{command}: --{option}"
            );
        }
    }
}

#[test]
fn the_pages_are_read_without_a_warning() {
    let home = Home::new();
    for page in fs::read_dir(pages(&home))
        .unwrap()
        .map(|page| page.unwrap().path())
    {
        // Where there is no reader of manual pages, nobody reads them; CI looks that there is one.
        let Ok(read) = Command::new("groff")
            .args(["-man", "-ww", "-z", "-Tutf8"])
            .arg(&page)
            .output()
        else {
            return;
        };
        assert!(
            read.status.success() && read.stderr.is_empty(),
            "{}: {read:?}",
            page.display()
        );
    }
}

#[test]
fn a_folder_that_cannot_be_is_wrong_usage() {
    let home = Home::new();
    let file = home.write("file", "");
    let error = home
        .run(&["man", "--out", file.join("man1").to_str().unwrap()])
        .failed(2);
    assert!(
        error.starts_with("error: the pages cannot be written to ") && error.contains("\n  hint: "),
        "{error}"
    );
}
