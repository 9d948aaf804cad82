//! What paths name: bundles, tools and versions.

use axum::extract::Path;
use uuid::Uuid;

use crate::bundles::{BundleError, Slug, ToolVersion};
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::params::{Param, ParamType, grammar, once};

/// A bundle in a path.
pub(in crate::server) const BUNDLE_ID: Param = once("bundleID")
    .takes(ParamType::Matching(grammar::UUID_7))
    .about(
        "The id of the bundle, a UUID of version 7.",
        "018faf50-b7b6-7a01-9a05-a22a6e0af101",
    )
    .required();
/// A tool in a path.
pub(in crate::server) const TOOL_SLUG: Param = once("toolSlug")
    .about("The slug of the tool: letters, digits and `-`.", "weather")
    .required();
/// A version in a path.
pub(in crate::server) const TOOL_VERSION: Param = once("v")
    .about(
        "The version of the tool: letters, digits, `-` and dots.",
        "v2",
    )
    .required();

/// Characters of a UUID with its dashes.
const WRITTEN: usize = 36;

/// One version of a tool, as a path names it.
pub(super) type ToolPath = Path<(String, String, String)>;

/// The id of a bundle: a UUID of version 7, with dashes.
pub(super) fn bundle_id(text: &str) -> Result<Uuid, Problem> {
    let id = text
        .parse()
        .ok()
        .filter(|id: &Uuid| id.get_version_num() == 7 && text.len() == WRITTEN);
    id.ok_or_else(|| {
        Problem::bad_request(format!("`{}` is not a UUID of version 7", excerpt(text)))
    })
}

pub(super) fn tool_key(
    Path((bundle, slug, version)): &ToolPath,
) -> Result<(Uuid, Slug, ToolVersion), Problem> {
    let slug = slug.parse().map_err(BundleError::from)?;
    let version = version.parse().map_err(BundleError::from)?;
    Ok((bundle_id(bundle)?, slug, version))
}
