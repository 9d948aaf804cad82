//! What a provider got wrong becomes findings, with pointers into the document as it was sent.

use std::fs;
use std::path::Path;
use std::time::Duration;

use callsheet::lint;
use callsheet::lint::serving::{ListResponse, check_list};
use callsheet::model::{AcceptedVersions, Digest, FindingCode, Severity};
use callsheet::protocols::tool_discovery::{Inspected, decode, inspect};
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use serde_json::{Value, json};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/manifests/check")
        .join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn judged(text: &str) -> Inspected {
    inspect(text.as_bytes(), &AcceptedVersions::default())
}

/// Code, tool and pointer of every finding.
fn places_of(inspected: &Inspected) -> Vec<(&str, &str, &str)> {
    let places = inspected.findings.iter().map(|finding| {
        (
            finding.code.as_str(),
            finding.tool.as_deref().unwrap_or_default(),
            finding.pointer.as_deref().unwrap_or_default(),
        )
    });
    places.collect()
}

/// Every pointer leads to something that is there, and every finding has a next step or says that
/// there is none to take.
fn assert_useful(text: &str, inspected: &Inspected) {
    let document: Value = serde_json::from_str(text).unwrap();
    for finding in &inspected.findings {
        let pointer = finding.pointer.as_deref().unwrap();
        assert!(document.pointer(pointer).is_some(), "{finding:?}");
        assert!(
            finding.hint.is_some() || finding.severity() == Severity::Info,
            "{finding:?}"
        );
        assert!(
            !finding.message.ends_with('.') && !finding.message.is_empty(),
            "{finding:?}"
        );
    }
}

/// A manifest with these tools and nothing wrong around them.
fn with_tools(tools: &Value) -> String {
    json!({
        "protocol_version": "1.0",
        "scenario": {"name": "s", "version": "1.0.0", "description": "Says what the test says"},
        "tools": tools,
        "generated_at": "2026-01-01T00:00:00Z"
    })
    .to_string()
}

#[test]
fn nothing_is_found_in_a_clean_manifest() {
    assert_eq!(places_of(&judged(&fixture("clean"))), []);
}

#[test]
fn a_parameter_without_a_type_is_named() {
    let parameters = json!({"type": "object", "properties": {
        "city/town": {"description": "Where"},
        "orders": {"type": "array", "description": "What", "items": {"type": "object", "properties": {
            "id": {"description": "Which"}}}},
    }});
    let inspected = judged(&with_tools(
        &json!([{"name": "t", "description": "Looks things up", "parameters": parameters}]),
    ));
    let untyped = inspected
        .findings
        .iter()
        .filter(|finding| finding.code == FindingCode::SchemaUntyped);
    let messages: Vec<&str> = untyped.map(|finding| &*finding.message).collect();
    let named =
        ["`city/town`", "`orders[].id`"].map(|name| format!("the parameter {name} has no type"));
    assert_eq!(messages, named);
}

/// Code, tool and pointer of what is wrong with the parameters of a tool of `faults`.
const FAULTS_OF_PARAMETERS: &[(&str, &str, &str)] = &[
    (
        "schema-type",
        "open_valve",
        "/tools/0/parameters/properties/angle/type",
    ),
    (
        "schema-untyped",
        "open_valve",
        "/tools/0/parameters/properties/speed",
    ),
    (
        "default-unfit",
        "open_valve",
        "/tools/0/parameters/properties/side/default",
    ),
    (
        "items-missing",
        "open_valve",
        "/tools/0/parameters/properties/ports",
    ),
    (
        "schema-keyword",
        "open_valve",
        "/tools/0/parameters/properties/limit/minimum",
    ),
    (
        "default-unfit",
        "open_valve",
        "/tools/0/parameters/properties/limit/default",
    ),
    (
        "parameter-undescribed",
        "open_valve",
        "/tools/0/parameters/properties/label",
    ),
    (
        "schema-keyword",
        "open_valve",
        "/tools/0/parameters/properties/mode/enum/1",
    ),
    (
        "schema-keyword",
        "open_valve",
        "/tools/0/parameters/properties/when/minLength",
    ),
    (
        "required-unknown",
        "open_valve",
        "/tools/0/parameters/properties/spots/items/required/0",
    ),
    (
        "schema-keyword",
        "open_valve",
        "/tools/0/parameters/properties/shape",
    ),
    (
        "schema-type",
        "open_valve",
        "/tools/0/parameters/properties/either/anyOf/1/type",
    ),
    (
        "required-unknown",
        "open_valve",
        "/tools/0/parameters/required/1",
    ),
];

