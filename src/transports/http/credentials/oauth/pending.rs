//! A login that was begun and is not finished yet.

use tokio::time::Instant;

use super::callback::LoginAddress;
use super::client::LoginClient;
use super::metadata::ServerMetadata;

/// A login that waits for a person.
pub(super) struct PendingLogin {
    pub(super) until: Instant,
    pub(super) state: String,
    /// The proof key (RFC 7636).
    pub(super) verifier: String,
    pub(super) address: LoginAddress,
    pub(super) server: ServerMetadata,
    pub(super) resource: String,
    pub(super) client: LoginClient,
    pub(super) scopes: Vec<String>,
}
