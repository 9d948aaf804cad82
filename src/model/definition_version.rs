//! The version of a tool's definition: a digest (SHA-256) of what its provider says the tool is.
//!
//! Equal definitions have equal versions, however they are written: the order of members and blanks
//! do not matter, and neither does the order of `required`, `enum` and lists of types in a schema,
//! which some servers emit as sets. Icons, `_meta` and members that the model does not know do not
//! count.
//!
//! The digests of manifests detect changes; this one also protects against forgery: a provider that
//! chooses two definitions must not be able to give them the same version.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::text::hexadecimal;
use crate::json::JsonText;

/// Separates these digests from every other digest of the same texts.
const SUBJECT: &str = "callsheet definition 2";

/// Separates the versions of instructions from those of tools.
const INSTRUCTIONS: &str = "callsheet instructions 1";

/// Bytes of the short form: 128 bits, since a provider that prepares two definitions finds a pair
/// with the same half of so many bits.
const SHORT_BYTES: usize = 16;

/// Bytes of a digest.
const DIGEST_BYTES: usize = 32;

/// What counts of a definition.
pub(super) struct DefinitionParts<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    /// The input schema.
    pub(super) parameters: &'a JsonText,
    /// The schema of the results.
    pub(super) output: Option<&'a JsonText>,
    pub(super) metadata: &'a JsonText,
    pub(super) title: Option<&'a JsonText>,
    pub(super) annotations: Option<&'a JsonText>,
}

impl DefinitionParts<'_> {
    /// The parts but the name as one document, for comparing two definitions of one tool. What the
    /// version ignores does not differ: lists whose order does not matter are sorted.
    pub(super) fn document(&self) -> Value {
        let schemas = [
            ("parameters", Some(self.parameters)),
            ("outputSchema", self.output),
        ];
        let data = [
            ("metadata", Some(self.metadata)),
            ("title", self.title),
            ("annotations", self.annotations),
        ];
        let mut members = Map::new();
        members.insert("description".to_owned(), self.description.into());
        for (name, json) in schemas {
            insert(&mut members, name, json, ValueRole::Schema);
        }
        for (name, json) in data {
            insert(&mut members, name, json, ValueRole::Data);
        }
        members.into()
    }
}

fn insert(members: &mut Map<String, Value>, name: &str, json: Option<&JsonText>, role: ValueRole) {
    let Some(json) = json else {
        return;
    };
    // JSON that is nested too deeply to be read is compared as its text.
    let mut value = serde_json::from_str(json.get()).unwrap_or_else(|_| json.get().into());
    sort_sets(&mut value, role);
    members.insert(name.to_owned(), value);
}

/// Puts lists whose order does not matter in one order.
fn sort_sets(value: &mut Value, role: ValueRole) {
    match value {
        Value::Array(items) if role == ValueRole::Set => items.sort_by_cached_key(Value::to_string),
        Value::Array(items) => {
            for item in items {
                sort_sets(item, role.of_item());
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                sort_sets(value, role.of_member(name));
            }
        }
        _ => {}
    }
}

/// The version of a tool's definition. Shown as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DefinitionVersion([u8; DIGEST_BYTES]);

impl DefinitionVersion {
    /// The version of a definition with these parts.
    fn from_parts(parts: &DefinitionParts<'_>) -> Self {
        let mut hash = Sha256::new();
        for text in [SUBJECT, parts.name, parts.description] {
            hash_part(&mut hash, text.as_bytes());
        }
        hash_json(&mut hash, parts.parameters, ValueRole::Schema);
        optional(&mut hash, parts.output, ValueRole::Schema);
        hash_document(&mut hash, parts.metadata);
        for json in [parts.title, parts.annotations] {
            optional(&mut hash, json, ValueRole::Data);
        }
        Self(hash.finalize().into())
    }

    /// The version of the instructions of a server.
    pub fn of_instructions(text: &str) -> Self {
        let mut hash = Sha256::new();
        for text in [INSTRUCTIONS, text] {
            hash_part(&mut hash, text.as_bytes());
        }
        Self(hash.finalize().into())
    }

    /// The short form, as lists show it.
    pub fn short(&self) -> String {
        hexadecimal(&self.0[..SHORT_BYTES])
    }
}

impl fmt::Display for DefinitionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl std::str::FromStr for DefinitionVersion {
    type Err = NotAVersion;

    /// Reads a whole version; a short one names one, and is none.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let named: NamedVersion = text.parse()?;
        let bytes = <[u8; DIGEST_BYTES]>::try_from(&*named.0).map_err(|_| NotAVersion)?;
        Ok(Self(bytes))
    }
}

/// The version of a definition as a caller names it, short or whole: its first bytes or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVersion(Box<[u8]>);

/// A text is the version of no definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a version of a definition has {} or {} hexadecimal digits", 2 * SHORT_BYTES, 2 * DIGEST_BYTES)]
pub struct NotAVersion;

impl NamedVersion {
    /// Whether it names this version.
    pub fn names(&self, version: DefinitionVersion) -> bool {
        version.0.starts_with(&self.0)
    }
}

impl std::str::FromStr for NamedVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        if text.len() != 2 * SHORT_BYTES && text.len() != 2 * DIGEST_BYTES {
            return Err(NotAVersion);
        }
        let digits: Option<Vec<u8>> = text.bytes().map(hexadecimal_digit).collect();
        let digits = digits.ok_or(NotAVersion)?;
        Ok(Self(
            digits
                .chunks(2)
                .map(|pair| pair[0] << 4 | pair[1])
                .collect(),
        ))
    }
}

