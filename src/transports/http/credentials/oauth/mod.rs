//! Tokens of authorization servers (OAuth 2).
//!
//! [`OAuthTokens`] has the sources of all scenarios: `client_credentials` gets tokens without a
//! person, `login` keeps and renews those of a login. A login goes through `flow`: `metadata` finds
//! the authorization server, `client` is who callsheet is there, `random` makes what nobody can
//! guess. `guard` decides which addresses are requested on the word of a server, `token_request`
//! requests a token, `stored` is what outlives the process.

mod client;
mod client_credentials;
mod flow;
mod guard;
mod login;
mod metadata;
mod pending;
mod random;
mod settings;
mod sources;
mod stored;
mod token_request;

pub use flow::{LoginError, LoginRedirect, StartedLogin};
pub use login::{LoginState, LoginStatus};
pub use settings::{LoginSettings, LoginStore};
pub use sources::OAuthTokens;
