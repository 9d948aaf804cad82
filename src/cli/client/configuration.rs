//! What a daemon says of its configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::ACCEPT;
use serde_json::Value;

use super::DaemonClient;
use super::location::note_unusable;
use crate::cli::CommandError;

/// How long the daemon may take to say what it thinks of its configuration, which is printed beside
/// an answer that is there already.
const JUDGEMENT: Duration = Duration::from_secs(2);

impl DaemonClient {
    /// The state of its configuration, as `/readyz` has it; null if it follows no file.
    pub(in crate::cli) async fn configuration(&self) -> Result<Value, CommandError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("readyz");
        }
        let request = self
            .soon()
            .await
            .get(url)
            .header(ACCEPT, "application/json");
        let mut response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        // A daemon that starts answers 503, with the same body.
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&error))?
        {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > super::MAX_ANSWER {
                return Err(self.unexpected_answer("its answer is larger than 1 GiB"));
            }
        }
        let mut state = self.parse_json(&bytes)?;
        if state.get("awaited").is_none() {
            return Err(self.unexpected_answer("its answer has no `awaited`"));
        }
        Ok(state["configuration"].take())
    }

    /// Where this process lacks what the configuration names, prints what the daemon says is wrong
    /// with it, once. A daemon that does not say it leaves the answer to the command as it is.
    pub(super) async fn settle_doubt(&self) {
        if !self.is_in_doubt.swap(false, Ordering::Relaxed) {
            return;
        }
        let judged = tokio::time::timeout(JUDGEMENT, self.configuration()).await;
        let Ok(Ok(state)) = judged else { return };
        let problem = &state["refused"]["problems"][0];
        if let Some(message) = problem["message"].as_str() {
            note_unusable(message, problem["hint"].as_str().unwrap_or_default(), true);
        }
    }

    /// Where it listens, if its address has a number.
    pub(in crate::cli) fn socket_address(&self) -> Option<SocketAddr> {
        let host = self.base.host_str()?.trim_matches(['[', ']']);
        let ip = if host == "localhost" {
            Ipv4Addr::LOCALHOST.into()
        } else {
            host.parse().ok()?
        };
        Some(SocketAddr::new(ip, self.base.port_or_known_default()?))
    }

    /// Whether it is on this machine.
    pub(in crate::cli) fn is_local(&self) -> bool {
        let host = self
            .base
            .host_str()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        host == "localhost"
            || host
                .parse()
                .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}
