//! The addresses of this machine, as the system tells them now.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Every address of every interface. Empty when the system does not tell; loopback addresses are always this machine's.
pub(super) fn addresses() -> BTreeSet<IpAddr> {
    interfaces().iter().map(if_addrs::Interface::ip).collect()
}

/// The names of the loopback interfaces.
pub(super) fn loopback_interfaces() -> BTreeSet<String> {
    interfaces().into_iter().filter(if_addrs::Interface::is_loopback).map(|interface| interface.name).collect()
}

fn interfaces() -> Vec<if_addrs::Interface> {
    if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::debug!(%error, "the system does not tell its interfaces");
        Vec::new()
    })
}
