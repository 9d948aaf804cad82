//! The turns that are kept: found by their id, stored, and forgotten after a while.
//!
//! A turn under an id of its caller is stored before its first call is sent, so it is never run
//! twice. Never done here: running calls.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use super::document;
use super::turn::Turn;
use crate::calls::call_mode::CannotCompete;
use crate::calls::dependencies::CallDependencies;
use crate::config::TurnsConfig;
use crate::model::{Finding, FindingCode, StoredTurn};
use crate::runtime::ByteBudget;
use crate::state::{StateError, StateErrorKind, Write};

/// How many turns a finding names.
const NAMED_TURNS: usize = 20;
/// How often turns that are over are checked for their age.
const LOOK: Duration = Duration::from_secs(60);

/// Why a turn was not begun.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TurnError {
    /// The id that the caller gave is none.
    #[error("`turn_id` cannot be {0:?}: allowed are 8 to 90 letters, digits, `.`, `_` and `-`")]
    InvalidId(String),
    /// Another turn has the id that the caller gave.
    #[error("the turn {0:?} exists already, with another body; give each turn an id of its own, such as a random UUID")]
    Taken(String),
    /// Its calls may not compete.
    #[error(transparent)]
    CannotCompete(#[from] CannotCompete),
    /// As many turns as possible are not over.
    #[error("as many turns are under way as `turns.max` and `turns.kept_bytes` allow; try again later")]
    Full,
    /// It could not be stored, so its calls could run twice.
    #[error(transparent)]
    State(#[from] StateError),
    /// The daemon is not ready, or is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

/// All turns that are kept. Cheap to clone.
#[derive(Clone)]
pub struct Turns(Arc<TurnsInner>);

struct TurnsInner {
    parts: CallDependencies,
    limits: ArcSwap<TurnsConfig>,
    /// `turns.kept_bytes`: what all kept turns have together.
    kept: ByteBudget,
    table: Mutex<TurnTable>,
    /// About stored turns that are not kept.
    findings: OnceLock<Vec<Finding>>,
}

#[derive(Default)]
struct TurnTable {
    kept: HashMap<Arc<str>, Arc<Turn>>,
    /// Their ids, in the order in which they began.
    order: VecDeque<Arc<str>>,
}

/// What came of adding a turn.
pub(super) enum TurnAdmission {
    /// It is new.
    New(Arc<Turn>),
    /// The same turn was begun before.
    Known(Arc<Turn>),
}

impl Turns {
    /// Takes over the stored turns, and forgets old ones until the stop.
    pub fn start(stored: Vec<StoredTurn>, limits: TurnsConfig, parts: CallDependencies) -> Self {
        let kept = ByteBudget::new(limits.kept_bytes);
        let turns = Self(Arc::new(TurnsInner {
            parts,
            limits: ArcSwap::from_pointee(limits),
            kept,
            table: Mutex::default(),
            findings: OnceLock::new(),
        }));
        let mut beyond_limits = Vec::new();
        let mut unreadable = Vec::new();
        for stored in stored {
            match document::restored(&stored).map(|turn| turns.admit(turn)) {
                Some(Ok(_)) => {}
                Some(Err(_)) => beyond_limits.push(stored.id),
                None => unreadable.push(stored.id),
            }
        }
        let limits = "they wait for approval, and `turns.max` or `turns.kept_bytes` is lower than before";
        let findings = [
            left_out(&beyond_limits, limits, "raise these keys and restart the daemon"),
            left_out(&unreadable, "they cannot be read", "restart the version of the daemon that stored them"),
        ];
        // It is set here only.
        let _ = turns.0.findings.set(findings.into_iter().flatten().collect());
        turns.0.parts.tasks.spawn(turns.clone().look_after());
        turns
    }

    /// Applies other limits.
    pub fn configure(&self, limits: TurnsConfig) {
        self.0.kept.set_limit(limits.kept_bytes);
        self.0.limits.store(Arc::new(limits));
    }

    /// The findings about stored turns that are not kept.
    pub(in crate::calls) fn findings(&self) -> Vec<Finding> {
        self.0.findings.get().cloned().unwrap_or_default()
    }

    /// The limits.
    pub(super) fn limits(&self) -> Arc<TurnsConfig> {
        self.0.limits.load_full()
    }

    /// The turn with this id, if this identity made it.
    pub fn get(&self, id: &str, owner: &str) -> Option<Arc<Turn>> {
        self.table().kept.get(id).filter(|turn| *turn.owner == *owner).cloned()
    }

    /// The turn that has a call with this id, if this identity made it.
    pub fn with_call(&self, id: &str, owner: &str) -> Option<Arc<Turn>> {
        let (turn, _) = id.rsplit_once('.')?;
        self.get(turn, owner)
    }

    /// Every turn that is not over.
    pub(super) fn open(&self) -> Vec<Arc<Turn>> {
        self.table().kept.values().filter(|turn| !turn.is_over()).cloned().collect()
    }

    /// Adds a turn, unless the same one is known.
    pub(super) fn admit(&self, turn: Turn) -> Result<TurnAdmission, TurnError> {
        let limits = self.limits();
        let mut table = self.table();
        if let Some(known) = table.kept.get(&turn.id) {
            let is_same = known.owner == turn.owner && known.digest == turn.digest;
            return if is_same {
                Ok(TurnAdmission::Known(Arc::clone(known)))
            } else {
                Err(TurnError::Taken(turn.id.to_string()))
            };
        }
        let most_bytes = limits.kept_bytes.saturating_sub(turn.weight());
        let forgotten = table.make_room(limits.max.saturating_sub(1), &self.0.kept, most_bytes);
        let is_full = table.kept.len() >= limits.max || turn.hold(&self.0.kept, one_turn(limits.kept_bytes)).is_err();
        let turn = Arc::new(turn);
        if !is_full {
            table.add(Arc::clone(&turn));
        }
        drop(table);
        self.forget(forgotten);
        if is_full { Err(TurnError::Full) } else { Ok(TurnAdmission::New(turn)) }
    }

    /// Removes a turn that could not be stored.
    pub(super) fn remove(&self, id: &str) {
        self.table().remove(id);
    }

    /// Stores a turn as it is now. Changes that were stored meanwhile are not stored again.
    pub(super) async fn save(&self, turn: &Arc<Turn>) -> Result<(), StateError> {
        let mut saved = turn.saved.lock().await;
        let version = turn.version();
        if *saved >= version {
            return Ok(());
        }
        let own = Arc::clone(turn);
        // Writing large results takes a while.
        let stored = self.0.parts.tasks.blocking(move || document::stored(&own)).await.map_err(|error| StateError {
            what: "cannot store a turn",
            place: "the stored state".to_owned(),
            message: error.to_string(),
            kind: StateErrorKind::Other,
        })?;
        self.0.parts.store.save(vec![Write::Turn(Arc::new(stored))]).await?;
        turn.set_stored();
        *saved = version;
        Ok(())
    }

    /// Forgets turns that are over, so that so many bytes more can be reserved.
    pub(super) fn make_room(&self, bytes: usize) {
        let limits = self.limits();
        let most_bytes = limits.kept_bytes.saturating_sub(bytes);
        let forgotten = self.table().make_room(limits.max, &self.0.kept, most_bytes);
        self.forget(forgotten);
    }

    /// A call of a turn is over: stores it if it is in the store. If that fails, the next daemon
    /// takes its calls for ones with an unknown outcome and does not run them.
    pub(super) async fn keep(&self, turn: &Arc<Turn>) {
        // Waits for a save that is under way, which may be the first one and without this call.
        drop(turn.saved.lock().await);
        if turn.is_stored()
            && let Err(error) = self.save(turn).await
        {
            tracing::error!(error = %error, "what became of the calls of a turn could not be stored");
        }
    }

    /// Forgets turns that are over and too old or too many, until the stop.
    async fn look_after(self) {
        let CallDependencies { clock, stop, .. } = &self.0.parts;
        loop {
            tokio::select! {
                () = stop.wait() => return,
                () = clock.sleep(LOOK) => {}
            }
            let (limits, wall) = (self.limits(), clock.wall());
            let then = wall.saturating_sub(limits.keep).unwrap_or(wall);
            let forgotten = {
                let mut table = self.table();
                let mut forgotten = table.forget_before(then, wall);
                forgotten.extend(table.make_room(limits.max, &self.0.kept, limits.kept_bytes));
                forgotten
            };
            self.forget(forgotten);
        }
    }

    /// Deletes forgotten turns from the store, in the background.
    fn forget(&self, forgotten: Vec<Arc<Turn>>) {
        let stored = forgotten.into_iter().filter(|turn| turn.is_stored());
        let writes: Vec<Write> = stored.map(|turn| Write::ForgetTurn(Arc::clone(&turn.id))).collect();
        if writes.is_empty() {
            return;
        }
        let parts = self.0.parts.clone();
        self.0.parts.tasks.spawn(async move {
            if let Err(error) = parts.store.save(writes).await {
                tracing::warn!(error = %error, "old turns could not be deleted from the stored state");
            }
        });
    }

    fn table(&self) -> MutexGuard<'_, TurnTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnTable {
    fn add(&mut self, turn: Arc<Turn>) {
        self.order.push_back(Arc::clone(&turn.id));
        self.kept.insert(Arc::clone(&turn.id), turn);
    }

    fn remove(&mut self, id: &str) {
        self.order.retain(|own| **own != *id);
        self.take(id);
    }

    /// Forgets turns that are over, the oldest first, until at most `most` with `bytes` reserved
    /// bytes are left.
    fn make_room(&mut self, most: usize, reserved: &ByteBudget, bytes: usize) -> Vec<Arc<Turn>> {
        let mut forgotten = Vec::new();
        let mut at = 0;
        while (self.kept.len() > most || reserved.reserved() > bytes) && at < self.order.len() {
            if self.kept.get(&self.order[at]).is_some_and(|turn| !turn.is_over()) {
                at += 1;
            } else if let Some(id) = self.order.remove(at) {
                forgotten.extend(self.take(&id));
            }
        }
        forgotten
    }

    /// Forgets turns that were over before `then`.
    fn forget_before(&mut self, then: Timestamp, now: Timestamp) -> Vec<Arc<Turn>> {
        let is_old = |turn: &Arc<Turn>| turn.over_since(now).is_some_and(|since| since < then);
        let (old, order) = std::mem::take(&mut self.order)
            .into_iter()
            .partition::<VecDeque<_>, _>(|id| self.kept.get(id).is_some_and(is_old));
        self.order = order;
        old.iter().filter_map(|id| self.take(id)).collect()
    }

    fn take(&mut self, id: &str) -> Option<Arc<Turn>> {
        let turn = self.kept.remove(id)?;
        turn.release();
        Some(turn)
    }
}

/// The finding about stored turns with these ids that are not kept.
fn left_out(ids: &[Arc<str>], why: &str, next: &str) -> Option<Finding> {
    if ids.is_empty() {
        return None;
    }
    let named: Vec<String> = ids.iter().take(NAMED_TURNS).map(|id| format!("`{id}`")).collect();
    let more = if ids.len() > NAMED_TURNS { " and others" } else { "" };
    let message = format!("{} of the stored turns are not kept, because {why}: {}{more}", ids.len(), named.join(", "));
    let hint = format!("{next}; until then, a client that sends one of them again has its calls run again");
    Some(Finding::new(FindingCode::TurnsLeftOut, message).hint(hint))
}

/// What the results of one turn may have of the bytes of all: a quarter, so that the messages that
/// are made of them are bounded too.
fn one_turn(kept_bytes: usize) -> usize {
    kept_bytes / 4
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").field("limits", &self.0.limits.load()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::call_mode::CallMode;
    use crate::calls::turns::read::ReadCall;
    use crate::calls::turns::settled::{Settled, TurnCallStatus};
    use crate::calls::turns::turn::{NewTurn, TurnCall, TurnPhase, TurnSettings};
    use crate::calls::turns::vendors;

    fn turn(id: &str, is_over: bool) -> Arc<Turn> {
        let read = ReadCall::new(None, Some("look".into()), None);
        let over = TurnPhase::Over(Arc::new(Settled::new(TurnCallStatus::Result)));
        let phase = if is_over { over } else { TurnPhase::Running };
        let settings = TurnSettings {
            tells_approvals: false,
            text_bytes: 9,
            result_bytes: 9,
            model: None,
            is_revision_forgotten: false,
        };
        Arc::new(Turn::new(NewTurn {
            id: id.into(),
            owner: "full".into(),
            digest: "d".into(),
            format: vendors::by_id("openai").unwrap(),
            begun_at: Timestamp::UNIX_EPOCH,
            settings,
            mode: CallMode::All,
            calls: vec![(TurnCall { read, tool: None }, phase)],
        }))
    }

    fn ids(forgotten: &[Arc<Turn>]) -> Vec<&str> {
        forgotten.iter().map(|turn| &*turn.id).collect()
    }

    #[test]
    fn turns_are_forgotten_some_time_after_their_end() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let mut table = TurnTable::default();
        table.add(turn("over", true));
        table.add(turn("open", false));
        assert_eq!(ids(&table.forget_before(second(0), second(100))), [""; 0]);
        assert_eq!(ids(&table.forget_before(second(100), second(200))), [""; 0], "it was seen at 100");
        assert_eq!(ids(&table.forget_before(second(101), second(201))), ["over"]);
        assert_eq!(ids(&table.forget_before(second(999), second(999))), [""; 0]);
    }

    #[test]
    fn the_oldest_that_are_over_make_room() {
        let mut table = TurnTable::default();
        let kept = ByteBudget::new(1_000_000);
        for (id, is_over) in [("a", false), ("b", true), ("c", true), ("d", true)] {
            let turn = turn(id, is_over);
            turn.hold(&kept, 1_000).unwrap();
            table.add(turn);
        }
        assert_eq!(ids(&table.make_room(3, &kept, usize::MAX)), ["b"]);
        let bytes = kept.reserved();
        assert_eq!(ids(&table.make_room(9, &kept, bytes - 1)), ["c"]);
        assert_eq!(ids(&table.make_room(0, &kept, 0)), ["d"], "one that is not over stays");
        let left = kept.reserved();
        assert!(left > 0 && left < bytes, "what was forgotten takes no bytes");
    }
}
