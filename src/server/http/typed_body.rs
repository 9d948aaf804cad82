//! Bodies that are one JSON object each, read into the type that describes them in the document of
//! the API.
//!
//! What does not fit is explained with the schema of the type: the member that is unknown, missing
//! or has a wrong value, and what is allowed there. So a refusal says what the document says. Knows
//! no route.

use std::fmt;

use axum::extract::{FromRequest, Request};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::calls::argument_form;
use crate::json::members::MemberTexts;
use crate::model::JsonText;
use crate::server::http::body::RawBody;
use crate::server::http::error::{Problem, excerpt};

/// A body that was read into its type. No object in it has two members with the same name.
#[derive(Debug)]
pub(in crate::server) struct ApiJson<T>(pub(in crate::server) T);

/// Why a body cannot be read.
#[derive(Debug)]
pub(in crate::server) struct InvalidBody {
    /// The reason for the client.
    detail: String,
    /// The members that are known, if others are in the body.
    known: Vec<String>,
    /// The others.
    unknown: Vec<String>,
}

impl<S: Send + Sync, T: DeserializeOwned + JsonSchema> FromRequest<S> for ApiJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(body) = RawBody::from_request(request, state).await?;
        Ok(Self(parse_strict_body(&body)?))
    }
}

/// Reads a body in which no object has two members with the same name.
pub(in crate::server) fn parse_strict_body<'a, T>(body: &'a [u8]) -> Result<T, InvalidBody>
where
    T: Deserialize<'a> + JsonSchema,
{
    let read = parse_body(body)?;
    match form_flaw(utf8(body)?) {
        None => Ok(read),
        Some(flaw) => Err(flaw),
    }
}

/// Reads a body. Of what its type does not know, only the syntax is looked at.
pub(in crate::server) fn parse_body<'a, T>(body: &'a [u8]) -> Result<T, InvalidBody>
where
    T: Deserialize<'a> + JsonSchema,
{
    // An array is refused: serde would take it as the members in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let read = if is_object {
        serde_json::from_slice(body).ok()
    } else {
        None
    };
    read.ok_or_else(|| explain::<T>(body))
}

/// The text of a body that is a JSON object.
fn json_object(body: &[u8]) -> Result<&str, InvalidBody> {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        return Err(InvalidBody::new(format!("the body is not JSON: {error}")));
    }
    let text = utf8(body)?.trim();
    if text.starts_with('{') {
        return Ok(text);
    }
    Err(InvalidBody::new(format!(
        "the body must be a JSON object, got `{}`",
        excerpt(text)
    )))
}

fn utf8(body: &[u8]) -> Result<&str, InvalidBody> {
    std::str::from_utf8(body)
        .map_err(|error| InvalidBody::new(format!("the body could not be read: {error}")))
}

/// The refusal of equal members and of deep nesting.
fn form_flaw(object: &str) -> Option<InvalidBody> {
    let flaw = argument_form::flaw(&JsonText::known(object))?;
    Some(InvalidBody::new(format!(
        "the body: {}: {}",
        flaw.pointer, flaw.message
    )))
}

/// Why a body is no `T`.
fn explain<'a, T>(body: &'a [u8]) -> InvalidBody
where
    T: Deserialize<'a> + JsonSchema,
{
    let text = match json_object(body) {
        Ok(text) => text,
        Err(invalid) => return invalid,
    };
    if let Some(flaw) = form_flaw(text) {
        return flaw;
    }
    let members = MemberTexts::parse(text).unwrap_or_default();
    let schema = schema_of::<T>();
    if let Some(invalid) =
        unknown_members(&members, &schema).or_else(|| missing_member(&members, &schema))
    {
        return invalid;
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => wrong_value(error.path(), &members, &schema)
            .unwrap_or_else(|| InvalidBody::new(format!("the body cannot be read: {error}"))),
        Ok(_) => InvalidBody::new("the body cannot be read".to_owned()),
    }
}

/// The schema of a type as in the document of the API, with the schemas of its members in it.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

fn unknown_members(members: &MemberTexts<'_>, schema: &Value) -> Option<InvalidBody> {
    if schema["additionalProperties"] != false {
        return None;
    }
    let known: Vec<String> = schema["properties"].as_object()?.keys().cloned().collect();
    let unknown: Vec<String> = members
        .names()
        .filter(|name| known.iter().all(|known| known != name))
        .map(str::to_owned)
        .collect();
    let first = unknown.first()?;
    let detail = format!(
        "unknown member `{}` in the body: known are {}",
        excerpt(first),
        known.join(", ")
    );
    Some(InvalidBody {
        detail,
        known,
        unknown,
    })
}

