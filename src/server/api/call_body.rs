//! The body of a call, for every route that takes one.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::calls::active::checked_id;
use crate::calls::{GivenArgumentsError, Request, Requester, parse_arguments};
use crate::model::{JsonText, NamedVersion, Permission, Scope};
use crate::protocols::LogLevel;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::params::grammar;
use crate::server::http::query;
use crate::server::http::typed_body::parse_body;

/// A call of a tool. Further members are ignored; a text that is empty or null is as good as none.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Call")]
pub(in crate::server) struct CallBody<'a> {
    /// A published name, `scenario/tool`, or a name that only one tool has.
    #[schemars(length(min = 1))]
    tool_name: String,
    /// The arguments: an object, or a text that holds one; none when absent or null.
    // As the client wrote them: numbers may be larger than any Rust number type.
    #[serde(borrow)]
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "argument_schema"
    )]
    arguments: Option<&'a RawValue>,
    /// The scenario that owns the tool; then the name may be the tool's own.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "scenario_schema"
    )]
    scenario: Option<String>,
    /// The conversation, whose preferences apply.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "chat_schema")]
    chat_id: Option<String>,
    /// The client's profile: its preferences and its limits apply.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "profile_schema"
    )]
    profile: Option<String>,
    /// The level of the client's user. It lowers that of the profile and never raises it.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "permission_schema"
    )]
    permission: Option<String>,
    /// User ID passed on to the scenario, if its protocol supports it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// The `ETag` or `revision` of the list that the name was taken from. Without it the name is
    /// looked up in the present list.
    #[schemars(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// The `definition_version` of the tool that the call was made for, short or whole. If the tool
    /// has another one now, the call is refused (409 `stale_definition`).
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "version_schema"
    )]
    definition_version: Option<String>,
    /// An id that no other call has, by which the call is followed and cancelled; one is made
    /// without it.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "call_id_schema"
    )]
    call_id: Option<String>,
    /// The least severe log messages of the tool that are wanted as events; `info` without it.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "log_level_schema"
    )]
    log_level: Option<String>,
}

fn call_id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": "^[A-Za-z0-9._-]{8,100}$"}, {"enum": ["", null]}]})
}

fn version_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "string", "pattern": "^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{64})$"},
        {"enum": ["", null]}
    ]})
}

fn log_level_schema(_: &mut SchemaGenerator) -> Schema {
    let mut known: Vec<Value> = LogLevel::ALL
        .iter()
        .map(|level| Value::from(level.as_str()))
        .collect();
    known.extend([Value::from(""), Value::Null]);
    json_schema!({"enum": known})
}

/// What other APIs call the arguments of a call.
#[derive(Deserialize)]
struct OtherNames<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

fn argument_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "string", "null"]})
}

fn scenario_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": grammar::SCENARIO}, {"enum": ["", null]}]})
}

fn profile_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": grammar::FREE}, {"type": "null"}]})
}

fn permission_schema(_: &mut SchemaGenerator) -> Schema {
    let mut known = Permission::NAMED
        .map(|level| Value::from(level.as_str()))
        .to_vec();
    known.push(Value::Null);
    json_schema!({"enum": known})
}

fn chat_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string", "pattern": grammar::FREE}, {"enum": ["", null]}]})
}

/// Parses the body of a call of this requester, without what only callers that take part give.
pub(in crate::server) fn parse_request(
    body: &[u8],
    requester: Requester,
) -> Result<Request, Problem> {
    parse_call(body, requester).map(|(request, ..)| request)
}

/// Parses the body of a call of this requester, with its id and the least severe log messages that
/// are wanted. An empty text counts as left out, but not an empty profile: it usually comes from a
/// variable that was not set, and would lift the bounds that were meant.
pub(super) fn parse_call(
    text: &[u8],
    requester: Requester,
) -> Result<(Request, Option<String>, LogLevel), Problem> {
    let body: CallBody<'_> = parse_body(text).map_err(|error| {
        Problem::from(error).and_next("a call is {\"tool_name\": ..., \"arguments\": {...}}")
    })?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    if body.profile.as_deref() == Some("") {
        let text =
            "`profile` is empty: name one of the configured profiles, or leave the member out";
        return Err(Problem::bad_request(text));
    }
    let scope = |kind: &str, text: Option<String>| -> Result<Option<String>, Problem> {
        let Some(text) = given(text) else {
            return Ok(None);
        };
        // The model has the grammar of scopes.
        format!("{kind}:{text}").parse::<Scope>()?;
        Ok(Some(text))
    };
    if body.tool_name.is_empty() {
        return Err(Problem::bad_request("`tool_name` is empty"));
    }
    let level = match given(body.log_level) {
        None => LogLevel::Info,
        Some(text) => LogLevel::parse(&text).ok_or_else(|| unknown_level(&text))?,
    };
    if body.arguments.is_none() {
        refuse_other_names(text)?;
    }
    let arguments = arguments(body.arguments)?;
    let request = Request {
        scenario: given(body.scenario).map(|name| name.parse()).transpose()?,
        chat: scope("chat", body.chat_id)?,
        profile: scope("profile", body.profile)?,
        // An empty one is refused like an empty profile.
        permission: body.permission.as_deref().map(query::level).transpose()?,
        user_id: given(body.user_id).map(Into::into),
        revision: given(body.revision),
        definition_version: given(body.definition_version)
            .map(|text| version(&text))
            .transpose()?,
        ..Request::new(body.tool_name, arguments, requester)
    };
    Ok((
        request,
        given(body.call_id).map(checked_id).transpose()?,
        level,
    ))
}

