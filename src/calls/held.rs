//! The bytes that calls hold in the budget for clients: the arguments of a call until it is over,
//! and its result until its answer was made or another table counts it.
//!
//! Arguments and results have a part each, so that waiting calls never cost a tool that ran its
//! result. In both, each caller has a share. A caller is an access with a profile and a
//! conversation. Clients choose the latter two freely, so the parts bound all callers together.
//! Never waits for room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::requester::Requester;
use crate::catalog::ViewQuery;
use crate::protocols::Outcome;
use crate::runtime::{BudgetExceeded, ByteBudget, ReservedBytes};

/// Clients get so many eighths of the budget: the rest is for operators alone, who so can look and
/// decide whatever clients hold.
const CLIENTS_EIGHTHS: usize = 7;
/// All but small answers and small results get so many eighths of what clients get: the rest is
/// always there for short answers.
const LARGE_EIGHTHS: usize = 7;
/// The arguments of all calls get so many eighths of that, and so do their results.
const CALLS_EIGHTHS: usize = 4;
/// One caller gets so many eighths of the arguments and of the results of all.
const CALLER_EIGHTHS: usize = 6;
/// A result of at most so many bytes finds room even while large ones use up theirs.
const SMALL_RESULT_BYTES: usize = 64 * 1024;
/// With so many callers, those that hold no bytes are forgotten.
const MOST_IDLE_CALLERS: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub(super) struct CallBytes {
    whole: ByteBudget,
    clients: ByteBudget,
    large: ByteBudget,
    arguments: CallerShares,
    results: CallerShares,
}

/// The shares of callers in one part.
#[derive(Debug)]
struct CallerShares {
    part: ByteBudget,
    callers: Mutex<CallerTable>,
}

#[derive(Debug)]
struct CallerTable {
    shares: HashMap<CallerKey, ByteBudget>,
    /// With so many callers, those that hold no bytes are forgotten before another one is added.
    forget_at: usize,
}

/// Whose share it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallerKey {
    access: Arc<str>,
    may_use_operators_permits: bool,
    profile: Option<String>,
    chat: Option<String>,
}

impl CallerKey {
    /// Of this requester in this scope.
    pub(super) fn of(requester: &Requester, scope: &ViewQuery) -> Self {
        Self {
            access: Arc::clone(&requester.access),
            may_use_operators_permits: requester.may_use_operators_permits(),
            profile: scope.profile.clone(),
            chat: scope.chat.clone(),
        }
    }

    /// The identity of its access.
    pub(super) fn access(&self) -> &Arc<str> {
        &self.access
    }

    /// The profile that it names.
    pub(super) fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// The conversation that it names.
    pub(super) fn chat(&self) -> Option<&str> {
        self.chat.as_deref()
    }

    /// Whether it may have the permits that are kept for requests with every right.
    pub(super) fn may_use_operators_permits(&self) -> bool {
        self.may_use_operators_permits
    }
}

impl CallBytes {
    /// Parts of `whole`.
    pub(super) fn new(whole: ByteBudget) -> Self {
        let clients = whole.part(CLIENTS_EIGHTHS, 0);
        let large = clients.part(LARGE_EIGHTHS, 0);
        let arguments = CallerShares::new(large.part(CALLS_EIGHTHS, 0));
        let results = CallerShares::new(large.part(CALLS_EIGHTHS, 0));
        Self {
            whole,
            clients,
            large,
            arguments,
            results,
        }
    }

    /// The whole budget.
    pub(super) fn whole(&self) -> &ByteBudget {
        &self.whole
    }

    /// The part of it for everything but what only operators may hold.
    pub(super) fn clients(&self) -> &ByteBudget {
        &self.clients
    }

    /// The part of that for everything but small answers and results.
    pub(super) fn large(&self) -> &ByteBudget {
        &self.large
    }

    /// Reserves the arguments of a call of this caller.
    pub(super) fn hold_arguments(
        &self,
        caller: &CallerKey,
        bytes: usize,
    ) -> Result<ReservedBytes, BudgetExceeded> {
        self.arguments.reserve(caller, bytes)
    }

    /// Reserves the result of a call of this caller.
    pub(super) fn hold_result(
        &self,
        caller: &CallerKey,
        result: &Outcome,
    ) -> Result<ReservedBytes, BudgetExceeded> {
        let bytes = result.bytes();
        if bytes <= SMALL_RESULT_BYTES {
            self.clients.reserve(bytes)
        } else {
            self.results.reserve(caller, bytes)
        }
    }
}

impl CallerShares {
    fn new(part: ByteBudget) -> Self {
        let callers = CallerTable {
            shares: HashMap::new(),
            forget_at: MOST_IDLE_CALLERS,
        };
        Self {
            part,
            callers: Mutex::new(callers),
        }
    }

    fn reserve(&self, caller: &CallerKey, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        // Reserved under the lock, so that no share is forgotten between.
        let mut callers = self.callers.lock();
        if callers.shares.len() >= callers.forget_at && !callers.shares.contains_key(caller) {
            callers.shares.retain(|_, share| share.reserved() > 0);
            callers.forget_at = (callers.shares.len() * 2).max(MOST_IDLE_CALLERS);
        }
        let share = callers
            .shares
            .entry(caller.clone())
            .or_insert_with(|| self.part.client_part(CALLER_EIGHTHS, 0));
        share.reserve(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(chat: usize) -> CallerKey {
        let scope = ViewQuery {
            chat: Some(chat.to_string()),
            ..ViewQuery::default()
        };
        CallerKey::of(&Requester::full_access(), &scope)
    }

    #[test]
    fn one_caller_leaves_room_to_others_and_all_leave_some_to_small_answers() {
        let whole = ByteBudget::new(146_286);
        let held = CallBytes::new(whole.clone());
        assert_eq!(held.clients().limit(), 128_000);
        let one = held.hold_arguments(&caller(1), 42_000).unwrap();
        let refused = held.hold_arguments(&caller(1), 1).unwrap_err();
        assert_eq!(refused, BudgetExceeded::Share { limit: 42_000 });
        let other = held.hold_arguments(&caller(2), 14_000).unwrap();
        let refused = held.hold_arguments(&caller(2), 1).unwrap_err();
        assert_eq!(refused, BudgetExceeded::Whole { limit: 56_000 });
        let _large = held.large().reserve(56_000).unwrap();
        assert_eq!(
            held.large().reserve(1).unwrap_err(),
            BudgetExceeded::Whole { limit: 112_000 }
        );
        assert!(
            held.hold_result(
                &caller(1),
                &Outcome::done(crate::model::JsonText::known("1"))
            )
            .is_ok()
        );
        drop((one, other));
        assert!(held.hold_arguments(&caller(3), 42_000).is_ok());
    }

    #[test]
    fn callers_that_hold_no_bytes_are_forgotten() {
        let held = CallBytes::new(ByteBudget::new(1 << 20));
        let kept = held.hold_arguments(&caller(0), 10).unwrap();
        for number in 1..3 * MOST_IDLE_CALLERS {
            held.hold_arguments(&caller(number), 10).unwrap();
        }
        let known = held.arguments.callers.lock().shares.len();
        assert!(known <= MOST_IDLE_CALLERS, "{known} are known");
        drop(kept);
        assert_eq!(held.whole().reserved(), 0);
    }
}
