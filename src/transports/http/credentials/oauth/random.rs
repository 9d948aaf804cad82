//! Texts that cannot be guessed: `state` and the proof key of a login (RFC 7636).

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

/// 32 random bytes as text. `None` if the system has no random numbers.
pub(super) fn text() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// The challenge of a proof key by the method `S256` (RFC 7636 section 4.2).
pub(super) fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_specification() {
        // RFC 7636 appendix B.
        let made = challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(made, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(text(), text());
        assert_eq!(text().map(|text| text.len()), Some(43));
    }
}
