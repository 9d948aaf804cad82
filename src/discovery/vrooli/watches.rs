//! The watches on the processes folder: they only ever say "look again", never what changed.
//!
//! Each folder is watched by itself and not recursively, so that a link cannot make the watch walk
//! the whole disk. What is believed to be watched is shared with the watcher's thread, which
//! crosses out what was moved or removed; the next look then watches it anew. An exchange of a
//! folder further up than the parent of the processes folder is seen by the rescan only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{ErrorKind, Event, EventHandler, EventKind, RecursiveMode, Watcher};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::process_file::FILES;
use super::text::printable;
use crate::model::{Finding, FindingCode};

/// Makes a watcher that calls the handler.
pub(super) type MakeWatcher = fn(Handler) -> notify::Result<Box<dyn Watcher + Send>>;

/// Every folder watched for one processes folder. Blocking; used on the blocking pool only.
pub(super) struct Watches {
    root: PathBuf,
    make: MakeWatcher,
    /// Made at the first use, and tried again at each look while it cannot be made.
    watcher: Option<Box<dyn Watcher + Send>>,
    believed: Arc<Believed>,
    wake: watch::Sender<()>,
}

/// Runs on the watcher's own thread and never waits: waking overwrites a wake that was not heard
/// yet.
pub(super) struct Handler {
    root: PathBuf,
    believed: Arc<Believed>,
    wake: watch::Sender<()>,
}

/// Something could not be watched; the rescan goes on without.
#[derive(Debug)]
pub(super) struct WatchFailure {
    path: PathBuf,
    error: notify::Error,
}

/// The folders believed to be watched. The lock is never held while the watcher is called, since
/// its thread may be waiting for it.
#[derive(Debug, Default)]
struct Believed(Mutex<BTreeSet<PathBuf>>);

/// The watcher that suits this system.
pub(super) fn recommended(handler: Handler) -> notify::Result<Box<dyn Watcher + Send>> {
    Ok(Box::new(notify::recommended_watcher(handler)?))
}

impl Watches {
    /// No watch yet. `wake` hears of changes at and below `root`, which must be absolute.
    pub(super) fn new(root: PathBuf, make: MakeWatcher, wake: watch::Sender<()>) -> Self {
        Self {
            root,
            make,
            watcher: None,
            believed: Arc::default(),
            wake,
        }
    }

    /// Watches the root and the folder above it, which sees the root itself come, go or be swapped;
    /// without a root the nearest folder above that exists. To be called before listing, so that
    /// nothing can appear unseen between the two.
    pub(super) fn anchor(&mut self) -> (BTreeSet<PathBuf>, Option<WatchFailure>) {
        let mut anchors = existing_anchors(&self.root);
        let mut failure = self.add(&anchors);
        // A folder that came between looking and watching is seen by looking again; each round can
        // come one part nearer.
        for _ in 0..self.root.components().count() {
            let nearer = existing_anchors(&self.root);
            if nearer == anchors {
                break;
            }
            anchors = nearer;
            failure = self.add(&anchors);
        }
        (anchors, failure)
    }

    /// Watches `wanted` too, and gives the first failure. To be called before reading what is in
    /// these folders.
    pub(super) fn add(&mut self, wanted: &BTreeSet<PathBuf>) -> Option<WatchFailure> {
        let new: Vec<PathBuf> = wanted.difference(&self.believed.lock()).cloned().collect();
        if new.is_empty() {
            return None;
        }
        let believed = Arc::clone(&self.believed);
        let watcher = match self.watcher() {
            Ok(watcher) => watcher,
            Err(error) => {
                return Some(WatchFailure {
                    path: self.root.clone(),
                    error,
                });
            }
        };
        let mut first = None;
        let mut changes = watcher.paths_mut();
        for path in new {
            // A folder that was moved away may still be watched under this path; that watch would
            // report the wrong folder.
            let _ = changes.remove(&path);
            // Believed first: a removal that is heard while the watch is being added must cross it
            // out again.
            believed.lock().insert(path.clone());
            if let Err(error) = changes.add(&path, RecursiveMode::NonRecursive) {
                believed.lock().remove(&path);
                let full = matches!(error.kind, ErrorKind::MaxFilesWatch);
                // What is gone again needs no watch; the folder above reports it.
                if path.is_dir() {
                    first.get_or_insert(WatchFailure { path, error });
                }
                if full {
                    break;
                }
            }
        }
        if let Err(error) = changes.commit() {
            first.get_or_insert(WatchFailure {
                path: self.root.clone(),
                error,
            });
        }
        first
    }

