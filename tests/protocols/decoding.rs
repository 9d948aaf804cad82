//! Manifests in every spelling become one model, and a bad part costs no more than itself.

use std::fs;
use std::path::{Path, PathBuf};

use callsheet::model::{AcceptedVersions, Finding, FindingCode};
use callsheet::protocols::ListError;
use callsheet::protocols::tool_discovery::{Decoded, decode};
use callsheet::state::manifest::write;
use serde_json::{Value, json};

fn accept() -> AcceptedVersions {
    AcceptedVersions::parse(">=1.0, <2.0").unwrap()
}

fn read(text: impl AsRef<[u8]>) -> Result<Decoded, ListError> {
    decode(text.as_ref(), &accept())
}

fn good(text: impl AsRef<[u8]>) -> Decoded {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

fn fixture(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A manifest in the seed's spelling with this list of tools.
fn with_tools(tools: &Value) -> String {
    json!({"protocol_version": "1.0", "scenario": {"name": "s"}, "tools": tools, "generated_at": "2026-01-01T00:00:00Z"})
        .to_string()
}

fn parameters(tool: &Value) -> String {
    good(with_tools(&json!([tool]))).manifest.tools[0]
        .parameters
        .get()
        .to_owned()
}

fn codes(findings: &[Finding]) -> Vec<FindingCode> {
    findings.iter().map(|finding| finding.code).collect()
}

/// Tools by name and categories by id, since scenarios list them in any order.
fn sorted(mut manifest: Value) -> Value {
    for (list, key) in [("tools", "name"), ("categories", "id")] {
        let items = manifest[list].as_array_mut().unwrap();
        items.sort_by_key(|item| item[key].as_str().unwrap().to_owned());
    }
    manifest
}

const SPELLINGS: [&str; 4] = ["seed", "protojson", "protojson-all-fields", "go-structs"];

#[test]
fn every_spelling_gives_the_same_manifest() {
    let expected = fixture("expected/normalized/recipe-box.json");
    for spelling in SPELLINGS {
        let decoded = good(fixture(&format!(
            "manifests/tool_discovery/{spelling}.json"
        )));
        assert_eq!(decoded.findings, [], "{spelling}");
        assert_eq!(decoded.quarantined, 0, "{spelling}");
        let written = write(&decoded.manifest);
        assert_eq!(value(&written), value(&expected), "{spelling}");
        assert_eq!(
            good(&written).manifest.digest,
            decoded.manifest.digest,
            "{spelling}"
        );
        assert_eq!(
            good(&written).manifest.tools,
            decoded.manifest.tools,
            "{spelling}"
        );
    }
}

#[test]
fn real_manifests_become_their_normalized_form() {
    let corpus = std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    let Ok(folder) = fs::read_dir(corpus.join("vrooli")) else {
        return;
    };
    let mut read = 0;
    for file in folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
    {
        let body = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let decoded = good(&body);
        assert_eq!(decoded.findings, [], "{name}");
        let written = value(&write(&decoded.manifest));
        // A first-generation manifest is in the seed's spelling already, so it must come out as it
        // went in; its neighbour in `normalized` is of a later generation, with more metadata.
        let expected = if name.ends_with(".gen1.json") {
            body
        } else {
            fs::read_to_string(corpus.join("vrooli/normalized").join(name)).unwrap()
        };
        assert_eq!(sorted(written), sorted(value(&expected)), "{name}");
        read += 1;
    }
    assert_eq!(read, 5);
}

#[test]
fn a_malformed_tool_costs_itself_only() {
    let decoded = good(fixture("manifests/tool_discovery/broken-tools.json"));
    let expected = value(&fixture("expected/normalized/half-broken.json"));
    assert_eq!(value(&write(&decoded.manifest)), expected);
    assert_eq!(decoded.quarantined, 16);
    let pointers: Vec<_> = decoded
        .findings
        .iter()
        .filter(|finding| finding.code == FindingCode::ToolQuarantined)
        .map(|finding| finding.pointer.clone().unwrap())
        .collect();
    let expected = [
        "/tools/0/name",
        "/tools/1/name",
        "/tools/2/name",
        "/tools/3/name",
        "/tools/4/parameters",
        "/tools/5/parameters/type",
        "/tools/6/parameters/properties",
        "/tools/7/parameters/required",
        "/tools/8/metadata",
        "/tools/9/metadata/requires_approval",
        "/tools/10/metadata/timeout_seconds",
        "/tools/11/metadata/tags/1",
        "/tools/12/description",
        "/tools/13/category",
        "/tools/14",
        "/tools/15",
    ];
    assert_eq!(pointers, expected);
    let of = |code| {
        decoded
            .findings
            .iter()
            .filter(|finding| finding.code == code)
            .count()
    };
    assert_eq!(of(FindingCode::DuplicateTool), 1);
    assert_eq!(of(FindingCode::CategoryIgnored), 3);
    assert_eq!(of(FindingCode::GeneratedAt), 1);
    let approval = decoded
        .findings
        .iter()
        .find(|finding| finding.tool.as_deref() == Some("bad_approval"))
        .unwrap();
    assert!(
        approval.message.contains("bad_approval") && approval.hint.is_some(),
        "{approval:?}"
    );
}

#[test]
fn what_is_missing_is_filled_in_and_what_is_recoverable_is_put_right() {
    let decoded = good(with_tools(&json!([
        {"name": "bare"},
        {"name": "nulls", "description": null, "category": null, "parameters": null, "metadata": null},
        {"name": "texts", "parameters": {"properties": {}}, "metadata":
            {"requires_approval": "true", "timeout_seconds": "30", "rate_limit_per_minute": 5.0, "tags": null}},
        {"name": "zero", "parameters": {"type": "object", "required": null, "properties": null}, "metadata":
            {"enabled_by_default": true, "timeout_seconds": 0, "rate_limit_per_minute": -1}},
    ])));
    assert_eq!(decoded.findings, []);
    let [bare, nulls, texts, zero] = &decoded.manifest.tools[..] else {
        panic!()
    };
    for tool in [bare, nulls] {
        assert_eq!(
            tool.parameters.get(),
            r#"{"type":"object","properties":{}}"#
        );
        assert_eq!(
            tool.metadata.get(),
            r#"{"enabled_by_default":false,"requires_approval":false}"#
        );
        assert!(
            tool.description.is_empty()
                && tool.category.is_none()
                && !tool.facts.enabled_by_default
        );
    }
    assert!(texts.facts.requires_approval);
    assert_eq!(texts.facts.timeout_seconds, Some(30));
    assert_eq!(texts.facts.rate_limit_per_minute, Some(5));
    assert_eq!(value(texts.metadata.get())["timeout_seconds"], 30);
    assert_eq!(
        texts.parameters.get(),
        r#"{"type":"object","properties":{}}"#
    );
    assert_eq!(zero.facts.timeout_seconds, None);
    assert_eq!(zero.facts.rate_limit_per_minute, None);
    assert_eq!(
        zero.parameters.get(),
        r#"{"type":"object","properties":{}}"#
    );
}

#[test]
fn unknown_members_are_passed_on_and_named_as_the_document_names_things() {
    let seed = r#"{"protocol_version":"1.3","newThing":{"aB":1},"scenario":{"name":"s","mood":"x"},"categories":[{"id":"c","hue":"red"}],
        "tools":[{"name":"t","cost":{"perCall":1.50},"metadata":{"xTra":[null,1e3],"deepLink":{"fooBar":""}}}],"generated_at":"2026-01-01T00:00:00Z"}"#;
    let decoded = good(seed);
    assert_eq!(codes(&decoded.findings), [FindingCode::VersionNewer]);
    let written = write(&decoded.manifest);
    for part in [
        r#""newThing":{"aB":1}"#,
        r#""mood":"x""#,
        r#""hue":"red""#,
        r#""cost":{"perCall":1.50}"#,
        r#""xTra":[null,1e3],"deepLink":{"fooBar":""}"#,
    ] {
        assert!(written.contains(part), "{part} is missing in {written}");
    }
    let protojson = seed
        .replace("protocol_version", "protocolVersion")
        .replace("generated_at", "generatedAt");
    let written = write(&good(protojson).manifest);
    for part in [
        r#""new_thing":{"aB":1}"#,
        r#""x_tra":[null,1e3],"deep_link":{"fooBar":""}"#,
    ] {
        assert!(written.contains(part), "{part} is missing in {written}");
    }
}

#[test]
fn the_seeds_own_values_are_left_as_they_are() {
    // Each of these means "not set" or is a wrapping elsewhere, but not in this spelling.
    let kept = r#"{"type":"object","properties":{"a":{"type":"string","default":"","enum":[],"description":"","format":"","pattern":""},"b":{"default":null},"c":{"type":"object","properties":{},"default":{"stringValue":"x"}},"d":{"additionalProperties":false,"minimum":0,"anyOf":[{"type":"null"}]}},"required":[],"additionalProperties":false}"#;
    assert_eq!(
        parameters(&json!({"name": "t", "parameters": value(kept)})),
        kept
    );
    // Numbers keep their digits, and a blank within a text is none to strip.
    let odd = r#"{"protocol_version":"1.0","scenario":{"name":"s"},"tools":[{"name":"t","parameters":{ "type" : "object",
        "properties":{"n":{"default":12345678901234567890123.10, "enum":null, "description":"a  \" b"}}}}]}"#;
    let parameters = good(odd).manifest.tools[0].parameters.get().to_owned();
    let expected = r#"{"type":"object","properties":{"n":{"default":12345678901234567890123.10,"description":"a  \" b"}}}"#;
    assert_eq!(parameters, expected);
}

