//! Requests of a server for input of the caller: which of them it may send, and their answers.
//!
//! A legacy server sends them as requests of its own, a modern one in the result of a call. What
//! was not declared to the server is declined at once, so that its tool can end.

use serde_json::json;

use crate::json::rpc::{self, METHOD_NOT_FOUND, RpcError, RpcRequest};
use crate::model::{Interaction, JsonText};
use crate::protocols::{CallIo, CallerOffers, DeclinedInput, InputMethod, InputWanted};

/// The code with which a client refuses a message of its model (MCP 2025-11-25, sampling).
const REJECTED: i64 = -1;
/// The method by which either side finds out whether the other one is there.
const PING: &str = "ping";
/// The answer to a request for input that no person gives.
const DECLINED: &str = r#"{"action":"decline"}"#;
/// The answer to a request for folders where there are none.
const NO_ROOTS: &str = r#"{"roots":[]}"#;

/// The message that answers a request of a legacy server: by the configuration, or by the caller.
pub(super) async fn response(
    request: &RpcRequest,
    interaction: &Interaction,
    io: &dyn CallIo,
) -> String {
    let given = match InputMethod::parse(&request.method) {
        Some(method) => given(method, request.params.as_ref(), interaction, io).await,
        None => None,
    };
    response_with(request, given, interaction)
}

/// The same when no caller can answer it, or it is not known which one.
pub(super) fn response_without_caller(request: &RpcRequest, interaction: &Interaction) -> String {
    let method = InputMethod::parse(&request.method);
    let given = method.and_then(|method| configured_folders(method, interaction));
    response_with(request, given, interaction)
}

/// The input that is given: by the configuration, or by the caller. `None` if it is declined.
async fn given(
    method: InputMethod,
    params: Option<&JsonText>,
    interaction: &Interaction,
    io: &dyn CallIo,
) -> Option<JsonText> {
    if let Some(folders) = configured_folders(method, interaction) {
        return Some(folders);
    }
    let wanted = wanted(method, params);
    let given = if !is_allowed(method, interaction) {
        Err(DeclinedInput::NotAllowed)
    } else if !wanted.is_offered(io.offers()) {
        Err(DeclinedInput::NotOffered)
    } else {
        io.input(&wanted).await.ok_or(DeclinedInput::NotGiven)
    };
    match given {
        Ok(given) => Some(given),
        Err(why) => {
            if method == InputMethod::Elicitation {
                io.declined(why);
            }
            None
        }
    }
}

/// Whether a request of the server is answered by a caller, and not here.
pub(super) fn needs_caller(request: &RpcRequest, interaction: &Interaction) -> bool {
    InputMethod::parse(&request.method).is_some_and(|method| {
        is_allowed(method, interaction) && configured_folders(method, interaction).is_none()
    })
}

/// Whether a caller with these offers can give what the server requests.
pub(super) fn is_offered(request: &RpcRequest, offers: CallerOffers) -> bool {
    InputMethod::parse(&request.method)
        .is_some_and(|method| wanted(method, request.params.as_ref()).is_offered(offers))
}

fn wanted(method: InputMethod, params: Option<&JsonText>) -> InputWanted {
    InputWanted {
        method,
        params: params.cloned().unwrap_or_else(|| JsonText::known("{}")),
    }
}

/// Whether a request of the server is a question to the user.
pub(super) fn is_question(request: &RpcRequest) -> bool {
    InputMethod::parse(&request.method) == Some(InputMethod::Elicitation)
}

/// The message with the input that was given, or with the refusal of a client that gives none.
fn response_with(
    request: &RpcRequest,
    given: Option<JsonText>,
    interaction: &Interaction,
) -> String {
    let result = match (given, InputMethod::parse(&request.method)) {
        (Some(given), _) => Ok(given),
        (None, Some(InputMethod::Elicitation)) => Ok(JsonText::known(DECLINED)),
        (None, Some(InputMethod::Roots)) if interaction.roots => Ok(JsonText::known(NO_ROOTS)),
        (None, Some(InputMethod::Sampling)) if interaction.sampling => {
            let message = "this call has no caller that samples a model".to_owned();
            Err(RpcError {
                code: REJECTED,
                message,
                data: None,
            })
        }
        (None, None) if request.method == PING => Ok(JsonText::known("{}")),
        (None, _) => Err(unknown_method(&request.method)),
    };
    rpc::response(&request.id, result.as_ref().map(JsonText::get))
}

/// What goes back in `inputResponses` to a modern server for one of its requests. `None` where
/// declining has no form: the call cannot continue.
pub(super) async fn input_response(
    method: &str,
    params: Option<&JsonText>,
    interaction: &Interaction,
    io: &dyn CallIo,
) -> Option<JsonText> {
    let method = InputMethod::parse(method)?;
    match (given(method, params, interaction, io).await, method) {
        (Some(given), _) => Some(given),
        (None, InputMethod::Elicitation) => Some(JsonText::known(DECLINED)),
        (None, InputMethod::Roots) => Some(JsonText::known(NO_ROOTS)),
        (None, InputMethod::Sampling) => None,
    }
}

