//! The documents that changes store: what a client sent, with what the store adds.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::{NoContext, Uuid};

use super::definition::{IMPORTED_AT, SCHEMA_VERSION};
use super::document_members::{DocumentError, DocumentMembers};
use super::{BundleDefinition, BundleError, Slug, StoredDocument, StoredTool, ToolVersion};

/// The content of a bundle, as a client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleChange {
    slug: Slug,
    display_name: String,
    description: String,
    is_enabled: bool,
}

/// The content of a tool, as a client sent it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolContent(Map<String, Value>);

/// The members that a client may send of a tool, in the order of the file.
const TOOL_MEMBERS: [&str; 11] = [
    "displayName",
    "description",
    "tags",
    "type",
    "isEnabled",
    "argSchema",
    "outputSchema",
    "impl",
    "httpImpl",
    "goImpl",
    "schemaVersion",
];

/// Members of what a daemon shows of a tool that it sets itself. A client that sends back what it
/// got may send them; they are not used.
const TOOL_OWN_MEMBERS: [&str; 13] = [
    "toolID",
    "id",
    "bundleID",
    "slug",
    "version",
    "isBuiltIn",
    "createdAt",
    "modifiedAt",
    "tool",
    "leftOut",
    "preferredEnabled",
    "callCount",
    "lastCalledAt",
];

/// The members that a client may send of a bundle.
const BUNDLE_MEMBERS: [&str; 4] = ["slug", "displayName", "isEnabled", "description"];
/// Those of a bundle that a daemon sets itself.
const BUNDLE_OWN_MEMBERS: [&str; 8] = [
    "schemaVersion",
    "id",
    "isBuiltIn",
    "createdAt",
    "modifiedAt",
    IMPORTED_AT,
    "softDeletedAt",
    "scenario",
];

impl BundleChange {
    /// Reads `{slug, displayName, isEnabled, description}`.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, DocumentError> {
        let members = DocumentMembers {
            object: body,
            pointer: "",
        };
        members.refuse_others_but(&BUNDLE_OWN_MEMBERS, &BUNDLE_MEMBERS)?;
        if members
            .text("schemaVersion")?
            .is_some_and(|version| version != SCHEMA_VERSION)
        {
            return Err(members.wrong("schemaVersion", format!("is not `{SCHEMA_VERSION}`")));
        }
        let slug = members.required_text("slug")?;
        Ok(Self {
            slug: slug
                .parse()
                .map_err(|error| members.wrong("slug", format!("cannot be used: {error}")))?,
            display_name: members.required_text("displayName")?.to_owned(),
            description: members.text("description")?.unwrap_or_default().to_owned(),
            is_enabled: members.switch("isEnabled", true)?,
        })
    }

    /// The bundle with this content. What is replaced keeps `createdAt`, and `modifiedAt` too where
    /// only `isEnabled` differs.
    pub(super) fn applied(
        &self,
        id: Uuid,
        before: Option<&BundleDefinition>,
        now: Timestamp,
    ) -> Result<BundleDefinition, BundleError> {
        let same = before.filter(|before| {
            before.slug == self.slug
                && before.display_name == self.display_name
                && before.description == self.description
        });
        let created = before.map_or(now, |before| before.created_at);
        let modified = same.map_or(now, |before| before.modified_at);
        let members = [
            ("schemaVersion", json!(SCHEMA_VERSION)),
            ("id", json!(id)),
            ("slug", json!(self.slug.as_str())),
            ("displayName", json!(self.display_name)),
            ("description", json!(self.description)),
            ("isEnabled", json!(self.is_enabled)),
            ("isBuiltIn", json!(false)),
            ("createdAt", time(created)),
            ("modifiedAt", time(modified)),
        ];
        let document = match before {
            Some(before) => before
                .document
                .with(&members.map(|(name, value)| (name, Some(value.to_string()))))?,
            None => StoredDocument::from_members(
                &members
                    .map(|(name, value)| (name.to_owned(), value))
                    .into_iter()
                    .collect(),
            )?,
        };
        Ok(BundleDefinition::parse(document)?)
    }
}

