//! The published list, single tools, and the explanation why a tool is or is not in the list.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use http_body_util::Full;
use xxhash_rust::xxh3::xxh3_128;

use crate::catalog::{Revision, Snapshot, ViewQuery};
use crate::formats::Format;
use crate::model::{Execution, Health, ScenarioState, ViewTool};
use crate::runtime::AnswerBudget;
use crate::server::api::{explain, history, lookup};
use crate::server::http::content_coding;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::held::ConnectionBytes;
use crate::server::http::next_step::NextStep;
use crate::server::http::params;
use crate::server::http::query::{ListQuery, Param, QueryParams};
use crate::server::http::response_cache::CachedResponse;
use crate::server::rendered::rendered;
use crate::server::{ServerState, SharedState};
use crate::views::{Coding, Prepared, ViewRequest};

/// The catalog's revision, as the client's scope sees it.
const REVISION: HeaderName = HeaderName::from_static("callsheet-revision");
/// The number of tools in the list.
const TOOLS: HeaderName = HeaderName::from_static("callsheet-tools");
/// The number of tools that a limit or the format left out; absent if 0.
const LEFT_OUT: HeaderName = HeaderName::from_static("callsheet-left-out");
/// The number of deferred tools in the list; absent if 0.
const DEFERRED: HeaderName = HeaderName::from_static("callsheet-deferred");
/// Estimated tokens of the tools that are not deferred.
const TOKENS: HeaderName = HeaderName::from_static("callsheet-tokens");
/// The value that a conversation sends back as `sticky`. Only sent to clients that requested a
/// selection of tools.
const SELECTION: HeaderName = HeaderName::from_static("callsheet-selection");
/// Notes about the selection, as short names with commas between; absent if there are none.
const NOTES: HeaderName = HeaderName::from_static("callsheet-notes");
/// The scenarios that have not answered yet, so that their tools may be missing, as names with
/// commas between; absent if there are none.
const AWAITING: HeaderName = HeaderName::from_static("callsheet-awaiting");
/// Names in [`AWAITING`] at most; three dots stand for the others.
const AWAITING_NAMES_MAX: usize = 32;
/// The client may store the answer, but has to revalidate it each time: a list that is not whole
/// yet is outdated soon.
const REVALIDATE: HeaderValue = HeaderValue::from_static("private, no-cache");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The parameters of one tool.
pub(in crate::server) const ONE: &[Param] = &[
    params::FORMAT,
    params::PROFILE,
    params::PERMISSION,
    params::CHAT,
];
/// The parameters of an explanation.
pub(in crate::server) const EXPLAIN: &[Param] =
    &[params::PROFILE, params::PERMISSION, params::CHAT];
/// The names and descriptions of the list's headers, beside those that every answer has.
pub(in crate::server) const HEADERS: &[(&str, &str)] = &[
    (
        "callsheet-revision",
        "Revision of the content in the client's scope.",
    ),
    ("callsheet-tools", "How many tools the list has."),
    (
        "callsheet-tokens",
        "Estimated tokens of those that are not deferred.",
    ),
    (
        "callsheet-left-out",
        "How many tools a limit or the format left out; absent when none.",
    ),
    (
        "callsheet-deferred",
        "How many of the tools are deferred; absent when none.",
    ),
    (
        "callsheet-selection",
        "The value that a conversation sends back as `sticky`, when a selection was requested.",
    ),
    (
        "callsheet-notes",
        "Notes on the selection, short names separated by commas; absent if there are none.",
    ),
    (
        "callsheet-awaiting",
        "Scenarios that have not answered yet, at most 32 names separated by commas; absent if there are none.",
    ),
];
/// The headers of one tool.
pub(in crate::server) const ONE_HEADERS: &[(&str, &str)] = &[HEADERS[0]];
/// The beginning of the path of every tool.
const TOOLS_PREFIX: &str = "/api/v1/tools/";

type ToolHttpResponse = http::Response<Full<Bytes>>;

/// `GET /api/v1/tools`: the list. Parameters: see [`ListQuery`]. 200 or 304, with `ETag`,
/// `Callsheet-Revision`, `Callsheet-Tools`, `Callsheet-Tokens` and, if a limit or the format left
/// tools out, `Callsheet-Left-Out`. Filters that match no tool give an empty list. With
/// `report=true` the body is `{"tools": ..., "report": ...}`; see
/// [`crate::views::ViewCache::prepare_for`]. With `head_only` the caller leaves the body out: it is
/// reserved only while it is made.
pub(in crate::server) async fn list(
    shared: &ServerState,
    query: Option<&str>,
    headers: &HeaderMap,
    budget: &AnswerBudget,
    head_only: bool,
) -> ToolHttpResponse {
    new_list(shared, query, headers, budget, head_only)
        .await
        .unwrap_or_else(Problem::into_full_response)
}

