//! What scenarios offer besides tools: lists from memory, and requests that are passed on to the
//! scenario that owns their subject.
//!
//! Results and errors come through as the scenario sent them; only what the client's era wants
//! besides is added.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::{ExecuteError, RelayRequest, RelayResponse};
use crate::catalog::{Catalog, NamingStyle, RelayedItem, Snapshot, ViewQuery};
use crate::model::{JsonText, RelayedKind, ScenarioName};
use crate::protocols::RelayMethod;
use crate::runtime::tasks::BodyStep;
use crate::server::api::findings::digest_text;
use crate::server::http::held::with_reservation;
use crate::server::mcp::answer::Answer;
use crate::server::mcp::caller::McpCaller;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::held::{LongRequestEnd, LongRequestResult};
use crate::server::mcp::lists;
use crate::server::mcp::long_request::{AnswerWriter, RequestParts};
use crate::server::mcp::refusal::{INVALID_PARAMS, Refusal};
use crate::server::mcp::request_state::StateBinding;
use crate::server::rendered::rendered;
use crate::views::{Coding, ViewRefused};

/// An own error: the scenario gave no answer.
const UNANSWERED: i64 = -31_010;
/// A resource that is not known, to legacy clients.
const RESOURCE_NOT_FOUND: i64 = -32_002;
/// Lists of at most so many offers are made on the thread that serves requests.
const BRIEF_OFFERS: usize = 100;
/// The members of parameters that are of the request, not of its subject.
const OF_THE_REQUEST: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// The naming of this face.
pub(super) fn naming(context: &McpContext) -> NamingStyle {
    context.shared.config.borrow().mcp_face.naming
}

/// A list of one kind, or the page of it that the client wants. It is kept for its snapshot, and
/// for all clients that see the same.
pub(super) async fn list(
    context: &McpContext,
    kind: RelayedKind,
    params: Option<&JsonText>,
) -> Result<Bytes, Refusal> {
    let snapshot = snapshot(context);
    let style = naming(context);
    let key = list_key(&snapshot.catalog, &context.list.view, kind, style);
    let lists = &context.shared.offer_lists;
    let ready = if let Some(ready) = lists.find(&snapshot, &key, Coding::Identity) {
        ready
    } else {
        let shared = Arc::clone(&context.shared);
        let make = move |snapshot: &Arc<Snapshot>, view: &ViewQuery| {
            let write = || Ok::<_, Refusal>(written(&snapshot.catalog, view, kind, style));
            let lists = &shared.offer_lists;
            lists.find_or_write(snapshot, &key, HeaderMap::new(), write)
        };
        of_offers(context, snapshot, kind, make).await??
    };
    let reserved = ready
        .reservation
        .hold(ready.body.len(), context.bytes.answers())
        .map_err(ViewRefused::from)?;
    let whole = with_reservation(ready.body.clone(), reserved);
    lists::page(context, whole, kind.member(), params).await
}

/// What a list of offers is recognised by among those of its snapshot: all that it depends on.
fn list_key(catalog: &Catalog, view: &ViewQuery, kind: RelayedKind, style: NamingStyle) -> String {
    let is_qualified = style == NamingStyle::Always;
    let seen = (catalog.profile_of(view), &view.scenarios);
    let parts = format!("{is_qualified} {seen:?}");
    format!("{} {}", kind.member(), digest_text(parts.as_bytes()))
}

/// What `make` makes of the offers of one kind that this client sees. That takes long where there
/// are many of them, and is done where pages are written then.
pub(super) async fn of_offers<T: Send + 'static>(
    context: &McpContext,
    snapshot: Arc<Snapshot>,
    kind: RelayedKind,
    make: impl FnOnce(&Arc<Snapshot>, &ViewQuery) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let view = context.list.view.clone();
    let has_many = snapshot
        .catalog
        .relayed(&view, kind)
        .nth(BRIEF_OFFERS)
        .is_some();
    if !has_many {
        return Ok(make(&snapshot, &view));
    }
    let work = async move { make(&snapshot, &view) };
    let done = rendered(&context.shared, &context.bytes, work).await;
    Ok(done.map_err(ViewRefused::from)?)
}

