//! The addresses of this machine, each with its interface, as the system lists them now.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::received::ReceivedAddress;

/// The addresses of this machine.
#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    /// With the index of the interface that has it.
    held: BTreeSet<(IpAddr, u32)>,
    /// The indices of the loopback interfaces.
    loopbacks: BTreeSet<u32>,
}

impl OwnAddresses {
    /// Those of every interface. Empty when the system does not list them.
    pub(super) fn now() -> Self {
        let interfaces = interfaces();
        Self::from_interfaces(
            interfaces
                .iter()
                .map(|one| (one.ip(), one.index.unwrap_or_default(), one.is_loopback())),
        )
    }

    fn from_interfaces(interfaces: impl Iterator<Item = (IpAddr, u32, bool)>) -> Self {
        let mut own = Self::default();
        for (ip, index, is_loopback) in interfaces {
            own.held.insert((ip, index));
            if is_loopback {
                own.loopbacks.insert(index);
            }
        }
        own
    }

    /// Whether an address is of this machine, as far as the interface shows over which it was
    /// received: the one that has the address, or loopback. Any host may announce the address of
    /// another one, and link-local addresses are unique on their link only.
    pub(super) fn has(&self, at: &ReceivedAddress) -> bool {
        let link_local = matches!(at.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let held_somewhere = || self.held.iter().any(|(ip, _)| *ip == at.ip);
        at.ip.is_loopback()
            || self.held.contains(&(at.ip, at.scope))
            || !link_local && self.loopbacks.contains(&at.scope) && held_somewhere()
    }
}

/// The names of the loopback interfaces.
pub(super) fn loopback_interfaces() -> BTreeSet<String> {
    interfaces()
        .into_iter()
        .filter(if_addrs::Interface::is_loopback)
        .map(|interface| interface.name)
        .collect()
}

fn interfaces() -> Vec<if_addrs::Interface> {
    if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::debug!(%error, "the system does not list its interfaces");
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_address_counts_over_the_interface_that_has_it() {
        let interfaces = [
            ("127.0.0.1", 1, true),
            ("10.0.0.5", 2, false),
            ("fe80::1", 2, false),
            ("fe80::1", 4, false),
        ];
        let interfaces =
            interfaces.map(|(ip, index, loopback)| (ip.parse().unwrap(), index, loopback));
        let own = OwnAddresses::from_interfaces(interfaces.into_iter());
        for (ip, scope, expected) in [
            ("127.0.0.1", 1, true),
            ("10.0.0.5", 2, true),
            ("10.0.0.5", 1, true),
            ("10.0.0.5", 3, false),
            ("10.0.0.6", 2, false),
            ("fe80::1", 2, true),
            ("fe80::1", 4, true),
            ("fe80::1", 3, false),
            ("fe80::1", 1, false),
        ] {
            let at = ReceivedAddress {
                ip: ip.parse().unwrap(),
                scope,
            };
            assert_eq!(own.has(&at), expected, "{ip} over interface {scope}");
        }
    }
}
