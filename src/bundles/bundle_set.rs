//! All bundles at one moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use super::{BundleDefinition, BundleError, BundleSettings, Slug, StoredTool, ToolVersion};
use crate::model::{Finding, ScenarioName};
use crate::runtime::file_stamp::FileStamp;

/// All bundles at one moment. Immutable.
#[derive(Debug, Clone, Default)]
pub struct BundleSet {
    bundles: BTreeMap<Uuid, Arc<StoredBundle>>,
    /// The files of these bundles and tools as they were when they were read.
    pub(super) stamps: FileStamps,
    /// What is wrong with the folder and with whole bundles.
    pub findings: Vec<Finding>,
}

/// The stamps of files that need not be read again while they have them.
pub(super) type FileStamps = HashMap<PathBuf, FileStamp>;

/// The same bundles are an equal set, whenever their files were read.
impl PartialEq for BundleSet {
    fn eq(&self, other: &Self) -> bool {
        self.bundles == other.bundles && self.findings == other.findings
    }
}

/// A bundle with its tools.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredBundle {
    /// What `bundle.json` says.
    pub definition: BundleDefinition,
    /// The name of its scenario: its slug, or one made of slug and id where that cannot be used or
    /// an older bundle has it.
    pub scenario: ScenarioName,
    /// Its folder; empty for one that is a part of the program.
    pub folder: PathBuf,
    /// Its tools, by slug and version.
    pub tools: Vec<Arc<StoredTool>>,
    /// What is wrong with its files.
    pub findings: Vec<Finding>,
}

/// A bundle as it was read, before its scenario has a name.
#[derive(Debug)]
pub(super) struct ReadBundle {
    pub(super) definition: BundleDefinition,
    pub(super) folder: PathBuf,
    pub(super) tools: Vec<Arc<StoredTool>>,
    pub(super) findings: Vec<Finding>,
}

impl BundleSet {
    /// The set of these bundles.
    pub(super) fn new(
        mut bundles: Vec<ReadBundle>,
        stamps: FileStamps,
        findings: Vec<Finding>,
    ) -> Self {
        let mut set = Self {
            stamps,
            findings,
            ..Self::default()
        };
        let mut taken = BTreeSet::new();
        // Id and time of making are what the maker says, and an archive may say any. The store
        // itself writes when it was imported, so a newcomer takes no name of one that is there.
        bundles.sort_by_key(|bundle| {
            let definition = &bundle.definition;
            (
                !definition.is_built_in,
                definition.here_since(),
                definition.id,
            )
        });
        for ReadBundle {
            definition,
            folder,
            mut tools,
            findings,
        } in bundles
        {
            tools.sort_by(|a, b| (&a.slug, &a.version).cmp(&(&b.slug, &b.version)));
            let Some(scenario) = scenario_name(&definition, &taken) else {
                continue;
            };
            taken.insert(scenario.clone());
            let id = definition.id;
            set.bundles.insert(
                id,
                Arc::new(StoredBundle {
                    definition,
                    scenario,
                    folder,
                    tools,
                    findings,
                }),
            );
        }
        set
    }

    /// All bundles, in the order of their ids, which is that of their making.
    pub fn bundles(&self) -> impl Iterator<Item = &Arc<StoredBundle>> {
        self.bundles.values()
    }

    /// A bundle, also one that is being deleted.
    pub fn get(&self, id: Uuid) -> Option<&Arc<StoredBundle>> {
        self.bundles.get(&id)
    }

    /// A bundle that is not being deleted.
    pub fn bundle(&self, id: Uuid) -> Result<&Arc<StoredBundle>, BundleError> {
        let bundle = self
            .bundles
            .get(&id)
            .ok_or(BundleError::UnknownBundle(id))?;
        if bundle.definition.soft_deleted_at.is_some() {
            Err(BundleError::BeingDeleted(id))
        } else {
            Ok(bundle)
        }
    }

    /// The bundles of one list: those that are not being deleted.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<StoredBundle>> {
        self.bundles
            .values()
            .filter(|bundle| bundle.definition.soft_deleted_at.is_none())
    }

    /// The bundles with files.
    fn stored(&self) -> impl Iterator<Item = &Arc<StoredBundle>> {
        self.bundles
            .values()
            .filter(|bundle| !bundle.definition.is_built_in)
    }

    /// The bytes of memory that all stored bundles take, estimated from above.
    fn bytes(&self) -> usize {
        self.stored().map(|bundle| bundle.bytes()).sum()
    }

    /// Refuses further bundles and bytes that the settings do not allow.
    pub(super) fn check_limits(
        &self,
        added_bundles: usize,
        added_bytes: usize,
        settings: &BundleSettings,
    ) -> Result<(), BundleError> {
        if added_bundles > 0 && self.stored().count() + added_bundles > settings.max_bundles {
            return Err(BundleError::TooManyBundles(settings.max_bundles));
        }
        let stored_bytes = self.bytes();
        if stored_bytes.saturating_add(added_bytes) > settings.max_bytes {
            return Err(BundleError::TooManyBytes {
                added_bytes,
                stored_bytes,
                most: settings.max_bytes,
            });
        }
        Ok(())
    }

    /// How many tools are stored, without those that are built in.
    pub fn count(&self) -> usize {
        self.stored().map(|bundle| bundle.tools.len()).sum()
    }
}

impl StoredBundle {
    /// The bytes of memory that it takes with its tools, estimated from above.
    pub(super) fn bytes(&self) -> usize {
        self.definition.bytes() + self.tools.iter().map(|tool| tool.bytes).sum::<usize>()
    }

    /// One version of a tool.
    pub fn tool(
        &self,
        slug: &Slug,
        version: &ToolVersion,
    ) -> Result<&Arc<StoredTool>, BundleError> {
        let found = self
            .tools
            .binary_search_by(|tool| (&tool.slug, &tool.version).cmp(&(slug, version)));
        let tool = found.ok().and_then(|at| self.tools.get(at));
        tool.ok_or_else(|| {
            BundleError::UnknownTool(self.definition.id, slug.clone(), version.clone())
        })
    }
}

/// The name of the scenario of a bundle.
fn scenario_name(
    definition: &BundleDefinition,
    taken: &BTreeSet<ScenarioName>,
) -> Option<ScenarioName> {
    let own: Option<ScenarioName> = definition.slug.as_str().parse().ok();
    own.filter(|name| !taken.contains(name)).or_else(|| {
        let stem: String = definition
            .slug
            .as_str()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let stem = stem.trim_start_matches('-');
        format!(
            "{}-{}",
            if stem.is_empty() { "bundle" } else { stem },
            definition.id
        )
        .parse()
        .ok()
    })
}
