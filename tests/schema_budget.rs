//! What one schema can cost whoever reads a list: memory and work follow its size, whatever its
//! references, names and lists describe. By counted bytes, so in a program of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use callsheet::catalog::Inputs;
use callsheet::formats::schema::{self, TransformError};
use callsheet::formats::{FORMATS, Format};
use callsheet::lint;
use callsheet::model::ViewTool;
use callsheet::views::render;
use tokio::runtime::Runtime;

use support::allocated::{Counted, Took, took};
use support::format_cases::variants;
use support::offers;
use support::serving::serve_inputs;
use support::view_tools::{part, raw, then, tool, view};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// What one test takes must not show in the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes of memory for each byte of a schema, while it is made fit for a format. A value of two
/// bytes (`1,`) takes 72 once it is read, and up to twice that while its list grows.
const PEAK: usize = 200;
/// Bytes of memory that any schema may take.
const FREE: usize = 1 << 20;
/// Bytes that are asked for in all, for each byte of a schema.
const TOTAL: usize = 500;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many pieces with a comma between two.
fn listed(number: usize, mut piece: impl FnMut(usize) -> String) -> String {
    (0..number).fold(String::new(), |mut text, at| {
        let comma = if at > 0 { "," } else { "" };
        write!(text, "{comma}{}", piece(at)).unwrap();
        text
    })
}

/// Parameters that all refer to a list of values.
fn multiplied(values: usize, references: usize) -> String {
    format!(
        r#"{{"type":"object","$defs":{{"b":{{"enum":[{}]}}}},"properties":{{{}}}}}"#,
        listed(values, |_| "1".into()),
        listed(references, |at| format!(
            r##""p{at}":{{"$ref":"#/$defs/b"}}"##
        )),
    )
}

