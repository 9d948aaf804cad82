//! Makes a call and shows what its tool reports meanwhile: as a bar on a terminal, as lines
//! elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use uuid::Uuid;

use super::super::client::{DaemonAnswer, DaemonClient, DaemonEventStream};
use super::super::{CommandError, output};
use super::arguments::SentCall;
use crate::runtime::Clock;

/// The length of a bar whose tool says how much is complete.
const WHOLE: u32 = 1_000;
/// How long a call takes until a terminal shows that it runs.
const SHORT: Duration = Duration::from_secs(1);
/// How often what moves on a terminal is drawn.
const TICK: Duration = Duration::from_millis(100);
/// A call of which nothing is known but that it runs.
const RUNNING: &str = "{spinner} {msg} ({elapsed})";
/// A call that says how much is done.
const BAR: &str = "{bar:30} {percent:>3}% {msg} ({elapsed})";

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressView {
    /// As a bar, which is gone when the call has ended.
    Bar,
    /// A line for each event.
    Lines,
}

/// Makes a call, and shows its progress and log messages on standard error. A daemon that has no
/// such events makes the call all the same.
pub(super) async fn execute(
    daemon: &DaemonClient,
    mut body: SentCall<'_>,
    view: ProgressView,
) -> Result<DaemonAnswer, CommandError> {
    let id = Uuid::new_v4().to_string();
    body.call_id = Some(id.clone());
    let query = vec![("kind", "call".to_owned()), ("call_id", id)];
    let mut stream = daemon.follow(&query, None).await.ok();
    let mut shown = ProgressDisplay::new(view, body.tool_name);
    let clock = Clock::system();
    let begun = clock.now();
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
            Some(data) = event => shown.event(&data),
            answer = &mut call => {
                shown.end();
                return answer;
            }
            () = clock.sleep(TICK), if view == ProgressView::Bar => {
                if clock.now() - begun >= SHORT {
                    shown.tick();
                }
            }
        }
    }
}

/// The data of the next event of the call; `None` after the last.
async fn next(stream: &mut DaemonEventStream) -> Option<Value> {
    loop {
        let event = stream.next().await?;
        if event.event == "call" {
            return Some(serde_json::from_str(&event.data).unwrap_or_default());
        }
    }
}

/// The progress of one call.
struct ProgressDisplay {
    /// `None` for lines.
    bar: Option<ProgressBar>,
}

impl ProgressDisplay {
    fn new(view: ProgressView, tool: &str) -> Self {
        let bar = (view == ProgressView::Bar).then(|| {
            // Drawn when the first event comes, or when the call takes long.
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            bar.set_style(style(RUNNING));
            bar.set_message(output::sanitize(tool));
            bar
        });
        Self { bar }
    }

    fn event(&mut self, data: &Value) {
        let Some(text) = text(data).map(|text| output::sanitize(&text)) else {
            return;
        };
        let Some(bar) = &self.bar else {
            return output::note(&text);
        };
        if data["what"] != "progress" {
            return bar.suspend(|| output::note(&text));
        }
        if let Some(done) = share(data) {
            bar.set_style(style(BAR));
            bar.set_length(WHOLE.into());
            bar.set_position(done);
        }
        bar.set_message(text);
        self.tick();
    }

    /// Draws it.
    fn tick(&self) {
        let Some(bar) = &self.bar else { return };
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.tick();
    }

    /// Takes it away, so that the result stands alone.
    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A template that is known to be one.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// How much of the whole is done, of [`WHOLE`]; `None` if the tool does not say what is complete.
fn share(data: &Value) -> Option<u64> {
    let done = data["progress"].as_f64()?;
    let total = data["total"].as_f64().filter(|total| *total > 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and `WHOLE`"
    )]
    let share = ((done / total).clamp(0.0, 1.0) * f64::from(WHOLE)) as u64;
    Some(share)
}

/// What an event says for people; `None` for one that says nothing.
fn text(data: &Value) -> Option<String> {
    match data["what"].as_str()? {
        "progress" => {
            let total = data["total"]
                .as_f64()
                .map(|total| format!(" of {total}"))
                .unwrap_or_default();
            let message = data["message"]
                .as_str()
                .map(|message| format!(": {message}"))
                .unwrap_or_default();
            Some(format!("{}{total}{message}", data["progress"].as_f64()?))
        }
        "log" => {
            let text = data["data"]
                .as_str()
                .map_or_else(|| data["data"].to_string(), str::to_owned);
            Some(format!("{}: {text}", data["level"].as_str()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_events_take_one_line_each() {
        for (data, expected) in [
            (
                json!({"what": "progress", "progress": 1.0, "total": 2.0, "message": "half"}),
                Some("1 of 2: half"),
            ),
            (json!({"what": "progress", "progress": 0.5}), Some("0.5")),
            (
                json!({"what": "log", "level": "info", "data": "working"}),
                Some("info: working"),
            ),
            (
                json!({"what": "log", "level": "info", "data": {"a": 1}}),
                Some("info: {\"a\":1}"),
            ),
            (json!({"what": "input-over", "interaction_id": "x"}), None),
            (json!([]), None),
        ] {
            assert_eq!(text(&data).as_deref(), expected, "{data}");
        }
    }

    #[test]
    fn a_bar_shows_the_share_of_the_whole() {
        for (data, expected) in [
            (json!({"progress": 1.0, "total": 4.0}), Some(250)),
            (json!({"progress": 9.0, "total": 4.0}), Some(1_000)),
            (json!({"progress": -1.0, "total": 4.0}), Some(0)),
            (json!({"progress": 1.0, "total": 0.0}), None),
            (json!({"progress": 1.0}), None),
        ] {
            assert_eq!(share(&data), expected, "{data}");
        }
    }
}
