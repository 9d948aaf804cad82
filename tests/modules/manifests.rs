//! Manifests of modules become the model, and a bad part costs no more than itself; a module is
//! told from other scenarios.
//!
//! Rows of the original's list of features: S4-07, S4-33 (the other way round), S4-39, S4-40, S4-57
//! to S4-59, S4-61, S4-62.

use std::fs;
use std::path::Path;

use callsheet::model::{
    AcceptedVersions, Bounds, Finding, FindingCode, Manifest, Permission, Tool,
};
use callsheet::protocols::module::{decode, decode_within};
use callsheet::protocols::tool_discovery::{self, Decoded};
use callsheet::protocols::{ListError, module};
use callsheet::state::manifest;
use serde_json::{Value, json};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/manifests/module")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn good(body: &[u8]) -> Decoded {
    decode(body).unwrap_or_else(|error| panic!("{error}"))
}

fn tool<'m>(manifest: &'m Manifest, name: &str) -> &'m Tool {
    manifest
        .tools
        .iter()
        .find(|tool| *tool.name == *name)
        .unwrap_or_else(|| panic!("{name} of {manifest:?}"))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A manifest of one tool with this list of parameters.
fn with_parameters(parameters: &Value) -> Vec<u8> {
    let tool = json!({"name": "desk.try", "description": "Tries", "parameters": parameters});
    json!({"module_name": "desk", "description": "d", "tools": [tool]})
        .to_string()
        .into_bytes()
}

/// S4-57, S4-58, S4-59, S4-61: each parameter is a property with its type and description, `enum`
/// where there is one, and what is required is listed, all in the order of the parameters. What
/// else a parameter says is of its schema.
#[test]
fn parameters_become_a_schema_in_their_order() {
    let Decoded {
        manifest,
        findings,
        quarantined,
    } = good(&fixture("plain.json"));
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(quarantined, 0);
    assert_eq!(
        tool(&manifest, "git_desk.issue.open").parameters.get(),
        concat!(
            r#"{"type":"object","properties":{"title":{"type":"string","description":"One line"},"#,
            r#""urgency":{"type":"string","description":"How soon","enum":["low","high"]},"#,
            r#""labels":{"type":"array","description":"What it is about","items":{"type":"string","maxLength":40}},"#,
            r#""assignee":{"type":"object","description":"Who cares","properties":{"login":{"type":"string"},"#,
            r#""enum":{"type":"array","items":{"type":"integer"}}}},"#,
            r#""weight":{"type":"number","description":"How heavy","default":1.50}},"required":["title","assignee"]}"#,
        )
    );
    for empty in ["git_desk.wipe", "git_desk.status"] {
        assert_eq!(
            tool(&manifest, empty).parameters.get(),
            r#"{"type":"object","properties":{}}"#,
            "{empty}"
        );
    }
}

