//! The requests of single commands, each with what its answer has to have.
//!
//! Sends nothing itself: [`DaemonClient`] does.

use http::header::{ACCEPT, CONTENT_TYPE};
use serde::Serialize;
use serde_json::Value;

use super::{DaemonAnswer, DaemonClient, QueryPairs};
use crate::cli::{CommandError, output};
use crate::json::rpc;
use crate::model::FindingCode;

/// A member that a daemon's list always has, and a scenario's list never has.
const REVISION: &str = "callsheet-revision";

/// Why a source's scenario is not listed.
#[derive(Debug)]
pub(in crate::cli) struct NotListed {
    /// The reason.
    pub(in crate::cli) message: String,
    /// The next step.
    pub(in crate::cli) hint: String,
}

/// The segments of a route that name a tool. An identity is two; its tool may hold further slashes,
/// which are part of the second.
pub(in crate::cli) fn tool_segments(name: &str) -> Vec<&str> {
    match name.split_once('/') {
        Some((scenario, tool)) => vec![scenario, tool],
        None => vec![name],
    }
}

impl DaemonClient {
    /// Its version, if it is a callsheet daemon that answers there.
    pub(in crate::cli) async fn version(&self) -> Result<String, CommandError> {
        let request = self
            .soon()
            .await
            .get(self.base.clone())
            .header(ACCEPT, "application/json");
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let (_, body) = self.receive(response).await?;
        let about = self.parse_json(&body)?;
        match (about["name"].as_str(), about["version"].as_str()) {
            (Some("callsheet"), Some(version)) => Ok(output::sanitize(version)),
            _ => Err(self.unexpected_answer("its answer does not name callsheet")),
        }
    }

    /// The health of a scenario. Refuses a name that no known scenario has, in the daemon's words.
    pub(in crate::cli) async fn require_scenario(&self, name: &str) -> Result<Value, CommandError> {
        self.get(&["scenarios", name], QueryPairs::new(), "state")
            .await
            .map(|answer| answer.value)
    }

    /// Why a scenario that a source names is not listed under its name, if a finding says so.
    pub(in crate::cli) async fn not_listed(&self, name: &str) -> Option<NotListed> {
        let query = vec![
            ("code", FindingCode::SourceShadowed.to_string()),
            ("scenario", name.to_owned()),
        ];
        let answer = self.get(&["findings"], query, "findings").await.ok()?;
        let finding = output::list(&answer.value, "findings").first()?;
        Some(NotListed {
            message: output::text(finding, "/message"),
            hint: output::text(finding, "/hint"),
        })
    }

    /// Fetches one tool, by its name or by scenario and name.
    pub(in crate::cli) async fn tool(
        &self,
        path: &[&str],
        query: QueryPairs<'_>,
    ) -> Result<Value, CommandError> {
        let (_, body) = self.get_kept(&[&["tools"], path].concat(), query).await?;
        let tool = self.parse_json(&body)?;
        if tool.get("name").is_none() {
            return Err(self.unexpected_answer("its answer has no `name`"));
        }
        Ok(tool)
    }

    /// Requests a method of `POST /rpc`, and returns its result.
    pub(in crate::cli) async fn rpc(
        &self,
        method: &str,
        query: QueryPairs<'_>,
    ) -> Result<Value, CommandError> {
        let mut url = self.below(&["rpc"]);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = rpc::request(1, method, "{}");
        let request = self
            .soon()
            .await
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(request);
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let (_, body) = self.receive(response).await?;
        let mut answer = self.parse_json(&body)?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => {
                Err(self.unexpected_answer(&format!("its answer to `{method}` has no `result`")))
            }
        }
    }

    /// Fetches the list of tools, in any format.
    pub(in crate::cli) async fn list(
        &self,
        query: QueryPairs<'_>,
    ) -> Result<DaemonAnswer, CommandError> {
        let (headers, body) = self.get_kept(&["tools"], query).await?;
        if !headers.contains_key(REVISION) {
            return Err(self.unexpected_answer("its list of tools has no revision"));
        }
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| Some(value.to_str().ok()?.to_owned()))
        };
        let left_out = text("callsheet-left-out")
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        let selection = text("callsheet-selection");
        let notes = text("callsheet-notes");
        Ok(DaemonAnswer {
            value: self.parse_json(&body)?,
            body,
            left_out,
            selection,
            notes,
        })
    }

    /// Runs a tool. It may take as long as the daemon allows.
    pub(in crate::cli) async fn execute(
        &self,
        body: &impl Serialize,
    ) -> Result<DaemonAnswer, CommandError> {
        let body = serde_json::to_string(body)
            .map_err(|error| self.unexpected_answer(&error.to_string()))?;
        let body = self
            .post_patiently(self.address(&["tools", "execute"])?, body)
            .await?;
        let value = self.parse_json(&body)?;
        if value.get("success").is_none() && value.get("status").is_none() {
            return Err(
                self.unexpected_answer("its answer to a call has neither `success` nor `status`")
            );
        }
        Ok(DaemonAnswer::new(body, value))
    }

    /// Sends a request below `/tools`. What is removed has no answer.
    pub(in crate::cli) async fn stored_tools(
        &self,
        method: http::Method,
        path: &[&str],
        query: QueryPairs<'_>,
        body: Option<&Value>,
    ) -> Result<DaemonAnswer, CommandError> {
        let (_, body) = self
            .exchange_at(method, self.address_below(&["tools"], path)?, query, body)
            .await?;
        let value = if body.is_empty() {
            Value::Null
        } else {
            self.parse_json(&body)?
        };
        Ok(DaemonAnswer::new(body, value))
    }
}
