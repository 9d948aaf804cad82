//! Tells when something happens to files, by watching the folders that they are reached through.
//!
//! A watch on a file dies with the first rename over it, and a file behind links changes without being touched: so every name on the way
//! to it is watched in the folder that it stands in, links and their targets included. That sees a file that is written in place,
//! replaced, removed or made, an exchanged link anywhere on the way (as Kubernetes does it with the folder of a `ConfigMap`), and a
//! folder that comes or goes. It reads no file and only ever says "look again"; where the system tells nothing (network file systems),
//! looking every now and then is up to whoever watches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

/// Links followed on the way to one file at most, as the system does it.
const LINKS: usize = 40;
/// How often the way is looked at again because it changed while it was being watched.
const ROUNDS: usize = 8;

/// Watches some files, whether they are there or not.
#[derive(Debug)]
pub struct FileWatch {
    files: Vec<PathBuf>,
    wake: watch::Sender<()>,
    woken: watch::Receiver<()>,
    watcher: Option<RecommendedWatcher>,
}

impl FileWatch {
    /// Watches nothing before the first [`renew`](Self::renew). The paths are absolute.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let (wake, woken) = watch::channel(());
        Self { files, wake, woken, watcher: None }
    }

    /// Watches the ways to the files as they are now. To be called before the files are read, so that nothing happens unseen between
    /// the two, and again after each change, which may have led the way elsewhere. Blocking.
    ///
    /// # Errors
    /// What cannot be watched, in words; the rest is watched all the same.
    pub fn renew(&mut self) -> Result<(), String> {
        self.woken.mark_unchanged();
        let mut names = self.names();
        for _ in 0..ROUNDS {
            let told = self.watch(&names);
            let now = self.names();
            if now == names {
                return told;
            }
            names = now;
        }
        Err("the way to the file changes all the time".to_owned())
    }

    /// Completes when something happened since the last [`renew`](Self::renew) that was not told yet. Cancel-safe.
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
        let (mine, wake) = (names.clone(), self.wake.clone());
        let handler = move |event: notify::Result<Event>| {
            if concerns(&mine, event) {
                wake.send_replace(());
            }
        };
        // The watches of the one before end with it.
        self.watcher = None;
        let mut watcher = notify::recommended_watcher(handler).map_err(|error| error.to_string())?;
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

/// Every name on the way to `path`, up to the first that is not there, with the targets of links in place of what lies behind them.
fn collect(path: &Path, names: &mut BTreeSet<PathBuf>, links: usize) {
    let mut at = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        match part {
            Component::Prefix(_) | Component::RootDir => at.push(part),
            Component::CurDir => {}
            // What is before it is no link any more, so this is the folder above.
            Component::ParentDir => _ = at.pop(),
            Component::Normal(name) => {
                at.push(name);
                names.insert(at.clone());
                let Ok(found) = fs::symlink_metadata(&at) else { return };
                if !found.is_symlink() {
                    continue;
                }
                let (Ok(target), Some(left)) = (fs::read_link(&at), links.checked_sub(1)) else { return };
                at.pop();
                return collect(&at.join(target).join(rest.as_path()), names, left);
            }
        }
    }
}

/// Whether an event can change what is read. Reading is none: our own would wake us for ever.
fn concerns(names: &BTreeSet<PathBuf>, event: notify::Result<Event>) -> bool {
    // An error means that something may have been missed.
    let Ok(event) = event else { return true };
    let read = matches!(event.kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write));
    event.need_rescan() || !read && event.paths.iter().any(|path| names.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path, below: &Path) -> Vec<String> {
        let mut names = BTreeSet::new();
        collect(path, &mut names, LINKS);
        let inside = names.iter().filter_map(|name| name.strip_prefix(below).ok());
        inside.filter(|name| !name.as_os_str().is_empty()).map(|name| name.display().to_string()).collect()
    }

    #[cfg(unix)]
    #[test]
    fn every_name_on_the_way_counts() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        assert_eq!(names(&root.join("etc/a.toml"), &root), ["etc"]);
        fs::create_dir(root.join("etc")).unwrap();
        assert_eq!(names(&root.join("etc/a.toml"), &root), ["etc", "etc/a.toml"]);
        fs::create_dir(root.join("etc/..1")).unwrap();
        fs::write(root.join("etc/..1/a.toml"), "").unwrap();
        symlink("..1", root.join("etc/..data")).unwrap();
        symlink("..data/a.toml", root.join("etc/a.toml")).unwrap();
        let all = ["etc", "etc/..1", "etc/..1/a.toml", "etc/..data", "etc/a.toml"];
        assert_eq!(names(&root.join("etc/a.toml"), &root), all);
        assert_eq!(names(&root.join("etc/..1/../a.toml"), &root), all);
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(names(&root.join("loop/a.toml"), &root), ["loop"]);
    }

    #[test]
    fn reading_is_no_change() {
        let names = BTreeSet::from([PathBuf::from("/c/a.toml")]);
        let heard = |kind, path: &str| concerns(&names, Ok(Event::new(kind).add_path(path.into())));
        assert!(heard(EventKind::Modify(notify::event::ModifyKind::Any), "/c/a.toml"));
        assert!(heard(EventKind::Access(AccessKind::Close(AccessMode::Write)), "/c/a.toml"));
        assert!(!heard(EventKind::Access(AccessKind::Close(AccessMode::Read)), "/c/a.toml"));
        assert!(!heard(EventKind::Modify(notify::event::ModifyKind::Any), "/c/state.db"));
        assert!(concerns(&names, Err(notify::Error::generic("overflow"))));
    }
}
