//! One call, ready to be sent.

use std::time::Duration;

use callsheet::model::{CallerInfo, JsonText};
use callsheet::protocols::Call;
use serde_json::Value;

/// A call without limits that a test would meet.
pub(crate) fn call_of(tool: &str, arguments: &Value) -> Call {
    Call {
        tool: tool.into(),
        arguments: JsonText::parse(&arguments.to_string()).unwrap(),
        user_id: None,
        caller: CallerInfo::default(),
        timeout: None,
        longest: Duration::from_secs(30),
        max_body: 64 * 1024,
        resumed: None,
    }
}
