//! Passes on requests that are no calls of tools: for a prompt, for a resource, for the completion
//! of an argument.
//!
//! The parameters and the result are passed on as they came. A request that the server refused
//! because it does not know the session is sent once more.

use std::sync::Arc;

use serde_json::Value;

use super::call::{self, Failed};
use super::connection::McpServer;
use super::request::McpRequest;
use super::session::{McpSession, ungreeted};
use crate::protocols::{CallError, CallIo, Outcome, Relay, RelayMethod};
use crate::transports::TransportError;

/// What a server that completes no arguments answers.
const NO_COMPLETION: &str = r#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;

impl McpSession {
    /// Sends a request and gives its outcome.
    pub(super) async fn relay_once(
        &self,
        relay: &Relay,
        io: &dyn CallIo,
    ) -> Result<Outcome, CallError> {
        let limit = self.relay_limit().min(relay.longest);
        let greeting = tokio::time::timeout(limit, self.server()).await;
        let timeout = || TransportError::Timeout {
            url: self.address().to_owned(),
            limit,
        };
        let server = greeting
            .map_err(|_| CallError::Unsent(timeout()))?
            .map_err(ungreeted(self.address()))?;
        match self.send_relay(&server, relay, io).await {
            Err(Failed::SessionLost) => self.lose(&server),
            outcome => return outcome.map_err(|error| error.into_call_error(self.address())),
        }
        let server = self.server().await.map_err(ungreeted(self.address()))?;
        self.send_relay(&server, relay, io)
            .await
            .map_err(|error| error.into_call_error(self.address()))
    }

    async fn send_relay(
        &self,
        server: &Arc<McpServer>,
        relay: &Relay,
        io: &dyn CallIo,
    ) -> Result<Outcome, Failed> {
        if relay.method == RelayMethod::Complete && !server.info.completes {
            return Ok(done(NO_COMPLETION));
        }
        let params = relay.params.get().trim();
        let members = params
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .unwrap_or_default();
        let sent: Value = serde_json::from_str(params).unwrap_or_default();
        let subject = relay
            .method
            .subject()
            .and_then(|member| sent[member].as_str())
            .map(str::to_owned);
        let limit = self.relay_limit().min(relay.longest);
        let request = McpRequest {
            subject,
            longest: relay.longest,
            progress: relay.method != RelayMethod::Complete,
            ..McpRequest::new(relay.method.as_str(), members, limit, relay.max_body)
        };
        call::converse(server, request, relay.resumed.as_ref(), io, self.address()).await
    }
}

/// The outcome with this result.
fn done(result: &str) -> Outcome {
    let result = crate::model::JsonText::known(result);
    Outcome {
        content: Some(result.clone()),
        ..Outcome::done(result)
    }
}
