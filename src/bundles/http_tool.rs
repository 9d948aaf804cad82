//! HTTP tools: what stands in `impl`, and the request that one call makes of it.
//!
//! Every request of a tool has the method, the host, the headers and the shape of the body that its
//! file says; arguments and secrets are values in it. This module sends nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use serde_json::{Map, Value};
use url::Url;

use super::body_template::BodyTemplate;
use super::document_members::{DocumentError, DocumentMembers};
use super::extract::Extraction;
use super::refused_value::RefusedValue;
use super::reserved_headers::is_reserved;
use super::signature::SignedRequest;
use super::template::{CallValues, NotFilled, Placeholder, TextTemplate, text_bytes};
use super::tool_auth::{self, ToolAuth};
use super::url_template::{self, URL_MAX, UrlTemplate};

/// The time of one call where the file does not say it.
const TIMEOUT_MS: u64 = 10_000;
/// The longest time that a file may say.
const TIMEOUT_MAX_MS: u64 = 3_600_000;
/// Further tries where the file does not say it, and the most that it may say.
const RETRIES: u64 = 2;
const RETRIES_MAX: u64 = 10;
/// Headers and parameters of one tool at most.
const PARTS_MAX: usize = 100;
/// The largest limit of bytes that a file may say.
const BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The members of `impl`.
const KNOWN: [&str; 16] = [
    "method",
    "urlTemplate",
    "query",
    "headers",
    "bodyTemplate",
    "body",
    "auth",
    "timeoutMs",
    "successCodes",
    "responseEncoding",
    "extractExpr",
    "errorMode",
    "maxRequestBytes",
    "maxResponseBytes",
    "maxRetries",
    "maxCallsPerMinute",
];

/// An HTTP tool.
#[derive(Debug, Clone)]
pub struct HttpTool {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: UrlTemplate,
    query: Vec<(String, TextTemplate)>,
    headers: Vec<(HeaderName, TextTemplate)>,
    body: Option<BodyTemplate>,
    /// How requests prove who sends them.
    pub auth: Option<ToolAuth>,
    /// The time of one call, with all tries.
    pub timeout: Duration,
    /// The statuses of success; empty for every 2xx.
    pub success_codes: Vec<u16>,
    /// How an answer is read.
    pub encoding: ResponseEncoding,
    /// What of it is the value.
    pub extract: Option<Extraction>,
    /// What a failure gives.
    pub error_mode: ErrorMode,
    /// Bytes of the body that is sent, at most.
    pub max_request: Option<usize>,
    /// Bytes of the answer that are read, at most.
    pub max_response: Option<usize>,
    /// Further tries of a request that may be repeated.
    pub max_retries: u32,
    /// Calls in one minute at most.
    pub max_calls_per_minute: Option<u64>,
}

/// How an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseEncoding {
    /// As a JSON document.
    Json,
    /// As a text.
    Text,
}

/// What a call gives whose answer is no success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorMode {
    /// A failure.
    Fail,
    /// `null`, as if there were no answer.
    Empty,
}

/// The request of one call.
#[derive(Debug, Clone)]
pub struct PreparedRequest {
    /// The method.
    pub method: Method,
    /// The whole address.
    pub url: Url,
    /// The headers of the tool.
    pub headers: HeaderMap,
    /// The body; empty without one.
    pub body: Bytes,
}

impl HttpTool {
    /// Reads `impl` of a tool.
    pub(super) fn read(members: DocumentMembers<'_>) -> Result<Self, DocumentError> {
        members.refuse_others(&KNOWN)?;
        let method = members.text("method")?.unwrap_or("GET");
        let method = Method::try_from(method).ok().filter(|method| {
            [
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ]
            .contains(method)
        });
        let method = method.ok_or_else(|| {
            members.wrong("method", "is not GET, HEAD, POST, PUT, PATCH or DELETE")
        })?;
        let url = UrlTemplate::parse(members.required_text("urlTemplate")?);
        let headers = headers(members)?;
        let auth = members.object("auth")?;
        let auth = auth
            .map(|object| {
                ToolAuth::read(DocumentMembers {
                    object,
                    pointer: "/impl/auth",
                })
            })
            .transpose()?;
        let extract = members
            .text("extractExpr")?
            .filter(|text| !text.is_empty())
            .map(Extraction::parse)
            .transpose();
        let tool = Self {
            url: url.map_err(|why| members.wrong("urlTemplate", why))?,
            query: templates(members, "query")?,
            body: body(members, &headers, &method)?,
            method,
            headers,
            auth,
            timeout: Duration::from_millis(
                members
                    .number("timeoutMs", 1..=TIMEOUT_MAX_MS)?
                    .unwrap_or(TIMEOUT_MS),
            ),
            success_codes: success_codes(members)?,
            encoding: match members.text("responseEncoding")?.unwrap_or("json") {
                "json" => ResponseEncoding::Json,
                "text" => ResponseEncoding::Text,
                _ => return Err(members.wrong("responseEncoding", "is neither `json` nor `text`")),
            },
            extract: extract.map_err(|why| members.wrong("extractExpr", why))?,
            error_mode: match members.text("errorMode")?.unwrap_or("fail") {
                "fail" => ErrorMode::Fail,
                "empty" => ErrorMode::Empty,
                _ => return Err(members.wrong("errorMode", "is neither `fail` nor `empty`")),
            },
            max_request: bytes(members, "maxRequestBytes")?,
            max_response: bytes(members, "maxResponseBytes")?,
            max_retries: members
                .number("maxRetries", 0..=RETRIES_MAX)?
                .unwrap_or(RETRIES)
                .try_into()
                .unwrap_or(0),
            max_calls_per_minute: members.number("maxCallsPerMinute", 1..=1_000_000)?,
        };
        if tool.encoding == ResponseEncoding::Text
            && tool.extract.as_ref().is_some_and(Extraction::is_path)
        {
            return Err(members.wrong(
                "extractExpr",
                "is a JSONPath, and the answer is read as text",
            ));
        }
        Ok(tool)
    }

