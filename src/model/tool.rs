//! One tool, as its scenario offers it.
//!
//! Schemas and metadata stay the JSON text they arrived in (in the protocol's own spelling): a tree
//! of values costs seven times the memory and is only built inside a transform. Beside the text
//! stand the few facts that decisions need.

use std::sync::Arc;

use serde_json::Value;

use super::activity::ActivityChoice;
use super::definition_version::{DefinitionParts, DefinitionVersion, VersionCell};
use super::profile::Permission;
use crate::json::JsonText;

/// Bytes of a tool's name at most: longer ones are refused wherever a tool is named for good.
pub const TOOL_NAME_MAX: usize = 256;

/// Members of a JSON object that the model has no name for, in the order they came, kept to be
/// passed on unchanged.
pub type Extra = Box<[(Arc<str>, JsonText)]>;

/// How many bytes of text further members have, roughly.
pub(crate) fn extra_bytes(members: &Extra) -> usize {
    let bytes = |(name, json): &(Arc<str>, JsonText)| name.len() + json.get().len();
    members.iter().map(bytes).sum()
}

/// A tool of the Tool Discovery Protocol (`ToolDefinition`), whatever spelling it arrived in.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name the scenario gave it; unique within the scenario, not empty, at most
    /// [`TOOL_NAME_MAX`] bytes.
    pub name: Arc<str>,
    /// What it does, as shown to the LLM. May be empty.
    pub description: Arc<str>,
    /// Id of the category it is grouped under.
    pub category: Option<Arc<str>>,
    /// Input schema: the text of one JSON object, with `type` and `properties` always present.
    pub parameters: JsonText,
    /// The text of the whole `metadata` object in the protocol's spelling, unknown members
    /// included.
    pub metadata: JsonText,
    /// What decisions need of the metadata. Tools of one manifest share equal ones. Everything here
    /// that is not its default is also written in `metadata`, with `enabled_by_default` and
    /// `requires_approval` in any case: only that text is stored. `unannotated` alone follows from
    /// `extra`.
    pub facts: Arc<Facts>,
    /// Unknown members of the tool object itself.
    pub extra: Extra,
    /// Of a definition: what chooses the activity that runs it. `None` of every tool that its own
    /// scenario offers.
    pub definition: Option<Arc<ActivityChoice>>,
    /// The version of its definition, once it was needed ([`Tool::version`]).
    pub version: VersionCell,
}

/// The part of a tool's metadata that callsheet acts on. Absent booleans are `false`, as in the
/// protocol.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the protocol's own independent flags"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Active by default.
    pub enabled_by_default: bool,
    /// A human must approve each call.
    pub requires_approval: bool,
    /// Never shown to an LLM (`internal_only`); still found by name and usable by programs.
    pub internal_only: bool,
    /// The permission that its user needs (`required_permission`, not part of the protocol's text).
    /// An unknown level is kept as such.
    pub required_permission: Permission,
    /// Labels, in the order given.
    pub tags: Vec<Arc<str>>,
    /// Default time limit of a call, in seconds.
    pub timeout_seconds: Option<u64>,
    /// Calls a minute at most.
    pub rate_limit_per_minute: Option<u64>,
    /// May take long.
    pub long_running: bool,
    /// Safe to call again.
    pub idempotent: bool,
    /// An MCP server offers it and gives no hint of what it does. Not part of the metadata: it
    /// follows from the other members of the tool; see [`gives_hints`].
    pub unannotated: bool,
}

/// The members of `annotations` in which an MCP server says what a tool does.
const HINTS: [&str; 4] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// Whether the further members of a tool hold a hint of what it does, as those of MCP servers may
/// (MCP 2026-07-28, tool annotations).
pub fn gives_hints(members: &Extra) -> bool {
    let annotations = members.iter().find(|(name, _)| &**name == "annotations");
    annotations.is_some_and(|(_, json)| HINTS.iter().any(|hint| json.get().contains(hint)))
}

