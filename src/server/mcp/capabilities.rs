//! What a client declares of itself: its name, and what it can do while a call runs.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The most characters of a client's name that are kept.
const NAME: usize = 80;

/// The name of a client and its version, for the audit log.
pub(super) fn client_name(info: Option<&Value>) -> Option<String> {
    #[derive(Deserialize)]
    struct ClientInfo {
        name: String,
        #[serde(default)]
        version: String,
    }
    let info = ClientInfo::deserialize(info?).ok()?;
    let name = if info.version.is_empty() {
        info.name
    } else {
        format!("{}/{}", info.name, info.version)
    };
    Some(
        name.chars()
            .filter(|char| !char.is_control())
            .take(NAME)
            .collect(),
    )
}

/// What a client can do while a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ClientCapabilities(u8);

impl ClientCapabilities {
    const FORM: u8 = 1;
    const URL: u8 = 2;
    const SAMPLING: u8 = 4;
    const ROOTS: u8 = 8;

    /// Those of the object in which a client declares them.
    pub(super) fn parse(declared: Option<&Value>) -> Self {
        let Some(Value::Object(declared)) = declared else {
            return Self::default();
        };
        let part = |name: &str| declared.get(name).and_then(Value::as_object);
        let mut all = 0;
        if let Some(elicitation) = part("elicitation") {
            // An empty object is one of a client that knows forms only.
            let has = |mode: &str| elicitation.contains_key(mode);
            all |= if elicitation.is_empty() || has("form") || !has("url") {
                Self::FORM
            } else {
                0
            };
            all |= if has("url") { Self::URL } else { 0 };
        }
        let has = |part: Option<&Map<String, Value>>, bit| if part.is_some() { bit } else { 0 };
        all |= has(part("sampling"), Self::SAMPLING) | has(part("roots"), Self::ROOTS);
        Self(all)
    }

    /// The form in which the id of a session holds them.
    pub(super) fn bits(self) -> u8 {
        self.0
    }

    /// Reads [`bits`](Self::bits).
    pub(super) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Whether it shows forms to its user.
    pub(super) fn shows_forms(self) -> bool {
        self.0 & Self::FORM != 0
    }

    /// Whether it sends its user to addresses.
    pub(super) fn opens_urls(self) -> bool {
        self.0 & Self::URL != 0
    }

    /// Whether it samples its model.
    pub(super) fn samples(self) -> bool {
        self.0 & Self::SAMPLING != 0
    }

    /// Whether it names its folders.
    pub(super) fn has_roots(self) -> bool {
        self.0 & Self::ROOTS != 0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elicitation_is_of_forms_unless_a_client_names_addresses_alone() {
        let of = |declared: Value| {
            let declared = ClientCapabilities::parse(Some(&declared));
            assert_eq!(ClientCapabilities::from_bits(declared.bits()), declared);
            [
                declared.shows_forms(),
                declared.opens_urls(),
                declared.samples(),
                declared.has_roots(),
            ]
        };
        assert_eq!(of(json!({"elicitation": {}})), [true, false, false, false]);
        assert_eq!(
            of(json!({"elicitation": {"url": {}}})),
            [false, true, false, false]
        );
        assert_eq!(
            of(json!({"elicitation": {"url": {}, "form": {}}, "sampling": {"tools": {}}})),
            [true, true, true, false]
        );
        assert_eq!(
            of(json!({"roots": {"listChanged": true}, "elicitation": true})),
            [false, false, false, true]
        );
        assert_eq!(of(json!(7)), [false; 4]);
    }

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(
            client_name(Some(&json!({"name": "a\nb", "version": "1"}))).as_deref(),
            Some("ab/1")
        );
        assert_eq!(
            client_name(Some(&json!({"name": "x".repeat(500)}))).map(|name| name.len()),
            Some(NAME)
        );
        assert_eq!(client_name(Some(&json!({"title": "a"}))), None);
    }
}
