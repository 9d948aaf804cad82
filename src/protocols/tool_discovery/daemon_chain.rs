//! The chain of daemons that a tool came through.
//!
//! The list of a callsheet daemon is a manifest too, and daemons may list each other. The
//! manifest's member `via` names the daemon that wrote it. A tool's own `via` names the daemons
//! that it came through before. Tools that came through this daemon are left out, so that two
//! daemons that list each other have each tool of the other only once. The other tools get the
//! whole chain.
//!
//! Other programs write these chains, and each tool gets a longer chain than the one it was sent
//! with. So tools with the same chain share its text, and there is a limit for one chain and for
//! all chains of a list together.

use std::collections::HashMap;
use std::sync::Arc;

use super::Decoded;
use crate::model::{Extra, Finding, FindingCode, JsonText, Manifest, Tool};
use crate::protocols::ListError;

/// The member that holds a chain, in manifests and in tools.
pub(in crate::protocols) const MEMBER: &str = "via";
/// The most bytes of one chain as written: enough for about a hundred daemons.
const CHAIN: usize = 4 * 1024;
/// The most bytes of all different chains that the tools of one list get.
const CHAINS: usize = 256 * 1024;

/// Adds the chain of a manifest that a daemon wrote to its tools, and leaves out the tools that
/// came through this daemon. Any other manifest does not change. `own_id` is the id of this daemon.
/// Fails when the manifest is this daemon's own list, or when its chain is too long.
pub(in crate::protocols) fn follow(
    decoded: &mut Decoded,
    own_id: Option<&str>,
) -> Result<(), ListError> {
    let head = ids(chain(&decoded.manifest.extra));
    let head = head.ok_or_else(|| {
        ListError::Malformed(format!("the manifest's /via is longer than {CHAIN} bytes"))
    })?;
    let (Some(own_id), false) = (own_id, head.is_empty()) else {
        return Ok(());
    };
    if head.iter().any(|id| id == own_id) {
        return Err(ListError::Malformed(
            "this is the list of this daemon itself".to_owned(),
        ));
    }
    let mut chains = Chains {
        own_id,
        head,
        known: HashMap::new(),
        room: CHAINS,
        member: MEMBER.into(),
    };
    let mut own = 0_usize;
    let mut too_long = 0_usize;
    decoded
        .manifest
        .tools
        .retain_mut(|tool| match chains.whole(chain(&tool.extra)) {
            ChainResult::Further(whole) => {
                chains.extend(Arc::make_mut(tool), whole);
                true
            }
            ChainResult::Ours => {
                own += 1;
                false
            }
            ChainResult::TooLong => {
                too_long += 1;
                false
            }
        });
    let mut report = |message| {
        decoded
            .findings
            .push(Finding::new(FindingCode::EntryIgnored, message));
    };
    if own > 0 {
        report(format!(
            "{own} tools that it has from this daemon are left out"
        ));
    }
    if too_long > 0 {
        report(format!(
            "{too_long} tools are left out: their `via` is too long, or too many of them have one of their own"
        ));
        decoded.quarantined += too_long;
    }
    decoded.manifest.digest = decoded.manifest.content_digest();
    Ok(())
}

/// Whether a daemon wrote a manifest: then the manifest names that daemon in `via`.
pub(super) fn is_of_a_daemon(manifest: &Manifest) -> bool {
    ids(chain(&manifest.extra)).is_some_and(|ids| !ids.is_empty())
}

/// The member `via` as written; empty when it is absent.
fn chain(extra: &Extra) -> &str {
    extra
        .iter()
        .find(|(name, _)| &**name == MEMBER)
        .map_or("", |(_, json)| json.get())
}

/// The ids of a chain; empty when the member is not a list of texts. `None` when the chain is too
/// long.
fn ids(chain: &str) -> Option<Vec<String>> {
    let is_too_long = chain.starts_with('[') && chain.len() > CHAIN;
    (!is_too_long).then(|| serde_json::from_str(chain).unwrap_or_default())
}

/// What happens to a tool with a given chain.
#[derive(Debug, Clone)]
enum ChainResult {
    /// The tool is kept and gets this chain.
    Further(JsonText),
    /// The tool came through this daemon.
    Ours,
    TooLong,
}

/// The chains of one list.
struct Chains<'a> {
    own_id: &'a str,
    /// The chain of the list itself.
    head: Vec<String>,
    /// The results for the chains seen so far.
    known: HashMap<Box<str>, ChainResult>,
    /// Bytes that further chains may take.
    room: usize,
    /// The name [`MEMBER`], shared by all tools.
    member: Arc<str>,
}