/// The same by two levels of references.
fn multiplied_twice(values: usize, inner: usize, outer: usize) -> String {
    let objects = |number, target: &str| {
        let named = listed(number, |at| {
            format!(r##""p{at}":{{"$ref":"#/$defs/{target}"}}"##)
        });
        format!(r#"{{"type":"object","properties":{{{named}}}}}"#)
    };
    let values = listed(values, |_| "1".into());
    format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/o"}}}},"$defs":{{"b":{{"enum":[{values}]}},"i":{},"o":{}}}}}"##,
        objects(inner, "b"),
        objects(outer, "i"),
    )
}

/// Schemas of a few kilobytes to the most that a tool may have, of which references, names or lists
/// make more than they seem.
fn hostile() -> Vec<(&'static str, String)> {
    vec![
        ("values by references", multiplied(20_000, 1_000)),
        ("more values by references", multiplied(60_000, 1_000)),
        ("values by two levels", multiplied_twice(60_000, 130, 140)),
        ("a text by levels", text_by_levels()),
        ("a long pointer by levels", pointer_by_levels()),
        ("branches by references", branches_by_references()),
    ]
}

/// Forty levels, each of which refers to the next one twice.
fn text_by_levels() -> String {
    let level = |at: usize| {
        let next = format!(r##"{{"$ref":"#/$defs/l{}"}}"##, at + 1);
        format!(r#""l{at}":{{"description":"A level.","anyOf":[{next},{next}]}}"#)
    };
    let levels = listed(40, level);
    format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/l0"}}}},"$defs":{{{levels},"l40":{{"type":"string"}}}}}}"##
    )
}

/// References to a name of a hundred kilobytes, reached by ways that multiply.
fn pointer_by_levels() -> String {
    let name = "n".repeat(100_000);
    let level = |at: usize| {
        let next = if at == 11 {
            name.clone()
        } else {
            format!("l{}", at + 1)
        };
        let next = format!(r##"{{"$ref":"#/$defs/{next}"}}"##);
        format!(
            r#""l{at}":{{"anyOf":[{}]}}"#,
            if at == 11 {
                next
            } else {
                format!("{next},{next}")
            }
        )
    };
    let levels = listed(12, level);
    format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/l0"}}}},"$defs":{{{levels},"{name}":{{"type":"string"}}}}}}"##
    )
}

/// Alternatives at the root that all take the same large definition over.
fn branches_by_references() -> String {
    let branches = listed(2_000, |_| r##"{"$ref":"#/$defs/b"}"##.into());
    let properties = listed(5_000, |at| format!(r#""p{at}":{{"const":{at}}}"#));
    format!(
        r#"{{"type":"object","properties":{{}},"anyOf":[{branches}],"$defs":{{"b":{{"properties":{{{properties}}}}}}}}}"#
    )
}

fn assert_within(took: Took, bytes: usize, what: &str) {
    assert!(
        took.peak <= FREE + PEAK * bytes,
        "{what}: {took:?} for {bytes} bytes, {} each",
        took.peak / bytes
    );
    assert!(
        took.total <= 4 * FREE + TOTAL * bytes,
        "{what}: {took:?} for {bytes} bytes, {} each",
        took.total / bytes
    );
}

#[test]
fn a_schema_that_multiplies_takes_memory_by_its_size_and_costs_its_own_tool_alone() {
    let _alone = alone();
    for (name, schema) in hostile() {
        let tools = vec![
            tool("scenario", "hostile", &schema),
            tool("scenario", "polite", r#"{"type":"object"}"#),
        ];
        let view = view(vec![part("scenario", tools, Vec::new())]);
        for format in distinct() {
            let (rendered, took) = took(|| render(&view, then(), format));
            let what = format!("{name} in {}", format.id());
            assert_within(took, schema.len(), &what);
            let list = String::from_utf8(rendered.body).unwrap();
            assert!(list.contains("polite"), "{what}");
            // Formats without references, and a root without alternatives, cannot say it.
            let id = format.id();
            let inlines = ["gemini", "ollama", "calls"].contains(&id);
            let folds = name == "branches by references" && !["native", "mcp"].contains(&id);
            assert_eq!(rendered.left_out, usize::from(inlines || folds), "{what}");
            let messages = rendered
                .findings
                .iter()
                .filter(|finding| finding.code.as_str() == "tool-quarantined");
            let messages: Vec<_> = messages.map(|finding| finding.message.as_str()).collect();
            let expected = format!(
                "left out of `{id}`: its schema is too large or too deep once its references are followed"
            );
            assert_eq!(messages, vec![expected; rendered.left_out], "{what}");
        }
    }
}

#[test]
fn a_reader_of_every_format_gets_the_other_tools() {
    let _alone = alone();
    let runtime = Runtime::new().unwrap();
    let tools: Vec<_> = hostile()
        .iter()
        .enumerate()
        .map(|(at, (_, schema))| offers::tool(&format!("hostile_{at}")).taking(schema))
        .chain([offers::tool("polite")])
        .collect();
    let mut inputs = Inputs::default();
    offers::put(&mut inputs, offers::offer("scenario", &tools));
    let server = runtime.block_on(serve_inputs(&inputs));
    let get = |target: &str| runtime.block_on(server.get(target));
    for format in FORMATS {
        let answer = get(&format!("/api/v1/tools?format={}", format.id()));
        assert_eq!(answer.status, 200, "{}", format.id());
        assert!(
            String::from_utf8(answer.body).unwrap().contains("polite"),
            "{}",
            format.id()
        );
    }
    let findings = get("/api/v1/findings?code=tool-quarantined")
        .json()
        .to_string();
    for at in 0..hostile().len() {
        assert!(findings.contains(&format!("hostile_{at}")), "{findings}");
    }
}

/// A schema with so many entries in a list or a map that a step goes through.
type Growing = fn(usize) -> String;

/// Each with the number of entries at which it is as large as a tool may be, or nearly.
fn growing() -> Vec<(&'static str, usize, Growing)> {
    vec![
        ("types", 22_000, |n| {
            object(&format!(
                r#""a":{{"type":[{}]}}"#,
                listed(n, |at| format!(r#""t{at}""#))
            ))
        }),
        ("one type", 22_000, |n| {
            object(&format!(
                r#""a":{{"type":[{}]}}"#,
                listed(n, |_| r#""string""#.into())
            ))
        }),
        ("values", 20_000, |n| {
            object(&format!(
                r#""a":{{"type":["string","null"],"enum":[{}]}}"#,
                listed(n, |at| at.to_string())
            ))
        }),
        ("required", 20_000, |n| {
            format!(r#"{{"type":"object","required":[{}]}}"#, names(0, n))
        }),
        ("required by allOf", 20_000, |n| {
            let parts = [names(0, n / 2), names(n / 4, n / 2)]
                .map(|names| format!(r#"{{"required":[{names}]}}"#));
            object(&format!(r#""a":{{"allOf":[{}]}}"#, parts.join(",")))
        }),
        ("required by branches", 4_000, |n| {
            let branch = |at| format!(r#"{{"required":["r{}"]}}"#, at % (n / 2));
            object(&format!(
                r#""a":{{"properties":{{}},"allOf":[{}]}}"#,
                listed(n, branch)
            ))
        }),
        ("required at the root", 4_000, |n| {
            let branches = listed(n / 2, |at| format!(r#"{{"required":["r{at}"]}}"#));
            format!(
                r#"{{"type":"object","required":[{}],"allOf":[{branches}]}}"#,
                names(0, n)
            )
        }),
        ("properties", 2_000, |n| {
            let properties = listed(n, |at| format!(r#""r{at}":{{"type":"string"}}"#));
            format!(
                r#"{{"type":"object","properties":{{{properties}}},"required":[{}]}}"#,
                names(0, n / 2)
            )
        }),
        ("branches", 200, |n| {
            let properties = |of| listed(20, |at| format!(r#""p{at}":{{"const":{of}}}"#));
            let branch = |of| format!(r#"{{"properties":{{{}}}}}"#, properties(of));
            format!(r#"{{"type":"object","anyOf":[{}]}}"#, listed(n, branch))
        }),
        ("small branches", 1_000, |n| {
            let branch =
                |at| format!(r#"{{"properties":{{"kind":{{"const":{at}}}}},"required":["kind"]}}"#);
            format!(r#"{{"type":"object","oneOf":[{}]}}"#, listed(n, branch))
        }),
        ("unknown keywords", 10_000, |n| {
            object(&format!(
                r#""a":{{{}}}"#,
                listed(n, |at| format!(r#""x-{at}":{at}"#))
            ))
        }),
        ("levels of alternatives", 40, |n| {
            let open = r#"{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":"#;
            let inner = format!(r#"{{"enum":[{}]}}"#, listed(n * 400, |at| at.to_string()));
            object(&format!(
                r#""a":{}{inner}{}"#,
                open.repeat(n / 2),
                "}}]}".repeat(n / 2)
            ))
        }),
        ("levels of types", 40, |n| {
            let open = r#"{"type":["array","null"],"items":"#;
            let inner = format!(
                r#"{{"type":"integer","enum":[{}]}}"#,
                listed(n * 400, |at| at.to_string())
            );
            object(&format!(
                r#""a":{}{inner}{}"#,
                open.repeat(n / 2),
                "}".repeat(n / 2)
            ))
        }),
        ("a pattern", 200_000, |n| {
            object(&format!(r#""a":{{"pattern":"{}"}}"#, "a".repeat(n)))
        }),
        ("patterns", 200, |n| {
            object(&listed(n, |at| {
                format!(r#""a{at}":{{"pattern":"{}("}}"#, "(?=a)".repeat(200))
            }))
        }),
    ]
}

/// An object with these properties.
fn object(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

/// So many names.
fn names(from: usize, number: usize) -> String {
    listed(number, |at| format!(r#""r{}""#, from + at))
}

/// One format for each list of steps.
fn distinct() -> Vec<&'static dyn Format> {
    let mut known = BTreeSet::new();
    let mut formats = variants();
    formats.retain(|format| {
        known.insert(
            format
                .steps()
                .iter()
                .map(|step| step.name())
                .collect::<Vec<_>>(),
        )
    });
    formats
}

#[test]
fn work_grows_with_the_number_of_entries_and_no_faster() {
    let _alone = alone();
    for (name, most, schema) in growing() {
        let half = schema(most / 2);
        let whole = schema(most);
        for format in distinct() {
            let what = format!("{name} in {}", format.id());
            let once = cost(&half, format, &what);
            let twice = cost(&whole, format, &what);
            assert!(
                twice <= once * 22 / 10 + 10_000,
                "{what}: {once} bytes of work, and {twice} for twice the entries"
            );
        }
    }
}

/// The work that the steps count for a schema, after what they really ask for was held against its
/// size.
fn cost(schema: &str, format: &dyn Format, what: &str) -> usize {
    let encoded = tool("scenario", "try", schema);
    let (_, took) = took(|| format.encode(&encoded));
    assert_within(took, schema.len(), what);
    match schema::apply(&raw(schema), format.steps()) {
        Ok(applied) => applied.work,
        // The strict modes have limits of their own.
        Err(TransformError::Unsupported(_)) => 0,
        Err(other) => panic!("{what}: {other}"),
    }
}

/// A tool with a long name at the top of its schema and many flaws below it.
fn deep_pointers() -> ViewTool {
    let flaw = |at: usize| {
        format!(r#""p{at}":{{"type":"strng","required":["ghost"],"anyOf":false,"pattern":"("}}"#)
    };
    let name = "n".repeat(100_000);
    let flawed = listed(2_000, flaw);
    let schema =
        format!(r#"{{"type":"object","properties":{{"{name}":{{"properties":{{{flawed}}}}}}}}}"#);
    tool("scenario", "deep", &schema)
}

#[test]
fn a_long_pointer_is_not_written_for_each_place_within_it() {
    let _alone = alone();
    let tool = deep_pointers();
    let bytes = tool.tool.parameters.get().len();
    for format in variants() {
        let (encoded, used) = took(|| format.encode(&tool));
        assert_within(used, bytes, format.id());
        let pointers = encoded
            .findings
            .iter()
            .filter_map(|finding| finding.pointer.as_deref());
        assert!(
            pointers.clone().all(|pointer| pointer.len() <= 400),
            "{}",
            format.id()
        );
        let messages: usize = encoded
            .findings
            .iter()
            .map(|finding| finding.message.len())
            .sum();
        assert!(messages <= 20_000, "{}: {messages}", format.id());
    }
    let entry = part("scenario", vec![tool], Vec::new()).entry;
    let (findings, used) = took(|| lint::check_manifest(&entry.manifest));
    assert_within(used, bytes, "lint");
    assert!(findings.len() > 100);
    let pointers: usize = findings
        .iter()
        .filter_map(|finding| finding.pointer.as_ref())
        .map(String::len)
        .sum();
    assert!(pointers < 400 * findings.len());
    assert!(
        findings
            .iter()
            .any(|finding| finding.pointer.as_deref() == Some("/tools/0/parameters/properties"))
    );
}

#[test]
fn the_page_of_a_tool_is_not_written_with_every_indent_of_a_deep_schema() {
    let _alone = alone();
    let deep = format!(
        "{}{}{}",
        "[".repeat(120),
        listed(60_000, |_| "1".into()),
        "]".repeat(120)
    );
    let schema = format!(r#"{{"type":"object","default":{deep},"properties":{{}}}}"#);
    let mut inputs = Inputs::default();
    offers::put(
        &mut inputs,
        offers::offer("scenario", &[offers::tool("deep").taking(&schema)]),
    );
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve_inputs(&inputs));
    for page in [
        "tool?id=scenario%2Fdeep&format=native",
        "tool/format?id=scenario%2Fdeep&format=native",
    ] {
        let ask = || runtime.block_on(server.get(&format!("/dashboard/{page}")));
        // What is made once for all pages.
        ask();
        let (answer, took) = took(ask);
        assert_eq!(answer.status, 200);
        assert_within(took, schema.len(), page);
    }
}
