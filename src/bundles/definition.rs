//! What stands in the files of a bundle: `bundle.json`, and one file for each version of a tool.
//!
//! A file is kept as the text of its document: a member that is not known here stays when another
//! one changes, and neither of it nor of a schema is there ever a tree. `createdAt` is the time of
//! the first insertion. `modifiedAt` changes with the content, and not when something is switched
//! on or off.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::document_members::{DocumentError, DocumentMembers};
use super::http_tool::{HttpTool, joined};
use super::{
    BuiltInTool, BundleError, BundleSettings, Slug, StoredDocument, ToolAuth, ToolVersion,
};
use crate::json::layout::compact;
use crate::json::members::MemberTexts;
use crate::model::JsonText;
use crate::model::text::hexadecimal;

/// The version of the schema of these files.
pub const SCHEMA_VERSION: &str = "2025-07-01";

/// Characters of a display name or a description, and labels of one tool, at most.
const TEXT_MAX: usize = 10_000;
const TAGS_MAX: usize = 100;
/// Bytes of memory that a bundle, a tool, or a text of its own in one takes beside its characters,
/// at most.
const DEFINITION_BYTES: usize = 1024;
const TEXT_BYTES: usize = 64;

/// The members of `bundle.json` that are read.
const BUNDLE_MEMBERS: [&str; 11] = [
    "schemaVersion",
    "id",
    "slug",
    "displayName",
    "description",
    "isEnabled",
    "isBuiltIn",
    "createdAt",
    "modifiedAt",
    IMPORTED_AT,
    "softDeletedAt",
];
/// The member of `bundle.json` that an import writes, and that archives do not have.
pub(super) const IMPORTED_AT: &str = "importedAt";
/// The members of a tool that are read as trees; its schemas stay texts.
const TOOL_MEMBERS: [&str; 16] = [
    "schemaVersion",
    "bundleID",
    "toolID",
    "id",
    "slug",
    "version",
    "displayName",
    "description",
    "tags",
    "isEnabled",
    "createdAt",
    "modifiedAt",
    "type",
    "impl",
    "httpImpl",
    "goImpl",
];

/// A bundle, without its tools.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleDefinition {
    /// Its identity, a UUID of version 7.
    pub id: Uuid,
    /// Its short name; others may have the same.
    pub slug: Slug,
    /// For people.
    pub display_name: String,
    /// For people; may be empty.
    pub description: String,
    /// Whether its tools can be used.
    pub is_enabled: bool,
    /// Whether it is a part of the program, so that only `is_enabled` can change.
    pub is_built_in: bool,
    /// When it was inserted.
    pub created_at: Timestamp,
    /// When its content was changed last.
    pub modified_at: Timestamp,
    /// When it came here in an archive.
    pub imported_at: Option<Timestamp>,
    /// When it was deleted; it is removed for good later, if it is still empty then.
    pub soft_deleted_at: Option<Timestamp>,
    /// The whole document.
    pub document: StoredDocument,
}

/// One version of a tool.
#[derive(Debug, Clone)]
pub struct StoredTool {
    /// Its identity, a UUID of version 7; a file that was written by hand may have none.
    pub id: Option<Uuid>,
    /// Its short name.
    pub slug: Slug,
    /// Its version.
    pub version: ToolVersion,
    /// For people.
    pub display_name: String,
    /// For models and people; may be empty.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether it can be used, where no preference says otherwise.
    pub is_enabled: bool,
    /// The JSON Schema of its arguments, an object schema.
    pub arg_schema: JsonText,
    /// The names of the parameters that the schema declares.
    pub declared: BTreeSet<String>,
    /// Whether the schema refuses all other parameters.
    pub is_closed: bool,
    /// The JSON Schema of its results, if it has one.
    pub output_schema: Option<JsonText>,
    /// What runs it.
    pub implementation: ToolImplementation,
    /// When it was inserted.
    pub created_at: Timestamp,
    /// When its content was changed last.
    pub modified_at: Timestamp,
    /// A digest (SHA-256) of what runs it. Its list has it, so that the approval of a call counts
    /// for this request alone.
    pub implementation_digest: String,
    /// The bytes of memory that it takes, estimated from above; `bundles.max_bytes` limits them.
    pub bytes: usize,
    /// The whole document.
    pub document: StoredDocument,
    /// The file that it was read from; empty for one that is a part of the program.
    pub file: PathBuf,
}

