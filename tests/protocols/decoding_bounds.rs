//! What is taken of a manifest that holds too much of something: the rest is left out with a
//! finding, or the manifest is refused.

use callsheet::model::{AcceptedVersions, Bounds, Finding, FindingCode};
use callsheet::protocols::module;
use callsheet::protocols::tool_discovery::{Decoded, decode, decode_within, restored};
use callsheet::state;
use serde_json::{Map, Value, json};

#[expect(
    clippy::needless_pass_by_value,
    reason = "tools are written where they are handed in"
)]
fn manifest(tools: Value) -> Value {
    json!({"protocol_version": "1.0", "scenario": {"name": "full"}, "tools": tools, "generated_at": "2026-02-03T04:05:06Z"})
}

fn read(manifest: &Value) -> Decoded {
    decode(
        manifest.to_string().as_bytes(),
        &AcceptedVersions::default(),
    )
    .unwrap()
}

/// An object with so many members.
fn members(count: usize) -> Map<String, Value> {
    (0..count)
        .map(|at| (format!("member_{at}"), json!(at)))
        .collect()
}

fn with(mut object: Value, further: Map<String, Value>) -> Value {
    object.as_object_mut().unwrap().extend(further);
    object
}

/// The only finding.
fn finding_of(decoded: &Decoded, code: FindingCode) -> &Finding {
    let [finding] = decoded.findings.as_slice() else {
        panic!("one finding: {:?}", decoded.findings)
    };
    assert_eq!(finding.code, code, "{finding:?}");
    finding
}

fn names(decoded: &Decoded) -> Vec<&str> {
    decoded
        .manifest
        .tools
        .iter()
        .map(|tool| &*tool.name)
        .collect()
}

#[test]
fn a_tool_with_too_many_members_costs_itself() {
    let full = with(json!({"name": "full"}), members(1_000));
    let over = with(json!({"name": "over"}), members(1_001));
    let far_over = with(json!({"name": "zero"}), members(5_000));
    let decoded = read(&manifest(json!([far_over, full, {"name": "fine"}, over])));
    assert_eq!(names(&decoded), ["fine", "full"]);
    assert_eq!(decoded.quarantined, 2);
    for (finding, name, index) in [
        (&decoded.findings[0], "zero", 0),
        (&decoded.findings[1], "over", 3),
    ] {
        assert_eq!(finding.code, FindingCode::ToolQuarantined);
        let message =
            format!("the tool `{name}` is left out: /tools/{index} has more than 1000 members");
        assert_eq!(finding.message, message);
        assert_eq!(finding.tool.as_deref(), Some(name));
    }
    // As many as were taken are taken again, with those that were written besides.
    let again = state::manifest::read(&state::manifest::write(&decoded.manifest)).unwrap();
    assert_eq!(again.digest, decoded.manifest.digest);
    assert_eq!(again.tools.len(), 2);
}

#[test]
fn a_manifest_or_a_scenario_with_too_many_members_is_refused() {
    let refused = |manifest: &Value| {
        decode(
            manifest.to_string().as_bytes(),
            &AcceptedVersions::default(),
        )
        .unwrap_err()
        .to_string()
    };
    let plain = manifest(json!([{"name": "fine"}]));
    assert_eq!(
        refused(&with(plain.clone(), members(1_500))),
        "the manifest has more than 1000 members"
    );
    let mut scenario = plain;
    scenario["scenario"] = members(1_500).into();
    assert_eq!(
        refused(&scenario),
        "the manifest's /scenario has more than 1000 members"
    );
    // However often a name comes again.
    let repeated = format!("{{{}\"tools\":[]}}", "\"tools\":[],".repeat(1_500));
    let error = decode(repeated.as_bytes(), &AcceptedVersions::default())
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the manifest has more than 1000 members");
}

#[test]
fn of_too_many_categories_the_first_by_id_are_taken() {
    let categories: Vec<_> = (0..1_200)
        .rev()
        .map(|at| json!({"id": format!("c{at:04}")}))
        .collect();
    let mut full = manifest(json!([{"name": "fine"}]));
    full["categories"] = categories.into();
    let decoded = read(&full);
    let ids: Vec<_> = decoded
        .manifest
        .categories
        .iter()
        .map(|category| category.id.to_string())
        .collect();
    assert_eq!(
        ids,
        (0..1_000).map(|at| format!("c{at:04}")).collect::<Vec<_>>()
    );
    let finding = finding_of(&decoded, FindingCode::CategoryIgnored);
    assert!(
        finding
            .message
            .contains("has 200 more than the 1000 that are taken, the first by id"),
        "{finding:?}"
    );
}

#[test]
fn a_tool_with_too_many_tags_costs_itself() {
    let tags: Vec<_> = (0..1_001).map(|at| format!("tag {at}")).collect();
    let of = |tags: &[String]| json!({"enabled_by_default": true, "requires_approval": false, "tags": tags});
    let sent = json!([{"name": "full", "metadata": of(&tags[1..])}, {"name": "over", "metadata": of(&tags)}]);
    let decoded = read(&manifest(sent));
    assert_eq!(names(&decoded), ["full"]);
    assert_eq!(decoded.manifest.tools[0].facts.tags.len(), 1_000);
    let finding = finding_of(&decoded, FindingCode::ToolQuarantined);
    assert_eq!(
        finding.message,
        "the tool `over` is left out: /tools/1/metadata/tags has 1001 tags, more than 1000"
    );
}

