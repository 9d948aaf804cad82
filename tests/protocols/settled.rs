//! A manifest that is put in force takes little memory, and says what it said.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::sync::Arc;

use callsheet::model::{Accept, Manifest};
use callsheet::protocols::tool_discovery::decode;
use serde_json::json;

/// What `scenario` says: two tools that many have, and one that nobody else has.
fn read(scenario: &str) -> Manifest {
    let tool = |name: &str, description: String| {
        json!({
            "name": name, "description": description, "category": "files",
            "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "The file, from the root of the project"}}},
            "metadata": {"enabled_by_default": true, "requires_approval": false, "tags": ["files", "common"], "timeout_seconds": 30}
        })
    };
    let same = "Reads a file and answers its text, and what is known of it besides: size, owner, and when it was written last.";
    let own = format!(
        "What {scenario} does with a file nobody else does, so that these words stand in its own manifest alone."
    );
    let manifest = json!({
        "protocol_version": "1.0",
        "scenario": {"name": scenario, "version": "1", "description": "Offers tools"},
        "tools": [tool("read", same.to_owned()), tool("read_again", same.to_owned()), tool("own", own)],
        "categories": [{"id": "files", "name": "Files", "description": "What has to do with files"}],
        "generated_at": "2026-01-15T10:30:00Z"
    });
    decode(manifest.to_string().as_bytes(), &Accept::default()).unwrap().manifest
}

fn place(text: &str) -> *const u8 {
    text.as_ptr()
}

#[test]
fn what_it_says_stays_the_same() {
    for scenario in ["settled-a", "settled-b", "settled-c"] {
        let (plain, settled) = (read(scenario), read(scenario).settled());
        assert_eq!(format!("{plain:#?}"), format!("{settled:#?}"));
    }
}

#[test]
fn what_others_say_too_is_kept_once_and_its_own_words_by_itself() {
    let [_first, second, third] = ["common-a", "common-b", "common-c"].map(|name| read(name).settled());
    for (second, third) in second.tools.iter().zip(&third.tools).filter(|(tool, _)| &*tool.name != "own") {
        assert_eq!(place(&second.description), place(&third.description));
        assert_eq!(place(second.parameters.get()), place(third.parameters.get()));
        assert_eq!(place(second.metadata.get()), place(third.metadata.get()));
        assert!(Arc::ptr_eq(&second.facts, &third.facts));
    }
    assert!(Arc::ptr_eq(&second.categories, &third.categories));
    let own = |manifest: &Manifest| {
        manifest.tools.iter().find(|tool| &*tool.name == "own").map(|tool| place(&tool.description))
    };
    assert_ne!(own(&second), own(&third));
    let [read, again] = ["read", "read_again"].map(|name| {
        let tool = second.tools.iter().find(|tool| &*tool.name == name).unwrap();
        place(&tool.description)
    });
    assert_eq!(read, again, "twice in one manifest is once too");
}

#[test]
fn a_changed_manifest_goes_on_with_the_names_that_are_known() {
    let before = read("named").settled();
    let mut after = read("named").settled();
    assert!(!Arc::ptr_eq(&before.tools[0].name, &after.tools[0].name));
    after.keep_names_of(&before);
    let pairs = before.tools.iter().zip(&after.tools);
    pairs.for_each(|(before, after)| assert!(Arc::ptr_eq(&before.name, &after.name)));
}
