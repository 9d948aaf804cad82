//! The identity of each list that clients use, computed once.

use std::collections::VecDeque;
use std::sync::Arc;

use callsheet_provide::json_rpc::{IdentifiedTool, ListIdentity};
use http::HeaderValue;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::views::Prepared;

/// The identities that are kept: one for each list that clients use at a time.
const KEPT: usize = 64;

/// Identities by the `ETag` of their list, so that each is computed once.
#[derive(Debug, Default)]
pub(in crate::server) struct Identities(Mutex<VecDeque<(HeaderValue, Arc<ListIdentity>)>>);

#[derive(Deserialize)]
struct ToolList<'a> {
    #[serde(borrow)]
    tools: Vec<ListedTool<'a>>,
}

#[derive(Deserialize)]
struct ListedTool<'a> {
    name: String,
    description: String,
    #[serde(borrow, rename = "inputSchema")]
    schema: &'a RawValue,
}

impl Identities {
    /// The identity of a list; `None` if its text cannot be read.
    pub(super) fn of(&self, list: &Prepared) -> Option<Arc<ListIdentity>> {
        let mut kept = self.0.lock();
        if let Some((_, known)) = kept.iter().find(|(etag, _)| *etag == list.etag) {
            return Some(Arc::clone(known));
        }
        let identity = Arc::new(identity(&list.body)?);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((list.etag.clone(), Arc::clone(&identity)));
        Some(identity)
    }
}

fn identity(list: &[u8]) -> Option<ListIdentity> {
    let tools = serde_json::from_slice::<ToolList<'_>>(list).ok()?.tools;
    let identified = tools.iter().map(|tool| IdentifiedTool {
        name: &tool.name,
        description: &tool.description,
        schema: tool.schema.get(),
    });
    Some(ListIdentity::of(identified.collect()))
}
