//! `tools/call`: what a call is, and the work of calling its tool. How its answer is written is in
//! [`long_request`](super::long_request).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::calls::{Request, Requester};
use crate::catalog::{NameLookup, find_in_scope};
use crate::model::{JsonText, NameRef};
use crate::server::mcp::answer::Answer;
use crate::server::mcp::call_work::CallWork;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::find_tools::ClientTools;
use crate::server::mcp::long_request::{AnswerWriter, RequestParts};
use crate::server::mcp::own_tools::MeantCall;
use crate::server::mcp::param_headers;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::request_state::StateBinding;

#[derive(Deserialize)]
struct ToolCallParams<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Calls a tool. The parameters are dropped as soon as they were read: while the call waits, its
/// arguments are held once.
pub(super) async fn call(
    context: &McpContext,
    client: McpClient,
    id: &JsonText,
    MeantCall {
        params,
        through_call_tool,
    }: MeantCall,
) -> Result<Answer, Refusal> {
    let text = params.as_ref().map_or("{}", JsonText::get);
    let unreadable = |error| Refusal::invalid(format!("no call can be read: {error}"));
    let sent: ToolCallParams<'_> = serde_json::from_str(text).map_err(unreadable)?;
    let parts: RequestParts<'_> = serde_json::from_str(text).map_err(unreadable)?;
    let arguments = sent.arguments.map_or("{}", RawValue::get);
    let arguments = if arguments == "null" { "{}" } else { arguments };
    if !arguments.starts_with('{') {
        return Err(Refusal::invalid("`arguments` is not an object"));
    }
    if client.is_modern() {
        check_headers(context, &sent.name, arguments)?;
    }
    let arguments = JsonText::known(arguments);
    let view = &context.list.view;
    let bound = StateBinding {
        profile: view.profile.clone(),
        permission: view.permission,
        tool: sent.name.clone(),
        arguments: arguments.clone(),
    };
    let answer = AnswerWriter::new(context, id, &parts, bound);
    let requester = Requester {
        session: client.call_session(),
        ..context.access.requester()
    };
    let request = Request {
        profile: view.profile.clone(),
        permission: view.permission,
        chat: view.chat.clone(),
        definition_version: parts.definition_version()?,
        remembered: true,
        client: client.name().map(str::to_owned),
        collects: true,
        ..Request::new(sent.name, arguments, requester)
    };
    let shared = Arc::clone(&context.shared);
    let access = context.access;
    // A model that searches has not read the schema of what it calls.
    let searches = through_call_tool || view.pinned_only;
    let tools = searches.then(|| ClientTools::for_client(context, &shared.reader.snapshot()));
    let work = |caller, resumed| {
        CallWork {
            shared,
            caller,
            access,
            tools,
        }
        .run(Request { resumed, ..request })
    };
    let answered = answer.run(context, client, parts, work);
    drop(params);
    answered.await
}

/// Compares the headers of a call with its arguments, by the schema that was listed.
fn check_headers(context: &McpContext, name: &str, arguments: &str) -> Result<(), Refusal> {
    let snapshot = context.shared.reader.snapshot();
    match find_in_scope(&snapshot.catalog, &context.list.view, &NameRef::parse(name)) {
        NameLookup::One(tool) => {
            param_headers::check(&context.headers, tool.tool.parameters.get(), arguments)
        }
        // The call says what is wrong.
        NameLookup::None | NameLookup::Ambiguous(_) => Ok(()),
    }
}
