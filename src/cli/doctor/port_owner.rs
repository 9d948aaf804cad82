//! Finds the process that listens on a port, as far as the system shows it to this user (Linux:
//! proc(5), `/proc/net/tcp`). Only reads.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The process that listens there, such as `(python3, process 4711)`; `None` if it is not known.
pub(super) fn process_on_port(listen: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let inode = tables.iter().find_map(|table| inode(table, listen))?;
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let folder = processes.map(|entry| entry.path()).find(|process| holds(process, &socket))?;
    let number = folder.file_name()?.to_str()?.to_owned();
    let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
    Some(format!("({}, process {number})", name.trim()))
}

/// The inode of the socket that listens where a connection to `listen` would end.
fn inode(table: &str, listen: SocketAddr) -> Option<&str> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        let there = address_of(address)?;
        let meant = there == listen.ip() || there.is_unspecified() || listen.ip().is_unspecified();
        let listens = *fields.get(3)? == LISTENING && u16::from_str_radix(port, 16).ok()? == listen.port();
        if listens && meant { fields.get(9).copied() } else { None }
    })
}

/// An address as the kernel writes it: words of 32 bits in the machine's order.
fn address_of(text: &str) -> Option<IpAddr> {
    let words = (0..text.len()).step_by(8).map(|at| u32::from_str_radix(text.get(at..at + 8)?, 16).ok());
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

/// Whether a process has this file open. Those of other users cannot be looked into.
fn holds(process: &Path, socket: &str) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files.filter_map(Result::ok).any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1CE8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n   \
        1: 0100007F:1CE9 0100007F:1CE8 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0\n   \
        2: 00000000:1CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0\n";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_listening_socket_is_found_by_its_address() {
        let at = |address: &str| inode(TABLE, address.parse().unwrap());
        assert_eq!(at("127.0.0.1:7400"), Some("4711"));
        assert_eq!(at("0.0.0.0:7400"), Some("4711"));
        assert_eq!(at("127.0.0.2:7400"), None);
        assert_eq!(at("127.0.0.1:7401"), None, "a connection does not listen");
        assert_eq!(at("127.0.0.1:7402"), Some("4713"), "whoever listens everywhere listens there");
        assert_eq!(address_of("00000000000000000000000001000000"), Some(IpAddr::V6(Ipv6Addr::LOCALHOST)));
        assert_eq!(address_of("0000"), None);
    }
}
