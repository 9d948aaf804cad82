//! The categories of a view: those of the scenarios that have tools in it, each id once.

use crate::catalog::{View, unique_categories};
use crate::model::{Category, Finding};

/// The categories of a view, and findings about them.
#[derive(Debug)]
pub struct Categories<'a> {
    /// In the order of their scenarios, then of their ids.
    pub unique: Vec<&'a Category>,
    /// One finding for each category that another scenario defines differently.
    pub findings: Vec<Finding>,
}

/// Collects the categories. If two scenarios define one id differently, the definition of the first
/// scenario is used.
pub fn for_view(view: &View) -> Categories<'_> {
    let parts = view.parts.iter().filter(|part| !part.tools.is_empty());
    let (unique, findings) = unique_categories(parts.map(|part| &*part.entry));
    Categories { unique, findings }
}
