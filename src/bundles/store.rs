//! The bundles of one daemon: the set that is read, changes, and following the folder.
//!
//! A change holds the lock of the folder while it reads, judges and writes, so that what is unique
//! stays unique among all processes. It is answered when it is durable and published. Nothing is
//! changed without a request, but one thing: a deleted bundle is removed for good two days later if
//! it is still empty then.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use super::changes::{deleted, restored, switched};
use super::files::{self, BUNDLE_FILE};
use super::lock::FolderLock;
use super::{
    BundleChange, BundleError, BundleSet, BundleSettings, Functions, Slug, StoredBundle,
    StoredTool, ToolContent, ToolVersion, built_in, new_id,
};
use crate::model::{Finding, FindingCode};
use crate::runtime::files::FolderWatch;
use crate::runtime::{Clock, Stop, Tasks};

/// After a sign of a change, the folder is read once there were no further signs for this long.
const QUIET: Duration = Duration::from_millis(100);
/// How often the folder is read without a sign of a change: network file systems send none.
const POLL: Duration = Duration::from_secs(60);
/// How long a deleted bundle stays.
const KEEP: SignedDuration = SignedDuration::from_hours(48);

/// The bundles of one daemon. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BundleStore(Arc<StoreParts>);

#[derive(Debug)]
struct StoreParts {
    /// The folder, absolute; it never changes.
    root: Option<PathBuf>,
    settings: watch::Sender<Arc<BundleSettings>>,
    set: watch::Sender<Arc<BundleSet>>,
    /// Whether the configuration names another folder than `root`, which is used after a restart.
    other_root_waits: AtomicBool,
    /// Held while the folder is read and the set is published, so that no older set follows a newer
    /// one.
    publishing: Mutex<()>,
    /// Tools that are tried before they are stored, the oldest first.
    trials: Mutex<VecDeque<Trial>>,
    functions: Functions,
    clock: Clock,
    tasks: Tasks,
}

/// Whether a bundle was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// It is new.
    Created,
    /// It replaced what was there.
    Replaced,
}

/// Tools that are tried at once at most.
const TRIALS_MAX: usize = 8;

/// A tool that a person tries.
#[derive(Debug)]
struct Trial {
    /// The name that the session knows it by.
    name: String,
    bundle: Uuid,
    tool: Arc<StoredTool>,
}

impl BundleStore {
    /// The store of these settings, with nothing read yet.
    pub fn new(settings: BundleSettings, functions: Functions, clock: Clock, tasks: Tasks) -> Self {
        // The watcher reports absolute paths.
        let root = settings
            .path
            .clone()
            .map(|path| std::path::absolute(&path).unwrap_or(path));
        let settings = watch::Sender::new(Arc::new(settings));
        let set = watch::Sender::default();
        let other_root_waits = AtomicBool::new(false);
        let publishing = Mutex::default();
        Self(Arc::new(StoreParts {
            root,
            settings,
            set,
            other_root_waits,
            publishing,
            trials: Mutex::default(),
            functions,
            clock,
            tasks,
        }))
    }

    /// Makes a tool of a bundle callable once, by its session alone, without storing it: a person
    /// tries it. It is checked as one that is stored, and is in no list. Returns the name that the
    /// session knows it by.
    pub fn begin_trial(
        &self,
        key: (Uuid, Slug, ToolVersion),
        content: &ToolContent,
    ) -> Result<String, BundleError> {
        let (bundle, slug, version) = key;
        built_in::refuse(bundle)?;
        let now = self.0.clock.wall();
        let set = self.set();
        enabled(&set, bundle)?;
        let tool = content.inserted(bundle, &slug, &version, now)?;
        tool.check_hosts(&self.settings())?;
        // No tool that is stored has a space in its name.
        let name = format!("trial {}", new_id(now));
        let mut trials = self.0.trials.lock();
        if trials.len() == TRIALS_MAX {
            trials.pop_front();
        }
        trials.push_back(Trial {
            name: name.clone(),
            bundle,
            tool: Arc::new(tool),
        });
        Ok(name)
    }

