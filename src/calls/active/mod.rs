//! Calls whose callers take part over HTTP while they run: each has an id, by which its caller
//! follows it, gives input and cancels it.
//!
//! A call is here from its request to its answer. One that had to wait for input stays for a while
//! with its answer, since the request that made it was answered before. What callers are sent of a
//! call is bounded: events that come too fast are dropped, and its answer is not.
//!
//! Never done here: sending calls and writing answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

mod attend;
mod call;
mod pace;
mod pending_input;

pub use attend::{AttendError, InputError};
pub use call::{ActiveCall, CallPhase};
pub use pending_input::PendingInput;

/// The most calls that take part at a time.
const MOST: usize = 10_000;
/// The most answers that are kept for callers that gave input.
const KEPT: usize = 256;
/// The most bytes of the results of those.
const KEPT_BYTES: usize = 32 * 1024 * 1024;
/// The longest and the shortest id that a caller may give.
const ID_LENGTH: std::ops::RangeInclusive<usize> = 8..=100;

/// All calls whose callers take part. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ActiveCalls(Arc<Mutex<CallTable>>);

#[derive(Debug, Default)]
struct CallTable {
    calls: BTreeMap<Arc<str>, Arc<ActiveCall>>,
    /// Those that are over and kept, the oldest first, with the bytes of their results.
    over: VecDeque<(Arc<str>, usize)>,
}

impl ActiveCalls {
    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        if table.calls.contains_key(&id) {
            return Err(AttendError::Taken(id.to_string()));
        }
        if table.calls.len() >= MOST + table.over.len() {
            return Err(AttendError::Full);
        }
        let call = Arc::new(make(Arc::clone(&id)));
        table.calls.insert(id, Arc::clone(&call));
        Ok(call)
    }

    /// The call with this id.
    pub fn get(&self, id: &str) -> Option<Arc<ActiveCall>> {
        self.table().calls.get(id).cloned()
    }

    /// The calls that wait for input, in order of their ids.
    pub fn waiting(&self) -> Vec<(Arc<ActiveCall>, Arc<PendingInput>)> {
        let calls: Vec<_> = self.table().calls.values().cloned().collect();
        calls.into_iter().filter_map(|call| call.pending_input().map(|input| (call, input))).collect()
    }

    fn remove(&self, id: &str) {
        self.table().calls.remove(id);
    }

    /// Keeps a call that is over for a while, and forgets older ones beyond the limits.
    fn keep(&self, id: &Arc<str>, bytes: usize) {
        let mut table = self.table();
        table.over.push_back((Arc::clone(id), bytes));
        while table.over.len() > KEPT || table.over.iter().map(|(_, bytes)| bytes).sum::<usize>() > KEPT_BYTES {
            let Some((oldest, _)) = table.over.pop_front() else { break };
            table.calls.remove(&oldest);
        }
    }
}

/// The id that a caller gave. Fails with [`AttendError::InvalidId`].
pub(crate) fn checked_id(id: String) -> Result<String, AttendError> {
    if is_id(&id) { Ok(id) } else { Err(AttendError::InvalidId(id)) }
}

/// Whether a caller may give this id.
fn is_id(text: &str) -> bool {
    ID_LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
