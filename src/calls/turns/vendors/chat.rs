//! The calls in messages of Chat Completions, which several vendors share.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::read::{ReadCall, ReadError, ReadTurn};

/// A response with choices, a response with one message, or a message.
#[derive(Deserialize)]
struct ChatBody<'a> {
    #[serde(borrow)]
    choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(borrow)]
    message: Option<ChatMessage<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    #[serde(borrow)]
    message: Option<ChatMessage<'a>>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
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
    let messages = body.choices.into_iter().flatten().filter_map(|choice| choice.message).chain(body.message);
    let mut calling = messages.filter_map(|message| message.tool_calls).filter(|calls| !calls.is_empty());
    let calls = calling.next().or(body.tool_calls).unwrap_or_default();
    if calling.next().is_some() {
        return Err(ReadError::Several("choices"));
    }
    Ok(ReadTurn { calls: calls.into_iter().map(call).collect(), model: None })
}

fn call(sent: ChatCall<'_>) -> ReadCall {
    match (sent.function, sent.custom) {
        (Some(function), _) => ReadCall::new(sent.id, function.name, function.arguments),
        (None, custom) => ReadCall::foreign(sent.id, custom.and_then(|custom| custom.name)),
    }
}