    /// Ends the watches on everything but `wanted`.
    pub(super) fn keep_only(&mut self, wanted: &BTreeSet<PathBuf>) {
        let stale: Vec<PathBuf> = self.believed.lock().difference(wanted).cloned().collect();
        let Some(watcher) = self.watcher.as_mut().filter(|_| !stale.is_empty()) else {
            return;
        };
        let mut changes = watcher.paths_mut();
        for path in &stale {
            // The system ends a watch by itself when the folder is removed, so that this may well
            // fail.
            let _ = changes.remove(path);
            self.believed.lock().remove(path);
        }
        // What fails here fails again, and is reported, at the next folder that is added.
        let _ = changes.commit();
    }

    fn watcher(&mut self) -> notify::Result<&mut Box<dyn Watcher + Send>> {
        let watcher = if let Some(watcher) = self.watcher.take() {
            watcher
        } else {
            let root = self.root.clone();
            let believed = Arc::clone(&self.believed);
            let wake = self.wake.clone();
            (self.make)(Handler {
                root,
                believed,
                wake,
            })?
        };
        Ok(self.watcher.insert(watcher))
    }
}

impl EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        // An error means that something may have been missed.
        let Ok(event) = event else {
            return self.wake.send_replace(());
        };
        if event.need_rescan() {
            self.believed.lock().clear();
            return self.wake.send_replace(());
        }
        if !is_change(event.kind) {
            return;
        }
        if may_end_a_watch(event.kind) {
            self.believed
                .lock()
                .retain(|watched| !event.paths.iter().any(|path| watched.starts_with(path)));
        }
        if event.paths.iter().any(|path| concerns(&self.root, path)) {
            self.wake.send_replace(());
        }
    }
}

impl WatchFailure {
    /// What a person should know of it. `rescan` is how often the folder is read without a watch,
    /// for people.
    pub(super) fn finding(&self, rescan: &str) -> Finding {
        // The error's own text would repeat the path.
        let why = match &self.error.kind {
            ErrorKind::Io(error) => error.to_string(),
            ErrorKind::MaxFilesWatch => "the system's limit of watches is reached".to_owned(),
            other => format!("{other:?}"),
        };
        let path = printable(&self.path.to_string_lossy());
        let hint = match &self.error.kind {
            ErrorKind::MaxFilesWatch => "raise the sysctl `fs.inotify.max_user_watches`",
            ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                "let the user that runs callsheet list the folder"
            }
            _ => {
                "raise the sysctl `fs.inotify.max_user_instances` if many programs watch files here"
            }
        };
        Finding::new(
            FindingCode::SourceFailed,
            format!("`{path}` cannot be watched, so changes are seen only every {rescan}: {why}"),
        )
        .hint(hint)
    }
}

impl Believed {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.0.lock()
    }
}

/// The folders whose watches report changes of the root itself.
fn existing_anchors(root: &Path) -> BTreeSet<PathBuf> {
    let existing: Vec<&Path> = root
        .ancestors()
        .filter(|path| path.is_dir())
        .take(2)
        .collect();
    let wanted = if existing.first() == Some(&root) {
        2
    } else {
        1
    };
    existing
        .into_iter()
        .take(wanted)
        .map(Path::to_path_buf)
        .collect()
}

/// Whether something was changed. Reading is none: our own reading would wake us for ever.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn may_end_a_watch(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
    )
}

