//! Which tools a view lacks, and why.

use std::collections::BTreeSet;

use super::filter::ViewFilter;
use super::{LeftOut, View, ViewQuery};
use crate::catalog::scoped_catalog::ScopedCatalog;
use crate::catalog::{Catalog, Visibility};
use crate::model::ToolId;

impl View {
    /// Every tool of a published or withdrawn scenario that is not in this view, in order, each
    /// with its one reason. The view is of the same catalog and query. Scenarios that wait for an
    /// operator's approval, or are blocked, have no published tools and are not listed.
    pub fn absences(&self, catalog: &Catalog, query: &ViewQuery) -> Vec<LeftOut> {
        let lens = ScopedCatalog::for_query(catalog, query);
        let filter = ViewFilter::for_query(catalog, query);
        let present: BTreeSet<&ToolId> = self.tools().map(|tool| &tool.id).collect();
        let chosen: BTreeSet<&ToolId> = self.left_out.iter().map(|left| &left.tool.id).collect();
        let mut absences = self.left_out.clone();
        for entry in catalog
            .entries()
            .filter(|entry| !matches!(entry.visibility, Visibility::Hidden(_)))
        {
            let refused = filter.refuses_entry(entry);
            for tool in entry
                .tools
                .iter()
                .filter(|tool| !present.contains(&tool.id) && !chosen.contains(&tool.id))
            {
                let tool = lens.tool(tool);
                let why = refused.clone().or_else(|| filter.refuses(&tool));
                // A tool that no rule refuses is in the view or was left out by the choice.
                absences.extend(why.map(|why| LeftOut { tool, why }));
            }
        }
        absences.sort_by(|a, b| a.tool.id.cmp(&b.tool.id));
        absences
    }
}
