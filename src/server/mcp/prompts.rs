//! `prompts/get`, and the name of a prompt as the client may write it.

use std::sync::Arc;

use crate::catalog::{RelayedItem, Snapshot, ViewQuery};
use crate::model::{JsonText, PublishedName, RelayedKind, ScenarioName};
use crate::protocols::RelayMethod;
use crate::server::mcp::answer::Answer;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::relayed;

/// `prompts/get`: the prompt as its scenario gives it.
pub(super) async fn get(
    context: &McpContext,
    client: McpClient,
    id: &JsonText,
    sent: Option<&JsonText>,
) -> Result<Answer, Refusal> {
    let mut params = relayed::object(RelayMethod::GetPrompt, sent)?;
    let name = params["name"]
        .as_str()
        .ok_or_else(|| Refusal::invalid("`name` is missing"))?;
    let (scenario, own) = find(context, name).await?;
    params["name"] = own.into();
    relayed::send(
        context,
        client,
        id,
        sent,
        scenario,
        RelayMethod::GetPrompt,
        params,
    )
    .await
}

/// The scenario of a prompt and its name there. A prompt is found by the name in the list, else by
/// its qualified name, else by its own name if no other prompt has it.
pub(super) async fn find(
    context: &McpContext,
    name: &str,
) -> Result<(ScenarioName, String), Refusal> {
    let name = name.to_owned();
    let style = relayed::naming(context);
    let look = move |snapshot: &Arc<Snapshot>, view: &ViewQuery| {
        find_among(&snapshot.catalog.prompts(view, style), &name)
    };
    let snapshot = relayed::snapshot(context);
    relayed::of_offers(context, snapshot, RelayedKind::Prompts, look).await?
}

fn find_among(
    prompts: &[(PublishedName, RelayedItem<'_>)],
    name: &str,
) -> Result<(ScenarioName, String), Refusal> {
    let found = |item: &RelayedItem<'_>| Ok((item.scenario.clone(), item.offer.key.to_string()));
    let listed = prompts.iter().find(|(own, _)| own.as_str() == name);
    let qualified = || {
        prompts
            .iter()
            .find(|(_, item)| item.qualified_name().as_str() == name)
    };
    if let Some((_, item)) = listed.or_else(qualified) {
        return found(item);
    }
    let mut same: Vec<_> = prompts
        .iter()
        .filter(|(_, item)| &*item.offer.key == name)
        .collect();
    match (same.pop(), same.is_empty()) {
        (Some((_, item)), true) => found(item),
        (Some((last, _)), false) => {
            let names: Vec<_> = same
                .iter()
                .map(|(name, _)| name)
                .chain([last])
                .map(|name| format!("`{name}`"))
                .collect();
            Err(Refusal::invalid(format!(
                "several prompts are called {name:?}: get {}",
                names.join(" or ")
            )))
        }
        (None, _) => Err(Refusal::invalid(format!("Unknown prompt: {name}"))),
    }
}
