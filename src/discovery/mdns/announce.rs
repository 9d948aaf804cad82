//! Announcing a scenario on the local network, and saying goodbye.
//!
//! The record says where the list is and who offers it: `txtvers=1 path=... proto=1.0 id=<id> boot=<random>`. `boot` is new for each
//! announcement that is started, so that whoever listens sees a restart. What listens on loopback only is announced on loopback only, and
//! what listens on one address is announced on its interface: nobody is told an address where nothing answers.

use std::future::Future;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use mdns_sd::{IfKind, ServiceInfo};

use super::SERVICE_TYPE;
use super::radio::{self, Radio};
use crate::config;
use crate::runtime::Clock;

/// The version of the protocol that is announced.
const PROTOCOL_VERSION: &str = "1.0";
/// How long the goodbye is waited for.
const GOODBYE: Duration = Duration::from_secs(1);
/// The goodbye is sent a second time this much later, for those that missed it.
const SECOND_GOODBYE: Duration = Duration::from_millis(150);

/// What to announce. Made with [`Announcement::new`], changed by its methods, begun with [`Announcement::start`].
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

/// An announcement in force. Say [`goodbye`](Self::goodbye) to it: dropped, it says goodbye without being waited for.
pub struct Announced {
    radio: Radio,
    fullname: String,
    clock: Clock,
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
    /// Announces what listens at `listen` under `name` (at most 63 bytes; another who has the name makes it `name (2)`). `id` says who
    /// it is wherever it runs: make it once for an installation, such as a UUID, and keep it.
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

    /// It is to be asked by https.
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

    /// Only on these interfaces, by name, where `loopback` is that of IPv4. It matters for what listens on all addresses; what listens
    /// on one is announced on its interface.
    #[must_use]
    pub fn interfaces(mut self, interfaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.interfaces = interfaces.into_iter().map(Into::into).collect();
        self
    }

    /// Begins to announce. It is heard about a second later: the name is looked for on the network first (RFC 6762 section 8.1).
    pub async fn start(self, clock: Clock) -> Result<Announced, AnnounceError> {
        let failed = |error: mdns_sd::Error| AnnounceError { name: self.name.clone(), message: error.to_string() };
        let service = self.service().map_err(failed)?;
        let fullname = service.get_fullname().to_owned();
        let radio = Radio::open(self.port, self.kinds(), clock).await.map_err(failed)?;
        radio.command(|daemon| daemon.register(service.clone())).await.map_err(failed)?;
        Ok(Announced { radio, fullname, clock })
    }

    fn service(&self) -> Result<ServiceInfo, mdns_sd::Error> {
        let boot = uuid::Uuid::new_v4().simple().to_string();
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
        // A host name of its own: its addresses are those of the interfaces that are used here, not all of the machine.
        let host = format!("callsheet-{:016x}.local.", xxhash_rust::xxh3::xxh3_64(self.id.as_bytes()));
        let full_type = format!("{SERVICE_TYPE}.local.");
        let ip = self.listen.ip();
        let port = self.listen.port();
        if ip.is_unspecified() {
            return Ok(ServiceInfo::new(&full_type, &self.name, &host, "", port, &record[..])?.enable_addr_auto());
        }
        ServiceInfo::new(&full_type, &self.name, &host, ip, port, &record[..])
    }

    /// The interfaces on which what listens can be reached.
    fn kinds(&self) -> Vec<IfKind> {
        match self.listen.ip() {
            ip if ip.is_unspecified() => radio::kinds(&self.interfaces),
            IpAddr::V4(ip) if ip.is_loopback() => vec![IfKind::LoopbackV4],
            IpAddr::V6(Ipv6Addr::LOCALHOST) => vec![IfKind::LoopbackV6],
            ip => vec![IfKind::Addr(ip)],
        }
    }
}

/// Announces this daemon, when that is switched on, until `until` completes. What stands in the way is logged: a daemon that cannot be
/// heard of still serves whoever knows it.
pub(crate) async fn own(section: &config::Mdns, listen: SocketAddr, clock: Clock, until: impl Future<Output = ()>) {
    let (true, Some(id)) = (section.announce, &section.id) else { return };
    if listen.ip().is_loopback() {
        tracing::info!("announced on this machine only: nothing else can reach a loopback address");
    }
    let announcement =
        Announcement::new(&section.name, listen, id).port(section.port).interfaces(section.interfaces.iter().cloned());
    match announcement.start(clock).await {
        Ok(announced) => {
            until.await;
            announced.goodbye().await;
        }
        Err(error) => tracing::warn!("{error}"),
    }
}

impl Announced {
    /// Takes it back, so that whoever listens hears it at once, and waits for that at most about a second.
    pub async fn goodbye(self) {
        let Self { radio, fullname, clock } = self;
        let said = async {
            if let Ok(status) = radio.command(|daemon| daemon.unregister(&fullname)).await {
                // An error means that mDNS has ended already.
                let _ = status.recv_async().await;
                clock.sleep(SECOND_GOODBYE).await;
            }
        };
        tokio::select! {
            () = said => {}
            () = clock.sleep(GOODBYE) => tracing::debug!("the goodbye took too long"),
        }
        radio.close().await;
    }
}

impl std::fmt::Debug for Announced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announced").field("fullname", &self.fullname).finish_non_exhaustive()
    }
}
