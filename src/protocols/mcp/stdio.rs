//! A server that is started as a child process and speaks over its standard input and output: one
//! message a line.
//!
//! The era may belong to the process: one that was greeted in one era may refuse the other. A
//! process that ends at the first greeting is started once more and greeted in the other way. What
//! is no message is skipped and counted.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{Carrier, McpServer};
use super::eras::Era;
use super::lines::{Incoming, Lines, Outgoing};
use super::negotiate::{self, Discovered, UNSUPPORTED_VERSION};
use super::patience::Patience;
use super::request::RequestError;
use super::revision::McpRevision;
use super::server::ServerDescription;
use super::setup::ServerSetup;
use crate::model::StdioTarget;
use crate::protocols::{EndReason, ListError, NoCaller};
use crate::runtime::Tasks;
use crate::runtime::tasks::BodyStep;
use crate::transports::stdio::{ChildLine, ChildProcess, MAX_LINE, StderrTail};
use crate::transports::{TransportError, Transports};

/// Messages go out as lines; the reader ends with the process.
struct Input {
    child: Arc<ChildProcess>,
    _reader: AbortOnDropHandle<()>,
}

impl Outgoing for Input {
    fn send<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(self.child.send(message))
    }

    fn ended(&self, address: &str, reason: &EndReason) -> TransportError {
        TransportError::ProcessEnded {
            command: address.to_owned(),
            message: reason.to_string(),
            end: reason.program.clone(),
        }
    }
}

/// Starts the process and greets it. What is known of its era is tried first. What the latest
/// process writes to standard error can be read in `stderr` from its start on.
pub(super) async fn connect(
    transports: &Transports,
    target: &StdioTarget,
    setup: &ServerSetup,
    known: Option<Era>,
    patience: Patience,
    stderr: &ArcSwapOption<StderrTail>,
) -> Result<(McpServer, Era), ListError> {
    if known != Some(Era::Legacy) {
        let lines = start(transports, target, setup, stderr)?;
        if let Some((info, revision)) = either_way(&lines, setup, patience).await? {
            return Ok(connected(lines, info, revision, setup));
        }
    }
    let lines = start(transports, target, setup, stderr)?;
    let (info, revision) = handshake(&lines, setup, patience)
        .await
        .map_err(Refused::into_list_error)?;
    Ok(connected(lines, info, revision, setup))
}

fn connected(
    lines: Lines,
    info: ServerDescription,
    revision: McpRevision,
    setup: &ServerSetup,
) -> (McpServer, Era) {
    (
        McpServer::new(Carrier::Lines(lines, revision), info, setup),
        Era::of(revision),
    )
}

/// Greets a process in the modern way and, where that fails, in the old one. `None` when another
/// process has to be started, because this one ended or gives no answer.
async fn either_way(
    lines: &Lines,
    setup: &ServerSetup,
    patience: Patience,
) -> Result<Option<(ServerDescription, McpRevision)>, ListError> {
    if let Some(greeted) = discover(lines, setup, patience).await {
        return Ok(Some(greeted));
    }
    if lines.incoming().end_reason().is_some() {
        return Ok(None);
    }
    match handshake(lines, setup, patience).await {
        Ok(greeted) => Ok(Some(greeted)),
        // It answered late, and now it is bound to the modern era.
        Err(Refused::Version(error)) => match discover(lines, setup, patience).await {
            Some(greeted) => Ok(Some(greeted)),
            None => Err(error),
        },
        Err(Refused::NoAnswer(_)) => Ok(None),
        Err(Refused::Other(error)) => Err(error),
    }
}

async fn discover(
    lines: &Lines,
    setup: &ServerSetup,
    patience: Patience,
) -> Option<(ServerDescription, McpRevision)> {
    setup.greeting.sends("server/discover", lines.now());
    for _ in 0..2 {
        let answered = lines
            .send(
                &negotiate::discover(patience.first),
                McpRevision::MODERN,
                &NoCaller,
            )
            .await;
        match negotiate::judge(answered) {
            Discovered::Modern(info, revision) => return Some((info, revision)),
            Discovered::Again => {}
            Discovered::Legacy | Discovered::Unauthorized(_) | Discovered::Unreachable(_) => {
                return None;
            }
        }
    }
    None
}

/// Why a process was not greeted in the old way.
enum Refused {
    /// It wants another version.
    Version(ListError),
    /// It ended, or gave no answer in time.
    NoAnswer(ListError),
    Other(ListError),
}

impl Refused {
    fn into_list_error(self) -> ListError {
        match self {
            Self::Version(error) | Self::NoAnswer(error) | Self::Other(error) => error,
        }
    }
}

async fn handshake(
    lines: &Lines,
    setup: &ServerSetup,
    patience: Patience,
) -> Result<(ServerDescription, McpRevision), Refused> {
    setup.greeting.sends("initialize", lines.now());
    let answered = lines
        .send(
            &negotiate::initialize(patience.start, setup),
            McpRevision::LEGACY,
            &NoCaller,
        )
        .await;
    let reply = answered.map_err(|error| Refused::NoAnswer(error.into_list_error()))?;
    let result = reply.map_err(|error| match error.code {
        UNSUPPORTED_VERSION => Refused::Version(negotiate::refused(&error)),
        _ => Refused::Other(negotiate::refused(&error)),
    })?;
    let greeted = negotiate::begun(&result).map_err(Refused::Other)?;
    let sent = lines.notify(&negotiate::initialized()).await;
    sent.map_err(|error: RequestError| Refused::NoAnswer(error.into_list_error()))?;
    Ok(greeted)
}

/// Starts the process.
fn start(
    transports: &Transports,
    target: &StdioTarget,
    setup: &ServerSetup,
    stderr: &ArcSwapOption<StderrTail>,
) -> Result<Lines, ListError> {
    let mut child = transports.stdio(target)?;
    stderr.store(Some(Arc::new(child.stderr())));
    let incoming = Incoming::new(&setup.interaction, child.masks().clone());
    let output = child.lines();
    setup.greeting.started(&incoming, transports.clock().now());
    let child = Arc::new(child);
    let tasks = transports.tasks().clone();
    let reader = read(output, Arc::clone(&incoming), Arc::clone(&child), tasks);
    let reader = AbortOnDropHandle::new(transports.tasks().spawn(reader));
    let address = child.command().to_owned();
    Ok(Lines::new(
        address,
        Box::new(Input {
            child,
            _reader: reader,
        }),
        incoming,
        transports.clock(),
    ))
}

/// Reads the output of the process to its end.
async fn read(
    mut output: mpsc::Receiver<ChildLine>,
    incoming: Arc<Incoming>,
    child: Arc<ChildProcess>,
    tasks: Tasks,
) {
    while let Some(line) = output.recv().await {
        let own = Arc::clone(&incoming);
        match line {
            ChildLine::Text(line) => {
                let bytes = line.len();
                let received = move || {
                    own.receive(&line).unwrap_or_else(|_| {
                        own.skip(&line);
                        Vec::new()
                    })
                };
                for answer in tasks.work_on_body(BodyStep::First, bytes, received).await {
                    let _ = child.send(&answer).await;
                }
            }
            ChildLine::NotText(line) => {
                tasks
                    .work_on_body(BodyStep::First, line.len(), move || own.skip(&line))
                    .await;
            }
            // It is not known whose answer it was.
            ChildLine::TooLong => {
                incoming.fail_all(&TransportError::TooLarge {
                    url: child.command().to_owned(),
                    limit: MAX_LINE,
                });
            }
        }
    }
    incoming.end(EndReason::of_program(child.ended().await));
}