/// The members of a tool that may hold the schema of its results, in the order in which they are
/// looked for: the spelling of MCP, that of the Tool Discovery Protocol, and that of the Tool
/// Protocol.
const OUTPUT: [&str; 3] = ["outputSchema", "output_schema", "_output"];

/// The member of a tool that names its activity, as the Tool Protocol has it.
pub const ACTIVITY: &str = "_activity";

/// The member under which a list of callsheet has the version that a provider gives a tool.
pub(crate) const PROVIDER_VERSION: &str = "provider_version";

/// Characters of a provider's version that are shown at most.
const PROVIDER_VERSION_CHARACTERS_MAX: usize = 100;

/// A version as a provider writes it: a text or a number.
fn version_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let text: String = text
        .trim()
        .chars()
        .take(PROVIDER_VERSION_CHARACTERS_MAX)
        .collect();
    (!text.is_empty()).then_some(text)
}

/// The tag of a tool whose results the caller's model produces.
const LATENT: &str = "latent";

impl Tool {
    /// The version of its definition as its provider gave it.
    pub fn version(&self) -> DefinitionVersion {
        self.version.version(&self.definition_parts())
    }

    /// What counts of its definition but its name, as one document.
    pub(crate) fn definition_document(&self) -> Value {
        self.definition_parts().document()
    }

