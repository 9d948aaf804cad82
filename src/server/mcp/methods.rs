//! Which method is answered by what. Each family of methods has a module of its own.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{JsonText, RelayedKind};
use crate::server::mcp::answer::Answer;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::era::ModernClient;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sessions::LiveSession;
use crate::server::mcp::{
    calls, changes, greeting, lists, logging, own_tools, prompts, relayed, resources,
};

/// Answers a request without a handshake.
pub(super) async fn modern(
    context: &McpContext,
    client: ModernClient,
    id: &JsonText,
    method: &str,
    params: Option<JsonText>,
) -> Result<Answer, Refusal> {
    let client = McpClient::Modern(client);
    match method {
        "server/discover" => Ok(Answer::Result(greeting::discover(context))),
        "subscriptions/listen" => changes::listen(context, &client, id, params.as_ref())
            .await
            .map(Answer::Stream),
        _ => common(context, client, id, method, params).await,
    }
}

/// Answers a request in a session.
pub(super) async fn legacy(
    context: &McpContext,
    session: &Arc<LiveSession>,
    id: &JsonText,
    method: &str,
    params: Option<JsonText>,
) -> Result<Answer, Refusal> {
    match method {
        "ping" => Ok(Answer::Result(Bytes::from_static(b"{}"))),
        "logging/setLevel" => logging::set_level(session, params.as_ref()).map(Answer::Result),
        "resources/subscribe" => resources::subscribe(context, session, params.as_ref())
            .await
            .map(Answer::Result),
        "resources/unsubscribe" => {
            resources::unsubscribe(session, params.as_ref()).map(Answer::Result)
        }
        _ => {
            common(
                context,
                McpClient::Legacy(Arc::clone(session)),
                id,
                method,
                params,
            )
            .await
        }
    }
}

/// Takes a notification of a session.
pub(super) fn notified(session: &LiveSession, method: &str, params: Option<&JsonText>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CancelledParams<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    if method == "notifications/cancelled"
        && let Some(params) = params
        && let Ok(cancelled) = serde_json::from_str::<CancelledParams<'_>>(params.get())
    {
        session.cancel(cancelled.request_id.get());
    }
}

async fn common(
    context: &McpContext,
    client: McpClient,
    id: &JsonText,
    method: &str,
    params: Option<JsonText>,
) -> Result<Answer, Refusal> {
    // An array would be read as the members in their order.
    if params
        .as_ref()
        .is_some_and(|params| !params.get().starts_with('{'))
    {
        return Err(Refusal::invalid("`params` must be a JSON object"));
    }
    if matches!(
        method,
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list"
    ) {
        lists::wait_for_first_answers(context).await;
    }
    match method {
        "tools/list" => lists::tools(context, params.as_ref())
            .await
            .map(Answer::Result),
        "tools/call" => {
            let meant = own_tools::meant(params);
            match own_tools::call(context, meant.params.as_ref()).await {
                Some(own) => own.map(|result| Answer::Result(result.into())),
                None => calls::call(context, client, id, meant).await,
            }
        }
        "prompts/list" => relayed::list(context, RelayedKind::Prompts, params.as_ref())
            .await
            .map(Answer::Result),
        "prompts/get" => prompts::get(context, client, id, params.as_ref()).await,
        "resources/list" => relayed::list(context, RelayedKind::Resources, params.as_ref())
            .await
            .map(Answer::Result),
        "resources/templates/list" => {
            relayed::list(context, RelayedKind::Templates, params.as_ref())
                .await
                .map(Answer::Result)
        }
        "resources/read" => resources::read(context, client, id, params.as_ref()).await,
        "completion/complete" => resources::complete(context, client, id, params.as_ref()).await,
        _ => Err(Refusal::unknown_method(client.is_modern(), method)),
    }
}
