//! Views that between them have everything that a format may meet. Each has one expected file per
//! format.

use std::sync::Arc;

use callsheet::catalog::View;
use callsheet::formats::{self, FORMATS, Format, FormatOptions};
use callsheet::model::{PreferenceTarget, Provenance, PublishedName, Scope};

use serde_json::Value;

use super::view_tools::{category, extra, offered, part, raw, tool, view};

/// Every case by name.
pub(crate) fn cases() -> Vec<(&'static str, View)> {
    vec![
        ("empty", view(Vec::new())),
        ("plain", plain()),
        ("fleet", fleet()),
        ("noise", noise()),
        ("roots", roots()),
        ("malformed", malformed()),
        ("hostile", hostile()),
    ]
}

/// Every format, plain and with each option that it has.
pub(crate) fn variants() -> Vec<&'static dyn Format> {
    let both = [false, true];
    let options: Vec<_> = both
        .into_iter()
        .flat_map(|strict| {
            both.map(|cache| FormatOptions {
                strict,
                cache,
                deferring: false,
            })
        })
        .collect();
    FORMATS
        .iter()
        .flat_map(|format| {
            options
                .iter()
                .filter_map(|o| formats::with_options(*format, *o))
        })
        .collect()
}

const NOTHING: &str = r#"{"type":"object","properties":{}}"#;

fn plain() -> View {
    let brew = tool(
        "kitchen",
        "brew_tea",
        // Blanks stay: a schema that needs no change is embedded as it came. Parameters may be
        // called like keywords.
        r#"{ "type": "object", "properties": { "variety": {"type":"string","enum":["green","black"],"default":"green"},
            "required": {"type":"boolean"}, "enum": {"type":"array","items":{"type":"string"},"default":[]} }, "required": ["variety"] }"#,
    );
    let brew = offered(brew, |tool| {
        tool.category = Some("drinks".into());
        tool.description =
            "Brews a cup of tea. \"Green\" by default;\nnever boils the leaves ☕".into();
        tool.metadata = raw(
            r#"{"enabled_by_default":true,"timeout_seconds":240,"tags":["hot"],"x_vendor":{"a":[1]}}"#,
        );
    });
    let mute = offered(tool("kitchen", "ring_bell", NOTHING), |tool| {
        tool.description = "".into();
    });
    let mut drinks = category("drinks", "Drinks");
    drinks.description = Some("What one can drink".into());
    drinks.icon = Some("cup".into());
    drinks.display_order = Some(3);
    drinks.extra = extra(&[("colour", "\"teal\""), ("name", "\"never shown\"")]);
    view(vec![part("kitchen", vec![brew, mute], vec![drinks])])
}

/// Two scenarios with the same tool and category, one with preferences, one that is a callsheet
/// itself.
fn fleet() -> View {
    let mut north = tool("depot-north", "list_crates", NOTHING);
    north.name = PublishedName::qualified(&north.id);
    north.effective.requires_approval = true;
    let chat = (
        Scope::Chat("7".into()),
        PreferenceTarget::Tool(north.id.clone()),
    );
    north.effective.approval_source = Provenance::Preference(Arc::new(chat));
    let mut south = tool("depot-south", "list_crates", NOTHING);
    south.name = PublishedName::qualified(&south.id);
    let global = (Scope::Global, PreferenceTarget::Category("stock".into()));
    south.effective.enabled_source = Provenance::Preference(Arc::new(global));
    let south = offered(south, |tool| {
        tool.category = Some("stock".into());
        tool.extra = extra(&[
            ("scenario", "\"elsewhere\""),
            ("x_tier", "{\"level\": 2}"),
            ("enabled", "false"),
        ]);
    });
    let none = part(
        "depot-west",
        Vec::new(),
        vec![category("unseen", "Of no tool in the view")],
    );
    view(vec![
        part("depot-north", vec![north], vec![category("stock", "Stock")]),
        part(
            "depot-south",
            vec![south],
            vec![category("returns", "Returns"), category("stock", "Wares")],
        ),
        none,
    ])
}

