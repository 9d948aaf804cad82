//! `logging/setLevel` of the legacy revisions. Modern requests say the level themselves.

use bytes::Bytes;
use serde::Deserialize;

use crate::model::JsonText;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sessions::LiveSession;

/// The levels, least severe first (RFC 5424).
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Sets the level of a session.
pub(super) fn set_level(session: &LiveSession, params: Option<&JsonText>) -> Result<Bytes, Refusal> {
    #[derive(Deserialize)]
    struct LevelParams {
        level: String,
    }
    let sent = params.and_then(|params| serde_json::from_str::<LevelParams>(params.get()).ok());
    let level = sent.map(|sent| sent.level).filter(|level| LEVELS.contains(&level.as_str()));
    let level = level.ok_or_else(|| Refusal::invalid(format!("`level` has to be one of {}", LEVELS.join(", "))))?;
    session.set_log_level(&level);
    Ok(Bytes::from_static(b"{}"))
}
