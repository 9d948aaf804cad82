//! Tokens of authorization servers (OAuth 2).
//!
//! [`OAuthTokens`] has the sources of all scenarios: `client_credentials` gets tokens without a
//! person, `login` keeps and renews those of a login. A login goes through `flow`: `metadata` finds
//! the authorization server, `callback` has the addresses that the browser comes back to, `client`
//! is the identity of callsheet there, `random` makes texts that cannot be guessed. `guard` decides
//! which addresses are requested on the word of a server, `token_request` requests a token,
//! `logout` has tokens revoked, `held` is a login as it is used, `stored` is what of it outlives
//! the process.

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
