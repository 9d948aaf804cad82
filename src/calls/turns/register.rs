//! The turns that are kept: found by their id, stored, and forgotten after a while.
//!
//! A turn under an id of its caller is stored before its first call is sent, so it is never run
//! twice. Never done here: running calls.

use std::borrow::Cow;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use super::document;
use super::left_out::{LeftOutTurn, LeftOutTurns};
use super::turn::Turn;
use crate::calls::call_mode::CannotCompete;
use crate::calls::dependencies::CallDependencies;
use crate::calls::kept::{Admission, Keepable, KeptChanges, KeptLimits, KeptRegister, Taken};
use crate::calls::{CallEnd, ToolAnswer};
use crate::config::TurnsConfig;
use crate::model::{Finding, StoredTurn, WithNextStep};
use crate::state::{StateError, StateErrorKind, Write};

// What to do next: the ends of the texts below.
const GIVE_OTHER_ID: &str = "give each turn an id of its own, such as a random UUID";
const TRY_LATER: &str = "try again later";

/// Why a turn was not begun.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TurnError {
    /// The id that the caller gave is none.
    #[error("`turn_id` cannot be {0:?}: allowed are 8 to 90 letters, digits, `.`, `_` and `-`")]
    InvalidId(String),
    /// Another turn has the id that the caller gave.
    #[error("the turn {0:?} exists already, with another body; {GIVE_OTHER_ID}")]
    Taken(String),
    /// A call that is under way has the id that a call of the turn would have.
    #[error(
        "the turn {turn:?} cannot be begun: another call has the id {call:?}, which one of its calls would have; \
         {GIVE_OTHER_ID}"
    )]
    CallTaken {
        /// The id that the caller gave.
        turn: String,
        /// The id of the call.
        call: String,
    },
    /// Its calls may not compete.
    #[error(transparent)]
    CannotCompete(#[from] CannotCompete),
    /// As many turns as possible are not over.
    #[error("as many turns are under way as `turns.max` and `turns.kept_bytes` allow; {TRY_LATER}")]
    Full,
    /// It could not be stored, so its calls could run twice.
    #[error(transparent)]
    State(#[from] StateError),
    /// The daemon is not ready, or is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

impl WithNextStep for TurnError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Taken(_) | Self::CallTaken { .. } => Some(GIVE_OTHER_ID.into()),
            Self::Full => Some(TRY_LATER.into()),
            Self::CannotCompete(error) => error.next_step(),
            Self::State(error) => error.next_step(),
            Self::InvalidId(_) | Self::Stopping => None,
        }
    }
}

/// All turns that are kept. Cheap to clone.
#[derive(Clone)]
pub struct Turns(Arc<TurnsInner>);

