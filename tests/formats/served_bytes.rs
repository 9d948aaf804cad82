//! The bytes that a daemon serves: the same after a restart, each list under a strong entity tag of
//! its own.

use std::collections::BTreeMap;

use crate::support::command::{Home, Running, office};

/// Every format with each option that it has, and some views.
const TARGETS: &[&str] = &[
    "/api/v1/tools",
    "/api/v1/tools?scenario=notes",
    "/api/v1/tools?include_disabled=true",
    "/api/v1/tools?format=openai",
    "/api/v1/tools?format=openai&scenario=notes",
    "/api/v1/tools?format=openai&max_tools=1",
    "/api/v1/tools?format=openai&strict=true",
    "/api/v1/tools?format=openai-responses",
    "/api/v1/tools?format=openai-responses&strict=true",
    "/api/v1/tools?format=anthropic",
    "/api/v1/tools?format=anthropic&cache=true",
    "/api/v1/tools?format=anthropic&strict=true",
    "/api/v1/tools?format=anthropic&strict=true&cache=true",
    "/api/v1/tools?format=gemini",
    "/api/v1/tools?format=bedrock",
    "/api/v1/tools?format=bedrock&cache=true",
    "/api/v1/tools?format=mistral",
    "/api/v1/tools?format=cohere",
    "/api/v1/tools?format=ollama",
    "/api/v1/tools?format=mcp",
    "/api/v1/tools?format=calls",
];

/// The entity tag and the body of each target.
fn served(running: &Running) -> BTreeMap<&'static str, (String, Vec<u8>)> {
    let of = |target: &&'static str| {
        let (status, head, body) = running.ask(target);
        assert_eq!(status, 200, "{target}");
        let tag = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("etag: ")
                .map(str::to_owned)
        });
        (*target, (tag.expect("an entity tag"), body))
    };
    TARGETS.iter().map(of).collect()
}

#[test]
fn a_restart_changes_no_byte_and_no_tag_of_any_format() {
    let (home, mut running, scenarios): (Home, Running, _) = office();
    let before = served(&running);
    running.signal("TERM");
    assert_eq!(running.ended().0, Some(0));
    let again = home.serve(&[]);
    assert_eq!(served(&again), before);
    drop(scenarios);
}

#[test]
fn every_list_has_a_strong_tag_that_stands_for_its_bytes() {
    let (_home, running, _scenarios) = office();
    let served = served(&running);
    let mut bodies: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for (target, (tag, body)) in &served {
        assert!(
            tag.starts_with('"') && tag.ends_with('"') && tag.len() > 8,
            "{target}: {tag}"
        );
        let known = bodies.entry(tag).or_insert(body);
        assert_eq!(
            *known,
            body.as_slice(),
            "{target} shares its tag with other bytes"
        );
    }
    let tag = |target: &str| &served[target].0;
    assert_ne!(
        tag("/api/v1/tools?format=openai"),
        tag("/api/v1/tools?format=openai&scenario=notes")
    );
    assert_ne!(
        tag("/api/v1/tools?format=anthropic"),
        tag("/api/v1/tools?format=anthropic&cache=true")
    );
    assert_ne!(
        tag("/api/v1/tools?format=openai"),
        tag("/api/v1/tools?format=openai&strict=true")
    );
}
