//! The bytes that a connection holds: the bodies of its requests while they are read and used, and
//! those of its answers until they were written.
//!
//! The body of a list is reserved once for all clients that hold it, by
//! [`ConnectionBytes::answers`]. Other answers that are shared with a cache, or stand in the
//! program, are not counted.
//! Never waits for room: a request without room is refused.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};

use crate::calls::Calls;
use crate::runtime::{AnswerBudget, BudgetExceeded, ByteBudget};
use crate::server::http::accept::{ClientWait, ConnectionLoad};

/// A body is reserved in steps of so many bytes.
pub(in crate::server) const BODY_STEP_BYTES: usize = 16 * 1024;
/// Bodies of requests get so many eighths of the budget: what is made of them takes several times
/// as much.
const BODIES_EIGHTHS: usize = 2;
/// Large answers, and archives of bundles, get so many eighths of the budget.
const LARGE_EIGHTHS: usize = 4;
/// Requests of operators get so many eighths of the whole budget, besides what all clients get.
const OPERATORS_EIGHTHS: usize = 1;
/// One connection gets so many eighths of the bodies of all.
const CONNECTION_BODIES_EIGHTHS: usize = 2;
/// One connection gets so many eighths of the large answers of all.
const CONNECTION_ANSWERS_EIGHTHS: usize = 4;

/// The budget of all bytes that are held for clients, and its parts.
pub(in crate::server) struct ClientBudgets<'a> {
    whole: &'a ByteBudget,
    /// All of it but what only operators may hold.
    clients: &'a ByteBudget,
    /// All of that but what is for small answers only.
    large: &'a ByteBudget,
}

/// The parts of the budget for bodies and answers of all connections.
#[derive(Debug, Clone)]
pub(in crate::server) struct ClientBytes {
    clients: ByteBudget,
    operators: ByteBudget,
    bodies: ByteBudget,
    archives: ByteBudget,
    answers: ByteBudget,
    body_max: usize,
}

/// The same for one connection.
#[derive(Debug, Clone)]
pub(in crate::server) struct ConnectionBytes(Arc<ConnectionShares>);

#[derive(Debug, Clone)]
struct ConnectionShares {
    load: ConnectionLoad,
    is_for_operator: bool,
    operators: ByteBudget,
    bodies: ByteBudget,
    archives: ByteBudget,
    answers: AnswerBudget,
}

impl<'a> ClientBudgets<'a> {
    /// Those that calls reserve from, too.
    pub(in crate::server) fn of(calls: &'a Calls) -> Self {
        Self {
            whole: calls.held(),
            clients: calls.held_by_clients(),
            large: calls.held_large(),
        }
    }
}

impl ClientBytes {
    /// Parts of these budgets. One body of `body_max` bytes fits into a share.
    pub(in crate::server) fn new(budgets: &ClientBudgets<'_>, body_max: usize) -> Self {
        let body_max = body_max.next_multiple_of(BODY_STEP_BYTES);
        let large = budgets.large;
        Self {
            clients: budgets.clients.clone(),
            operators: budgets.whole.operators_part(OPERATORS_EIGHTHS, body_max),
            bodies: large.part(BODIES_EIGHTHS, body_max),
            archives: large.part(LARGE_EIGHTHS, 0),
            answers: large.part(LARGE_EIGHTHS, 0),
            body_max,
        }
    }

    /// The shares of a new connection.
    pub(in crate::server) fn connection(&self, load: ConnectionLoad) -> ConnectionBytes {
        let answers = self.answers.client_part(CONNECTION_ANSWERS_EIGHTHS, 0);
        ConnectionBytes(Arc::new(ConnectionShares {
            load,
            is_for_operator: false,
            operators: self.operators.clone(),
            bodies: self
                .bodies
                .client_part(CONNECTION_BODIES_EIGHTHS, self.body_max),
            archives: self.archives.clone(),
            answers: AnswerBudget::new(self.clients.clone(), answers),
        }))
    }
}

impl ConnectionBytes {
    /// The same for requests of an operator: answers that find no room among those of all clients
    /// have room of their own, and bodies have it in any case.
    pub(in crate::server) fn for_operator(&self) -> Self {
        let shares = &*self.0;
        Self(Arc::new(ConnectionShares {
            is_for_operator: true,
            bodies: shares.operators.clone(),
            answers: shares.answers.with_spare(&shares.operators),
            ..shares.clone()
        }))
    }

    /// Whether the request is an operator's.
    pub(in crate::server) fn is_for_operator(&self) -> bool {
        self.0.is_for_operator
    }

    /// What the bodies of requests are reserved from.
    pub(in crate::server) fn bodies(&self) -> &ByteBudget {
        &self.0.bodies
    }

