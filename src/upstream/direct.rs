//! The short way of an ask: one connection over plain HTTP for one request, driven by the task that asks.
//!
//! reqwest's layers and the task that it gives each connection take as long as all else that an ask of a small manifest costs, and a
//! connection that serves one request needs neither a pool nor a task: whoever waits for the answer moves it on. So addresses with http,
//! without credentials and without a target of their own come here. TLS, names that only a source can resolve and credentials are
//! reqwest's. To a scenario both look alike: the same headers, the same content codings, the same way to connect.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::{Body, Frame, SizeHint};
use tower::{ServiceExt as _, service_fn};
use tower_http::decompression::{Decompression, DecompressionBody};

use super::connector::{Connector, Unanswered, target};
use super::settings::OURS;
use super::wire::{Driven, Lost, Nowhere, Wire};

type Boxed = Box<dyn Error + Send + Sync>;

/// Asks over plain HTTP. Clones share nothing: no connection outlives its answer.
#[derive(Debug, Clone)]
pub(super) struct Direct(Connector);

/// The body of an answer as it comes.
type Packed = Driven<Empty<Bytes>, Nowhere>;

/// The body of an answer, with its content coding taken off.
pub(super) struct Unpacked(Pin<Box<DecompressionBody<Packed>>>);

/// A body broke off, or its content coding is damaged.
#[derive(Debug)]
pub(super) struct Damaged(Boxed);

impl Direct {
    /// A client whose connections stand within `connect`, looking up the host included.
    pub(super) fn new(connect: Duration) -> Self {
        Self(Connector::new(connect))
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

    async fn exchange(&self, to: Uri, request: Request<Empty<Bytes>>) -> Result<Response<Packed>, Unanswered> {
        let wire = Wire::new(self.0.connect(to).await?).await.map_err(Unanswered::Broken)?;
        let answer = wire.send(request, Nowhere).await;
        answer.map_err(|(Lost::Unsent(_, error) | Lost::Broken(error))| Unanswered::Broken(error))
    }
}

fn request(to: &Uri, headers: &HeaderMap) -> Result<Request<Empty<Bytes>>, http::Error> {
    let host = to.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = target(to);
    let all = request.headers_mut();
    all.insert(HOST, HeaderValue::try_from(host)?);
    all.insert(USER_AGENT, HeaderValue::from_static(OURS));
    all.insert(ACCEPT, HeaderValue::from_static("application/json"));
    all.extend(headers.clone());
    Ok(request)
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
