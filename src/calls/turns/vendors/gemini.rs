//! Gemini: one content of the user with a `functionResponse` for each call. A response is an
//! object: its `output` or its `error`.
//!
//! Models before Gemini 3 take no files in it (documentation of multimodal function responses), so
//! files are only written for a model that the response names.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::{ModelAnswer, ModelBlock};
use super::super::read::{ReadCall, ReadError, ReadTurn};
use super::TurnFormat;

/// The members of a response, of which one that says why there is no candidate may have the last
/// ones only, and of the content of a candidate.
const RESPONSE_MEMBERS: [&str; 6] = [
    "candidates",
    "parts",
    "promptFeedback",
    "prompt_feedback",
    "usageMetadata",
    "usage_metadata",
];

/// `format=gemini`.
#[derive(Debug)]
pub(super) struct GeminiTurns;

/// A response, one of its candidates, or the content of one. Their Python library writes names with
/// underscores, and reads both.
#[derive(Deserialize)]
struct GeminiBody<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<GeminiCandidate<'a>>>,
    #[serde(borrow)]
    content: Option<GeminiContent<'a>>,
    #[serde(borrow)]
    parts: Option<Vec<GeminiPart<'a>>>,
    #[serde(rename = "modelVersion", alias = "model_version")]
    model: Option<String>,
}

#[derive(Deserialize)]
struct GeminiCandidate<'a> {
    #[serde(borrow)]
    content: Option<GeminiContent<'a>>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<GeminiPart<'a>>>,
}

#[derive(Deserialize)]
struct GeminiPart<'a> {
    #[serde(borrow, rename = "functionCall", alias = "function_call")]
    call: Option<GeminiCall<'a>>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl TurnFormat for GeminiTurns {
    fn id(&self) -> &'static str {
        "gemini"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        RESPONSE_MEMBERS.into_iter().any(|name| body.has(name))
            || body.begins("content", '{')
            || body.text("role") == "model"
    }

    fn is_streamed(&self, first: &BodyMarks<'_>) -> bool {
        first.has("candidates")
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let body: GeminiBody<'_> = serde_json::from_str(body)?;
        let contents = body
            .candidates
            .into_iter()
            .flatten()
            .map(|candidate| candidate.content)
            .chain([body.content]);
        let contents = contents.filter_map(|content| content?.parts);
        let calls = |parts: Vec<GeminiPart<'_>>| -> Vec<ReadCall> {
            let calls = parts.into_iter().filter_map(|part| part.call);
            calls
                .map(|call| ReadCall::new(call.id, call.name, call.args))
                .collect()
        };
        let mut calling = contents
            .chain(body.parts)
            .map(calls)
            .filter(|calls| !calls.is_empty());
        let calls = calling.next().unwrap_or_default();
        if calling.next().is_some() {
            return Err(ReadError::Several("candidates"));
        }
        Ok(ReadTurn {
            calls,
            model: body.model,
        })
    }

    fn takes(&self, media_type: &str, model: Option<&str>) -> bool {
        let generation = model.and_then(|model| {
            model
                .strip_prefix("gemini-")?
                .split(['.', '-'])
                .next()?
                .parse()
                .ok()
        });
        let takes_files = generation.is_some_and(|generation: u32| generation >= 3);
        takes_files
            && matches!(
                media_type,
                "image/png" | "image/jpeg" | "image/webp" | "application/pdf"
            )
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        if answers.is_empty() {
            return "[]".to_owned();
        }
        let parts: Vec<String> = answers.iter().map(part).collect();
        format!(r#"[{{"role":"user","parts":[{}]}}]"#, parts.join(","))
    }
}

/// Written by hand, because a value is passed on as it was written.
fn part(answer: &ModelAnswer<'_>) -> String {
    let id = answer
        .call
        .id
        .as_ref()
        .map(|id| format!(r#""id":{},"#, json!(id)))
        .unwrap_or_default();
    let name = json!(answer.call.name);
    let text = json!(answer.text());
    let response = match &answer.value {
        _ if answer.is_error => format!(r#"{{"error":{text}}}"#),
        Some(value) => format!(r#"{{"output":{}}}"#, value.get()),
        None => format!(r#"{{"output":{text}}}"#),
    };
    let files = answer.blocks.iter().filter_map(|block| match block {
        ModelBlock::File { media_type, data } => {
            Some(json!({"inlineData": {"mimeType": media_type, "data": data}}))
        }
        ModelBlock::Text(_) => None,
    });
    let files: Vec<Value> = files.collect();
    let files = if files.is_empty() {
        String::new()
    } else {
        format!(r#","parts":{}"#, Value::from(files))
    };
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{response}{files}}}}}"#)
}
