//! JSON-RPC 2.0: reads and writes single messages.
//!
//! A message is kept as the text that it holds: results and parameters are passed on byte for byte.
//! The envelope is that of the crate for providers, whose server is strict; what is read here comes
//! from programs of all kinds, and is read as long as it can be understood. This module never sends
//! or receives, matches no answer with its request, and knows no method.

use std::fmt;

use callsheet_provide::json_rpc::{Envelope, MAX_BATCH};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::JsonText;
use super::write::quoted;

/// The method is not known to the receiver (JSON-RPC 2.0 section 5.1).
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;

/// One message that was received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RpcMessage {
    /// The answer to a request of ours.
    Response {
        /// The id of the request. `None` where the sender could not read it.
        id: Option<u64>,
        /// The result, or the error in its place.
        result: Result<JsonText, RpcError>,
    },
    /// A request, which wants an answer with the same id.
    Request(RpcRequest),
    /// A message that wants no answer.
    Notification {
        method: String,
        params: Option<JsonText>,
    },
}

/// A request that was received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcRequest {
    /// Its id as it was written: a string and a number are different ids.
    pub(crate) id: JsonText,
    pub(crate) method: String,
    pub(crate) params: Option<JsonText>,
}

/// The error object of an answer (JSON-RPC 2.0 section 5.1).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<JsonText>,
}

