//! Credentials for scenarios, of all kinds: how they are read, sent and renewed.
//!
//! Reading order: `bound` has the credentials of one target, which go to its origin and nowhere
//! else; `attempt` has those of one request, which are renewed at most once; `secret_reader` reads
//! secrets where they are; `token` says what a source of tokens does, and [`oauth`] gets those of
//! authorization servers; `challenge` reads why a server refused; `sent`
//! remembers what was sent, to mask it in answers. Nothing of a caller's request
//! comes here, and no secret is ever shown.

mod attempt;
mod bound;
mod challenge;
mod error;
pub mod oauth;
mod secret_reader;
mod sent;
mod token;

pub(super) use attempt::Attempt;
pub use bound::{AppliedCredentials, Credentials};
pub use challenge::Challenge;
pub use error::CredentialError;
pub use secret_reader::SecretReader;
pub(crate) use secret_reader::read_secret;
pub use token::{Token, TokenSource, TokenSources};
