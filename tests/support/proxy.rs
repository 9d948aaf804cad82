//! A small proxy on loopback. Every host that is requested of it leads to one server.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::tls_server;

/// What the proxy does with a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    /// Makes tunnels to this server by `CONNECT`.
    Tunnel(SocketAddr),
    /// The same over TLS.
    TlsTunnel(SocketAddr),
    /// Makes them by SOCKS 5. With a name and password, these are required.
    Socks(SocketAddr, Option<(&'static str, &'static str)>),
    /// Answers every request with this and closes the connection.
    Answer(&'static [u8]),
    /// Reads and never answers.
    Silence,
}

/// One request for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requested {
    /// `host:port`
    pub(crate) host: String,
    /// `Proxy-Authorization`, or `name:password` of SOCKS.
    pub(crate) authorization: Option<String>,
}

/// A proxy on a free port.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    requested: Arc<Mutex<Vec<Requested>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requested = Arc::<Mutex<Vec<Requested>>>::default();
        let seen = Arc::clone(&requested);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, behaviour, Arc::clone(&seen)));
            }
        });
        Self {
            address,
            requested,
            _accepting: accepting,
        }
    }

    pub(crate) fn requested(&self) -> Vec<Requested> {
        self.requested.lock().unwrap().clone()
    }

    /// The hosts of all requests.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.requested()
            .into_iter()
            .map(|requested| requested.host)
            .collect()
    }
}

/// Serves one connection. It ends when either side closes it.
async fn serve(mut stream: TcpStream, behaviour: Behaviour, seen: Arc<Mutex<Vec<Requested>>>) {
    match behaviour {
        Behaviour::Tunnel(server) => tunnel(&mut stream, server, &seen).await,
        Behaviour::TlsTunnel(server) => {
            let accepted = tls_server::acceptor(b"http/1.1").accept(stream).await;
            if let Ok(mut stream) = accepted {
                tunnel(&mut stream, server, &seen).await;
            }
        }
        Behaviour::Socks(server, credentials) => {
            let _ = socks(&mut stream, server, credentials, &seen).await;
        }
        Behaviour::Answer(answer) => {
            if let Some(requested) = connect_head(&mut stream).await {
                seen.lock().unwrap().push(requested);
            }
            let _ = stream.write_all(answer).await;
        }
        Behaviour::Silence => {
            if let Some(requested) = connect_head(&mut stream).await {
                seen.lock().unwrap().push(requested);
            }
            std::future::pending::<()>().await;
        }
    }
}

async fn tunnel<S>(stream: &mut S, server: SocketAddr, seen: &Mutex<Vec<Requested>>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let Some(requested) = connect_head(stream).await else {
        return;
    };
    seen.lock().unwrap().push(requested);
    let mut to = TcpStream::connect(server).await.unwrap();
    let _ = stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await;
    let _ = copy_bidirectional(stream, &mut to).await;
}

/// Reads the head of a `CONNECT`. `None` for anything else.
async fn connect_head<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Requested> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let host = head.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let authorization = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_wanted = name.eq_ignore_ascii_case("proxy-authorization");
        is_wanted.then(|| value.to_owned())
    });
    Some(Requested {
        host,
        authorization,
    })
}

/// The server's side of SOCKS 5 (RFC 1928, RFC 1929).
async fn socks(
    stream: &mut TcpStream,
    server: SocketAddr,
    credentials: Option<(&str, &str)>,
    seen: &Mutex<Vec<Requested>>,
) -> std::io::Result<()> {
    let mut greeting = [0; 2];
    stream.read_exact(&mut greeting).await?;
    let mut methods = vec![0; usize::from(greeting[1])];
    stream.read_exact(&mut methods).await?;
    let method = if credentials.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        return stream.write_all(&[5, 0xff]).await;
    }
    stream.write_all(&[5, method]).await?;
    let mut authorization = None;
    if let Some((name, password)) = credentials {
        stream.read_u8().await?;
        let shown = format!("{}:{}", text(stream).await?, text(stream).await?);
        let is_right = shown == format!("{name}:{password}");
        authorization = Some(shown);
        stream.write_all(&[1, u8::from(!is_right)]).await?;
        if !is_right {
            return Ok(());
        }
    }
    let mut request = [0; 4];
    stream.read_exact(&mut request).await?;
    let host = match request[3] {
        1 => {
            let mut address = [0; 4];
            stream.read_exact(&mut address).await?;
            std::net::Ipv4Addr::from(address).to_string()
        }
        _ => text(stream).await?,
    };
    let port = stream.read_u16().await?;
    seen.lock().unwrap().push(Requested {
        host: format!("{host}:{port}"),
        authorization,
    });
    let mut to = TcpStream::connect(server).await?;
    stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).await?;
    copy_bidirectional(stream, &mut to).await.map(drop)
}

/// A text behind its length.
async fn text(stream: &mut TcpStream) -> std::io::Result<String> {
    let length = stream.read_u8().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