#[test]
fn bounds_of_zero_survive_protojson() {
    let text = r#"{"protocolVersion":"1.0","scenario":{"name":"s"},"tools":[{"name":"t","parameters":{"type":"object",
        "properties":{"n":{"type":"integer","minimum":0,"minLength":0,"default":{"nullValue":"NULL_VALUE"}}}}}]}"#;
    let expected = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0,"minLength":0,"default":null}}}"#;
    assert_eq!(good(text).manifest.tools[0].parameters.get(), expected);
}

#[test]
fn go_structs_name_schema_keywords_their_own_way() {
    let tool = json!({"name": "t", "parameters": {"type": "object", "properties": {
        "min_length": {"type": "string", "min_length": 1, "max_length": 9},
        "map": {"type": "object", "additional_properties": {"type": "array", "items": {"min_length": 2}}},
    }, "additional_properties": true}});
    let expected = json!({"type": "object", "properties": {
        "min_length": {"type": "string", "minLength": 1, "maxLength": 9},
        "map": {"type": "object", "additionalProperties": {"type": "array", "items": {"minLength": 2}}},
    }, "additionalProperties": true});
    assert_eq!(value(&parameters(&tool)), expected);
}

#[test]
fn the_order_of_things_and_the_time_stamp_are_no_change() {
    let original = good(fixture("manifests/tool_discovery/protojson.json")).manifest;
    let mut shuffled = value(&fixture("manifests/tool_discovery/protojson.json"));
    for list in ["tools", "categories"] {
        shuffled[list].as_array_mut().unwrap().reverse();
    }
    shuffled["generatedAt"] = json!("2030-01-01T00:00:00Z");
    let pretty = serde_json::to_string_pretty(&shuffled).unwrap();
    assert_eq!(good(pretty).manifest.digest, original.digest);
    shuffled["tools"][0]["description"] = json!("another");
    assert_ne!(good(shuffled.to_string()).manifest.digest, original.digest);
}

