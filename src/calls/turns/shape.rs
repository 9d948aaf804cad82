//! Which vendors a body may be from, by the members that it has.
//!
//! A whole response has marks of its own. A message alone may be of several vendors, since some
//! share their shape.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::ReadError;

/// The vendors whose messages are those of Chat Completions.
const CHAT: &[&str] = &["openai", "mistral", "cohere", "ollama"];
/// The vendors whose messages hold a text, or blocks with a `type`.
const TYPED: &[&str] = &["openai", "anthropic", "mistral", "cohere", "ollama"];
/// The vendors whose messages may hold an empty list.
const EMPTY: &[&str] = &["openai", "anthropic", "bedrock", "mistral", "cohere", "ollama"];
/// What a message consists of: blocks of its content, or its calls. Without the message around
/// them, they are of several vendors.
const PARTS_OF_MESSAGES: &[&str] =
    &["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "function"];

/// The members by which bodies differ.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BodyMarks<'a> {
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    candidates: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    done: Option<&'a RawValue>,
    #[serde(borrow)]
    created_at: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    calls: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    /// What Gemini says of a response that may be without a candidate.
    #[serde(borrow, rename = "promptFeedback", alias = "prompt_feedback")]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow, rename = "usageMetadata", alias = "usage_metadata")]
    usage_metadata: Option<&'a RawValue>,
    /// The events of Bedrock, each under its own name.
    #[serde(
        borrow,
        rename = "messageStart",
        alias = "contentBlockStart",
        alias = "contentBlockDelta",
        alias = "contentBlockStop",
        alias = "messageStop"
    )]
    converse_event: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// One block of a message's content.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BlockMarks<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, rename = "toolUse")]
    tool_use: Option<&'a RawValue>,
}

/// Whether a body may be a response of `format`.
pub(super) fn check(format: &'static str, body: &str) -> Result<(), ReadError> {
    let body = body.trim_start();
    if ["data:", "event:", "id:", ":", "retry:"].iter().any(|line| body.starts_with(line)) {
        return Err(ReadError::Stream);
    }
    let known = match body.as_bytes().first() {
        Some(b'[') => list(body)?,
        Some(b'{') => object(body)?,
        _ => {
            // Says what is wrong if it is not JSON at all.
            serde_json::from_str::<&RawValue>(body)?;
            &[]
        }
    };
    match known.first() {
        Some(_) if known.contains(&format) => Ok(()),
        Some(like) => Err(ReadError::OtherFormat { format, like }),
        None => Err(ReadError::UnknownFormat(format)),
    }
}

fn object(body: &str) -> Result<&'static [&'static str], ReadError> {
    let marks: BodyMarks<'_> = match serde_json::from_str(body) {
        Ok(marks) => marks,
        // Several objects, one in each line.
        Err(error) if error.to_string().starts_with("trailing characters") && error.line() > 1 => {
            return Err(ReadError::Stream);
        }
        Err(error) => return Err(error.into()),
    };
    marks.vendors()
}

/// A list: of output items, or of what a vendor streamed.
fn list(body: &str) -> Result<&'static [&'static str], ReadError> {
    let items: Vec<BodyMarks<'_>> = serde_json::from_str(body)?;
    let Some(first) = items.first() else { return Ok(&["openai-responses"]) };
    if first.candidates.is_some() || first.choices.is_some() || first.done.is_some() || first.is_event() {
        return Err(ReadError::Stream);
    }
    Ok(match text(first.kind) {
        "" => &[],
        kind if PARTS_OF_MESSAGES.contains(&kind) => &[],
        _ => &["openai-responses"],
    })
}

impl BodyMarks<'_> {
    fn vendors(&self) -> Result<&'static [&'static str], ReadError> {
        if self.is_event() {
            return Err(ReadError::Stream);
        }
        Ok(if self.choices.is_some() {
            &["openai", "mistral"]
        } else if begins(self.output, '[') || text(self.kind) == "function_call" {
            &["openai-responses"]
        } else if begins(self.output, '{') {
            &["bedrock"]
        } else if self.is_gemini() {
            &["gemini"]
        } else if self.calls.is_some() {
            &["calls"]
        } else if begins(self.message, '{') {
            if self.done.is_some() || self.created_at.is_some() {
                &["ollama"]
            } else if self.index.is_some() {
                &["openai", "mistral"]
            } else if self.finish_reason.is_some() {
                &["cohere"]
            } else {
                &["cohere", "ollama"]
            }
        } else if self.role.is_some() {
            self.of_message()
        } else if self.error.is_some() {
            let what = "it is an error of the vendor, not a response of its model";
            return Err(ReadError::Malformed(what.to_owned()));
        } else {
            &[]
        })
    }

    /// Whether it is a response of Gemini, one of its candidates, or the content of one.
    fn is_gemini(&self) -> bool {
        let marks = [self.candidates, self.parts, self.prompt_feedback, self.usage_metadata];
        marks.iter().any(Option::is_some) || begins(self.content, '{') || text(self.role) == "model"
    }

    /// Whether it is one part of a stream.
    fn is_event(&self) -> bool {
        let kind = text(self.kind);
        let events = ["message_", "content_block_", "response.", "content-", "tool-call-", "message-"];
        text(self.object) == "chat.completion.chunk"
            || events.iter().any(|event| kind.starts_with(event))
            || self.converse_event.is_some()
            || (self.delta.is_some() && self.role.is_none())
    }

    /// The vendors that have such messages.
    fn of_message(&self) -> &'static [&'static str] {
        if self.tool_calls.is_some_and(|calls| calls.get() != "null") {
            return CHAT;
        }
        if !begins(self.content, '[') {
            return TYPED;
        }
        let blocks = self.content.map(|content| serde_json::from_str::<Vec<BlockMarks<'_>>>(content.get()));
        let Some(Ok(blocks)) = blocks else { return TYPED };
        if blocks.is_empty() {
            return if text(self.kind) == "message" { &["anthropic", "openai-responses"] } else { EMPTY };
        }
        if blocks.iter().any(|block| block.tool_use.is_some() || block.kind.is_none()) {
            return &["bedrock"];
        }
        if blocks.iter().any(|block| text(block.kind) == "output_text") {
            return &["openai-responses"];
        }
        let is_anthropic = |block: &BlockMarks<'_>| text(block.kind).ends_with("tool_use");
        if text(self.kind) == "message" || blocks.iter().any(is_anthropic) {
            return &["anthropic"];
        }
        if blocks.iter().all(|block| text(block.kind) == "text") {
            return TYPED;
        }
        &["anthropic", "mistral", "cohere"]
    }
}

fn begins(value: Option<&RawValue>, letter: char) -> bool {
    value.is_some_and(|value| value.get().starts_with(letter))
}

/// A short text without escapes; empty if it is something else.
fn text(value: Option<&RawValue>) -> &str {
    value.map_or("", |value| value.get().trim_matches('"'))
}
