//! `callsheet turn --format FORMAT < RESPONSE`: runs the tool calls in a model's response, and
//! prints the messages for the next request.

use std::fmt::Write as _;
use std::io::Read as _;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output};
use crate::calls::CallMode;
use crate::calls::turns::TURN_FORMATS;

/// Bytes of a response; no daemon takes more.
const MAX_RESPONSE: u64 = 64 * 1024 * 1024;

/// Arguments of `turn`.
#[derive(Debug, Args)]
pub(super) struct TurnArgs {
    /// The vendor whose response standard input is.
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: String,
    /// The revision of the list that the model has.
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// In this conversation: with its preferences.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// With this profile: its limits and preferences.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// User ID passed on to the scenario, if its protocol supports it.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// An id for this turn: sent again with it, the same response runs no call twice.
    #[arg(long, value_name = "ID")]
    turn_id: Option<String>,
    /// Run at most so many calls at once.
    #[arg(long, value_name = "COUNT")]
    parallel: Option<u32>,
    /// Which calls are wanted: all, the first that succeeds, or the first that ends.
    #[arg(long, value_name = "MODE", value_parser = modes())]
    mode: Option<String>,
    /// How many seconds approvals, input and operations are waited for.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u32>,
    /// Tell the model that a call waits for approval, instead of waiting.
    #[arg(long)]
    tell_approvals: bool,
    /// Cut longer results, in tokens as estimated.
    #[arg(long, value_name = "TOKENS")]
    max_result_tokens: Option<u32>,
    /// A tool of the calling program itself; may be given more than once. Then calls of any other
    /// name that no tool has are refused.
    #[arg(long, value_name = "NAME")]
    own_tool: Vec<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// The messages of an answer, as they came.
#[derive(Deserialize)]
struct AnsweredTurn<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(TURN_FORMATS.iter().map(|format| format.id()))
}

fn modes() -> PossibleValuesParser {
    PossibleValuesParser::new([CallMode::All, CallMode::Any, CallMode::Race].map(CallMode::as_str))
}

impl TurnArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let mut response = String::new();
        let read = std::io::stdin().lock().take(MAX_RESPONSE).read_to_string(&mut response);
        read.map_err(|error| unusable(&format!("cannot be read: {error}")))?;
        let answer = daemon.turn(self.query(), self.body(&response)?).await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else if let Some(messages) = messages(&answer.body) {
            output::line(messages);
        }
        for call in output::list(&answer.value, "calls") {
            output::note(&output::sanitize(&line(call)));
        }
        match waiting(&answer.value) {
            None => Ok(()),
            Some(approval) => {
                let id = output::text(&answer.value, "/turn_id");
                let again = format!("once it is decided, the same response with `--turn-id {id}` completes the turn");
                output::note(&output::sanitize(&again));
                let waiting = output::sanitize(&format!("callsheet turn --wait SECONDS --turn-id {id}"));
                Err(CommandError::WaitsForApproval { id: approval, waiting })
            }
        }
    }

    fn query(&self) -> QueryPairs<'_> {
        let scope = [("profile", &self.profile), ("chat_id", &self.chat)];
        let scope = scope.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        std::iter::once(("format", self.format.clone())).chain(scope).collect()
    }

    /// The response with the options, as it was written: its numbers may be larger than any type.
    fn body(&self, response: &str) -> Result<String, CommandError> {
        if let Err(error) = serde_json::from_str::<&RawValue>(response) {
            // The daemon says more of what is no JSON at all, such as a stream.
            let is_stream = !response.trim_start().starts_with(['{', '[']) || error.line() > 1;
            if is_stream && !response.trim().is_empty() {
                return Ok(response.to_owned());
            }
            return Err(unusable(&format!("is not JSON: {error}")));
        }
        let texts =
            [("revision", &self.revision), ("turn_id", &self.turn_id), ("user_id", &self.user), ("mode", &self.mode)];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, Value::from(text.clone()?))));
        let counts = [("parallel", self.parallel), ("wait", self.wait), ("max_result_tokens", self.max_result_tokens)];
        let counts = counts.into_iter().filter_map(|(name, count)| Some((name, Value::from(count?))));
        let approvals = self.tell_approvals.then(|| ("approvals", Value::from("tell")));
        let own = (!self.own_tool.is_empty()).then(|| ("own_tools", Value::from(self.own_tool.clone())));
        let mut body = format!("{{\"response\":{}", response.trim());
        for (name, value) in texts.chain(counts).chain(approvals).chain(own) {
            // A buffer in memory takes everything.
            let _ = write!(body, ",\"{name}\":{value}");
        }
        body.push('}');
        Ok(body)
    }
}

fn unusable(why: &str) -> CommandError {
    CommandError::Usage {
        message: format!("standard input {why}"),
        hint: "give the vendor's whole response: `callsheet turn --format anthropic < response.json`".into(),
    }
}

fn messages(body: &[u8]) -> Option<&str> {
    Some(serde_json::from_slice::<AnsweredTurn<'_>>(body).ok()?.messages?.get())
}

/// What became of one call, for people.
fn line(call: &Value) -> String {
    let text = |pointer| output::text(call, pointer);
    let status = text("/status").replace('_', " ");
    let error = text("/error");
    let why = if error.is_empty() { String::new() } else { format!(": {error}") };
    let approval = text("/approval_id");
    let approval = if approval.is_empty() { String::new() } else { format!(" ({approval})") };
    format!("{}: {status}{approval}{why}", text("/name"))
}

/// The first approval that the turn waits for.
fn waiting(turn: &Value) -> Option<String> {
    if turn["status"] != "waiting" {
        return None;
    }
    output::list(turn, "calls").iter().find_map(|call| call["approval_id"].as_str()).map(str::to_owned)
}
