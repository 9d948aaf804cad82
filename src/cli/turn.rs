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

const EXPLAINED: &str = "\
Standard input is the body of the model's response, as JSON: the whole response, or the assistant's
message in it. Standard output gets the messages for the next request, as a JSON list; standard error
gets a line for each call. While a call waits for approval, there are no messages and the exit code
is 6.

Examples:
  callsheet turn --format anthropic < response.json
  callsheet turn --format openai --turn-id ID --wait 60 < response.json   # waits for approvals
  callsheet turn --format gemini --own-tool look_up < response.json       # `look_up` is your program's";

/// Arguments of `turn`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAINED)]
pub(super) struct TurnArgs {
    /// The vendor whose shape the response has: the format of the list that the model has.
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: String,
    /// The revision of the list that the model has (`Callsheet-Revision` in its answer). Names then
    /// mean what they meant there; without it, they are looked up in the current list.
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// In this conversation: with its preferences.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// With this profile: its limits and preferences.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// User ID passed on to the scenario, if its protocol supports it.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// An id for this turn, such as a UUID. The same response sent again with it runs no call
    /// twice.
    #[arg(long, value_name = "ID")]
    turn_id: Option<String>,
    /// Run at most so many calls at once. With 1 they run in the model's order.
    #[arg(long, value_name = "COUNT")]
    parallel: Option<u32>,
    /// Which calls are wanted: all, the first that succeeds (any), or the first that ends (race).
    /// The last two are for tools that are declared idempotent or read-only.
    #[arg(long, value_name = "MODE", value_parser = modes())]
    mode: Option<String>,
    /// How many seconds approvals, input and operations are waited for; 0 without it, at most 600.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u32>,
    /// Tell the model that a call waits for approval, instead of waiting.
    #[arg(long)]
    tell_approvals: bool,
    /// Cut results that are longer than so many tokens, as estimated.
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
        let read = std::io::stdin()
            .lock()
            .take(MAX_RESPONSE)
            .read_to_string(&mut response);
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
        if answer.value["status"] != "waiting" {
            return Ok(());
        }
        // The messages are missing, so a script must not go on.
        let id = output::text(&answer.value, "/turn_id");
        let again = format!(
            "callsheet turn --format {} --turn-id {id} --wait SECONDS < RESPONSE",
            self.format
        );
        Err(
            match waiting(&answer.value, "waiting_for_approval", "/approval_id") {
                Some(approval) => CommandError::WaitsForApproval {
                    id: approval,
                    waiting: output::sanitize(&again),
                },
                None => unfinished(&answer.value, &again),
            },
        )
    }

    fn query(&self) -> QueryPairs<'_> {
        let scope = [
            ("profile", &self.profile),
            ("permission", &self.permission),
            ("chat_id", &self.chat),
        ];
        let scope = scope
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        std::iter::once(("format", self.format.clone()))
            .chain(scope)
            .collect()
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
        let texts = [
            ("revision", &self.revision),
            ("turn_id", &self.turn_id),
            ("user_id", &self.user),
            ("mode", &self.mode),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name, Value::from(text.clone()?))));
        let counts = [
            ("parallel", self.parallel),
            ("wait", self.wait),
            ("max_result_tokens", self.max_result_tokens),
        ];
        let counts = counts
            .into_iter()
            .filter_map(|(name, count)| Some((name, Value::from(count?))));
        let approvals = self
            .tell_approvals
            .then(|| ("approvals", Value::from("tell")));
        let own =
            (!self.own_tool.is_empty()).then(|| ("own_tools", Value::from(self.own_tool.clone())));
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
        hint:
            "give the vendor's whole response: `callsheet turn --format anthropic < response.json`"
                .into(),
    }
}

fn messages(body: &[u8]) -> Option<&str> {
    Some(
        serde_json::from_slice::<AnsweredTurn<'_>>(body)
            .ok()?
            .messages?
            .get(),
    )
}

/// A turn whose messages are not there yet, though no call of it waits for approval.
fn unfinished(turn: &Value, again: &str) -> CommandError {
    let Some(input) = waiting(turn, "waiting_for_input", "/interaction/id") else {
        let hint = Some(format!("`{again}` waits for it"));
        return CommandError::Refused {
            message: "the turn is not over, so it has no messages yet".to_owned(),
            hint,
        };
    };
    let hint = format!(
        "give it on the dashboard's page Calls, or by `POST /api/v1/interactions/{input}`; then `{again}` completes the turn"
    );
    CommandError::Refused {
        message: "a call waits for input, so the turn has no messages yet".to_owned(),
        hint: Some(hint),
    }
}

/// What became of one call, for people.
fn line(call: &Value) -> String {
    let text = |pointer| output::text(call, pointer);
    let status = text("/status");
    let status = match status.as_str() {
        "not_ours" => "not a tool of callsheet, so your program answers it".to_owned(),
        status => status.replace('_', " "),
    };
    let details = [text("/error"), text("/interaction/message")]
        .into_iter()
        .find(|detail| !detail.is_empty());
    let details = details
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let ids = [
        text("/approval_id"),
        text("/operation_id"),
        text("/interaction/id"),
    ];
    let id = ids
        .into_iter()
        .find(|id| !id.is_empty())
        .map(|id| format!(" ({id})"))
        .unwrap_or_default();
    format!("{}: {status}{id}{details}", text("/name"))
}

/// What the first call with this status waits for: the text at this place.
fn waiting(turn: &Value, status: &str, pointer: &str) -> Option<String> {
    let call = output::list(turn, "calls")
        .iter()
        .find(|call| call["status"] == status)?;
    Some(call.pointer(pointer)?.as_str()?.to_owned())
}
