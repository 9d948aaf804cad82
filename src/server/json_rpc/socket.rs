//! The same methods on a Unix socket: one message a line, one answer a line.
//!
//! Web pages cannot reach such a socket, and its file is for the user of the daemon only (mode
//! 0600). A connection whose first line is no JSON object is closed: its client speaks something
//! else. So is one with a line that is too long, and one whose client does not take its answers. If
//! there are too many, the one gives way that has rested longest, as over HTTP. Answers come in the
//! order in which they are ready.

use std::future::ready;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use callsheet_provide::json_rpc::{self, AnswerError};
use futures_util::{StreamExt as _, stream};
use http::HeaderMap;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use crate::catalog::ViewQuery;
use crate::json::layout::in_one_line;
use crate::runtime::{StopTrigger, socket_file};
use crate::server::SharedState;
use crate::server::auth::{Access, Right};
use crate::server::http::accept::{
    ConnectionLimits, ConnectionLoad, ConnectionTable, next_connection,
};
use crate::server::http::held::{ConnectionBytes, with_reservation};
use crate::server::http::shared_body::SharedBody;
use crate::server::json_rpc::RpcContext;

/// The most connections at a time; for a further one another gives way.
const CONNECTIONS: usize = 64;

/// One of so many of them is in the reserve, of which the first is closed if none rests.
const RESERVE_OF: usize = 8;

/// Lines of one connection that are worked on at a time.
const AT_A_TIME: usize = 8;

/// Answers are written in pieces of so many bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Serves the socket at this path until the daemon stops. Lines have at most `longest` bytes.
///
/// # Errors
/// The socket cannot be made ([`socket_file::bind`]).
pub(in crate::server) fn listen(
    path: &Path,
    longest: usize,
    shared: &SharedState,
) -> io::Result<()> {
    let (listener, file) = socket_file::bind(path)?;
    let shared = Arc::clone(shared);
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        let _file = file;
        let table = ConnectionTable::new(CONNECTIONS, RESERVE_OF, shared.clock);
        let next = || next_connection(&listener, &table, shared.clock, &shared.stop);
        while let Some((stream, slot)) = next().await {
            let (cut, is_cut) = StopTrigger::new();
            let admitted = table.admit(slot, cut);
            let own = Arc::clone(&shared);
            shared.tasks.spawn(async move {
                let stop = own.stop.clone();
                tokio::select! {
                    () = serve(stream, longest, own, &admitted.load) => {}
                    () = is_cut.wait() => {}
                    () = stop.wait() => {}
                }
                // The slot is held until the connection ends.
                drop(admitted);
            });
        }
    });
    tracing::info!(path = %path.display(), "serving JSON-RPC");
    Ok(())
}

/// One connection.
async fn serve(stream: UnixStream, longest: usize, shared: SharedState, load: &ConnectionLoad) {
    let (reading, mut writing) = stream.into_split();
    let mut lines = FramedRead::new(reading, LinesCodec::new_with_max_length(longest));
    let Some(Ok(first)) = lines.next().await else {
        return;
    };
    if !(first.starts_with('{') && serde_json::from_str::<&RawValue>(&first).is_ok()) {
        return;
    }
    let bytes = &shared.bytes.connection(load.clone());
    let shared = &shared;
    let rest = lines.take_while(|line| ready(!matches!(line, Err(LinesCodecError::Io(_)))));
    let answers = stream::once(ready(Ok(first)))
        .chain(rest)
        .map(|line| answer(shared, bytes, load, line));
    let mut answers = std::pin::pin!(answers.buffer_unordered(AT_A_TIME));
    while let Some(answer) = answers.next().await {
        let Some(answer) = answer else { continue };
        if write_line(&mut writing, answer).await.is_err() {
            return;
        }
    }
}

/// Writes JSON in one line. Only a piece is copied at a time, since copies are not reserved. Fails
/// if the client takes no piece for as long as one of HTTP may take none.
async fn write_line(writing: &mut OwnedWriteHalf, answer: SharedBody) -> io::Result<()> {
    for part in answer {
        for piece in part.chunks(PIECE_BYTES) {
            let piece: Vec<u8> = in_one_line(piece).collect();
            write_piece(writing, &piece).await?;
        }
    }
    write_piece(writing, b"\n").await
}

async fn write_piece(writing: &mut OwnedWriteHalf, piece: &[u8]) -> io::Result<()> {
    let longest = ConnectionLimits::default().read_timeout;
    tokio::time::timeout(longest, writing.write_all(piece)).await?
}

/// The answer to a line. Its rights are judged for each: a reload may bring a token.
async fn answer(
    shared: &SharedState,
    bytes: &ConnectionBytes,
    load: &ConnectionLoad,
    line: Result<String, LinesCodecError>,
) -> Option<SharedBody> {
    let refused = |error| {
        Some(SharedBody::new([
            json_rpc::answer("null", Err(error)).into()
        ]))
    };
    // A connection that gives way begins no request.
    let request = load.begin()?;
    if request.is_too_many {
        let error = AnswerError::invalid_request("Too busy")
            .with_data("too many requests are under way".into());
        return refused(error);
    }
    // The socket carries no token.
    let access = match Access::judge(&shared.config, &HeaderMap::new(), Right::Call) {
        Ok(access) => access,
        Err(problem) => return refused(AnswerError::refused(problem.status_and_detail().1)),
    };
    let context = RpcContext {
        shared: Arc::clone(shared),
        view: ViewQuery::default(),
        answers: bytes.answers().clone(),
        access,
    };
    match line {
        Ok(line) if line.trim().is_empty() => None,
        Ok(line) => match bytes.bodies().reserve(line.len()) {
            Ok(reserved) => {
                let line = with_reservation(Bytes::from(line), reserved);
                context.answer(line).await
            }
            Err(exceeded) => {
                let error =
                    AnswerError::invalid_request("Too busy").with_data(exceeded.to_string().into());
                refused(error)
            }
        },
        Err(_) => {
            let error = AnswerError::invalid_request("Invalid request")
                .with_data("the line is too long".into());
            refused(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its answers would be held for as long as it likes.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_no_part_of_its_answer_is_not_waited_for() {
        let (own, mut client) = UnixStream::pair().unwrap();
        let (_reading, mut writing) = own.into_split();
        let answer = || SharedBody::new([Bytes::from("[0]".repeat(1 << 20))]);
        let error = write_line(&mut writing, answer()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let reading = async {
            let mut taken = tokio::io::sink();
            tokio::io::copy(&mut client, &mut taken).await
        };
        tokio::select! {
            written = write_line(&mut writing, answer()) => written.unwrap(),
            read = reading => panic!("{read:?}"),
        }
    }
}