    fn definition_parts(&self) -> DefinitionParts<'_> {
        DefinitionParts {
            name: &self.name,
            description: &self.description,
            parameters: &self.parameters,
            output: self.output(),
            metadata: &self.metadata,
            title: self.member("title"),
            annotations: self.member("annotations"),
        }
    }

    /// The version that its provider gives it, as its member `version` or that of its metadata. It
    /// is shown, and no decision depends on it: a provider may change a tool and not the version.
    pub fn provider_version(&self) -> Option<String> {
        let own = ["version", PROVIDER_VERSION]
            .into_iter()
            .filter_map(|name| serde_json::from_str(self.member(name)?.get()).ok())
            .find_map(|version: Value| version_text(&version));
        own.or_else(|| {
            // Most metadata has none, and reading it as a tree is dear.
            let metadata =
                Some(self.metadata.get()).filter(|metadata| metadata.contains("\"version\""))?;
            let metadata: Value = serde_json::from_str(metadata).ok()?;
            version_text(metadata.get("version")?)
        })
    }

    /// How many bytes of text it has, roughly: what keeping it costs beside its parts.
    pub(crate) fn bytes(&self) -> usize {
        self.name.len()
            + self.description.len()
            + self.parameters.get().len()
            + self.metadata.get().len()
            + extra_bytes(&self.extra)
    }

    /// The schema of its results, if it declares one: the text of one JSON object.
    pub fn output(&self) -> Option<&JsonText> {
        OUTPUT
            .iter()
            .find_map(|name| self.member(name).filter(|json| json.get().starts_with('{')))
    }

    /// What it says itself about its activity. Empty if the caller's model is to produce the
    /// results. A text with escapes is no name of an activity, and counts as left out.
    pub fn own_activity(&self) -> Option<&str> {
        let text = self
            .member(ACTIVITY)?
            .get()
            .strip_prefix('"')?
            .strip_suffix('"')?;
        (!text.contains('\\')).then_some(text)
    }

    /// Whether its scenario leaves the results to the caller's model: it is tagged `latent`, or
    /// its activity is the empty text.
    pub fn is_latent(&self) -> bool {
        self.own_activity() == Some("") || self.facts.tags.iter().any(|tag| **tag == *LATENT)
    }

    fn member(&self, name: &str) -> Option<&JsonText> {
        self.extra
            .iter()
            .find(|(own, _)| **own == *name)
            .map(|(_, json)| json)
    }

    /// This tool with another description and other parameters, as an operator wants it shown. Its
    /// version stays that of its own definition.
    pub(crate) fn shown_as(&self, description: Arc<str>, parameters: JsonText) -> Self {
        Self {
            description,
            parameters,
            version: VersionCell::with_version(self.version()),
            ..self.clone()
        }
    }

    /// The facts, to be changed for this tool alone.
    pub fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.facts)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::NamedVersion;

    fn tool(parameters: &str, extra: &[(&str, &str)]) -> Tool {
        let extra = extra
            .iter()
            .map(|(name, json)| (Arc::from(*name), JsonText::parse(json).unwrap()));
        Tool {
            name: "wipe".into(),
            description: "Wipes a disk".into(),
            category: None,
            parameters: JsonText::parse(parameters).unwrap(),
            metadata: JsonText::parse(r#"{"tags":["a","b"]}"#).unwrap(),
            facts: Arc::default(),
            extra: extra.collect(),
            definition: None,
            version: VersionCell::default(),
        }
    }

    fn version(parameters: &str) -> DefinitionVersion {
        tool(parameters, &[]).version()
    }

    #[test]
    fn what_says_the_same_has_the_same_version() {
        let first = version(
            r#"{"type":"object","properties":{"a":{"enum":[1,2]},"b":{}},"required":["a","b"]}"#,
        );
        let same = r#"{ "required":["b","a"], "properties":{"b":{},"a":{"enum":[2,1]}}, "type":"object" }"#;
        assert_eq!(first, version(same));
        let types = [
            r#"{"items":{"type":["null","string"]}}"#,
            r#"{"items":{"type":["string","null"]}}"#,
        ];
        assert_eq!(version(types[0]), version(types[1]));
        let documents = types.map(|types| tool(types, &[]).definition_document());
        assert_eq!(documents[0], documents[1]);
        let composed = [
            r#"{"allOf":[{"required":["a","b"]}]}"#,
            r#"{"allOf":[{"required":["b","a"]}]}"#,
        ];
        assert_eq!(version(composed[0]), version(composed[1]));
        let icons = tool("{}", &[("icons", "[]"), ("_meta", "{}"), ("vendor", "1")]);
        assert_eq!(version("{}"), icons.version());
    }

    #[test]
    fn what_says_something_else_has_another_version() {
        for (one, other) in [
            (r#"{"required":["a"]}"#, r#"{"required":["a","a"]}"#),
            (
                r#"{"default":{"required":["a","b"]}}"#,
                r#"{"default":{"required":["b","a"]}}"#,
            ),
            (r#"{"const":["a","b"]}"#, r#"{"const":["b","a"]}"#),
            (
                r#"{"prefixItems":[{"type":"null"},{}]}"#,
                r#"{"prefixItems":[{},{"type":"null"}]}"#,
            ),
            (r#"{"enum":[["a","b"]]}"#, r#"{"enum":[["b","a"]]}"#),
            // A property that is called like a keyword.
            (
                r#"{"properties":{"enum":{"const":[1,2]}}}"#,
                r#"{"properties":{"enum":{"const":[2,1]}}}"#,
            ),
        ] {
            assert_ne!(version(one), version(other), "{one} {other}");
        }
        let plain = version("{}");
        for member in ["title", "annotations", "outputSchema"] {
            assert_ne!(plain, tool("{}", &[(member, "{}")]).version(), "{member}");
        }
    }

    #[test]
    fn a_version_is_named_short_or_whole() {
        let version = version("{}");
        for text in [
            version.short(),
            version.to_string(),
            version.to_string().to_uppercase(),
        ] {
            assert!(
                text.parse::<NamedVersion>().unwrap().names(version),
                "{text}"
            );
        }
        assert!(
            !"0".repeat(32)
                .parse::<NamedVersion>()
                .unwrap()
                .names(version)
        );
        for text in ["", "12", &version.to_string()[..40], &"g".repeat(32)] {
            assert!(text.parse::<NamedVersion>().is_err(), "{text}");
        }
    }
}
