//! `resources/read`, `completion/complete` and subscriptions to resources: which scenario a URI
//! belongs to.
//!
//! URIs are those of the scenarios. One that several scenarios have is refused with their names.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use crate::catalog::Catalog;
use crate::model::{JsonText, RelayedKind, ScenarioName};
use crate::protocols::RelayMethod;
use crate::server::mcp::answer::Answer;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sessions::LiveSession;
use crate::server::mcp::watched::{ResourceWatch, WatchKey};
use crate::server::mcp::{prompts, relayed, uri_template};

/// `resources/read`: the resource as its scenario gives it.
pub(super) async fn read(
    context: &McpContext,
    client: McpClient,
    id: &JsonText,
    sent: Option<&JsonText>,
) -> Result<Answer, Refusal> {
    let params = relayed::object(RelayMethod::ReadResource, sent)?;
    let uri = params["uri"]
        .as_str()
        .ok_or_else(|| Refusal::invalid("`uri` is missing"))?;
    let owner =
        owner(context, uri)?.ok_or_else(|| relayed::unknown_resource(client.is_modern(), uri))?;
    relayed::send(
        context,
        client,
        id,
        sent,
        owner,
        RelayMethod::ReadResource,
        params,
    )
    .await
}

/// The resource with this URI, to be followed.
pub(super) fn watch_key(
    context: &McpContext,
    is_modern: bool,
    uri: &str,
) -> Result<WatchKey, Refusal> {
    let scenario = owner(context, uri)?.ok_or_else(|| relayed::unknown_resource(is_modern, uri))?;
    Ok(WatchKey {
        scenario,
        uri: uri.to_owned(),
    })
}

/// Follows a resource.
pub(super) async fn follow(
    context: &McpContext,
    key: WatchKey,
) -> Result<Arc<ResourceWatch>, Refusal> {
    let watches = &context.shared.mcp.watches;
    let followed = watches
        .follow(&context.shared, &context.list.view, key)
        .await;
    let followed = followed.map_err(|refused| relayed::unanswered(&refused))?;
    followed
        .ok_or_else(|| Refusal::busy("too many resources are followed already; try again later"))
}

/// `resources/subscribe` of a session.
pub(super) async fn subscribe(
    context: &McpContext,
    session: &LiveSession,
    params: Option<&JsonText>,
) -> Result<Bytes, Refusal> {
    let key = watch_key(context, false, &subject(params)?)?;
    session.follow(follow(context, key).await?)?;
    Ok(Bytes::from_static(b"{}"))
}

/// `resources/unsubscribe` of a session. It is no error that the resource is not followed.
pub(super) fn unsubscribe(
    session: &LiveSession,
    params: Option<&JsonText>,
) -> Result<Bytes, Refusal> {
    session.unfollow(&subject(params)?);
    Ok(Bytes::from_static(b"{}"))
}

/// The resource that parameters name.
fn subject(params: Option<&JsonText>) -> Result<String, Refusal> {
    #[derive(Deserialize)]
    struct Subject {
        uri: String,
    }
    let subject: Option<Subject> =
        params.and_then(|params| serde_json::from_str(params.get()).ok());
    subject
        .map(|subject| subject.uri)
        .ok_or_else(|| Refusal::invalid("`uri` is missing"))
}

/// `completion/complete`: for a prompt by its name here, for a resource by its URI or template.
pub(super) async fn complete(
    context: &McpContext,
    client: McpClient,
    id: &JsonText,
    sent: Option<&JsonText>,
) -> Result<Answer, Refusal> {
    let mut params = relayed::object(RelayMethod::Complete, sent)?;
    let reference = &params["ref"];
    let scenario = match (
        reference["type"].as_str(),
        reference["name"].as_str(),
        reference["uri"].as_str(),
    ) {
        (Some("ref/prompt"), Some(name), _) => {
            let (scenario, own) = prompts::find(context, name).await?;
            params["ref"]["name"] = own.into();
            scenario
        }
        (Some("ref/resource"), _, Some(uri)) => owner(context, uri)?
            .ok_or_else(|| relayed::unknown_resource(client.is_modern(), uri))?,
        _ => {
            return Err(Refusal::invalid(
                "`ref` is neither a `ref/prompt` with a name nor a `ref/resource` with a URI",
            ));
        }
    };
    relayed::send(
        context,
        client,
        id,
        sent,
        scenario,
        RelayMethod::Complete,
        params,
    )
    .await
}

/// The scenario that has a resource or template with this URI; else the one with the template that
/// it fits, of several templates the most specific one.
pub(super) fn owner(context: &McpContext, uri: &str) -> Result<Option<ScenarioName>, Refusal> {
    let snapshot = relayed::snapshot(context);
    let catalog = &snapshot.catalog;
    let view = &context.list.view;
    let exact = [RelayedKind::Resources, RelayedKind::Templates]
        .into_iter()
        .flat_map(|kind| catalog.relayed_with_key(view, kind, uri))
        .map(|item| item.scenario);
    if let Some(owner) = relayed::only_owner(exact, uri)? {
        return Ok(Some(owner.clone()));
    }
    let fitting = by_template(catalog, context, uri);
    relayed::only_owner(fitting.into_iter(), uri).map(Option::<&ScenarioName>::cloned)
}

fn by_template<'a>(
    catalog: &'a Catalog,
    context: &'a McpContext,
    uri: &str,
) -> Vec<&'a ScenarioName> {
    let templates = catalog.relayed(&context.list.view, RelayedKind::Templates);
    let fitting = templates
        .filter_map(|item| Some((uri_template::fit(&item.offer.key, uri)?, item.scenario)));
    let fitting: Vec<_> = fitting.collect();
    let best = fitting.iter().map(|(literal, _)| *literal).max();
    fitting
        .into_iter()
        .filter(|(literal, _)| Some(*literal) == best)
        .map(|(_, scenario)| scenario)
        .collect()
}
