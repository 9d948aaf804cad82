//! The calls in messages of Chat Completions, which several vendors share.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::marks::BodyMarks;
use super::super::read::{ReadCall, ReadError, ReadTurn};

/// What is said of a call in the form before `tool_calls`.
const LEGACY: &str = "its call is a `function_call`, which `tool_calls` replaced; give the vendor the list as `tools`, not as `functions`";

/// Whether a body is a response with choices, or one of its choices.
pub(super) fn is_response(body: &BodyMarks<'_>) -> bool {
    // Ollama says when it is done.
    let is_choice = body.begins("message", '{') && body.has("index");
    body.has("choices") || (is_choice && !body.has("done") && !body.has("created_at"))
}

/// Whether a message has calls, or a text, or blocks that are texts.
pub(super) fn is_message(message: &BodyMarks<'_>) -> bool {
    if message.has("tool_calls") {
        return true;
    }
    let is_text = |block: &BodyMarks<'_>| block.text("type") == "text";
    message
        .blocks()
        .is_none_or(|blocks| message.text("type") != "message" && blocks.iter().all(is_text))
}

/// Whether a message has blocks of types that are of no other vendor.
pub(super) fn has_blocks_of_other_types(message: &BodyMarks<'_>) -> bool {
    let is_other = |block: &BodyMarks<'_>| {
        let kind = block.text("type");
        block.has("type")
            && !block.has("toolUse")
            && kind != "output_text"
            && !kind.ends_with("tool_use")
    };
    message.text("type") != "message"
        && message
            .blocks()
            .is_some_and(|blocks| blocks.iter().all(is_other))
}

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
    if choices
        .iter()
        .any(|choice| choice.message.is_none() && choice.delta.is_some())
    {
        return Err(ReadError::Stream);
    }
    let alone = ChatMessage {
        tool_calls: body.tool_calls,
        function_call: body.function_call,
    };
    let messages = choices
        .into_iter()
        .filter_map(|choice| choice.message)
        .chain(body.message)
        .chain([alone]);
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
    Ok(ReadTurn {
        calls: calling.into_iter().flatten().map(call).collect(),
        model: None,
    })
}

fn call(sent: ChatCall<'_>) -> ReadCall {
    match (sent.function, sent.custom) {
        (Some(function), _) => ReadCall::new(sent.id, function.name, function.arguments),
        (None, custom) => ReadCall::foreign(sent.id, custom.and_then(|custom| custom.name)),
    }
}