fn missing_member(members: &MemberTexts<'_>, schema: &Value) -> Option<InvalidBody> {
    let mut required = schema["required"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    let missing = required.find(|name| members.get(name).is_none())?;
    let allowed = allowed(&schema["properties"][missing]);
    Some(InvalidBody::new(format!(
        "`{missing}` is missing from the body: write {allowed}"
    )))
}

/// The refusal of the value at a path.
fn wrong_value(path: &Path, members: &MemberTexts<'_>, schema: &Value) -> Option<InvalidBody> {
    let mut segments = path.iter();
    let Some(Segment::Map { key }) = segments.next() else {
        return None;
    };
    let mut schema = &schema["properties"][key.as_str()];
    let mut value = members.get(key)?.to_owned();
    for segment in segments {
        let within: Value = serde_json::from_str(&value).ok()?;
        let below = match segment {
            Segment::Map { key } => {
                schema = &schema["properties"][key.as_str()];
                within.get(key)
            }
            Segment::Seq { index } => {
                schema = &schema["items"];
                within.get(index)
            }
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        value = below?.to_string();
    }
    let allowed = allowed(schema);
    Some(InvalidBody::new(format!(
        "`{path}` cannot be `{}`: allowed is {allowed}",
        excerpt(&value)
    )))
}

/// What a schema allows, in words.
fn allowed(schema: &Value) -> String {
    let mut words = allowed_words(schema);
    let last = words.pop().unwrap_or_else(|| "any JSON".to_owned());
    if words.is_empty() {
        last
    } else {
        format!("{} or {last}", words.join(", "))
    }
}

fn allowed_words(schema: &Value) -> Vec<String> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect();
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().flat_map(allowed_words).collect();
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.as_slice(),
        one => std::slice::from_ref(one),
    };
    types
        .iter()
        .filter_map(Value::as_str)
        .flat_map(|name| words_of_type(name, schema))
        .collect()
}

fn words_of_type(name: &str, schema: &Value) -> Vec<String> {
    let words = match name {
        "boolean" => return vec!["true".to_owned(), "false".to_owned()],
        "string" => match (schema["minLength"].as_u64(), schema["maxLength"].as_u64()) {
            (_, Some(most)) => format!("a text of at most {most} characters"),
            (Some(1..), None) => "a text that is not empty".to_owned(),
            (_, None) => "a text".to_owned(),
        },
        "integer" => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
            (Some(least), None) => format!("a whole number from {least} on"),
            (None, _) => "a whole number".to_owned(),
        },
        "number" => "a number".to_owned(),
        "array" => format!("a list, each entry {}", allowed(&schema["items"])),
        "object" => "an object".to_owned(),
        other => other.to_owned(),
    };
    vec![words]
}

impl InvalidBody {
    fn new(detail: String) -> Self {
        Self {
            detail,
            known: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// The members that the type does not know.
    pub(in crate::server) fn unknown(&self) -> &[String] {
        &self.unknown
    }
}

impl fmt::Display for InvalidBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<InvalidBody> for Problem {
    fn from(invalid: InvalidBody) -> Self {
        let problem = Self::bad_request(invalid.detail);
        if invalid.known.is_empty() {
            problem
        } else {
            problem.with_member("known", invalid.known)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Order<'a> {
        #[schemars(length(min = 1))]
        name: String,
        count: u8,
        #[schemars(skip_serializing_if = "Option::is_none")]
        paid: Option<bool>,
        #[schemars(skip_serializing_if = "Option::is_none")]
        notes: Option<Vec<String>>,
        #[serde(borrow)]
        #[schemars(skip_serializing_if = "Option::is_none", with = "Option<Value>")]
        raw: Option<&'a RawValue>,
    }

    fn refused(body: &[u8]) -> String {
        parse_strict_body::<Order<'_>>(body)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_fits_is_read_and_raw_members_keep_their_text() {
        let order: Order<'_> =
            parse_strict_body(br#" {"name":"a","count":2,"raw": 1e999 } "#).unwrap();
        assert_eq!(order.name, "a");
        assert_eq!(order.count, 2);
        assert_eq!(order.paid, None);
        assert_eq!(order.raw.unwrap().get(), "1e999");
        assert!(order.notes.is_none());
    }

    #[test]
    fn a_refusal_names_the_member_and_what_is_allowed() {
        let unknown = parse_body::<Order<'_>>(br#"{"nam":"a","x":1}"#).unwrap_err();
        assert_eq!(unknown.unknown(), ["nam", "x"]);
        for (body, expected) in [
            (
                r#"{"nam":"a"}"#,
                "unknown member `nam` in the body: known are name, count, paid, notes, raw",
            ),
            (
                r#"{"count":1}"#,
                "`name` is missing from the body: write a text that is not empty",
            ),
            (
                r#"{"name":7,"count":1}"#,
                "`name` cannot be `7`: allowed is a text that is not empty",
            ),
            (
                r#"{"name":"a","count":300}"#,
                "`count` cannot be `300`: allowed is a whole number from 0 to 255",
            ),
            (
                r#"{"name":"a","count":1,"paid":"yes"}"#,
                "`paid` cannot be `\"yes\"`: allowed is true, false or null",
            ),
            (
                r#"{"name":"a","count":1,"notes":["b",{}]}"#,
                "`notes[1]` cannot be `{}`: allowed is a text",
            ),
            (
                r#"{"name":"a","count":1,"notes":0}"#,
                "`notes` cannot be `0`: allowed is a list, each entry a text or null",
            ),
            ("[1]", "the body must be a JSON object, got `[1]`"),
            (
                r#"{"name":"a","count":1,"raw":{"b":1,"b":2}}"#,
                "the body: /raw/b: is given more than once",
            ),
            (
                r#"{"name":"a","name":"b"}"#,
                "the body: /name: is given more than once",
            ),
        ] {
            assert!(
                refused(body.as_bytes()).starts_with(expected),
                "{body}: {}",
                refused(body.as_bytes())
            );
        }
        for body in [&b""[..], b"{", b"{} {}", b"\xff"] {
            assert!(
                refused(body).starts_with("the body is not JSON: "),
                "{}",
                refused(body)
            );
        }
    }
}
