//! The calls in messages of Chat Completions, which several vendors share.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::read::{ReadCall, ReadError, ReadTurn};

/// What is said of a call in the form before `tool_calls`.
const LEGACY: &str = "its call is a `function_call`, which `tool_calls` replaced; give the vendor the list as `tools`, not as `functions`";

/// A response with choices, one of its choices, a response with one message, or a message.
#[derive(Deserialize)]
struct ChatBody<'a> {
    #[serde(borrow)]
    choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(borrow)]
    message: Option<ChatMessage<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    #[serde(borrow)]
    message: Option<ChatMessage<'a>>,
    /// A part of a message, in a stream.
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChatCall<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Option<ChatFunction<'a>>,
    custom: Option<ChatCustom>,
}

#[derive(Deserialize)]
struct ChatFunction<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A call of a tool that takes a text.
#[derive(Deserialize)]
struct ChatCustom {
    name: Option<String>,
}

/// Reads the calls of a response or of a message.
pub(super) fn read(body: &str) -> Result<ReadTurn, ReadError> {
    let body: ChatBody<'_> = serde_json::from_str(body)?;
    let choices = body.choices.unwrap_or_default();
    if choices.iter().any(|choice| choice.message.is_none() && choice.delta.is_some()) {
        return Err(ReadError::Stream);
    }
    let alone = ChatMessage { tool_calls: body.tool_calls, function_call: body.function_call };
    let messages = choices.into_iter().filter_map(|choice| choice.message).chain(body.message).chain([alone]);
    let mut calling = Vec::new();
    for message in messages {
        let calls = message.tool_calls.unwrap_or_default();
        if calls.is_empty() && message.function_call.is_some() {
            return Err(ReadError::Malformed(LEGACY.to_owned()));
        }
        if !calls.is_empty() {
            calling.push(calls);
        }
    }
    if calling.len() > 1 {
        return Err(ReadError::Several("choices"));
    }
    Ok(ReadTurn { calls: calling.into_iter().flatten().map(call).collect(), model: None })
}

fn call(sent: ChatCall<'_>) -> ReadCall {
    match (sent.function, sent.custom) {
        (Some(function), _) => ReadCall::new(sent.id, function.name, function.arguments),
        (None, custom) => ReadCall::foreign(sent.id, custom.and_then(|custom| custom.name)),
    }
}