    /// Whether sending a request twice does what sending it once does (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method.is_idempotent()
    }

    /// The bytes of memory that it takes, estimated from above.
    pub(super) fn held_bytes(&self) -> usize {
        let query = self
            .query
            .iter()
            .map(|(name, text)| text_bytes(name) + text.held_bytes());
        let headers = self
            .headers
            .iter()
            .map(|(name, text)| text_bytes(name.as_str()) + text.held_bytes());
        let body = self.body.as_ref().map_or(0, BodyTemplate::held_bytes);
        let auth = self.auth.as_ref().map_or(0, ToolAuth::held_bytes);
        let extract = self.extract.as_ref().map_or(0, Extraction::held_bytes);
        let codes = size_of_val(&self.success_codes[..]);
        size_of::<Self>()
            + self.url.held_bytes()
            + query.chain(headers).sum::<usize>()
            + body
            + auth
            + extract
            + codes
    }

    /// The names of its placeholders.
    pub fn names(&self) -> BTreeSet<&str> {
        let texts = self
            .query
            .iter()
            .map(|(_, text)| text)
            .chain(self.headers.iter().map(|(_, text)| text));
        let body = self
            .body
            .iter()
            .flat_map(BodyTemplate::places)
            .chain(self.auth.iter().flat_map(ToolAuth::places));
        let all = self
            .url
            .places()
            .chain(texts.flat_map(TextTemplate::places))
            .chain(body);
        all.map(Placeholder::name).collect()
    }

    /// The names of the placeholders in its path.
    pub fn path_names(&self) -> BTreeSet<&str> {
        self.url.path_places().map(Placeholder::name).collect()
    }

    /// The request of a call with these values, with a body of at most `max_request` bytes. `now`
    /// is the time of its signature, if it has one.
    pub fn prepare(
        &self,
        values: &CallValues<'_>,
        max_request: usize,
        now: Timestamp,
    ) -> Result<PreparedRequest, RefusedValue> {
        let mut further = self.query.clone();
        let mut headers = HeaderMap::new();
        for (name, template) in &self.headers {
            match template.fill(values, str::to_owned, URL_MAX) {
                Ok(value) => _ = headers.insert(name.clone(), header(name, &value)?),
                // A header without a value is left out, as a parameter is.
                Err(NotFilled::Missing(_)) => {}
                Err(long) => return Err(RefusedValue::unfilled(long, || header_limit(name))),
            }
        }
        let filled = |template: &TextTemplate, name: &HeaderName| {
            let filled = template.fill(values, str::to_owned, URL_MAX);
            filled.map_err(|why| RefusedValue::unfilled(why, || header_limit(name)))
        };
        match &self.auth {
            Some(ToolAuth::Header {
                name,
                scheme,
                value,
            }) => {
                let value = filled(value, name)?;
                headers.insert(name.clone(), header(name, &format!("{scheme}{value}"))?);
            }
            Some(ToolAuth::Basic(value)) => {
                let pair = filled(value, &AUTHORIZATION)?;
                headers.insert(
                    AUTHORIZATION,
                    header(&AUTHORIZATION, &tool_auth::basic(&pair))?,
                );
            }
            Some(ToolAuth::Query { name, value }) => {
                let filled = value.fill(values, str::to_owned, URL_MAX);
                filled.map_err(|why| RefusedValue::unfilled(why, url_template::too_long))?;
                further.push((name.clone(), value.clone()));
            }
            // A signature is made of the whole request.
            Some(ToolAuth::Hmac(_) | ToolAuth::OAuth { .. }) | None => {}
        }
        let limit = self.max_request.unwrap_or(max_request).min(max_request);
        let body = self
            .body
            .as_ref()
            .map(|body| Ok((body.fill(values, limit)?, body.content_type)))
            .transpose()?;
        if let Some((_, content_type)) = &body {
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static(content_type));
        }
        let body = Bytes::from(body.map(|(body, _)| body).unwrap_or_default());
        let url = self.url.fill(values, &further)?;
        if let Some(ToolAuth::Hmac(signature)) = &self.auth {
            let request = SignedRequest {
                method: &self.method,
                url: &url,
                body: &body,
            };
            signature.sign(&request, values, now, &mut headers)?;
        }
        Ok(PreparedRequest {
            method: self.method.clone(),
            url,
            headers,
            body,
        })
    }
}

