//! On which interfaces the local network can be listened to, found out by joining the group as
//! mdns-sd does it (RFC 6762 section 3).
//!
//! Sends no mDNS message. The system itself may inform routers that the group was joined (IGMP,
//! MLD) and left. That a firewall drops what comes in cannot be seen from here.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use callsheet_provide::mdns::LOOPBACK;
use if_addrs::Interface;
use socket2::{Domain, Socket, Type};

use crate::config;

const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);

/// How one interface can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceReach {
    /// Its name.
    pub interface: String,
    /// Why listening on it is impossible; `None` if listening works on one of its addresses.
    pub trouble: Option<String>,
}

/// Every interface that `[discovery.mdns]` chooses, by name: those that it names, whether they are
/// there or not, else all that are up but the loopback ones.
///
/// # Errors
/// The system does not list its interfaces.
pub fn interfaces(section: &config::MdnsConfig) -> io::Result<Vec<InterfaceReach>> {
    let mut chosen: BTreeMap<&str, Vec<&Interface>> = BTreeMap::new();
    let all = if_addrs::get_if_addrs()?;
    for name in &section.interfaces {
        let of_name = |interface: &&Interface| {
            if name == LOOPBACK {
                interface.is_loopback() && interface.ip().is_ipv4()
            } else {
                interface.name == *name
            }
        };
        chosen.insert(name, all.iter().filter(of_name).collect());
    }
    if section.interfaces.is_empty() {
        for interface in all
            .iter()
            .filter(|interface| !interface.is_loopback() && interface.is_oper_up())
        {
            chosen.entry(&interface.name).or_default().push(interface);
        }
    }
    let reach = |(name, addresses): (&str, Vec<&Interface>)| InterfaceReach {
        interface: name.to_owned(),
        trouble: trouble(&addresses, section.port),
    };
    Ok(chosen.into_iter().map(reach).collect())
}

/// What stands in the way of all addresses of an interface.
fn trouble(addresses: &[&Interface], port: u16) -> Option<String> {
    if addresses.is_empty() {
        return Some("there is no such interface, or it has no address".to_owned());
    }
    let mut failed = None;
    for interface in addresses {
        match join(interface, port) {
            Ok(()) => return None,
            Err(error) => failed = Some(error.to_string()),
        }
    }
    failed
}

/// Joins the group on the interface of this address, and leaves it again when the socket is closed.
fn join(interface: &Interface, port: u16) -> io::Result<()> {
    let ip = interface.ip();
    let any: IpAddr = if ip.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let any = SocketAddr::new(any, port);
    let socket = Socket::new(Domain::for_address(any), Type::DGRAM, None)?;
    // Others on this machine listen on the same port.
    socket.set_reuse_address(true)?;
    #[cfg(unix)]
    socket.set_reuse_port(true)?;
    if ip.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&any.into())?;
    match ip {
        IpAddr::V4(ip) => socket.join_multicast_v4(&GROUP_V4, &ip),
        IpAddr::V6(_) => socket.join_multicast_v6(&GROUP_V6, interface.index.unwrap_or(0)),
    }
}
