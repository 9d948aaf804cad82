//! What every format of the table must do. A newcomer is picked up from [`FORMATS`] without new test code.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "support/format_cases.rs"]
mod format_cases;
#[path = "support/view_tools.rs"]
mod view_tools;

use std::collections::BTreeSet;
use std::path::Path;

use callsheet::formats::{self, FORMATS, Format};
use callsheet::model::name::is_legal;
use callsheet::views::render;
use serde_json::Value;
use view_tools::{extra, offered, part, raw, then, tool, view};

#[test]
fn ids_of_formats_are_unique_and_find_their_format() {
    let ids: BTreeSet<_> = FORMATS.iter().map(|format| format.id()).collect();
    assert_eq!(ids.len(), FORMATS.len());
    for id in ids {
        assert!(
            !id.is_empty() && id.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-'),
            "{id}"
        );
        assert_eq!(formats::by_id(id).map(Format::id), Some(id));
    }
    assert!(formats::by_id("no such format").is_none());
}

#[test]
fn every_format_has_an_expected_file_for_every_case_and_no_other() {
    let cases: BTreeSet<_> = format_cases::cases().iter().map(|(case, _)| format!("{case}.json")).collect();
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/expected");
    for format in FORMATS {
        let names = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let files: BTreeSet<_> = std::fs::read_dir(expected.join(format.id())).unwrap().map(names).collect();
        assert_eq!(files, cases, "{}", format.id());
    }
}

/// The names of the tools in a list, whatever its shape: the first text called `name` in each tool.
fn names(list: &Value) -> Vec<&str> {
    fn name(tool: &Value) -> Option<&str> {
        let members = tool.as_object()?;
        members.get("name").and_then(Value::as_str).or_else(|| members.values().find_map(name))
    }
    let tools = list.as_array().or_else(|| list.get("tools")?.as_array()).expect("a list of tools");
    tools.iter().map(|tool| name(tool).expect("a name")).collect()
}

#[test]
fn every_list_is_json_with_legal_names_and_nothing_is_lost_silently() {
    for (case, view) in format_cases::cases() {
        for format in FORMATS {
            let rendered = render(&view, then(), *format);
            let list: Value = serde_json::from_slice(&rendered.body).unwrap();
            let names = names(&list);
            assert!(names.iter().all(|name| is_legal(name)), "{case} in {}: {names:?}", format.id());
            assert_eq!(names.len(), rendered.tools, "{case} in {}", format.id());
            assert_eq!(rendered.tools + rendered.left_out, view.len(), "{case} in {}", format.id());
            assert!(rendered.findings.len() >= rendered.left_out, "{case} in {}", format.id());
            assert!(rendered.findings.is_sorted(), "{case} in {}", format.id());
            assert_eq!(render(&view, then(), *format), rendered, "{case} in {} is not stable", format.id());
        }
    }
}

#[test]
fn hostile_tools_never_break_the_list() {
    let deep = |open: &str, close: &str, times: usize| format!("{}{}", open.repeat(times), close.repeat(times));
    let schemas = [
        "{}".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        r#"{"type":"object","type":"string"}"#.to_owned(),
        r#"{"type":"object","properties":[]}"#.to_owned(),
        r#"{"type":"object","properties":{"":{"$ref":""},"/~":{"enum":null}},"required":"all"}"#.to_owned(),
        r#"{"maximum":1e999}"#.to_owned(),
        format!(r#"{{"minimum":{}}}"#, "9".repeat(500)),
        r#"{"description":"\udfff"}"#.to_owned(),
        format!("{}{}{}", r#"{"items":"#.repeat(120), "{}", "}".repeat(120)),
        format!("{}{}{}", r#"{"anyOf":["#.repeat(5_000), "1", "]}".repeat(5_000)),
        deep("[", "]", 100_000),
    ];
    let hostile = schemas.iter().enumerate().map(|(index, schema)| {
        offered(tool("hostile", &format!("tool {index} \u{0}\"\\\u{202e}"), schema), |tool| {
            tool.description = "</script>\u{0}\u{feff}\u{202e}\"".into();
            tool.metadata = raw(r#"{"tags":null}"#);
            tool.extra = extra(&[("", "null"), ("name", "\"other\""), ("function", "{}"), ("a\"b", "[]")]);
        })
    });
    let good = tool("polite", "greet", r#"{"type":"object","properties":{"whom":{"type":"string"}}}"#);
    let view = view(vec![part("hostile", hostile.collect(), Vec::new()), part("polite", vec![good], Vec::new())]);
    for format in FORMATS {
        let rendered = render(&view, then(), *format);
        let list: Value =
            serde_json::from_slice(&rendered.body).unwrap_or_else(|error| panic!("{}: {error}", format.id()));
        let names = names(&list);
        assert!(names.contains(&"greet"), "{}: {names:?}", format.id());
        assert!(names.iter().all(|name| is_legal(name)), "{}: {names:?}", format.id());
        assert_eq!(rendered.tools + rendered.left_out, view.len());
    }
}