    /// Counts a request as one that waits for its client, while its body is read.
    pub(in crate::server) fn reads_body(&self) -> ClientWait {
        self.0.load.waits_for_client()
    }

    /// Waits for `patience`, or until the connection has to give way to another one. Meanwhile the
    /// request counts as one that waits for a change of something that is kept.
    pub(in crate::server) async fn waits_for_change(&self, patience: impl Future<Output = ()>) {
        self.0.load.waits_for_change(patience).await;
    }

    /// The next bytes of the connection are those of a WebSocket, whose client may send little.
    pub(in crate::server) fn becomes_socket(&self) {
        self.0.load.becomes_socket();
    }

    /// What archives of bundles are reserved from.
    pub(in crate::server) fn archives(&self) -> &ByteBudget {
        &self.0.archives
    }

    /// What answers are reserved from.
    pub(in crate::server) fn answers(&self) -> &AnswerBudget {
        &self.0.answers
    }

    /// Reserves the bytes of the answer that are there, until they were written.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if there is no room for them.
    pub(in crate::server) fn hold<B>(
        &self,
        answer: Response<B>,
    ) -> Result<Response<HeldBody<B>>, BudgetExceeded>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, mut body) = answer.into_parts();
        let first = match first_frame(&mut body) {
            Some(Ok(frame)) => Some(Ok(self.hold_frame(frame)?)),
            other => other,
        };
        Ok(Response::from_parts(
            head,
            HeldBody {
                first,
                body,
                bytes: self.clone(),
            },
        ))
    }

    /// The answer without a reservation for what is there.
    pub(in crate::server) fn unreserved<B>(&self, answer: Response<B>) -> Response<HeldBody<B>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        answer.map(|mut body| HeldBody {
            first: first_frame(&mut body),
            body,
            bytes: self.clone(),
        })
    }

    fn hold_frame(&self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BudgetExceeded> {
        match frame.into_data() {
            Ok(data) if data.is_unique() => {
                let reserved = self.0.answers.reserve(data.len())?;
                Ok(Frame::data(with_reservation(data, reserved)))
            }
            Ok(shared) => Ok(Frame::data(shared)),
            Err(other) => Ok(other),
        }
    }
}

/// What is there of a body. hyper polls again what is not ready here.
fn first_frame<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
) -> Option<Result<Frame<Bytes>, B::Error>> {
    if body.is_end_stream() {
        return None;
    }
    match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(first) => first,
        Poll::Pending => None,
    }
}

/// Bytes that free their reservation when their last clone or part is dropped.
struct ReservedData<R> {
    data: Bytes,
    _reserved: R,
}

impl<R> AsRef<[u8]> for ReservedData<R> {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// The bytes with their reservation, or with one that several holders share.
pub(in crate::server) fn with_reservation<R: Send + 'static>(data: Bytes, reserved: R) -> Bytes {
    Bytes::from_owner(ReservedData {
        data,
        _reserved: reserved,
    })
}

/// The body of an answer whose bytes are reserved.
pub(in crate::server) struct HeldBody<B: Body> {
    /// What was there at once.
    first: Option<Result<Frame<Bytes>, B::Error>>,
    body: B,
    bytes: ConnectionBytes,
}

impl<B> Body for HeldBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Unpin,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first.map_err(Into::into)));
        }
        Pin::new(&mut self.body).poll_frame(context).map(|frame| {
            let frame = frame?.map_err(Into::into);
            Some(frame.and_then(|frame| self.bytes.hold_frame(frame).map_err(Into::into)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = match &self.first {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len) as u64,
            Some(Err(_)) | None => 0,
        };
        let rest = self.body.size_hint();
        let mut whole = SizeHint::new();
        whole.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper + first);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So one client that does not read its answers leaves room for those of others.
    #[test]
    fn large_answers_of_a_connection_have_a_share_and_small_ones_do_not_count_in_it() {
        let bytes = 100 * 1024;
        let whole = ByteBudget::new(10 * bytes);
        let budgets = ClientBudgets {
            whole: &whole,
            clients: &whole,
            large: &whole,
        };
        let connection =
            ClientBytes::new(&budgets, BODY_STEP_BYTES).connection(ConnectionLoad::for_tests());
        let held = |bytes: usize| connection.hold_frame(Frame::data(Bytes::from(vec![0; bytes])));
        let large = [held(bytes).unwrap(), held(bytes).unwrap()];
        assert_eq!(
            held(bytes).unwrap_err(),
            BudgetExceeded::Share {
                limit: 5 * bytes / 2
            }
        );
        let small_bytes = 64 * 1024;
        let small = held(small_bytes).unwrap();
        assert_eq!(whole.reserved(), 2 * bytes + small_bytes);
        drop(large);
        assert!(held(bytes).is_ok());
        drop(small);
        assert_eq!(whole.reserved(), 0);
    }
}
