//! What stands in the files of a bundle: `bundle.json`, and one file for each version of a tool.
//!
//! A file is kept as the text of its document: a member that is not known here stays when another
//! one changes, and no tree of it is held. `createdAt` is the time of the first insertion.
//! `modifiedAt` changes with the content, and not when something is switched on or off.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::document_members::{DocumentError, DocumentMembers};
use super::http_tool::{HttpTool, joined};
use super::{BuiltInTool, Slug, StoredDocument, ToolVersion};
use crate::model::JsonText;

/// The version of the schema of these files.
pub const SCHEMA_VERSION: &str = "2025-07-01";

/// Characters of a display name or a description, and labels of one tool, at most.
const TEXT_MAX: usize = 10_000;
const TAGS_MAX: usize = 100;
/// Bytes of memory that one value, placeholder or parameter of a tool takes beside its text, at
/// most.
const PART_BYTES: usize = 128;

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
        let object = document.members();
        let members = DocumentMembers { object: &object, pointer: "" };
        schema_version(members)?;
        let (created_at, modified_at) = times(members)?;
        Ok(Self {
            id: uuid(members, "id")?.ok_or_else(|| members.wrong("id", "is missing"))?,
            slug: members.required_text("slug")?.parse().map_err(|error| wrong_name(members, "slug", &error))?,
            display_name: short(members, "displayName", members.required_text("displayName")?)?,
            description: short(members, "description", members.text("description")?.unwrap_or_default())?,
            is_enabled: members.switch("isEnabled", true)?,
            is_built_in: members.switch("isBuiltIn", false)?,
            created_at,
            modified_at,
            soft_deleted_at: members.get("softDeletedAt").map(|_| time(members, "softDeletedAt")).transpose()?,
            document,
        })
    }

    /// The bytes of memory that it takes without its tools.
    pub fn bytes(&self) -> usize {
        self.document.get().len() + PART_BYTES
    }
}

impl StoredTool {
    /// Reads the document of a tool of this bundle.
    pub fn parse(document: StoredDocument, bundle: Uuid) -> Result<Self, DocumentError> {
        let object = document.members();
        let members = DocumentMembers { object: &object, pointer: "" };
        schema_version(members)?;
        if uuid(members, "bundleID")?.is_some_and(|named| named != bundle) {
            return Err(members.wrong("bundleID", format!("is not the id of its bundle, `{bundle}`")));
        }
        let (created_at, modified_at) = times(members)?;
        let arg_schema = arg_schema(members)?;
        let properties = arg_schema.get("properties").and_then(Value::as_object);
        let declared: BTreeSet<String> = properties.map(|names| names.keys().cloned().collect()).unwrap_or_default();
        let is_closed = arg_schema.get("additionalProperties") == Some(&Value::Bool(false));
        let arg_schema = JsonText::known(Value::Object(arg_schema).to_string());
        let output_schema = schema(members, "outputSchema")?.filter(|schema| !schema.is_empty());
        let output_schema = output_schema.map(|schema| JsonText::known(Value::Object(schema).to_string()));
        let schema_bytes = arg_schema.get().len() + output_schema.as_ref().map_or(0, |schema| schema.get().len());
        Ok(Self {
            id: uuid(members, if members.get("toolID").is_some() { "toolID" } else { "id" })?,
            slug: members.required_text("slug")?.parse().map_err(|error| wrong_name(members, "slug", &error))?,
            version: members
                .required_text("version")?
                .parse()
                .map_err(|error| wrong_name(members, "version", &error))?,
            display_name: short(members, "displayName", members.required_text("displayName")?)?,
            description: short(members, "description", members.text("description")?.unwrap_or_default())?,
            tags: tags(members)?,
            is_enabled: members.switch("isEnabled", true)?,
            bytes: document.get().len() + schema_bytes + PART_BYTES * (declared.len() + request_parts(members)),
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
        })
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
    digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Values and placeholders of a request at most, counted by the characters that begin them: a
/// template of a body is a text that is kept as a tree.
fn request_parts(members: DocumentMembers<'_>) -> usize {
    let parts = ["impl", "httpImpl"].into_iter().filter_map(|name| members.get(name));
    parts.map(|part| part.to_string().bytes().filter(|byte| b"[{,&$".contains(byte)).count()).sum()
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
            let ((Some(object), _) | (None, Some(object))) = (members.object("impl")?, &original) else {
                return Err(members.wrong("impl", "is missing"));
            };
            Ok(ToolImplementation::Http(Arc::new(HttpTool::read(DocumentMembers { object, pointer: "/impl" })?)))
        }
        "go" => {
            let (object, name) = match members.object("impl")? {
                Some(object) => (object, "goFunc"),
                None => (members.object("goImpl")?.ok_or_else(|| members.wrong("impl", "is missing"))?, "func"),
            };
            let members = DocumentMembers { object, pointer: "/impl" };
            members.refuse_others(&[name])?;
            Ok(ToolImplementation::Function(members.required_text(name)?.to_owned()))
        }
        _ => Err(members.wrong("type", "is neither `http` nor `go`")),
    }
}

