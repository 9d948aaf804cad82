//! Tools of servers that are callsheet daemons themselves.
//!
//! Daemons may list each other. A daemon names itself in the `_meta` of its greeting, and each of
//! its tools that came through other daemons names those in its own `_meta`. Tools that came
//! through this daemon are left out, so that they go round no circle; the others get the whole
//! chain.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::decode::DecodedTools;
use crate::model::{Extra, JsonText, Tool};
use crate::protocols::ListError;
use crate::protocols::tool_discovery::Decoded;
use crate::protocols::tool_discovery::daemon_chain::{self, MEMBER};

/// The member of `_meta` with the ids of daemons.
pub(crate) const VIA: &str = "callsheet/via";

/// Follows the chains of the tools of a daemon whose greeting names these ids. Any other server's
/// tools do not change. Fails for the list of this daemon itself.
pub(super) fn follow(
    decoded: DecodedTools,
    via: &[String],
    own_id: Option<&str>,
) -> Result<DecodedTools, ListError> {
    if via.is_empty() {
        return Ok(decoded);
    }
    let DecodedTools {
        mut manifest,
        findings,
        quarantined,
        headers,
    } = decoded;
    manifest.extra = with(
        std::mem::take(&mut manifest.extra),
        MEMBER,
        &Value::from(via),
    );
    for tool in &mut manifest.tools {
        if let Some((meta, chain)) = taken_apart(tool) {
            let tool = Arc::make_mut(tool);
            let extra = with(
                std::mem::take(&mut tool.extra),
                "_meta",
                &Value::Object(meta),
            );
            tool.extra = with(extra, MEMBER, &chain);
        }
    }
    let mut chained = Decoded {
        manifest,
        findings,
        quarantined,
    };
    daemon_chain::follow(&mut chained, own_id)?;
    let Decoded {
        manifest,
        findings,
        quarantined,
    } = chained;
    Ok(DecodedTools {
        manifest,
        findings,
        quarantined,
        headers,
    })
}

/// The `_meta` of a tool without its chain, and the chain, if it has one.
fn taken_apart(tool: &Tool) -> Option<(Map<String, Value>, Value)> {
    let (_, meta) = tool.extra.iter().find(|(name, _)| &**name == "_meta")?;
    let mut meta: Map<String, Value> = serde_json::from_str(meta.get()).ok()?;
    let chain = meta.remove(VIA)?;
    Some((meta, chain))
}

/// The members with this one in place of one of the same name.
fn with(extra: Extra, name: &str, value: &Value) -> Extra {
    let others = extra.into_iter().filter(|(own, _)| &**own != name);
    others
        .chain([(name.into(), JsonText::known(value.to_string()))])
        .collect()
}