/// A whole list of one kind.
fn written(catalog: &Catalog, view: &ViewQuery, kind: RelayedKind, style: NamingStyle) -> Vec<u8> {
    let mut body = format!(r#"{{"resultType":"complete","{}":["#, kind.member());
    let mut is_first = true;
    let mut write = |key: &str, item: &RelayedItem<'_>| {
        if !std::mem::take(&mut is_first) {
            body.push(',');
        }
        let _ = write!(body, r#"{{"{}":{}"#, kind.key(), Value::from(key));
        for (name, value) in &item.offer.members {
            let _ = write!(body, ",{}:{}", Value::from(&**name), value.get());
        }
        body.push('}');
    };
    if kind == RelayedKind::Prompts {
        for (name, item) in catalog.prompts(view, style) {
            write(name.as_str(), &item);
        }
    } else {
        catalog
            .relayed(view, kind)
            .for_each(|item| write(&item.offer.key, &item));
    }
    body.push_str(r#"],"ttlMs":60000,"cacheScope":"private"}"#);
    body.into_bytes()
}

/// The parameters of a request as an object.
pub(super) fn object(method: RelayMethod, params: Option<&JsonText>) -> Result<Value, Refusal> {
    let params: Value =
        serde_json::from_str(params.map_or("{}", JsonText::get)).map_err(|error| {
            Refusal::invalid(format!(
                "the parameters of {} cannot be read: {error}",
                method.as_str()
            ))
        })?;
    if params.is_object() {
        Ok(params)
    } else {
        Err(Refusal::invalid("the parameters are no object"))
    }
}

/// Sends a request to a scenario and answers with its result. `sent` are the parameters as the
/// client wrote them, `params` those for the scenario.
pub(super) async fn send(
    context: &McpContext,
    client: McpClient,
    id: &JsonText,
    sent: Option<&JsonText>,
    scenario: ScenarioName,
    method: RelayMethod,
    mut params: Value,
) -> Result<Answer, Refusal> {
    let subject = method
        .subject()
        .and_then(|member| params[member].as_str())
        .unwrap_or_default()
        .to_owned();
    if let Some(members) = params.as_object_mut() {
        members.retain(|name, _| !OF_THE_REQUEST.contains(&name.as_str()));
    }
    let params = JsonText::parse(&params.to_string())
        .map_err(|error| Refusal::invalid(format!("the parameters cannot be sent: {error}")))?;
    let parts: RequestParts<'_> = serde_json::from_str(sent.map_or("{}", JsonText::get))
        .map_err(|error| Refusal::invalid(format!("the request cannot be read: {error}")))?;
    let scope = context.list.view.clone();
    let tool = format!("{} {scenario} {subject}", method.as_str());
    let bound = StateBinding {
        profile: scope.profile.clone(),
        permission: scope.permission,
        tool,
        arguments: params.clone(),
    };
    let answer = AnswerWriter::new(context, id, &parts, bound);
    let requester = context.access.requester();
    let calls = context.shared.calls.clone();
    let tasks = context.shared.tasks.clone();
    let is_modern = client.is_modern();
    let work = |caller: Arc<McpCaller>, resumed| async move {
        let request = RelayRequest {
            scenario,
            method,
            params,
            resumed,
            scope,
            requester,
        };
        match calls.relay(request, Some(caller)).await {
            Ok(answered) => {
                let bytes = answered.outcome.bytes();
                let finish = move || finished(&answered, method, is_modern, &subject);
                tasks.work_on_body(BodyStep::Further, bytes, finish).await
            }
            Err(refused) => Err(unanswered(&refused)),
        }
    };
    answer.run(context, client, parts, work).await
}

/// The refusal of a request that its scenario did not answer.
pub(super) fn unanswered(refused: &ExecuteError) -> Refusal {
    Refusal::new(StatusCode::OK, UNANSWERED, refused.to_string())
}

/// The result of a scenario, or its error. What is reserved for it is free again after that.
fn finished(
    answered: &RelayResponse,
    method: RelayMethod,
    is_modern: bool,
    subject: &str,
) -> LongRequestEnd {
    let outcome = &answered.outcome;
    if let Some(required) = &outcome.input_required {
        return Ok(LongRequestResult::NeedsInput(required.clone()));
    }
    if let Some(result) = &outcome.content {
        return Ok(LongRequestResult::Complete(completed(result.get(), method)));
    }
    let code = outcome
        .code
        .as_deref()
        .and_then(|code| code.parse().ok())
        .unwrap_or(UNANSWERED);
    if method == RelayMethod::ReadResource && code == RESOURCE_NOT_FOUND {
        return Err(unknown_resource(is_modern, subject));
    }
    let mut refusal = Refusal::new(
        status(code),
        code,
        outcome.error.clone().unwrap_or_default(),
    );
    refusal.error.data.clone_from(&outcome.document);
    Err(refusal)
}

/// The status of an error of a scenario: some codes belong to one (MCP 2026-07-28, error codes).
fn status(code: i64) -> StatusCode {
    if (-32_022..=-32_020).contains(&code) {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    }
}

/// A resource that no scenario of this client has.
pub(super) fn unknown_resource(is_modern: bool, uri: &str) -> Refusal {
    let message = format!("no resource is known as {uri:?}");
    let code = if is_modern {
        INVALID_PARAMS
    } else {
        RESOURCE_NOT_FOUND
    };
    Refusal::new(StatusCode::OK, code, message).with_data(&json!({"uri": uri}))
}

/// A result with the members that only modern servers write.
fn completed(result: &str, method: RelayMethod) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ResultHints<'a> {
        #[serde(borrow)]
        result_type: Option<&'a RawValue>,
        #[serde(borrow)]
        ttl_ms: Option<&'a RawValue>,
        #[serde(borrow)]
        cache_scope: Option<&'a RawValue>,
    }
    let Ok(has) = serde_json::from_str::<ResultHints<'_>>(result) else {
        return result.to_owned();
    };
    let mut own = Vec::new();
    if has.result_type.is_none() {
        own.push(r#""resultType":"complete""#);
    }
    if method == RelayMethod::ReadResource {
        own.extend(has.ttl_ms.is_none().then_some(r#""ttlMs":0"#));
        own.extend(
            has.cache_scope
                .is_none()
                .then_some(r#""cacheScope":"private""#),
        );
    }
    let rest = result[1..].trim_start();
    let comma = if own.is_empty() || rest.starts_with('}') {
        ""
    } else {
        ","
    };
    format!("{{{}{comma}{rest}", own.join(","))
}

/// The only scenario among these, or the refusal that names them all.
pub(super) fn only_owner<'a>(
    mut owners: impl Iterator<Item = &'a ScenarioName>,
    uri: &str,
) -> Result<Option<&'a ScenarioName>, Refusal> {
    let Some(first) = owners.next() else {
        return Ok(None);
    };
    let others: Vec<_> = owners.filter(|other| *other != first).collect();
    if others.is_empty() {
        return Ok(Some(first));
    }
    let all: Vec<String> = std::iter::once(first)
        .chain(others)
        .map(ToString::to_string)
        .collect();
    let message = format!(
        "several scenarios have the resource {uri:?}: {}; connect to `/mcp?scenario=NAME` or to a profile with one of them",
        all.join(", ")
    );
    Err(Refusal::invalid(message).with_data(&json!({"uri": uri, "scenarios": all})))
}

/// The present snapshot.
pub(super) fn snapshot(context: &McpContext) -> Arc<Snapshot> {
    context.shared.reader.snapshot()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_gets_what_it_lacks_and_nothing_else() {
        let read = |result: &str| completed(result, RelayMethod::ReadResource);
        assert_eq!(
            read(r#"{ "contents":[]}"#),
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#
        );
        let whole = r#"{"contents":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"}"#;
        assert_eq!(read(whole), whole);
        assert_eq!(
            completed("{}", RelayMethod::Complete),
            r#"{"resultType":"complete"}"#
        );
    }
}
