//! A scenario as operators see it. Changes nothing.

use std::sync::Arc;

use crate::engine::scenario::Scenario;
use crate::model::{Health, Manifest, SHOWN_NAME, SHOWN_TEXT, Target, ToolCounts};

impl Scenario {
    /// What an operator sees. `counts` come from the catalog.
    pub(in crate::engine) fn health(&self, counts: ToolCounts) -> Health {
        let manifest = self.offer.as_ref().map(|held| &held.manifest);
        let text = |pick: fn(&Manifest) -> &Arc<str>, most| {
            manifest
                .map(|manifest| cut(pick(manifest), most))
                .filter(|text| !text.is_empty())
        };
        Health {
            name: self.name.clone(),
            state: self.state(),
            reason: self.current.reason().to_owned(),
            since: self.current.since(),
            url: self.target.as_ref().map(Target::to_string),
            source: self.source,
            trusted: self.is_trusted(),
            party: self.party.clone().unwrap_or_default(),
            own_name: text(|m| &m.scenario.name, SHOWN_NAME),
            protocol: self.protocol.as_ref().map(|protocol| protocol.id()),
            protocol_version: text(|m| &m.protocol_version, SHOWN_NAME),
            version: text(|m| &m.scenario.version, SHOWN_NAME),
            description: text(|m| &m.scenario.description, SHOWN_TEXT),
            tools: counts,
            freshness: self.offer.as_ref().map(|held| held.freshness),
            last_success: self.last_success,
            last_attempt: self.polls.last.map(|(_, wall)| wall),
            last_error: self.last_error.clone(),
            program_end: self.program_end.clone(),
            next_attempt: self
                .polls
                .next
                .filter(|_| self.may_be_polled())
                .map(|(_, wall)| wall),
            awaited: self.awaited.as_deref().cloned(),
            failures_in_a_row: self.failures,
            latency_ms: self
                .latency
                .map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX)),
            restarts: self.restarts.count(),
            last_restart: self.restarts.last(),
        }
    }
}

/// A scenario's own text, cut to `most` characters; a cut text ends in an ellipsis.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}
