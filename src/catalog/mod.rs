//! The merge: offers and preferences in, one immutable catalog out.
//!
//! ```text
//! Inputs (offers, preferences, naming, profiles)
//!    |  build: one merge from an empty catalog; with: one change, the rest is shared
//!    v
//! merge --> entry (settings: prefer) --> resolve (names) --> activities --> Catalog
//!                                                                             |
//! Snapshot <-- findings, explain, difference <-- View (view, search) <--------+
//! ```
//!
//! What is kept true here:
//!
//! - Pure and total: no IO, no clock, no failure. Order is always by scenario, then by tool.
//! - Every tool that is not in the list has a finding that says why.
//! - The incremental path ([`Catalog::with`]) and the full rebuild ([`build`]) give equal catalogs.
//! - Equal content has an equal [`Revision`], across restarts too. The health of scenarios never
//!   enters it, except that a withdrawn scenario's tools are not in the list.
//! - A published name is looked up in the claims, and never parsed.
//!
//! Read in this order:
//!
//! 1. This file (inputs and result), `merge.rs` (the one step), `entry.rs` (one scenario's part).
//! 2. `prefer.rs` (settings), `resolve.rs` with `name_claim.rs` and `claim_index.rs` (names),
//!    `activities.rs` (which tool runs a definition).
//! 3. What one client gets: `profiles.rs`, `scoped_catalog.rs`, `view`, `search`, `find.rs`,
//!    `near.rs`, `relayed.rs`, `companions.rs`.
//! 4. What it explains: `findings.rs`, `explain.rs`, `categories.rs`, `target_matches.rs`,
//!    `diff.rs`, `definition_diff.rs`.
//! 5. What is published and remembered: `snapshot.rs`, `revision_history.rs`, `former_names.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{
    Digest, Effective, Finding, Manifest, PreferenceSet, Profiles, ScenarioName, Tool, ToolId,
    ViewTool,
};

mod activities;
mod categories;
mod claim_index;
mod companions;
mod definition_diff;
mod diff;
mod entry;
pub mod explain;
mod find;
mod findings;
pub mod former_names;
mod merge;
mod name_claim;
mod near;
mod overrides;
pub mod pins;
mod prefer;
mod profiles;
mod relayed;
mod resolve;
pub mod revision_history;
mod scoped_catalog;
pub mod search;
pub mod snapshot;
mod target_matches;
pub mod view;

pub(crate) use categories::unique_categories;
pub use definition_diff::{ChangedDefinition, ChangedPart, DefinitionDifference};
pub use diff::{CatalogDiff, ToolChange, Touched, difference, findings_between};
pub use explain::{ExplainStep, Explanation, explain, out_of_bounds};
pub use find::{NameLookup, find_in_scope};
pub(crate) use findings::FindingSink;
pub use former_names::{FormerName, FormerNames};
pub use near::{NEAR, nearest};
pub use profiles::UnknownProfile;
pub use relayed::RelayedItem;
pub use revision_history::RevisionHistory;
pub use search::{Field, Fields, Hit, Tier};
pub use snapshot::{
    CatalogReader, CatalogWriter, ProgramEnds, RecentEvents, Snapshot, StateTransitions,
    catalog_store,
};
pub use target_matches::TargetMatches;
pub use view::{
    Absence, Defer, Estimator, Generic, LeftOut, Part, Pick, StickyTools, ToolMark, View, ViewNote,
    ViewQuery, Why,
};

/// The inputs of a catalog.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// What each scenario offers.
    pub offers: BTreeMap<ScenarioName, Offer>,
    /// The preferences of users and operators.
    pub preferences: Arc<PreferenceSet>,
    /// How tools are named.
    pub naming: NamingStyle,
    /// The profiles, with their bounds.
    pub profiles: Arc<Profiles>,
}

/// One scenario's offer and whether it may be published.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its last good manifest.
    pub manifest: Arc<Manifest>,
    /// Whether its tools are in the list.
    pub visibility: Visibility,
}

/// Whether a scenario's tools are in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visibility {
    /// They are.
    Published,
    /// They are not, but they keep their names (`down`, `incompatible` past its cap): a failing
    /// scenario must not rename the tools of the others. The text says why, in one sentence without
    /// a full stop.
    Withdrawn(String),
    /// They are not, and they neither show nor collide (`pending`, `blocked`).
    Hidden(String),
}

/// When a tool is published as `scenario__tool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NamingStyle {
    /// Only when several scenarios offer the same name; then all of them.
    #[default]
    OnCollision,
    /// Always.
    Always,
}

