//! Bodies that are made or read while they are sent: a few pieces ahead of what the client takes, and no more.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};

use crate::runtime::Tasks;
use crate::views::pieces::Taken;

/// Pieces that are made ahead of the one that is being sent.
const AHEAD: usize = 2;

/// A list that is made while it is sent. Breaks off where a piece cannot be made.
pub(super) fn pieces(taken: Arc<Taken>, tasks: &Tasks) -> Body {
    Body::from_stream(in_order(move |at| taken.piece(at), tasks.clone()))
}

/// The pieces that `piece` gives, until there is none at a place. Each is made off the async threads.
pub(super) fn in_order<F>(piece: F, tasks: Tasks) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    F: Fn(usize) -> io::Result<Option<Bytes>> + Send + Sync + 'static,
{
    let piece = Arc::new(piece);
    let made = stream::iter(0..).map(move |at| {
        let (piece, tasks) = (Arc::clone(&piece), tasks.clone());
        async move { tasks.off_thread(move || piece(at)).await.transpose() }
    });
    made.buffered(AHEAD).take_while(|piece| std::future::ready(piece.is_some())).filter_map(std::future::ready)
}
