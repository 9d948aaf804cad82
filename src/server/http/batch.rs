//! The answers to JSON-RPC messages, single ones and batches, part by part.
//!
//! Bytes are reserved before a part is added to the others. A list that all clients share is a part
//! as it is: a batch that lists a hundred times holds it once. After the first part without room,
//! no further message of the batch is run.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::runtime::{AnswerBudget, AnswerBytes, BudgetExceeded};
use crate::server::http::held::with_reservation;
use crate::server::http::shared_body::SharedBody;

/// The most bytes of the answers to one batch, after which its further messages are refused: one
/// batch could request a large list very often, and its client would wait for gigabytes.
const BATCH_ANSWERS_MAX_BYTES: usize = 64 << 20;
/// A result up to so many bytes is copied among what stands around it, so that small ones make few
/// parts.
const COPIED_RESULT_MAX_BYTES: usize = 4 * 1024;
/// What stands between two answers.
const COMMA_BYTES: usize = 1;

/// The answers to the messages of a batch so far.
pub(in crate::server) struct BatchAnswer {
    parts: Vec<Bytes>,
    /// What comes after those parts, and is copied.
    rest: Vec<u8>,
    reserved: AnswerBytes,
    /// Bytes of all answers, also of what they share.
    bytes: usize,
    is_empty: bool,
    full: Option<BatchFull>,
}

/// Why a batch takes no further answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::server) enum BatchFull {
    /// The answers are too long.
    #[error(
        "the answers to this batch have more than {BATCH_ANSWERS_MAX_BYTES} bytes; send the rest in another one"
    )]
    Long,
    /// There is no room for them.
    #[error("the answers to this batch have no room: {0}; send the rest in another one")]
    Memory(BudgetExceeded),
}

/// A single answer that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this request was run, its answer is left out: {0}; read other answers first, or raise `server.held_bytes`"
)]
pub(in crate::server) struct AnswerLeftOut(#[from] BudgetExceeded);

/// What stands before and behind the result in an answer.
pub(in crate::server) struct ResultEnvelope {
    pub(in crate::server) before: Cow<'static, str>,
    pub(in crate::server) behind: Cow<'static, str>,
}

/// The answer to a single message: its result in its envelope. All of it is reserved before its
/// head is sent, so that its client gets an error if there is no room.
///
/// # Errors
/// There is no room for it.
pub(in crate::server) fn single_answer(
    envelope: &ResultEnvelope,
    result: Bytes,
    budget: &AnswerBudget,
) -> Result<SharedBody, AnswerLeftOut> {
    let before = Bytes::copy_from_slice(envelope.before.as_bytes());
    let behind = Bytes::copy_from_slice(envelope.behind.as_bytes());
    let reserved = budget.reserve(before.len() + unreserved_bytes(&result) + behind.len())?;
    Ok(reserved_body([before, result, behind], reserved))
}

/// How many bytes of a result have no reservation yet. What is shared has one of its own, or stands
/// in the program.
fn unreserved_bytes(result: &Bytes) -> usize {
    if result.is_unique() { result.len() } else { 0 }
}

/// The body of these parts. Their reservation is free when the last of them was written.
fn reserved_body<R>(parts: impl IntoIterator<Item = Bytes>, reserved: R) -> SharedBody
where
    R: Send + Sync + 'static,
{
    let reserved = Arc::new(reserved);
    let parts = parts
        .into_iter()
        .map(|part| with_reservation(part, Arc::clone(&reserved)));
    SharedBody::new(parts.collect::<Vec<_>>())
}

impl BatchAnswer {
    /// No answer yet. They are reserved from `budget`.
    pub(in crate::server) fn new(budget: &AnswerBudget) -> Self {
        let reserved = budget.empty();
        Self {
            parts: Vec::new(),
            rest: vec![b'['],
            reserved,
            bytes: 0,
            is_empty: true,
            full: None,
        }
    }

    /// Why no further message is run, if none is.
    pub(in crate::server) fn full(&self) -> Option<BatchFull> {
        self.full
    }

    /// Adds the answer to a message: its result in its envelope.
    ///
    /// # Errors
    /// There is no room for it, nor for any after it. The batch is as it was.
    pub(in crate::server) fn add(
        &mut self,
        envelope: &ResultEnvelope,
        result: &Bytes,
    ) -> Result<(), BatchFull> {
        let is_copied = result.len() <= COPIED_RESULT_MAX_BYTES;
        let own_bytes = if is_copied {
            result.len()
        } else {
            unreserved_bytes(result)
        };
        let envelope_bytes = envelope.before.len() + envelope.behind.len();
        self.reserve(envelope_bytes + own_bytes)?;
        self.separate();
        self.rest.extend_from_slice(envelope.before.as_bytes());
        if is_copied {
            self.rest.extend_from_slice(result);
        } else {
            self.parts.push(std::mem::take(&mut self.rest).into());
            self.parts.push(result.clone());
        }
        self.rest.extend_from_slice(envelope.behind.as_bytes());
        self.sent(envelope_bytes + result.len());
        Ok(())
    }

    /// Adds the error of a message that was run.
    ///
    /// # Errors
    /// There is no room for it, nor for any after it. The batch is as it was.
    pub(in crate::server) fn add_error(&mut self, error: &[u8]) -> Result<(), BatchFull> {
        self.reserve(error.len())?;
        self.extend(error);
        Ok(())
    }

    /// Adds the error of a message whose answer is left out, or that was not run: a client is to
    /// know of each message. It is short, and counted also where there is no room for it.
    pub(in crate::server) fn add_left_out(&mut self, error: &[u8]) {
        self.reserved.count(error.len() + COMMA_BYTES);
        self.extend(error);
    }

    /// Reserves an answer of so many bytes, and what stands between it and the one before.
    fn reserve(&mut self, bytes: usize) -> Result<(), BatchFull> {
        let all = self.reserved.bytes() + bytes + COMMA_BYTES;
        self.reserved.resize(all).map_err(|exceeded| {
            let full = BatchFull::Memory(exceeded);
            self.full = Some(full);
            full
        })
    }

    fn extend(&mut self, error: &[u8]) {
        self.separate();
        self.rest.extend_from_slice(error);
        self.sent(error.len());
    }

    /// So many bytes more will be sent.
    fn sent(&mut self, bytes: usize) {
        self.bytes += bytes + COMMA_BYTES;
        if self.bytes > BATCH_ANSWERS_MAX_BYTES {
            self.full = Some(BatchFull::Long);
        }
    }

    /// The whole answer; `None` if no message has one.
    pub(in crate::server) fn finish(mut self) -> Option<SharedBody> {
        if self.is_empty {
            return None;
        }
        self.rest.push(b']');
        self.parts.push(self.rest.into());
        Some(reserved_body(self.parts, self.reserved))
    }

    fn separate(&mut self) {
        if !self.is_empty {
            self.rest.push(b',');
        }
        self.is_empty = false;
    }
}
