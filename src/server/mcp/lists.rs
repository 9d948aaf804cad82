//! `tools/list`, and what all lists have in common: pages.
//!
//! A list is prepared once and answered from memory. It has one page unless `mcp.page_size` says
//! otherwise, since many clients read the first page only.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::catalog::{NamingStyle, Snapshot, ViewQuery};
use crate::engine::FIRST_LIST_TIMEOUT;
use crate::formats::{Format, McpToolList, mcp_tools};
use crate::model::JsonText;
use crate::runtime::tasks::BodyStep;
use crate::server::http::held::with_reservation;
use crate::server::mcp::context::McpContext;
use crate::server::mcp::refusal::Refusal;
use crate::views::{Coding, ViewRequest, etag};

/// The format in which this client gets its tools.
pub(super) fn format(context: &McpContext, snapshot: &Snapshot) -> &'static dyn Format {
    mcp_tools(face(context, snapshot))
}

/// The names and the own tools of the list that this client gets.
pub(super) fn face(context: &McpContext, snapshot: &Snapshot) -> McpToolList {
    let published_names =
        context.shared.config.borrow().mcp_face.naming == NamingStyle::OnCollision;
    let operations = snapshot.catalog.may_run_long(&context.list.view);
    McpToolList {
        published_names,
        operations,
        search: context.list.view.pinned_only,
    }
}

/// What a search of this client looks at: all tools that it may see.
pub(super) fn searched(context: &McpContext) -> ViewQuery {
    let view = &context.list.view;
    ViewQuery {
        pinned_only: false,
        q: None,
        max_tools: None,
        max_tokens: None,
        cap: None,
        sticky: None,
        defer: None,
        ..view.clone()
    }
}

/// Waits for the first answers of configured scenarios without a stored list: many clients list
/// once, and would work without any tool. This is the one exception to the rule that a reader
/// never waits (decision 0186); its deadline is that of the scenarios, the same for all clients.
pub(super) async fn wait_for_first_answers(context: &McpContext) {
    let shared = &context.shared;
    tokio::select! {
        biased;
        () = shared.engine.first_lists().wait() => {}
        () = shared.stop.wait() => {}
        // Further entries that appear meanwhile do not make the wait longer.
        () = shared.clock.sleep(FIRST_LIST_TIMEOUT) => {}
    }
}

/// `tools/list`.
pub(super) async fn tools(
    context: &McpContext,
    params: Option<&JsonText>,
) -> Result<Bytes, Refusal> {
    let shared = &context.shared;
    let snapshot = context.shared.reader.snapshot();
    let format = format(context, &snapshot);
    shared.used_formats.add("mcp");
    let wanted = ViewRequest {
        query: &context.list.view,
        format,
        report: false,
    };
    let held = shared
        .views
        .prepare_for(&snapshot, wanted, Coding::Identity, context.bytes.answers())
        .await?;
    let whole = with_reservation(held.prepared.body.clone(), held.reserved);
    page(context, whole, "tools", params).await
}

/// The page of a list that a client wants: the whole list where it has one page.
pub(super) async fn page(
    context: &McpContext,
    whole: Bytes,
    member: &'static str,
    params: Option<&JsonText>,
) -> Result<Bytes, Refusal> {
    let size = context.shared.config.borrow().mcp_face.page_size;
    let cursor = PageCursor::requested(params)?;
    if size == 0 && cursor.is_none() {
        return Ok(whole);
    }
    let bytes = whole.len();
    let divide = move || page_of(&whole, member, size, cursor);
    context
        .shared
        .tasks
        .work_on_body(BodyStep::Further, bytes, divide)
        .await
}

/// The page of a list that a cursor means, or the first one.
fn page_of(
    whole: &Bytes,
    member: &str,
    size: usize,
    cursor: Option<String>,
) -> Result<Bytes, Refusal> {
    let revision = etag::strong(whole, Coding::Identity);
    let revision = revision.to_str().unwrap_or_default().trim_matches('"');
    let first = match cursor {
        Some(cursor) if size > 0 => PageCursor::decode(&cursor, revision)?,
        Some(cursor) => return Err(PageCursor::refused(&cursor)),
        None => 0,
    };
    let failed = |_| Refusal::invalid("the list cannot be divided into pages");
    let members: BTreeMap<&str, &RawValue> = serde_json::from_slice(whole).map_err(failed)?;
    let items = members.get(member).map_or("[]", |items| items.get());
    let items: Vec<&RawValue> = serde_json::from_str(items).map_err(failed)?;
    let next = first.saturating_add(size);
    let mut out = String::from("{");
    for (name, value) in &members {
        if *name == member {
            let shown: Vec<_> = items
                .iter()
                .skip(first)
                .take(size)
                .map(|item| item.get())
                .collect();
            let _ = write!(out, r#""{name}":[{}],"#, shown.join(","));
        } else {
            let _ = write!(out, r#""{name}":{},"#, value.get());
        }
    }
    if next < items.len() {
        let _ = write!(
            out,
            r#""nextCursor":"{}","#,
            PageCursor::encode(revision, next)
        );
    }
    out.pop();
    out.push('}');
    Ok(out.into())
}

/// Where the next page of a list begins. Clients see it as a text without meaning.
struct PageCursor;

impl PageCursor {
    /// The cursor of a request.
    fn requested(params: Option<&JsonText>) -> Result<Option<String>, Refusal> {
        #[derive(Deserialize)]
        struct ListParams {
            cursor: Option<String>,
        }
        let Some(params) = params else {
            return Ok(None);
        };
        let params: ListParams = serde_json::from_str(params.get()).map_err(|error| {
            Refusal::invalid(format!(
                "the parameters of the list cannot be read: {error}"
            ))
        })?;
        Ok(params.cursor)
    }

    /// It is bound to the content of the list, so it never shows a part of another one.
    fn encode(revision: &str, first: usize) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{revision} {first}"))
    }

    fn decode(cursor: &str, revision: &str) -> Result<usize, Refusal> {
        let text = BASE64_URL_SAFE_NO_PAD
            .decode(cursor)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let (own, first) = text
            .as_deref()
            .and_then(|text| text.split_once(' '))
            .unwrap_or_default();
        let first = first.parse().ok().filter(|_| own == revision);
        first.ok_or_else(|| Self::refused(cursor))
    }

    fn refused(cursor: &str) -> Refusal {
        let shown: String = cursor.chars().take(80).collect();
        Refusal::invalid(format!(
            "the cursor {shown:?} is not one of this list as it is now; request the list without a cursor"
        ))
    }
}