#[test]
fn hostile_bodies_are_refused_or_bounded() {
    let crowded = |n: usize| json!({"name": format!("t{n}"), "description": "It reads the records that match a filter."});
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let tool = |parameters: &str| {
        format!(
            r#"{{"protocol_version":"1.0","scenario":{{}},"tools":[{{"name":"t","parameters":{parameters}}},{{"name":"u"}}]}}"#
        )
    };
    for broken in [
        format!(
            r#"{{"type":"object","properties":{{}},"x":{}}}"#,
            deep(500_000)
        ),
        r#"{"type":"object","properties":{},"x":1e999}"#.into(),
        r#"{"type":"object","properties":{},"x":"\ud800"}"#.into(),
    ] {
        let decoded = good(tool(&broken));
        assert_eq!(decoded.quarantined, 1, "{}", &broken[..40]);
        assert_eq!(&*decoded.manifest.tools[0].name, "u");
    }
    for whole in [
        deep(500_000),
        format!(r#"{{"tools":{}}}"#, deep(500_000)),
        format!(r#"{{"scenario":{}}}"#, deep(90)),
    ] {
        assert!(read(whole).is_err());
    }
    let tools: Vec<_> = (0..80_000)
        .map(|n| if n % 2 == 0 { crowded(n) } else { json!({}) })
        .collect();
    let decoded = good(with_tools(&json!(tools)));
    assert_eq!(decoded.manifest.tools.len(), 40_000);
    assert_eq!(decoded.quarantined, 40_000);
    assert_eq!(decoded.findings.len(), 101);
    assert!(decoded.findings[100].message.starts_with("39900 more"));
}

#[test]
fn what_is_no_manifest_is_told_from_a_broken_one() {
    for (body, part) in [
        (&b"<!doctype html><p>hello"[..], "a web page"),
        (b"", "empty"),
        (b"404 page not found", "not JSON"),
        (b"null", "a single JSON value"),
        (
            br#"[{"type":"function","function":{"name":"x"}},null]"#,
            "a bare JSON list",
        ),
        (br#"{"status":"ok"}"#, "neither `tools` nor `scenario`"),
        (br#"{"tools":[{"name":"a"}]}"#, "without `protocol_version`"),
        (b"\xff\xfe\x00", "not JSON"),
    ] {
        let Err(ListError::NotThisProtocol(text)) = read(body) else {
            panic!("{}", body.escape_ascii())
        };
        assert!(
            text.contains(part) && text.len() < 400 && !text.contains('\0'),
            "{text}"
        );
    }
    let whole = fixture("manifests/tool_discovery/seed.json");
    for (body, part) in [
        (&whole.as_bytes()[..whole.len() / 2], "ends in the middle"),
        (br#"{"protocol_version":"1.0","tools":[}"#, "line 1 column"),
        (
            br#"{"protocol_version":"1.0","tools":[1 2]}"#,
            "is not valid JSON",
        ),
        (b"{\"tools\":\"\xff\"}", "not UTF-8 at byte 10"),
        (
            br#"{"protocol_version":"1.0","tools":{}}"#,
            "/tools is an object, not a list",
        ),
        (
            br#"{"protocol_version":"1.0","tools":[],"scenario":"s"}"#,
            "/scenario is a text, not an object",
        ),
        (
            br#"{"protocol_version":"1.0","scenario":{"name":1}}"#,
            "/scenario/name is a number, not a text",
        ),
    ] {
        let Err(ListError::Malformed(text)) = read(body) else {
            panic!("{}", body.escape_ascii())
        };
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn protocol_versions_follow_the_table() {
    use FindingCode::{VersionAssumed, VersionNewer, VersionNonconforming, VersionPrerelease};
    let with = |version: &str| {
        read(format!(
            r#"{{{version}"scenario":{{"name":"s"}},"tools":[],"generated_at":{{"seconds":"1"}}}}"#
        ))
    };
    for (version, kept, expected) in [
        (r#""1.0""#, "1.0", &[][..]),
        (r#""1""#, "1", &[]),
        (r#""1.0.0""#, "1.0.0", &[]),
        (r#""1.0.7""#, "1.0.7", &[]),
        (r#""1.1""#, "1.1", &[VersionNewer]),
        (r#""1.7.3""#, "1.7.3", &[VersionNewer]),
        (
            r#""1.1.0-rc.1""#,
            "1.1.0-rc.1",
            &[VersionPrerelease, VersionNewer],
        ),
        (r#""v1.0""#, "v1.0", &[VersionNonconforming]),
        (r#"" 1.0 ""#, " 1.0 ", &[VersionNonconforming]),
        ("1.0", "1.0", &[VersionNonconforming]),
        ("1", "1", &[VersionNonconforming]),
    ] {
        let decoded = with(&format!(r#""protocol_version":{version},"#))
            .unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!(codes(&decoded.findings), expected, "{version}");
        assert_eq!(&*decoded.manifest.protocol_version, kept);
    }
    let assumed = with("").unwrap();
    assert_eq!(codes(&assumed.findings), [VersionAssumed]);
    assert_eq!(&*assumed.manifest.protocol_version, "1.0");
    for version in [r#""2.0""#, r#""0.9""#, "2.0", r#""2.0.0-alpha""#] {
        let Err(ListError::Incompatible { seen, accepted }) =
            with(&format!(r#""protocol_version":{version},"#))
        else {
            panic!("{version}")
        };
        assert_eq!(seen.as_str(), version.trim_matches('"'));
        assert_eq!(accepted.as_str(), ">=1.0, <2.0");
    }
    for version in [
        r#""""#,
        r#""latest""#,
        r#""1.x""#,
        r#""1.0.0.0""#,
        "null",
        "{}",
        "1.10",
        "1e0",
        "true",
        "-1",
    ] {
        let Err(ListError::VersionUnreadable(text)) =
            with(&format!(r#""protocol_version":{version},"#))
        else {
            panic!("{version}")
        };
        assert!(text.contains(version), "{text}");
    }
}

#[test]
fn time_stamps_come_in_many_ways() {
    let stamp = |at: &str| {
        let decoded = good(format!(
            r#"{{"protocol_version":"1.0","scenario":{{}},"tools":[],"generated_at":{at}}}"#
        ));
        assert_eq!(
            decoded.manifest.generated_at.is_none(),
            codes(&decoded.findings) == [FindingCode::GeneratedAt]
        );
        decoded.manifest.generated_at.map(|at| at.to_string())
    };
    for (written, expected) in [
        (r#""2024-01-15T10:30:00Z""#, "2024-01-15T10:30:00Z"),
        (r#""2024-01-15T10:30:00.5+02:00""#, "2024-01-15T08:30:00.5Z"),
        (
            r#""2024-01-15T10:30:00.123456789012345Z""#,
            "2024-01-15T10:30:00.123456789Z",
        ),
        (
            r#"{"seconds":1,"nanos":500000000}"#,
            "1970-01-01T00:00:01.5Z",
        ),
        (r#"{"seconds":"1705314600"}"#, "2024-01-15T10:30:00Z"),
    ] {
        assert_eq!(stamp(written).as_deref(), Some(expected));
    }
    for bad in [
        "null",
        r#""""#,
        r#""yesterday""#,
        "17",
        r#"{"seconds":1e30}"#,
        r#"{"seconds":99999999999999}"#,
        "[]",
    ] {
        assert_eq!(stamp(bad), None, "{bad}");
    }
}