    /// The tool that is tried under this name, which is then known no more.
    pub fn take_trial(&self, bundle: Uuid, name: &str) -> Option<Arc<StoredTool>> {
        let mut trials = self.0.trials.lock();
        let at = trials
            .iter()
            .position(|trial| trial.bundle == bundle && trial.name == name)?;
        trials.remove(at).map(|trial| trial.tool)
    }

    /// Takes other settings. The folder stays.
    pub fn adjust(&self, settings: BundleSettings) {
        let changed = self.0.settings.send_if_modified(|active| {
            let changed = **active != settings;
            *active = Arc::new(settings);
            changed
        });
        if changed {
            let store = self.clone();
            self.0.tasks.spawn_blocking(move || store.read_now());
        }
    }

    /// Takes whether the configuration names another folder, which is used after a restart.
    pub fn set_other_root_waits(&self, waits: bool) {
        self.0.other_root_waits.store(waits, Ordering::Relaxed);
    }

    /// Why nothing is stored.
    pub(super) fn off(&self) -> BundleError {
        let waits = self.0.other_root_waits.load(Ordering::Relaxed);
        if waits {
            BundleError::OffUntilRestart
        } else {
            BundleError::Off
        }
    }

    /// The active settings.
    pub fn settings(&self) -> Arc<BundleSettings> {
        self.0.settings.borrow().clone()
    }

    /// Follows the settings.
    pub fn follow_settings(&self) -> watch::Receiver<Arc<BundleSettings>> {
        self.0.settings.subscribe()
    }

    /// What was read last.
    pub fn set(&self) -> Arc<BundleSet> {
        self.0.set.borrow().clone()
    }

    /// Follows what is read.
    pub fn subscribe(&self) -> watch::Receiver<Arc<BundleSet>> {
        self.0.set.subscribe()
    }

    /// The functions of the embedding program.
    pub fn functions(&self) -> &Functions {
        &self.0.functions
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.0.clock.wall()
    }

    /// Runs what would block an async thread.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// Whether a folder is configured.
    pub fn is_on(&self) -> bool {
        self.0.root.is_some()
    }

    /// Reads the folder and publishes it. Blocking.
    pub fn read_now(&self) {
        let Some(root) = &self.0.root else { return };
        if let Err(error) = self.publish(root) {
            let message =
                format!("the bundles cannot be read, and keep their last good state: {error}");
            tracing::warn!(path = %root.display(), %error, "the bundles cannot be read");
            let failed =
                Finding::new(FindingCode::SourceFailed, message).hint("make the folder readable");
            self.0.set.send_if_modified(|set| {
                let changed = !set.findings.contains(&failed);
                if changed {
                    Arc::make_mut(set).findings.push(failed);
                }
                changed
            });
        }
    }

    /// What is in the folder now.
    fn read_folder(&self, root: &Path) -> std::io::Result<BundleSet> {
        let settings = self.settings();
        let built_in = if settings.built_in {
            built_in::read(root)
        } else {
            None
        };
        files::read(root, built_in, &self.set(), &settings, self.now())
    }

    /// Reads the folder and publishes it if it differs.
    fn publish(&self, root: &Path) -> std::io::Result<()> {
        let _only = self.0.publishing.lock();
        self.publish_alone(root)
    }

    /// The same for a caller that holds `publishing`.
    fn publish_alone(&self, root: &Path) -> std::io::Result<()> {
        let next = self.read_folder(root)?;
        self.0.set.send_if_modified(|set| {
            let changed = **set != next;
            *set = Arc::new(next);
            changed
        });
        Ok(())
    }

    /// Follows the folder until `stop`: reads it when it changes, and removes for good what was
    /// deleted long ago.
    pub async fn follow(self, stop: Stop) {
        let Some(root) = self.0.root.clone() else {
            return;
        };
        let clock = self.0.clock;
        let tasks = self.0.tasks.clone();
        let mut watch = FolderWatch::new(root);
        loop {
            let store = self.clone();
            let wanted = watch;
            let looked = tasks.spawn_blocking(move || {
                let mut watch = wanted;
                // The watch starts before the folder is read, so that no change between the two is
                // missed. A folder that cannot be watched is read from time to time.
                let _ = watch.renew();
                store.read_now();
                store.reap();
                watch
            });
            let Ok(back) = looked.await else { return };
            watch = back;
            tokio::select! {
                () = stop.wait() => return,
                () = watch.changed() => {}
                () = clock.sleep(POLL) => continue,
            }
            tokio::select! {
                () = stop.wait() => return,
                () = clock.sleep(QUIET) => {}
            }
        }
    }

