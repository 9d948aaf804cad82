//! Digests (SHA-256) of what an approval is for: the version of a tool's definition, and one call
//! of it. Pure.
//!
//! A caller that chooses arguments must not be able to make others that have the same digest. The
//! length of each part is hashed before the part, so two different calls never give the same input.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::model::text::hexadecimal;
use crate::model::{ApprovalRequest, Tool, hash_document, hash_part};

/// Separates these digests from every other digest of the same texts.
const CALL: &str = "callsheet approval 1";
const FORMER_TOOL: &str = "callsheet tool 1";

/// The version of a tool's definition, as an approval keeps it.
pub fn definition(tool: &Tool) -> Arc<str> {
    tool.version().to_string().into()
}

/// Whether what an approval keeps is the present definition of a tool. Approvals that an earlier
/// version of callsheet stored keep the digest of before.
pub fn is_definition(kept: &str, tool: &Tool) -> bool {
    *kept == *tool.version().to_string() || *kept == *former_definition(tool)
}

/// The digest of a tool before definitions had versions: name, description, schema and metadata.
fn former_definition(tool: &Tool) -> Arc<str> {
    let mut hash = Sha256::new();
    for text in [FORMER_TOOL, &tool.name, &tool.description] {
        hash_part(&mut hash, text.as_bytes());
    }
    for json in [&tool.parameters, &tool.metadata] {
        hash_document(&mut hash, json);
    }
    hexadecimal(&hash.finalize()).into()
}

/// The digest of a call: scenario, tool, exact arguments, caller, the peer that answers for the
/// scenario, the definition of the tool, and the one that was called, if that is another.
pub fn call(request: &ApprovalRequest) -> Arc<str> {
    let mut hash = Sha256::new();
    let ApprovalRequest {
        tool,
        arguments,
        caller,
        owner,
        definition,
        ..
    } = request;
    for text in [
        CALL,
        tool.scenario.as_str(),
        &tool.tool,
        arguments.get(),
        definition,
    ] {
        hash_part(&mut hash, text.as_bytes());
    }
    for text in [
        &caller.chat,
        &caller.profile,
        &caller.user_id,
        &owner.identity,
        &owner.origin,
    ] {
        match text {
            Some(text) => hash_part(&mut hash, text.as_bytes()),
            // No text has this length, so a missing part differs from every text.
            None => hash.update([0xff; 8]),
        }
    }
    // Without one there is no part for it, so that digests of earlier versions stay as they are.
    if let Some(called) = &request.called {
        hash_part(&mut hash, called.id.to_string().as_bytes());
        hash_part(&mut hash, called.version.to_string().as_bytes());
    }
    if let Some(level) = caller.permission {
        hash_part(&mut hash, level.as_str().as_bytes());
    }
    hexadecimal(&hash.finalize()).into()
}

/// The digest of one text.
pub(in crate::calls) fn digest(text: &str) -> Arc<str> {
    hexadecimal(&Sha256::digest(text.as_bytes())).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::approval::tests::request;
    use crate::model::{CalledDefinition, JsonText, NamedVersion, VersionCell};

    fn tool(parameters: &str, metadata: &str) -> Tool {
        Tool {
            name: "wipe".into(),
            description: "Wipes a disk".into(),
            category: None,
            parameters: JsonText::parse(parameters).unwrap(),
            metadata: JsonText::parse(metadata).unwrap(),
            facts: Arc::default(),
            extra: Box::default(),
            definition: None,
            version: VersionCell::default(),
        }
    }

    #[test]
    fn a_definition_is_what_it_says_not_how_it_is_written() {
        let first = definition(&tool(
            r#"{"type":"object","properties":{"a":{},"b":{}}}"#,
            r#"{"x":1,"y":[1,2]}"#,
        ));
        let same = definition(&tool(
            r#"{ "properties": {"b":{}, "a":{}}, "type":"object" }"#,
            r#"{"y":[1,2],"x":1}"#,
        ));
        assert_eq!(first, same);
        assert_eq!(first.len(), 64);
        for (parameters, metadata) in [
            (
                r#"{"type":"object","properties":{"a":{},"b":{"type":"string"}}}"#,
                r#"{"x":1,"y":[1,2]}"#,
            ),
            (
                r#"{"type":"object","properties":{"a":{},"b":{}}}"#,
                r#"{"x":1,"y":[2,1]}"#,
            ),
            (
                r#"{"type":"object","properties":{"a":{},"b":{}}}"#,
                r#"{"x":"1","y":[1,2]}"#,
            ),
        ] {
            assert_ne!(
                first,
                definition(&tool(parameters, metadata)),
                "{parameters} {metadata}"
            );
        }
    }

    #[test]
    fn every_part_of_a_call_is_bound() {
        let request = request("1");
        let bound = call(&request);
        assert_eq!(
            call(&ApprovalRequest {
                id: "2".into(),
                name: "other".into(),
                ..request.clone()
            }),
            bound
        );
        let mut changed = vec![request.clone(); 10];
        changed[0].tool.tool = "format".into();
        changed[1].tool.scenario = "other".parse().unwrap();
        changed[2].arguments = JsonText::parse(r#"{"disk": "sda1" }"#).unwrap();
        changed[3].caller.chat = None;
        changed[4].caller.user_id = Some("".into());
        changed[5].owner.origin = Some("http://localhost:2".into());
        changed[6].definition = "00".into();
        changed[7].caller.profile = Some("another".into());
        changed[8].owner.identity = Some("another".into());
        let version = NamedVersion::from(tool("{}", "{}").version());
        changed[9].called = Some(CalledDefinition {
            id: "definitions/wipe".parse().unwrap(),
            version,
        });
        let digests: std::collections::BTreeSet<_> =
            changed.iter().map(call).chain([bound]).collect();
        assert_eq!(digests.len(), 11, "each differs from all others");
        // Text that moves from one part to the next gives another digest.
        let [mut one, mut two] = [request.clone(), request];
        (one.caller.chat, one.caller.profile) = (Some("ab".into()), Some("c".into()));
        (two.caller.chat, two.caller.profile) = (Some("a".into()), Some("bc".into()));
        assert_ne!(call(&one), call(&two));
    }
}