/// The same of the operations that tools of `faults` start.
const FAULTS_OF_OPERATIONS: &[(&str, &str, &str)] = &[
    (
        "async-tool-missing",
        "run_pump",
        "/tools/5/metadata/async_behavior/status_polling/status_tool",
    ),
    (
        "async-arguments",
        "run_pump",
        "/tools/5/metadata/async_behavior/cancellation/cancel_tool_id_param",
    ),
    (
        "async-arguments",
        "drain_tank",
        "/tools/6/metadata/async_behavior/status_polling/status_tool",
    ),
    (
        "async-id-type",
        "drain_tank",
        "/tools/6/metadata/async_behavior/status_polling/status_tool_id_param",
    ),
    (
        "async-incomplete",
        "fill_tank",
        "/tools/7/metadata/async_behavior/status_polling",
    ),
    (
        "async-incomplete",
        "fill_tank",
        "/tools/7/metadata/async_behavior/status_polling",
    ),
    (
        "async-incomplete",
        "fill_tank",
        "/tools/7/metadata/async_behavior",
    ),
    (
        "async-incomplete",
        "heat_tank",
        "/tools/8/metadata/async_behavior",
    ),
    (
        "async-incomplete",
        "heat_tank",
        "/tools/8/metadata/async_behavior/completion_conditions",
    ),
    (
        "async-incomplete",
        "heat_tank",
        "/tools/8/metadata/async_behavior/completion_conditions",
    ),
    (
        "async-incomplete",
        "heat_tank",
        "/tools/8/metadata/async_behavior/cancellation",
    ),
];

#[test]
fn everything_that_is_wrong_is_found_where_it_stands() {
    let text = fixture("faults");
    let inspected = judged(&text);
    let long = "x".repeat(70);
    let before: &[(&str, &str, &str)] = &[
        ("version-nonconforming", "", "/protocol_version"),
        ("generated-at", "", "/generated_at"),
        ("scenario-name", "", "/scenario/name"),
        ("scenario-version", "", "/scenario/version"),
    ];
    let between: &[(&str, &str, &str)] = &[
        (
            "metadata-value",
            "open_valve",
            "/tools/0/metadata/cost_estimate",
        ),
        (
            "metadata-value",
            "open_valve",
            "/tools/0/metadata/rate_limit_per_minute",
        ),
        (
            "example-unfit",
            "open_valve",
            "/tools/0/metadata/examples/0/input/pressure",
        ),
        (
            "metadata-value",
            "open_valve",
            "/tools/0/metadata/examples/1",
        ),
        ("tool-name", "close valve", "/tools/1/name"),
        ("tool-undescribed", "close valve", "/tools/1/description"),
        ("category-unknown", "close valve", "/tools/1/category"),
        ("tool-name", &long, "/tools/2/name"),
        ("metadata-missing", "bare", "/tools/3"),
        (
            "long-running-untracked",
            "start_pump",
            "/tools/4/metadata/long_running",
        ),
    ];
    let after: &[(&str, &str, &str)] = &[
        ("duplicate-tool", "start_pump", "/tools/11/name"),
        ("tool-quarantined", "lost", "/tools/12/parameters"),
    ];
    let expected = [
        before,
        FAULTS_OF_PARAMETERS,
        between,
        FAULTS_OF_OPERATIONS,
        after,
    ]
    .concat();
    assert_eq!(places_of(&inspected), expected);
    assert_useful(&text, &inspected);
}

#[test]
fn a_parameter_that_means_another_id_than_the_operations_is_found() {
    let metadata = |field: &str, param: &str| {
        json!({"enabled_by_default": true, "long_running": true, "async_behavior": {
            "status_polling": {"status_tool": "look", "operation_id_field": field, "status_tool_id_param": param},
            "completion_conditions": {"status_field": "status", "success_values": ["done"]}}})
    };
    for (field, param, found) in [
        ("run_id", "deployment", true),
        ("run.id", "jobId", true),
        ("run_id", "run_id", false),
        ("run.id", "runId", false),
        ("data.run_id", "id", false),
        ("id", "deployment", false),
        ("operation_id", "job", false),
    ] {
        let takes = json!({"type": "object", "properties": {param: {"type": "string", "description": "Which one"}}});
        let none = json!({"type": "object", "properties": {}});
        let text = with_tools(&json!([
            {"name": "start", "description": "Starts it", "parameters": none, "metadata": metadata(field, param)},
            {"name": "look", "description": "Looks at it", "parameters": takes, "metadata": {"enabled_by_default": true}},
        ]));
        let inspected = judged(&text);
        let pointer = "/tools/0/metadata/async_behavior/status_polling/status_tool_id_param";
        let expected: &[_] = if found {
            &[("async-arguments", "start", pointer)]
        } else {
            &[]
        };
        assert_eq!(places_of(&inspected), expected, "{field} for {param}");
        assert_useful(&text, &inspected);
    }
}

#[test]
fn pointers_are_in_the_spelling_of_the_document() {
    let text = fixture("wrapped");
    let inspected = judged(&text);
    assert_eq!(
        places_of(&inspected),
        [
            ("version-newer", "", "/protocolVersion"),
            ("spelling", "", "/protocolVersion"),
            (
                "default-unfit",
                "water_beds",
                "/tools/0/parameters/properties/minutes/default"
            ),
            (
                "example-unfit",
                "water_beds",
                "/tools/0/metadata/examples/0/input/fields/beds/listValue/values/1"
            ),
            (
                "async-tool-missing",
                "water_beds",
                "/tools/0/metadata/asyncBehavior/statusPolling/statusTool"
            ),
        ]
    );
    assert_useful(&text, &inspected);
}