async fn new_list(
    shared: &ServerState,
    query: Option<&str>,
    headers: &HeaderMap,
    budget: &AnswerBudget,
    head_only: bool,
) -> Result<ToolHttpResponse, Problem> {
    let snapshot = shared.reader.snapshot();
    let coding = content_coding::choose(headers);
    let list = ListQuery::parse(query)?;
    lookup::check_profile(shared, &snapshot.catalog, &list.view)?;
    shared.used_formats.add(list.format.id());
    let wanted = ViewRequest {
        query: &list.view,
        format: list.format,
        report: list.report,
    };
    let ready = |prepared: &Prepared| {
        let lifetime = shared.config.borrow().server.list_lifetime;
        let ready = Arc::new(list_response(&snapshot, &list, prepared, lifetime));
        shared
            .response_cache
            .insert(&snapshot, query.unwrap_or_default(), coding, &ready);
        ready
    };
    if head_only {
        let prepared = shared
            .views
            .prepare_without_body(&snapshot, wanted, coding, budget)
            .await?;
        return Ok(ready(&prepared).answer(headers));
    }
    let held = shared
        .views
        .prepare_for(&snapshot, wanted, coding, budget)
        .await?;
    Ok(ready(&held.prepared).answer_reserved(headers, held.reserved))
}

/// The same answer from the cache, if it is there and no snapshot has been published since. Without
/// a budget the caller leaves the body out.
pub(in crate::server) fn list_again(
    shared: &ServerState,
    query: Option<&str>,
    headers: &HeaderMap,
    budget: Option<&AnswerBudget>,
) -> Option<ToolHttpResponse> {
    let snapshot = shared.reader.snapshot();
    let coding = content_coding::choose(headers);
    let answer = shared.response_cache.answer(
        &snapshot,
        query.unwrap_or_default(),
        coding,
        headers,
        budget,
    )?;
    shared.views.counts().repeated();
    Some(answer.unwrap_or_else(|exceeded| Problem::from(exceeded).into_full_response()))
}

/// The list of a snapshot as a whole answer.
fn list_response(
    snapshot: &Snapshot,
    list: &ListQuery,
    prepared: &Prepared,
    lifetime: Duration,
) -> CachedResponse {
    let mut ready = prepare_response(prepared, revision(snapshot, &list.view));
    if awaiting(snapshot).is_none() {
        let lifetime = cache_control(lifetime);
        ready
            .not_modified_headers
            .insert(CACHE_CONTROL, lifetime.clone());
        ready.ok_headers.insert(CACHE_CONTROL, lifetime);
    }
    if let Some(names) = awaiting(snapshot) {
        // Also with a 304: the client's list is the current one, and is not whole yet.
        ready.not_modified_headers.insert(AWAITING, names.clone());
        ready.ok_headers.insert(AWAITING, names);
    }
    ready
}

/// The scenarios that have not answered since they appeared, and have no stored list.
fn awaiting(snapshot: &Snapshot) -> Option<HeaderValue> {
    let is_awaited = |health: &&Arc<Health>| {
        health.state == ScenarioState::Connecting && health.freshness.is_none()
    };
    let mut awaited = snapshot
        .health
        .values()
        .filter(is_awaited)
        .map(|health| health.name.as_str());
    let mut names: Vec<&str> = awaited.by_ref().take(AWAITING_NAMES_MAX).collect();
    if names.is_empty() {
        return None;
    }
    names.extend(awaited.next().map(|_| "..."));
    HeaderValue::from_str(&names.join(", ")).ok()
}

fn prepare_response(prepared: &Prepared, revision: Revision) -> CachedResponse {
    let mut known = caching_headers(&prepared.etag, revision);
    known.insert(VARY, HeaderValue::from_static("accept-encoding"));
    known.insert(TOOLS, prepared.tools.into());
    known.insert(TOKENS, prepared.tokens.into());
    for (name, count) in [(LEFT_OUT, prepared.left_out), (DEFERRED, prepared.deferred)] {
        if count > 0 {
            known.insert(name, count.into());
        }
    }
    let notes = (!prepared.notes.is_empty()).then(|| prepared.notes.join(", "));
    for (name, text) in [
        (SELECTION, prepared.selection.as_deref()),
        (NOTES, notes.as_deref()),
    ] {
        // Hexadecimal digits and short names are always valid header values.
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            known.insert(name, value);
        }
    }
    let mut found = known.clone();
    found.insert(CONTENT_TYPE, JSON);
    if prepared.coding != Coding::Identity {
        found.insert(
            CONTENT_ENCODING,
            HeaderValue::from_static(prepared.coding.as_str()),
        );
    }
    CachedResponse {
        body: prepared.body.clone(),
        etag: prepared.etag.clone(),
        ok_headers: found,
        not_modified_headers: known,
        reservation: Arc::clone(&prepared.reservation),
    }
}

