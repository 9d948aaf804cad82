//! Arguments against schemas: the first line is a schema, the rest the arguments.
//!
//! Whatever both say, the check ends in bounded time and memory, and its answer is short.

#![no_main]

#[path = "../../tests/support/allocated.rs"]
mod allocated;

use callsheet::calls::validate::{ArgumentVerdict, MOST_VIOLATIONS, check};
use callsheet::model::JsonText;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: allocated::Counted = allocated::Counted;

/// Bytes in use at once, at most: patterns, remembered pairs and errors are bounded by themselves.
const MEMORY: usize = 128 << 20;
/// Bytes of all messages and pointers together, at most.
const ANSWER: usize = 20_000;

fuzz_target!(|text: &str| {
    let Some((schema, arguments)) = text.split_once('\n') else {
        return;
    };
    let (Ok(schema), Ok(arguments)) = (JsonText::parse(schema), JsonText::parse(arguments)) else {
        return;
    };
    let (verdict, took) = allocated::took(|| check(&schema, &arguments));
    assert!(took.peak <= MEMORY, "{} bytes at once: {text}", took.peak);
    assert!(
        took.total <= 16 * MEMORY,
        "{} bytes in all: {text}",
        took.total
    );
    if let ArgumentVerdict::Unfit(violations, _) = verdict {
        assert!(
            (1..=MOST_VIOLATIONS).contains(&violations.len()),
            "{violations:?}"
        );
        let bytes: usize = violations
            .iter()
            .map(|one| one.pointer.len() + one.message.len())
            .sum();
        assert!(bytes <= ANSWER, "{bytes} bytes of violations");
    }
});
