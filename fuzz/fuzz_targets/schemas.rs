//! The schemas of tools, made fit for every format that there is.
//!
//! Whatever a schema says, each format gives JSON or leaves the tool out with a reason, and what
//! that takes follows the size of the schema: the work that the steps count, the bytes of what
//! comes out, and the memory in use at once.

#![no_main]

#[path = "../../tests/support/allocated.rs"]
mod allocated;

use std::sync::Arc;

use callsheet::formats::{FORMATS, Format, FormatOptions, schema, with_options};
use callsheet::model::{
    Effective, Execution, Extra, FindingCode, JsonText, Provenance, PublishedName, Tool, ToolId,
    VersionCell, ViewTool,
};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: allocated::Counted = allocated::Counted;

/// Bytes of work for each byte of a schema, and for one of any size; also the bytes that are asked
/// for in all. A value of two bytes takes 72 in memory.
const WORK: (usize, usize) = (36 * 13 * 24, 512 << 10);
/// The same of memory in use at once: what is read, beside it what is written, and the space that
/// their lists grow into.
const MEMORY: (usize, usize) = (36 * 40, 2 << 20);
/// The same of what comes out.
const OUTPUT: (usize, usize) = (36 * 13, 64 << 10);

fuzz_target!(|text: &str| {
    let Ok(parameters) = JsonText::parse(text) else {
        return;
    };
    let bytes = parameters.get().len();
    let within = |(each, free): (usize, usize), took: usize, what: &str| {
        assert!(
            took <= each * bytes + free,
            "{what}: {took} for {bytes} bytes: {text}"
        );
    };
    let tool = tool(parameters);
    for format in formats() {
        if let Ok(applied) = schema::apply(&tool.tool.parameters, format.steps()) {
            within(WORK, applied.work, format.id());
        }
        let (encoded, took) = allocated::took(|| format.encode(&tool));
        within(MEMORY, took.peak, format.id());
        within(WORK, took.total, format.id());
        match encoded.json {
            Some(json) => {
                within(OUTPUT, json.len(), format.id());
                let json = String::from_utf8(json).expect("a list is text");
                JsonText::parse(&json)
                    .unwrap_or_else(|error| panic!("{}: {error}: {json}", format.id()));
            }
            None => {
                let has_finding =
                    |code| encoded.findings.iter().any(|finding| finding.code == code);
                assert!(
                    has_finding(FindingCode::ToolQuarantined) || has_finding(FindingCode::Lossy),
                    "{}: no reason",
                    format.id()
                );
            }
        }
        for finding in &encoded.findings {
            assert!(finding.message.len() <= 4_000, "{finding:?}");
            assert!(
                finding
                    .pointer
                    .as_ref()
                    .is_none_or(|pointer| pointer.len() <= 400),
                "{finding:?}"
            );
        }
    }
});

/// Every format, plain and strict.
fn formats() -> impl Iterator<Item = &'static dyn Format> {
    let options = [false, true].map(|strict| FormatOptions {
        strict,
        cache: false,
        deferring: false,
    });
    FORMATS.iter().flat_map(move |format| {
        options
            .into_iter()
            .filter_map(|options| with_options(*format, options))
    })
}

fn tool(parameters: JsonText) -> ViewTool {
    let tool = Tool {
        name: "try".into(),
        description: "Tries a schema.".into(),
        category: None,
        parameters,
        metadata: JsonText::parse("{}").expect("an object"),
        facts: Arc::default(),
        extra: Extra::default(),
        definition: None,
        version: VersionCell::default(),
    };
    ViewTool {
        id: ToolId::new("fuzzed".parse().expect("a name"), "try"),
        tool: Arc::new(tool),
        name: PublishedName::plain("try"),
        companions: Arc::default(),
        overridden: None,
        execution: Execution::default(),
        effective: Effective {
            enabled: true,
            enabled_source: Provenance::Manifest,
            requires_approval: false,
            approval_source: Provenance::Manifest,
            priority: 0,
            pinned: false,
        },
    }
}
