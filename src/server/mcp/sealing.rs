//! What the daemon gives to clients and takes back unchanged: ids of sessions, which are signed,
//! and states of requests, which are encrypted too.
//!
//! Both keys come from one key that the store keeps, so what was given out stays valid over a
//! restart. This module knows no message and keeps nothing.

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::model::Secret;

/// Bytes of the key that the store keeps.
const KEY_BYTES: usize = 32;
/// The most characters that are decoded. What is longer was not given out here.
const SEALED_CHARACTERS_MAX: usize = 64 * 1024;

/// A new key as the store keeps it, in base64. `None` if the system has no random numbers.
pub(in crate::server) fn new_key() -> Option<Secret> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut key).ok()?;
    Some(Secret::new(BASE64_STANDARD.encode(key)))
}

/// Signs and encrypts.
pub(super) struct Sealer {
    signing: hmac::Key,
    /// `None` if the cipher cannot be had.
    cipher: Option<LessSafeKey>,
    random: SystemRandom,
}

impl Sealer {
    /// With the key of the store. A key that cannot be read is replaced by one that lives as long
    /// as the process.
    pub(super) fn new(key: Option<&Secret>) -> Self {
        let stored = key.and_then(|key| BASE64_STANDARD.decode(key.expose()).ok());
        let stored = stored.filter(|key| key.len() == KEY_BYTES);
        let key = stored
            .or_else(|| BASE64_STANDARD.decode(new_key()?.expose()).ok())
            .unwrap_or_default();
        let root = hmac::Key::new(hmac::HMAC_SHA256, &key);
        // One key for each use, so that nothing made for one is taken for the other.
        let own = |label: &[u8]| hmac::sign(&root, label);
        let cipher = UnboundKey::new(
            &CHACHA20_POLY1305,
            own(b"callsheet mcp request state").as_ref(),
        );
        Self {
            signing: hmac::Key::new(hmac::HMAC_SHA256, own(b"callsheet mcp session id").as_ref()),
            cipher: cipher
                .ok()
                .filter(|_| key.len() == KEY_BYTES)
                .map(LessSafeKey::new),
            random: SystemRandom::new(),
        }
    }

    /// A text with its signature, in characters that may stand in a header.
    pub(super) fn sign(&self, text: &str) -> String {
        let signature = hmac::sign(&self.signing, text.as_bytes());
        format!(
            "{}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(text),
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        )
    }

    /// The text that was signed here. `None` for everything else.
    pub(super) fn verify(&self, signed: &str) -> Option<String> {
        let (text, signature) = signed
            .split_once('.')
            .filter(|_| signed.len() <= SEALED_CHARACTERS_MAX)?;
        let text = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.signing, &text, &signature).ok()?;
        String::from_utf8(text).ok()
    }

    /// A text that only this key can read, and only together with the same `bound`. `None` if the
    /// system has no random numbers.
    pub(super) fn seal(&self, text: &str, bound: &str) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut sealed = text.as_bytes().to_vec();
        let value = Nonce::assume_unique_for_key(nonce);
        let bound = Aad::from(bound.as_bytes());
        self.cipher
            .as_ref()?
            .seal_in_place_append_tag(value, bound, &mut sealed)
            .ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// The text that was sealed here with the same `bound`. `None` for everything else.
    pub(super) fn open(&self, sealed: &str, bound: &str) -> Option<String> {
        let mut sealed = BASE64_URL_SAFE_NO_PAD
            .decode(Some(sealed).filter(|text| text.len() <= SEALED_CHARACTERS_MAX)?)
            .ok()?;
        let nonce = sealed.first_chunk::<NONCE_LEN>().copied()?;
        let value = Nonce::assume_unique_for_key(nonce);
        let bound = Aad::from(bound.as_bytes());
        let text = self
            .cipher
            .as_ref()?
            .open_within(value, bound, &mut sealed, NONCE_LEN..)
            .ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_is_read_with_the_same_key_only() {
        let key = new_key().unwrap();
        let signed = Sealer::new(Some(&key)).sign("{\"a\":1}");
        assert!(
            signed.bytes().all(|byte| byte.is_ascii_graphic()),
            "{signed}"
        );
        assert_eq!(
            Sealer::new(Some(&key)).verify(&signed).as_deref(),
            Some("{\"a\":1}")
        );
        assert_eq!(Sealer::new(None).verify(&signed), None);
        for forged in [
            "",
            ".",
            "a.b",
            &signed[1..],
            &format!("{signed}A"),
            &format!("x{signed}"),
        ] {
            assert_eq!(Sealer::new(Some(&key)).verify(forged), None, "{forged}");
        }
    }

    #[test]
    fn what_was_sealed_is_read_with_the_same_key_and_purpose_only() {
        let key = new_key().unwrap();
        let sealer = Sealer::new(Some(&key));
        let text = sealer.seal("secret", "tool a").unwrap();
        assert!(!text.contains("secret") && text != sealer.seal("secret", "tool a").unwrap());
        assert_eq!(
            Sealer::new(Some(&key)).open(&text, "tool a").as_deref(),
            Some("secret")
        );
        assert_eq!(sealer.open(&text, "tool b"), None);
        assert_eq!(Sealer::new(None).open(&text, "tool a"), None);
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(&text).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(
                sealer.open(&BASE64_URL_SAFE_NO_PAD.encode(&bytes), "tool a"),
                None,
                "byte {at}"
            );
            bytes[at] ^= 1;
        }
        assert_eq!(sealer.open("", "tool a"), None);
    }
}
