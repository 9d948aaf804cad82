//! A local network of a test's own: mDNS on a free UDP port of the loopback interface. Nothing
//! leaves the machine, and no test hears another.

use std::net::UdpSocket;
use std::time::Duration;

use callsheet::config;
use callsheet::discovery::mdns::{MdnsSource, SERVICE_TYPE};
use callsheet::runtime::Clock;
use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};

/// How long mdns-sd may take to answer a command.
const PATIENCE: Duration = Duration::from_secs(10);

/// One network.
pub(crate) struct Network {
    pub(crate) port: u16,
}

/// Somebody on it, who announces whatever he is told to.
pub(crate) struct Neighbour {
    daemon: ServiceDaemon,
}

impl Network {
    pub(crate) fn new() -> Self {
        let port = UdpSocket::bind("0.0.0.0:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        Self { port }
    }

    /// The section of a daemon on this network.
    pub(crate) fn section(&self) -> config::MdnsConfig {
        config::MdnsConfig {
            enabled: true,
            port: self.port,
            interfaces: vec!["loopback".into()],
            id: Some("our-own-id".into()),
            ..config::MdnsConfig::default()
        }
    }

    pub(crate) fn source(&self) -> Box<MdnsSource> {
        self.source_with(|_| {})
    }

    pub(crate) fn source_with(
        &self,
        change: impl FnOnce(&mut config::MdnsConfig),
    ) -> Box<MdnsSource> {
        let mut section = self.section();
        change(&mut section);
        Box::new(MdnsSource::new(section, Clock::system()))
    }

    pub(crate) fn neighbour(&self) -> Neighbour {
        let daemon = ServiceDaemon::new_with_port(self.port).unwrap();
        daemon.disable_interface(IfKind::All).unwrap();
        daemon.enable_interface(IfKind::LoopbackV4).unwrap();
        Neighbour { daemon }
    }
}

impl Neighbour {
    /// Announces a scenario on a port of this machine.
    pub(crate) fn announce(&self, instance: &str, port: u16, txt: &[(&str, &str)]) {
        self.announce_as(SERVICE_TYPE, instance, port, txt);
    }

    pub(crate) fn announce_as(
        &self,
        service_type: &str,
        instance: &str,
        port: u16,
        txt: &[(&str, &str)],
    ) {
        let full = format!("{service_type}.local.");
        let mut service =
            ServiceInfo::new(&full, instance, "neighbour.local.", "127.0.0.1", port, txt).unwrap();
        // The names on a test's own network are free.
        service.set_requires_probe(false);
        // Its queue of commands is short.
        while let Err(error) = self.daemon.register(service.clone()) {
            assert_eq!(error, mdns_sd::Error::Again);
            std::thread::yield_now();
        }
    }

    /// Says goodbye for one.
    pub(crate) fn take_back(&self, instance: &str) {
        let ended = self
            .daemon
            .unregister(&format!("{instance}.{SERVICE_TYPE}.local."))
            .unwrap();
        ended.recv_timeout(PATIENCE).unwrap();
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        if let Ok(ended) = self.daemon.shutdown() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}
