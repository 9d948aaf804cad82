//! Receives the updates of resources that one connection signals, and passes them to subscribers.
//!
//! What an update says is not kept: only which resource changed.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde::Deserialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::model::JsonText;

/// The notification of an update.
pub(super) const UPDATED: &str = "notifications/resources/updated";
/// Updates of one connection that wait to be read. A reader that misses some takes it that its
/// resource is among them.
const WAITING: usize = 256;

/// Where the updates of one connection come in.
#[derive(Debug, Clone)]
pub(super) struct UpdateSignals(broadcast::Sender<Arc<str>>);

impl Default for UpdateSignals {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING))
    }
}

impl UpdateSignals {
    /// Takes the parameters of a notification.
    pub(super) fn take(&self, params: Option<&JsonText>) {
        if let Some(uri) = params.and_then(uri) {
            // Fails when no resource is followed.
            let _ = self.0.send(uri.into());
        }
    }

    /// Those of one resource, until the connection is dropped.
    pub(super) fn of(&self, uri: &str) -> BoxStream<'static, ()> {
        let wanted: Arc<str> = uri.into();
        let updates = stream::unfold(
            (self.0.subscribe(), wanted),
            |(mut updates, wanted)| async move {
                loop {
                    match updates.recv().await {
                        Ok(uri) if uri != wanted => {}
                        Ok(_) | Err(RecvError::Lagged(_)) => return Some(((), (updates, wanted))),
                        Err(RecvError::Closed) => return None,
                    }
                }
            },
        );
        updates.boxed()
    }
}

/// The resource that a notification names.
fn uri(params: &JsonText) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    serde_json::from_str::<Updated>(params.get())
        .ok()
        .map(|updated| updated.uri)
}