/// A value of a header. Line breaks and other characters that a header cannot have are refused.
fn header(name: &HeaderName, value: &str) -> Result<HeaderValue, RefusedValue> {
    let fits = value.len() <= URL_MAX && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let made = HeaderValue::from_str(value).ok().filter(|_| fits);
    let mut made = made.ok_or_else(|| RefusedValue::new("", header_limit(name)))?;
    made.set_sensitive(true);
    Ok(made)
}

fn header_limit(name: &HeaderName) -> String {
    format!(
        "the header `{name}` can hold {URL_MAX} visible ASCII characters at most, and no others"
    )
}

/// A map of templates.
fn templates(
    members: DocumentMembers<'_>,
    name: &str,
) -> Result<Vec<(String, TextTemplate)>, DocumentError> {
    let Some(object) = members.object(name)? else {
        return Ok(Vec::new());
    };
    if object.len() > PARTS_MAX {
        return Err(members.wrong(name, format!("has more than {PARTS_MAX} members")));
    }
    let template = |(key, value): (&String, &Value)| {
        let text = value
            .as_str()
            .ok_or_else(|| members.wrong(&format!("{name}/{key}"), "is not a text"))?;
        let template = TextTemplate::parse(text);
        let wrong =
            |error| members.wrong(&format!("{name}/{key}"), format!("cannot be read: {error}"));
        Ok((key.clone(), template.map_err(wrong)?))
    };
    object.iter().map(template).collect()
}

fn headers(members: DocumentMembers<'_>) -> Result<Vec<(HeaderName, TextTemplate)>, DocumentError> {
    let header = |(key, template): (String, TextTemplate)| {
        let at = format!("headers/{key}");
        let name = HeaderName::try_from(key.as_str())
            .map_err(|_| members.wrong(&at, "is no name of a header"))?;
        if is_reserved(&name) {
            return Err(members.wrong(&at, "is set by the connection, and not by a tool"));
        }
        Ok((name, template))
    };
    let headers: Vec<_> = templates(members, "headers")?
        .into_iter()
        .map(header)
        .collect::<Result<_, _>>()?;
    let mut names = BTreeSet::new();
    // Letter case is no difference: one of two would be sent, and the body written for the other.
    match headers
        .iter()
        .find(|(name, _)| !names.insert(name.as_str()))
    {
        Some((twice, _)) => Err(members.wrong(&format!("headers/{twice}"), "is there twice")),
        None => Ok(headers),
    }
}

/// The body, if there is one: `bodyTemplate`, or `body` as a text or as JSON.
fn body(
    members: DocumentMembers<'_>,
    headers: &[(HeaderName, TextTemplate)],
    method: &Method,
) -> Result<Option<BodyTemplate>, DocumentError> {
    let name = if members.get("body").is_some() {
        "body"
    } else {
        "bodyTemplate"
    };
    let content_type = headers
        .iter()
        .find(|(name, _)| name == CONTENT_TYPE)
        .map(|(_, value)| value);
    let is_fixed = content_type.is_none_or(TextTemplate::is_literal);
    let content_type: Option<String> = content_type.map(|value| value.literals().collect());
    let parsed = match members.get(name) {
        None => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => BodyTemplate::parse(text, content_type.as_deref()),
        Some(value) => BodyTemplate::from_json(value),
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        return Err(members.wrong(name, format!("cannot be sent with {method}")));
    }
    if !is_fixed {
        let why = "has a placeholder, and decides how the values in the body are escaped";
        return Err(members.wrong("headers/Content-Type", why));
    }
    parsed.map(Some).map_err(|why| members.wrong(name, why))
}

fn success_codes(members: DocumentMembers<'_>) -> Result<Vec<u16>, DocumentError> {
    let code = |code: &Value| {
        let code = code
            .as_u64()
            .filter(|code| (100..=599).contains(code))
            .and_then(|code| u16::try_from(code).ok());
        code.ok_or_else(|| {
            members.wrong("successCodes", "is not a list of statuses from 100 to 599")
        })
    };
    members.list("successCodes")?.iter().map(code).collect()
}

fn bytes(members: DocumentMembers<'_>, name: &str) -> Result<Option<usize>, DocumentError> {
    Ok(members
        .number(name, 1..=BYTES_MAX)?
        .and_then(|bytes| usize::try_from(bytes).ok()))
}

/// `impl` of a tool whose file has the members of the original's programs: `httpImpl` with
/// `request` and `response`.
pub(super) fn joined(http: &Map<String, Value>) -> Map<String, Value> {
    let parts = ["request", "response"]
        .into_iter()
        .filter_map(|part| http.get(part)?.as_object());
    parts
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
