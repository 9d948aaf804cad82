//! Fetches from a scenario what is needed to check how it serves its manifest: the list three
//! times, then conditionally, then single tools; for a module, its health route instead of single
//! tools.

use std::time::Duration;

use http::header::ETAG;

use super::super::CommandError;
use super::client;
use crate::config::Config;
use crate::lint::serving::{self, ListResponse, ToolResponse};
use crate::model::{AcceptedVersions, Finding, FindingCode, HttpTarget};
use crate::protocols::module;
use crate::protocols::tool_discovery::{Inspected, PATH};
use crate::runtime::{Clock, Tasks};
use crate::transports::http::{HttpResponse, HttpValidators, Upstream};
use crate::transports::{TransportError, Transports};

/// A stamp in whole seconds shows whether it moves only after one has passed.
const WHOLE_SECOND: Duration = Duration::from_millis(1_100);
/// A name that no tool has.
const UNKNOWN_TOOL: &str = "callsheet_check_asks_for_no_such_tool";

/// Fetches as a daemon with this configuration would, and checks all answers. Returns the address
/// without secrets.
pub(in crate::cli) async fn inspect_scenario(
    target: HttpTarget,
    config: &Config,
) -> Result<(String, Inspected), CommandError> {
    let upstream = upstream(&target, config).map_err(|error| unreadable(&error))?;
    let subject = upstream.shown();
    let clock = Clock::system();
    let mut probe = ServingProbe {
        upstream,
        accept: config.protocol.accept.clone(),
        clock,
        path: PATH,
    };
    let mut first = probe.list().await;
    let found = first.as_ref().is_ok_and(|(listed, ..)| listed.is_some());
    if !found && probe.is_module().await {
        probe.path = module::PATH;
        first = probe.list().await;
    }
    let (first, mut inspected, etag) = first?;
    let Some(first) = first else {
        return Ok((subject, inspected));
    };
    let in_seconds = inspected
        .stamp
        .as_ref()
        .is_some_and(|stamp| !stamp.contains('.') && !stamp.contains("nanos"));
    let mut answers = vec![first];
    for _ in 0..2 {
        if in_seconds && answers.len() == 1 {
            probe.clock.sleep(WHOLE_SECOND).await;
        }
        answers.extend(probe.list().await?.0);
    }
    let mut findings = serving::check_list(&answers);
    if let Some(etag) = etag
        && findings
            .iter()
            .all(|finding| finding.code != FindingCode::EtagMoves)
    {
        let known = HttpValidators {
            etag: Some(etag.clone()),
            ..HttpValidators::default()
        };
        let answer = probe
            .upstream
            .get_any_status(probe.path, Some(&known))
            .await
            .map_err(|error| unreadable(&error))?;
        findings.extend(serving::conditional(&etag, answer.head.status));
    }
    if probe.path == module::PATH {
        findings.extend(probe.health().await);
        inspected.findings.splice(0..0, findings);
        return Ok((subject, inspected));
    }
    let offered = inspected
        .manifest
        .iter()
        .flat_map(|manifest| manifest.tools.iter());
    let mut plain = offered.filter(|tool| {
        tool.name
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'_')
    });
    if let Some(tool) = plain.next() {
        findings.extend(probe.single(&tool.name, serving::known_tool).await);
    }
    findings.extend(probe.single(UNKNOWN_TOOL, serving::unknown_tool).await);
    // How it is served comes first: it is of the scenario, not of one tool.
    for finding in &mut findings {
        inspected.names.write_in(finding);
    }
    inspected.findings.splice(0..0, findings);
    Ok((subject, inspected))
}

struct ServingProbe {
    upstream: Upstream,
    accept: AcceptedVersions,
    clock: Clock,
    /// Where the list is.
    path: &'static str,
}

impl ServingProbe {
    /// The list: how it was served (when it is one), what is wrong with it, and its tag.
    async fn list(
        &self,
    ) -> Result<(Option<ListResponse>, Inspected, Option<http::HeaderValue>), CommandError> {
        let started = self.clock.now();
        let HttpResponse { head, body } = self
            .upstream
            .get(self.path, None)
            .await
            .map_err(|error| unreadable(&error))?;
        let took = self.clock.now().saturating_duration_since(started);
        let accept = self.accept.clone();
        let inspect = move || super::inspect(&body, &accept);
        let inspected = self.upstream.tasks().off_thread(inspect).await;
        let etag = head.headers.get(ETAG).cloned();
        let listed = inspected.manifest.as_ref().map(|manifest| ListResponse {
            headers: head.headers,
            took,
            digest: manifest.digest,
            stamp: inspected.stamp.clone(),
            order: inspected.order.clone(),
        });
        Ok((listed, inspected, etag))
    }

    /// Whether a module's manifest is served there.
    async fn is_module(&self) -> bool {
        let answer = self.upstream.get(module::PATH, None).await;
        answer.is_ok_and(|answer| module::is_module(&answer.body))
    }

    /// Checks the health route of a module.
    async fn health(&self) -> Option<Finding> {
        match self
            .upstream
            .get_any_status(module::HEALTH_PATH, None)
            .await
        {
            Ok(HttpResponse { head, body }) => serving::health(head.status, &body),
            Err(error) => Some(
                Finding::new(FindingCode::HealthRoute, error.to_string())
                    .hint("answer at `GET /health`"),
            ),
        }
    }

    /// Checks the answer for one name.
    async fn single(
        &self,
        name: &str,
        judge: impl FnOnce(&ToolResponse<'_>) -> Option<Finding>,
    ) -> Option<Finding> {
        match self
            .upstream
            .get_any_status(&format!("{PATH}/{name}"), None)
            .await
        {
            Ok(HttpResponse { head, body }) => judge(&ToolResponse {
                name,
                status: head.status,
                headers: &head.headers,
                body: &body,
            }),
            Err(error) => Some(
                Finding::new(FindingCode::ToolRoute, error.to_string()).hint(
                    "answer at `GET /api/v1/tools/{name}`, with 404 for a name that no tool has",
                ),
            ),
        }
    }
}

/// A client for a scenario, within the limits of the configuration.
fn upstream(target: &HttpTarget, config: &Config) -> Result<Upstream, TransportError> {
    let client = client::of_daemon(config, Clock::system(), Tasks::new());
    Transports::new(client).http(target)
}

fn unreadable(error: &TransportError) -> CommandError {
    let hint = if error.refuses_host() {
        "use an address that it allows, such as localhost, or add this host name to those that it allows"
    } else {
        "name the address of a running scenario, like http://127.0.0.1:15000"
    };
    CommandError::Usage {
        message: error.to_string(),
        hint: hint.into(),
    }
}
