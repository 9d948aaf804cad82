//! Requests that may be cut off by the end of the daemon they are sent to.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// No answer of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer that came whole.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Whole {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends a request with a JSON body, if there is one, to `url` (`http://host:port`). Fails when no
/// whole answer comes.
pub(crate) fn send(
    url: &str,
    method: &str,
    target: &str,
    body: Option<&Value>,
) -> io::Result<Whole> {
    let address = url.strip_prefix("http://").unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n"
    )?;
    if !body.is_empty() {
        write!(
            stream,
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        )?;
    }
    write!(stream, "\r\n{body}")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or_else(cut)?;
    let head = String::from_utf8(bytes[..end].to_vec()).map_err(io::Error::other)?;
    let body = bytes[end + 4..].to_vec();
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    if length.is_some_and(|length: usize| length != body.len()) {
        return Err(cut());
    }
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(cut)?;
    Ok(Whole { status, head, body })
}
