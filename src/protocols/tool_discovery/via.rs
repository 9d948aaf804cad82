//! Which daemons a tool came through.
//!
//! The list of a callsheet daemon is a manifest too, and daemons may list each other. Its member `via` names the daemon that wrote it,
//! and a tool's own `via` the daemons that it came through before. What came through ourselves is left out, so that two daemons that
//! list each other each have the other's tools once; what stays carries the whole chain on.

use std::sync::Arc;

use super::{Decoded, digest};
use crate::model::{Extra, Finding, FindingCode, JsonText, Tool};
use crate::protocols::ListError;

/// The member, of manifests and of tools.
const VIA: &str = "via";

/// Follows the chains of a manifest that a daemon wrote; any other stays as it is. `own_id` is ours. Fails when the manifest is our own
/// list.
pub(super) fn follow(decoded: &mut Decoded, own_id: Option<&str>) -> Result<(), ListError> {
    let head = chain(&decoded.manifest.extra);
    let (Some(own_id), false) = (own_id, head.is_empty()) else { return Ok(()) };
    if head.iter().any(|id| id == own_id) {
        return Err(ListError::Malformed("this is the list of this daemon itself".to_owned()));
    }
    let tools = &mut decoded.manifest.tools;
    let before = tools.len();
    tools.retain_mut(|tool| {
        let further = chain(&tool.extra);
        let ours = further.iter().any(|id| id == own_id);
        if !ours {
            extend(Arc::make_mut(tool), &head, further);
        }
        !ours
    });
    let left_out = before - tools.len();
    if left_out > 0 {
        let message = format!("{left_out} tools that it has from this daemon are left out");
        decoded.findings.push(Finding::new(FindingCode::EntryIgnored, message));
    }
    decoded.manifest.digest = digest::of(&decoded.manifest);
    Ok(())
}

/// The ids of the member, none when it is not there or something else.
fn chain(extra: &Extra) -> Vec<String> {
    let member = extra.iter().find(|(name, _)| &**name == VIA);
    member.and_then(|(_, json)| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}

fn extend(tool: &mut Tool, head: &[String], mut further: Vec<String>) {
    further.extend_from_slice(head);
    let whole = JsonText::known(&serde_json::Value::from(further).to_string());
    let others = std::mem::take(&mut tool.extra).into_iter().filter(|(name, _)| &**name != VIA);
    tool.extra = others.chain([(VIA.into(), whole)]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Accept;
    use crate::protocols::tool_discovery::{decode, encode};

    fn read(manifest: &serde_json::Value) -> Decoded {
        decode(manifest.to_string().as_bytes(), &Accept::default()).unwrap()
    }

    fn manifest(via: &serde_json::Value, tools: &[(&str, serde_json::Value)]) -> serde_json::Value {
        let tool = |(name, via): &(&str, serde_json::Value)| serde_json::json!({ "name": name, "via": via });
        serde_json::json!({
            "protocol_version": "1.0", "scenario": { "name": "callsheet" }, "via": via, "categories": [],
            "generated_at": "2026-01-05T10:00:00Z", "tools": tools.iter().map(tool).collect::<Vec<_>>(),
        })
    }

    fn tools(decoded: &Decoded) -> Vec<(String, Vec<String>)> {
        decoded.manifest.tools.iter().map(|tool| (tool.name.to_string(), chain(&tool.extra))).collect()
    }

    #[test]
    fn what_came_through_us_is_left_out_and_the_rest_carries_its_chain() {
        use serde_json::json;
        let written =
            manifest(&json!(["b"]), &[("mine", json!(["c", "a"])), ("theirs", json!(null)), ("third", json!(["c"]))]);
        let mut decoded = read(&written);
        follow(&mut decoded, Some("a")).unwrap();
        let expected = [("theirs".to_owned(), vec!["b".into()]), ("third".to_owned(), vec!["c".into(), "b".into()])];
        assert_eq!(tools(&decoded), expected);
        let [finding] = decoded.findings.as_slice() else { panic!("one finding: {:?}", decoded.findings) };
        assert!(finding.message.starts_with("1 tools"), "{finding:?}");
        // What is kept and read again is the same offer.
        let again = decode(encode(&decoded.manifest).as_bytes(), &Accept::default()).unwrap();
        assert_eq!(again.manifest.digest, decoded.manifest.digest);
    }

    #[test]
    fn our_own_list_is_refused_and_others_manifests_stay_as_they_are() {
        use serde_json::json;
        assert!(follow(&mut read(&manifest(&json!(["a"]), &[])), Some("a")).is_err());
        for via in [json!(null), json!("a"), json!([1]), json!({})] {
            let written = manifest(&via, &[("one", json!(["a"]))]);
            let (mut decoded, untouched) = (read(&written), read(&written));
            follow(&mut decoded, Some("a")).unwrap();
            assert_eq!(decoded.manifest.digest, untouched.manifest.digest, "{via}");
            assert_eq!(decoded.manifest.tools.len(), 1, "{via}");
        }
    }
}
