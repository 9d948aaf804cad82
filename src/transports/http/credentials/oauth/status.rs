//! The words for what is known of a login. Nothing here is secret.

use jiff::Timestamp;

/// The state of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    /// There is no login.
    LoggedOut,
    /// A person has to finish it in a browser.
    Waiting,
    /// Its tokens are used.
    LoggedIn,
    /// It was refused when it was to be renewed.
    Ended,
}

impl LoginState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::LoggedOut, Self::Waiting, Self::LoggedIn, Self::Ended];

    /// The word that programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoggedOut => "logged-out",
            Self::Waiting => "waiting",
            Self::LoggedIn => "logged-in",
            Self::Ended => "ended",
        }
    }
}

/// What is known of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginStatus {
    /// Its state.
    pub state: LoginState,
    /// The authorization server.
    pub issuer: Option<String>,
    /// What its token allows, as far as the server said.
    pub scopes: Vec<String>,
    /// When its token lapses, as far as the server said.
    pub expires_at: Option<Timestamp>,
    /// Whether it is renewed without a person.
    pub renews: bool,
    /// Why it ended, or why it could not be renewed.
    pub reason: Option<String>,
}

/// What became of a login that was forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logout {
    /// Whether there was a login, or one under way.
    pub was_logged_in: bool,
    /// What became of its tokens at the authorization server.
    pub revocation: Revocation,
}

/// What became of tokens at the server that gave them (RFC 7009).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// There were none.
    NotNeeded,
    /// The server accepts them no more.
    Revoked,
    /// They may be accepted until they lapse. The text says why.
    NotRevoked(String),
}
