//! Examples: recorded answers of a daemon to the requests in `examples.json`.
//! `tests/http/openapi_examples.rs` repeats the requests and compares. It can also record the
//! answers again, so that no example is invented.

use serde::Deserialize;
use serde_json::Value;

/// One request and its answer.
#[derive(Debug, Deserialize)]
pub(super) struct Example {
    /// The operation, by its id.
    pub(super) operation: String,
    /// Method and target, as in a request line.
    pub(super) request: String,
    /// The JSON body of the request.
    pub(super) body: Option<Value>,
    pub(super) status: u16,
    /// The JSON of the answer, or its text.
    pub(super) answer: Value,
}

const WRITTEN: &str = include_str!("examples.json");

/// All examples, in reading order. A test ensures that the file can be parsed.
pub(super) fn parse_examples() -> Vec<Example> {
    serde_json::from_str(WRITTEN).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_is_readable() {
        assert!(
            !serde_json::from_str::<Vec<super::Example>>(super::WRITTEN)
                .unwrap()
                .is_empty()
        );
    }
}
