//! Checks how a scenario serves its manifest, by several answers to the same request. Pure: the
//! caller sends the requests and passes the answers.

use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::model::finding::quoted_excerpt;
use crate::model::{Digest, Finding, FindingCode};

/// An answer that takes longer is slow: a client that waits for it makes its user wait.
const SLOW: Duration = Duration::from_secs(1);
/// The next step of all findings about answers that change without need.
const STEADY: &str = "make the manifest once and serve the same bytes until the tools change";

/// One answer with the list of tools.
#[derive(Debug, Clone)]
pub struct ListResponse {
    /// Its headers.
    pub headers: HeaderMap,
    /// From the request to the end of the body.
    pub took: Duration,
    /// Digest of the content.
    pub digest: Digest,
    /// `generated_at` as sent.
    pub stamp: Option<String>,
    /// Names of the tools as sent.
    pub order: Vec<String>,
}

/// An answer of the route of a single tool.
#[derive(Debug, Clone)]
pub struct ToolResponse<'a> {
    /// The requested name.
    pub name: &'a str,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a [u8],
}

/// Checks the health route of a module: 200 with `{"status": "ok"}`.
pub fn health(status: StatusCode, body: &[u8]) -> Option<Finding> {
    let says = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let message = if status != StatusCode::OK {
        format!("`GET /health` answers {status}")
    } else if says["status"] != "ok" {
        format!(
            "`GET /health` does not answer `ok`, but {}",
            quoted_excerpt(&String::from_utf8_lossy(body))
        )
    } else {
        return None;
    };
    Some(
        Finding::new(FindingCode::HealthRoute, message)
            .hint(r#"answer 200 with `{"status": "ok"}`"#),
    )
}

/// Checks answers to the same unconditional request, in the order in which they came.
pub fn check_list(answers: &[ListResponse]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(first) = answers.first() else {
        return findings;
    };
    if !first.headers.contains_key(CACHE_CONTROL) {
        let message = "the list is served without `Cache-Control`, so clients must guess how long they may use it";
        let finding = Finding::new(FindingCode::CacheControlMissing, message);
        findings.push(finding.hint("send `Cache-Control: public, max-age=60`"));
    }
    findings.extend(content_type(&first.headers, "the list"));
    findings.extend(slow(answers));
    if !first.headers.contains_key(ETAG) {
        let message =
            "the list is served without an `ETag`, so clients fetch the whole list each time";
        let finding = Finding::new(FindingCode::EtagMissing, message);
        findings
            .push(finding.hint("send a hash of the content, without `generated_at`, as `ETag`"));
    }
    findings.extend(check_content(answers));
    findings
}

/// The finding for an answer that took long.
pub(super) fn slow(answers: &[ListResponse]) -> Option<Finding> {
    let slowest = answers
        .iter()
        .map(|answer| answer.took)
        .max()
        .filter(|took| *took > SLOW)?;
    let message = format!("an answer took {:.1} s", slowest.as_secs_f64());
    Some(
        Finding::new(FindingCode::SlowAnswer, message)
            .hint("prepare the manifest before clients request it"),
    )
}

/// Checks whether answers to the same request agree.
pub(super) fn check_content(answers: &[ListResponse]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(first) = answers.first() else {
        return findings;
    };
    if answers.iter().any(|answer| answer.digest != first.digest) {
        let message = "two answers in a row offer different tools";
        findings.push(
            Finding::new(FindingCode::ContentMoves, message)
                .at("")
                .hint(STEADY),
        );
    }
    // Only answers with the same content can be compared further.
    let same: Vec<&ListResponse> = answers
        .iter()
        .filter(|answer| answer.digest == first.digest)
        .collect();
    findings.extend(moves(&same));
    findings
}

fn moves(same: &[&ListResponse]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(first) = same.first() else {
        return findings;
    };
    if same.iter().any(|answer| answer.stamp != first.stamp) {
        let message = "`generated_at` changes in each answer, so it does not show whether the content changed";
        findings.push(
            Finding::new(FindingCode::GeneratedAtMoves, message)
                .at("/generated_at")
                .hint("set `generated_at` when the content changes, not when it is requested"),
        );
    }
    if same.iter().any(|answer| answer.order != first.order) {
        let message = "the order of the tools changes, though the tools are the same";
        findings.push(
            Finding::new(FindingCode::OrderUnstable, message)
                .at("/tools")
                .hint("sort the tools by name"),
        );
    }
    let tag = |answer: &ListResponse| answer.headers.get(ETAG).cloned();
    if tag(first).is_some() && same.iter().any(|answer| tag(answer) != tag(first)) {
        let message = "the `ETag` changes though the content is the same, so no conditional request can succeed";
        let finding = Finding::new(FindingCode::EtagMoves, message);
        findings.push(finding.hint("compute it from the content, without `generated_at`"));
    }
    findings
}

/// Checks the status of a request whose `If-None-Match` was the tag of the answer before it.
pub fn conditional(tag: &HeaderValue, status: StatusCode) -> Option<Finding> {
    (status != StatusCode::NOT_MODIFIED).then(|| {
        let tag = quoted_excerpt(&String::from_utf8_lossy(tag.as_bytes()));
        let message = format!(
            "a request with `If-None-Match: {}` was answered {status}, not 304",
            tag.trim_matches('`')
        );
        Finding::new(FindingCode::NotModifiedMissing, message)
            .hint("answer 304 without a body while the tag is current")
    })
}

/// Checks the answer for a tool that the manifest offers.
pub fn known_tool(answer: &ToolResponse<'_>) -> Option<Finding> {
    let route = format!("`GET /api/v1/tools/{}`", answer.name);
    let finding = |message: String| {
        Finding::new(FindingCode::ToolRoute, message)
            .of_tool(answer.name)
            .hint("answer 200 with the tool's definition as in the list")
    };
    if answer.status != StatusCode::OK {
        return Some(finding(format!(
            "{route} answers {}, though the tool is in the list",
            answer.status
        )));
    }
    let document = serde_json::from_slice::<serde_json::Value>(answer.body).unwrap_or_default();
    (document["name"] != answer.name).then(|| {
        finding(format!(
            "{route} does not answer with the definition of the tool"
        ))
    })
}

/// Checks the answer for an unknown tool: 404 with an object that has a string in `error`.
pub fn unknown_tool(answer: &ToolResponse<'_>) -> Option<Finding> {
    let route = format!("`GET /api/v1/tools/{}`", answer.name);
    let finding = |message: String| {
        Finding::new(FindingCode::ToolRoute, message).hint(
            "answer 404 and `{\"error\": \"Not Found\", \"message\": \"tool not found: ...\"}`",
        )
    };
    if answer.status != StatusCode::NOT_FOUND {
        return Some(finding(format!(
            "{route} answers {}, not 404, though there is no such tool",
            answer.status
        )));
    }
    let document = serde_json::from_slice::<serde_json::Value>(answer.body).unwrap_or_default();
    if !document["error"].is_string() {
        return Some(finding(format!(
            "{route} answers 404 without a JSON object with `error`"
        )));
    }
    content_type(answer.headers, "the answer for an unknown tool")
}

fn content_type(headers: &HeaderMap, what: &str) -> Option<Finding> {
    let written = headers
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let essence = written
        .as_deref()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let is_json = essence == "application/json"
        || essence.starts_with("application/") && essence.ends_with("+json");
    (!is_json).then(|| {
        let seen = written.map_or_else(
            || "without a content type".to_owned(),
            |written| format!("as {}", quoted_excerpt(&written)),
        );
        Finding::new(FindingCode::ContentType, format!("{what} is served {seen}"))
            .hint("send `Content-Type: application/json`")
    })
}
