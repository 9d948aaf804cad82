//! Generated manifests: 20 tools of about 1,050 bytes each, like those that real scenarios of the
//! Tool Discovery Protocol serve. No two tools share their texts, so that they do not compress
//! better than real ones.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Tools of each manifest.
pub(crate) const TOOLS: usize = 20;

const WORDS: [&str; 64] = [
    "the", "a", "of", "for", "with", "file", "run", "result", "list", "each", "name", "from",
    "that", "path", "state", "and", "to", "is", "in", "task", "check", "report", "branch", "build",
    "error", "user", "step", "value", "remote", "local", "before", "after", "when", "not", "are",
    "more", "limit", "search", "query", "index", "table", "page", "image", "test", "suite",
    "browser", "deploy", "server", "process", "memory", "metric", "log", "event", "agent",
    "profile", "session", "start", "stop", "pause", "open", "close", "given", "optional",
    "default",
];

/// The name of scenario number `at`.
pub(crate) fn name(at: usize) -> String {
    format!("scenario-{at:04}")
}

/// The manifest of scenario number `at`, changed `edition` times.
pub(crate) fn manifest(at: usize, edition: u64) -> String {
    small(at, edition, TOOLS)
}

/// The same with so many tools.
pub(crate) fn small(at: usize, edition: u64, tools: usize) -> String {
    written(
        at,
        edition,
        &(0..tools)
            .map(|tool| one(at, tool, edition))
            .collect::<Vec<_>>(),
        "2026-01-02T03:04:05Z",
    )
}

/// The same manifest, as servers write it whose maps have no order: its tools in the order of
/// `turn`, with the time of now.
pub(crate) fn reordered(at: usize, edition: u64, turn: usize) -> String {
    let mut tools: Vec<String> = (0..TOOLS).map(|tool| one(at, tool, edition)).collect();
    tools.rotate_left(turn % TOOLS);
    written(
        at,
        edition,
        &tools,
        &format!("2026-01-02T04:{:02}:{:02}Z", turn / 60 % 60, turn % 60),
    )
}

fn written(at: usize, edition: u64, tools: &[String], generated_at: &str) -> String {
    let categories: Vec<String> = (0..4)
        .map(|id| {
            format!(
                r#"{{"id":"group_{id}","name":"Group {id}","description":"Tools of kind {id}","display_order":{id}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"protocol_version":"1.0","scenario":{{"name":"{}","version":"1.4.{edition}","description":"Generated scenario number {at}"}},"tools":[{}],"categories":[{}],"generated_at":"{generated_at}"}}"#,
        name(at),
        tools.join(","),
        categories.join(","),
    )
}

/// The name of a tool.
pub(crate) fn tool(at: usize, tool: usize) -> String {
    format!("work_{at:04}_{tool:02}")
}

/// What a tool says of itself.
pub(crate) fn description(at: usize, tool: usize, edition: u64) -> String {
    prose(&format!("{at} {tool} {edition} description"), 30)
}

fn one(at: usize, tool: usize, edition: u64) -> String {
    let says = |part: &str, count| prose(&format!("{at} {tool} {edition} {part}"), count);
    let mut properties = String::new();
    for (index, kind) in ["string", "integer", "boolean", "string"]
        .into_iter()
        .enumerate()
    {
        let comma = if index > 0 { "," } else { "" };
        let words = says(&format!("argument {index}"), 11);
        // Writing to a text cannot fail.
        let _ = write!(
            properties,
            r#"{comma}"argument_{index}":{{"type":"{kind}","description":"{words}"}}"#
        );
    }
    format!(
        r#"{{"name":"{}","description":"{}","category":"group_{}","parameters":{{"type":"object","properties":{{{properties}}},"required":["argument_0","argument_1"]}},"metadata":{{"enabled_by_default":true,"requires_approval":false,"timeout_seconds":60,"rate_limit_per_minute":30,"cost_estimate":"low","long_running":false,"idempotent":true,"tags":["generated","step-{tool}"]}}}}"#,
        self::tool(at, tool),
        description(at, tool, edition),
        tool % 4
    )
}

/// The same words for the same seed.
fn prose(seed: &str, count: u64) -> String {
    let word = |at| {
        let drawn = xxh3_64_with_seed(seed.as_bytes(), at) % WORDS.len() as u64;
        usize::try_from(drawn).map_or("", |drawn| WORDS[drawn])
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}