impl Chains<'_> {
    /// What happens to a tool with this chain.
    fn whole(&mut self, chain: &str) -> ChainResult {
        if let Some(known) = self.known.get(chain) {
            return known.clone();
        }
        let Some(mut further) = ids(chain) else {
            return ChainResult::TooLong;
        };
        let whole = if further.iter().any(|id| id == self.own_id) {
            ChainResult::Ours
        } else {
            further.extend_from_slice(&self.head);
            ChainResult::Further(JsonText::known(
                serde_json::Value::from(further).to_string(),
            ))
        };
        let written = if let ChainResult::Further(whole) = &whole {
            whole.get().len()
        } else {
            0
        };
        let Some(room) = self.room.checked_sub(chain.len() + written) else {
            return ChainResult::TooLong;
        };
        self.room = room;
        self.known.insert(chain.into(), whole.clone());
        whole
    }

    fn extend(&self, tool: &mut Tool, whole: JsonText) {
        let others = std::mem::take(&mut tool.extra)
            .into_iter()
            .filter(|(name, _)| &**name != MEMBER);
        tool.extra = others.chain([(Arc::clone(&self.member), whole)]).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AcceptedVersions;
    use crate::protocols::tool_discovery::decode;
    use crate::state;

    fn read(manifest: &serde_json::Value) -> Decoded {
        decode(
            manifest.to_string().as_bytes(),
            &AcceptedVersions::default(),
        )
        .unwrap()
    }

    fn manifest(via: &serde_json::Value, tools: &[(&str, serde_json::Value)]) -> serde_json::Value {
        let tool = |(name, via): &(&str, serde_json::Value)| serde_json::json!({ "name": name, "via": via });
        serde_json::json!({
            "protocol_version": "1.0", "scenario": { "name": "callsheet" }, "via": via, "categories": [],
            "generated_at": "2026-01-05T10:00:00Z", "tools": tools.iter().map(tool).collect::<Vec<_>>(),
        })
    }

    fn tools(decoded: &Decoded) -> Vec<(String, Vec<String>)> {
        decoded
            .manifest
            .tools
            .iter()
            .map(|tool| (tool.name.to_string(), ids(chain(&tool.extra)).unwrap()))
            .collect()
    }

    #[test]
    fn tools_that_came_through_this_daemon_are_left_out() {
        use serde_json::json;
        let written = manifest(
            &json!(["b"]),
            &[
                ("mine", json!(["c", "a"])),
                ("theirs", json!(null)),
                ("third", json!(["c"])),
            ],
        );
        let mut decoded = read(&written);
        follow(&mut decoded, Some("a")).unwrap();
        let expected = [
            ("theirs".to_owned(), vec!["b".into()]),
            ("third".to_owned(), vec!["c".into(), "b".into()]),
        ];
        assert_eq!(tools(&decoded), expected);
        let [finding] = decoded.findings.as_slice() else {
            panic!("one finding: {:?}", decoded.findings)
        };
        assert!(finding.message.starts_with("1 tools"), "{finding:?}");
        // Writing and reading the manifest again gives the same digest.
        let again = state::manifest::read(&state::manifest::write(&decoded.manifest)).unwrap();
        assert_eq!(again.digest, decoded.manifest.digest);
    }

    #[test]
    fn our_own_list_is_refused_and_others_manifests_stay_as_they_are() {
        use serde_json::json;
        assert!(follow(&mut read(&manifest(&json!(["a"]), &[])), Some("a")).is_err());
        for via in [json!(null), json!("a"), json!([1]), json!({})] {
            let written = manifest(&via, &[("one", json!(["a"]))]);
            let mut decoded = read(&written);
            let untouched = read(&written);
            follow(&mut decoded, Some("a")).unwrap();
            assert_eq!(decoded.manifest.digest, untouched.manifest.digest, "{via}");
            assert_eq!(decoded.manifest.tools.len(), 1, "{via}");
        }
    }

    #[test]
    fn chains_that_would_grow_are_bounded() {
        use serde_json::json;
        let long: Vec<String> = (0..100).map(|at| format!("daemon-{at:040}")).collect();
        let mut decoded = read(&manifest(&json!(long), &[("one", json!(null))]));
        assert!(
            follow(&mut decoded, Some("a"))
                .unwrap_err()
                .to_string()
                .contains("/via is longer than")
        );
        let mut decoded = read(&manifest(
            &json!(["b"]),
            &[("long", json!(long)), ("short", json!(["c"]))],
        ));
        follow(&mut decoded, Some("a")).unwrap();
        assert_eq!(
            tools(&decoded),
            [("short".to_owned(), vec!["c".into(), "b".into()])]
        );
        assert_eq!(decoded.quarantined, 1);
        assert_eq!(decoded.findings.len(), 1);
        // Each tool has a chain of its own, behind a long one.
        let names: Vec<String> = (0..1_000).map(|at| format!("tool_{at:04}")).collect();
        let each: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), json!([name])))
            .collect();
        let mut decoded = read(&manifest(&json!(long[..80]), &each));
        follow(&mut decoded, Some("a")).unwrap();
        let kept = decoded.manifest.tools.len();
        assert!(kept > 50 && kept * 4_000 < 2 * CHAINS, "{kept}");
        assert_eq!(kept + decoded.quarantined, 1_000);
        // A chain that all tools share counts once.
        let each: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), json!(["c"])))
            .collect();
        let mut decoded = read(&manifest(&json!(long[..80]), &each));
        follow(&mut decoded, Some("a")).unwrap();
        assert_eq!(decoded.manifest.tools.len(), 1_000);
    }
}
