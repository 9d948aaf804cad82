//! What connections come from.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

/// The unsent bytes below which a connection can be written to again (tcp(7),
/// `TCP_NOTSENT_LOWAT`).
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES: u32 = 128 * 1024;

/// A listener for connections of one kind.
pub(in crate::server) trait Listener {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection. Cancel-safe.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let accepted = self.accept().await?;
        // Answers are written whole; waiting to fill a packet only delays them. If this fails, only
        // that delay remains.
        let _ = accepted.0.set_nodelay(true);
        report_small_progress(&accepted.0);
        Ok(accepted.0)
    }
}

/// Has the system report that a connection can be written to as soon as little is unsent. Without
/// that, Linux waits until a third of some MiB was taken, and a client that reads steadily but
/// slowly looks as if it did not read. If this fails, only such clients suffer.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn report_small_progress(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
}

/// Other systems report it as they do.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn report_small_progress(_: &TcpStream) {}

#[cfg(unix)]
impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}
