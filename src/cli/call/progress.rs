//! Makes a call and shows what its tool reports meanwhile.

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::client::{DaemonAnswer, DaemonClient, DaemonEventStream};
use super::super::{CommandError, output};

/// Makes a call, and prints its progress and log messages. A daemon that has no such events makes
/// the call all the same.
pub(super) async fn execute(daemon: &DaemonClient, mut body: Value) -> Result<DaemonAnswer, CommandError> {
    let id = Uuid::new_v4().to_string();
    body["call_id"] = json!(id);
    let query = vec![("kind", "call".to_owned()), ("call_id", id)];
    let mut stream = daemon.follow(&query, None).await.ok();
    let call = daemon.execute(&body);
    tokio::pin!(call);
    loop {
        let event = async {
            match &mut stream {
                Some(stream) => next(stream).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(text) = event => output::note(&output::sanitize(&text)),
            answer = &mut call => return answer,
        }
    }
}

/// What the next event says for people; `None` for one that says nothing, or after the last.
async fn next(stream: &mut DaemonEventStream) -> Option<String> {
    loop {
        let event = stream.next().await?;
        if event.event != "call" {
            continue;
        }
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if let Some(text) = text(&data) {
            return Some(text);
        }
    }
}

fn text(data: &Value) -> Option<String> {
    match data["what"].as_str()? {
        "progress" => {
            let total = data["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            let message = data["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
            Some(format!("{}{total}{message}", data["progress"].as_f64()?))
        }
        "log" => {
            let said = data["data"].as_str().map_or_else(|| data["data"].to_string(), str::to_owned);
            Some(format!("{}: {said}", data["level"].as_str()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_in_one_line_each() {
        for (data, expected) in [
            (json!({"what": "progress", "progress": 1.0, "total": 2.0, "message": "half"}), Some("1 of 2: half")),
            (json!({"what": "progress", "progress": 0.5}), Some("0.5")),
            (json!({"what": "log", "level": "info", "data": "working"}), Some("info: working")),
            (json!({"what": "log", "level": "info", "data": {"a": 1}}), Some("info: {\"a\":1}")),
            (json!({"what": "input-over", "interaction_id": "x"}), None),
            (json!([]), None),
        ] {
            assert_eq!(text(&data).as_deref(), expected, "{data}");
        }
    }
}
