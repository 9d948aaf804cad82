//! Keeps the lists that were asked for lately, ready for the start of the next run.
//!
//! They are written once the catalog is at rest and all of it is stored, so that a start would publish the very same; and seldom: what is
//! lost when the process is killed before that is the time that the next start takes. Nobody waits for it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::query::ListQuery;
use super::{Kept, Shared, kept, tools};
use crate::catalog::{Revision, Snapshot};
use crate::engine::Restorable;
use crate::runtime::Stop;
use crate::state::lists::{self, List, Stamp};
use crate::views::Coding;

/// A list that did not change for so long is at rest.
const REST: Duration = Duration::from_millis(500);
/// Between two looks at whether everything is stored.
const LONGEST_LOOK: Duration = Duration::from_secs(60);
/// The least time between two writings, and how many bytes of what was written add a second to it.
const PAUSE: Duration = Duration::from_secs(10);
const BYTES_A_SECOND: u64 = 2 << 20;
/// Questions whose answers are kept at most.
const MOST: usize = 8;
/// A longer query is not kept.
const LONGEST_QUERY: usize = 256;
/// Bytes of all that is kept at most.
const LARGEST: u64 = 512 << 20;
/// Where a list is longer than this, it is kept as it is and in no other coding: making those anew takes seconds.
const LARGEST_CODED: u64 = 64 << 20;

/// The questions that lists were asked with lately, the latest last.
#[derive(Debug, Default)]
pub(super) struct Lately {
    questions: Mutex<VecDeque<(String, Coding)>>,
    changed: Notify,
}

impl Lately {
    /// Those that the kept lists are answers to.
    pub(super) fn of(questions: impl Iterator<Item = (String, Coding)>) -> Self {
        Self { questions: Mutex::new(questions.collect()), changed: Notify::new() }
    }

    /// A list was asked for.
    pub(super) fn note(&self, query: &str, coding: Coding) {
        if query.len() > LONGEST_QUERY {
            return;
        }
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |(other, its): &(String, Coding)| other == query && *its == coding;
        if questions.back().is_some_and(is_same) {
            return;
        }
        let before = questions.len();
        questions.retain(|question| !is_same(question));
        let new = questions.len() == before;
        questions.push_back((query.to_owned(), coding));
        if questions.len() > MOST {
            questions.pop_front();
        }
        if new {
            self.changed.notify_one();
        }
    }

    fn all(&self) -> Vec<(String, Coding)> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// What is known to stand in the file.
#[derive(Debug, PartialEq)]
pub(super) struct Written {
    stamp: Stamp,
    questions: Vec<(String, Coding)>,
}

impl Written {
    /// What the run before wrote.
    pub(super) fn of(kept: &Kept) -> Self {
        Self { stamp: kept.stamp().clone(), questions: kept.asked().collect() }
    }
}

/// Keeps lists beside the database at `database` until `stop`. What stands there already, if that is known, is not written again.
pub(super) async fn run(shared: Arc<Shared>, database: PathBuf, written: Option<Written>, stop: Stop) {
    tokio::select! {
        () = stop.wait() => {}
        () = keep(&shared, database, written) => {}
    }
}

async fn keep(shared: &Arc<Shared>, database: PathBuf, mut written: Option<Written>) {
    loop {
        let Some((restorable, questions)) = at_rest(shared).await else { return };
        let now = Written {
            stamp: Stamp { made_with: restorable.config.imprint(), content: restorable.content.clone() },
            questions,
        };
        if !covers(written.as_ref(), &now) {
            let lists = answers(shared, &restorable, &now.questions).await;
            let bytes: u64 = lists.iter().map(|list| list.bytes).sum();
            let (place, stamp) = (database.clone(), now.stamp.clone());
            let kept = shared.tasks.blocking(move || lists::keep(&place, &stamp, lists)).await;
            match kept {
                Ok(()) => tracing::debug!("lists of {bytes} bytes are kept for the next start"),
                // The start after this takes longer, that is all.
                Err(error) => tracing::info!(%error, "lists cannot be kept for the next start"),
            }
            written = Some(now);
            shared.clock.sleep(PAUSE + Duration::from_secs(bytes / BYTES_A_SECOND)).await;
        }
        if !another(shared, &restorable.snapshot).await {
            return;
        }
    }
}

/// Whether what is written holds these answers.
fn covers(written: Option<&Written>, now: &Written) -> bool {
    written.is_some_and(|written| {
        written.stamp == now.stamp && now.questions.iter().all(|question| written.questions.contains(question))
    })
}

/// What may be kept, and the questions to be answered from it, once there are both.
async fn at_rest(shared: &Shared) -> Option<(Restorable, Vec<(String, Coding)>)> {
    let (mut look, mut before) = (REST, None);
    loop {
        shared.clock.sleep(look).await;
        let now = identity(&shared.reader.snapshot());
        // Something that is not stored stays so for a while.
        look = if before == Some(now) { (look * 3 / 2).min(LONGEST_LOOK) } else { REST };
        if before.replace(now) != Some(now) {
            continue;
        }
        let questions = shared.lately.all();
        if questions.is_empty() {
            shared.lately.changed.notified().await;
            look = REST;
            continue;
        }
        match shared.engine.restorable().await {
            Ok(Some(restorable)) if identity(&restorable.snapshot) == now => return Some((restorable, questions)),
            Err(crate::engine::EngineError::Stopping) => return None,
            Ok(_) | Err(_) => {}
        }
    }
}

fn identity(snapshot: &Snapshot) -> (Revision, jiff::Timestamp) {
    (snapshot.catalog.revision(), snapshot.generated_at)
}

/// Waits for another list, or for a question that was not asked before, or for some time: what is stored may have got another name although no
/// list shows why. False when there will be none.
async fn another(shared: &Shared, last: &Arc<Snapshot>) -> bool {
    let mut reader = shared.reader.clone();
    let (last, scopes) = (identity(last), Arc::clone(last));
    let changed = async {
        loop {
            let Some(snapshot) = reader.changed().await else { return false };
            // What only one scope sees is in no revision.
            if identity(&snapshot) != last || snapshot.catalog.scopes_differ(&scopes.catalog) {
                return true;
            }
        }
    };
    tokio::select! {
        changed = changed => changed,
        () = shared.lately.changed.notified() => true,
        () = shared.clock.sleep(LONGEST_LOOK) => true,
    }
}

/// The answers as they are given now.
async fn answers(shared: &Shared, restorable: &Restorable, questions: &[(String, Coding)]) -> Vec<List> {
    let (mut lists, mut bytes) = (Vec::new(), 0);
    // The latest first, if there is no room for all.
    for (query, coding) in questions.iter().rev() {
        let Ok(read) = ListQuery::read(Some(query).filter(|query| !query.is_empty()).map(String::as_str)) else {
            continue;
        };
        let plain = tools::ready_list(shared, &restorable.snapshot, &read, Coding::Identity).await;
        let length = plain.body.length();
        if bytes + length > LARGEST || *coding != Coding::Identity && length > LARGEST_CODED {
            continue;
        }
        let ready = match coding {
            Coding::Identity => plain,
            coding => tools::ready_list(shared, &restorable.snapshot, &read, *coding).await,
        };
        bytes += ready.body.length();
        lists.extend(kept::list(query, *coding, &ready, &restorable.snapshot));
    }
    lists.reverse();
    lists
}
