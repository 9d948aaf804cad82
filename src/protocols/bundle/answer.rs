//! What an answer of an API is to the caller of a tool.

use serde_json::Value;

use crate::bundles::HttpTool;
use crate::bundles::http_tool::{ErrorMode, ResponseEncoding};
use crate::model::JsonText;
use crate::model::finding::quoted_excerpt;
use crate::protocols::Outcome;
use crate::transports::http::HttpResponse;
use crate::transports::status_text;

/// The outcome of a tool for an answer; its value has at most `most` bytes where it is an extract.
pub(super) fn outcome(tool: &HttpTool, answer: &HttpResponse, most: usize) -> Outcome {
    let status = answer.head.status.as_u16();
    match value(tool, answer, most) {
        Ok(value) => Outcome {
            status: Some(status),
            ..Outcome::done(JsonText::known(value))
        },
        Err(_) if tool.error_mode == ErrorMode::Empty => Outcome {
            status: Some(status),
            ..Outcome::done(JsonText::known("null"))
        },
        Err((code, why)) => {
            let failed = Outcome::failed(Some(status), why, Some(code.to_owned()));
            Outcome {
                retry_after: answer.retry_after(),
                ..failed
            }
        }
    }
}

/// Whether a status is a success of this tool.
fn is_success(tool: &HttpTool, status: u16) -> bool {
    if tool.success_codes.is_empty() {
        (200..300).contains(&status)
    } else {
        tool.success_codes.contains(&status)
    }
}

/// The JSON of the value of an answer, or a code and a sentence.
fn value(
    tool: &HttpTool,
    answer: &HttpResponse,
    most: usize,
) -> Result<String, (&'static str, String)> {
    let status = answer.head.status.as_u16();
    let text = std::str::from_utf8(&answer.body);
    if !is_success(tool, status) {
        let body = text.map(str::trim).ok().filter(|body| !body.is_empty());
        let body = body
            .map(|body| format!(": {}", quoted_excerpt(body)))
            .unwrap_or_default();
        let moved = if (300..400).contains(&status) {
            "; redirects are not followed"
        } else {
            ""
        };
        return Err((
            "http_status",
            format!("the API answered {}{body}{moved}", status_text(status)),
        ));
    }
    let text = text.map_err(|_| {
        (
            "bad_answer",
            "the answer of the API is not UTF-8".to_owned(),
        )
    })?;
    if tool.encoding == ResponseEncoding::Json && text.trim().is_empty() {
        return Ok("null".to_owned());
    }
    let extracted = match tool.encoding {
        ResponseEncoding::Json => {
            let document: Value = serde_json::from_str(text).map_err(|error| {
                (
                    "bad_answer",
                    format!("the answer of the API is no JSON: {error}"),
                )
            })?;
            match &tool.extract {
                None => Ok(document.to_string()),
                Some(extract) => extract.in_json(&document, most),
            }
        }
        ResponseEncoding::Text => match &tool.extract {
            None => Ok(Value::from(text).to_string()),
            Some(extract) => extract.in_text(text),
        },
    };
    extracted.map_err(|why| ("bad_answer", why.to_string()))
}
