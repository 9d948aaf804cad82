//! Bodies of JSON-RPC: requests as the server reads them, and answers to `tools/list` as the client
//! does.
//!
//! Whatever comes, each message has at most one answer, which is JSON and has the id of the message
//! or `null`; a batch is bounded; and a list that is taken keeps the promises of every manifest.

#![no_main]

use callsheet::model::Bounds;
use callsheet::protocols::json_rpc_tools::decode;
use callsheet::provide::json_rpc::{
    AnswerError, IncomingMessage, MAX_BATCH, Received, answer, read,
};
use callsheet::state;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

const BOUNDS: Bounds = Bounds {
    tools: 4,
    part: 2048,
};

fuzz_target!(|body: &[u8]| {
    match read(body) {
        Received::One(message) => check(message),
        Received::Batch(messages) => {
            assert!(
                (1..=MAX_BATCH).contains(&messages.len()),
                "{} messages",
                messages.len()
            );
            messages.into_iter().for_each(check);
        }
    }
    let Ok(decoded) = decode(body, BOUNDS) else {
        return;
    };
    let tools = &decoded.manifest.tools;
    assert!(tools.len() <= BOUNDS.tools);
    assert!(
        tools.windows(2).all(|pair| pair[0].name < pair[1].name),
        "sorted and unique"
    );
    let written = state::manifest::write(&decoded.manifest);
    let restored =
        state::manifest::read(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(restored.digest, decoded.manifest.digest, "{written}");
});

fn check(message: IncomingMessage) {
    match message {
        IncomingMessage::Request { id, method, params } => {
            let text = answer(&id, Err(AnswerError::invalid_params(method)));
            assert!(is_answer(&text, &id), "{text}");
            if let Some(params) = params {
                assert!(
                    is_json(&params) && params.starts_with(['{', '[']),
                    "{params}"
                );
            }
        }
        IncomingMessage::Notification => {}
        IncomingMessage::Refused { id, error } => {
            let id = id.as_deref().unwrap_or("null");
            let text = answer(id, Err(error));
            assert!(is_answer(&text, id), "{text}");
        }
    }
}

/// Whether a text is one answer with this id, which is a text, a number or `null`.
fn is_answer(text: &str, id: &str) -> bool {
    let is_id = id == "null"
        || id.starts_with(['"', '-'])
        || id.starts_with(|digit: char| digit.is_ascii_digit());
    is_id && text.ends_with(&format!(r#","id":{id}}}"#)) && is_json(text)
}

/// A number may have more digits than a tree of values can hold, so none is made.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}