/// Whether a change of `path` can change what is read at `root`. What cannot be placed is taken to.
fn concerns(root: &Path, path: &Path) -> bool {
    if let Ok(below) = path.strip_prefix(root) {
        // `<scenario>/<file>`: only the files that are read count, not a log that is written beside
        // them.
        let mut parts = below.components().skip(1);
        return match (parts.next(), parts.next()) {
            (None, _) => true,
            (Some(file), None) => FILES.iter().any(|name| file.as_os_str() == *name),
            (Some(_), Some(_)) => false,
        };
    }
    // A neighbour of the root, or of a folder above it.
    let is_neighbour =
        path.parent().is_some_and(|parent| root.starts_with(parent)) && !root.starts_with(path);
    !is_neighbour
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag, RemoveKind};

    use super::*;

    fn no_watcher(_: Handler) -> notify::Result<Box<dyn Watcher + Send>> {
        Err(notify::Error::new(ErrorKind::MaxFilesWatch))
    }

    fn handler() -> (Handler, watch::Receiver<()>) {
        let (wake, woken) = watch::channel(());
        (
            Handler {
                root: "/h/p".into(),
                believed: Arc::default(),
                wake,
            },
            woken,
        )
    }

    #[test]
    fn only_what_is_read_wakes() {
        for (path, expected) in [
            ("/h/p", true),
            ("/h/p/files", true),
            ("/h/p/files/start-api.json", true),
            ("/h/p/files/app.json", true),
            ("/h/p/files/api.log", false),
            ("/h/p/files/deep/start-api.json", false),
            ("/h", true),
            ("/", true),
            ("/h/other", false),
            ("/other", false),
            // Spelled in another way (a link resolved by the system): not known to be a neighbour.
            ("/private/h/p/files/api.json", true),
        ] {
            assert_eq!(
                concerns(Path::new("/h/p"), Path::new(path)),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn reading_does_not_wake_and_writing_does() {
        let (mut handler, mut woken) = handler();
        let file = || PathBuf::from("/h/p/files/api.json");
        for (kind, wakes) in [
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), false),
            (
                EventKind::Access(AccessKind::Close(AccessMode::Read)),
                false,
            ),
            (
                EventKind::Access(AccessKind::Close(AccessMode::Write)),
                true,
            ),
            (EventKind::Create(CreateKind::File), true),
            (EventKind::Remove(RemoveKind::File), true),
        ] {
            woken.mark_unchanged();
            handler.handle_event(Ok(Event::new(kind).add_path(file())));
            assert_eq!(woken.has_changed().unwrap(), wakes, "{kind:?}");
        }
        woken.mark_unchanged();
        handler.handle_event(Err(notify::Error::generic("lost")));
        assert!(woken.has_changed().unwrap());
    }

    #[test]
    fn what_was_removed_or_lost_is_watched_anew() {
        let (mut handler, _woken) = handler();
        let all: BTreeSet<PathBuf> = ["/h", "/h/p", "/h/p/a", "/h/p/b"].map(PathBuf::from).into();
        handler.believed.lock().clone_from(&all);
        handler.handle_event(Ok(
            Event::new(EventKind::Remove(RemoveKind::Folder)).add_path("/h/p/a".into())
        ));
        assert_eq!(
            *handler.believed.lock(),
            ["/h", "/h/p", "/h/p/b"].map(PathBuf::from).into()
        );
        handler.handle_event(Ok(
            Event::new(EventKind::Remove(RemoveKind::Folder)).add_path("/h/p".into())
        ));
        assert_eq!(*handler.believed.lock(), ["/h"].map(PathBuf::from).into());
        handler.believed.lock().clone_from(&all);
        handler.handle_event(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(handler.believed.lock().len(), 0, "there is nothing in it");
    }

    #[test]
    fn without_a_watcher_there_is_a_finding_with_a_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let mut watches = Watches::new(folder.path().into(), no_watcher, watch::channel(()).0);
        let (_, failure) = watches.anchor();
        let finding = failure.unwrap().finding("5s");
        assert_eq!(finding.code, FindingCode::SourceFailed);
        assert!(
            finding
                .message
                .contains("only every 5s: the system's limit of watches is reached"),
            "{finding:?}"
        );
        assert!(finding.hint.unwrap().contains("max_user_watches"));
        // As soon as there is one, it is used.
        watches.make = recommended;
        assert!(watches.anchor().1.is_none());
        assert_eq!(watches.believed.lock().len(), 2);
    }

    #[test]
    fn watches_that_are_not_wanted_any_more_end() {
        let folder = tempfile::tempdir().unwrap();
        let a = folder.path().join("a");
        let b = folder.path().join("b");
        std::fs::create_dir(&a).unwrap();
        std::fs::create_dir(&b).unwrap();
        let mut watches = Watches::new(folder.path().into(), recommended, watch::channel(()).0);
        assert!(watches.add(&[a, b.clone()].into()).is_none());
        watches.keep_only(&[b.clone()].into());
        assert_eq!(*watches.believed.lock(), [b].into());
    }
}
