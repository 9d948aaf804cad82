//! The Unix socket of the command line, beside the state: an operator gets in also when all
//! connections are in use.
//!
//! It serves the same routes, by the same rules, and carries no right: a token is needed as
//! elsewhere. Its file is for the user of the daemon only (mode 0600). Without it the daemon runs
//! all the same.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};

use super::OpenConnections;
use super::events::DisconnectTrigger;
use super::http::accept::{self, ConnectionLimits};
use super::http_service::HttpService;
use crate::runtime::socket_file::{self, SocketFile};
use crate::runtime::{Clock, Stop, Tasks};

/// Connections at once. Commands keep one for a request, and those that wait long use the address
/// of the daemon.
const CONNECTIONS: usize = 32;

/// One of so many of them is in the reserve, so eight: a stream of events, which never rests, holds
/// a connection of the reserve only until others come, and a command is answered long before.
const RESERVE_OF: usize = 4;

/// The bound socket.
pub(super) struct CommandSocket {
    listener: UnixListener,
    file: SocketFile,
}

impl CommandSocket {
    /// The socket at this path, or `None` if it cannot be made, which the log says.
    pub(super) fn bind(path: &Path) -> Option<Self> {
        match socket_file::bind(path) {
            Ok((listener, file)) => Some(Self { listener, file }),
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    %error,
                    "no socket for the command line: it reaches the daemon by its address only, and not while all \
                     connections are in use"
                );
                None
            }
        }
    }

    /// Serves until the stop, and removes the file. Returns how many connections were cut. To the
    /// guard, requests came to the address `local`: commands name the host that the daemon listens
    /// on, or a loopback one.
    pub(super) async fn serve(
        self,
        front: HttpService,
        local: IpAddr,
        limits: ConnectionLimits,
        clock: Clock,
        tasks: &Tasks,
        ways: (&OpenConnections, &Stop),
    ) -> usize {
        let limits = ConnectionLimits {
            connections: CONNECTIONS,
            reserve_of: RESERVE_OF,
            ..limits
        };
        let serve = move |_: &UnixStream, let_go, load: &accept::ConnectionLoad| {
            front.connection(local, DisconnectTrigger(Arc::new(let_go)), load)
        };
        let cut = accept::serve(self.listener, serve, limits, clock, tasks, ways.0, ways.1).await;
        drop(self.file);
        cut
    }
}
