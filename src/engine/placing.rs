//! What the sources' sets make of the records: scenarios come, move and go.

use super::core::Core;
use super::publish::Settled;
use super::record::{Departed, Now, Record};
use super::roster::{self, Place};
use crate::discovery::Trust;
use crate::model::ScenarioName;
use crate::protocols;

impl Core {
    /// The sources changed their minds: scenarios come, move and go.
    pub(super) fn places(&mut self, now: Now) {
        let roster = roster::merge(&self.sets, self.parts.config.refresh.max_scenarios);
        self.settled = roster.settled;
        for (name, place) in &roster.places {
            if self.places.get(name) != Some(place) || !self.records.contains_key(name) {
                self.placed(name, place, now);
            }
        }
        let before = std::mem::take(&mut self.places);
        let departed: Vec<_> = if self.settled {
            // Restored scenarios that no source named count too.
            self.records.keys().filter(|name| !roster.places.contains_key(*name)).cloned().collect()
        } else {
            Vec::new()
        };
        self.places = roster.places;
        if !self.settled {
            // A source that has not looked everywhere yet cannot take anything back.
            for (name, place) in before {
                self.places.entry(name).or_insert(place);
            }
        }
        for name in departed {
            self.departed(&name, now);
        }
        self.press.source_findings(roster.findings);
    }

    /// A scenario is new, or its endpoint changed.
    fn placed(&mut self, name: &ScenarioName, place: &Place, now: Now) {
        let trusted = place.endpoint.trust == Trust::Trusted;
        let decision = self.decisions.get(name).copied();
        let record =
            self.records.entry(name.clone()).or_insert_with(|| Record::new(name.clone(), place.source, trusted, now));
        let known = record.place.replace(place.clone());
        let gone = matches!(record.departed.take(), Some(Departed::Gone(_)));
        record.decision = decision;
        record.source = place.source;
        record.trusted = trusted;
        if let Some(protocol) = place.endpoint.protocol.as_deref().and_then(protocols::by_id) {
            record.protocol = Some(protocol);
        }
        // A record without an address gets it here, whatever is known of where it was.
        let known = known.filter(|_| record.upstream.is_some());
        let elsewhere = known.as_ref().is_none_or(|known| known.endpoint.url != place.endpoint.url);
        let restarted = gone || known.as_ref().is_some_and(|known| roster::restarted(known, place));
        record.suspect |= restarted;
        if elsewhere {
            match self.parts.client.upstream(place.endpoint.url.clone()) {
                Ok(upstream) => {
                    record.upstream = Some(upstream);
                    record.ask_anew(now.mono, now);
                }
                Err(error) => {
                    record.unaskable(&error, now);
                    self.asked(name);
                }
            }
        } else if restarted {
            let gap = self.parts.config.refresh.forced_gap;
            let earliest = record.last_attempt.map_or(now.mono, |(at, _)| at + gap);
            record.ask_anew(earliest.max(now.mono), now);
        }
        self.touch(name, now, Settled::Changed);
    }

    /// No source names it any more: its last address is asked once more before its tools go.
    fn departed(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get_mut(name) else { return };
        if record.departed.is_some() {
            return;
        }
        record.departed = Some(Departed::Asking);
        record.ask_anew(now.mono, now);
        if record.upstream.is_none() {
            record.goes(now);
        }
        self.touch(name, now, Settled::Changed);
    }
}
