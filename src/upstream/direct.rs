//! The short way of an ask: one connection over plain HTTP for one request, driven by the task that asks.
//!
//! reqwest's layers and the task that it gives each connection take as long as all else that an ask of a small manifest costs, and a
//! connection that serves one request needs neither a pool nor a task: whoever waits for the answer moves it on. So addresses with http,
//! without credentials and without a target of their own come here. TLS, names that only a source can resolve and credentials are
//! reqwest's. To a scenario both look alike: the same headers, the same content codings, the same way to connect.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{Service as _, ServiceExt as _, service_fn};
use tower_http::decompression::{Decompression, DecompressionBody};

use super::plain::Resolver;
use super::settings::OURS;

type Boxed = Box<dyn Error + Send + Sync>;

/// Asks over plain HTTP. Clones share nothing: no connection outlives its answer.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    connector: HttpConnector<Resolver>,
    connect: Duration,
}

/// No head of an answer came.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The address cannot be asked.
    Unmade(http::Error),
    /// There was no connection.
    Unconnected(Boxed),
    /// There was no connection in time.
    Late,
    /// The connection broke.
    Broken(hyper::Error),
}

/// The body of an answer, with its content coding taken off.
pub(super) struct Unpacked(Pin<Box<DecompressionBody<Driven>>>);

/// A body broke off, or its content coding is damaged.
#[derive(Debug)]
pub(super) struct Damaged(Boxed);

/// A body that moves its connection on while it is read.
#[derive(Debug)]
struct Driven {
    body: Incoming,
    wire: Wire,
}

/// A connection until it ends, and the end that keeps it open.
#[derive(Debug)]
struct Wire {
    connection: Option<Connection<TokioIo<TcpStream>, Empty<Bytes>>>,
    _sender: SendRequest<Empty<Bytes>>,
}

impl Direct {
    /// A client whose connections stand within `connect`, looking up the host included.
    pub(super) fn new(connect: Duration) -> Self {
        let mut connector = HttpConnector::new_with_resolver(Resolver::new());
        connector.set_nodelay(true);
        Self { connector, connect }
    }

    /// Sends one GET and waits for the head of the answer.
    pub(super) async fn get(&self, to: Option<Uri>, headers: &HeaderMap) -> Result<Response<Unpacked>, Unanswered> {
        let to = to.map_or_else(|| Uri::try_from("").map_err(|error| Unanswered::Unmade(error.into())), Ok)?;
        let request = request(&to, headers).map_err(Unanswered::Unmade)?;
        // It names the codings that can be taken off, and takes off what came.
        let unpacking = Decompression::new(service_fn(|request| self.exchange(to.clone(), request)));
        let answer = unpacking.oneshot(request).await?;
        Ok(answer.map(|body| Unpacked(Box::pin(body))))
    }

    async fn exchange(&self, to: Uri, request: Request<Empty<Bytes>>) -> Result<Response<Driven>, Unanswered> {
        let io = self.connect(to).await?;
        exchange(io, request).await.map_err(Unanswered::Broken)
    }

    async fn connect(&self, to: Uri) -> Result<TokioIo<TcpStream>, Unanswered> {
        let connecting = self.connector.clone().call(to);
        let connected = tokio::time::timeout(self.connect, connecting).await.map_err(|_| Unanswered::Late)?;
        connected.map_err(|error| Unanswered::Unconnected(error.into()))
    }
}

fn request(to: &Uri, headers: &HeaderMap) -> Result<Request<Empty<Bytes>>, http::Error> {
    let host = to.authority().map_or("", |authority| authority.as_str());
    // To a server, a target begins with its path (RFC 9112 section 3.2.1).
    let target = to.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = target.into();
    let all = request.headers_mut();
    all.insert(HOST, HeaderValue::try_from(host)?);
    all.insert(USER_AGENT, HeaderValue::from_static(OURS));
    all.insert(ACCEPT, HeaderValue::from_static("application/json"));
    all.extend(headers.clone());
    Ok(request)
}

async fn exchange(io: TokioIo<TcpStream>, request: Request<Empty<Bytes>>) -> Result<Response<Driven>, hyper::Error> {
    let (mut sender, connection) = handshake(io).await?;
    let mut answer = pin!(sender.send_request(request));
    let mut connection = Some(connection);
    let answer = poll_fn(|context| {
        advance(&mut connection, context);
        answer.as_mut().poll(context)
    });
    let answer = answer.await?;
    let wire = Wire { connection, _sender: sender };
    Ok(answer.map(|body| Driven { body, wire }))
}

/// Moves a connection on. How it ends, the one who waits for the answer is told by the answer.
fn advance(connection: &mut Option<Connection<TokioIo<TcpStream>, Empty<Bytes>>>, context: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|open| Pin::new(open).poll(context).is_ready());
    if ended {
        *connection = None;
    }
}

impl Body for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // What is there already comes first; asking for more lets the connection read on.
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        advance(&mut self.wire.connection, context);
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Body for Unpacked {
    type Data = Bytes;
    type Error = Damaged;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Damaged>>> {
        self.0.as_mut().poll_frame(context).map_err(Damaged)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unmade(_) => "no request could be made",
            Self::Unconnected(_) => "no connection was made",
            Self::Late => "no connection was made in time",
            Self::Broken(_) => "the connection broke",
        })
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unmade(error) => Some(error),
            Self::Unconnected(error) => Some(&**error),
            Self::Late => None,
            Self::Broken(error) => Some(error),
        }
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body cannot be read")
    }
}

impl Error for Damaged {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
