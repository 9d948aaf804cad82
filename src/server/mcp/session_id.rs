//! The id of a session: signed, with the revision and the capabilities that `initialize` settled.
//!
//! So every daemon with the same store knows every session, also after a restart, and an id that
//! was made up is not known.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::server::mcp::capabilities::ClientCapabilities;
use crate::server::mcp::era::LEGACY;
use crate::server::mcp::sealing::Sealer;

/// What the id of a session says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionClaims {
    /// Tells it from all other sessions.
    pub(super) key: String,
    /// The revision that is spoken.
    pub(super) revision: &'static str,
    pub(super) capabilities: ClientCapabilities,
    /// The name of the client.
    pub(super) client: Option<String>,
}

/// The written form, with short names since it is sent with every request.
#[derive(Serialize, Deserialize)]
struct WrittenClaims {
    k: String,
    v: String,
    c: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<String>,
}

impl SessionClaims {
    /// A new session.
    pub(super) fn new(
        revision: &'static str,
        capabilities: ClientCapabilities,
        client: Option<String>,
    ) -> Self {
        // 122 random bits from the system.
        Self {
            key: Uuid::new_v4().simple().to_string(),
            revision,
            capabilities,
            client,
        }
    }

    /// The id.
    pub(super) fn sign(&self, sealer: &Sealer) -> String {
        let written = WrittenClaims {
            k: self.key.clone(),
            v: self.revision.to_owned(),
            c: self.capabilities.bits(),
            n: self.client.clone(),
        };
        // Texts and a number can always be written.
        sealer.sign(&serde_json::to_string(&written).unwrap_or_default())
    }

    /// Reads an id. `None` if it was not made with this key.
    pub(super) fn verify(id: &str, sealer: &Sealer) -> Option<Self> {
        let written: WrittenClaims = serde_json::from_str(&sealer.verify(id)?).ok()?;
        let revision = LEGACY.into_iter().find(|known| *known == written.v)?;
        Some(Self {
            key: written.k,
            revision,
            capabilities: ClientCapabilities::from_bits(written.c),
            client: written.n,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::mcp::sealing::new_key;

    #[test]
    fn an_id_says_what_was_settled_and_cannot_be_made_up() {
        let key = new_key();
        let capabilities = ClientCapabilities::parse(Some(&json!({"elicitation": {}})));
        let claims = SessionClaims::new(LEGACY[0], capabilities, Some("grüße/1".into()));
        let id = claims.sign(&Sealer::new(key.as_ref()));
        assert_eq!(
            SessionClaims::verify(&id, &Sealer::new(key.as_ref())),
            Some(claims)
        );
        assert_eq!(SessionClaims::verify(&id, &Sealer::new(None)), None);
        assert!(id.len() < 300, "{}", id.len());
        let sealer = Sealer::new(None);
        assert_eq!(
            SessionClaims::verify(&sealer.sign(r#"{"k":"a","v":"1999","c":0}"#), &sealer),
            None
        );
    }
}
