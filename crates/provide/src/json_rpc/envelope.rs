//! Messages of JSON-RPC 2.0 as a server reads and writes them (JSON-RPC 2.0 sections 4 to 6).
//!
//! The texts of errors are those that the protocol's first server writes. A message that is no
//! request is answered and never run. This module knows no method.

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The most messages of one batch.
pub const MAX_BATCH: usize = 1_000;

/// What a text holds.
#[derive(Debug)]
pub enum Received {
    /// One message, or what is no JSON at all.
    One(IncomingMessage),
    /// The messages of a batch.
    Batch(Vec<IncomingMessage>),
}

/// One message.
#[derive(Debug)]
pub enum IncomingMessage {
    /// It wants an answer with the same id.
    Request {
        /// The id as it was written: a string, a number or `null`.
        id: String,
        /// The method.
        method: String,
        /// The text of an array or an object.
        params: Option<String>,
    },
    /// It wants no answer. No method here does anything without one, so it is not kept.
    Notification,
    /// It is no request. The id is there if it can be read.
    Refused {
        /// The id as it was written.
        id: Option<String>,
        /// Why it is none.
        error: AnswerError,
    },
}

/// The error of an answer (JSON-RPC 2.0 section 5.1).
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl AnswerError {
    /// An error of the server's own.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The text is no JSON.
    fn parse() -> Self {
        Self::new(-32_700, "Parse error")
    }

    /// The JSON is no request. A tool that failed is answered with the same code and its own text.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32_600, message)
    }

    /// There is no such method.
    pub fn method_not_found() -> Self {
        Self::new(-32_601, "Method not found")
    }

    /// The parameters are not those of the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32_602, message)
    }

    /// The answer cannot be made.
    pub fn internal() -> Self {
        Self::new(-32_603, "Internal error")
    }

    /// The call was refused, or did not reach its tool. The protocol leaves the code to the server.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(-32_000, message)
    }

    /// The same with more about it.
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }
}

/// The members of a message as they were written. Their combination decides what it is, so each is
/// optional here; `null` is there, too.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Envelope<'a> {
    /// The version of the protocol.
    #[serde(borrow, default, deserialize_with = "present")]
    pub jsonrpc: Option<&'a RawValue>,
    /// What answers and requests are matched by.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// The name of a method.
    #[serde(borrow, default, deserialize_with = "present")]
    pub method: Option<&'a RawValue>,
    /// The parameters of a method.
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    /// The result of an answer.
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    /// The error of an answer.
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// Takes one message apart. Fails for what is no JSON object, and where a member of the
    /// protocol is there twice.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        if text.starts_with('[') {
            // An array would be read as the members in their order.
            return Err(serde_json::Error::custom("it must be a JSON object"));
        }
        serde_json::from_str(text)
    }
}

/// `null` is there, too: an id that is `null` wants an answer, and a missing one does not.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a text.
pub fn read(text: &[u8]) -> Received {
    let refused = |error| Received::One(IncomingMessage::Refused { id: None, error });
    let Some(whole) = std::str::from_utf8(text)
        .ok()
        .and_then(|text| serde_json::from_str::<&RawValue>(text).ok())
    else {
        return refused(AnswerError::parse());
    };
    if !whole.get().starts_with('[') {
        return Received::One(message(whole.get()));
    }
    // The text is JSON, and it is an array.
    let messages: Vec<&RawValue> = serde_json::from_str(whole.get()).unwrap_or_default();
    match messages.len() {
        0 => refused(AnswerError::invalid_request("Invalid request")),
        1..=MAX_BATCH => {
            Received::Batch(messages.into_iter().map(|raw| message(raw.get())).collect())
        }
        more => {
            let why = format!("a batch has {more} messages, more than {MAX_BATCH}; none was run");
            refused(AnswerError::invalid_request("Invalid request").with_data(why.into()))
        }
    }
}