struct TurnsInner {
    parts: CallDependencies,
    limits: ArcSwap<TurnsConfig>,
    kept: Arc<KeptRegister<Arc<Turn>>>,
    /// Stored turns that are not kept.
    left_out: LeftOutTurns,
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
        let kept = KeptRegister::new([], KeptLimits::from(&limits), parts.clone());
        let limits = ArcSwap::from_pointee(limits);
        let turns = Self(Arc::new(TurnsInner {
            parts,
            limits,
            kept,
            left_out: LeftOutTurns::default(),
        }));
        for stored in stored {
            let Some(turn) = document::restored(&stored) else {
                turns.0.left_out.add_unreadable(stored.id);
                continue;
            };
            let left_out = LeftOutTurn::new(&turn);
            if turns.admit(turn).is_err() {
                turns.0.left_out.add(left_out);
            }
        }
        turns
            .0
            .parts
            .tasks
            .spawn(Arc::clone(&turns.0.kept).look_after());
        turns
    }

    /// Applies other limits.
    pub fn configure(&self, limits: TurnsConfig) {
        self.0.kept.configure(KeptLimits::from(&limits));
        self.0.limits.store(Arc::new(limits));
    }

    /// The findings about stored turns that are not kept.
    pub(in crate::calls) fn findings(&self) -> Vec<Finding> {
        self.0.left_out.findings()
    }

    /// The stored turns that are not kept.
    pub(super) fn left_out(&self) -> &LeftOutTurns {
        &self.0.left_out
    }

    /// Deletes a stored turn for which there was no room. One that was begun anew stays.
    pub(super) async fn forget_left_out(&self, turn: &LeftOutTurn) {
        self.0
            .kept
            .store(
                vec![Write::ForgetTurn(Arc::clone(&turn.id), turn.begun_at)],
                &[],
            )
            .await;
        self.0.left_out.remove(&turn.id);
    }

    /// The limits.
    pub(super) fn limits(&self) -> Arc<TurnsConfig> {
        self.0.limits.load_full()
    }

    /// The turn with this id, if this identity made it.
    pub fn get(&self, id: &str, owner: &str) -> Option<Arc<Turn>> {
        self.0
            .kept
            .table()
            .get(id)
            .filter(|turn| *turn.owner == *owner)
            .cloned()
    }

    /// The turn that has a call with this id, if this identity made it.
    pub fn with_call(&self, id: &str, owner: &str) -> Option<Arc<Turn>> {
        let (turn, _) = id.rsplit_once('.')?;
        self.get(turn, owner)
    }

    /// Whether a turn that is kept, of any identity, has a call with this id.
    pub(in crate::calls) fn has_call(&self, id: &str) -> bool {
        let Some((turn, _)) = id.rsplit_once('.') else {
            return false;
        };
        self.0
            .kept
            .table()
            .get(turn)
            .is_some_and(|turn| turn.number_of(id).is_some())
    }

    /// The end of the call with this id, if it is over and this identity made its turn.
    pub(in crate::calls) fn end_of_call(&self, id: &str, owner: &str) -> Option<CallEnd> {
        let turn = self.with_call(id, owner)?;
        let (_, settled) = turn.result(id)?;
        Some(CallEnd::Answered(ToolAnswer::from(&*settled)))
    }

    /// Every turn that is not over.
    pub(super) fn open(&self) -> Vec<Arc<Turn>> {
        self.0
            .kept
            .table()
            .iter()
            .filter(|turn| !turn.is_over())
            .cloned()
            .collect()
    }

    /// Adds a turn, unless the same one is known.
    pub(super) fn admit(&self, turn: Turn) -> Result<TurnAdmission, TurnError> {
        turn.note_end(self.0.parts.clock.wall());
        let one_turn = one_turn(self.limits().kept_bytes);
        let mut table = self.0.kept.table();
        if let Some(known) = table.get(&turn.id) {
            let is_same = known.owner == turn.owner && known.digest == turn.digest;
            return if is_same {
                Ok(TurnAdmission::Known(Arc::clone(known)))
            } else {
                Err(TurnError::Taken(turn.id.to_string()))
            };
        }
        turn.hold_results(&table.held().share(one_turn));
        let turn = Arc::new(turn);
        let admission = table.admit(Arc::clone(&turn));
        drop(table);
        match admission {
            Admission::Added(forgotten) => {
                self.0.kept.delete(&forgotten);
                self.0.left_out.remove(&turn.id);
                Ok(TurnAdmission::New(turn))
            }
            Admission::Full(forgotten) => {
                self.0.kept.delete(&forgotten);
                Err(TurnError::Full)
            }
        }
    }

    /// Removes a turn that could not be stored.
    pub(super) fn remove(&self, id: &str) {
        self.0.kept.table().remove(id);
    }

    /// Stores a turn as it is now. Changes that were stored meanwhile are not stored again, and a
    /// turn that was forgotten meanwhile is not stored.
    pub(super) async fn save(&self, turn: &Arc<Turn>) -> Result<(), StateError> {
        let mut saved = turn.saved.lock().await;
        let version = turn.version();
        if saved.is_some_and(|saved| saved >= version) || !self.keeps(turn) {
            return Ok(());
        }
        let own = Arc::clone(turn);
        // Writing large results takes a while.
        let stored = self
            .0
            .parts
            .tasks
            .blocking(move || document::stored(&own))
            .await
            .map_err(|error| StateError {
                what: "cannot store a turn",
                place: "the stored state".to_owned(),
                message: error.to_string(),
                next: None,
                kind: StateErrorKind::Other,
            })?;
        self.0
            .parts
            .store
            .save(vec![Write::Turn(Arc::new(stored))])
            .await?;
        turn.set_stored();
        *saved = Some(version);
        if !self.keeps(turn) {
            // It was forgotten meanwhile, and may have been deleted before it was written.
            self.0
                .kept
                .store(turn.deletion().into_iter().collect(), &[])
                .await;
        }
        Ok(())
    }

    /// Whether this turn has not been forgotten.
    fn keeps(&self, turn: &Arc<Turn>) -> bool {
        self.0
            .kept
            .table()
            .get(&turn.id)
            .is_some_and(|kept| Arc::ptr_eq(kept, turn))
    }

    /// Forgets turns that are over, so that so many bytes more can be reserved.
    pub(super) fn make_room(&self, bytes: usize) {
        let forgotten = self.0.kept.table().make_room(Taken { count: 0, bytes });
        self.0.kept.delete(&forgotten);
    }

    /// A call of a turn is over: stores it if it is in the store. If that fails, the next daemon
    /// takes its calls for ones with an unknown outcome and does not run them.
    pub(super) async fn keep(&self, turn: &Arc<Turn>) {
        if turn.note_end(self.0.parts.clock.wall()) {
            self.0.kept.table().note_end(&turn.id);
        }
        // Waits for a save that is under way, which may be the first one and without this call.
        drop(turn.saved.lock().await);
        if turn.is_stored()
            && let Err(error) = self.save(turn).await
        {
            tracing::error!(error = %error, "what became of the calls of a turn could not be stored");
        }
    }
}