/// One change of the inputs.
#[derive(Debug, Clone)]
pub enum Change {
    /// A scenario's offer is new, changed, or gone.
    Offer(ScenarioName, Option<Offer>),
    /// Several offers are. In a catalog of 20,000 tools, 50 of them at once take a quarter of the
    /// time that they take one by one: what the catalog shares with its predecessor is copied once.
    Offers(BTreeMap<ScenarioName, Option<Offer>>),
    /// The preferences changed.
    Preferences(Arc<PreferenceSet>),
    /// The naming style changes: all tools are named again.
    Naming(NamingStyle),
    /// Profiles change.
    Profiles(Arc<Profiles>),
}

/// Identity of a catalog's content: equal contents have equal revisions, also across restarts.
/// Written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Revision(pub u64);

/// The merged, immutable result. Cheap to clone: the parts are shared.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// The sum of what the entries add to it, so that one change costs the same however many there
    /// are.
    content: u128,
    entries: OrdMap<ScenarioName, Arc<CatalogEntry>>,
    names: resolve::NameResolver,
    preferences: Arc<PreferenceSet>,
    /// The global scope of `preferences`, prepared for lookups.
    rules: Arc<prefer::RuleStack>,
    profiles: Arc<Profiles>,
    /// The tools that are activities of definitions.
    activities: Arc<BTreeSet<ToolId>>,
}

/// One scenario within the catalog. [`Catalog::findings_of`] returns the decisions about its tools.
#[derive(Debug)]
pub struct CatalogEntry {
    /// The name of the scenario.
    pub name: ScenarioName,
    /// What it offers. Its `generated_at` may be that of an earlier, otherwise equal answer: an
    /// equal offer changes nothing.
    pub manifest: Arc<Manifest>,
    /// Whether its tools are in the list.
    pub visibility: Visibility,
    /// Its tools in the global scope, enabled or not, sorted by original name. Those of a hidden
    /// scenario have no published name; their qualified one stands in for it.
    pub tools: Arc<[Arc<ViewTool>]>,
    /// Those of `tools` that are enabled and not internal: what a plain list has of it when it is
    /// published.
    pub listed: Arc<[Arc<ViewTool>]>,
    /// Over everything of it that shows in a list: names, effective settings, definitions.
    pub digest: Digest,
    /// Kept by [`CatalogEntry::lint`].
    pub linted: Linted,
    /// Made by the first search.
    pub indexed: search::Indexed,
    /// Kept by [`CatalogEntry::may_run_long`].
    pub runs_long: RunsLong,
}

/// Whether a scenario has a tool whose calls may go on after their answer, once that was looked up.
#[derive(Debug, Default)]
pub struct RunsLong(OnceLock<bool>);

/// The result of [`CatalogEntry::lint`], after its first use.
#[derive(Debug, Default)]
pub struct Linted {
    /// With the pointers of the document.
    sent: OnceLock<Vec<Finding>>,
    /// Without pointers.
    unsent: OnceLock<Vec<Finding>>,
}

/// Builds a catalog from all inputs.
pub fn build(inputs: &Inputs) -> Catalog {
    Catalog::empty(
        Arc::clone(&inputs.preferences),
        inputs.naming,
        Arc::clone(&inputs.profiles),
    )
    .with_offers(inputs.offers.clone())
}

impl Catalog {
    /// The catalog after one change; shares what did not change.
    #[must_use]
    pub fn with(&self, change: Change) -> Self {
        match change {
            Change::Offer(name, offer) => self.with_changed(BTreeMap::from([(name, offer)])),
            Change::Offers(offers) => self.with_changed(offers),
            Change::Preferences(preferences) => self.with_preferences(preferences),
            Change::Naming(naming) => self.with_naming(naming),
            Change::Profiles(profiles) => Self {
                profiles,
                ..self.clone()
            },
        }
    }

    /// Identity of the content in the global scope; see [`Catalog::revision_for`] for views of
    /// other scopes.
    pub fn revision(&self) -> Revision {
        Revision(xxh3_64(&self.content.to_le_bytes()))
    }

    /// The scenarios, in order, whatever their standing.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.entries.values()
    }

    /// The settings that a tool has for all clients, whether it is listed or not.
    pub(crate) fn effective(&self, id: &ToolId, tool: &Tool) -> Effective {
        self.rules.effective(id, tool)
    }

    /// What users and operators want, as this catalog was built from it.
    pub fn preferences(&self) -> &PreferenceSet {
        &self.preferences
    }

    /// Whether a tool that the scope of `query` may see can go on after the answer to its call.
    /// Only the scenarios of the query are looked at, so the answer changes with them alone.
    pub(crate) fn may_run_long(&self, query: &ViewQuery) -> bool {
        self.shown(query).any(|entry| entry.may_run_long())
    }

    /// The entry of one scenario; `None` if it has no offer.
    pub fn entry(&self, name: &ScenarioName) -> Option<&Arc<CatalogEntry>> {
        self.entries.get(name)
    }
}

impl Default for Catalog {
    fn default() -> Self {
        build(&Inputs::default())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Revision({self})")
    }
}
