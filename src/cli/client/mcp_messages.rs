//! Messages of MCP to and from a daemon. What they say is not known here.

use std::sync::Arc;

use http::HeaderName;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};

use super::{DaemonClient, DaemonEventStream, FOREVER, MAX_ANSWER};
use crate::cli::CommandError;

/// A daemon's answer to a message of MCP.
#[derive(Debug)]
pub(in crate::cli) enum McpAnswer {
    /// One message.
    Message(String),
    /// A stream of messages.
    Stream(Box<DaemonEventStream>),
    /// The message was taken, and has no answer.
    Accepted,
}

/// The header with the id of a session.
pub(in crate::cli) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Whose tools an MCP client gets.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct McpScope {
    /// The profile.
    pub(in crate::cli) profile: Option<Arc<str>>,
    /// The level of the client's user.
    pub(in crate::cli) permission: Option<Arc<str>>,
}

impl DaemonClient {
    /// Sends a message of MCP, or opens the stream of changes where there is none. Gives the id of
    /// the session too, if the answer begins one.
    pub(in crate::cli) async fn mcp(
        &self,
        scope: &McpScope,
        message: Option<&str>,
        headers: http::HeaderMap,
    ) -> Result<(McpAnswer, Option<HeaderValue>), CommandError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments
                .pop_if_empty()
                .push("mcp")
                .extend(scope.profile.as_deref());
        }
        if let Some(level) = &scope.permission {
            url.query_pairs_mut().append_pair("permission", level);
        }
        let request = match message {
            Some(message) => {
                let request = self.http.post(url).header(CONTENT_TYPE, "application/json");
                request
                    .header(ACCEPT, "application/json, text/event-stream")
                    .body(message.to_owned())
            }
            None => self.http.get(url).header(ACCEPT, "text/event-stream"),
        };
        let request = self.add_token_for_address(request.headers(headers).timeout(FOREVER))?;
        let mut response = request
            .send()
            .await
            .map_err(|error| self.unanswered(&error))?;
        let kind = response.headers().get(CONTENT_TYPE).cloned();
        let session = response.headers().get(SESSION_ID).cloned();
        let is = |wanted: &str| kind.as_ref().is_some_and(|kind| kind == wanted);
        if is("text/event-stream") {
            let stream = DaemonEventStream::new(response);
            return Ok((McpAnswer::Stream(Box::new(stream)), session));
        }
        if response.status() == http::StatusCode::ACCEPTED {
            return Ok((McpAnswer::Accepted, session));
        }
        if !is("application/json") {
            self.receive(response).await?;
            return Err(self.unexpected_answer("it answered no message of MCP"));
        }
        // A refusal of the protocol is a message too, whatever its status.
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&error))?
        {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_ANSWER {
                return Err(self.unexpected_answer("its answer is larger than 1 GiB"));
            }
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| self.unexpected_answer("its answer is not a text"))?;
        Ok((McpAnswer::Message(text), session))
    }
}
