//! Requests of a server for input of the caller: which of them it may send, and their answers.
//!
//! A legacy server sends them as requests of its own, a modern one in the result of a call. What
//! was not declared to the server is declined at once, so that its tool can end.

use serde_json::json;

use crate::model::{Interaction, JsonText};
use crate::protocols::json_rpc::{self, METHOD_NOT_FOUND, RpcError, RpcRequest};
use crate::protocols::{CallIo, CallerOffers, InputMethod, InputReply, InputWanted};

/// The code with which a client refuses a message of its model (MCP 2025-11-25, sampling).
const REJECTED: i64 = -1;
/// The method by which either side finds out whether the other one is there.
const PING: &str = "ping";
/// The answer to a request for input that no person gives.
const DECLINED: &str = r#"{"action":"decline"}"#;

/// What one request of the server was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputAnswer {
    /// The text of the result.
    Given(String),
    Declined(InputMethod),
    /// The method is no request for input.
    Unknown,
}

/// The message that answers a request of a legacy server: by the configuration, or by the caller.
pub(super) async fn response(request: &RpcRequest, interaction: &Interaction, io: &dyn CallIo) -> String {
    if request.method == PING {
        return json_rpc::response(&request.id, Ok("{}"));
    }
    let answer = answer(&request.method, request.params.as_ref(), interaction, io).await;
    json_rpc::response(&request.id, answer.of_request(&request.method, interaction).as_deref())
}

/// The same when no caller can answer it, or it is not known which one.
pub(super) fn response_without_caller(request: &RpcRequest, interaction: &Interaction) -> String {
    if request.method == PING {
        return json_rpc::response(&request.id, Ok("{}"));
    }
    let answer = answer_without_caller(&request.method, interaction);
    json_rpc::response(&request.id, answer.of_request(&request.method, interaction).as_deref())
}

/// Answers a request for input: by the configuration, or by the caller.
pub(super) async fn answer(
    method: &str,
    params: Option<&JsonText>,
    interaction: &Interaction,
    io: &dyn CallIo,
) -> InputAnswer {
    let Some(method) = InputMethod::parse(method) else { return InputAnswer::Unknown };
    if let Some(folders) = configured_folders(method, interaction) {
        return InputAnswer::Given(folders);
    }
    let params = params.cloned().unwrap_or_else(|| JsonText::known("{}"));
    let wanted = InputWanted { method, params };
    if !is_allowed(method, interaction) || !wanted.is_offered(io.offers()) {
        return InputAnswer::Declined(method);
    }
    match io.input(&wanted).await {
        Ok(InputReply::Given(result)) => InputAnswer::Given(result.get().to_owned()),
        Ok(InputReply::Declined) | Err(_) => InputAnswer::Declined(method),
    }
}

/// Answers a request for input that no caller can answer.
fn answer_without_caller(method: &str, interaction: &Interaction) -> InputAnswer {
    match InputMethod::parse(method) {
        Some(known) => configured_folders(known, interaction).map_or(InputAnswer::Declined(known), InputAnswer::Given),
        None => InputAnswer::Unknown,
    }
}

/// The folders that the configuration names, if they are what is requested.
fn configured_folders(method: InputMethod, interaction: &Interaction) -> Option<String> {
    let is_configured = method == InputMethod::Roots && interaction.roots && !interaction.folders.is_empty();
    is_configured.then(|| {
        let roots: Vec<_> = interaction.folders.iter().map(|folder| json!({"uri": folder.as_str()})).collect();
        json!({"roots": roots}).to_string()
    })
}

fn is_allowed(method: InputMethod, interaction: &Interaction) -> bool {
    match method {
        InputMethod::Elicitation => interaction.elicitation,
        InputMethod::Sampling => interaction.sampling,
        InputMethod::Roots => interaction.roots,
    }
}

