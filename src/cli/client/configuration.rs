//! What a daemon says of its configuration.

use http::header::ACCEPT;
use serde_json::Value;

use super::DaemonClient;
use crate::cli::CommandError;

impl DaemonClient {
    /// The state of its configuration, as `/readyz` has it; null if it follows no file.
    pub(in crate::cli) async fn configuration(&self) -> Result<Value, CommandError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("readyz");
        }
        let request = self.http.get(url).header(ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
        // A daemon that starts answers 503, with the same body.
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
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

    /// Whether it is on this machine.
    pub(in crate::cli) fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}