/// The revision of the content in the client's scope. That of the plain list, the most frequent
/// one, is computed already.
fn revision(snapshot: &Snapshot, query: &ViewQuery) -> Revision {
    if snapshot.catalog.is_scoped(query) {
        snapshot.catalog.revision_for(query)
    } else {
        snapshot.catalog.revision()
    }
}

/// How long a client may use what it has without a request. What belongs to a client's scope is
/// for its own cache only.
fn cache_control(lifetime: Duration) -> HeaderValue {
    match lifetime.as_secs() {
        0 => REVALIDATE,
        seconds => {
            HeaderValue::try_from(format!("private, max-age={seconds}")).unwrap_or(REVALIDATE)
        }
    }
}

/// The headers that a 200 and a 304 share.
fn caching_headers(etag: &HeaderValue, revision: Revision) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ETAG, etag.clone());
    headers.insert(CACHE_CONTROL, REVALIDATE);
    // Hexadecimal digits are always a valid header value.
    if let Ok(revision) = HeaderValue::try_from(revision.to_string()) {
        headers.insert(REVISION, revision);
    }
    headers
}

fn tool_answer(
    shared: &ServerState,
    snapshot: &Snapshot,
    name: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<ToolHttpResponse, Problem> {
    let query = QueryParams::parse(query, ONE)?;
    let format = query.format()?;
    let scope = including_disabled(query.scope()?);
    lookup::check_profile(shared, &snapshot.catalog, &scope)?;
    let tool = lookup::resolve_tool(&snapshot.catalog, &scope, name)
        .map_err(|problem| lookup::with_left_out(problem, snapshot, name))?;
    lookup::check_visible(&snapshot.catalog, &scope, &tool)?;
    let body = Bytes::from(encoded(&tool, format)?);
    let etag = HeaderValue::try_from(format!("\"{:032x}\"", xxh3_128(&body)))
        .map_err(|e| Problem::internal(&e))?;
    let mut known = caching_headers(&etag, revision(snapshot, &scope));
    let lifetime = shared.config.borrow().server.list_lifetime;
    known.insert(CACHE_CONTROL, cache_control(lifetime));
    let mut found = known.clone();
    found.insert(CONTENT_TYPE, JSON);
    let reservation = Arc::default();
    Ok(CachedResponse {
        body,
        etag,
        ok_headers: found,
        not_modified_headers: known,
        reservation,
    }
    .answer(headers))
}

/// The same scope, including disabled tools.
fn including_disabled(scope: ViewQuery) -> ViewQuery {
    ViewQuery {
        include_disabled: true,
        include_internal: true,
        ..scope
    }
}

/// The tool in a format. A tool that a format for LLMs never lists is refused here, too.
fn encoded(tool: &ViewTool, format: &dyn Format) -> Result<Vec<u8>, Problem> {
    let refused = |why: &str| {
        let format = NextStep::parameter("format", format.id());
        let native = NextStep::parameter("format", "native");
        let problem =
            Problem::not_found(format!("`{}` is not offered as {format}: {why}", tool.id));
        problem
            .and_next(&format!("{native} shows it"))
            .with_next(format)
            .with_next(native)
    };
    if format.for_llm() && tool.is_internal() {
        return Err(refused(match &tool.execution {
            Execution::ActivityOf(_) => {
                "it is the activity of a definition, which is offered in its place"
            }
            _ => "its scenario marks it as internal",
        }));
    }
    if format.for_llm() && !tool.effective.enabled {
        return Err(refused(&format!(
            "it is switched off by {}",
            tool.effective.enabled_source
        )));
    }
    let encoded = format.encode(tool);
    encoded.json.ok_or_else(|| {
        let why: Vec<&str> = encoded
            .findings
            .iter()
            .map(|finding| finding.message.as_str())
            .collect();
        refused(&why.join("; "))
    })
}

/// [`list`] as a handler of the router. The description of the API takes the route from it.
pub(in crate::server) async fn list_route(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    list(&shared, uri.query(), &headers, bytes.answers(), false)
        .await
        .map(axum::body::Body::new)
}

/// The answer about one tool, by its name.
type ToolAnswer = fn(&ServerState, &Arc<Snapshot>, &ViewQuery, &str) -> Result<Response, Problem>;

/// `GET /api/v1/tools/{name}`, `GET /api/v1/tools/{name}/explain` and `.../history`.
///
/// A tool is found by its published name, by `scenario/tool` (the slash plain or as `%2F`), or by
/// an original name that only one tool has. Parameters: `format`, `profile`, `chat_id`. A disabled
/// tool is shown as disabled. A tool that is not published now is 404 with the reason; a name that
/// could mean several tools is 409 with `candidates`.
///
/// Explanations and histories are written a few at once, as pages are. `a/explain` explains the
/// tool `a`. If there is no tool `a`, it is the tool `explain` of the scenario `a`, which can
/// always be reached as `a%2Fexplain`. The same holds for `history`.
pub(in crate::server) async fn one_route(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let rest = uri.path().strip_prefix(TOOLS_PREFIX).unwrap_or_default();
    let snapshot = shared.reader.snapshot();
    let catalog = &snapshot.catalog;
    let parts: [(&str, ToolAnswer); 2] =
        [("/explain", explain::answer), ("/history", history::answer)];
    for (part, answer) in parts {
        let Some(before) = rest.strip_suffix(part) else {
            continue;
        };
        let name = percent_decode(before)?;
        let whole = percent_decode(rest)?;
        let scope = QueryParams::parse(uri.query(), ONE).and_then(|query| query.scope());
        let scope = including_disabled(scope.unwrap_or_default());
        if lookup::exists(catalog, &scope, &name) || !lookup::exists(catalog, &scope, &whole) {
            let scope = including_disabled(QueryParams::parse(uri.query(), EXPLAIN)?.scope()?);
            lookup::check_profile(&shared, catalog, &scope)?;
            // A history that is not followed up yet takes longer than other requests may wait.
            let state = Arc::clone(&shared);
            let made = async move { answer(&state, &snapshot, &scope, &name) };
            return rendered(&shared, &bytes, made).await?;
        }
    }
    let answer = percent_decode(rest)
        .and_then(|name| tool_answer(&shared, &snapshot, &name, uri.query(), &headers));
    Ok(answer?.map(axum::body::Body::new))
}

/// Decodes percent-encoding (RFC 3986 section 2.1). A `%` without two hexadecimal digits is kept as
/// it is.
fn percent_decode(rest: &str) -> Result<String, Problem> {
    percent_encoding::percent_decode_str(rest)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| {
            Problem::bad_request(format!(
                "`{}` is not UTF-8 after percent-decoding",
                excerpt(rest)
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::IF_NONE_MATCH;

    fn prepared(coding: Coding, left_out: usize) -> Prepared {
        Prepared {
            body: Bytes::from_static(b"[1]"),
            coding,
            etag: HeaderValue::from_static("\"abc\""),
            tools: 1,
            findings: Arc::default(),
            left_out,
            deferred: 2,
            tokens: 30,
            selection: Some("0123456789ab".into()),
            notes: vec!["sticky-gone", "prefix-broken"].into(),
            reservation: Arc::default(),
        }
    }

    #[test]
    fn names_are_decoded_once() {
        for (written, read) in [
            ("a%2Fb", "a/b"),
            ("a/b", "a/b"),
            ("%D0%BA", "к"),
            ("100%", "100%"),
            ("%zz%2", "%zz%2"),
            ("%252F", "%2F"),
        ] {
            assert_eq!(percent_decode(written).unwrap(), read);
        }
        assert_eq!(
            percent_decode("%ff")
                .unwrap_err()
                .into_full_response()
                .status(),
            400
        );
    }

    #[test]
    fn a_list_tells_its_coding_and_what_was_left_out() {
        let answer =
            prepare_response(&prepared(Coding::Gzip, 26), Revision(7)).answer(&HeaderMap::new());
        assert_eq!(answer.status(), 200);
        for (name, value) in [
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
            ("vary", "accept-encoding"),
            ("etag", "\"abc\""),
            ("cache-control", "private, no-cache"),
            ("callsheet-revision", "0000000000000007"),
            ("callsheet-tools", "1"),
            ("callsheet-left-out", "26"),
            ("callsheet-deferred", "2"),
            ("callsheet-tokens", "30"),
            ("callsheet-selection", "0123456789ab"),
            ("callsheet-notes", "sticky-gone, prefix-broken"),
        ] {
            assert_eq!(answer.headers()[name], value, "{name}");
        }
        let plain =
            prepare_response(&prepared(Coding::Identity, 0), Revision(7)).answer(&HeaderMap::new());
        assert!(!plain.headers().contains_key("content-encoding"));
        assert!(!plain.headers().contains_key("callsheet-left-out"));
    }

    #[test]
    fn a_known_list_is_not_sent_again() {
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, HeaderValue::from_static("W/\"abc\""));
        let answer = prepare_response(&prepared(Coding::Gzip, 0), Revision(7)).answer(&headers);
        assert_eq!(answer.status(), 304);
        assert_eq!(answer.headers()["etag"], "\"abc\"");
        assert_eq!(answer.headers()["vary"], "accept-encoding");
        for absent in ["content-type", "content-encoding"] {
            assert!(!answer.headers().contains_key(absent), "{absent}");
        }
        assert_eq!(hyper::body::Body::size_hint(answer.body()).exact(), Some(0));
    }
}
