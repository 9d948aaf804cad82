//! Views: which bytes, tags and codings an asker gets.

use std::io::Read;

use callsheet::catalog::{Absence, LeftOut};
use callsheet::formats::native::NativeFormat;
use callsheet::formats::openai::OpenAiFormat;
use callsheet::formats::{FORMATS, Format};
use callsheet::model::FindingCode;
use callsheet::views::{Coding, etag, render};

use crate::support::view_tools::{part, then, tool, view};

const SCHEMA: &str =
    r#"{"type":"object","properties":{"path":{"type":"string","description":"Where to look"}}}"#;

fn some_view() -> callsheet::catalog::View {
    let tools = |scenario: &str, count| {
        (0..count)
            .map(|n| tool(scenario, &format!("tool_{n:02}"), SCHEMA))
            .collect()
    };
    view(vec![
        part("a", tools("a", 3), vec![]),
        part("b", vec![], vec![]),
        part("c", tools("c", 40), vec![]),
    ])
}

fn decode(coding: Coding, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        Coding::Identity => plain.extend_from_slice(body),
        Coding::Gzip => drop(
            flate2::read::GzDecoder::new(body)
                .read_to_end(&mut plain)
                .unwrap(),
        ),
        Coding::Brotli => drop(
            brotli::Decompressor::new(body, 4096)
                .read_to_end(&mut plain)
                .unwrap(),
        ),
        Coding::Zstd => plain = zstd::stream::decode_all(body).unwrap(),
    }
    plain
}

#[test]
fn every_coding_holds_the_same_bytes_and_is_stable() {
    for format in FORMATS {
        let body = render(&some_view(), then(), *format).body;
        for coding in Coding::ALL {
            let encoded = coding.encode(&body).unwrap();
            assert_eq!(decode(coding, &encoded), body, "{coding}");
            assert_eq!(coding.encode(&body).unwrap(), encoded, "{coding}");
            assert!(
                coding == Coding::Identity || encoded.len() * 4 < body.len(),
                "{coding}: {}",
                encoded.len()
            );
        }
        // An empty body is a body too.
        for coding in Coding::ALL {
            assert_eq!(
                decode(coding, &coding.encode(b"").unwrap()),
                b"",
                "{coding}"
            );
        }
    }
}

#[test]
fn entity_tags_are_strong_and_differ_by_bytes_and_coding() {
    let tags: Vec<_> = Coding::ALL
        .map(|coding| etag::strong(b"[]", coding))
        .to_vec();
    for (index, tag) in tags.iter().enumerate() {
        let text = tag.to_str().unwrap();
        assert!(
            text.starts_with('"') && text.ends_with('"') && !text.starts_with("W/"),
            "{text}"
        );
        assert!(!tags[..index].contains(tag), "{text}");
        assert_ne!(*tag, etag::strong(b"[ ]", Coding::ALL[index]));
    }
    // A fixed value: the tag of the same bytes is the same in any process, on any machine.
    assert_eq!(tags[3], "\"39347ff402b6c53d831154110e30ac6a\"");
    assert_eq!(
        tags[2].to_str().unwrap(),
        tags[3].to_str().unwrap().trim_end_matches('"').to_owned() + "-gzip\""
    );
}

#[test]
fn tools_stand_by_scenario_then_name_with_single_commas() {
    let rendered = render(&some_view(), then(), &OpenAiFormat);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(list.len(), 43);
    assert_eq!(rendered.tools, 43);
    let one_by_one: Vec<_> = some_view()
        .parts
        .iter()
        .flat_map(|part| part.tools.to_vec())
        .collect();
    let texts: Vec<_> = one_by_one
        .iter()
        .filter_map(|tool| OpenAiFormat.encode(tool).json)
        .collect();
    assert_eq!(rendered.body, [b"[", &texts.join(&b',')[..], b"]"].concat());
}

#[test]
fn what_a_limit_leaves_out_is_told_tool_by_tool() {
    let mut view = some_view();
    let part = &mut view.parts[2];
    let left = part.tools[1..].iter().cloned();
    view.left_out = left
        .map(|tool| LeftOut {
            tool,
            why: Absence::OverCap(4),
        })
        .collect();
    part.tools = part.tools[..1].into();
    part.whole = false;
    let rendered = render(&view, then(), &OpenAiFormat);
    assert_eq!(rendered.tools, 4);
    assert_eq!(rendered.left_out, 39);
    assert_eq!(rendered.findings.len(), 39);
    for (finding, LeftOut { tool, .. }) in rendered.findings.iter().zip(&view.left_out) {
        assert_eq!(finding.code, FindingCode::OverLimit);
        assert_eq!(finding.tool.as_ref(), Some(&tool.id.tool));
        assert_eq!(finding.scenario.as_ref(), Some(&tool.id.scenario));
        assert!(
            finding.message.contains("at most 4 tools"),
            "{}",
            finding.message
        );
    }
}

#[test]
fn a_whole_part_gives_the_same_bytes_alone_and_in_a_list() {
    let view = some_view();
    for format in [&NativeFormat as &dyn Format, &OpenAiFormat] {
        let texts: Vec<_> = view.parts[2]
            .tools
            .iter()
            .filter_map(|tool| format.encode(tool).json)
            .collect();
        let alone = texts.join(&b',');
        let body = render(&view, then(), format).body;
        assert_eq!(texts.len(), 40);
        assert!(
            body.windows(alone.len()).any(|window| window == alone),
            "{}",
            format.id()
        );
    }
}
