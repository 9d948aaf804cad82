//! Servers that mean harm, each at the level of bytes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callsheet::runtime::Clock;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::upstream_server::{MIB, UpstreamServer, answer, gzip};

const JSON: &str = "Content-Type: application/json";

/// A hostile scenario, and how it is told to an operator.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    /// Stands in the message of its last error.
    pub(crate) reason: &'static str,
    pub(crate) server: UpstreamServer,
    /// Bytes that the server could send, over all connections.
    pub(crate) sent: Arc<AtomicUsize>,
}

impl Hostile {
    fn new(
        name: &'static str,
        kind: &'static str,
        reason: &'static str,
        server: UpstreamServer,
    ) -> Self {
        Self {
            name,
            kind,
            reason,
            server,
            sent: Arc::default(),
        }
    }

    /// Sends `head` once and then `piece` for ever, `pause` apart.
    async fn endless(
        name: &'static str,
        (kind, reason): (&'static str, &'static str),
        head: String,
        piece: &'static [u8],
        pause: Duration,
    ) -> Self {
        let sent = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&sent);
        let server = UpstreamServer::serving(move |_, mut stream| {
            let head = head.clone();
            let count = Arc::clone(&count);
            Box::pin(async move {
                if put(&mut stream, head.as_bytes(), &count).await {
                    while put(&mut stream, piece, &count).await {
                        Clock::system().sleep(pause).await;
                    }
                }
            })
        })
        .await;
        Self {
            sent,
            ..Self::new(name, kind, reason, server)
        }
    }

    /// Gives every request the same answer.
    async fn saying(
        name: &'static str,
        kind: &'static str,
        reason: &'static str,
        bytes: Vec<u8>,
    ) -> Self {
        Self::new(
            name,
            kind,
            reason,
            UpstreamServer::answering(move |_| bytes.clone()).await,
        )
    }
}

/// Those that are found out as soon as their bytes are there. Bodies may be of one MiB.
pub(crate) async fn quick(elsewhere: &UpstreamServer) -> Vec<Hostile> {
    let too_large = ("too-large", "larger than 1048576 bytes");
    let coded = |coding: &str, bytes: &[u8]| {
        answer(
            "200 OK",
            &[JSON, &format!("Content-Encoding: {coding}")],
            bytes,
        )
    };
    let blanks = vec![b' '; 16 * MIB];
    let mut cut = br#"{"protocol_version":"1.0","scenario":{"name":"x"},"tools":[{"name":"a","description":""#.to_vec();
    cut.extend_from_slice(b"\xc3\x28\"}]}");
    let to = |location: &str| answer("302 Found", &[&format!("Location: {location}")], b"");
    let body_head = format!("HTTP/1.1 200 OK\r\n{JSON}\r\nConnection: close\r\n\r\n{{");
    let other = to(elsewhere.url().as_str());
    vec![
        Hostile::endless(
            "endless-body",
            too_large,
            body_head,
            &[b' '; 8 * 1024],
            Duration::ZERO,
        )
        .await,
        Hostile::endless(
            "endless-headers",
            ("broken", "too large"),
            "HTTP/1.1 200 OK\r\nX-Flood: ".to_owned(),
            &[b'x'; 64 * 1024],
            Duration::ZERO,
        )
        .await,
        Hostile::endless(
            "endless-hints",
            ("broken", "more than 65536 bytes of interim responses (1xx)"),
            String::new(),
            hints(),
            Duration::ZERO,
        )
        .await,
        Hostile::saying(
            "many-headers",
            "broken",
            "message head is too large",
            many_headers(),
        )
        .await,
        Hostile::saying(
            "gzip-bomb",
            too_large.0,
            too_large.1,
            coded("gzip", &gzip(&blanks)),
        )
        .await,
        Hostile::saying(
            "br-bomb",
            too_large.0,
            too_large.1,
            coded("br", &brotli(&blanks)),
        )
        .await,
        Hostile::saying(
            "no-text",
            "malformed",
            "is not UTF-8 at byte 86",
            answer("200 OK", &[JSON], &cut),
        )
        .await,
        Hostile::saying("bottomless", "unknown-protocol", "a bare JSON list", {
            answer("200 OK", &[JSON], &vec![b'['; MIB])
        })
        .await,
        Hostile::saying(
            "roundabout",
            "redirect",
            "/again, which is not followed",
            to("/again"),
        )
        .await,
        Hostile::saying("sends-away", "redirect", "which is not followed", other).await,
        Hostile::saying(
            "sends-to-metadata",
            "redirect",
            "redirects to http://169.254.169.254/latest/meta-data, which is not followed",
            to("http://169.254.169.254/latest/meta-data?token=1"),
        )
        .await,
    ]
}

/// Those that only time gives away.
pub(crate) async fn slow() -> Vec<Hostile> {
    let late = ("timeout", "no answer within");
    let body = format!("HTTP/1.1 200 OK\r\n{JSON}\r\nContent-Length: 1000\r\n\r\n");
    let tick = Duration::from_millis(100);
    let head = "HTTP/1.1 200 OK\r\nX-Slow: ".to_owned();
    vec![
        Hostile::endless("drips-body", late, body, b" ", tick).await,
        Hostile::endless("drips-head", late, head, b"x", tick).await,
        Hostile::endless(
            "never-final",
            late,
            String::new(),
            b"HTTP/1.1 103 Early Hints\r\n\r\n",
            tick,
        )
        .await,
        Hostile::endless("silent", late, String::new(), b"", tick).await,
    ]
}

/// Interim responses, to be sent again and again.
pub(crate) fn hints() -> &'static [u8] {
    b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
        .repeat(1_000)
        .leak()
}

fn many_headers() -> Vec<u8> {
    let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
    for n in 0..10_000 {
        write!(head, "X-{n}: {n}\r\n").unwrap();
    }
    (head + "\r\n").into_bytes()
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut encoded = brotli::CompressorWriter::new(Vec::new(), 64 * 1024, 1, 22);
    std::io::Write::write_all(&mut encoded, plain).unwrap();
    encoded.into_inner()
}

async fn put(stream: &mut TcpStream, bytes: &[u8], count: &AtomicUsize) -> bool {
    let written = stream.write_all(bytes).await.is_ok();
    count.fetch_add(if written { bytes.len() } else { 0 }, Ordering::Relaxed);
    // Nothing else tells a server that writes nothing.
    written && (!bytes.is_empty() || stream.writable().await.is_ok())
}
