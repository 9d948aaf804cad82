//! The catalog as one asker may see it: scope, filters, limits.
//!
//! Never decides whether a tool is enabled or what it is called; only which of the published tools an asker gets.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::entry::is_listed;
use super::lens::Lens;
use super::{Catalog, Entry};
use crate::model::{Profile, ScenarioName, ViewTool};

/// What an asker wants to see. Equal queries on equal catalogs give equal views.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ViewQuery {
    /// Preferences of this profile hold, and its bounds (see [`Profile`]).
    pub profile: Option<String>,
    /// Preferences of this conversation hold.
    pub chat: Option<String>,
    /// Only tools of these scenarios; all when empty.
    pub scenarios: BTreeSet<ScenarioName>,
    /// Only tools of these categories; all when empty.
    pub categories: BTreeSet<String>,
    /// Only tools with one of these tags; all when empty.
    pub tags: BTreeSet<String>,
    /// Only tools in whose name (published or original), description, tags, category or scenario each of these words occurs, without
    /// regard to case.
    pub words: Vec<String>,
    /// Disabled tools too.
    pub include_disabled: bool,
    /// Tools marked as internal too (programs may see them, LLMs never do).
    pub include_internal: bool,
    /// At most so many; those with the highest priority stay, then the first in order.
    pub max_tools: Option<usize>,
}

/// The result.
#[derive(Debug, Clone)]
pub struct View {
    /// The scenarios that are in the list, in order, each with those of its tools that are in the view. A part without tools is only
    /// kept for a published scenario that offers none at all (which is a valid manifest), when no filter asks for certain tools.
    pub parts: Vec<Part>,
    /// Tools that a limit left out, in order.
    pub left_out: Vec<Arc<ViewTool>>,
}

/// One scenario's share of a view.
#[derive(Debug, Clone)]
pub struct Part {
    /// The scenario.
    pub entry: Arc<Entry>,
    /// Its tools in the view, sorted by original name. Shared with the entry when `whole`.
    pub tools: Arc<[Arc<ViewTool>]>,
    /// Whether `tools` is exactly [`Entry::listed`]: the entry's tools that are enabled and not internal, with global settings and
    /// names. Such parts can be rendered once per entry. This is judged by the outcome, not by the query: a filter that takes all of
    /// them, a limit that cuts none of them, a scope that changes none of them or an `include_*` that adds none leaves a part whole.
    pub whole: bool,
}

impl View {
    /// The part of the catalog that `query` asks for.
    pub fn select(catalog: &Catalog, query: &ViewQuery) -> Self {
        let lens = Lens::of(catalog, query);
        let filter = Filter::of(catalog, query);
        let mut buffer = String::new();
        let mut take =
            |entry: &Arc<Entry>| entry.is_published().then(|| filter.part(&lens, entry, &mut buffer)).flatten();
        let parts = if query.scenarios.is_empty() {
            catalog.entries().filter_map(&mut take).collect()
        } else {
            query.scenarios.iter().filter_map(|name| catalog.entry(name)).filter_map(&mut take).collect()
        };
        let mut view = Self { parts, left_out: Vec::new() };
        if let Some(max) = query.max_tools.filter(|max| *max < view.len()) {
            view.limit(max);
        }
        view
    }

    /// How many tools it has.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.tools.len()).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its tools, in order.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<ViewTool>> {
        self.parts.iter().flat_map(|part| part.tools.iter())
    }

    /// Keeps `max` tools; see [`ViewQuery::max_tools`]. There are more than that.
    fn limit(&mut self, max: usize) {
        let mut rank: Vec<_> =
            self.tools().enumerate().map(|(at, tool)| (Reverse(tool.effective.priority), at)).collect();
        rank.select_nth_unstable(max);
        let mut keep = vec![false; rank.len()];
        for (_, at) in rank.into_iter().take(max) {
            keep[at] = true;
        }
        let mut keep = keep.into_iter();
        let left_out = &mut self.left_out;
        self.parts.retain_mut(|part| {
            let (stay, go): (Vec<_>, Vec<_>) =
                part.tools.iter().cloned().partition(|_| keep.next().unwrap_or_default());
            if go.is_empty() {
                return true;
            }
            left_out.extend(go);
            part.whole = false;
            part.tools = stay.into();
            !part.tools.is_empty()
        });
    }
}

