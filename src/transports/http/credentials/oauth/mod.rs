//! Tokens of authorization servers (OAuth 2). Today: those of a client without a person.

mod client_credentials;
mod token_request;

pub use client_credentials::OAuthTokens;
