//! A scenario's server at the level of bytes: it does what a real one may do wrong, so it is no
//! HTTP library's.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::runtime::{Clock, Tasks};
use callsheet::transports::http::{Client, ClientLimits, Upstream};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

/// The size of body that [`limits`] allows.
pub(crate) const MIB: usize = 1024 * 1024;

/// Listens on a free port of this machine, reads one request per connection, and hands both to a
/// closure. Everything ends when it is dropped.
pub(crate) struct UpstreamServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    _accepting: JoinSet<()>,
}

/// The head of a request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Which connection it came on, from 1.
    pub(crate) number: usize,
    head: String,
}

pub(crate) type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

impl UpstreamServer {
    /// Lets `serve` answer every connection as it likes; the connection is closed when its future
    /// ends.
    pub(crate) async fn serving(
        serve: impl Fn(Request, TcpStream) -> Served + Send + Sync + 'static,
    ) -> Self {
        Self::bound(TcpListener::bind("127.0.0.1:0").await.unwrap(), serve)
    }

    /// The same on a listener that stands already.
    pub(crate) fn bound(
        listener: TcpListener,
        serve: impl Fn(Request, TcpStream) -> Served + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&seen), Arc::new(serve)));
        Self {
            address,
            seen,
            _accepting: accepting,
        }
    }

    /// Answers every request with the bytes that `answer` makes of it.
    pub(crate) async fn answering(
        answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::serving(move |request, mut stream| {
            let bytes = answer(&request);
            // A client that has seen enough closes early, which is no failure here.
            Box::pin(async move {
                let _ = stream.write_all(&bytes).await;
            })
        })
        .await
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("http://{}/", self.address)).unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far, in the order of their connections.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Request {
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The lines behind the first, sorted.
    pub(crate) fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self
            .head
            .lines()
            .skip(1)
            .filter(|line| !line.is_empty())
            .collect();
        lines.sort_unstable();
        lines
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        lines
            .find(|(each, _)| each.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }
}

/// An answer with its `Content-Length`. `headers` are whole lines without line ends.
pub(crate) fn answer(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for line in headers {
        write!(head, "{line}\r\n").unwrap();
    }
    write!(head, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Never answers and never closes.
pub(crate) fn hang(stream: TcpStream) -> Served {
    Box::pin(async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
}

/// What `plain` is with `Content-Encoding: gzip`.
pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, plain).unwrap();
    encoder.finish().unwrap()
}

/// Limits that are generous where a test is not about them: a slow machine must not fail it.
pub(crate) fn limits() -> ClientLimits {
    ClientLimits {
        connect: Duration::from_secs(10),
        whole: Duration::from_secs(30),
        max_body: MIB,
        max_redirects: 3,
    }
}

pub(crate) fn client(limits: ClientLimits, concurrency: usize) -> Arc<Client> {
    Client::new(
        limits,
        concurrency,
        Duration::from_secs(60),
        Clock::system(),
        Tasks::new(),
    )
}

/// An address to ask within [`limits`].
pub(crate) fn upstream(url: Url) -> Upstream {
    client(limits(), 4).upstream(url).unwrap()
}

async fn accept<S>(listener: TcpListener, seen: Arc<Mutex<Vec<Request>>>, serve: Arc<S>)
where
    S: Fn(Request, TcpStream) -> Served + Send + Sync + 'static,
{
    let mut connections = JoinSet::new();
    for number in 1.. {
        let (mut stream, _) = listener.accept().await.unwrap();
        let seen = Arc::clone(&seen);
        let serve = Arc::clone(&serve);
        connections.spawn(async move {
            if let Some(head) = read_head(&mut stream).await {
                let request = Request { number, head };
                seen.lock().unwrap().push(request.clone());
                serve(request, stream).await;
            }
        });
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}