impl InputAnswer {
    /// As the answer to a request of a legacy server: the text of the result, or the error.
    pub(super) fn of_request(self, method: &str, interaction: &Interaction) -> Result<String, RpcError> {
        match self {
            Self::Given(result) => Ok(result),
            Self::Declined(InputMethod::Elicitation) => Ok(DECLINED.to_owned()),
            Self::Declined(InputMethod::Roots) if interaction.roots => Ok(r#"{"roots":[]}"#.to_owned()),
            Self::Declined(InputMethod::Sampling) if interaction.sampling => {
                let message = "this call has no caller that samples a model".to_owned();
                Err(RpcError { code: REJECTED, message, data: None })
            }
            Self::Declined(_) | Self::Unknown => Err(unknown_method(method)),
        }
    }

    /// As the answer in `inputResponses` to a modern server. `None` where declining has no form:
    /// the call cannot continue.
    pub(super) fn of_call(self) -> Option<String> {
        match self {
            Self::Given(result) => Some(result),
            Self::Declined(InputMethod::Elicitation) => Some(DECLINED.to_owned()),
            Self::Declined(InputMethod::Roots) => Some(r#"{"roots":[]}"#.to_owned()),
            Self::Declined(InputMethod::Sampling) | Self::Unknown => None,
        }
    }
}

/// The answer to a method that a client need not know.
pub(super) fn unknown_method(method: &str) -> RpcError {
    let message = format!("callsheet does not answer {}", method.escape_debug());
    RpcError { code: METHOD_NOT_FOUND, message, data: None }
}

/// What is declared to a legacy server, for all calls of its session: no caller is known yet.
pub(super) fn session_capabilities(interaction: &Interaction) -> String {
    let offers = CallerOffers { elicitation_form: true, sampling: true, roots: true, ..CallerOffers::default() };
    capabilities(interaction, offers)
}

/// What is declared to a modern server with a call of a caller with these offers.
pub(super) fn capabilities(interaction: &Interaction, offers: CallerOffers) -> String {
    let mut declared = Vec::new();
    match (interaction.elicitation, offers.elicitation_form, offers.elicitation_url) {
        (false, ..) | (_, false, false) => {}
        // The empty object means forms only (MCP 2026-07-28, elicitation).
        (true, true, false) => declared.push(r#""elicitation":{}"#),
        (true, true, true) => declared.push(r#""elicitation":{"form":{},"url":{}}"#),
        (true, false, true) => declared.push(r#""elicitation":{"url":{}}"#),
    }
    if interaction.sampling && offers.sampling {
        declared.push(r#""sampling":{}"#);
    }
    if interaction.roots && (offers.roots || !interaction.folders.is_empty()) {
        declared.push(r#""roots":{}"#);
    }
    format!("{{{}}}", declared.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::NoCaller;

    fn all() -> Interaction {
        Interaction {
            elicitation: true,
            sampling: true,
            roots: true,
            folders: vec!["file:///srv".parse().unwrap()],
            instructions: false,
        }
    }

    #[test]
    fn capabilities_follow_the_configuration_and_the_caller() {
        let none = CallerOffers::default();
        let form = CallerOffers { elicitation_form: true, ..none };
        let both = CallerOffers { elicitation_url: true, sampling: true, roots: true, ..form };
        for (interaction, offers, expected) in [
            (Interaction::default(), none, "{}"),
            (Interaction::default(), form, r#"{"elicitation":{}}"#),
            (Interaction::default(), both, r#"{"elicitation":{"form":{},"url":{}}}"#),
            (all(), none, r#"{"roots":{}}"#),
            (all(), both, r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#),
            (Interaction { elicitation: false, ..Interaction::default() }, both, "{}"),
        ] {
            assert_eq!(capabilities(&interaction, offers), expected);
        }
        assert_eq!(session_capabilities(&Interaction::default()), r#"{"elicitation":{}}"#);
    }

    #[tokio::test]
    async fn what_no_caller_answers_is_declined_as_the_era_has_it() {
        let answered = |method: &'static str, interaction: Interaction| async move {
            let answer = answer(method, None, &interaction, &NoCaller).await;
            let code = answer.clone().of_request(method, &interaction).map_err(|error| error.code);
            (code, answer.of_call())
        };
        let declined = || (Ok(DECLINED.to_owned()), Some(DECLINED.to_owned()));
        assert_eq!(answered("elicitation/create", all()).await, declined());
        assert_eq!(answered("sampling/createMessage", all()).await, (Err(REJECTED), None));
        let undeclared = answered("sampling/createMessage", Interaction::default()).await;
        assert_eq!(undeclared, (Err(METHOD_NOT_FOUND), None));
        let folders = r#"{"roots":[{"uri":"file:///srv"}]}"#.to_owned();
        assert_eq!(answered("roots/list", all()).await, (Ok(folders.clone()), Some(folders)));
        assert_eq!(answered("roots/list", Interaction::default()).await.0, Err(METHOD_NOT_FOUND));
        assert_eq!(answered("tools/call", all()).await, (Err(METHOD_NOT_FOUND), None));
    }
}