/// S4-07: the whole document is in the model, unknown members too.
#[test]
fn a_manifest_is_read_whole() {
    let manifest = good(&fixture("plain.json")).manifest;
    assert_eq!(&*manifest.scenario.name, "git_desk");
    assert_eq!(&*manifest.scenario.description, "Looks after repositories");
    assert_eq!(&*manifest.protocol_version, "");
    assert_eq!(manifest.generated_at, None);
    let names: Vec<_> = manifest.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        ["git_desk.issue.open", "git_desk.status", "git_desk.wipe"]
    );
    let levels: Vec<_> = manifest
        .tools
        .iter()
        .map(|tool| tool.facts.required_permission)
        .collect();
    assert_eq!(
        levels,
        [Permission::User, Permission::Guest, Permission::Owner]
    );
    assert!(
        manifest
            .tools
            .iter()
            .all(|tool| tool.facts.enabled_by_default && !tool.facts.requires_approval)
    );
    let wipe = tool(&manifest, "git_desk.wipe");
    assert_eq!(&*wipe.description, "Deletes \"everything\"");
    assert_eq!(value(wipe.metadata.get())["required_permission"], "owner");
    let extra: Vec<_> = wipe
        .extra
        .iter()
        .chain(&manifest.extra)
        .map(|(name, json)| (&**name, json.get()))
        .collect();
    assert_eq!(
        extra,
        [("cost", r#"{"tokens":3}"#), ("maintainer", "\"ops\"")]
    );
}

/// S4-62, but for one tool: a malformed one costs itself, where the original skips the module.
#[test]
fn a_bad_part_costs_itself() {
    let Decoded {
        manifest,
        findings,
        quarantined,
    } = good(&fixture("faults.json"));
    let names: Vec<_> = manifest.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["attic.boss", "attic.list", "cellar.list", "plain"]);
    assert_eq!(
        &*tool(&manifest, "attic.list").description,
        "Lists the boxes",
        "the first stays"
    );
    assert_eq!(
        tool(&manifest, "attic.boss").facts.required_permission,
        Permission::Unknown
    );
    assert_eq!(quarantined, 10);
    let of = |code| move |finding: &&Finding| finding.code == code;
    let places: Vec<_> = findings
        .iter()
        .filter_map(|finding| finding.pointer.as_deref())
        .collect();
    assert_eq!(
        places,
        [
            "/tools/1/name",
            "/tools/2",
            "/tools/3/parameters",
            "/tools/4/parameters/0/name",
            "/tools/5/parameters/0/type",
            "/tools/6/parameters/0/type",
            "/tools/7/parameters/0/required",
            "/tools/8/parameters/0/enum",
            "/tools/9/parameters/1/name",
            "/tools/10/required_permission",
            "/tools/11/name",
            "/tools/12/required_permission",
            "/tools/13/name",
            "/tools/14/name",
        ]
    );
    assert!(
        findings.iter().all(|finding| finding.hint.is_some()),
        "{findings:#?}"
    );
    assert_eq!(
        findings
            .iter()
            .filter(of(FindingCode::ToolQuarantined))
            .count(),
        10
    );
    assert_eq!(
        findings
            .iter()
            .filter(of(FindingCode::DuplicateTool))
            .count(),
        1
    );
    assert_eq!(
        findings
            .iter()
            .filter(of(FindingCode::MetadataValue))
            .count(),
        1
    );
    assert_eq!(
        findings.iter().filter(of(FindingCode::ToolNaming)).count(),
        2
    );
}

#[test]
fn what_is_no_manifest_of_a_module_is_left_to_other_protocols() {
    let none = |body: &[u8]| match decode(body) {
        Err(ListError::NotThisProtocol(why)) => why,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(body)),
    };
    for body in [
        "",
        "<html></html>",
        "[]",
        r#"{"name":"A web app","icons":[]}"#,
        r#"{"tools":[]}"#,
        r#"{"protocol_version":"1.0","scenario":{"name":"s"},"tools":[]}"#,
        r#"{"protocol_version":"1.0","module_name":"s","tools":[]}"#,
    ] {
        assert!(
            none(body.as_bytes()).contains("not a tool manifest"),
            "{body}"
        );
    }
    for body in [
        r#"{"module_name":"a"}"#,
        r#"{"module_name":"a","tools":{}}"#,
        r#"{"module_name":3,"tools":[]}"#,
        "{",
    ] {
        assert!(
            matches!(decode(body.as_bytes()), Err(ListError::Malformed(_))),
            "{body}"
        );
    }
    // Nor is a module's manifest one of the other protocol.
    for name in ["plain.json", "faults.json"] {
        let read = tool_discovery::decode(&fixture(name), &AcceptedVersions::default());
        assert!(
            matches!(read, Err(ListError::NotThisProtocol(_))),
            "{name}: {read:?}"
        );
    }
}

#[test]
fn equal_offers_have_equal_digests() {
    let plain = value(&String::from_utf8(fixture("plain.json")).unwrap());
    let digest = |document: &Value| good(document.to_string().as_bytes()).manifest.digest;
    let mut turned = plain.clone();
    turned["tools"].as_array_mut().unwrap().reverse();
    assert_eq!(digest(&turned), digest(&plain));
    for (pointer, other) in [
        ("/description", json!("Other")),
        ("/tools/0/parameters/0/description", json!("Two lines")),
        ("/tools/0/parameters/1/required", json!(true)),
        ("/tools/1/required_permission", json!("admin")),
        ("/tools/1/cost/tokens", json!(4)),
    ] {
        let mut changed = plain.clone();
        *changed.pointer_mut(pointer).unwrap() = other;
        assert_ne!(digest(&changed), digest(&plain), "{pointer}");
    }
}

