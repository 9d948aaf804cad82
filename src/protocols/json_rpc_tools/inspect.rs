//! Inspects a server for its author: requests its identity and its list several times, and gives
//! what is wrong with them. Calls no tool.

use http::HeaderMap;
use serde_json::Value;
use uuid::Uuid;

use super::exchange::RequestFailure;
use super::{JsonRpcSession, further_page, refused_list, unsteady};
use crate::lint::serving::ListResponse;
use crate::lint::{McpServing, check_mcp, check_mcp_serving};
use crate::model::finding::quoted_excerpt;
use crate::model::{Bounds, CappedFindings, Finding, FindingCode, JsonText};
use crate::protocols::mcp::decode_list;
use crate::protocols::sent_document::{left_out, tools};
use crate::protocols::tool_discovery::Inspected;
use crate::protocols::tool_discovery::inspect::renumbered;
use crate::protocols::tool_discovery::unknown_keys::near_misses;
use crate::protocols::{ListError, ListRequest};

/// How often the tools are listed, to see whether the answers agree.
const LISTINGS: usize = 3;
/// The version of the protocol.
const PROTOCOL_VERSION: &str = "1.0";
/// The members of an identity, of a list and of a tool.
const IDENTITY: &[&str] = &["server_id", "tools_count", "protocol_version", "schema_id"];
const LIST: &[&str] = &["tools"];
const TOOL: &[&str] = &["name", "description", "inputSchema"];

/// What a server answered.
#[derive(Clone)]
struct Answers {
    /// The identities before and after the lists; `None` where it refused to give one.
    identities: [Option<JsonText>; 2],
    lists: Vec<(JsonText, std::time::Duration)>,
}

impl JsonRpcSession {
    /// Requests the identity and the list several times and checks them. The findings about the
    /// identity come first; pointers lead into the result of the method.
    ///
    /// # Errors
    /// The server does not answer, or its list cannot be read.
    pub async fn inspect(&self) -> Result<Inspected, ListError> {
        let request = ListRequest::whole();
        let before = self.stated_identity(&request).await?;
        let mut lists = Vec::new();
        for _ in 0..LISTINGS {
            let begun = self.transports.clock().now();
            let list = self.tools(&request).await?;
            lists.push((
                list,
                self.transports
                    .clock()
                    .now()
                    .saturating_duration_since(begun),
            ));
        }
        let answers = Answers {
            identities: [before, self.stated_identity(&request).await?],
            lists,
        };
        self.transports
            .tasks()
            .off_thread(move || examine(&answers))
            .await
    }

    async fn stated_identity(&self, request: &ListRequest) -> Result<Option<JsonText>, ListError> {
        match self
            .exchange
            .request("server/identity", request, &self.transports)
            .await
        {
            Ok(result) => Ok(Some(result)),
            Err(RequestFailure::Refused(_)) => Ok(None),
            Err(RequestFailure::Unusable(error)) => Err(error),
        }
    }
}

/// Checks the answers, the first list in detail.
fn examine(answers: &Answers) -> Result<Inspected, ListError> {
    let mut responses = Vec::new();
    let mut first = None;
    for (list, took) in &answers.lists {
        let (manifest, of_decoding, _) = decode_list(list, Bounds::NONE, None)?;
        let document = value(list);
        responses.push(ListResponse {
            headers: HeaderMap::new(),
            took: *took,
            digest: manifest.digest,
            stamp: None,
            order: names(&document),
        });
        first.get_or_insert((manifest, of_decoding, document));
    }
    let Some((manifest, of_decoding, document)) = first else {
        return Err(refused_list(&"it was not requested"));
    };
    let mut findings = of_identity(&answers.identities, tools(&document).len());
    // The list of this protocol has one page, and no changes are signalled.
    findings.extend(check_mcp_serving(&McpServing {
        answers: responses,
        pages: (1, 0),
        list_changed: true,
    }));
    findings.extend(further_page(&answers.lists[0].0));
    let broken = left_out(&of_decoding);
    let mut of_content = renumbered(&document, &manifest, &broken, check_mcp(&manifest));
    // Servers of this protocol have no name.
    of_content.retain(|finding| finding.code != FindingCode::ScenarioNaming);
    findings.extend(of_decoding);
    findings.extend(of_content);
    findings.extend(of_members(&document, |index| broken.contains(&index)));
    Ok(Inspected::listed(manifest, findings, names(&document)))
}

/// What is wrong with the identity, and whether it is that of a list of so many tools.
fn of_identity(identities: &[Option<JsonText>; 2], listed: usize) -> Vec<Finding> {
    let finding =
        |message: String, hint: &str| Finding::new(FindingCode::ServerIdentity, message).hint(hint);
    let [Some(before), after] = identities else {
        let message =
            "it has no `server/identity`, so its tools are listed at each poll".to_owned();
        return vec![finding(
            message,
            "answer `server/identity` with `server_id`, `tools_count` and `protocol_version`",
        )];
    };
    let identity = value(before);
    let mut findings = Vec::new();
    let id = identity["server_id"].as_str();
    if id.is_none_or(|id| Uuid::parse_str(id).is_err()) {
        let message = format!(
            "`server_id` is no UUID, but {}",
            quoted_excerpt(&identity["server_id"].to_string())
        );
        findings.push(
            finding(
                message,
                "compute a UUID from the names and descriptions of the tools",
            )
            .at("/server_id"),
        );
    }
    if identity["tools_count"] != listed {
        let message = format!(
            "`tools_count` is {}, and the list has {listed} tools",
            quoted_excerpt(&identity["tools_count"].to_string())
        );
        findings.push(finding(message, "count the tools of the list").at("/tools_count"));
    }
    if identity["protocol_version"] != PROTOCOL_VERSION {
        let stated = quoted_excerpt(&identity["protocol_version"].to_string());
        let message = format!("`protocol_version` is not \"{PROTOCOL_VERSION}\", but {stated}");
        findings.push(
            finding(message, "write `\"protocol_version\": \"1.0\"`").at("/protocol_version"),
        );
    }
    if after
        .as_ref()
        .is_none_or(|after| value(after)["server_id"] != identity["server_id"])
    {
        findings.push(unsteady());
    }
    let mut near = CappedFindings::default();
    near_misses(&identity, "", IDENTITY, None, &mut near);
    findings.extend(near.finish());
    findings
}

/// Members that are missing, or that are written otherwise.
fn of_members(document: &Value, is_left_out: impl Fn(usize) -> bool) -> Vec<Finding> {
    let mut found = CappedFindings::default();
    near_misses(document, "", LIST, None, &mut found);
    for (index, tool) in tools(document)
        .iter()
        .enumerate()
        .filter(|(index, _)| !is_left_out(*index))
    {
        let name = tool["name"].as_str();
        near_misses(tool, &format!("/tools/{index}"), TOOL, name, &mut found);
        if tool.get("inputSchema").is_none_or(Value::is_null) {
            found.push_with(FindingCode::SchemaMissing, || {
                Finding::new(
                    FindingCode::SchemaMissing,
                    "the tool has no `inputSchema`, so it is taken to have no parameters",
                )
                .of_tool(name.unwrap_or_default())
                .at(format!("/tools/{index}"))
                .hint(r#"write `{"type": "object", "properties": {}, "additionalProperties": false}` if it has none"#)
            });
        }
    }
    found.finish()
}

fn value(text: &JsonText) -> Value {
    serde_json::from_str(text.get()).unwrap_or_default()
}

fn names(document: &Value) -> Vec<String> {
    tools(document)
        .iter()
        .filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned()))
        .collect()
}
