//! The one thread that owns the connection.
//!
//! Saves that wait share a transaction (one flush of the disk for all), and none is acknowledged
//! before its commit. If one of them cannot be applied, the transaction is rolled back and each
//! save gets its own, so that an invalid one fails alone.

use std::path::PathBuf;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::failure::{LOAD, SAVE, failed};
use super::file::{Lock, OpenFiles};
use super::rows;
use crate::model::Finding;
use crate::runtime::Clock;
use crate::state::{Restored, StateError, StateErrorKind, Write};

/// The largest number of saves that share one transaction.
const GROUP: usize = 128;

/// A request to the thread.
pub(super) enum Job {
    /// Read everything.
    Load(oneshot::Sender<Result<Restored, StateError>>),
    /// Apply these writes in order, all or none.
    Save(Vec<Write>, SaveReply),
}

type SaveReply = oneshot::Sender<Result<(), StateError>>;

/// The data of the thread. The fields are dropped in this order, so that the lock outlives the
/// connection.
pub(super) struct StoreWriter {
    pub(super) connection: Connection,
    #[expect(
        dead_code,
        reason = "held, never used: the lock lasts as long as the file is open"
    )]
    pub(super) lock: Lock,
    pub(super) place: PathBuf,
    /// The files that are open.
    pub(super) files: OpenFiles,
    /// Findings about repairs while the file was opened.
    pub(super) findings: Vec<Finding>,
    pub(super) clock: Clock,
}

impl StoreWriter {
    /// Handles jobs until every sender is dropped and the queue is empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(first) = queue.blocking_recv() {
            let mut next = Some(first);
            let mut group = Vec::new();
            while let Some(job) = next.take() {
                match job {
                    Job::Save(writes, reply) => group.push((writes, reply)),
                    Job::Load(reply) => {
                        // A load also sees the saves before it.
                        self.save_group(std::mem::take(&mut group));
                        // A client that went away needs no answer.
                        let _ = reply.send(self.load());
                    }
                }
                if group.len() < GROUP {
                    next = queue.try_recv().ok();
                }
            }
            self.save_group(group);
        }
    }

    fn load(&mut self) -> Result<Restored, StateError> {
        let mut restored = rows::load(&mut self.connection, &self.place, self.clock)
            .map_err(|error| failed(LOAD, &self.place, &error))?;
        restored.findings.extend(self.findings.iter().cloned());
        Ok(restored)
    }

    fn save_group(&mut self, group: Vec<(Vec<Write>, SaveReply)>) {
        if group.is_empty() {
            return;
        }
        let together = self.transact(group.iter().flat_map(|(writes, _)| writes));
        let one_by_one = group.len() > 1 && matches!(together, Err(TransactionError::Apply(_)));
        for (writes, reply) in group {
            let outcome = if one_by_one {
                self.transact(&writes)
            } else {
                together.clone()
            };
            // The change is made or not, even if the client no longer waits.
            let _ = reply.send(outcome.map_err(TransactionError::into_error));
        }
    }

    fn transact<'a>(
        &mut self,
        writes: impl IntoIterator<Item = &'a Write>,
    ) -> Result<(), TransactionError> {
        let place = &self.place;
        let now = self.clock.wall();
        let error = |error: rusqlite::Error| failed(SAVE, place, &error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|cause| TransactionError::Whole(error(cause)))?;
        for write in writes {
            // Dropping the transaction rolls it back.
            rows::apply(&transaction, write, now)
                .map_err(|cause| TransactionError::Apply(error(cause)))?;
        }
        // Before the commit: a refused change must not be there when the file is moved back.
        if let Some(lost) = self.files.lost() {
            let next = "move the same file back, or restart callsheet to begin with what is there";
            let error =
                StateError::new(SAVE, place, lost, next).with_kind(StateErrorKind::Unwritable);
            return Err(TransactionError::Whole(error));
        }
        transaction
            .commit()
            .map_err(|cause| TransactionError::Whole(error(cause)))
    }
}

/// The step at which a transaction failed.
#[derive(Clone)]
enum TransactionError {
    /// At one of its writes; the others may succeed without it.
    Apply(StateError),
    /// At its begin or end: no data can be stored now.
    Whole(StateError),
}

impl TransactionError {
    fn into_error(self) -> StateError {
        match self {
            Self::Apply(error) | Self::Whole(error) => error,
        }
    }
}
