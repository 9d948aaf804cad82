//! Search in a view: which tools a text finds, in which order, and why.
#![allow(clippy::unwrap_used, reason = "a helper that panics fails the test that called it")]

use callsheet::catalog::{Catalog, Field, Hit, Inputs, Standing, View, ViewQuery, build};
use offers::{alias, enabled, offer, preferences, put, standing, tool};

#[path = "support/offers.rs"]
mod offers;

fn hits(catalog: &Catalog, text: &str) -> Vec<Hit> {
    View::select(catalog, &ViewQuery::default()).rank(text, 10)
}

/// The identities of the tools found, best first.
fn found(catalog: &Catalog, text: &str) -> Vec<String> {
    hits(catalog, text).iter().map(|hit| hit.tool.id.to_string()).collect()
}

fn office() -> Inputs {
    let mut inputs = Inputs::default();
    let files = [
        tool("read_file").about("Reads one file and gives its text"),
        tool("removeFile").about("Takes a file away").tag("danger"),
        tool("listFolder").about("Names what is in a folder").category("browsing"),
        tool("old_read").about("Reads a file as we did before").off(),
        tool("debug_read").about("Reads the file table").internal(),
    ];
    put(&mut inputs, offer("files", &files));
    put(&mut inputs, offer("mail", &[tool("send").about("Sends a letter"), tool("read").about("Opens a letter")]));
    put(&mut inputs, standing(offer("lost", &[tool("read_lost_file")]), Standing::Withdrawn("down".into())));
    put(&mut inputs, standing(offer("stranger", &[tool("read_any_file")]), Standing::Hidden("pending".into())));
    inputs
}

#[test]
fn words_are_found_in_every_spelling_and_the_better_fit_comes_first() {
    let catalog = build(&office());
    for text in ["read file", "readFile", "read_file", "READ files!", "file\u{0}read"] {
        assert_eq!(found(&catalog, text)[0], "files/read_file", "{text}");
    }
    assert_eq!(found(&catalog, "remove file")[0], "files/removeFile");
    assert_eq!(found(&catalog, "removefile"), ["files/removeFile"]);
    assert_eq!(found(&catalog, "danger"), ["files/removeFile"]);
    assert_eq!(found(&catalog, "browsing"), ["files/listFolder"]);
    assert_eq!(found(&catalog, "letter"), ["mail/read", "mail/send"]);
    assert!(found(&catalog, "submarine").is_empty());
    assert!(found(&catalog, " -_.\u{0}\u{202e}").is_empty());
}

#[test]
fn what_no_list_has_is_not_found() {
    let catalog = build(&office());
    let all: Vec<_> =
        ["read", "file", "lost", "any", "table", "before"].iter().flat_map(|w| found(&catalog, w)).collect();
    for gone in ["files/old_read", "files/debug_read", "lost/read_lost_file", "stranger/read_any_file"] {
        assert!(!all.iter().any(|id| id == gone), "{gone}");
    }
    let disabled = ViewQuery { include_disabled: true, ..ViewQuery::default() };
    let hits = View::select(&catalog, &disabled).rank("read as before", 1);
    assert_eq!(hits[0].tool.id.to_string(), "files/old_read");
}

#[test]
fn a_hit_tells_where_its_words_were() {
    let catalog = build(&office());
    let hit = &hits(&catalog, "remove danger")[0];
    assert_eq!(hit.fields.iter().collect::<Vec<_>>(), [Field::Name, Field::Tag]);
    assert!(hit.score > 0.0);
}

#[test]
fn a_scope_is_searched_by_its_own_names_and_settings() {
    let mut inputs = office();
    inputs.preferences = preferences(&[
        ("chat:7", "tool:mail/send", alias("post_office")),
        ("chat:7", "tool:files/read_file", enabled(false)),
    ]);
    let catalog = build(&inputs);
    let chat = ViewQuery { chat: Some("7".into()), ..ViewQuery::default() };
    let view = View::select(&catalog, &chat);
    let hits = view.rank("office", 10);
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].tool.name.as_str(), "post_office");
    assert!(found(&catalog, "office").is_empty());
    assert!(view.rank("reads one file", 10).iter().all(|hit| &*hit.tool.id.tool != "read_file"));
}
