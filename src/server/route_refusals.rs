//! Refusals that several routes share, for the table of routes.

use crate::calls::approval::{DecideError, DecisionRefusal as Undecided};
use crate::calls::track::CancelError;
use crate::engine::EngineError;
use crate::events::SubscribeError;
use crate::server::api::active_calls;
use crate::server::openapi::{RefusalSpec, refusal};

/// No scenario has the name.
pub(super) const UNKNOWN_SCENARIO: RefusalSpec = refusal(
    404,
    "No scenario has this name; `candidates` holds near names.",
);
/// The name could mean several tools.
pub(super) const AMBIGUOUS_NAME: RefusalSpec = refusal(
    409,
    "The name could mean several tools: `candidates` names them.",
);
/// No tool has the name.
pub(super) const NO_TOOL: RefusalSpec = refusal(
    404,
    "No tool has this name, or it is not published now; the answer says why, or offers near names.",
);
/// As many clients follow as may.
pub(super) const TOO_MANY_STREAMS: RefusalSpec = refusal(
    503,
    "Too many clients follow already; `Retry-After` says when to try again.",
)
.with_example(|| SubscribeError::Full(1_000).into());
/// The scenario cannot be polled.
pub(super) const CANNOT_POLL: RefusalSpec = refusal(409, "It is blocked, or it has no address.");
/// As many preferences are kept as may be.
pub(super) const TOO_MANY_PREFERENCES: RefusalSpec = refusal(
    409,
    "There are as many preferences of operators, or of clients without the token, as are kept.",
)
.with_example(|| EngineError::TooManyPreferences.into());
/// The state of the scenario does not allow it.
pub(super) const NOT_ALLOWED: RefusalSpec = refusal(
    409,
    "Its state does not allow that now; the answer says what to do first.",
);
/// The scenario is neither removed nor down.
pub(super) const NOT_FORGETTABLE: RefusalSpec = refusal(
    409,
    "It is neither removed nor down; the answer says what to do first.",
);
/// No approval has the id.
pub(super) const NO_APPROVAL: RefusalSpec =
    refusal(404, "No such call waits, or it was forgotten.")
        .with_example(|| DecideError::from(Undecided::Unknown).into());
/// The approval cannot be decided now.
pub(super) const ALREADY_DECIDED: RefusalSpec = refusal(
    409,
    "It was decided before, is being decided, came too late, or is not the requested call; `code` says which.",
)
.with_example(|| DecideError::from(Undecided::Late).into());
/// No call under way has the id.
pub(super) const NO_CALL: RefusalSpec =
    refusal(404, "No call under way has this id.").with_example(active_calls::unknown_call);
/// No operation has the id.
pub(super) const NO_OPERATION: RefusalSpec =
    refusal(404, "No such operation is followed, or it was forgotten.")
        .with_example(|| CancelError::Unknown.into());
