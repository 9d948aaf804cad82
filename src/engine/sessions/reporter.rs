//! Passes the reports of sessions to the loop: hints, and their end.
//!
//! For each of them one task waits beside the loop. A session that sends too much is read slowly,
//! so that it fills neither the loop's queue nor its time. This module never decides what follows.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;

use crate::engine::message::EngineEvent;
use crate::engine::sessions::news::{News, SessionNews};
use crate::model::ScenarioName;
use crate::protocols::{EndReason, Hint};
use crate::runtime::Clock;

/// Hints within this time count as one.
const TOGETHER: Duration = Duration::from_millis(20);
/// The largest number of hints that are read as one before other tasks run.
const HINTS_AT_ONCE_MAX: usize = 1_000;

/// Passes the reports of one session to the loop.
pub(super) struct Reporter {
    pub(super) name: ScenarioName,
    pub(super) number: u64,
    pub(super) events: mpsc::Sender<EngineEvent>,
}

impl Reporter {
    /// Sends a report. Returns whether the loop still runs.
    async fn report(&self, news: News) -> bool {
        let news = SessionNews {
            name: self.name.clone(),
            number: self.number,
            news,
        };
        self.events.send(EngineEvent::Session(news)).await.is_ok()
    }

    /// Waits for the end of the session.
    pub(super) async fn end(self, ended: BoxFuture<'static, EndReason>) {
        let reason = ended.await;
        self.report(News::Ended(reason)).await;
    }

    /// Reads the session's hints to their end. A panic of the stream counts as its end.
    pub(super) async fn hints(self, hints: BoxStream<'static, Hint>, clock: Clock) {
        // Ends after a panic.
        let mut hints = AssertUnwindSafe(hints).catch_unwind().fuse();
        while let Some(Ok(mut hint)) = hints.next().await {
            for _ in 0..HINTS_AT_ONCE_MAX {
                let Some(Some(Ok(next))) = hints.next().now_or_never() else {
                    break;
                };
                if next == Hint::Following {
                    hint = next;
                }
            }
            if !self.report(News::Hint(hint)).await {
                return;
            }
            clock.sleep(TOGETHER).await;
        }
        self.report(News::HintsEnded).await;
    }
}
