//! HTTP/1.1 by hand: what the load and the watch need, and no more. Answers must have a
//! `Content-Length`.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer as it came.
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawAnswer {
    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An answer whose head is there.
pub(crate) struct PartialAnswer {
    /// With what has come of its body.
    pub(crate) answer: RawAnswer,
    /// How many bytes have not.
    pub(crate) missing: usize,
}

/// The bytes of a request without a body.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut lines = vec![
        format!("{method} {path} HTTP/1.1"),
        "host: localhost".to_owned(),
    ];
    lines.extend(
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}")),
    );
    lines.extend([String::new(), String::new()]);
    lines.join("\r\n")
}

/// The bytes of a POST.
pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    let mut all = headers.to_vec();
    all.push(("content-length", &length));
    request("POST", path, &all) + body
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 256 * 1024],
        })
    }

    /// Asks, reads the answer to its end and drops it; answers how many bytes the body had.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request).await?;
        let (head, filled) = self.head().await?;
        let length = content_length(&self.buffer[..head])?;
        let mut missing = length.saturating_sub(filled - head);
        while missing > 0 {
            let most = missing.min(self.buffer.len());
            let read = self.stream.read(&mut self.buffer[..most]).await?;
            ensure!(read > 0, "the connection was closed within an answer");
            missing -= read;
        }
        Ok(length)
    }

    /// Asks and keeps the answer.
    pub(crate) async fn get(&mut self, request: &[u8]) -> Result<RawAnswer> {
        let begun = self.begin(request).await?;
        self.rest(begun).await
    }

    /// Reads what is missing of an answer.
    pub(crate) async fn rest(&mut self, begun: PartialAnswer) -> Result<RawAnswer> {
        let PartialAnswer {
            mut answer,
            missing,
        } = begun;
        let have = answer.body.len();
        answer.body.resize(have + missing, 0);
        self.stream.read_exact(&mut answer.body[have..]).await?;
        Ok(answer)
    }

    /// Asks, and returns as soon as the head of the answer is there. What is missing of the body
    /// must be read before the next request.
    pub(crate) async fn begin(&mut self, request: &[u8]) -> Result<PartialAnswer> {
        self.stream.write_all(request).await?;
        let (head, filled) = self.head().await?;
        let text = std::str::from_utf8(&self.buffer[..head])?;
        let mut lines = text.lines();
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .context("no status")?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let body = self.buffer[head..filled].to_vec();
        let missing = content_length(&self.buffer[..head])?.saturating_sub(body.len());
        Ok(PartialAnswer {
            answer: RawAnswer {
                status,
                headers,
                body,
            },
            missing,
        })
    }

    /// Reads until the head is complete: where it ends, and how many bytes are in the buffer.
    async fn head(&mut self) -> Result<(usize, usize)> {
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            ensure!(read > 0, "the connection was closed before an answer");
            filled += read;
            if let Some(end) = self.buffer[..filled.min(2_000)]
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            {
                return Ok((end + 4, filled));
            }
            ensure!(filled < 2_000, "the head of an answer is too long");
        }
    }
}

/// Asks once over a connection of its own.
pub(crate) async fn once(address: SocketAddr, method: &str, path: &str) -> Result<RawAnswer> {
    let headers: &[_] = if method == "POST" {
        &[("content-length", "0")]
    } else {
        &[]
    };
    Connection::open(address)
        .await?
        .get(request(method, path, headers).as_bytes())
        .await
}

/// 0 for a 304, which has none.
fn content_length(head: &[u8]) -> Result<usize> {
    const NAME: &[u8] = b"content-length: ";
    let Some(at) = head.windows(NAME.len()).position(|window| window == NAME) else {
        return Ok(0);
    };
    let digits: Vec<u8> = head[at + NAME.len()..]
        .iter()
        .copied()
        .take_while(u8::is_ascii_digit)
        .collect();
    Ok(std::str::from_utf8(&digits)?.parse()?)
}
