//! Connecting to a given address instead of looking up the host name.
//!
//! Some names only a source can resolve, and some addresses no URL can write (a link-local IPv6 address with its interface). The name
//! stays in the request, for the `Host` header and for TLS; where it leads comes with each request.

use std::future;
use std::io;
use std::iter;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

tokio::task_local! {
    /// Where the request of this task connects. A request resolves within the task that sends it.
    pub(super) static TARGET: SocketAddr;
}

/// Resolves every name to [`TARGET`].
pub(super) struct Given;

impl Resolve for Given {
    fn resolve(&self, _: Name) -> Resolving {
        let target = TARGET.try_with(|target| Box::new(iter::once(*target)) as Addrs);
        Box::pin(future::ready(target.map_err(|_| io::Error::other("no address was given").into())))
    }
}