#[test]
fn what_is_no_manifest_is_one_finding() {
    for (text, code, pointer) in [
        ("", FindingCode::ManifestRefused, None),
        ("<html>", FindingCode::ManifestRefused, None),
        ("[1]", FindingCode::ManifestRefused, None),
        (
            r#"{"protocol_version":"1.0","tools":[}"#,
            FindingCode::ManifestRefused,
            None,
        ),
        (
            r#"{"protocol_version":"1.0","scenario":4,"tools":[]}"#,
            FindingCode::ManifestRefused,
            None,
        ),
        (
            r#"{"protocolVersion":"latest","tools":[]}"#,
            FindingCode::VersionUnreadable,
            Some("/protocolVersion"),
        ),
    ] {
        let inspected = judged(text);
        assert!(inspected.manifest.is_none(), "{text}");
        let found: Vec<_> = inspected
            .findings
            .iter()
            .map(|f| (f.code, f.pointer.as_deref()))
            .collect();
        assert_eq!(found, [(code, pointer)], "{text}");
    }
}

#[test]
fn a_version_out_of_range_hides_nothing_else() {
    let text = with_tools(&json!([{"name": "cut", "metadata": {}}])).replace("\"1.0\"", "\"2.0\"");
    let inspected = judged(&text);
    let codes: Vec<_> = inspected
        .findings
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert!(
        codes.contains(&FindingCode::VersionRefused)
            && codes.contains(&FindingCode::ToolUndescribed),
        "{codes:?}"
    );
    assert_eq!(inspected.manifest.unwrap().tools.len(), 1);
}

#[test]
fn a_missing_list_of_categories_is_one_mistake() {
    let tool = |name: &str| json!({"name": name, "description": "Cuts", "category": "saws", "metadata": {}});
    let text = with_tools(&json!([tool("a"), tool("b"), tool("c")]));
    assert_eq!(places_of(&judged(&text)), [("category-unknown", "", "")]);
}

#[test]
fn many_findings_of_a_kind_are_counted() {
    let tools: Vec<Value> = (0..250)
        .map(|n| json!({"name": format!("t{n}"), "metadata": {}}))
        .collect();
    let inspected = judged(&with_tools(&tools.into()));
    assert_eq!(inspected.findings.len(), 101);
    assert!(
        inspected
            .findings
            .last()
            .unwrap()
            .message
            .contains("150 more"),
        "{:?}",
        inspected.findings.last()
    );
}

#[test]
fn the_rules_over_a_manifest_point_into_its_sorted_tools() {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "metadata": {}});
    let text = with_tools(&json!([tool("b", ""), tool("a", "Fine")]));
    let manifest = decode(text.as_bytes(), &AcceptedVersions::default())
        .unwrap()
        .manifest;
    let found = lint::check_manifest(&manifest);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].tool.as_deref(), Some("b"));
    assert_eq!(found[0].pointer.as_deref(), Some("/tools/1/description"));
    assert_eq!(
        places_of(&judged(&text)),
        [("tool-undescribed", "b", "/tools/0/description")]
    );
}

#[test]
fn a_tool_that_was_left_out_does_not_take_the_place_of_its_namesake() {
    let text = with_tools(&json!([
        {"name": "cut", "parameters": []},
        {"name": "cut", "description": " ", "metadata": {}}
    ]));
    assert_eq!(
        places_of(&judged(&text)),
        [
            ("tool-quarantined", "cut", "/tools/0/parameters"),
            ("tool-undescribed", "cut", "/tools/1/description")
        ]
    );
}

#[test]
fn slow_and_changing_answers_are_told() {
    let headers = [
        (CACHE_CONTROL, "max-age=60"),
        (CONTENT_TYPE, "application/json; charset=utf-8"),
        (ETAG, "\"a\""),
    ];
    let headers = HeaderMap::from_iter(headers.map(|(name, value)| (name, value.parse().unwrap())));
    let answer = |digest: u128, millis: u64, tag: &str| {
        let mut headers = headers.clone();
        headers.insert(ETAG, tag.parse().unwrap());
        let took = Duration::from_millis(millis);
        ListResponse {
            headers,
            took,
            digest: Digest(digest),
            stamp: None,
            order: vec![digest.to_string()],
        }
    };
    let codes = |answers: &[ListResponse]| {
        check_list(answers)
            .iter()
            .map(|finding| finding.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        codes(&[answer(1, 1_000, "\"a\""), answer(1, 3, "\"a\"")]),
        []
    );
    assert_eq!(
        codes(&[answer(1, 3, "\"a\""), answer(1, 1_001, "\"a\"")]),
        [FindingCode::SlowAnswer]
    );
    // Another content has every right to another tag, order and stamp.
    assert_eq!(
        codes(&[answer(1, 3, "\"a\""), answer(2, 3, "\"b\"")]),
        [FindingCode::ContentMoves]
    );
    assert_eq!(codes(&[]), []);
}
