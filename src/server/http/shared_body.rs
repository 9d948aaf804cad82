//! A body of a few parts that are sent one after the other as they are: a large part, such as a
//! prepared list, is shared by all answers and copied into none.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// A body in parts. Its length is known before the first one is sent.
pub(in crate::server) struct SharedBody(VecDeque<Bytes>);

impl SharedBody {
    /// The body of these parts.
    pub(in crate::server) fn new(parts: impl IntoIterator<Item = Bytes>) -> Self {
        // A part without bytes would end some bodies early.
        Self(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }
}

impl IntoIterator for SharedBody {
    type Item = Bytes;
    type IntoIter = std::collections::vec_deque::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Body for SharedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|part| part.len() as u64).sum())
    }
}
