//! The same methods on a Unix socket: one message a line, one answer a line.
//!
//! Web pages cannot reach such a socket, and its file is for the user of the daemon only (mode
//! 0600). A connection whose first line is no JSON object is closed: its client speaks something
//! else. So is one with a line that is too long. Answers come in the order in which they are ready.

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
use tokio::sync::Semaphore;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use crate::catalog::ViewQuery;
use crate::json::layout::in_one_line;
use crate::runtime::{AnswerBudget, socket_file};
use crate::server::SharedState;
use crate::server::auth::{Access, Right};
use crate::server::http::held::with_reservation;
use crate::server::http::shared_body::SharedBody;
use crate::server::json_rpc::RpcContext;

/// The most connections at a time; further ones wait.
const CONNECTIONS: usize = 64;

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
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shared.stop.wait() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let own = Arc::clone(&shared);
                    shared.tasks.spawn(async move {
                        let _place = place;
                        let stop = own.stop.clone();
                        tokio::select! {
                            () = serve(stream, longest, own) => {}
                            () = stop.wait() => {}
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(error = %error, "a connection to the socket of JSON-RPC cannot be accepted");
                    // Usually too many files are open.
                    shared.clock.sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    });
    tracing::info!(path = %path.display(), "serving JSON-RPC");
    Ok(())
}

/// One connection.
async fn serve(stream: UnixStream, longest: usize, shared: SharedState) {
    let (reading, mut writing) = stream.into_split();
    let mut lines = FramedRead::new(reading, LinesCodec::new_with_max_length(longest));
    let Some(Ok(first)) = lines.next().await else {
        return;
    };
    if !(first.starts_with('{') && serde_json::from_str::<&RawValue>(&first).is_ok()) {
        return;
    }
    let answers = shared.bytes.answers();
    let shared = &shared;
    let reserved_from = &answers;
    let rest = lines.take_while(|line| ready(!matches!(line, Err(LinesCodecError::Io(_)))));
    let answers = stream::once(ready(Ok(first)))
        .chain(rest)
        .map(|line| answer(shared, reserved_from, line));
    let mut answers = std::pin::pin!(answers.buffer_unordered(AT_A_TIME));
    while let Some(answer) = answers.next().await {
        let Some(answer) = answer else { continue };
        if write_line(&mut writing, answer).await.is_err() {
            return;
        }
    }
}

/// Writes JSON in one line. Only a piece is copied at a time, since copies are not reserved.
async fn write_line(writing: &mut OwnedWriteHalf, answer: SharedBody) -> io::Result<()> {
    for part in answer {
        for piece in part.chunks(PIECE_BYTES) {
            let piece: Vec<u8> = in_one_line(piece).collect();
            writing.write_all(&piece).await?;
        }
    }
    writing.write_all(b"\n").await
}

/// The answer to a line. Its rights are judged for each: a reload may bring a token.
async fn answer(
    shared: &SharedState,
    answers: &AnswerBudget,
    line: Result<String, LinesCodecError>,
) -> Option<SharedBody> {
    let refused = |error| {
        Some(SharedBody::new([
            json_rpc::answer("null", Err(error)).into()
        ]))
    };
    // The socket carries no token.
    let access = match Access::judge(&shared.config, &HeaderMap::new(), Right::Call) {
        Ok(access) => access,
        Err(problem) => return refused(AnswerError::refused(problem.status_and_detail().1)),
    };
    let context = RpcContext {
        shared: Arc::clone(shared),
        view: ViewQuery::default(),
        answers: answers.clone(),
        access,
    };
    match line {
        Ok(line) if line.trim().is_empty() => None,
        Ok(line) => match shared.bytes.bodies().reserve(line.len()) {
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
