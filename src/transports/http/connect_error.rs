//! Why no connection was made, for those who judge it.

use std::error::Error;
use std::{fmt, io};

/// What the client and its parts fail with before it is judged.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// Why a proxy did not lead to a host.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy}: {message}")]
pub(super) struct ProxyError {
    /// The proxy, without its name and password.
    pub(super) proxy: String,
    /// What went wrong.
    pub(super) message: String,
}

/// A host name without an address. It distinguishes this failure from those of connecting.
#[derive(Debug)]
pub(super) struct Unresolved(pub(super) io::Error);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host name has no address")
    }
}

impl Error for Unresolved {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
