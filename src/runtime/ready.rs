//! Readiness: a guard that is held, not a flag that is set.
//!
//! A part that must finish a step before the daemon is ready holds a named [`Latch`]. When the last
//! latch is dropped, the process is ready; until then `/readyz` shows what is awaited.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Knows which latches are still held. Clones share the same set.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<LatchSet>);

#[derive(Debug)]
struct LatchSet {
    held: Mutex<BTreeMap<String, usize>>,
    changed: watch::Sender<bool>,
}

/// Keeps the process from being ready until it is dropped.
#[derive(Debug)]
pub struct Latch {
    name: String,
    inner: Arc<LatchSet>,
}

impl Readiness {
    /// A set without latches: ready.
    pub fn new() -> Self {
        Self(Arc::new(LatchSet {
            held: Mutex::default(),
            changed: watch::Sender::new(true),
        }))
    }

    /// Takes a latch; `/readyz` shows `name` as awaited.
    pub fn latch(&self, name: impl Into<String>) -> Latch {
        let name = name.into();
        let mut held = self.0.held.lock();
        *held.entry(name.clone()).or_insert(0) += 1;
        self.0.changed.send_replace(false);
        Latch {
            name,
            inner: Arc::clone(&self.0),
        }
    }

    /// The names still awaited, in order; empty when ready.
    pub fn awaited(&self) -> Vec<String> {
        self.0.held.lock().keys().cloned().collect()
    }

    /// Completes when no latch is held.
    pub async fn wait(&self) {
        let mut changed = self.0.changed.subscribe();
        // The sender is a field of `self`, so waiting cannot fail here.
        let _ = changed.wait_for(|ready| *ready).await;
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        let mut held = self.inner.held.lock();
        if let Some(count) = held.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.name);
            }
        }
        self.inner.changed.send_replace(held.is_empty());
    }
}
