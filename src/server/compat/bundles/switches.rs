//! The two switches of a stored tool: that of its file, and what preferences say. A tool can be
//! called when both are on.

use crate::bundles::{StoredBundle, StoredTool};
use crate::catalog::Catalog;
use crate::model::{Provenance, ToolId};
use crate::protocols::bundle::listed_tool;

/// Whether preferences for all clients enable or disable a tool; `None` where none says so.
pub(in crate::server) fn preferred(
    catalog: &Catalog,
    bundle: &StoredBundle,
    tool: &StoredTool,
) -> Option<bool> {
    let name = tool.name();
    let listed = catalog
        .entry(&bundle.scenario)
        .and_then(|entry| entry.tool(&name));
    let effective = if let Some(listed) = listed {
        listed.effective.clone()
    } else {
        let id = ToolId {
            scenario: bundle.scenario.clone(),
            tool: name.into(),
        };
        catalog.effective(&id, &listed_tool(bundle, tool)?)
    };
    match effective.enabled_source {
        Provenance::Manifest => None,
        Provenance::Preference(_) | Provenance::UnfitOverride(_) => Some(effective.enabled),
    }
}

/// Whether both switches are on.
pub(super) fn both_on(catalog: &Catalog, bundle: &StoredBundle, tool: &StoredTool) -> bool {
    tool.is_enabled && preferred(catalog, bundle, tool) != Some(false)
}
