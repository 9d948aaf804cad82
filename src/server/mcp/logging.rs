//! `logging/setLevel` of the legacy revisions. Modern requests say the level themselves.

use bytes::Bytes;
use serde::Deserialize;

use crate::model::JsonText;
use crate::protocols::LogLevel;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sessions::LiveSession;

/// Sets the level of a session.
pub(super) fn set_level(
    session: &LiveSession,
    params: Option<&JsonText>,
) -> Result<Bytes, Refusal> {
    #[derive(Deserialize)]
    struct LevelParams {
        level: String,
    }
    let sent = params.and_then(|params| serde_json::from_str::<LevelParams>(params.get()).ok());
    let level = sent
        .and_then(|sent| LogLevel::parse(&sent.level))
        .ok_or_else(|| {
            let levels = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            Refusal::invalid(format!("`level` has to be one of {levels}"))
        })?;
    session.set_log_level(level);
    Ok(Bytes::from_static(b"{}"))
}
