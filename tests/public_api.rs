//! The public surface, item by item, as it was last agreed on: `tests/public_api.txt`. A change of
//! it is a decision, so it shows in a review. `CALLSHEET_BLESS=1 cargo test --test public_api`
//! writes the file anew.
//!
//! It is read from the source: every `pub` item (the compiler warns of those that nobody outside
//! can reach), public fields and the variants of public enums.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/public_api.txt");

#[test]
fn the_public_surface_is_the_agreed_one() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut surface = String::new();
    for path in rust_files(&src) {
        // The command line is for people; what a program may use of it is `run` alone.
        let module = module_of(path.strip_prefix(&src).unwrap());
        if module != "cli" && module.starts_with("cli") {
            continue;
        }
        for item in items(&fs::read_to_string(&path).unwrap()) {
            writeln!(surface, "{module}: {item}").unwrap();
        }
    }
    if std::env::var_os("CALLSHEET_BLESS").is_some() {
        fs::write(GOLDEN, &surface).unwrap();
    }
    let agreed = fs::read_to_string(GOLDEN).unwrap_or_default();
    let mine = lines(&surface);
    let theirs = lines(&agreed);
    let gone: Vec<_> = theirs.iter().filter(|line| !mine.contains(*line)).collect();
    let new: Vec<_> = mine.iter().filter(|line| !theirs.contains(*line)).collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "the public surface changed; if that is meant, run with CALLSHEET_BLESS=1\ngone: {gone:#?}\nnew: {new:#?}"
    );
}

fn lines(text: &str) -> std::collections::BTreeSet<&str> {
    text.lines().collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn module_of(path: &Path) -> String {
    let path = path
        .with_extension("")
        .display()
        .to_string()
        .replace('/', "::");
    path.trim_end_matches("::mod").to_owned()
}

/// The public items of a file before its tests, each on one line without its body.
fn items(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut items = Vec::new();
    let mut lines = text.lines();
    let mut subject = String::new();
    let mut in_enum = false;
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if indent == 0 && !bare.is_empty() && !bare.starts_with(['#', '/', ')']) {
            bare.trim_end_matches(['{', ' ']).clone_into(&mut subject);
            in_enum = bare.starts_with("pub enum ");
        }
        let variant = in_enum && indent == 4 && bare.starts_with(|c: char| c.is_ascii_uppercase());
        if !variant && !bare.starts_with("pub ") {
            continue;
        }
        let mut item = bare.to_owned();
        // A signature may go over several lines.
        while !variant && !is_complete(&item) {
            let Some(more) = lines.next() else { break };
            write!(item, " {}", more.trim()).unwrap();
        }
        let item = on_one_line(&item);
        let item = item.trim_end_matches(['{', ' ', ',']);
        items.push(if indent == 0 {
            item.to_owned()
        } else {
            format!("{subject} / {item}")
        });
    }
    items
}

/// Whether these lines of an item are all that comes before its body or value.
fn is_complete(item: &str) -> bool {
    let count = |sign: char| item.matches(sign).count();
    item.ends_with(['{', ';', ',', '}']) && count('(') == count(')') && count('[') == count(']')
}

/// The same item as if its line were wide enough.
fn on_one_line(item: &str) -> String {
    [
        ("( ", "("),
        (", )", ")"),
        (" )", ")"),
        ("[ ", "["),
        (", ]", "]"),
        (" ]", "]"),
    ]
    .iter()
    .fold(item.to_owned(), |item, (wrapped, joined)| {
        item.replace(wrapped, joined)
    })
}
