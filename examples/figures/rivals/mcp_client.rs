//! A client of the Model Context Protocol for those who are compared; all know the revision that it
//! asks for, or name one that is the same in what is sent here.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::{Value, json};

const REVISION: &str = "2025-06-18";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BOTH: &str = "application/json, text/event-stream";

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wire {
    /// Each message is a POST, and its answer the answer.
    Posts,
    /// The transport of 2024: answers come on the stream of a GET, which names where to POST.
    Stream,
}

/// A client with its session.
pub(crate) struct McpClient {
    http: reqwest::Client,
    /// Where messages are posted to.
    url: String,
    session: Option<HeaderValue>,
    /// The revision that was agreed on; none before that.
    revision: Option<String>,
    stream: Option<EventReader>,
    last_id: u64,
}

impl McpClient {
    /// Begins a session.
    pub(crate) async fn open(
        http: &reqwest::Client,
        address: SocketAddr,
        path: &str,
        wire: Wire,
    ) -> Result<Self> {
        let mut url = format!("http://{address}{path}");
        let mut stream = None;
        if wire == Wire::Stream {
            let answer = http
                .get(&url)
                .header(ACCEPT, "text/event-stream")
                .send()
                .await?
                .error_for_status()?;
            let mut reader = EventReader {
                answer,
                buffer: Vec::new(),
            };
            let place = reader.next().await?;
            url = format!("http://{address}{}", std::str::from_utf8(&place)?);
            stream = Some(reader);
        }
        let mut client = Self {
            http: http.clone(),
            url,
            session: None,
            revision: None,
            stream,
            last_id: 0,
        };
        let first = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        let agreed = answer(&client.request("initialize", &first).await?)?;
        client.revision = agreed["result"]["protocolVersion"]
            .as_str()
            .map(str::to_owned);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(&ready).await?;
        Ok(client)
    }

    /// The bytes that hold the answer.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Bytes> {
        self.last_id += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let answer = self.post(&message).await?;
        let Some(stream) = &mut self.stream else {
            return Ok(answer);
        };
        let mark = format!("\"id\":{}", self.last_id);
        loop {
            let event = stream.next().await?;
            // Of a long answer, the id stands at one of its ends.
            let ends = [
                &event[..event.len().min(100)],
                &event[event.len().saturating_sub(100)..],
            ];
            if ends
                .iter()
                .any(|end| String::from_utf8_lossy(end).contains(&mark))
            {
                return Ok(event);
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what is compared with is a known program on this machine"
    )]
    async fn post(&mut self, message: &Value) -> Result<Bytes> {
        let mut request = self
            .http
            .post(&self.url)
            .header(ACCEPT, BOTH)
            .header(CONTENT_TYPE, "application/json");
        if let Some(session) = &self.session {
            request = request.header(SESSION, session.clone());
        }
        if let Some(revision) = &self.revision {
            request = request.header("mcp-protocol-version", revision);
        }
        let answer = request.body(message.to_string()).send().await?;
        let status = answer.status();
        if let Some(session) = answer.headers().get(SESSION) {
            self.session = Some(session.clone());
        }
        let body = answer.bytes().await?;
        ensure!(
            status.is_success(),
            "{status}: {}",
            String::from_utf8_lossy(&body[..body.len().min(300)])
        );
        Ok(body)
    }
}

/// Reads server-sent events.
struct EventReader {
    answer: reqwest::Response,
    buffer: Vec<u8>,
}

impl EventReader {
    /// The data of the next event that has any.
    async fn next(&mut self) -> Result<Bytes> {
        let mut looked = 0;
        loop {
            if let Some(at) = self.buffer[looked..]
                .windows(2)
                .position(|two| two == b"\n\n")
            {
                let event: Vec<u8> = self.buffer.drain(..looked + at + 2).collect();
                looked = 0;
                let mut lines = event.split(|byte| *byte == b'\n');
                if let Some(data) = lines.find_map(|line| line.strip_prefix(b"data: ")) {
                    return Ok(Bytes::copy_from_slice(data));
                }
            } else {
                looked = self.buffer.len().saturating_sub(1);
                let chunk = self.answer.chunk().await?.context("the stream ended")?;
                self.buffer.extend_from_slice(&chunk);
            }
        }
    }
}

/// The answer in a body: one message, or a stream of events of which one is the answer.
pub(crate) fn answer(body: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(body)?;
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut messages = std::iter::once(text)
        .chain(events)
        .filter_map(|text| serde_json::from_str(text).ok());
    messages
        .find(|message: &Value| message.get("id").is_some())
        .context("no answer")
}