/// The folders that the configuration names, if they are what is requested.
fn configured_folders(method: InputMethod, interaction: &Interaction) -> Option<JsonText> {
    let is_configured =
        method == InputMethod::Roots && interaction.roots && !interaction.folders.is_empty();
    is_configured.then(|| {
        let roots: Vec<_> = interaction
            .folders
            .iter()
            .map(|folder| json!({"uri": folder.as_str()}))
            .collect();
        JsonText::known(json!({"roots": roots}).to_string())
    })
}

fn is_allowed(method: InputMethod, interaction: &Interaction) -> bool {
    match method {
        InputMethod::Elicitation => interaction.elicitation,
        InputMethod::Sampling => interaction.sampling,
        InputMethod::Roots => interaction.roots,
    }
}

/// The answer to a method that a client need not know.
fn unknown_method(method: &str) -> RpcError {
    let message = format!("callsheet does not answer {}", method.escape_debug());
    RpcError {
        code: METHOD_NOT_FOUND,
        message,
        data: None,
    }
}

/// What is declared to a legacy server, for all calls of its session: no caller is known yet.
pub(super) fn session_capabilities(interaction: &Interaction) -> String {
    let offers = CallerOffers {
        elicitation_form: true,
        sampling: true,
        roots: true,
        ..CallerOffers::default()
    };
    capabilities(interaction, offers)
}

/// What is declared to a modern server with a call of a caller with these offers.
pub(super) fn capabilities(interaction: &Interaction, offers: CallerOffers) -> String {
    let mut declared = Vec::new();
    match (
        interaction.elicitation,
        offers.elicitation_form,
        offers.elicitation_url,
    ) {
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
    use crate::json::rpc::RpcMessage;
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
        let form = CallerOffers {
            elicitation_form: true,
            ..none
        };
        let both = CallerOffers {
            elicitation_url: true,
            sampling: true,
            roots: true,
            ..form
        };
        for (interaction, offers, expected) in [
            (Interaction::default(), none, "{}"),
            (Interaction::default(), form, r#"{"elicitation":{}}"#),
            (
                Interaction::default(),
                both,
                r#"{"elicitation":{"form":{},"url":{}}}"#,
            ),
            (all(), none, r#"{"roots":{}}"#),
            (
                all(),
                both,
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#,
            ),
            (
                Interaction {
                    elicitation: false,
                    ..Interaction::default()
                },
                both,
                "{}",
            ),
        ] {
            assert_eq!(capabilities(&interaction, offers), expected);
        }
        assert_eq!(
            session_capabilities(&Interaction::default()),
            r#"{"elicitation":{}}"#
        );
    }

    #[tokio::test]
    async fn what_no_caller_answers_is_declined_as_the_era_has_it() {
        let answered = |method: &'static str, interaction: Interaction| async move {
            let request = RpcRequest {
                id: JsonText::known("1"),
                method: method.to_owned(),
                params: None,
            };
            let message = response(&request, &interaction, &NoCaller).await;
            assert_eq!(
                message,
                response_without_caller(&request, &interaction),
                "it has no caller either"
            );
            let RpcMessage::Response { result, .. } = rpc::parse(&message).unwrap().remove(0)
            else {
                panic!()
            };
            let of_request = result
                .map(|result| result.get().to_owned())
                .map_err(|error| error.code);
            let of_call = input_response(method, None, &interaction, &NoCaller).await;
            (of_request, of_call.map(|given| given.get().to_owned()))
        };
        let declined = || (Ok(DECLINED.to_owned()), Some(DECLINED.to_owned()));
        assert_eq!(answered("elicitation/create", all()).await, declined());
        assert_eq!(
            answered("sampling/createMessage", all()).await,
            (Err(REJECTED), None)
        );
        let undeclared = answered("sampling/createMessage", Interaction::default()).await;
        assert_eq!(undeclared, (Err(METHOD_NOT_FOUND), None));
        let folders = r#"{"roots":[{"uri":"file:///srv"}]}"#.to_owned();
        assert_eq!(
            answered("roots/list", all()).await,
            (Ok(folders.clone()), Some(folders))
        );
        assert_eq!(
            answered("roots/list", Interaction::default()).await.0,
            Err(METHOD_NOT_FOUND)
        );
        assert_eq!(
            answered("tools/call", all()).await,
            (Err(METHOD_NOT_FOUND), None)
        );
        assert_eq!(answered(PING, all()).await, (Ok("{}".to_owned()), None));
    }
}
