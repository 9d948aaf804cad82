//! Credentials for scenarios, of all kinds: how they are read, sent and renewed.
//!
//! ```text
//! SecretSource --secret_reader--> secret --+
//! oauth (tokens) --TokenSource-------------+--> bound (one target) --attempt--> headers
//!       ^                                                                          | refused
//!       +------------------------ renewed once <-- challenge <---------------------+
//! ```
//!
//! What is kept true here:
//!
//! - Credentials are bound to the origin of their target, and go nowhere else.
//! - A credential is renewed at most once for a request.
//! - A file is read for each request; what a program printed is used as long as it is configured.
//! - What was sent is remembered, so that it is masked where it comes back (`sent.rs`).
//! - What a server writes in `WWW-Authenticate` is read within bounds, and never an instruction.
//!
//! Read in this order: `bound.rs` (the credentials of one target), `attempt.rs` (those of one
//! request), `secret_reader.rs`, `token.rs` (what a source of tokens does), [`oauth`],
//! `challenge.rs` (why a server refused), `sent.rs`, `error.rs`.
//!
//! No part of a caller's request comes here, and no secret is ever shown.

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
