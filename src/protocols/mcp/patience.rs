//! The limits for the first answers of programs.

use std::time::Duration;

/// How long a program may take for its first answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// To the greeting of the modern era; after it the other one is sent as well.
    pub first: Duration,
    /// To the other one. Commands such as `npx` and `uvx` download the server at their first start.
    pub start: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(10),
            start: Duration::from_secs(120),
        }
    }
}
