//! What is remembered of a list: under which identity it was requested, when, and how it was read.
//!
//! Never here: the list itself, which is the engine's.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Bounds;
use crate::protocols::Validators;

/// The identity of a known list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownIdentity {
    pub(super) id: String,
    /// When the list was requested, in seconds since 1970.
    listed: i64,
    /// The address that gave it.
    address: String,
    /// The limits that it was read by: tools, and bytes of one tool.
    bounds: (usize, usize),
    /// The version of this program that read it. Another one may read the same list differently.
    reader: String,
}

impl KnownIdentity {
    /// Of a list that this program read just now.
    pub(super) fn new(id: String, listed: Timestamp, address: &str, bounds: Bounds) -> Self {
        let reader = env!("CALLSHEET_VERSION").to_owned();
        let bounds = (bounds.tools, bounds.part);
        Self {
            id,
            listed: listed.as_second(),
            address: address.to_owned(),
            bounds,
            reader,
        }
    }

    /// What is remembered, if a list of this address would be read in the same way now.
    pub(super) fn read(validators: &Validators, address: &str, bounds: Bounds) -> Option<Self> {
        let known = match validators.text() {
            Some(text) => serde_json::from_str(text).ok()?,
            None => validators.get::<Self>()?.clone(),
        };
        let listed = Timestamp::from_second(known.listed).ok()?;
        (known == Self::new(known.id.clone(), listed, address, bounds)).then_some(known)
    }

    /// The same, remembered over restarts.
    pub(super) fn stored(&self) -> Validators {
        // It has no member that cannot be written.
        serde_json::to_string(self)
            .map(Validators::stored)
            .unwrap_or_default()
    }

    /// Whether the list stands under its identity for so long. A list of the future was requested
    /// before the clock was set back, so its age is not known.
    pub(super) fn stands(&self, now: Timestamp, at_most: Duration) -> bool {
        u64::try_from(now.as_second() - self.listed)
            .is_ok_and(|age| Duration::from_secs(age) < at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        tools: 10,
        part: 100,
    };

    fn known() -> KnownIdentity {
        KnownIdentity::new(
            "a".into(),
            "2026-03-04T05:06:07Z".parse().unwrap(),
            "http://127.0.0.1:1/rpc",
            BOUNDS,
        )
    }

    #[test]
    fn what_was_stored_is_read_again_where_the_list_would_be_the_same() {
        for validators in [known().stored(), Validators::new(known())] {
            let read = |address: &str, bounds| KnownIdentity::read(&validators, address, bounds);
            assert_eq!(read("http://127.0.0.1:1/rpc", BOUNDS), Some(known()));
            assert_eq!(
                read("http://127.0.0.1:2/rpc", BOUNDS),
                None,
                "another server"
            );
            assert_eq!(
                read(
                    "http://127.0.0.1:1/rpc",
                    Bounds {
                        tools: 11,
                        ..BOUNDS
                    }
                ),
                None,
                "more is taken now"
            );
        }
        let of_another_version = known()
            .stored()
            .text()
            .unwrap()
            .replace(env!("CALLSHEET_VERSION"), "0.0.0-other");
        for text in [&*of_another_version, "{}", "", "7"] {
            assert_eq!(
                KnownIdentity::read(&Validators::stored(text), "http://127.0.0.1:1/rpc", BOUNDS),
                None,
                "{text}"
            );
        }
        assert_eq!(
            KnownIdentity::read(&Validators::default(), "http://127.0.0.1:1/rpc", BOUNDS),
            None
        );
    }

    #[test]
    fn a_list_stands_until_it_is_too_old_and_not_before_it_was_requested() {
        let at = |second: u8| format!("2026-03-04T05:06:{second:02}Z").parse().unwrap();
        let stands = |second| known().stands(at(second), Duration::from_secs(10));
        assert!(stands(7) && stands(16));
        assert!(!stands(17) && !stands(6));
    }
}
