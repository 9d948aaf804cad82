//! The lists of bundles and of all stored tools, by filters and in pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::response::Response;
use uuid::Uuid;

use super::bundle_json::{self, BundleListJson, ToolListJson};
use super::page_token::{PAGE_TOKEN, WantedPage, page_size};
use super::path_names::bundle_id;
use super::switches;
use crate::bundles::{StoredBundle, StoredTool};
use crate::server::ServerState;
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::params::{Param, ParamType, grammar, many, once};
use crate::server::http::query::QueryParams;

const BUNDLE_IDS: Param = many("bundleIDs")
    .takes(ParamType::Matching(grammar::UUID_7))
    .about(
        "Only these bundles.",
        "018faf50-b7b6-7a01-9a05-a22a6e0af101",
    );
/// Adds what is disabled.
pub(super) const INCLUDE_DISABLED: Param = once("includeDisabled")
    .takes(ParamType::Flag)
    .about("Also what is disabled, or in a disabled bundle.", "true");

/// Adds what is deleted.
const INCLUDE_DELETED: Param = once("includeDeleted").takes(ParamType::Flag).about(
    "Also what is deleted and can still be restored; it has `softDeletedAt`.",
    "true",
);

/// The parameters of the list of bundles.
pub(super) const BUNDLE_FILTERS: &[Param] = &[
    BUNDLE_IDS,
    INCLUDE_DISABLED,
    INCLUDE_DELETED,
    page_size("pageSize"),
    PAGE_TOKEN,
];
/// The parameters of the list of tools.
pub(super) const TOOL_FILTERS: &[Param] = &[
    many("tags").about("Only tools with one of these tags.", "weather"),
    BUNDLE_IDS,
    INCLUDE_DISABLED,
    page_size("recommendedPageSize"),
    PAGE_TOKEN,
];

/// The filters that both lists have.
struct BundleFilter {
    ids: BTreeSet<Uuid>,
    with_disabled: bool,
}

impl BundleFilter {
    fn parse(query: &QueryParams) -> Result<Self, Problem> {
        let ids = query
            .list("bundleIDs")?
            .into_iter()
            .map(bundle_id)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            ids,
            with_disabled: query.flag("includeDisabled")?,
        })
    }

    fn takes(&self, bundle: &StoredBundle) -> bool {
        (self.ids.is_empty() || self.ids.contains(&bundle.definition.id))
            && (self.with_disabled || bundle.definition.is_enabled)
    }
}

/// `{"bundles": [...], "nextPageToken"?}`, in the order in which they were made.
pub(super) fn bundles(shared: &ServerState, raw: Option<&str>) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw, BUNDLE_FILTERS)?;
    let filter = BundleFilter::parse(&query)?;
    let with_deleted = query.flag("includeDeleted")?;
    let filters = format!(
        "bundles {:?} {} {with_deleted}",
        filter.ids, filter.with_disabled
    );
    let page = WantedPage::parse(&query, "pageSize", &filters)?;
    let set = shared.bundles.set();
    let is_there =
        |bundle: &StoredBundle| with_deleted || bundle.definition.soft_deleted_at.is_none();
    let all = set
        .bundles()
        .filter(|bundle| is_there(bundle) && filter.takes(bundle));
    let (page, next) = page.cut(all, |bundle| bundle.definition.id.to_string());
    let bundles = page
        .into_iter()
        .map(|bundle| bundle_json::bundle(bundle))
        .collect::<Result<_, _>>()?;
    shared_json::json(&BundleListJson {
        bundles,
        next_page_token: next,
    })
}

/// What a request for a list of tools wants.
struct ToolListQuery<'a> {
    filter: BundleFilter,
    tags: Vec<&'a str>,
    page: WantedPage,
}

impl<'a> ToolListQuery<'a> {
    fn parse(query: &'a QueryParams) -> Result<Self, Problem> {
        let filter = BundleFilter::parse(query)?;
        let tags = query.list("tags")?;
        let filters = format!("tools {:?} {:?} {}", tags, filter.ids, filter.with_disabled);
        let page = WantedPage::parse(query, "recommendedPageSize", &filters)?;
        Ok(Self { filter, tags, page })
    }
}

/// Refuses a query that the list of tools refuses.
pub(super) fn check(raw: Option<&str>) -> Result<(), Problem> {
    let query = QueryParams::parse(raw, TOOL_FILTERS)?;
    ToolListQuery::parse(&query).map(|_| ())
}

/// `{"tools": [...], "nextPageToken"?}`, by bundle, slug and version.
pub(super) fn tools(shared: &ServerState, raw: Option<&str>) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw, TOOL_FILTERS)?;
    let ToolListQuery { filter, tags, page } = ToolListQuery::parse(&query)?;
    let snapshot = shared.reader.snapshot();
    let is_wanted = |bundle: &StoredBundle, tool: &StoredTool| {
        (tags.is_empty() || tool.tags.iter().any(|tag| tags.contains(&tag.as_str())))
            && (filter.with_disabled || switches::both_on(&snapshot.catalog, bundle, tool))
    };
    let set = shared.bundles.set();
    let of_bundle = |bundle: &Arc<StoredBundle>| -> Vec<(Arc<StoredBundle>, Arc<StoredTool>)> {
        let wanted = bundle.tools.iter().filter(|tool| is_wanted(bundle, tool));
        wanted
            .map(|tool| (Arc::clone(bundle), Arc::clone(tool)))
            .collect()
    };
    let all = set
        .listed()
        .filter(|bundle| filter.takes(bundle))
        .flat_map(of_bundle);
    // A character below all of the grammar's stands between the parts, so that the order is theirs.
    let (page, next) = page.cut(all, |(bundle, tool)| {
        format!(
            "{}\u{1}{}\u{1}{}",
            bundle.definition.id, tool.slug, tool.version
        )
    });
    let tools = page
        .iter()
        .map(|(bundle, tool)| bundle_json::tool(shared, &snapshot.catalog, bundle, tool))
        .collect::<Result<_, _>>()?;
    shared_json::json(&ToolListJson {
        tools,
        next_page_token: next,
    })
}
