//! A scripted LLM server with OpenAI's chat completions: it gives its replies in order and
//! remembers every request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

pub(crate) struct Llm {
    /// What a program takes as `OPENAI_BASE_URL`.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Llm {
    /// Starts one that gives each of these messages once.
    pub(crate) fn start(replies: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().unwrap();
                seen.lock().unwrap().push(answer(stream, &reply));
            }
        });
        Self { url, requests }
    }

    /// The body of every request so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads one request, answers it with this message and returns its body.
fn answer(stream: TcpStream, message: &Value) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), "POST /v1/chat/completions HTTP/1.1");
    while line != "\r\n" {
        line.clear();
        assert_ne!(
            reader.read_line(&mut line).unwrap(),
            0,
            "the request ends within its head"
        );
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let reply = json!({"choices": [{"index": 0, "message": message}]}).to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ";
    write!(reader.get_mut(), "{head}{}\r\n\r\n{reply}", reply.len()).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// A message in which the model calls a tool.
pub(crate) fn calls(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let call = json!({"id": id, "type": "function", "function": function});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

/// A message that ends the conversation.
pub(crate) fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}
