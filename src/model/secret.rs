//! Secrets: texts that are never shown.

use std::fmt;
use std::sync::Arc;

/// A secret, such as a bearer token. It is always printed as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("topsecret");
        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(secret.expose(), "topsecret");
    }
}