/// Reads one message from JSON.
fn message(text: &str) -> IncomingMessage {
    let refused = |id: Option<&RawValue>, why: &str| IncomingMessage::Refused {
        id: id.map(|id| id.get().to_owned()),
        error: AnswerError::invalid_request(why),
    };
    let Ok(envelope) = Envelope::parse(text) else {
        return refused(None, "Invalid request");
    };
    let id = envelope.id.filter(|id| is_id(id.get()));
    let method = envelope
        .method
        .and_then(|method| serde_json::from_str::<String>(method.get()).ok());
    let params = envelope.params.filter(|params| params.get() != "null");
    let are_params = params.is_none_or(|params| params.get().starts_with(['{', '[']));
    let Some(method) = method.filter(|_| are_params && envelope.id.is_some() == id.is_some())
    else {
        return refused(id, "Invalid request");
    };
    let Some(id) = id else {
        return IncomingMessage::Notification;
    };
    if envelope
        .jsonrpc
        .is_none_or(|version| version.get() != r#""2.0""#)
    {
        return refused(Some(id), "Unsupported JSON-RPC protocol version");
    }
    IncomingMessage::Request {
        id: id.get().to_owned(),
        method,
        params: params.map(|params| params.get().to_owned()),
    }
}

/// Whether this may be an id: a text, a number or `null`.
fn is_id(text: &str) -> bool {
    matches!(
        text.as_bytes().first(),
        Some(b'"' | b'-' | b'0'..=b'9' | b'n')
    )
}

/// What stands before and behind the result in an answer, for a server that does not copy its
/// results.
pub fn around_result(id: &str) -> (&'static str, String) {
    (r#"{"jsonrpc":"2.0","result":"#, format!(r#","id":{id}}}"#))
}

/// Writes an answer, its members in the order of the protocol's first server. The result is JSON
/// text and is written as it is.
pub fn answer(id: &str, result: Result<String, AnswerError>) -> String {
    match result {
        Ok(result) => {
            let around = around_result(id);
            format!("{}{result}{}", around.0, around.1)
        }
        Err(AnswerError {
            code,
            message,
            data,
        }) => {
            let data = data
                .map(|data| format!(r#","data":{data}"#))
                .unwrap_or_default();
            let message = json!(message);
            format!(
                r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":{message}{data}}},"id":{id}}}"#
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        match read(text.as_bytes()) {
            Received::One(IncomingMessage::Refused { id, error }) => {
                answer(id.as_deref().unwrap_or("null"), Err(error))
            }
            _ => panic!("{text} is taken"),
        }
    }

    #[test]
    fn what_is_no_request_gets_the_code_of_the_protocol() {
        let error = |code: i64, message: &str, id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"{message}"}},"id":{id}}}"#
            )
        };
        let invalid = |id| error(-32_600, "Invalid request", id);
        for (text, expected) in [
            ("", error(-32_700, "Parse error", "null")),
            ("{", error(-32_700, "Parse error", "null")),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a"}x"#,
                error(-32_700, "Parse error", "null"),
            ),
            ("[]", invalid("null")),
            ("7", invalid("null")),
            (
                r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#,
                invalid("null"),
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, invalid("1")),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"m","params":7}"#,
                invalid("\"a\""),
            ),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, invalid("null")),
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#,
                invalid("null"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
                invalid("null"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
                invalid("null"),
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":1}"#, invalid("1")),
            (
                r#"{"id":1,"method":"m"}"#,
                error(-32_600, "Unsupported JSON-RPC protocol version", "1"),
            ),
            (
                r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#,
                error(-32_600, "Unsupported JSON-RPC protocol version", "1"),
            ),
        ] {
            assert_eq!(refusal(text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_with_an_id_is_a_request_and_one_without_a_notification() {
        for id in ["1", "-1.5", "null", "\"x\"", "12345678901234567890123"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":[1],"id":{id}}}"#);
            let Received::One(IncomingMessage::Request {
                id: read,
                method,
                params,
            }) = read(text.as_bytes())
            else {
                panic!("{text} is refused")
            };
            assert_eq!(read, id);
            assert_eq!(method, "m");
            assert_eq!(params.unwrap(), "[1]");
        }
        let notification = br#"{"jsonrpc":"2.0","method":"m"}"#;
        assert!(matches!(
            read(notification),
            Received::One(IncomingMessage::Notification)
        ));
    }

    #[test]
    fn a_batch_that_is_too_long_is_refused_as_a_whole() {
        let batch = |length: usize| format!("[{}]", vec!["1"; length].join(","));
        assert!(
            matches!(read(batch(MAX_BATCH).as_bytes()), Received::Batch(messages) if messages.len() == MAX_BATCH)
        );
        assert!(refusal(&batch(10_000)).contains("more than 1000"));
    }
}
