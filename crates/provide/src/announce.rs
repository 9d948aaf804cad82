//! Announcing a scenario on the local network, and withdrawing the announcement.
//!
//! The record has the path of the list and the identity of the scenario:
//! `txtvers=1 path=... proto=1.0 id=<id> boot=<random>`. `boot` is new for each announcement that
//! is started, so that consumers notice a restart. A scenario that listens on loopback only is
//! announced on loopback only, and one that listens on one address is announced on the interface of
//! that address, so that no client gets an address at which it cannot be reached.
//!
//! ```no_run
//! use callsheet_provide::Announcement;
//!
//! # async fn announce(listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
//! let announced = Announcement::new("library", listener.local_addr()?, "0b1c6c4e-6f0a-4a0e-9d0c-2b7b1a0f5a11")
//!     .start()
//!     .await?;
//! // ... serve until told to stop, then:
//! announced.goodbye().await;
//! # Ok(())
//! # }
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use mdns_sd::{IfKind, ServiceInfo};

use crate::mdns::{self, MdnsDaemon};

/// The DNS-SD service type of what speaks the Tool Discovery Protocol, without its domain.
pub const SERVICE_TYPE: &str = "_agent-tools._tcp";
/// The version of the protocol that is announced.
const PROTOCOL_VERSION: &str = "1.0";
/// How long the goodbye is waited for.
const GOODBYE: Duration = Duration::from_secs(1);
/// The goodbye is sent a second time this much later, for those that missed it.
const SECOND_GOODBYE: Duration = Duration::from_millis(150);

/// What to announce. Made with [`Announcement::new`], changed by its methods, begun with
/// [`Announcement::start`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    name: String,
    listen: SocketAddr,
    id: String,
    path: String,
    tls: bool,
    port: u16,
    interfaces: Vec<String>,
}

/// An active announcement. End it with [`goodbye`](Self::goodbye): if it is dropped, the message of
/// its end is sent without waiting.
pub struct Announced {
    mdns: MdnsDaemon,
    fullname: String,
}

/// An announcement that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` cannot be announced on the local network: {message}")]
pub struct AnnounceError {
    /// The name that was to be announced.
    pub name: String,
    /// What stood in the way.
    pub message: String,
}

impl Announcement {
    /// Announces the server at `listen` under `name` (at most 63 bytes; if another program has the
    /// name, it becomes `name (2)`). `id` says who it is wherever it runs: make it once for an
    /// installation, such as a UUID, and keep it.
    pub fn new(name: impl Into<String>, listen: SocketAddr, id: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            listen,
            id: id.into(),
            path: "/api/v1/tools".to_owned(),
            tls: false,
            port: 5353,
            interfaces: Vec::new(),
        }
    }

    /// The path of the list, ending in `/api/v1/tools`, when there is a prefix before it.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Clients use https.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Another UDP port than 5353, for a network of one's own.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Only on these interfaces, by name, where `loopback` is that of IPv4. It matters for what
    /// listens on all addresses; what listens on one is announced on its interface.
    #[must_use]
    pub fn interfaces(mut self, interfaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.interfaces = interfaces.into_iter().map(Into::into).collect();
        self
    }

    /// Begins to announce. It is heard about a second later: the name is looked for on the network
    /// first (RFC 6762 section 8.1).
    pub async fn start(self) -> Result<Announced, AnnounceError> {
        let failed = |error: mdns_sd::Error| AnnounceError {
            name: self.name.clone(),
            message: error.to_string(),
        };
        let service = self.service().map_err(failed)?;
        let fullname = service.get_fullname().to_owned();
        let mdns = MdnsDaemon::open(self.port, self.kinds())
            .await
            .map_err(failed)?;
        mdns.command(|daemon| daemon.register(service.clone()))
            .await
            .map_err(failed)?;
        Ok(Announced { mdns, fullname })
    }

    fn service(&self) -> Result<ServiceInfo, mdns_sd::Error> {
        let boot = format!("{:032x}", fastrand::u128(..));
        let mut record = vec![
            ("txtvers", "1"),
            ("path", self.path.as_str()),
            ("proto", PROTOCOL_VERSION),
            ("id", self.id.as_str()),
            ("boot", &boot),
        ];
        if self.tls {
            record.push(("tls", "1"));
        }
        // A host name of its own: its addresses are those of the interfaces that are used here, not
        // all of the machine.
        let host = format!(
            "callsheet-{:016x}.local.",
            xxhash_rust::xxh3::xxh3_64(self.id.as_bytes())
        );
        let full_type = format!("{SERVICE_TYPE}.local.");
        let ip = self.listen.ip();
        let port = self.listen.port();
        if ip.is_unspecified() {
            return Ok(
                ServiceInfo::new(&full_type, &self.name, &host, "", port, &record[..])?
                    .enable_addr_auto(),
            );
        }
        ServiceInfo::new(&full_type, &self.name, &host, ip, port, &record[..])
    }

    /// The interfaces on which what listens can be reached.
    fn kinds(&self) -> Vec<IfKind> {
        match self.listen.ip() {
            ip if ip.is_unspecified() => mdns::interface_kinds(&self.interfaces),
            IpAddr::V4(ip) if ip.is_loopback() => vec![IfKind::LoopbackV4],
            IpAddr::V6(Ipv6Addr::LOCALHOST) => vec![IfKind::LoopbackV6],
            ip => vec![IfKind::Addr(ip)],
        }
    }
}

impl Announced {
    /// Withdraws the announcement, so that consumers notice at once. Waits at most about a second.
    pub async fn goodbye(self) {
        let Self { mdns, fullname } = self;
        let said = async {
            if let Ok(status) = mdns.command(|daemon| daemon.unregister(&fullname)).await {
                // An error means that mDNS has ended already.
                let _ = status.recv_async().await;
                tokio::time::sleep(SECOND_GOODBYE).await;
            }
        };
        tokio::select! {
            () = said => {}
            () = tokio::time::sleep(GOODBYE) => tracing::debug!("the goodbye took too long"),
        }
        mdns.close().await;
    }
}

impl std::fmt::Debug for Announced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announced")
            .field("fullname", &self.fullname)
            .finish_non_exhaustive()
    }
}
