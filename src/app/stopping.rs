//! What a stop of the daemon waits for, in words.

use std::sync::Arc;

use tokio::sync::watch;

use crate::calls::Calls;
use crate::catalog::CatalogReader;
use crate::transports::stdio::Children;

/// Says what a stop waits for. Keeps no part from ending.
#[derive(Debug, Clone)]
pub struct StopProgress {
    pub(super) reader: CatalogReader,
    pub(super) calls: Calls,
    pub(super) children: Arc<Children>,
    pub(super) connections: watch::Receiver<usize>,
}

impl StopProgress {
    /// What it waits for now: calls and programs by their scenarios, then connections.
    pub fn awaited(&self) -> Vec<String> {
        let health = &self.reader.snapshot().health;
        let calls = health
            .keys()
            .map(|name| (name, self.calls.under_way(name)))
            .filter(|(_, calls)| *calls > 0);
        let calls = calls.map(|(name, calls)| format!("{} of `{name}`", counted(calls, "call")));
        let mut programs = self.children.running();
        let mut awaited: Vec<String> = calls.collect();
        for (name, scenario) in health {
            let command = scenario.url.as_deref().unwrap_or_default();
            if programs.iter().any(|program| **program == *command) {
                programs.retain(|program| **program != *command);
                awaited.push(format!("the program of `{name}`"));
            }
        }
        // Programs of scenarios that are not in the list any more.
        awaited.extend(
            programs
                .iter()
                .map(|program| format!("the program `{program}`")),
        );
        let connections = *self.connections.borrow();
        if connections > 0 {
            awaited.push(counted(connections, "connection"));
        }
        awaited
    }
}

/// `1 call`, `2 calls`.
fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