impl RpcError {
    /// The bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        self.message.len() + self.data.as_ref().map_or(0, |data| data.get().len())
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

/// The error of an answer as it is written.
#[derive(Deserialize)]
struct ErrorObject<'a> {
    code: serde_json::Number,
    #[serde(default)]
    message: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Reads a message, or the messages of a batch. The error is a sentence without a full stop.
pub(crate) fn parse(text: &str) -> Result<Vec<RpcMessage>, String> {
    let text = text.trim();
    if !text.starts_with('[') {
        return parse_one(text).map(|message| vec![message]);
    }
    let batch: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if batch.len() > MAX_BATCH {
        return Err(format!(
            "its batch has {} messages, more than {MAX_BATCH}",
            batch.len()
        ));
    }
    batch.into_iter().map(|raw| parse_one(raw.get())).collect()
}

fn parse_one(text: &str) -> Result<RpcMessage, String> {
    let no_message = |error: serde_json::Error| format!("it is not a JSON-RPC message: {error}");
    let envelope = Envelope::parse(text).map_err(no_message)?;
    let kept = |raw: &RawValue| JsonText::known(raw.get());
    let params = set(envelope.params).map(kept);
    let id = set(envelope.id);
    let method = set(envelope.method)
        .map(|raw| serde_json::from_str::<String>(raw.get()))
        .transpose();
    let error = set(envelope.error)
        .map(|raw| serde_json::from_str::<ErrorObject<'_>>(raw.get()))
        .transpose();
    match (
        method.map_err(no_message)?,
        envelope.result,
        error.map_err(no_message)?,
    ) {
        (Some(method), None, None) => Ok(match id {
            Some(id) => RpcMessage::Request(RpcRequest {
                id: kept(id),
                method,
                params,
            }),
            None => RpcMessage::Notification { method, params },
        }),
        (None, Some(result), None) => Ok(RpcMessage::Response {
            id: own_id(id)?,
            result: Ok(kept(result)),
        }),
        (None, None, Some(error)) => {
            let code = error.code.as_i64().unwrap_or_default();
            let error = RpcError {
                code,
                message: error.message,
                data: error.data.map(kept),
            };
            // Servers that could not read the id write a text of their own instead.
            Ok(RpcMessage::Response {
                id: own_id(id).unwrap_or_default(),
                result: Err(error),
            })
        }
        _ => Err("it is neither a request nor an answer of JSON-RPC".to_owned()),
    }
}

/// A member that is there and not `null`, which is a result, too, but no other member.
fn set(member: Option<&RawValue>) -> Option<&RawValue> {
    member.filter(|raw| raw.get() != "null")
}

/// The id of an answer. Requests have whole numbers as ids; some servers give them back as `1.0`.
/// A text with the same digits is another id.
fn own_id(id: Option<&RawValue>) -> Result<Option<u64>, String> {
    let Some(id) = id else { return Ok(None) };
    let text = id.get();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number = whole
        .parse()
        .ok()
        .filter(|_| fraction.bytes().all(|digit| digit == b'0'));
    number
        .map(Some)
        .ok_or_else(|| format!("it answers a request with the id {text}, which was never sent"))
}

/// Writes a request. `params` is the text of an object.
pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// Writes a notification. `params` is the text of an object, if there are any.
pub(crate) fn notification(method: &str, params: Option<&str>) -> String {
    let params = params
        .map(|params| format!(r#","params":{params}"#))
        .unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#)
}

/// What stands before and behind the result in the answer to the request with this id, for those
/// that do not copy their results.
pub(crate) fn around_result(id: &str) -> (String, &'static str) {
    (format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#), "}")
}

/// Writes the answer to the request with this id.
pub(crate) fn response(id: &JsonText, result: Result<&str, &RpcError>) -> String {
    match result {
        Ok(result) => {
            let around = around_result(id.get());
            format!("{}{result}{}", around.0, around.1)
        }
        Err(error) => refusal(Some(id.get()), error),
    }
}

/// Writes the answer to a request that failed. It is without an id if that could not be read.
pub(crate) fn refusal(id: Option<&str>, error: &RpcError) -> String {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let data = error
        .data
        .as_ref()
        .map(|data| format!(r#","data":{}"#, data.get()))
        .unwrap_or_default();
    let code = error.code;
    let message = quoted(&error.message);
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":{message}{data}}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> RpcMessage {
        let mut messages = parse(text).unwrap();
        assert_eq!(messages.len(), 1, "{text}");
        messages.remove(0)
    }

    #[test]
    fn each_kind_of_message_is_recognised_by_its_members() {
        let json = |text: &str| JsonText::parse(text).unwrap();
        assert_eq!(
            one(r#"{"jsonrpc":"2.0","id":7,"result":{"a": 1}}"#),
            RpcMessage::Response {
                id: Some(7),
                result: Ok(json("{\"a\": 1}"))
            }
        );
        assert_eq!(
            one(r#"{"id":7.0,"result":null}"#),
            RpcMessage::Response {
                id: Some(7),
                result: Ok(json("null"))
            }
        );
        let error = RpcError {
            code: -32_601,
            message: "no".into(),
            data: Some(json("[1]")),
        };
        assert_eq!(
            one(r#"{"id":null,"error":{"code":-32601,"message":"no","data":[1]}}"#),
            RpcMessage::Response {
                id: None,
                result: Err(error.clone())
            }
        );
        assert_eq!(
            one(r#"{"id":"server-error","error":{"code":-32601,"message":"no","data":[1]}}"#),
            RpcMessage::Response {
                id: None,
                result: Err(error)
            }
        );
        assert_eq!(
            one(r#"{"id":"a","method":"ping"}"#),
            RpcMessage::Request(RpcRequest {
                id: json("\"a\""),
                method: "ping".into(),
                params: None
            })
        );
        assert_eq!(
            one(r#"{"method":"n","params":{}}"#),
            RpcMessage::Notification {
                method: "n".into(),
                params: Some(json("{}"))
            }
        );
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_reason() {
        for (text, part) in [
            ("", "not a JSON-RPC message"),
            ("{", "not a JSON-RPC message"),
            ("{}", "neither a request nor an answer"),
            (
                r#"{"id":1,"result":1,"error":{"code":1}}"#,
                "neither a request nor an answer",
            ),
            (r#"{"id":"1","result":1}"#, "never sent"),
            (r#"{"id":1.5,"result":1}"#, "never sent"),
            ("[", "not JSON"),
            ("[{}]", "neither a request nor an answer"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(parse("[]").unwrap(), []);
        let batch =
            |messages: usize| format!("[{}]", vec![r#"{"method":"n"}"#; messages].join(","));
        assert_eq!(parse(&batch(MAX_BATCH)).unwrap().len(), MAX_BATCH);
        let error = parse(&batch(MAX_BATCH + 1)).unwrap_err();
        assert!(error.contains("more than 1000"), "{error}");
    }

    #[test]
    fn what_is_written_can_be_read() {
        assert!(matches!(
            one(&request(3, "tools/list", "{}")),
            RpcMessage::Request(_)
        ));
        assert!(matches!(
            one(&notification("x", None)),
            RpcMessage::Notification { .. }
        ));
        let error = RpcError {
            code: METHOD_NOT_FOUND,
            message: "a \"b\"".into(),
            data: None,
        };
        for result in [Ok("{}"), Err(&error)] {
            let id = JsonText::parse("5").unwrap();
            let RpcMessage::Response {
                id: Some(5),
                result: read,
            } = one(&response(&id, result))
            else {
                panic!()
            };
            assert_eq!(read.is_ok(), result.is_ok());
        }
    }
}