/// Which tools of a scenario an asker gets, with the words ready to be compared.
struct Filter<'a> {
    query: &'a ViewQuery,
    words: Vec<String>,
    /// Whether it asks for certain tools.
    chooses: bool,
    /// What the asker's profile may see at all.
    bounds: Option<&'a Profile>,
}

impl<'a> Filter<'a> {
    fn of(catalog: &'a Catalog, query: &'a ViewQuery) -> Self {
        let words: Vec<_> =
            query.words.iter().map(|word| word.to_lowercase()).filter(|word| !word.is_empty()).collect();
        let chooses = !(query.categories.is_empty() && query.tags.is_empty() && words.is_empty());
        Self { query, words, chooses, bounds: catalog.bounds(query) }
    }

    /// The part of a published entry; nothing when it has no place in the view.
    fn part(&self, lens: &Lens<'_>, entry: &Arc<Entry>, buffer: &mut String) -> Option<Part> {
        if self.bounds.is_some_and(|bounds| !bounds.allows_scenario(&entry.name)) {
            return None;
        }
        let whole = || Part { entry: Arc::clone(entry), tools: Arc::clone(&entry.listed), whole: true };
        if entry.tools.is_empty() {
            return (!self.chooses).then(whole);
        }
        let leveled = self.bounds.is_some_and(|bounds| bounds.permission.is_some());
        let plain = !self.chooses && !leveled && !self.query.include_disabled && !self.query.include_internal;
        let leaves = lens.leaves(entry);
        if plain && leaves {
            return (!entry.listed.is_empty()).then(whole);
        }
        let (mut tools, mut is_whole) = (Vec::new(), true);
        for global in entry.tools.iter() {
            let tool = if leaves { Arc::clone(global) } else { lens.tool(global) };
            let takes = self.takes(&tool, buffer);
            is_whole &= takes == is_listed(global) && (!takes || Arc::ptr_eq(&tool, global));
            if takes {
                tools.push(tool);
            }
        }
        match (tools.is_empty(), is_whole) {
            (true, _) => None,
            (false, true) => Some(whole()),
            (false, false) => Some(Part { entry: Arc::clone(entry), tools: tools.into(), whole: false }),
        }
    }

    fn takes(&self, tool: &ViewTool, buffer: &mut String) -> bool {
        let (query, offered) = (self.query, &*tool.tool);
        let of_category = || offered.category.as_deref().is_some_and(|id| query.categories.contains(id));
        (tool.effective.enabled || query.include_disabled)
            && (!offered.facts.internal_only || query.include_internal)
            && self.bounds.is_none_or(|bounds| bounds.allows_permission(offered.facts.required_permission))
            && (query.categories.is_empty() || of_category())
            && (query.tags.is_empty() || offered.facts.tags.iter().any(|tag| query.tags.contains(&**tag)))
            && (self.words.is_empty() || self.matches(tool, buffer))
    }

    /// Whether each word occurs somewhere in the tool's texts. `buffer` only saves allocations.
    fn matches(&self, tool: &ViewTool, buffer: &mut String) -> bool {
        let offered = &*tool.tool;
        let texts = [tool.name.as_str(), &tool.id.tool, tool.id.scenario.as_str(), &offered.description];
        let labels = offered.category.iter().chain(&offered.facts.tags).map(|text| &**text);
        buffer.clear();
        for text in texts.into_iter().chain(labels) {
            buffer.extend(text.chars().flat_map(char::to_lowercase));
            // A separator that no word holds in practice keeps words from matching across two texts.
            let _ = buffer.write_char('\u{0}');
        }
        self.words.iter().all(|word| buffer.contains(word.as_str()))
    }
}
