//! The definitions that operators added while the daemon runs, as the scenario that they are.
//!
//! It names that scenario as long as there is any. Those of the configuration and of the embedding
//! program have sources of their own, which name the same scenario.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::static_list::definitions_endpoint;
use super::{EndpointSet, Source, SourceError, announce};
use crate::model::{SourceAbsence, SourceId, SourceSpec};
use crate::runtime::Stop;

impl SourceId {
    /// Definitions that were added over HTTP.
    pub const REGISTERED: Self = Self::new(&SourceSpec {
        name: "registered",
        rank: 15,
        found: "among the definitions that were added",
        absence: SourceAbsence::Decision("its last definition was taken away"),
        is_announced: false,
        has_entries: false,
    });
}

/// The source; follows whether there is any definition.
#[derive(Debug)]
pub struct RegisteredSource(watch::Receiver<bool>);

impl RegisteredSource {
    /// The source of this signal.
    pub fn new(is_any: watch::Receiver<bool>) -> Self {
        Self(is_any)
    }
}

impl Source for RegisteredSource {
    fn id(&self) -> SourceId {
        SourceId::REGISTERED
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        let mut is_any = self.0;
        async move {
            loop {
                let any = *is_any.borrow_and_update();
                announce(
                    &out,
                    EndpointSet {
                        initial_scan_done: true,
                        endpoints: definitions_endpoint().into_iter().filter(|_| any).collect(),
                        findings: Vec::new(),
                    },
                );
                tokio::select! {
                    () = stop.wait() => return Ok(()),
                    changed = is_any.changed() => if changed.is_err() {
                        stop.wait().await;
                        return Ok(());
                    },
                }
            }
        }
        .boxed()
    }
}
