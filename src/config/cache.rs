//! `[cache]`: how the caching headers of answers are read.

use super::units::ValueError;
use crate::transports::http::CacheScope;

/// How the caching headers of answers are read (RFC 9111, RFC 5861), and which of our own rules
/// goes beyond them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// `scope`: whether this is one principal's cache or that of several.
    pub scope: CacheScope,
    /// `last_good`: whether the last good answer stays published while polls fail, even if its
    /// headers forbid that.
    pub last_good: bool,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            scope: CacheScope::Private,
            last_good: true,
        }
    }
}

/// Reads `scope`.
pub(super) fn scope(text: &str) -> Result<CacheScope, ValueError> {
    match text {
        "private" => Ok(CacheScope::Private),
        "shared" => Ok(CacheScope::Shared),
        _ => Err(ValueError::new(
            format!("{text:?} is not a scope of a cache"),
            "write \"private\" or \"shared\"",
        )),
    }
}