/// What runs a tool.
#[derive(Debug, Clone)]
pub enum ToolImplementation {
    /// `http`: a request.
    Http(Arc<HttpTool>),
    /// `go`: a function of the embedding program, by its qualified name.
    Function(String),
    /// A part of the program.
    BuiltIn(BuiltInTool),
}

/// Equal documents are equal tools.
impl PartialEq for StoredTool {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document && self.file == other.file
    }
}

impl BundleDefinition {
    /// Reads `bundle.json`.
    pub fn parse(document: StoredDocument) -> Result<Self, DocumentError> {
        let object = document.members(&BUNDLE_MEMBERS)?;
        let members = DocumentMembers {
            object: &object,
            pointer: "",
        };
        schema_version(members)?;
        let (created_at, modified_at) = times(members)?;
        Ok(Self {
            id: uuid(members, "id")?.ok_or_else(|| members.wrong("id", "is missing"))?,
            slug: members
                .required_text("slug")?
                .parse()
                .map_err(|error| wrong_name(members, "slug", &error))?,
            display_name: short(
                members,
                "displayName",
                members.required_text("displayName")?,
            )?,
            description: short(
                members,
                "description",
                members.text("description")?.unwrap_or_default(),
            )?,
            is_enabled: members.switch("isEnabled", true)?,
            is_built_in: members.switch("isBuiltIn", false)?,
            created_at,
            modified_at,
            imported_at: members
                .get(IMPORTED_AT)
                .map(|_| time(members, IMPORTED_AT))
                .transpose()?,
            soft_deleted_at: members
                .get("softDeletedAt")
                .map(|_| time(members, "softDeletedAt"))
                .transpose()?,
            document,
        })
    }

    /// Since when it is here, as far as this folder knows: an archive may say any time of its
    /// making.
    pub(super) fn here_since(&self) -> Timestamp {
        self.imported_at.unwrap_or(self.created_at)
    }

    /// The bytes of memory that it takes without its tools.
    pub fn bytes(&self) -> usize {
        self.document.get().len()
            + self.display_name.len()
            + self.description.len()
            + DEFINITION_BYTES
    }
}

impl StoredTool {
    /// Reads the document of a tool of this bundle.
    pub fn parse(document: StoredDocument, bundle: Uuid) -> Result<Self, DocumentError> {
        let object = document.members(&TOOL_MEMBERS)?;
        let members = DocumentMembers {
            object: &object,
            pointer: "",
        };
        schema_version(members)?;
        if uuid(members, "bundleID")?.is_some_and(|named| named != bundle) {
            return Err(members.wrong(
                "bundleID",
                format!("is not the id of its bundle, `{bundle}`"),
            ));
        }
        let (created_at, modified_at) = times(members)?;
        let ArgSchema {
            text: arg_schema,
            declared,
            is_closed,
        } = ArgSchema::read(&document)?;
        let output_schema = schema(&document, "outputSchema")?
            .filter(|schema| schema != "{}")
            .map(JsonText::known);
        let tool = Self {
            id: uuid(
                members,
                if members.get("toolID").is_some() {
                    "toolID"
                } else {
                    "id"
                },
            )?,
            slug: members
                .required_text("slug")?
                .parse()
                .map_err(|error| wrong_name(members, "slug", &error))?,
            version: members
                .required_text("version")?
                .parse()
                .map_err(|error| wrong_name(members, "version", &error))?,
            display_name: short(
                members,
                "displayName",
                members.required_text("displayName")?,
            )?,
            description: short(
                members,
                "description",
                members.text("description")?.unwrap_or_default(),
            )?,
            tags: tags(members)?,
            is_enabled: members.switch("isEnabled", true)?,
            bytes: 0,
            declared,
            is_closed,
            arg_schema,
            output_schema,
            implementation: implementation(members)?,
            created_at,
            modified_at,
            implementation_digest: implementation_digest(&object),
            document,
            file: PathBuf::new(),
        };
        Ok(Self {
            bytes: tool.held_bytes(),
            ..tool
        })
    }