fn schema_version(members: DocumentMembers<'_>) -> Result<(), DocumentError> {
    match members.required_text("schemaVersion")? {
        SCHEMA_VERSION => Ok(()),
        _ => Err(members.wrong("schemaVersion", format!("is not `{SCHEMA_VERSION}`, the only version that is read"))),
    }
}

fn wrong_name(members: DocumentMembers<'_>, name: &str, error: &super::InvalidSlug) -> DocumentError {
    members.wrong(name, format!("cannot be used: {error}"))
}

/// A UUID of version 7.
fn uuid(members: DocumentMembers<'_>, name: &str) -> Result<Option<Uuid>, DocumentError> {
    let read = |text: &str| text.parse().ok().filter(|id: &Uuid| id.get_version_num() == 7);
    let text = members.text(name)?;
    text.map(|text| read(text).ok_or_else(|| members.wrong(name, "is not a UUID of version 7"))).transpose()
}

fn time(members: DocumentMembers<'_>, name: &str) -> Result<Timestamp, DocumentError> {
    let text = members.required_text(name)?;
    text.parse().map_err(|_| members.wrong(name, "is not a time such as `2024-05-14T13:44:00Z` (RFC 3339)"))
}

/// `createdAt` and `modifiedAt`.
fn times(members: DocumentMembers<'_>) -> Result<(Timestamp, Timestamp), DocumentError> {
    let created = time(members, "createdAt")?;
    Ok((created, if members.get("modifiedAt").is_some() { time(members, "modifiedAt")? } else { created }))
}

fn short(members: DocumentMembers<'_>, name: &str, text: &str) -> Result<String, DocumentError> {
    if text.chars().count() > TEXT_MAX {
        return Err(members.wrong(name, format!("is longer than {TEXT_MAX} characters")));
    }
    Ok(text.to_owned())
}

fn tags(members: DocumentMembers<'_>) -> Result<Vec<String>, DocumentError> {
    let wrong = || members.wrong("tags", format!("is not a list of at most {TAGS_MAX} texts of 1 to 64 characters"));
    let listed = members.list("tags")?;
    let tag = |tag: &Value| tag.as_str().filter(|tag| (1..=64).contains(&tag.chars().count())).map(str::to_owned);
    let tags: Option<Vec<String>> = listed.iter().map(tag).collect();
    tags.filter(|tags| tags.len() <= TAGS_MAX).ok_or_else(wrong)
}

/// A schema, as an object or as the text of one.
fn schema(members: DocumentMembers<'_>, name: &str) -> Result<Option<Map<String, Value>>, DocumentError> {
    let wrong = || members.wrong(name, "is not a JSON Schema object");
    match members.get(name) {
        None => Ok(None),
        Some(Value::Object(schema)) => Ok(Some(schema.clone())),
        Some(Value::String(text)) => serde_json::from_str(text).map(Some).map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

/// The schema of the arguments, with the members that every list of tools needs.
fn arg_schema(members: DocumentMembers<'_>) -> Result<Map<String, Value>, DocumentError> {
    let mut schema = schema(members, "argSchema")?.unwrap_or_default();
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(members.wrong("argSchema", "is not the schema of an object"));
    }
    schema.entry("type").or_insert_with(|| "object".into());
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if !properties.is_object() {
        return Err(members.wrong("argSchema", "has `properties` that are no object"));
    }
    Ok(schema)
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
