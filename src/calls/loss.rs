//! After stored data was lost, no tool is called until an operator accepts that.
//!
//! What disabled a tool, required approval or blocked a scenario may be among what was lost, so
//! calling on would let through what an operator had forbidden.

use std::sync::Arc;

use super::{Calls, ExecuteError};
use crate::model::{Finding, FindingCode};
use crate::state::{StateError, StateLoss, Write};

impl Calls {
    /// What was lost, if no operator accepted it yet: every call is refused.
    pub fn loss(&self) -> Option<Arc<StateLoss>> {
        self.0.loss.load_full()
    }

    /// Accepts the loss: calls are made again as soon as that is durable. Returns what was lost;
    /// `None` if nothing was.
    pub async fn accept_loss(&self) -> Result<Option<Arc<StateLoss>>, StateError> {
        let (Some(loss), Some(parts)) = (self.loss(), self.parts()) else {
            return Ok(None);
        };
        parts.store.save(vec![Write::AcceptLoss]).await?;
        self.0.loss.store(None);
        tracing::warn!("an operator accepted the loss of stored data; tools are called again");
        Ok(Some(loss))
    }

    /// Refuses a call while there is a loss.
    pub(super) fn refuse_after_loss(&self) -> Result<(), ExecuteError> {
        match self.0.loss.load().as_ref() {
            None => Ok(()),
            Some(loss) => Err(ExecuteError::StateLost { at: loss.at }),
        }
    }

    /// The finding that says why no tool is called.
    pub(super) fn loss_finding(&self) -> Option<Finding> {
        let loss = self.loss()?;
        let message = format!(
            "no tool is called, because decisions of operators may be lost: {}",
            loss.what
        );
        let hint = "look at the preferences, the trust, the blocks and what was accepted (`callsheet pins`), set what is missing, then run `callsheet state accept-loss`";
        Some(Finding::new(FindingCode::StateRepaired, message).hint(hint))
    }
}
