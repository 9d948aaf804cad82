//! An operation as it is kept.

use std::sync::Arc;

use jiff::Timestamp;

use super::limits::TrackerLimits;
use crate::calls::kept::{Keepable, KeptChanges, KeptLimits, KeptTable};
use crate::model::Operation;
use crate::state::Write;

/// An operation that is followed or over.
#[derive(Debug)]
pub(super) struct KeptOperation {
    pub(super) operation: Arc<Operation>,
    changes: KeptChanges,
}

impl KeptOperation {
    pub(super) fn new(operation: Arc<Operation>) -> Self {
        Self {
            operation,
            changes: KeptChanges::default(),
        }
    }
}

impl Keepable for KeptOperation {
    fn id(&self) -> &Arc<str> {
        &self.operation.id
    }

    fn weight(&self) -> usize {
        self.operation.weight()
    }

    fn is_over(&self) -> bool {
        self.operation.state.is_over()
    }

    fn ended_at(&self) -> Option<Timestamp> {
        self.operation.ended_at
    }

    fn changes(&self) -> &KeptChanges {
        &self.changes
    }

    fn deletion(&self) -> Option<Write> {
        Some(Write::ForgetOperation(Arc::clone(&self.operation.id)))
    }
}

impl From<&TrackerLimits> for KeptLimits {
    fn from(limits: &TrackerLimits) -> Self {
        Self {
            most: limits.most,
            bytes: limits.bytes,
            keep: limits.keep,
        }
    }
}

/// Changes an operation that is running. Returns it before and after; `None` if it does not exist
/// or is over: an end is final.
pub(super) fn change(
    table: &mut KeptTable<KeptOperation>,
    id: &str,
    change: impl FnOnce(&mut Operation),
) -> Option<[Arc<Operation>; 2]> {
    let before = table
        .get(id)
        .filter(|kept| !kept.is_over())
        .map(|kept| Arc::clone(&kept.operation))?;
    let after = table.change(id, |kept| {
        change(Arc::make_mut(&mut kept.operation));
        Arc::clone(&kept.operation)
    })?;
    Some([before, after])
}

#[cfg(test)]
mod tests {
    use super::super::tests::operation;
    use super::*;
    use crate::model::OperationState;

    #[test]
    fn an_end_is_an_end() {
        let mut table = KeptTable::new(KeptLimits::from(&TrackerLimits::for_tests()));
        table.add(KeptOperation::new(Arc::new(operation("1"))));
        let ended = change(&mut table, "1", |operation| {
            operation.state = OperationState::Succeeded;
        });
        let states = ended.unwrap().map(|operation| operation.state);
        assert_eq!(states, [OperationState::Running, OperationState::Succeeded]);
        assert!(
            change(&mut table, "1", |operation| operation.state =
                OperationState::Running)
            .is_none()
        );
        assert_eq!(
            table.get("1").unwrap().operation.state,
            OperationState::Succeeded
        );
        assert!(change(&mut table, "2", |_| {}).is_none());
    }
}