/// What is stored is the model in the spelling of the Tool Discovery Protocol, and is read again as
/// it was.
#[test]
fn what_is_stored_is_read_again() {
    for name in ["plain.json", "faults.json"] {
        let manifest = good(&fixture(name)).manifest;
        let document = manifest::write(&manifest);
        // Whatever range of versions is accepted: a module has none.
        let accept = AcceptedVersions::parse(">=1.5, <2.0").unwrap();
        let Decoded {
            manifest: decoded,
            findings,
            ..
        } = tool_discovery::restored(manifest::read(&document).unwrap(), &accept, usize::MAX)
            .unwrap();
        assert_eq!(findings, [], "{name}");
        assert_eq!(format!("{decoded:#?}"), format!("{manifest:#?}"), "{name}");
        // A stranger cannot leave the version out like this.
        assert!(tool_discovery::decode(document.as_bytes(), &accept).is_err());
    }
}

#[test]
fn tools_and_parts_have_bounds() {
    let bounds = |tools, part| Bounds { tools, part };
    let Decoded {
        manifest,
        findings,
        quarantined,
    } = decode_within(&fixture("plain.json"), bounds(1, 10_000)).unwrap();
    assert_eq!(manifest.tools.len(), 1);
    assert_eq!(findings[0].code, FindingCode::ToolsBeyondLimit);
    assert_eq!(quarantined, 2);
    let Decoded {
        manifest,
        quarantined,
        ..
    } = decode_within(&fixture("plain.json"), bounds(9, 500)).unwrap();
    assert_eq!(manifest.tools.len(), 2);
    assert_eq!(quarantined, 1);
    assert!(decode_within(&fixture("plain.json"), bounds(9, 5)).is_err());
}

#[test]
fn hostile_parameters_are_refused_or_kept_readable() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let deep: Vec<u8> = format!(
        r#"{{"module_name":"desk","tools":[{{"name":"desk.try","parameters":[{{"name":"a","type":"string","x":{deep}}}]}}]}}"#
    )
    .into_bytes();
    assert!(decode(&deep).map_or(true, |decoded| decoded.quarantined == 1));
    let odd = json!([{"name": "\u{0}\"\\", "type": "str\u{7}ing", "description": "\u{202e}", "enum": ["\"", null, 1e99]}]);
    let decoded = good(&with_parameters(&odd));
    let schema = value(decoded.manifest.tools[0].parameters.get());
    assert_eq!(
        schema["properties"]["\u{0}\"\\"]["enum"],
        json!(["\"", null, 1e99])
    );
    let broken = br#"{"module_name":"desk","tools":[{"name":"desk.try","parameters":[{"name":"a","type":"string","enum":["\ud800"]}]}]}"#;
    assert_eq!(good(broken).quarantined, 1);
}

/// The manifests of real modules, as far as they are there: nothing of them is left out, and their
/// schemas say what their parameters say.
#[test]
fn worked_examples_of_the_original_hold() {
    let folder = std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        Into::into,
    );
    let Ok(text) = fs::read_to_string(folder.join("modules/openai_example.json")) else {
        return;
    };
    let example = value(&text);
    let document =
        json!({"module_name": "research", "description": "", "tools": [example["input"]]});
    let Decoded {
        manifest, findings, ..
    } = good(document.to_string().as_bytes());
    assert_eq!(findings, []);
    let expected = &example["output"]["function"];
    let read = &manifest.tools[0];
    assert_eq!(value(read.parameters.get()), expected["parameters"]);
    assert_eq!(json!(&*read.name), expected["name"].clone());
    assert_eq!(json!(&*read.description), expected["description"].clone());
    assert_eq!(module::ID, "module");
}
