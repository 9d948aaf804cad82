//! The search over all stored tools: that of the palette, over a catalog of them alone, so that
//! what is disabled or cannot run now is found, too.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;

use super::bundle_json::{self, ToolListJson};
use super::lists::INCLUDE_DISABLED;
use super::page_token::{PAGE_TOKEN, WantedPage, page_size};
use super::switches;
use crate::bundles::{BundleSet, StoredBundle, StoredTool};
use crate::catalog::{self, Catalog, Inputs, Offer, View, ViewQuery, Visibility};
use crate::model::ToolId;
use crate::protocols::bundle;
use crate::server::SharedState;
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::params::{Param, once};
use crate::server::http::query::{QueryParams, question};

/// The parameters of the search.
pub(super) const SEARCH_PARAMS: &[Param] = &[
    once("q")
        .about("What a person typed of a name, or words.", "weath")
        .required(),
    INCLUDE_DISABLED,
    page_size("pageSize"),
    PAGE_TOKEN,
];

/// A tool with its bundle.
type FoundTool = (Arc<StoredBundle>, Arc<StoredTool>);

/// `{"tools": [...], "nextPageToken"?}`: what begins with the text first, then what has its words,
/// then what has them but for slips; among equals the latest first.
pub(super) async fn answer(shared: &SharedState, raw: Option<&str>) -> Result<Response, Problem> {
    let WantedTools {
        typed,
        with_disabled,
        page,
    } = parse(raw)?;
    let set = shared.bundles.set();
    let snapshot = shared.reader.snapshot();
    let searched = Arc::clone(&snapshot);
    let found = shared
        .tasks
        .off_thread(move || find(&set, &searched.catalog, &typed, with_disabled))
        .await;
    let (page, next) = page.cut(found.into_iter().enumerate(), |(at, _)| format!("{at:08}"));
    let tools = page
        .iter()
        .map(|(_, (bundle, tool))| bundle_json::tool(shared, &snapshot.catalog, bundle, tool))
        .collect::<Result<_, _>>()?;
    shared_json::json(&ToolListJson {
        tools,
        next_page_token: next,
    })
}

/// What a search looks for.
struct WantedTools {
    typed: String,
    with_disabled: bool,
    page: WantedPage,
}

/// Refuses a query that a search refuses.
pub(super) fn check(raw: Option<&str>) -> Result<(), Problem> {
    parse(raw).map(|_| ())
}

fn parse(raw: Option<&str>) -> Result<WantedTools, Problem> {
    let query = QueryParams::parse(raw, SEARCH_PARAMS)?;
    let typed = question(query.required("q")?).to_owned();
    let with_disabled = query.flag("includeDisabled")?;
    let page = WantedPage::parse(
        &query,
        "pageSize",
        &format!("search {typed} {with_disabled}"),
    )?;
    Ok(WantedTools {
        typed,
        with_disabled,
        page,
    })
}

/// The tools that fit, the best first.
fn find(set: &BundleSet, now: &Catalog, typed: &str, with_disabled: bool) -> Vec<FoundTool> {
    let mut inputs = Inputs::default();
    let mut tools = BTreeMap::new();
    for stored in set
        .listed()
        .filter(|bundle| with_disabled || bundle.definition.is_enabled)
    {
        if let Some(manifest) = bundle::whole_manifest(stored) {
            let offer = Offer {
                manifest: Arc::new(manifest),
                visibility: Visibility::Published,
            };
            inputs.offers.insert(stored.scenario.clone(), offer);
        }
        let is_wanted = |tool: &StoredTool| with_disabled || switches::both_on(now, stored, tool);
        for tool in stored.tools.iter().filter(|tool| is_wanted(tool)) {
            let id = ToolId {
                scenario: stored.scenario.clone(),
                tool: tool.name().into(),
            };
            tools.insert(id, (Arc::clone(stored), Arc::clone(tool)));
        }
    }
    let mut latest: Vec<(&ToolId, &FoundTool)> = tools.iter().collect();
    latest.sort_by_key(|(_, (_, tool))| Reverse(tool.modified_at));
    let latest: Vec<ToolId> = latest.into_iter().map(|(id, _)| id.clone()).collect();
    let query = ViewQuery {
        include_disabled: true,
        ..ViewQuery::default()
    };
    let view = View::select(&catalog::build(&inputs), &query);
    let hits = view.palette(typed, &latest, usize::MAX);
    hits.iter()
        .filter_map(|hit| tools.get(&hit.tool.id).cloned())
        .collect()
}
