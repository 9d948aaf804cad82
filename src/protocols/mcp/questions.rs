//! Requests for input that a legacy server sends over HTTP on its own stream, where they name no
//! call.
//!
//! While one call is under way, its caller is meant; with several calls it is not known whose. This
//! module answers nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::model::JsonText;

/// Questions that wait for one caller; further ones are refused.
const WAITING: usize = 16;

/// A request of the server.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: JsonText,
    pub(super) method: String,
    pub(super) params: Option<JsonText>,
}

/// The calls of one connection that may be meant.
#[derive(Debug, Default)]
pub(super) struct Questions {
    calls: Mutex<BTreeMap<u64, mpsc::Sender<Question>>>,
}

/// The questions to the caller of one call. Dropping it ends that.
pub(super) struct CallQuestions<'a> {
    questions: &'a Questions,
    id: u64,
    received: mpsc::Receiver<Question>,
}

impl Questions {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<u64, mpsc::Sender<Question>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the caller of the request with this id may be meant, if it is a call.
    pub(super) fn register(&self, id: u64, is_call: bool) -> CallQuestions<'_> {
        let (send, received) = mpsc::channel(WAITING);
        if is_call {
            self.calls().insert(id, send);
        }
        CallQuestions { questions: self, id, received }
    }

    /// Gives a question to the only caller. It comes back if none or several could be meant, or the
    /// caller has too many.
    pub(super) fn give(&self, question: Question) -> Result<(), Question> {
        let calls = self.calls();
        let mut each = calls.values();
        match (each.next(), each.next()) {
            (Some(only), None) => only.try_send(question).map_err(mpsc::error::TrySendError::into_inner),
            _ => Err(question),
        }
    }
}

impl CallQuestions<'_> {
    /// The next question. Never completes for a request that is no call. Cancel-safe.
    pub(super) async fn next(&mut self) -> Question {
        match self.received.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}

impl Drop for CallQuestions<'_> {
    fn drop(&mut self) {
        self.questions.calls().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question { id: JsonText::parse("1").unwrap(), method: "elicitation/create".to_owned(), params: None }
    }

    #[tokio::test]
    async fn a_question_is_for_the_only_call() {
        let questions = Questions::default();
        assert!(questions.give(question()).is_err());
        let mut first = questions.register(1, true);
        let _list = questions.register(2, false);
        questions.give(question()).unwrap();
        assert_eq!(first.next().await.method, "elicitation/create");
        let second = questions.register(3, true);
        assert!(questions.give(question()).is_err());
        drop(second);
        questions.give(question()).unwrap();
        for _ in 1..WAITING {
            questions.give(question()).unwrap();
        }
        assert!(questions.give(question()).is_err());
    }
}
