//! What is shown to a scenario as a credential, as it is configured.
//!
//! Plain data: a file is named here and not read, a command is not run. What is secret is never
//! shown.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{HostRule, Secret};

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret itself.
    Text(Secret),
    /// A file with the text alone, read for each request, so that a change takes effect at once.
    File {
        /// The file.
        path: PathBuf,
        /// The key of a text in it (`table.key`), if it is a file of TOML.
        key: Option<String>,
    },
    /// What a program prints, without a shell.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// How long what it printed is used.
        every: Duration,
    },
}

/// The credential that is sent with requests to a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// A bearer token (RFC 6750 section 2.1).
    Bearer(SecretSource),
    /// A header of its own, such as `X-Api-Key`.
    Header(HeaderName, SecretSource),
    /// A name and a password (RFC 7617).
    Basic(String, SecretSource),
    /// A client of an authorization server.
    OAuth(Box<OAuthClient>),
}

/// A client that is registered with an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// Where tokens are requested without a person (RFC 6749 section 4.4). `None` where a person
    /// logs in.
    pub token_url: Option<Url>,
    /// `client_id`
    pub client_id: String,
    /// `client_secret`, of a client that has one.
    pub client_secret: Option<SecretSource>,
    /// `scope`, one by one.
    pub scopes: Vec<String>,
    /// `resource` (RFC 8707); the address of the scenario by default.
    pub resource: Option<Url>,
    /// `issuer`: the authorization server of a login, as it names itself. `None` where the scenario
    /// may name it.
    pub issuer: Option<String>,
    /// `callback`: which address is registered for a login with this client.
    pub callback: LoginCallback,
    /// The hosts that tokens may be requested from, if `token_url` was not written by the operator.
    /// The resolved address is checked, too.
    pub token_hosts: Option<Vec<HostRule>>,
}

/// Which address the browser comes back to after a login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LoginCallback {
    /// The one for all authorization servers.
    #[default]
    Shared,
    /// The one for its authorization server alone, which ends with a digest of its issuer.
    Issuer,
}

impl From<Secret> for SecretSource {
    fn from(secret: Secret) -> Self {
        Self::Text(secret)
    }
}

impl SecretSource {
    /// Adds to the digest of a target.
    pub(super) fn add_to(&self, hash: &mut Sha256) {
        match self {
            Self::Text(secret) => feed(hash, secret.expose().as_bytes()),
            Self::File { path, key } => {
                feed(hash, b"file");
                feed(hash, path.as_os_str().as_encoded_bytes());
                feed(hash, key.as_deref().unwrap_or_default().as_bytes());
            }
            Self::Command { command, every: _ } => {
                feed(hash, b"command");
                for part in command {
                    feed(hash, part.as_bytes());
                }
            }
        }
    }
}

impl Auth {
    /// Adds to the digest of a target. Of a bearer token it is the token alone, as it always was.
    pub(super) fn add_to(&self, hash: &mut Sha256) {
        match self {
            Self::Bearer(source) => source.add_to(hash),
            Self::Header(name, source) => {
                feed(hash, name.as_str().as_bytes());
                source.add_to(hash);
            }
            Self::Basic(user, source) => {
                feed(hash, user.as_bytes());
                source.add_to(hash);
            }
            Self::OAuth(client) => {
                feed(
                    hash,
                    client
                        .token_url
                        .as_ref()
                        .map(Url::as_str)
                        .unwrap_or_default()
                        .as_bytes(),
                );
                feed(hash, client.client_id.as_bytes());
                if let Some(secret) = &client.client_secret {
                    secret.add_to(hash);
                }
            }
        }
    }
}

/// Every part goes in with its length, so that no two sequences of parts are the same bytes.
pub(super) fn feed(hash: &mut Sha256, part: &[u8]) {
    hash.update(part.len().to_be_bytes());
    hash.update(part);
}
