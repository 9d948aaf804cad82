//! The form in which a turn is stored, and back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::read::ReadCall;
use super::settled::Settled;
use super::turn::{NewTurn, Turn, TurnCall, TurnPhase, TurnSettings};
use super::{vendors, words};
use crate::calls::call_mode::CallMode;
use crate::model::{JsonText, StoredTurn};

/// The calls of a turn and what its messages depend on.
#[derive(Serialize, Deserialize)]
struct TurnDocument {
    tells_approvals: bool,
    text_bytes: usize,
    result_bytes: usize,
    model: Option<String>,
    is_revision_forgotten: bool,
    calls: Vec<CallDocument>,
}

/// One call. Its arguments are not stored: it is never sent again.
#[derive(Serialize, Deserialize)]
struct CallDocument {
    id: Option<String>,
    name: String,
    is_foreign: bool,
    tool: Option<String>,
    /// The whole call of the Tool Protocol, which its result repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<Box<RawValue>>,
    /// The approval that it waits for.
    approval: Option<Arc<str>>,
    settled: Option<Settled>,
}

/// The stored form of a turn as it is now.
pub(super) fn stored(turn: &Turn) -> Result<StoredTurn, serde_json::Error> {
    let phases = turn.phases();
    let calls = turn.calls.iter().zip(phases).map(|(call, phase)| {
        let (approval, settled) = match phase {
            TurnPhase::WaitsForApproval(id) => (Some(id), None),
            TurnPhase::GoesOn(settled) | TurnPhase::Over(settled) => {
                (None, Some(Settled::clone(&settled)))
            }
            TurnPhase::Queued | TurnPhase::Running | TurnPhase::NeedsInput(_) => (None, None),
        };
        let whole = call
            .read
            .whole
            .as_ref()
            .map(|whole| serde_json::from_str(whole.get()))
            .transpose()?;
        Ok(CallDocument {
            id: call.read.id.clone(),
            name: call.read.name.clone(),
            is_foreign: call.read.is_foreign,
            tool: call.tool.as_ref().map(ToString::to_string),
            whole,
            approval,
            settled,
        })
    });
    let TurnSettings {
        tells_approvals,
        text_bytes,
        result_bytes,
        model,
        is_revision_forgotten,
    } = turn.settings.clone();
    let calls = calls.collect::<Result<_, serde_json::Error>>()?;
    let document = TurnDocument {
        tells_approvals,
        text_bytes,
        result_bytes,
        model,
        is_revision_forgotten,
        calls,
    };
    Ok(StoredTurn {
        id: Arc::clone(&turn.id),
        owner: Arc::clone(&turn.owner),
        digest: Arc::clone(&turn.digest),
        format: turn.format.id().into(),
        begun_at: turn.begun_at,
        document: JsonText::known(serde_json::to_string(&document)?),
    })
}

/// The turn of an earlier daemon. Calls that had begun have an unknown outcome; those that wait for
/// approval go on waiting. Fails if its format or its document is not known.
pub(super) fn restored(stored: &StoredTurn) -> Option<Turn> {
    let format = vendors::by_id(&stored.format)?;
    let document: TurnDocument = serde_json::from_str(stored.document.get()).ok()?;
    let TurnDocument {
        tells_approvals,
        text_bytes,
        result_bytes,
        model,
        is_revision_forgotten,
        calls,
    } = document;
    let settings = TurnSettings {
        tells_approvals,
        text_bytes,
        result_bytes,
        model,
        is_revision_forgotten,
    };
    let calls = calls.into_iter().map(|call| {
        let phase = match (call.settled, call.approval) {
            (Some(settled), _) => TurnPhase::Over(Arc::new(settled)),
            (None, Some(approval)) => TurnPhase::WaitsForApproval(approval),
            (None, None) => TurnPhase::Over(Arc::new(words::unknown_outcome())),
        };
        let mut read = ReadCall {
            is_foreign: call.is_foreign,
            ..ReadCall::new(call.id, Some(call.name), None)
        };
        read.whole = call.whole.map(|whole| JsonText::known(whole.get()));
        (
            TurnCall {
                read,
                tool: call.tool.and_then(|tool| tool.parse().ok()),
            },
            phase,
        )
    });
    let turn = Turn::new(NewTurn {
        id: Arc::clone(&stored.id),
        owner: Arc::clone(&stored.owner),
        digest: Arc::clone(&stored.digest),
        format,
        begun_at: stored.begun_at,
        settings,
        // None of its calls is sent any more.
        mode: CallMode::All,
        calls: calls.collect(),
    });
    turn.set_stored();
    Some(turn)
}
