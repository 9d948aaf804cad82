//! Calls whose callers take part over HTTP while they run: each has an id, by which its caller
//! follows it, gives input and cancels it.
//!
//! A call is here from its request to its answer. One that had to wait for input stays for a while
//! with its answer, since the request that made it was answered before. What callers are sent of a
//! call is bounded: events that come too fast are dropped, and its answer is not.
//!
//! Never done here: sending calls and writing answers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::kept::{Admission, Keepable, KeptChanges, KeptLimits, KeptTable, Taken};

mod attend;
mod call;
mod pace;
mod pending_input;

pub use attend::{AttendError, InputError};
pub use call::{ActiveCall, CallPhase};
pub use pending_input::PendingInput;

/// The most calls that take part at a time, and answers that are kept for callers that gave input.
/// Answers make room for calls, and have no age.
const LIMITS: KeptLimits = KeptLimits {
    most: 10_000,
    bytes: 32 * 1024 * 1024,
    keep: Duration::MAX,
};
/// The longest and the shortest id that a caller may give.
const ID_LENGTH: std::ops::RangeInclusive<usize> = 8..=100;

/// All calls whose callers take part. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ActiveCalls(Arc<Mutex<KeptTable<Arc<ActiveCall>>>>);

impl Default for ActiveCalls {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(KeptTable::new(LIMITS))))
    }
}

impl ActiveCalls {
    fn table(&self) -> MutexGuard<'_, KeptTable<Arc<ActiveCall>>> {
        self.0.lock()
    }

    /// Adds a call under the id that its caller gave, or under a new one.
    fn add(
        &self,
        given: Option<String>,
        make: impl FnOnce(Arc<str>) -> ActiveCall,
    ) -> Result<Arc<ActiveCall>, AttendError> {
        let given = given.map(checked_id).transpose()?;
        let id: Arc<str> = given.unwrap_or_else(|| Uuid::new_v4().to_string()).into();
        let mut table = self.table();
        if table.get(&id).is_some() {
            return Err(AttendError::Taken(id.to_string()));
        }
        let call = Arc::new(make(id));
        match table.admit(Arc::clone(&call)) {
            Admission::Added(_) => Ok(call),
            Admission::Full(_) => Err(AttendError::Full),
        }
    }

    /// The call with this id.
    pub fn get(&self, id: &str) -> Option<Arc<ActiveCall>> {
        self.table().get(id).cloned()
    }

    /// The calls that wait for input, in order of their ids.
    pub fn waiting(&self) -> Vec<(Arc<ActiveCall>, Arc<PendingInput>)> {
        let calls: Vec<_> = self.table().iter().cloned().collect();
        let waiting = calls
            .into_iter()
            .filter_map(|call| call.pending_input().map(|input| (call, input)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable_by(|one, other| one.0.id().cmp(other.0.id()));
        waiting
    }

    fn remove(&self, id: &str) {
        self.table().remove(id);
    }

    /// Keeps a call that is over for a while, and forgets older ones beyond the limits.
    fn keep(&self, call: &ActiveCall, end: CallPhase) {
        let mut table = self.table();
        call.set(end);
        table.change(call.id(), |_| ());
        table.make_room(Taken::default());
    }
}

impl Keepable for Arc<ActiveCall> {
    fn id(&self) -> &Arc<str> {
        ActiveCall::id(self)
    }

    fn weight(&self) -> usize {
        match self.phase() {
            CallPhase::Over(end) => end.weight(),
            _ => 0,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.phase(), CallPhase::Over(_))
    }

    fn changes(&self) -> &KeptChanges {
        ActiveCall::changes(self)
    }
}

/// The id that a caller gave. Fails with [`AttendError::InvalidId`].
pub(crate) fn checked_id(id: String) -> Result<String, AttendError> {
    if is_id(&id) {
        Ok(id)
    } else {
        Err(AttendError::InvalidId(id))
    }
}

/// Whether a caller may give this id.
fn is_id(text: &str) -> bool {
    ID_LENGTH.contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
