//! Finds the process that listens on a port, as far as the system shows it to this user (Linux:
//! proc(5)). Only reads.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::super::listeners;

/// The process that listens there, such as `(python3, process 4711)`; `None` if it is not known.
pub(super) fn process_on_port(listen: SocketAddr) -> Option<String> {
    let sockets = listeners::on_port(listen.port())?;
    let inode = sockets
        .iter()
        .find(|socket| takes_place_of(socket.address, listen.ip()))?
        .inode;
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let folder = processes
        .map(|entry| entry.path())
        .find(|process| holds(process, &socket))?;
    let number = folder.file_name()?.to_str()?.to_owned();
    let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
    Some(format!("({}, process {number})", name.trim()))
}

/// Whether a socket at `there` keeps another one from listening at `wanted`.
fn takes_place_of(there: IpAddr, wanted: IpAddr) -> bool {
    there == wanted || there.is_unspecified() || wanted.is_unspecified()
}

/// Whether a process has this file open. Those of other users cannot be looked into.
fn holds(process: &Path, socket: &str) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    files
        .filter_map(Result::ok)
        .any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_all_addresses_is_in_the_way_of_each() {
        let is_in_the_way = |there: &str, wanted: &str| {
            takes_place_of(there.parse().unwrap(), wanted.parse().unwrap())
        };
        assert!(is_in_the_way("127.0.0.1", "127.0.0.1") && is_in_the_way("127.0.0.1", "0.0.0.0"));
        assert!(is_in_the_way("0.0.0.0", "127.0.0.1") && !is_in_the_way("127.0.0.1", "127.0.0.2"));
    }
}
