//! Why a login fails.

/// Why a login did not begin, or did not succeed. Texts hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The scenario takes no login.
    #[error("{0}")]
    NotTaken(String),
    /// There is no such login under way.
    #[error("{0}")]
    NotUnderWay(String),
    /// A server says something that cannot be used, or does not answer.
    #[error("{0}")]
    Unusable(String),
    /// The authorization server refused it.
    #[error("{0}")]
    Refused(String),
    /// The store did not take it, so that a restart undoes it.
    #[error("{0}")]
    NotStored(String),
}
