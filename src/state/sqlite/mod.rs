//! The embedded store: one SQLite file that operators can open with usual tools.
//!
//! ```text
//! save, load --queue--> writer (one thread, one connection) --rows::apply--> one transaction
//!                         |                                                    |
//!                         +<---- acknowledged after the commit is on disk -----+
//! open -> file (lock, damaged?) -> salvage -> schema (migration) -> rows::load -> Restored
//!             `-> read_only, where writing is not possible
//! ```
//!
//! What is kept true here:
//!
//! - A save is acknowledged after its commit has reached the disk (WAL with `synchronous=FULL`).
//! - Saves that queue up share a transaction. An invalid one fails alone.
//! - A lock on `<file>.lock` keeps a second daemon away.
//! - Data that cannot be read is never deleted: a damaged file is moved aside whole, and an
//!   unreadable row goes to the table `quarantine`.
//! - A file of a newer callsheet or of another program is left as it is.
//!
//! Read in this order:
//!
//! 1. `schema.rs` (the tables), this file ([`open`]), `writer.rs`.
//! 2. `rows.rs` (values to rows and back) with `columns.rs`, `quarantine.rs` (rows that cannot be
//!    read), and `additions.rs`, `calls.rs`, `history.rs`, `log.rs`, `pins.rs` and `usage.rs` for
//!    single tables.
//! 3. `file.rs`, `salvage.rs`, `read_only.rs`, `backup.rs`, `failure.rs`: the file, and what may be
//!    wrong with it.

mod additions;
mod backup;
mod calls;
mod columns;
mod failure;
mod file;
mod history;
mod log;
mod pins;
mod quarantine;
mod read_only;
mod rows;
mod salvage;
mod schema;
mod usage;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::{Restored, StateError, StateErrorKind, StateStore, Write};
use crate::runtime::{Clock, tasks};
use failure::{LOAD, OPEN, SAVE};
use writer::{Job, StoreWriter};

pub use backup::{export, import};
pub use file::LockHolder;

/// The largest number of saves and loads that wait for the writer; further ones wait to be queued.
const QUEUE: usize = 256;

/// Opens the store at `path`, making file (mode 0600) and folder (mode 0700) when they are not
/// there. Blocks while it checks the file, so it belongs to the start of a program.
///
/// A file that is no database or is damaged is moved aside to `<file>.damaged-<UTC time>` and
/// reported by [`StateStore::load`], with the loss that an operator has to accept; what can still
/// be read of preferences, of decisions about scenarios and of what was accepted of them is taken
/// over. Where nothing can be written (a full disk, a read-only folder), what is stored is read all
/// the same and every save is refused, which is reported too. Dropping the store writes what is
/// queued, closes the file and releases its lock before it returns.
///
/// Fails when another daemon runs on the file, when the file belongs to a newer callsheet or to
/// another program (it is left as it is), and when file or folder cannot be where they should be.
pub fn open(path: &Path, clock: Clock) -> Result<Arc<dyn StateStore>, StateError> {
    match open_writable(path, clock) {
        Err(error) if error.kind != StateErrorKind::Other => {
            Ok(Arc::new(read_only::open(path, clock, error)))
        }
        opened => opened,
    }
}

/// The daemon that holds the state at `path`; `None` when there is none, or there never was one.
/// Changes no file and makes none. The lock is tried for an instant, and it is shared, so two
/// processes that check do not see each other; a daemon that starts in that very instant is
/// refused.
pub fn holder(path: &Path) -> Option<LockHolder> {
    file::holder(path)
}

/// What is damaged in the state at `path`; `None` if it is sound, or not there. Changes no file,
/// and is for a time in which no daemon runs on it.
pub fn damage(path: &Path) -> Option<String> {
    read_only::damage(path)
}

fn open_writable(path: &Path, clock: Clock) -> Result<Arc<dyn StateStore>, StateError> {
    let mut lock = file::lock(path)?;
    let file::OpenedFile {
        mut connection,
        damage,
    } = file::open_or_replace(path, lock.empty_is_lost, clock)?;
    let damage = damage
        .map(|damage| salvage::take_over(&mut connection, path, &damage, clock.wall()))
        .transpose()?;
    if let Some(damage) = &damage {
        tracing::error!(hint = damage.hint.as_deref(), "{}", damage.message);
    }
    let findings = Vec::from_iter(damage);
    lock.note_use();
    let (jobs, queue) = mpsc::channel(QUEUE);
    let files = file::OpenFiles::of(path);
    let writer = StoreWriter {
        connection,
        lock,
        place: path.into(),
        files,
        findings,
        clock,
    };
    let thread =
        tasks::start_thread("state-writer", move || writer.run(queue)).map_err(|error| {
            StateError::new(
                OPEN,
                path,
                error.to_string(),
                "stop other programs and start again",
            )
        })?;
    Ok(Arc::new(SqliteStore {
        jobs: Some(jobs),
        thread: Some(thread),
        place: path.into(),
    }))
}

/// Sends work to the writer thread and waits for its answers.
struct SqliteStore {
    /// Always `Some` until the store is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
    place: PathBuf,
}

impl SqliteStore {
    async fn request<T>(
        &self,
        what: &'static str,
        job: impl FnOnce(oneshot::Sender<Result<T, StateError>>) -> Job,
    ) -> Result<T, StateError> {
        let gone = || {
            StateError::new(
                what,
                &self.place,
                "the writer has stopped",
                "restart the daemon",
            )
        };
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl StateStore for SqliteStore {
    fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>> {
        self.request(LOAD, Job::Load).boxed()
    }

    fn save(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>> {
        self.request(SAVE, |reply| Job::Save(writes, reply)).boxed()
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has ended, and its panic was printed when it happened.
            let _ = thread.join();
        }
    }
}
