//! Session: one scenario as long as it is the same process or connection.
//!
//! A session lists and calls its scenario, and signals that the list may have changed or that it
//! ended. It decides neither when to list nor whether a call is allowed. Dropping it closes it.
//! What the engine does with sessions is in `docs/design/sessions.md`, what an author has to write
//! in `docs/protocols.md`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::{Call, CallError, CallIo, InputRound, ListError, ListRequest, Listing, Outcome};
use crate::model::{Awaited, JsonText, ProgramCost, ProgramEnd};
use crate::transports::http::Upstream;

/// One scenario as long as it is the same process or connection. Dropping it closes it.
pub trait Session: Send + Sync {
    /// Requests everything that the scenario offers. With `known` in the request the answer may be
    /// that the list is unchanged. A session sets its own time limit: no other listing of the
    /// scenario begins before this one has ended.
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>>;

    /// Sends one call to the scenario and reads its answer, within [`Call::limit`]. Sent once at
    /// most: the caller of this decides whether it may be repeated.
    ///
    /// A session that only lists need not write this; its tools cannot be called.
    fn call<'a>(
        &'a self,
        call: &'a Call,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        let _ = (call, io);
        unsupported("tools of this protocol can be listed only")
    }

    /// Sends a request that is no call of a tool, such as for a prompt. The result is in
    /// [`Outcome::content`] as it came; an error of the scenario is an outcome with its code.
    fn relay<'a>(
        &'a self,
        request: &'a Relay,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        let _ = (request, io);
        unsupported("this protocol has tools only")
    }

    /// Follows a resource: an item for each time that the scenario says that it changed. The stream
    /// ends when that is not known any more. Dropping it ends the following.
    fn updates<'a>(
        &'a self,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<BoxStream<'static, ()>, CallError>> {
        let _ = uri;
        unsupported("this protocol has tools only")
    }

    /// Signs that the list may have changed, if the scenario gives any. Requested after a good
    /// listing, and once more after the stream ended, so it may become possible while the session
    /// lives.
    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        None
    }

    /// Completes when the session has ended by itself. `None` of a session that cannot end, as
    /// there is no connection to lose.
    fn ended(&self) -> Option<BoxFuture<'static, EndReason>> {
        None
    }

    /// The last lines that the scenario wrote as errors, where it is a program that was started
    /// here.
    fn recent_errors(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the processes of its program cost now, where it is a program that was started here and
    /// the system shows it. Never waits for long.
    fn cost(&self) -> BoxFuture<'_, Option<ProgramCost>> {
        Box::pin(std::future::ready(None))
    }

    /// What the listing under way waits for, and for how long. `None` where that is not known, and
    /// while no answer is waited for.
    fn awaited(&self) -> Option<Awaited> {
        None
    }

    /// A text with the secrets replaced that callsheet sends to the scenario.
    fn masked(&self, text: String) -> String {
        text
    }

    /// The request over HTTP that returns the list as the scenario writes it, for people who look
    /// for mistakes in it.
    fn document(&self) -> Option<(Upstream, &'static str)> {
        None
    }
}

/// A sign that the list may have changed. It only ever triggers a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// From now on every change is signalled, until the stream of hints ends. What changed before
    /// was not.
    Following,
    /// The list may have changed.
    Changed,
}

/// Why a session ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndReason {
    /// One sentence without a full stop.
    pub text: String,
    /// How its program ended, if it is one that was started here.
    pub program: Option<Arc<ProgramEnd>>,
}

/// A request that is no call of a tool, in the words of its protocol.
#[derive(Debug, Clone)]
pub struct Relay {
    /// The method.
    pub method: RelayMethod,
    /// The parameters: the text of one JSON object, without `_meta`.
    pub params: JsonText,
    /// The input with which a request that needed some is sent again.
    pub resumed: Option<InputRound>,
    /// The longest time until the answer.
    pub longest: Duration,
    /// The most bytes of the answer.
    pub max_body: usize,
}

/// The requests of MCP that are passed on to the scenario that owns their subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayMethod {
    /// `prompts/get`
    GetPrompt,
    /// `resources/read`
    ReadResource,
    /// `completion/complete`
    Complete,
}

impl RelayMethod {
    /// The method as MCP has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GetPrompt => "prompts/get",
            Self::ReadResource => "resources/read",
            Self::Complete => "completion/complete",
        }
    }

    /// The member of the parameters that names the subject, if there is one.
    pub fn subject(self) -> Option<&'static str> {
        match self {
            Self::GetPrompt => Some("name"),
            Self::ReadResource => Some("uri"),
            Self::Complete => None,
        }
    }
}

impl EndReason {
    /// A reason that is no end of a program; one sentence without a full stop.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            program: None,
        }
    }

    /// The end of the program.
    pub fn of_program(program: Arc<ProgramEnd>) -> Self {
        Self {
            text: program.to_string(),
            program: Some(program),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn unsupported<'a, T: Send + 'a>(why: &str) -> BoxFuture<'a, Result<T, CallError>> {
    Box::pin(std::future::ready(Err(CallError::NotCallable(
        why.to_owned(),
    ))))
}
