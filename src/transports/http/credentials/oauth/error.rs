//! Why a login fails.

use std::borrow::Cow;
use std::fmt;

use crate::model::WithNextStep;

/// Why a login did not begin, or did not succeed. Texts hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The scenario takes no login.
    #[error("{0}")]
    NotTaken(LoginProblem),
    /// There is no such login under way.
    #[error("{0}")]
    NotUnderWay(LoginProblem),
    /// A server says something that cannot be used, or does not answer.
    #[error("{0}")]
    Unusable(LoginProblem),
    /// The authorization server refused it.
    #[error("{0}")]
    Refused(LoginProblem),
    /// The store did not take it, so that a restart undoes it.
    #[error("{0}")]
    NotStored(LoginProblem),
}

/// What is wrong with a login, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginProblem {
    what: String,
    next: Option<String>,
}

impl LoginProblem {
    /// What is wrong, where the next step is known.
    pub(super) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            next: Some(next.into()),
        }
    }
}

impl From<String> for LoginProblem {
    fn from(what: String) -> Self {
        Self { what, next: None }
    }
}

impl fmt::Display for LoginProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.next {
            Some(next) => write!(f, "{}; {next}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl WithNextStep for LoginError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        let (Self::NotTaken(problem)
        | Self::NotUnderWay(problem)
        | Self::Unusable(problem)
        | Self::Refused(problem)
        | Self::NotStored(problem)) = self;
        problem.next.clone().map(Cow::Owned)
    }
}
