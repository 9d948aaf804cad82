//! Reports changes of files by watching the folders on the way to them.
//!
//! A watch on a file ends with the first rename over it, and a file behind links can change without
//! being touched. So every name on the way to the file is watched in its folder, including links
//! and their targets. That detects a file that is written in place, replaced, removed or made, a
//! replaced link anywhere on the way (as Kubernetes does with the folder of a `ConfigMap`), and a
//! folder that appears or disappears. [`FolderWatch`] watches a folder and the folders in it. This
//! module reads no file and only reports that there may be a change. Network file systems send no
//! events; there the caller has to read the file from time to time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

/// The largest number of links followed on the way to one file, the same as the system's.
const LINKS: usize = 40;
/// How often the way is read again because it changed while the watch was set up.
const ROUNDS: usize = 8;

/// Watches some files, whether they exist or not.
#[derive(Debug)]
pub struct FileWatch {
    files: Vec<PathBuf>,
    wake: watch::Sender<()>,
    woken: watch::Receiver<()>,
    watcher: Option<RecommendedWatcher>,
}

impl FileWatch {
    /// Watches no file before the first [`renew`](Self::renew). The paths are absolute.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let (wake, woken) = watch::channel(());
        Self {
            files,
            wake,
            woken,
            watcher: None,
        }
    }

    /// Watches the current ways to the files. To be called before the files are read, so that no
    /// change between the two is missed, and again after each change, which may have led the way
    /// elsewhere. Blocking.
    ///
    /// # Errors
    /// A text that says what cannot be watched; the rest is watched nevertheless.
    pub fn renew(&mut self) -> Result<(), String> {
        self.woken.mark_unchanged();
        let mut names = self.names();
        for _ in 0..ROUNDS {
            let outcome = self.watch(&names);
            let now = self.names();
            if now == names {
                return outcome;
            }
            names = now;
        }
        Err("the way to the file changes all the time".to_owned())
    }

    /// Completes when there was a change since the last [`renew`](Self::renew) that was not
    /// reported yet. Cancel-safe.
    pub async fn changed(&mut self) {
        // The sender lives in `self`.
        let _ = self.woken.changed().await;
    }

    fn names(&self) -> BTreeSet<PathBuf> {
        let mut names = BTreeSet::new();
        for file in &self.files {
            collect(file, &mut names, LINKS);
        }
        names
    }

    fn watch(&mut self, names: &BTreeSet<PathBuf>) -> Result<(), String> {
        let followed = names.clone();
        let wake = self.wake.clone();
        let handler = move |event: notify::Result<Event>| {
            if concerns(&followed, event) {
                wake.send_replace(());
            }
        };
        // The former watches end with the former watcher.
        self.watcher = None;
        let mut watcher =
            notify::recommended_watcher(handler).map_err(|error| error.to_string())?;
        let folders: BTreeSet<&Path> = names.iter().filter_map(|name| name.parent()).collect();
        let mut failed = None;
        for folder in folders {
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive)
                && folder.is_dir()
            {
                failed = Some(format!("`{}`: {error}", folder.display()));
            }
        }
        self.watcher = Some(watcher);
        failed.map_or(Ok(()), Err)
    }
}

/// Collects every name on the way to `path`, up to the first that does not exist; links are
/// replaced by their targets.
fn collect(path: &Path, names: &mut BTreeSet<PathBuf>, links: usize) {
    let mut at = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        match part {
            Component::Prefix(_) | Component::RootDir => at.push(part),
            Component::CurDir => {}
            // Links before this component are resolved, so this is the folder above.
            Component::ParentDir => _ = at.pop(),
            Component::Normal(name) => {
                at.push(name);
                names.insert(at.clone());
                let Ok(found) = fs::symlink_metadata(&at) else {
                    return;
                };
                if !found.is_symlink() {
                    continue;
                }
                let (Ok(target), Some(left)) = (fs::read_link(&at), links.checked_sub(1)) else {
                    return;
                };
                at.pop();
                return collect(&at.join(target).join(rest.as_path()), names, left);
            }
        }
    }
}

/// Watches a folder and the folders in it, but none further down: a link may lead to all of the
/// file system.
#[derive(Debug)]
pub struct FolderWatch {
    folder: PathBuf,
    wake: watch::Sender<()>,
    woken: watch::Receiver<()>,
    watcher: Option<RecommendedWatcher>,
}

impl FolderWatch {
    /// Watches nothing before the first [`renew`](Self::renew). The path is absolute.
    pub fn new(folder: PathBuf) -> Self {
        let (wake, woken) = watch::channel(());
        Self {
            folder,
            wake,
            woken,
            watcher: None,
        }
    }

