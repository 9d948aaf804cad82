//! Whether a call needs approval, and whether an approval still counts. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::binding;
use super::bounds::CurrentTool;
use crate::model::{ApprovalRequest, Provenance, ViewTool};

/// The member of the metadata that requires approval.
const MEMBER: &str = "requires_approval";

/// Whether a call of this tool needs approval, in the scope of its caller.
///
/// Only a preference can lift what the manifest requires. If the effective value is no without a
/// preference, and the metadata cannot be read or holds any value but `false`, approval is needed.
pub fn needed(tool: &ViewTool) -> bool {
    /// Any value but `false` counts as a requirement.
    #[derive(Deserialize)]
    struct ApprovalMember {
        #[serde(default)]
        requires_approval: Value,
    }
    if tool.effective.requires_approval {
        return true;
    }
    if matches!(tool.effective.approval_source, Provenance::Preference(_)) {
        return false;
    }
    let metadata = tool.tool.metadata.get();
    // Most metadata does not have the member, and that is found without parsing: without an escape,
    // a member's name stands in the text as it is.
    if metadata.starts_with('{') && !metadata.contains(MEMBER) && !metadata.contains('\\') {
        return tool.tool.facts.requires_approval;
    }
    // Serde would read a list as the members in their order.
    let declared = metadata
        .starts_with('{')
        .then(|| serde_json::from_str::<ApprovalMember>(metadata).ok())
        .flatten();
    tool.tool.facts.requires_approval
        || !declared.is_some_and(|declared| {
            matches!(declared.requires_approval, Value::Null | Value::Bool(false))
        })
}

/// Why an approved call may not be run as it was requested; `None` if it is unchanged.
pub fn changed(request: &ApprovalRequest, standing: Option<&CurrentTool>) -> Option<String> {
    let Some(standing) = standing else {
        return Some(format!(
            "`{}` is not offered to the caller now",
            request.tool
        ));
    };
    if !request.owner.holds_for(&standing.owner) {
        let owner = &request.owner;
        let now = &standing.owner;
        let scenario = &request.tool.scenario;
        return Some(format!(
            "another peer answers for `{scenario}` now: it was the one {owner}, and is the one {now}"
        ));
    }
    if !binding::is_definition(&request.definition, &standing.tool) {
        return Some(format!(
            "the definition of `{}` changed since the call was requested",
            request.tool
        ));
    }
    if let Some(called) = &request.called {
        let now = standing.called.as_ref().map(|tool| tool.version());
        if !now.is_some_and(|now| called.version.names(now)) {
            return Some(format!(
                "the definition of `{}` is not the one that the call was made for",
                called.id
            ));
        }
    }
    (binding::call(request) != request.digest)
        .then(|| "the stored call is not the requested call".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::calls::approval::tests::request;
    use crate::model::{
        Effective, Execution, Facts, JsonText, PeerIdentity, PublishedName, Tool, ToolId,
        VersionCell,
    };

    fn tool(metadata: &str, declared: bool, effective: bool, source: Provenance) -> ViewTool {
        let tool = Tool {
            name: "wipe".into(),
            description: "Wipes".into(),
            category: None,
            parameters: JsonText::parse("{}").unwrap(),
            metadata: JsonText::parse(metadata).unwrap(),
            facts: Arc::new(Facts {
                requires_approval: declared,
                ..Facts::default()
            }),
            extra: Box::default(),
            definition: None,
            version: VersionCell::default(),
        };
        let effective = Effective {
            enabled: true,
            enabled_source: Provenance::Manifest,
            requires_approval: effective,
            approval_source: source,
            priority: 0,
            pinned: false,
        };
        let id: ToolId = "disks/wipe".parse().unwrap();
        ViewTool {
            name: PublishedName::plain(&id.tool),
            id,
            tool: Arc::new(tool),
            effective,
            companions: Arc::default(),
            overridden: None,
            execution: Execution::default(),
        }
    }

    #[test]
    fn only_a_preference_lifts_what_the_manifest_asks_for() {
        let preference = || {
            Provenance::Preference(Arc::new((
                "global".parse().unwrap(),
                "tool:disks/wipe".parse().unwrap(),
            )))
        };
        let yes = r#"{"requires_approval":true}"#;
        let no = r#"{"requires_approval":false}"#;
        assert!(!needed(&tool(no, false, false, Provenance::Manifest)));
        assert!(!needed(&tool("{}", false, false, Provenance::Manifest)));
        assert!(needed(&tool(yes, true, true, Provenance::Manifest)));
        assert!(needed(&tool(no, false, true, preference())));
        assert!(!needed(&tool(yes, true, false, preference())));
        assert!(needed(&tool("{}", true, false, Provenance::Manifest)));
        // Any value that does not fit counts as a requirement. The last one is the same member with
        // an escape in its name.
        let escaped = r#"{"requires\u005fapproval":true}"#;
        for doubt in [
            yes,
            r#"{"requires_approval":"no"}"#,
            r#"{"requires_approval":0}"#,
            "[]",
            escaped,
        ] {
            assert!(
                needed(&tool(doubt, false, false, Provenance::Manifest)),
                "{doubt}"
            );
        }
        assert!(needed(&tool(no, true, false, Provenance::Manifest)));
    }

    #[test]
    fn an_approval_holds_only_for_the_approved_call() {
        let view = tool("{}", false, true, Provenance::Manifest);
        let mut request = request("1");
        request.definition = binding::definition(&view.tool);
        request.digest = binding::call(&request);
        let standing = CurrentTool {
            owner: request.owner.clone(),
            tool: Arc::clone(&view.tool),
            called: None,
        };
        assert_eq!(changed(&request, Some(&standing)), None);
        assert!(changed(&request, None).unwrap().contains("not offered"));
        let elsewhere = PeerIdentity {
            identity: None,
            origin: Some("http://localhost:2".into()),
        };
        let moved = CurrentTool {
            owner: elsewhere,
            ..standing.clone()
        };
        assert!(
            changed(&request, Some(&moved))
                .unwrap()
                .contains("http://localhost:2")
        );
        let other = Tool {
            description: "Wipes all disks".into(),
            ..(*view.tool).clone()
        };
        let redefined = CurrentTool {
            tool: Arc::new(other),
            ..standing.clone()
        };
        assert!(
            changed(&request, Some(&redefined))
                .unwrap()
                .contains("the definition of")
        );
        let forged = ApprovalRequest {
            arguments: JsonText::parse(r#"{"disk":"*"}"#).unwrap(),
            ..request
        };
        assert!(
            changed(&forged, Some(&standing))
                .unwrap()
                .contains("not the requested call")
        );
    }
}