    /// The bytes of memory that it takes, estimated from above.
    fn held_bytes(&self) -> usize {
        let texts = self
            .declared
            .iter()
            .chain(&self.tags)
            .map(|text| text.len() + TEXT_BYTES)
            .sum::<usize>();
        let schemas = self.arg_schema.get().len()
            + self
                .output_schema
                .as_ref()
                .map_or(0, |schema| schema.get().len());
        let implementation = match &self.implementation {
            ToolImplementation::Http(http) => http.held_bytes(),
            ToolImplementation::Function(name) => name.len(),
            ToolImplementation::BuiltIn(_) => 0,
        };
        let shown = self.display_name.len() + self.description.len();
        self.document.get().len() + shown + texts + schemas + implementation + DEFINITION_BYTES
    }

    /// Refuses a host that its requests may not go to.
    pub(super) fn check_hosts(&self, settings: &BundleSettings) -> Result<(), BundleError> {
        let ToolImplementation::Http(http) = &self.implementation else {
            return Ok(());
        };
        let token_url = match &http.auth {
            Some(ToolAuth::OAuth { token_url, .. }) => Some(("/impl/auth/tokenUrl", token_url)),
            _ => None,
        };
        let mut urls = [("/impl/urlTemplate", http.url.origin())]
            .into_iter()
            .chain(token_url);
        match urls.find(|(_, url)| !settings.admits(url)) {
            None => Ok(()),
            Some((pointer, url)) => Err(BundleError::HostNotAllowed {
                pointer,
                host: url.host_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Its name as a tool of its scenario. A slug has no `_`, so no two versions share a name.
    pub fn name(&self) -> String {
        tool_name(&self.slug, &self.version)
    }
}

/// A digest (SHA-256) of the members that say what runs a tool.
fn implementation_digest(document: &Map<String, Value>) -> String {
    let parts = ["type", "impl", "httpImpl", "goImpl"].map(|name| document.get(name));
    let digest = Sha256::digest(json!(parts).to_string());
    format!("sha256:{}", hexadecimal(&digest))
}

/// The name of a version of a tool, as a tool of its scenario.
pub fn tool_name(slug: &Slug, version: &ToolVersion) -> String {
    format!("{slug}_{version}")
}

/// What runs a tool: `impl` by its `type`, or the members of the original's programs.
fn implementation(members: DocumentMembers<'_>) -> Result<ToolImplementation, DocumentError> {
    match members.required_text("type")? {
        "http" => {
            let original = members.object("httpImpl")?.map(joined);
            let ((Some(object), _) | (None, Some(object))) = (members.object("impl")?, &original)
            else {
                return Err(members.wrong("impl", "is missing"));
            };
            Ok(ToolImplementation::Http(Arc::new(HttpTool::read(
                DocumentMembers {
                    object,
                    pointer: "/impl",
                },
            )?)))
        }
        "go" => {
            let (object, name) = match members.object("impl")? {
                Some(object) => (object, "goFunc"),
                None => (
                    members
                        .object("goImpl")?
                        .ok_or_else(|| members.wrong("impl", "is missing"))?,
                    "func",
                ),
            };
            let members = DocumentMembers {
                object,
                pointer: "/impl",
            };
            members.refuse_others(&[name])?;
            Ok(ToolImplementation::Function(
                members.required_text(name)?.to_owned(),
            ))
        }
        _ => Err(members.wrong("type", "is neither `http` nor `go`")),
    }
}

fn schema_version(members: DocumentMembers<'_>) -> Result<(), DocumentError> {
    match members.required_text("schemaVersion")? {
        SCHEMA_VERSION => Ok(()),
        _ => Err(members.wrong(
            "schemaVersion",
            format!("is not `{SCHEMA_VERSION}`, the only version that is read"),
        )),
    }
}

fn wrong_name(
    members: DocumentMembers<'_>,
    name: &str,
    error: &super::InvalidSlug,
) -> DocumentError {
    members.wrong(name, format!("cannot be used: {error}"))
}

/// A UUID of version 7.
fn uuid(members: DocumentMembers<'_>, name: &str) -> Result<Option<Uuid>, DocumentError> {
    let read = |text: &str| {
        text.parse()
            .ok()
            .filter(|id: &Uuid| id.get_version_num() == 7)
    };
    let text = members.text(name)?;
    text.map(|text| read(text).ok_or_else(|| members.wrong(name, "is not a UUID of version 7")))
        .transpose()
}

fn time(members: DocumentMembers<'_>, name: &str) -> Result<Timestamp, DocumentError> {
    let text = members.required_text(name)?;
    text.parse().map_err(|_| {
        members.wrong(
            name,
            "is not a time such as `2024-05-14T13:44:00Z` (RFC 3339)",
        )
    })
}

/// `createdAt` and `modifiedAt`.
fn times(members: DocumentMembers<'_>) -> Result<(Timestamp, Timestamp), DocumentError> {
    let created = time(members, "createdAt")?;
    Ok((
        created,
        if members.get("modifiedAt").is_some() {
            time(members, "modifiedAt")?
        } else {
            created
        },
    ))
}

fn short(members: DocumentMembers<'_>, name: &str, text: &str) -> Result<String, DocumentError> {
    if text.chars().count() > TEXT_MAX {
        return Err(members.wrong(name, format!("is longer than {TEXT_MAX} characters")));
    }
    Ok(text.to_owned())
}

fn tags(members: DocumentMembers<'_>) -> Result<Vec<String>, DocumentError> {
    let wrong = || {
        members.wrong(
            "tags",
            format!("is not a list of at most {TAGS_MAX} texts of 1 to 64 characters"),
        )
    };
    let listed = members.list("tags")?;
    let tag = |tag: &Value| {
        tag.as_str()
            .filter(|tag| (1..=64).contains(&tag.chars().count()))
            .map(str::to_owned)
    };
    let tags: Option<Vec<String>> = listed.iter().map(tag).collect();
    tags.filter(|tags| tags.len() <= TAGS_MAX).ok_or_else(wrong)
}

/// The text of a member that is a schema, without blanks: an object, or the text of one.
fn schema(document: &StoredDocument, name: &str) -> Result<Option<String>, DocumentError> {
    let members = document.member_texts();
    let Some(text) = members.get(name).filter(|text| *text != "null") else {
        return Ok(None);
    };
    let quoted: Option<String> = serde_json::from_str(text).ok();
    let text = quoted.as_deref().unwrap_or(text);
    match MemberTexts::parse(text) {
        Ok(_) => Ok(Some(compact(text))),
        Err(_) => Err(refused_schema(name, "is not a JSON Schema object")),
    }
}

fn refused_schema(name: &str, message: &str) -> DocumentError {
    DocumentError {
        pointer: format!("/{name}"),
        message: message.to_owned(),
    }
}

/// The schema of the arguments, with the members that every list of tools needs.
struct ArgSchema {
    text: JsonText,
    /// The names of the parameters.
    declared: BTreeSet<String>,
    /// Whether it refuses all other parameters.
    is_closed: bool,
}

impl ArgSchema {
    fn read(document: &StoredDocument) -> Result<Self, DocumentError> {
        let wrong = |message| refused_schema("argSchema", message);
        let text = schema(document, "argSchema")?.unwrap_or_else(|| "{}".to_owned());
        let members = MemberTexts::parse(&text).unwrap_or_default();
        let kind = members.get("type");
        if kind.is_some_and(|kind| {
            serde_json::from_str::<String>(kind).ok().as_deref() != Some("object")
        }) {
            return Err(wrong("is not the schema of an object"));
        }
        let properties = members.get("properties");
        let declared = MemberTexts::parse(properties.unwrap_or("{}"));
        let declared = declared.map_err(|_| wrong("has `properties` that are no object"))?;
        let further = [
            ("type", kind, "\"object\""),
            ("properties", properties, "{}"),
        ];
        let mut whole = text.strip_suffix('}').unwrap_or(&text).to_owned();
        for (name, written, default) in further {
            if written.is_none() {
                let comma = if whole.len() > 1 { "," } else { "" };
                whole.extend([comma, "\"", name, "\":", default]);
            }
        }
        whole.push('}');
        Ok(Self {
            declared: declared.names().map(str::to_owned).collect(),
            is_closed: members.get("additionalProperties") == Some("false"),
            text: JsonText::known(whole),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An approval counts for the implementation that it was given for.
    #[test]
    fn every_member_that_says_what_runs_a_tool_is_in_its_digest() {
        let digest = |document: Value| implementation_digest(document.as_object().unwrap());
        let tool = json!({"slug": "pay", "type": "http", "impl": {"a": 1}, "httpImpl": {"a": 1}, "goImpl": {"a": 1}});
        for member in ["type", "impl", "httpImpl", "goImpl"] {
            let mut other = tool.clone();
            other[member] = json!({"a": 2});
            assert_ne!(digest(tool.clone()), digest(other), "{member}");
        }
        let mut renamed = tool.clone();
        renamed["slug"] = "pays".into();
        assert_eq!(digest(tool), digest(renamed));
    }
}
