//! What sessions say by themselves, on its way to the loop: hints, and their end.
//!
//! One task each waits for them beside the loop. A session that floods is read slowly, so that it
//! fills neither the loop's queue nor its time. It never decides what follows.

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

/// Hints that come within this time are one.
const TOGETHER: Duration = Duration::from_millis(20);
/// Hints that are taken together at most before others have their turn.
const MOST: usize = 1_000;

/// Brings the word of one session to the loop.
pub(super) struct Reporter {
    pub(super) name: ScenarioName,
    pub(super) number: u64,
    pub(super) events: mpsc::Sender<EngineEvent>,
}

impl Reporter {
    /// Whether the loop is there to hear it.
    async fn report(&self, news: News) -> bool {
        let news = SessionNews { name: self.name.clone(), number: self.number, news };
        self.events.send(EngineEvent::Session(news)).await.is_ok()
    }

    /// Waits for the end of the session.
    pub(super) async fn end(self, ended: BoxFuture<'static, EndReason>) {
        let reason = ended.await;
        self.report(News::Ended(reason)).await;
    }

    /// Reads its hints to their end. A panic of the stream is its end too.
    pub(super) async fn hints(self, hints: BoxStream<'static, Hint>, clock: Clock) {
        // Ends after a panic.
        let mut hints = AssertUnwindSafe(hints).catch_unwind().fuse();
        while let Some(Ok(mut hint)) = hints.next().await {
            for _ in 0..MOST {
                let Some(Some(Ok(next))) = hints.next().now_or_never() else { break };
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
