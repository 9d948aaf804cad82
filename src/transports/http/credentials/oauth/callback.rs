//! Where the browser comes back to after a login: an address for all authorization servers, or one
//! for each of them. Which one a login needs is not decided here.

use sha2::{Digest as _, Sha256};
use url::Url;

use super::metadata::shown;
use crate::model::LoginCallback;
use crate::model::text::hexadecimal;

/// Bytes of the digest of an issuer that its address has.
const ISSUER_DIGEST_BYTES: usize = 12;

/// Where a browser can come back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackAddress {
    /// The address for all authorization servers.
    pub shared: Url,
    /// Whether the browser can come back to an address below it, too.
    pub takes_issuer_path: bool,
}

/// The address that one login comes back to.
#[derive(Debug, Clone)]
pub(super) struct LoginAddress {
    pub(super) url: Url,
    pub(super) kind: LoginCallback,
}

impl CallbackAddress {
    /// The address for all authorization servers.
    pub(super) fn for_all(&self) -> LoginAddress {
        LoginAddress {
            url: self.shared.clone(),
            kind: LoginCallback::Shared,
        }
    }

    /// The address for one authorization server alone. `None` where the browser cannot come back to
    /// it.
    pub(super) fn for_issuer(&self, issuer: &str) -> Option<LoginAddress> {
        if !self.takes_issuer_path {
            return None;
        }
        let digest = hexadecimal(&Sha256::digest(issuer)[..ISSUER_DIGEST_BYTES]);
        let mut url = self.shared.clone();
        url.set_path(&format!("{}/{digest}", url.path().trim_end_matches('/')));
        Some(LoginAddress {
            url,
            kind: LoginCallback::Issuer,
        })
    }
}

impl LoginAddress {
    /// Whether a browser came back to it that came back to this path. `None` is a program that
    /// knows the address for all authorization servers only.
    pub(super) fn is_at(&self, path: Option<&str>) -> bool {
        match path {
            Some(path) => path == self.url.path(),
            None => self.kind == LoginCallback::Shared,
        }
    }

    /// What is configured for a client at this authorization server, if it was registered by hand
    /// with this address.
    pub(super) fn client_example(&self, issuer: &str) -> String {
        let callback = match self.kind {
            LoginCallback::Shared => "",
            LoginCallback::Issuer => ", callback = \"issuer\"",
        };
        let issuer = shown(issuer);
        format!("auth = {{ oauth = {{ client_id = \"...\", issuer = \"{issuer}\"{callback} }} }}")
    }
}
