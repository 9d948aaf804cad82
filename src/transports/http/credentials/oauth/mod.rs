//! Tokens of authorization servers (OAuth 2).
//!
//! ```text
//! without a person: client_credentials ---------------------------> token_request -> token
//! login: flow -> metadata (scenario, its server) -> client (callsheet's identity there)
//!          `---> browser -> flow (its answer) --------------------> token_request -> held, stored
//! ```
//!
//! What is kept true here:
//!
//! - An address that a server named is requested only if `guard.rs` admits it: https, and public
//!   unless the operator named the host (or the scenario is on loopback itself). The address that
//!   was checked is dialled.
//! - Without a person, one request for a token serves all that wait for it.
//! - A login is renewed before it lapses, and is kept over restarts. Tokens without a person are
//!   kept in memory only.
//! - A logout succeeds whether or not the server revokes the tokens.
//!
//! Read in this order:
//!
//! 1. `settings.rs`, `sources.rs` ([`OAuthTokens`]: the sources of all scenarios), `status.rs`,
//!    `error.rs`.
//! 2. `metadata.rs`, `guard.rs`, `scopes.rs`, `client.rs`, `token_request.rs`.
//! 3. `client_credentials.rs`; then a login: `flow.rs`, `pending.rs`, `random.rs`, `login.rs`,
//!    `callback.rs` (the addresses that the browser comes back to), `held.rs`, `stored.rs`,
//!    `logout.rs`.

mod callback;
mod client;
mod client_credentials;
mod error;
mod flow;
mod guard;
mod held;
mod login;
mod logout;
mod metadata;
mod pending;
mod random;
mod scopes;
mod settings;
mod sources;
mod status;
mod stored;
mod token_request;

pub use callback::CallbackAddress;
pub use error::{LoginError, LoginProblem};
pub use flow::{LoginRedirect, StartedLogin};
pub use settings::{LoginSettings, LoginStore};
pub use sources::OAuthTokens;
pub use status::{LoginState, LoginStatus, Logout, Revocation};
