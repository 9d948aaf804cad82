//! The stored form of a manifest: one JSON document in the Tool Discovery Protocol's own spelling,
//! for scenarios of every protocol.
//!
//! A document made by [`write()`] is read by [`read()`] as an equal manifest, by this and by later
//! versions of the program: an object may get further members, and existing members keep their
//! names and meanings. A document of another origin is refused, not corrected. This module does not
//! decide whether a stored manifest may still be used (its version, how many tools it has).

mod read;
mod write;

/// The member with what a scenario offers besides tools.
const RELAYED: &str = "callsheet/relayed";

pub use read::read;
pub use write::write;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{RELAYED, read, write};
    use crate::model::{JsonText, RelayedKind, RelayedOffer};

    const PLAIN: &str = r#"{"protocol_version":"2026-07-28","scenario":{"name":"docs","version":"1","description":""},"tools":[],"categories":[]}"#;

    fn offer(key: &str) -> RelayedOffer {
        let members = [("title".into(), JsonText::parse(r#""A \"title\"""#).unwrap())];
        RelayedOffer {
            key: key.into(),
            members: members.into(),
        }
    }

    #[test]
    fn what_is_offered_besides_tools_is_stored_and_shows_in_the_digest_only_where_there_is_some() {
        let plain = read(PLAIN).unwrap();
        assert_eq!(write(&plain), PLAIN);
        let mut manifest = plain.clone();
        manifest.relayed.set(
            RelayedKind::Resources,
            Arc::new([offer("a://1"), offer("b://2")]),
        );
        manifest
            .relayed
            .set(RelayedKind::Prompts, Arc::new([offer("greet")]));
        manifest.digest = manifest.content_digest();
        let again = read(&write(&manifest)).unwrap();
        assert_eq!(again.relayed, manifest.relayed);
        assert_eq!(again.digest, manifest.digest);
        assert_ne!(manifest.digest, plain.digest);
        // Lists of tools do not change with it.
        assert_eq!(manifest.list_digest(), plain.list_digest());
    }

    #[test]
    fn a_foreign_member_with_the_same_name_is_not_stored() {
        let mut manifest = read(PLAIN).unwrap();
        manifest.extra = [(RELAYED.into(), JsonText::parse("7").unwrap())].into();
        assert_eq!(write(&manifest), PLAIN);
        let unordered = PLAIN.replace(
            r#""categories""#,
            r#""callsheet/relayed":{"prompts":[{"name":"b"},{"name":"a"}]},"categories""#,
        );
        assert!(read(&unordered).is_err());
    }
}
