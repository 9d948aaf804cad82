//! The latest calls that are over, in memory: as many as `calls.recent` says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::ended_call::EndedCall;

/// The latest calls, each with its number.
#[derive(Debug, Default)]
pub(super) struct RecentCalls(Mutex<CallRing>);

#[derive(Debug, Default)]
struct CallRing {
    /// The oldest first.
    calls: VecDeque<NumberedCall>,
    /// How many there were since the start.
    count: u64,
}

/// A call and its number since the start, from 1 on.
#[derive(Debug, Clone)]
pub struct NumberedCall {
    /// Its number. It grows in the order in which the calls ended.
    pub number: u64,
    /// The call.
    pub call: Arc<EndedCall>,
}

impl RecentCalls {
    /// Adds a call; the oldest make room.
    pub(super) fn add(&self, call: EndedCall, most: usize) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.count += 1;
        let number = ring.count;
        while ring.calls.len() >= most.max(1) {
            ring.calls.pop_front();
        }
        if most > 0 {
            ring.calls.push_back(NumberedCall { number, call: Arc::new(call) });
        } else {
            ring.calls.clear();
        }
    }

    /// All of them, the oldest first, and how many there were since the start.
    pub(super) fn all(&self) -> (Vec<NumberedCall>, u64) {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (ring.calls.iter().cloned().collect(), ring.count)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::calls::Request;
    use crate::model::JsonText;

    fn numbers(calls: &RecentCalls) -> Vec<u64> {
        calls.all().0.iter().map(|call| call.number).collect()
    }

    #[test]
    fn the_oldest_make_room_and_numbers_go_on() {
        let call = EndedCall::of_request(&Request::new("read", JsonText::parse("{}").unwrap()), Timestamp::UNIX_EPOCH);
        let calls = RecentCalls::default();
        for _ in 0..5 {
            calls.add(call.clone(), 3);
        }
        assert_eq!(numbers(&calls), [3, 4, 5]);
        calls.add(call.clone(), 2);
        assert_eq!(numbers(&calls), [5, 6], "a smaller limit holds from the next call on");
        calls.add(call, 0);
        assert!(numbers(&calls).is_empty());
        assert_eq!(calls.all().1, 7);
    }
}