impl Keepable for Arc<Turn> {
    fn id(&self) -> &Arc<str> {
        &self.id
    }

    fn weight(&self) -> usize {
        Turn::weight(self)
    }

    fn is_over(&self) -> bool {
        Turn::is_over(self)
    }

    fn ended_at(&self) -> Option<Timestamp> {
        self.over_since()
    }

    fn changes(&self) -> &KeptChanges {
        &self.changes
    }

    fn deletion(&self) -> Option<Write> {
        self.is_stored()
            .then(|| Write::ForgetTurn(Arc::clone(&self.id), self.begun_at))
    }

    fn release(&self) {
        self.release_results();
    }
}

impl From<&TurnsConfig> for KeptLimits {
    fn from(limits: &TurnsConfig) -> Self {
        Self {
            most: limits.max,
            bytes: limits.kept_bytes,
            keep: limits.keep,
        }
    }
}

/// What the results of one turn may have of the bytes of all: a quarter, so that the messages that
/// are made of them are bounded too.
fn one_turn(kept_bytes: usize) -> usize {
    kept_bytes / 4
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns")
            .field("limits", &self.0.limits.load())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::calls::call_mode::CallMode;
    use crate::calls::kept::KeptTable;
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

    fn table(most: usize, bytes: usize) -> KeptTable<Arc<Turn>> {
        KeptTable::new(KeptLimits {
            most,
            bytes,
            keep: Duration::from_secs(100),
        })
    }

    fn ids(forgotten: &[Arc<Turn>]) -> Vec<&str> {
        forgotten.iter().map(|turn| &*turn.id).collect()
    }

    #[test]
    fn turns_are_forgotten_some_time_after_their_end() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let mut table = table(9, 1_000_000);
        let over = turn("over", true);
        assert!(over.note_end(second(100)));
        assert!(over.note_end(second(150)));
        table.add(over);
        let open = turn("open", false);
        assert!(!open.note_end(second(100)));
        table.add(open);
        assert_eq!(
            ids(&table.prune(second(200))),
            [""; 0],
            "its end was noted at 100"
        );
        assert_eq!(ids(&table.prune(second(201))), ["over"]);
        assert_eq!(ids(&table.prune(second(999))), [""; 0]);
    }

    #[test]
    fn a_turn_that_ends_while_it_is_kept_makes_room_with_its_results() {
        let mut table = table(2, 100_000);
        let first = turn("first", false);
        first.hold_results(&table.held().share(50_000));
        table.add(Arc::clone(&first));
        table.add(turn("second", false));
        let before = table.held().reserved();
        let result = Settled::with_text(TurnCallStatus::Result, "", "x".repeat(20_000));
        first.set(0, TurnPhase::Over(Arc::new(result)));
        assert!(
            table.held().reserved() > before + 10_000,
            "its result counts"
        );
        let more = Taken { count: 1, bytes: 0 };
        assert_eq!(
            ids(&table.make_room(more)),
            [""; 0],
            "its end was not noted"
        );
        first.note_end(Timestamp::UNIX_EPOCH);
        table.note_end("first");
        assert_eq!(ids(&table.make_room(more)), ["first"]);
        assert_eq!(
            ids(&table.make_room(more)),
            [""; 0],
            "one that is not over stays"
        );
        assert!(
            table.held().reserved() < before,
            "what was forgotten takes no bytes"
        );
    }
}