#[test]
fn what_takes_too_much_memory_is_left_out_and_the_rest_stays() {
    // In protojson whatever a schema holds may have to be rewritten.
    let values = vec![json!({}); 200_000];
    let large =
        json!({"name": "large", "parameters": {"default": {"listValue": {"values": values}}}});
    let sent = json!({"protocolVersion": "1.0", "scenario": {"name": "full"}, "tools": [{"name": "a"}, large, {"name": "z"}],
        "generatedAt": "2026-02-03T04:05:06Z"});
    let decoded = read(&sent);
    assert_eq!(names(&decoded), ["a", "z"]);
    let finding = finding_of(&decoded, FindingCode::ToolQuarantined);
    assert!(
        finding
            .message
            .contains("/tools/1/parameters takes more memory than is left of the"),
        "{finding:?}"
    );
    assert!(
        finding.hint.as_deref().unwrap().contains("leave out"),
        "{finding:?}"
    );
}

#[test]
fn of_more_tools_than_a_document_can_pay_for_the_first_by_name_are_taken() {
    let tools: Vec<_> = (0..20_000)
        .rev()
        .map(|at| json!({"name": format!("{at:05}")}))
        .collect();
    let decoded = read(&manifest(tools.into()));
    let count = decoded.manifest.tools.len();
    assert!((5_000..20_000).contains(&count), "{count}");
    assert_eq!(decoded.quarantined, 20_000 - count);
    let expected: Vec<_> = (0..count).map(|at| format!("{at:05}")).collect();
    assert_eq!(names(&decoded), expected);
    let first = &decoded.findings[0];
    assert_eq!(first.code, FindingCode::ToolsBeyondLimit);
    assert!(
        first
            .message
            .contains("are taken from a manifest of this size, the first by name"),
        "{first:?}"
    );
    // Tools that say what they do are paid for by their own bytes.
    let about = "It reads the records that match.";
    let tool_at = |at| json!({"name": format!("{at:05}"), "description": about, "parameters": {"type": "object"}});
    let decoded = read(&manifest((0..10_000).map(tool_at).collect()));
    assert_eq!(decoded.manifest.tools.len(), 10_000);
    assert_eq!(decoded.findings, []);
}

#[test]
fn findings_stay_small_however_long_the_names_are() {
    let long = "~".repeat(100_000);
    let mut tools = Vec::new();
    for at in 0..300 {
        tools.push(format!(r#"{{"name":"t{at}","{long}":"\ud800"}}"#));
    }
    let text = manifest(json!(["TOOLS"]))
        .to_string()
        .replace("\"TOOLS\"", &tools.join(","));
    let decoded = decode(text.as_bytes(), &AcceptedVersions::default()).unwrap();
    assert_eq!(decoded.quarantined, 300);
    assert_eq!(decoded.findings.len(), 101);
    let said = |finding: &Finding| {
        finding.message.len() + finding.pointer.as_deref().unwrap_or_default().len()
    };
    assert!(decoded.findings.iter().all(|finding| said(finding) < 1_000));
    assert_eq!(decoded.findings[0].pointer.as_deref(), Some("/tools/0"));
    let bounds = Bounds {
        tools: 10,
        part: 1_000,
    };
    let named =
        format!("{{\"{long}\":0,\"protocol_version\":\"1.0\",\"scenario\":{{}},\"tools\":[]}}");
    let error = decode_within(named.as_bytes(), &AcceptedVersions::default(), bounds)
        .unwrap_err()
        .to_string();
    assert!(
        error.len() < 200 && error.contains("100000 bytes"),
        "{error}"
    );
}

#[test]
fn a_stored_manifest_is_bounded_by_the_tools_of_now() {
    let tools: Vec<_> = (0..10)
        .map(|at| json!({"name": format!("t{at}")}))
        .collect();
    let decoded = restored(
        read(&manifest(tools.into())).manifest,
        &AcceptedVersions::default(),
        4,
    )
    .unwrap();
    assert_eq!(names(&decoded), ["t0", "t1", "t2", "t3"]);
    let hint = finding_of(&decoded, FindingCode::ToolsBeyondLimit)
        .hint
        .as_deref();
    assert!(hint.unwrap().contains("`refresh.max_tools`"));
}

#[test]
fn a_modules_parts_are_bounded_too() {
    let parameter = |at| json!({"name": format!("p{at}"), "type": "string"});
    let tool = |name: &str, count| json!({"name": name, "parameters": (0..count).map(parameter).collect::<Vec<_>>()});
    let over = with(json!({"name": "m.z", "parameters": []}), members(2_000));
    let sent =
        json!({"module_name": "m", "tools": [tool("m.over", 1_001), tool("m.full", 1_000), over]});
    let decoded = module::decode(sent.to_string().as_bytes()).unwrap();
    assert_eq!(names(&decoded), ["m.full"]);
    let messages: Vec<_> = decoded
        .findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    assert_eq!(
        messages,
        [
            "the tool `m.over` is left out: /tools/0/parameters has 1001 parameters, more than 1000",
            "the tool `m.z` is left out: /tools/2 has more than 1000 members",
        ]
    );
}