impl From<DefinitionVersion> for NamedVersion {
    fn from(version: DefinitionVersion) -> Self {
        Self(Box::new(version.0))
    }
}

impl fmt::Display for NamedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

/// What follows from the definition of one tool, each part made when it is first needed: its
/// version and its signature. A clone makes its own, since it is made to be changed; it does not
/// make two tools different. The parts are apart from the tool: while a document is read, a tool
/// has none yet, and many small tools have to fit its budget.
#[derive(Default)]
pub struct VersionCell(OnceLock<Box<DerivedParts>>);

/// See [`VersionCell`].
#[derive(Default)]
struct DerivedParts {
    version: OnceLock<DefinitionVersion>,
    /// What stands behind the name in the signature.
    signature: OnceLock<Box<str>>,
}

impl VersionCell {
    /// The parts of a tool that keeps this version, whatever it shows.
    pub(super) fn with_version(version: DefinitionVersion) -> Self {
        let cell = Self::default();
        // An empty cell always takes it.
        _ = cell.parts().version.set(version);
        cell
    }

    /// The version of the definition with these parts, which are those of its tool.
    pub(super) fn version(&self, parts: &DefinitionParts<'_>) -> DefinitionVersion {
        *self
            .parts()
            .version
            .get_or_init(|| DefinitionVersion::from_parts(parts))
    }

    /// What stands behind the name in the signature of the tool; `make` writes it the first time.
    pub(crate) fn signature(&self, make: impl FnOnce() -> String) -> &str {
        self.parts()
            .signature
            .get_or_init(|| make().into_boxed_str())
    }

    fn parts(&self) -> &DerivedParts {
        self.0.get_or_init(Box::default)
    }
}

impl Clone for VersionCell {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for VersionCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for VersionCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VersionCell")
    }
}

/// The value of one hexadecimal digit.
fn hexadecimal_digit(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// Adds bytes to a digest behind their length, so that two sequences of parts never are the same
/// bytes.
pub(crate) fn hash_part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// Adds a JSON document to a digest. The order of its members and blanks do not matter; that of its
/// lists does.
pub(crate) fn hash_document(hash: &mut Sha256, json: &JsonText) {
    hash_json(hash, json, ValueRole::Data);
}

/// Adds a document that may be missing.
fn optional(hash: &mut Sha256, json: Option<&JsonText>, role: ValueRole) {
    match json {
        Some(json) => hash_json(hash, json, role),
        None => hash.update(b"-"),
    }
}

fn hash_json(hash: &mut Sha256, json: &JsonText, role: ValueRole) {
    match serde_json::from_str::<Value>(json.get()) {
        Ok(value) => canonical(hash, &value, role),
        // JSON that is nested too deeply to be read is hashed as its bytes.
        Err(_) => hash_part(hash, json.get().as_bytes()),
    }
}

/// What a value within a definition is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueRole {
    /// A schema, whose members are keywords.
    Schema,
    /// An object of schemas under names that the provider chose.
    NamedSchemas,
    /// A list whose order says no more than a set would.
    Set,
    /// Anything else.
    Data,
}

impl ValueRole {
    /// The role of a member with this name.
    fn of_member(self, name: &str) -> Self {
        match self {
            Self::NamedSchemas => Self::Schema,
            Self::Schema => Self::of_keyword(name),
            Self::Set | Self::Data => Self::Data,
        }
    }

    /// The role of the value of a keyword of JSON Schema.
    fn of_keyword(name: &str) -> Self {
        match name {
            "required" | "enum" | "type" => Self::Set,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => Self::NamedSchemas,
            "const" | "default" | "examples" | "example" => Self::Data,
            _ => Self::Schema,
        }
    }

    /// The role of an item of a list.
    fn of_item(self) -> Self {
        match self {
            // Schemas under `allOf` and the like.
            Self::Schema => Self::Schema,
            // A list of names under `dependencies`.
            Self::NamedSchemas | Self::Set | Self::Data => Self::Data,
        }
    }
}

fn canonical(hash: &mut Sha256, value: &Value, role: ValueRole) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Number(number) => {
            hash.update(b"#");
            hash_part(hash, number.to_string().as_bytes());
        }
        Value::String(text) => {
            hash.update(b"s");
            hash_part(hash, text.as_bytes());
        }
        Value::Array(items) => list(hash, items, role),
        Value::Object(members) => {
            hash.update(b"{");
            hash.update((members.len() as u64).to_be_bytes());
            for (name, value) in members.iter().collect::<BTreeMap<_, _>>() {
                hash_part(hash, name.as_bytes());
                canonical(hash, value, role.of_member(name));
            }
        }
    }
}

fn list(hash: &mut Sha256, items: &[Value], role: ValueRole) {
    hash.update(b"[");
    hash.update((items.len() as u64).to_be_bytes());
    if role != ValueRole::Set {
        for item in items {
            canonical(hash, item, role.of_item());
        }
        return;
    }
    let mut digests: Vec<[u8; DIGEST_BYTES]> = items.iter().map(digest_of).collect();
    digests.sort_unstable();
    for digest in digests {
        hash.update(digest);
    }
}

fn digest_of(item: &Value) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha256::new();
    canonical(&mut hash, item, ValueRole::Data);
    hash.finalize().into()
}
