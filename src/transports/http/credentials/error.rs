//! Why there is no credential to show.

/// Why there is no credential. Texts hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// It cannot be read where the configuration says it is, or it can be shown in no header.
    #[error("{0}")]
    Unreadable(String),
    /// A person has to log in: there is no login, or it was refused when it was to be renewed.
    #[error("{0}")]
    LoginNeeded(String),
    /// An authorization server does not answer as it should; a later request may succeed.
    #[error("{0}")]
    Unavailable(String),
}

impl CredentialError {
    /// Whether it stays until an operator does something.
    pub fn needs_operator(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::LoginNeeded(_) => true,
            Self::Unavailable(_) => false,
        }
    }
}
