//! Answers that are being made or sent: who asks for one of them meanwhile shares it.
//!
//! Nothing here keeps an answer alive. One that alone is bigger than all that may be kept is in memory while somebody makes it, has it or is
//! being sent it, and once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, Shared, WeakShared};

use super::{Key, Prepared};

/// An answer in the making. Whoever waits for it goes on with it when another one goes away.
type Making = BoxFuture<'static, Arc<Prepared>>;

/// Those under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Underway(Arc<Mutex<HashMap<Key, Answer>>>);

#[derive(Debug, Default)]
struct Answer {
    making: Option<WeakShared<Making>>,
    /// Only of what is not kept.
    made: Weak<Prepared>,
}

/// What each copy of a body holds, so that there is somebody who has it as long as there is one.
struct Sent(Arc<Prepared>);

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.0.body
    }
}

impl Underway {
    /// The answer that is under way, or else this one. Also tells whether it is this one.
    pub(super) fn join(&self, key: &Key, make: Making) -> (Shared<Making>, bool) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answers.get(key) {
            if let Some(made) = answer.made.upgrade() {
                return (std::future::ready(held(made)).boxed().shared(), false);
            }
            if let Some(making) = answer.making.as_ref().and_then(WeakShared::upgrade) {
                return (making, false);
            }
        }
        answers.retain(|_, answer| answer.is_alive());
        let making = make.shared();
        answers.insert(key.clone(), Answer { making: making.downgrade(), made: Weak::new() });
        (making, true)
    }

    /// The answer, which is found from now on for as long as somebody has it or a part of its body.
    pub(super) fn sent(&self, key: &Key, prepared: Prepared) -> Arc<Prepared> {
        let prepared = Arc::new(prepared);
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.entry(key.clone()).or_default().made = Arc::downgrade(&prepared);
        drop(answers);
        held(prepared)
    }
}

impl Answer {
    fn is_alive(&self) -> bool {
        self.made.strong_count() > 0 || self.making.as_ref().is_some_and(|making| making.upgrade().is_some())
    }
}

fn held(prepared: Arc<Prepared>) -> Arc<Prepared> {
    let rest = Prepared { body: Bytes::new(), ..Prepared::clone(&prepared) };
    Arc::new(Prepared { body: Bytes::from_owner(Sent(prepared)), ..rest })
}