    /// Removes bundles for good that were deleted long ago and are empty. Blocking.
    fn reap(&self) {
        let due = |bundle: &StoredBundle, now: Timestamp| {
            let deleted = bundle.definition.soft_deleted_at;
            deleted.is_some_and(|deleted| now.duration_since(deleted) >= KEEP)
                && bundle.tools.is_empty()
        };
        let now = self.0.clock.wall();
        if !self.set().bundles().any(|bundle| due(bundle, now)) {
            return;
        }
        let removed = self.change_blocking(move |_, set| {
            for bundle in set.bundles().filter(|bundle| due(bundle, now)) {
                if files::remove_empty(&bundle.folder)? {
                    tracing::info!(bundle = %bundle.definition.id, "a deleted bundle was removed for good");
                }
            }
            Ok(())
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "a deleted bundle could not be removed");
        }
    }

    /// Makes a change under the lock, and publishes what is there after it, once: what follows the
    /// folder publishes none of it before. Blocking.
    fn change_blocking<T>(
        &self,
        change: impl FnOnce(&Path, &BundleSet) -> Result<T, BundleError>,
    ) -> Result<T, BundleError> {
        let root = self.0.root.as_deref().ok_or_else(|| self.off())?;
        let _lock = FolderLock::acquire(root)?;
        let unread = |error: &std::io::Error| BundleError::storage("read", root, error);
        let now = self.read_folder(root).map_err(|error| unread(&error))?;
        let _only = self.0.publishing.lock();
        let changed = change(root, &now)?;
        self.publish_alone(root).map_err(|error| unread(&error))?;
        Ok(changed)
    }