/// What serialisers write for "not set", and what vendors ask for beyond JSON Schema.
fn noise() -> View {
    let unset = r#"{"type":"object","properties":{
        "zone":{"type":"string","enum":[],"default":null,"items":null,"format":"","pattern":"","description":"Where"},
        "area":{"type":"object","properties":{"left":{"type":"integer"},"top":{"type":"integer"}},"required":["left"],"additionalProperties":null},
        "notes":{"type":"array","items":null},
        "maybe":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}},"required":[]}"#;
    let ghosts =
        r#"{"type":"object","properties":{"seen":{"type":"string"}},"required":["seen","ghost"]}"#;
    view(vec![part(
        "survey",
        vec![
            tool("survey", "chart", unset),
            tool("survey", "haunt", ghosts),
        ],
        Vec::new(),
    )])
}

/// Roots that vendors refuse.
fn roots() -> View {
    let either = r#"{"type":"object","properties":{"dry_run":{"type":"boolean"}},"oneOf":[
        {"properties":{"path":{"type":"string"}},"required":["path"]},{"properties":{"url":{"type":"string","format":"uri"}},"required":["url"]}]}"#;
    let referred = r##"{"$ref":"#/$defs/Args","type":"object","properties":{},"$defs":{"Args":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}}"##;
    let nullable = r#"{"type":["object","null"],"properties":{"on":{"type":"boolean"}},"not":{"required":["off"]}}"#;
    let text = r#"{"type":"string","properties":{}}"#;
    let tools = [
        ("fetch", either),
        ("look_up", referred),
        ("switch", nullable),
        ("tell", text),
    ];
    let tools = tools.map(|(name, schema)| tool("mixed", name, schema));
    view(vec![part("mixed", tools.into(), Vec::new())])
}

/// What a careless or hostile scenario sends.
fn malformed() -> View {
    let odd = r#"{"type":"object","properties":{"count":{"type":"int","required":true,"minimum":"1"},"any":"text",
        "pair":{"type":"array","items":[{"type":"string"},{"type":"array"}]},"rate":{"type":"number","minimum":0,"exclusiveMinimum":true}}}"#;
    let deep = format!(
        r#"{{"type":"object","properties":{{}},"default":{}1{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let half = r#"{"type":"object","properties":{"a":{"default":"\ud83d"}}}"#;
    let mut odd = offered(tool("careless", "guess", odd), |tool| {
        tool.extra = extra(&[("x_fine", "1"), ("x_half", r#""\udead""#), ("x_fine", "2")]);
    });
    odd.name = PublishedName::plain("guess what?");
    let tools = vec![
        tool("careless", "dig", &deep),
        odd,
        tool("careless", "halve", half),
    ];
    view(vec![part("careless", tools, Vec::new())])
}

/// Some of what vendors find hard to take; their own client libraries are fed all of it
/// (`.ci/validators`).
fn hostile() -> View {
    const PICKED: &[&str] = &[
        "ref_cyclic",
        "ref_dangling",
        "ref_siblings",
        "ref_dynamic",
        "root_one_of",
        "root_all_of",
        "root_const",
        "root_text",
        "root_nullable",
        "draft_4_bounds",
        "tuple_old",
        "array_untyped",
        "enum_mixed",
        "enum_with_null",
        "const_object",
        "type_array",
        "type_unknown",
        "type_repeats",
        "object_map",
        "object_closed_empty",
        "object_patterns",
        "property_false",
        "required_unknown",
        "keys_odd",
        "keys_like_keywords",
        "pattern_words",
        "text_bounds",
        "number_large",
        "unions_with_not",
        "unions_of_objects",
        "all_of_refs",
        "nullable_openapi",
        "annotations",
        "vocabulary",
    ];
    let manifests: Vec<Value> =
        serde_json::from_str(include_str!("../../fixtures/validators/hostile.json"))
            .expect("a list");
    let all = manifests
        .iter()
        .filter_map(|manifest| manifest["tools"].as_array())
        .flatten();
    let mut tools: Vec<_> = all
        .filter_map(|offered| Some((offered["name"].as_str()?, &offered["parameters"])))
        .filter(|(name, _)| PICKED.contains(name))
        .map(|(name, schema)| tool("hostile", name, &schema.to_string()))
        .collect();
    assert_eq!(tools.len(), PICKED.len());
    tools.sort_by(|a, b| a.id.cmp(&b.id));
    view(vec![part("hostile", tools, Vec::new())])
}
