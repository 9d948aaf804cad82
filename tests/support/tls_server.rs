//! Servers with https. Their certificate is for `host-a.local`, `tools.invalid`, `login.invalid`,
//! `127.0.0.1` and `1.1.1.1`; it counts where `SSL_CERT_FILE` is [`file`] of `ca.pem`.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What a server answers to the host and the path of a request.
type Answers = dyn Fn(&str, &str) -> Response<Full<Bytes>> + Send + Sync;

/// A server over HTTP/1.1.
pub(crate) struct TlsServer {
    pub(crate) address: SocketAddr,
    /// `METHOD host/path` of each request.
    seen: Arc<Mutex<Vec<String>>>,
    _accepting: JoinSet<()>,
}

impl TlsServer {
    pub(crate) async fn answering(
        answers: impl Fn(&str, &str) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        let answers: Arc<Answers> = Arc::new(answers);
        let acceptor = acceptor(b"http/1.1");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let mut accepting = JoinSet::new();
        let counted = Arc::clone(&seen);
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                connections.spawn(serve(
                    acceptor,
                    stream,
                    Arc::clone(&answers),
                    Arc::clone(&counted),
                ));
            }
        });
        Self {
            address,
            seen,
            _accepting: accepting,
        }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    answers: Arc<Answers>,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(|request: Request<Incoming>| {
        let host = request.headers()[HOST].to_str().unwrap();
        let path = request.uri().path();
        let line = format!("{} {host}{path}", request.method());
        seen.lock().unwrap().push(line);
        std::future::ready(Ok::<_, Infallible>(answers(host, path)))
    });
    // Clients close their connections as they like.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Accepts TLS for this protocol.
pub(crate) fn acceptor(protocol: &[u8]) -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(file("server.pem"))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// A file beside the certificate.
pub(crate) fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/support/tls", name]
        .iter()
        .collect()
}

/// A JSON document with this status.
pub(crate) fn json(status: u16, body: &str) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap()
}
