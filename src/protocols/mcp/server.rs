//! What a server says of itself when a connection begins.
//!
//! All of it is shown, and none of it is trusted: it decides only which hints are expected.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::revision::McpRevision;
use crate::model::JsonText;

/// The most bytes of a text that a server says of itself and that is kept.
const TEXT: usize = 16 * 1024;

/// A server, as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability by itself"
)]
pub(super) struct ServerDescription {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) version: String,
    pub(super) instructions: String,
    /// Whether it signals changes of its list of tools.
    pub(super) list_changed: bool,
    /// The same of its prompts.
    pub(super) prompts_changed: bool,
    /// The same of its resources.
    pub(super) resources_changed: bool,
    /// Whether it offers prompts.
    pub(super) has_prompts: bool,
    /// Whether it offers resources.
    pub(super) has_resources: bool,
    /// Whether it signals updates of single resources.
    pub(super) updates_resources: bool,
    /// Whether it completes arguments.
    pub(super) completes: bool,
    /// Whether it offers tools at all.
    pub(super) has_tools: bool,
    /// Whether a legacy one takes the level of its log messages.
    pub(super) has_logging: bool,
    /// The ids of the daemons that its list comes through, where it is one.
    pub(super) via: Vec<String>,
}

/// The answer to `server/discover` or `initialize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) info: ServerDescription,
    /// The revision of a legacy server.
    pub(super) revision: Option<McpRevision>,
    /// The revisions of a modern server, as it wrote them.
    pub(super) supported: Option<Vec<String>>,
    /// The revision of a legacy server, as it wrote it.
    pub(super) version: Option<String>,
}

impl ServerDescription {
    /// Whether it signals changes of any of its lists.
    pub(super) fn signals_changes(&self) -> bool {
        self.list_changed || self.prompts_changed || self.resources_changed
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    protocol_version: Option<String>,
    supported_versions: Option<Vec<String>>,
    #[serde(borrow, default)]
    capabilities: Capabilities<'a>,
    #[serde(borrow)]
    server_info: Option<&'a RawValue>,
    instructions: Option<String>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "callsheet/via")]
    via: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Capabilities<'a> {
    tools: Option<ListCapability>,
    prompts: Option<ListCapability>,
    resources: Option<ListCapability>,
    #[serde(borrow)]
    logging: Option<&'a RawValue>,
    #[serde(borrow)]
    completions: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ListCapability {
    #[serde(default)]
    list_changed: bool,
    #[serde(default)]
    subscribe: bool,
}

#[derive(Deserialize, Default)]
struct Implementation {
    #[serde(default)]
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    version: String,
}

impl Greeting {
    /// Reads the answer. `None` if it is not an object, or has members of another kind.
    pub(super) fn parse(result: &JsonText) -> Option<Self> {
        let sent: Sent<'_> = serde_json::from_str(result.get()).ok()?;
        let (of_meta, via) = sent
            .meta
            .map_or((None, None), |meta| (meta.server_info, meta.via));
        let info = sent.server_info.or(of_meta);
        let info: Implementation = info
            .and_then(|info| serde_json::from_str(info.get()).ok())
            .unwrap_or_default();
        let info = ServerDescription {
            name: bounded(info.name),
            title: bounded(info.title.unwrap_or_default()),
            version: bounded(info.version),
            instructions: bounded(sent.instructions.unwrap_or_default()),
            list_changed: changes(sent.capabilities.tools.as_ref()),
            prompts_changed: changes(sent.capabilities.prompts.as_ref()),
            resources_changed: changes(sent.capabilities.resources.as_ref()),
            has_tools: sent.capabilities.tools.is_some(),
            has_logging: sent.capabilities.logging.is_some(),
            updates_resources: sent
                .capabilities
                .resources
                .as_ref()
                .is_some_and(|list| list.subscribe),
            has_prompts: sent.capabilities.prompts.is_some(),
            has_resources: sent.capabilities.resources.is_some(),
            completes: sent.capabilities.completions.is_some(),
            via: via
                .and_then(|via| serde_json::from_str(via.get()).ok())
                .unwrap_or_default(),
        };
        let revision = sent
            .protocol_version
            .as_deref()
            .and_then(McpRevision::parse);
        Some(Self {
            info,
            revision,
            supported: sent.supported_versions,
            version: sent.protocol_version,
        })
    }
}

/// Whether a notification says that a list changed.
pub(super) fn is_change(method: &str) -> bool {
    matches!(
        method,
        "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
    )
}

/// Whether changes of a list are signalled.
fn changes(capability: Option<&ListCapability>) -> bool {
    capability.is_some_and(|list| list.list_changed)
}

/// A text without what is beyond the limit.
fn bounded(text: String) -> String {
    match text.char_indices().map(|(at, _)| at).find(|at| *at >= TEXT) {
        Some(end) => Cow::from(&text[..end]).into_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_eras_describe_the_server_in_their_own_place() {
        let legacy = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},
            "serverInfo":{"name":"files","version":"1"},"instructions":"Use it."}"#;
        let greeting = Greeting::parse(&JsonText::parse(legacy).unwrap()).unwrap();
        assert_eq!(greeting.revision, Some(McpRevision::V20250618));
        let ServerDescription {
            name,
            version,
            instructions,
            list_changed,
            has_tools,
            ..
        } = greeting.info;
        assert_eq!(&*name, "files");
        assert_eq!(&*version, "1");
        assert_eq!(&*instructions, "Use it.");
        assert!(list_changed);
        assert!(has_tools && greeting.info.has_logging);

        let modern = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"git","version":"2","title":"Git"}}}"#;
        let greeting = Greeting::parse(&JsonText::parse(modern).unwrap()).unwrap();
        assert_eq!(greeting.supported.unwrap(), ["2026-07-28"]);
        assert_eq!(&*greeting.info.name, "git");
        assert_eq!(&*greeting.info.title, "Git");
        assert!(!greeting.info.list_changed && greeting.info.has_tools);
    }

    #[test]
    fn odd_answers_do_not_fail() {
        let parse = |text: &str| Greeting::parse(&JsonText::parse(text).unwrap());
        assert!(parse("[]").is_none() && parse("1").is_none());
        assert_eq!(parse("{}").unwrap().info, ServerDescription::default());
        assert_eq!(parse(r#"{"serverInfo":{"name":7}}"#).unwrap().info.name, "");
    }
}
