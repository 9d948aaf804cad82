//! The TCP sockets of this machine that listen, as the system shows them to every user (Linux:
//! proc(5), `/proc/net/tcp`). Only reads.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListeningSocket {
    /// Where it listens. An IPv6 address that stands for one of IPv4 is that.
    pub(super) address: IpAddr,
    /// The number of the user that opened it.
    pub(super) user: u32,
    /// By which the processes that hold it are found.
    pub(super) inode: u64,
}

/// The sockets that listen on a port, at any address; `None` if this system does not show them.
pub(super) fn on_port(port: u16) -> Option<Vec<ListeningSocket>> {
    let of_ipv4 = fs::read_to_string("/proc/net/tcp").ok()?;
    // A system without IPv6 has no such table.
    let of_ipv6 = match fs::read_to_string("/proc/net/tcp6") {
        Err(error) if error.kind() != ErrorKind::NotFound => return None,
        read => read.unwrap_or_default(),
    };
    let rows = of_ipv4.lines().chain(of_ipv6.lines());
    Some(rows.filter_map(|row| parsed(row, port)).collect())
}

/// The sockets that a connection to this address ends at; `None` if this system does not show them.
pub(super) fn reached(address: SocketAddr) -> Option<Vec<ListeningSocket>> {
    Some(reached_among(
        &on_port(address.port())?,
        address.ip().to_canonical(),
    ))
}

/// The system prefers a socket of exactly that address to one of all addresses, and of these one of
/// the same family. That the machine has an address at all is only known of loopback.
fn reached_among(sockets: &[ListeningSocket], address: IpAddr) -> Vec<ListeningSocket> {
    let at = |wanted: IpAddr| {
        sockets
            .iter()
            .filter(|socket| socket.address == wanted)
            .copied()
            .collect::<Vec<_>>()
    };
    let mut preferred = vec![address];
    if address.is_loopback() && address.is_ipv4() {
        preferred.push(Ipv4Addr::UNSPECIFIED.into());
    }
    if address.is_loopback() {
        preferred.push(Ipv6Addr::UNSPECIFIED.into());
    }
    preferred
        .into_iter()
        .map(at)
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// The socket of a row of the table, if it listens on this port.
fn parsed(row: &str, port: u16) -> Option<ListeningSocket> {
    let fields: Vec<&str> = row.split_whitespace().collect();
    let (address, at_port) = fields.get(1)?.split_once(':')?;
    if *fields.get(3)? != LISTENING || u16::from_str_radix(at_port, 16).ok()? != port {
        return None;
    }
    let user = fields.get(7)?.parse().ok()?;
    let inode = fields.get(9)?.parse().ok()?;
    Some(ListeningSocket {
        address: address_of(address)?,
        user,
        inode,
    })
}

/// An address as the kernel writes it: words of 32 bits in the machine's order.
fn address_of(text: &str) -> Option<IpAddr> {
    let words = (0..text.len())
        .step_by(8)
        .map(|at| u32::from_str_radix(text.get(at..at + 8)?, 16).ok());
    let words: Vec<u32> = words.collect::<Option<_>>()?;
    match words[..] {
        [word] => Some(IpAddr::from(word.to_ne_bytes())),
        [_, _, _, _] => {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn rows_of_sockets_that_listen_on_the_port_are_read() {
        const ROW: &str = "   0: 0100007F:1CE8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
        let socket = ListeningSocket {
            address: Ipv4Addr::LOCALHOST.into(),
            user: 1_000,
            inode: 4_711,
        };
        assert_eq!(parsed(ROW, 7_400), Some(socket));
        assert_eq!(parsed(ROW, 7_401), None);
        assert_eq!(
            parsed(&ROW.replace(" 0A ", " 01 "), 7_400),
            None,
            "a connection does not listen"
        );
        assert_eq!(
            parsed(
                "  sl  local_address rem_address   st tx_queue rx_queue",
                7_400
            ),
            None
        );
        assert_eq!(
            address_of("00000000000000000000000001000000"),
            Some(IpAddr::V6(Ipv6Addr::LOCALHOST))
        );
        assert_eq!(
            address_of("0000000000000000FFFF00000100007F"),
            Some(IpAddr::V4(Ipv4Addr::LOCALHOST))
        );
        assert_eq!(address_of("0000"), None);
    }

    #[test]
    fn a_connection_ends_at_the_socket_of_the_nearest_address() {
        let sockets = |addresses: &[&str]| -> Vec<ListeningSocket> {
            let socket = |(at, address): (usize, &&str)| {
                let user = u32::try_from(at).unwrap();
                ListeningSocket {
                    address: address.parse().unwrap(),
                    user,
                    inode: 0,
                }
            };
            addresses.iter().enumerate().map(socket).collect()
        };
        let users = |addresses: &[&str], to: &str| -> Vec<u32> {
            let reached = reached_among(&sockets(addresses), to.parse().unwrap());
            reached.iter().map(|socket| socket.user).collect()
        };
        assert_eq!(users(&["0.0.0.0", "127.0.0.1", "::"], "127.0.0.1"), [1]);
        assert_eq!(users(&["::", "0.0.0.0"], "127.0.0.1"), [1]);
        assert_eq!(
            users(&["::"], "127.0.0.1"),
            [0],
            "a socket of IPv6 may take connections of IPv4"
        );
        assert_eq!(users(&["127.0.0.2", "::1"], "127.0.0.1"), [] as [u32; 0]);
        assert_eq!(users(&["0.0.0.0", "::"], "::1"), [1]);
        assert_eq!(users(&["127.0.0.1", "127.0.0.1"], "127.0.0.1"), [0, 1]);
        assert_eq!(users(&["0.0.0.0", "192.0.2.7"], "192.0.2.7"), [1]);
        assert_eq!(
            users(&["0.0.0.0", "::"], "192.0.2.7"),
            [] as [u32; 0],
            "it may be another machine"
        );
    }
}