    /// The same beside the async threads. It goes on to its end when its caller goes away.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Path, &BundleSet) -> Result<T, BundleError> + Send + 'static,
    ) -> Result<T, BundleError> {
        let store = self.clone();
        self.0
            .tasks
            .blocking(move || store.change_blocking(change))
            .await
    }

    /// Adds a bundle, or replaces what is said about one.
    pub async fn put_bundle(
        &self,
        id: Uuid,
        content: BundleChange,
    ) -> Result<PutOutcome, BundleError> {
        built_in::refuse(id)?;
        let now = self.0.clock.wall();
        let settings = self.settings();
        self.change(move |root, set| {
            let before = if set.get(id).is_some() {
                Some(set.bundle(id)?)
            } else {
                None
            };
            let definition = content.applied(id, before.map(|before| &before.definition), now)?;
            if before.is_none() {
                set.check_limits(1, definition.bytes(), &settings)?;
            }
            let folder =
                before.map_or_else(|| root.join(id.to_string()), |before| before.folder.clone());
            files::write(
                &folder.join(BUNDLE_FILE),
                &definition.document,
                Some(definition.modified_at),
            )?;
            Ok(if before.is_some() {
                PutOutcome::Replaced
            } else {
                PutOutcome::Created
            })
        })
        .await
    }

    /// Enables or disables a bundle.
    pub async fn switch_bundle(&self, id: Uuid, is_enabled: bool) -> Result<(), BundleError> {
        self.change(move |root, set| {
            let bundle = set.bundle(id)?;
            if bundle.definition.is_built_in {
                return built_in::switch(root, None, is_enabled);
            }
            let about = &bundle.definition;
            let document = switched(&about.document, is_enabled)?;
            files::write(
                &bundle.folder.join(BUNDLE_FILE),
                &document,
                Some(about.modified_at),
            )
        })
        .await
    }

    /// Deletes a bundle without tools. Its file stays for two days.
    pub async fn delete_bundle(&self, id: Uuid) -> Result<(), BundleError> {
        built_in::refuse(id)?;
        let now = self.0.clock.wall();
        self.change(move |_, set| {
            let bundle = set.bundle(id)?;
            if !bundle.tools.is_empty() {
                return Err(BundleError::NotEmpty(id, bundle.tools.len()));
            }
            let about = &bundle.definition;
            let document = deleted(&about.document, now)?;
            files::write(
                &bundle.folder.join(BUNDLE_FILE),
                &document,
                Some(about.modified_at),
            )
        })
        .await
    }

    /// Takes back that a bundle was deleted, as long as its file is there.
    pub async fn restore_bundle(&self, id: Uuid) -> Result<(), BundleError> {
        self.change(move |_, set| {
            let bundle = set.get(id).ok_or(BundleError::UnknownBundle(id))?;
            let about = &bundle.definition;
            if about.soft_deleted_at.is_none() {
                return Ok(());
            }
            files::write(
                &bundle.folder.join(BUNDLE_FILE),
                &restored(&about.document)?,
                Some(about.modified_at),
            )
        })
        .await
    }

    /// Adds a version of a tool. One that is there already is unchanged.
    pub async fn put_tool(
        &self,
        key: (Uuid, Slug, ToolVersion),
        content: ToolContent,
    ) -> Result<(), BundleError> {
        let (bundle, slug, version) = key;
        built_in::refuse(bundle)?;
        let now = self.0.clock.wall();
        let settings = self.settings();
        self.change(move |_, set| {
            let stored = enabled(set, bundle)?;
            let tool = content.inserted(bundle, &slug, &version, now)?;
            tool.check_hosts(&settings)?;
            if stored.tool(&slug, &version).is_ok() {
                return Err(BundleError::Conflict(bundle, slug, version));
            }
            if set.count() >= settings.max_tools {
                return Err(BundleError::TooMany(settings.max_tools));
            }
            set.check_limits(0, tool.bytes, &settings)?;
            let file = stored
                .folder
                .join(files::free_name(&[&stored.folder], &tool));
            files::write(&file, &tool.document, Some(tool.modified_at))
        })
        .await
    }

    /// Enables or disables a version of a tool.
    pub async fn switch_tool(
        &self,
        key: (Uuid, Slug, ToolVersion),
        is_enabled: bool,
    ) -> Result<(), BundleError> {
        let (bundle, slug, version) = key;
        self.change(move |root, set| {
            let stored = enabled(set, bundle)?;
            let tool = stored.tool(&slug, &version)?;
            if stored.definition.is_built_in {
                return built_in::switch(root, Some(slug.as_str()), is_enabled);
            }
            files::write(
                &tool.file,
                &switched(&tool.document, is_enabled)?,
                Some(tool.modified_at),
            )
        })
        .await
    }

    /// Removes a version of a tool for good.
    pub async fn delete_tool(&self, key: (Uuid, Slug, ToolVersion)) -> Result<(), BundleError> {
        let (bundle, slug, version) = key;
        built_in::refuse(bundle)?;
        self.change(move |_, set| files::remove(&set.bundle(bundle)?.tool(&slug, &version)?.file))
            .await
    }

    /// One version of a tool that is not of a deleted bundle, with its bundle.
    pub fn tool(
        &self,
        key: (Uuid, &Slug, &ToolVersion),
    ) -> Result<(Arc<StoredBundle>, Arc<StoredTool>), BundleError> {
        let (bundle, slug, version) = key;
        if !self.is_on() {
            return Err(self.off());
        }
        let set = self.set();
        let bundle = set.bundle(bundle)?;
        Ok((Arc::clone(bundle), Arc::clone(bundle.tool(slug, version)?)))
    }
}

/// A bundle in which something may be added or changed.
pub(super) fn enabled(set: &BundleSet, id: Uuid) -> Result<&Arc<StoredBundle>, BundleError> {
    let bundle = set.bundle(id)?;
    if bundle.definition.is_enabled {
        Ok(bundle)
    } else {
        Err(BundleError::Disabled(id))
    }
}