/// Refuses a call whose arguments stand under the name that another API has for them: its tool
/// would run without them.
fn refuse_other_names(body: &[u8]) -> Result<(), Problem> {
    let Ok(other) = serde_json::from_slice::<OtherNames<'_>>(body) else {
        return Ok(());
    };
    let named = [
        ("args", other.args),
        ("input", other.input),
        ("parameters", other.parameters),
        ("params", other.params),
    ];
    let Some((name, _)) = named.into_iter().find(|(_, given)| given.is_some()) else {
        return Ok(());
    };
    let text = format!("`{name}` is no member of a call");
    Err(Problem::bad_request(text).and_next("name the arguments of the tool `arguments`"))
}

fn version(text: &str) -> Result<NamedVersion, Problem> {
    text.parse().map_err(|error| {
        Problem::bad_request(format!(
            "`definition_version` cannot be `{}`: {error}",
            excerpt(text)
        ))
    })
}

fn unknown_level(text: &str) -> Problem {
    let known: Vec<&str> = LogLevel::ALL.iter().map(|level| level.as_str()).collect();
    Problem::bad_request(format!(
        "`log_level` cannot be `{}`: allowed are {}",
        excerpt(text),
        known.join(", ")
    ))
}

/// Parses the arguments, as clients and LLM vendors write them.
fn arguments(given: Option<&RawValue>) -> Result<JsonText, Problem> {
    parse_arguments(given).map_err(|error| {
        Problem::bad_request(match error {
            GivenArgumentsError::NotJson(why) => format!("`arguments` cannot be read: {why}"),
            GivenArgumentsError::NotAnObject(got) => format!(
                "`arguments` cannot be `{}`: allowed is an object, a text that holds one, or null",
                excerpt(&got)
            ),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_bodies_are_read_leniently_where_that_is_safe() {
        let parse_request = |body: &[u8]| super::parse_request(body, Requester::full_access());
        let request = parse_request(
            br#"{"tool_name":"t","chat_id":"","scenario":null,"x":1,"arguments":null}"#,
        )
        .unwrap();
        assert_eq!(
            request,
            Request::new("t", JsonText::known("{}"), Requester::full_access())
        );
        let request = parse_request(br#"{"tool_name":"t","arguments":"{\"a\":1}"}"#).unwrap();
        assert_eq!(request.arguments.get(), r#"{"a":1}"#);
        let request =
            parse_request(br#"{"tool_name":"t","arguments":{"n":123456789012345678901234567890}}"#)
                .unwrap();
        assert_eq!(
            request.arguments.get(),
            r#"{"n":123456789012345678901234567890}"#,
            "as it was written"
        );
        let all = br#"{"tool_name":"t","scenario":"s","chat_id":"7","profile":"p","user_id":"u","revision":"r"}"#;
        let request = parse_request(all).unwrap();
        assert_eq!(request.scenario.unwrap().as_str(), "s");
        assert_eq!(request.chat.as_deref(), Some("7"));
        assert_eq!(request.profile.as_deref(), Some("p"));
        assert_eq!(request.user_id.as_deref(), Some("u"));
        assert_eq!(request.revision.as_deref(), Some("r"));
    }

    #[test]
    fn what_cannot_be_a_call_is_refused() {
        for body in [
            &b"{}"[..],
            b"[]",
            br#"{"tool_name":""}"#,
            br#"{"tool_name":7}"#,
            br#"{"tool_name":"t","scenario":"a/b"}"#,
            br#"{"tool_name":"t","arguments":"{"}"#,
            br#"{"tool_name":"t","chat_id":7}"#,
            br#"{"tool_name":"t","args":{"a":1}}"#,
            br#"{"tool_name":"t","arguments":null,"params":{}}"#,
        ] {
            assert_eq!(
                parse_request(body, Requester::full_access())
                    .unwrap_err()
                    .into_full_response()
                    .status(),
                400,
                "{}",
                String::from_utf8_lossy(body)
            );
        }
    }
}