    /// Watches the folder as it is now, or the one that it would be made in. To be called before it
    /// is read, and again after each change. Blocking.
    ///
    /// # Errors
    /// A text that says why it cannot be watched.
    pub fn renew(&mut self) -> Result<(), String> {
        self.woken.mark_unchanged();
        let wake = self.wake.clone();
        let handler = move |event: notify::Result<Event>| {
            if event.is_err() || event.is_ok_and(|event| !is_reading(&event)) {
                wake.send_replace(());
            }
        };
        // The former watches end with the former watcher.
        self.watcher = None;
        let mut watcher =
            notify::recommended_watcher(handler).map_err(|error| error.to_string())?;
        let parent = self.folder.parent().filter(|_| !self.folder.is_dir());
        let begun = watcher.watch(parent.unwrap_or(&self.folder), RecursiveMode::NonRecursive);
        let inner = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()));
        let inner: Vec<_> = inner
            .filter(|path| path.is_dir())
            .map(|path| watcher.watch(&path, RecursiveMode::NonRecursive))
            .collect();
        self.watcher = Some(watcher);
        inner
            .into_iter()
            .fold(begun, Result::and)
            .map_err(|error| error.to_string())
    }

    /// Completes when there was a change since the last [`renew`](Self::renew) that was not
    /// reported yet. Cancel-safe.
    pub async fn changed(&mut self) {
        // The sender lives in `self`.
        let _ = self.woken.changed().await;
    }
}

/// Whether an event says only that something was read. Our own reads would cause an endless loop.
fn is_reading(event: &Event) -> bool {
    !event.need_rescan()
        && matches!(event.kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// Whether an event can change what is read.
fn concerns(names: &BTreeSet<PathBuf>, event: notify::Result<Event>) -> bool {
    // An error means that events may have been missed.
    let Ok(event) = event else { return true };
    event.need_rescan()
        || !is_reading(&event) && event.paths.iter().any(|path| names.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path, below: &Path) -> Vec<String> {
        let mut names = BTreeSet::new();
        collect(path, &mut names, LINKS);
        let inside = names
            .iter()
            .filter_map(|name| name.strip_prefix(below).ok());
        inside
            .filter(|name| !name.as_os_str().is_empty())
            .map(|name| name.display().to_string())
            .collect()
    }

    /// The system says which folders a process watches, by their inodes.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_in_a_folder_does_not_lead_to_all_that_is_below() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["watched/inner/deep", "elsewhere/deep"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("elsewhere"), at("watched/link")).unwrap();
        let mut watch = FolderWatch::new(at("watched"));
        watch.renew().unwrap();
        let open = fs::read_dir("/proc/self/fdinfo")
            .unwrap()
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
        let watched: String = open.filter(|about| about.contains("inotify wd:")).collect();
        for (name, expected) in [
            ("watched", true),
            ("watched/inner", true),
            ("watched/inner/deep", false),
            ("elsewhere", true),
            ("elsewhere/deep", false),
        ] {
            let inode = format!(" ino:{:x} ", fs::metadata(at(name)).unwrap().ino());
            assert_eq!(watched.contains(&inode), expected, "{name}: {watched}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn every_name_on_the_way_counts() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        assert_eq!(names(&root.join("etc/a.toml"), &root), ["etc"]);
        fs::create_dir(root.join("etc")).unwrap();
        assert_eq!(
            names(&root.join("etc/a.toml"), &root),
            ["etc", "etc/a.toml"]
        );
        fs::create_dir(root.join("etc/..1")).unwrap();
        fs::write(root.join("etc/..1/a.toml"), "").unwrap();
        symlink("..1", root.join("etc/..data")).unwrap();
        symlink("..data/a.toml", root.join("etc/a.toml")).unwrap();
        let all = [
            "etc",
            "etc/..1",
            "etc/..1/a.toml",
            "etc/..data",
            "etc/a.toml",
        ];
        assert_eq!(names(&root.join("etc/a.toml"), &root), all);
        assert_eq!(names(&root.join("etc/..1/../a.toml"), &root), all);
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(names(&root.join("loop/a.toml"), &root), ["loop"]);
    }

    #[test]
    fn reading_is_no_change() {
        let names = BTreeSet::from([PathBuf::from("/c/a.toml")]);
        let concerns_event =
            |kind, path: &str| concerns(&names, Ok(Event::new(kind).add_path(path.into())));
        assert!(concerns_event(
            EventKind::Modify(notify::event::ModifyKind::Any),
            "/c/a.toml"
        ));
        assert!(concerns_event(
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            "/c/a.toml"
        ));
        assert!(!concerns_event(
            EventKind::Access(AccessKind::Close(AccessMode::Read)),
            "/c/a.toml"
        ));
        assert!(!concerns_event(
            EventKind::Modify(notify::event::ModifyKind::Any),
            "/c/state.db"
        ));
        assert!(concerns(&names, Err(notify::Error::generic("overflow"))));
    }
}
