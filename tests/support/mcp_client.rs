//! A client of the daemon's MCP server over HTTP, in either era, that sends what a test says.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::callee::PATIENCE;
use super::serving::ask;

/// The beginning of the protocol's own members of `_meta`.
pub(crate) const META: &str = "io.modelcontextprotocol/";

/// A client.
#[derive(Debug, Clone)]
pub(crate) struct McpClient {
    address: SocketAddr,
    target: String,
    /// The id of its session and the revision, of a legacy one.
    session: Option<(String, &'static str)>,
    capabilities: Value,
    /// The operator's token, where it sends that.
    token: Option<&'static str>,
}

/// An answer as it came: whole, or as a stream whose messages are read one by one.
pub(crate) struct Streamed {
    pub(crate) status: u16,
    pub(crate) is_stream: bool,
    lines: tokio::io::Lines<BufReader<TcpStream>>,
    whole: Option<Value>,
}

/// A request with the id 7.
pub(crate) fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

impl McpClient {
    /// A client of 2026-07-28 with these capabilities.
    pub(crate) fn modern(address: SocketAddr, capabilities: Value) -> Self {
        Self {
            address,
            target: "/mcp".to_owned(),
            session: None,
            capabilities,
            token: None,
        }
    }

    /// A client that begins a session of this revision.
    pub(crate) async fn legacy(
        address: SocketAddr,
        revision: &'static str,
        capabilities: Value,
    ) -> Self {
        let params = json!({"protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": {"name": "tester", "version": "1"}});
        let body = rpc("initialize", &params).to_string();
        let answer = ask(
            address,
            "POST",
            "/mcp",
            &[("content-type", "application/json")],
            &body,
        )
        .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let session = answer.header("mcp-session-id").to_owned();
        assert!(!session.is_empty(), "{answer:?}");
        Self {
            address,
            target: "/mcp".to_owned(),
            session: Some((session, revision)),
            capabilities,
            token: None,
        }
    }

    /// The same client at another address of the daemon.
    pub(crate) fn at(&self, target: &str) -> Self {
        Self {
            target: target.to_owned(),
            ..self.clone()
        }
    }

    /// The same client with the operator's token.
    pub(crate) fn with_token(&self, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..self.clone()
        }
    }

    /// The same client of another daemon.
    pub(crate) fn of_daemon(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    /// The id of the session.
    pub(crate) fn session(&self) -> &str {
        &self.session.as_ref().expect("a legacy client").0
    }

    /// The members of `_meta` that the era wants, beside those of the test.
    fn params(&self, mut params: Value) -> Value {
        if self.session.is_none() {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = self.capabilities.clone();
            params["_meta"][format!("{META}clientInfo")] =
                json!({"name": "tester", "version": "1"});
        }
        params
    }

    /// The headers of a message, as lines.
    fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        let mut headers = vec![("accept", "application/json, text/event-stream".to_owned())];
        headers.extend(
            self.token
                .map(|token| ("authorization", format!("Bearer {token}"))),
        );
        if let Some((session, revision)) = &self.session {
            headers.extend([
                ("mcp-session-id", session.clone()),
                ("mcp-protocol-version", (*revision).to_owned()),
            ]);
            return headers;
        }
        headers.push(("mcp-protocol-version", "2026-07-28".to_owned()));
        headers.push((
            "mcp-method",
            message["method"].as_str().unwrap_or_default().to_owned(),
        ));
        let subject = message["params"]["name"]
            .as_str()
            .or(message["params"]["uri"].as_str());
        headers.extend(subject.map(|subject| ("mcp-name", subject.to_owned())));
        headers
    }

    /// Sends a request and gives the status and the message of the answer, whatever came before.
    pub(crate) async fn request(&self, method: &str, params: Value) -> (u16, Value) {
        let mut answer = self.open(&rpc(method, &self.params(params))).await;
        let status = answer.status;
        loop {
            let message = answer.next().await.expect("an answer");
            if message.get("id").is_some() && message.get("method").is_none() {
                return (status, message);
            }
        }
    }

    /// The result of a request.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let (status, mut answer) = self.request(method, params).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].take()
    }

    /// Sends a request and follows its answer.
    pub(crate) async fn follow(&self, id: &Value, method: &str, params: Value) -> Streamed {
        let mut message = rpc(method, &self.params(params));
        message["id"] = id.clone();
        self.open(&message).await
    }

    /// Sends a request and does not wait for its answer. Dropping the connection ends it.
    pub(crate) async fn begin(&self, id: &Value, method: &str, params: Value) -> TcpStream {
        let mut message = rpc(method, &self.params(params));
        message["id"] = id.clone();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream
            .write_all(self.post(&message).as_bytes())
            .await
            .unwrap();
        stream
    }

    /// Opens the stream of a GET.
    pub(crate) async fn listen(&self) -> Streamed {
        let mut head = format!("GET {} HTTP/1.1\r\nhost: {}\r\n", self.target, self.address);
        for (name, value) in self.headers(&Value::Null) {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        Streamed::open(self.address, format!("{head}\r\n")).await
    }

    /// Sends a message that has no answer and gives the status.
    pub(crate) async fn send(&self, message: &Value) -> u16 {
        self.open(message).await.status
    }

    /// Sends a message as it is.
    pub(crate) async fn open(&self, message: &Value) -> Streamed {
        Streamed::open(self.address, self.post(message)).await
    }

    /// The request over HTTP that carries a message.
    fn post(&self, message: &Value) -> String {
        let body = message.to_string();
        let mut head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n",
            self.target, self.address
        );
        for (name, value) in self.headers(message) {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        format!("{head}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// Ends the session.
    pub(crate) async fn end(&self) -> u16 {
        ask(
            self.address,
            "DELETE",
            &self.target,
            &[("mcp-session-id", self.session())],
            "",
        )
        .await
        .status
    }
}

impl Streamed {
    async fn open(address: SocketAddr, request: String) -> Self {
        let opened = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut lines = BufReader::new(stream).lines();
            let first = lines.next_line().await.unwrap().expect("a status line");
            let status = first.split(' ').nth(1).unwrap().parse().unwrap();
            let mut is_stream = false;
            let mut length = 0_usize;
            while let Some(line) = lines
                .next_line()
                .await
                .unwrap()
                .filter(|line| !line.is_empty())
            {
                let (name, value) = line.split_once(": ").unwrap();
                is_stream |= name == "content-type" && value == "text/event-stream";
                if name == "content-length" {
                    length = value.parse().unwrap();
                }
            }
            let mut whole = None;
            if !is_stream && length > 0 {
                let mut body = vec![0; length];
                lines.get_mut().read_exact(&mut body).await.unwrap();
                whole = serde_json::from_slice(&body).ok();
            }
            Self {
                status,
                is_stream,
                lines,
                whole,
            }
        };
        tokio::time::timeout(PATIENCE, opened)
            .await
            .expect("the head of an answer")
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        if let Some(whole) = self.whole.take() {
            return Some(whole);
        }
        if !self.is_stream {
            return None;
        }
        let next = async {
            loop {
                let line = self.lines.next_line().await.ok()??;
                let Some(data) = line.strip_prefix("data: ") else {
                    continue;
                };
                let mut data = data.to_owned();
                // A long message is in several chunks, each behind a line with its size.
                while serde_json::from_str::<&RawValue>(&data).is_err() {
                    self.lines.next_line().await.ok()??;
                    data += &self.lines.next_line().await.ok()??;
                }
                return Some(serde_json::from_str(&data).unwrap());
            }
        };
        tokio::time::timeout(PATIENCE, next)
            .await
            .expect("a message, or the end")
    }
}
