//! A sample scenario that is an MCP server: a program of its own, which speaks over its standard
//! input and output. It is this program with a hidden command.

use std::io::{BufRead as _, Read as _, Write as _};

use serde_json::{Value, json};

use crate::config::{MCP, StaticScenario};
use crate::json::rpc::{self, METHOD_NOT_FOUND, RpcError};
use crate::model::{JsonText, ScenarioName, StdioTarget};

/// The hidden command.
const COMMAND: &str = "demo-server";
/// The version of the protocol that it speaks, whatever its client proposes.
const VERSION: &str = "2025-11-25";
/// Bytes of a message at most.
const MAX_MESSAGE: u64 = 1024 * 1024;
/// The units that it knows, with their lengths in metres.
const UNITS: [(&str, f64); 7] = [
    ("millimetre", 0.001),
    ("centimetre", 0.01),
    ("metre", 1.0),
    ("kilometre", 1_000.0),
    ("inch", 0.0254),
    ("foot", 0.3048),
    ("mile", 1_609.344),
];

/// The scenario that starts it.
pub(super) fn scenario() -> Result<StaticScenario, anyhow::Error> {
    let program = std::env::current_exe()?.display().to_string();
    let name: ScenarioName = "units".parse()?;
    let target = StdioTarget::new(program).with_args([COMMAND]).into();
    Ok(StaticScenario {
        name,
        target,
        protocol: Some(MCP.to_owned()),
        sleep_after: None,
    })
}

/// Answers messages until the input ends.
pub(in crate::cli) fn run() -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    loop {
        let mut line = String::new();
        if input.by_ref().take(MAX_MESSAGE).read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(answer) = serde_json::from_str(&line)
            .ok()
            .and_then(|message| answer(&message))
        {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
}

/// The answer to a request; `None` for what wants none.
fn answer(message: &Value) -> Option<String> {
    let id = JsonText::known(message.get("id")?.to_string());
    let method = message.get("method")?.as_str()?;
    let result = match method {
        "initialize" => json!({
            "protocolVersion": VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "units", "version": "1.0.0"},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": [tool()]}),
        "tools/call" => called(&message["params"]),
        _ => {
            let message = format!("there is no method {method}");
            let error = RpcError {
                code: METHOD_NOT_FOUND,
                message,
                data: None,
            };
            return Some(rpc::response(&id, Err(&error)));
        }
    };
    Some(rpc::response(&id, Ok(&result.to_string())))
}

/// Its one tool.
fn tool() -> Value {
    let units: Vec<_> = UNITS.iter().map(|(name, _)| *name).collect();
    json!({
        "name": "convert_length",
        "description": "Converts a length from one unit to another",
        "inputSchema": {
            "type": "object",
            "properties": {
                "value": {"type": "number", "description": "The length"},
                "from": {"type": "string", "enum": units, "description": "Its unit"},
                "to": {"type": "string", "enum": units, "description": "The unit that is wanted"},
            },
            "required": ["value", "from", "to"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
    })
}

/// The result of a call.
fn called(params: &Value) -> Value {
    let arguments = &params["arguments"];
    let unit = |member: &str| {
        let (name, metres) = UNITS.iter().find(|(name, _)| arguments[member] == *name)?;
        Some((*name, *metres))
    };
    let converted = || {
        let (_, from) = unit("from")?;
        let (name, to) = unit("to")?;
        Some(json!({"value": arguments["value"].as_f64()? * from / to, "unit": name}))
    };
    let known = params["name"] == "convert_length";
    let (text, is_error) = match converted().filter(|_| known) {
        Some(result) => (result.to_string(), false),
        None => ("the call does not fit the tool".to_owned(), true),
    };
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_and_notifications_are_not() {
        assert_eq!(
            answer(&json!({"method": "notifications/initialized"})),
            None
        );
        let answered =
            |message: Value| -> Value { serde_json::from_str(&answer(&message).unwrap()).unwrap() };
        let refused = answered(json!({"id": 1, "method": "server/discover"}));
        assert_eq!(refused["error"]["code"], -32601);
        let call = |arguments: Value| {
            let params = json!({"name": "convert_length", "arguments": arguments});
            answered(json!({"id": "a", "method": "tools/call", "params": params}))
        };
        let done = call(json!({"value": 2, "from": "kilometre", "to": "metre"}));
        assert_eq!(done["id"], "a");
        assert_eq!(
            done["result"]["content"][0]["text"],
            r#"{"value":2000.0,"unit":"metre"}"#
        );
        assert_eq!(
            call(json!({"value": 2, "from": "yard", "to": "metre"}))["result"]["isError"],
            true
        );
    }
}