impl StoredTool {
    /// What a client sends to store it again, with its slug and version.
    pub fn content(&self) -> Map<String, Value> {
        let document = self.document.member_texts();
        let names = ["slug", "version"]
            .into_iter()
            .chain(TOOL_MEMBERS)
            .filter(|name| *name != "schemaVersion");
        let read = |name: &str| serde_json::from_str(document.get(name)?).ok();
        names
            .filter_map(|name| Some((name.to_owned(), read(name)?)))
            .collect()
    }
}

impl ToolContent {
    /// Reads what a client sent.
    pub fn parse(body: Map<String, Value>) -> Result<Self, DocumentError> {
        let members = DocumentMembers {
            object: &body,
            pointer: "",
        };
        members.refuse_others_but(&TOOL_OWN_MEMBERS, &TOOL_MEMBERS)?;
        Ok(Self(body))
    }

    /// The new tool with this content.
    pub(super) fn inserted(
        &self,
        bundle: Uuid,
        slug: &Slug,
        version: &ToolVersion,
        now: Timestamp,
    ) -> Result<StoredTool, BundleError> {
        let mut document = Map::new();
        document.insert("schemaVersion".to_owned(), json!(SCHEMA_VERSION));
        document.insert("toolID".to_owned(), json!(new_id(now)));
        document.insert("bundleID".to_owned(), json!(bundle));
        document.insert("slug".to_owned(), json!(slug.as_str()));
        document.insert("version".to_owned(), json!(version.as_str()));
        for name in TOOL_MEMBERS {
            if let Some(value) = self.0.get(name).filter(|value| !value.is_null()) {
                document.insert(name.to_owned(), value.clone());
            }
        }
        document.entry("isEnabled").or_insert(Value::Bool(true));
        document.insert("isBuiltIn".to_owned(), Value::Bool(false));
        document.insert("createdAt".to_owned(), time(now));
        document.insert("modifiedAt".to_owned(), time(now));
        for name in ["argSchema", "outputSchema"] {
            // A text of a schema is stored as the schema.
            let schema = document
                .get(name)
                .and_then(Value::as_str)
                .and_then(|text| serde_json::from_str(text).ok());
            if let Some(schema) = schema {
                document.insert(name.to_owned(), schema);
            }
        }
        Ok(StoredTool::parse(
            StoredDocument::from_members(&document)?,
            bundle,
        )?)
    }
}

/// A document with another `isEnabled`, and everything else as it was.
pub(super) fn switched(
    document: &StoredDocument,
    is_enabled: bool,
) -> Result<StoredDocument, BundleError> {
    document.with(&[("isEnabled", Some(is_enabled.to_string()))])
}

/// A document of a bundle that is deleted at this time.
pub(super) fn deleted(
    document: &StoredDocument,
    now: Timestamp,
) -> Result<StoredDocument, BundleError> {
    document.with(&[("softDeletedAt", Some(time(now).to_string()))])
}

/// A document of a bundle that is no longer deleted.
pub(super) fn restored(document: &StoredDocument) -> Result<StoredDocument, BundleError> {
    document.with(&[("softDeletedAt", None)])
}

/// A time as it is written: RFC 3339, UTC, with milliseconds at most.
pub(crate) fn time(at: Timestamp) -> Value {
    let at = at.round(jiff::Unit::Millisecond).unwrap_or(at);
    json!(at.to_string())
}

/// A new UUID of version 7.
pub fn new_id(now: Timestamp) -> Uuid {
    let since = now.duration_since(Timestamp::UNIX_EPOCH).unsigned_abs();
    Uuid::new_v7(uuid::Timestamp::from_unix(
        NoContext,
        since.as_secs(),
        since.subsec_nanos(),
    ))
}
