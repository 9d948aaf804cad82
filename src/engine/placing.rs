//! What the sources' sets make of the records: scenarios come, move and go.

use std::sync::Arc;

use super::assignment::{self, Assignment, address_key};
use super::effects::Settled;
use super::now::Now;
use super::persist::archive::Save;
use super::reconcile::{self, Holder, Known};
use super::run::Core;
use super::scenario::facts::Presence;
use super::scenario::lifecycle::RemovedBy;
use super::scenario::{Scenario, trust};
use crate::discovery::Trust;
use crate::model::{Party, ScenarioName, SourceId};
use crate::protocols::Protocols;
use crate::state::Decision;

impl Core {
    /// The sources changed their minds: scenarios come, move and go.
    pub(super) fn places(&mut self, now: Now) {
        if self.place_all(now) {
            // What went at once may have held what somebody else waited for.
            self.place_all(now);
        }
    }

    /// Places everything. Whether a scenario went at once.
    fn place_all(&mut self, now: Now) -> bool {
        let mut roster = reconcile::merge(&self.sets, &self.known(), self.parts.config.refresh.max_scenarios);
        for (name, place) in &mut roster.places {
            // What is as it was stays shared with its record.
            if let Some(known) = self.places.get(name).filter(|known| *known == place) {
                place.endpoint = Arc::clone(&known.endpoint);
            }
        }
        if now.mono >= self.claims_until {
            for name in std::mem::take(&mut self.claims).into_keys() {
                // A full queue only means that the next start forgets it again.
                let _ = self.parts.saves.try_send(Save::Forget(name));
            }
        }
        for (name, place) in &roster.places {
            if self.places.get(name) != Some(place) || !self.records.contains_key(name) {
                self.placed(name, place, now);
            }
        }
        let before = std::mem::take(&mut self.places);
        let unnamed = self.records.values().filter(|record| !roster.places.contains_key(&record.name));
        let departed: Vec<_> =
            unnamed.filter(|record| self.may_leave(record)).map(|record| record.name.clone()).collect();
        self.places = roster.places;
        for (name, place) in before {
            // A source that has not looked everywhere yet cannot take anything back.
            if !self.has_settled(place.source) {
                self.places.entry(name).or_insert(place);
            }
        }
        self.silence(&departed, now);
        let mut went = false;
        for name in departed {
            if self.departed(&name, now) {
                went = true;
                self.drop_double(&name, now);
            }
        }
        self.forget_many(now);
        self.press.source_findings(roster.findings);
        went
    }

    /// Whether a source has looked everywhere at least once. One that does not run has nothing to look for.
    fn has_settled(&self, source: SourceId) -> bool {
        self.sets.get(&source).is_none_or(|set| set.settled)
    }

    /// Whether a scenario that no source names may be given up: only its own source can keep it. At the start, what was restored also waits for the
    /// others, for one of them may be about to name it.
    fn may_leave(&self, record: &Scenario) -> bool {
        let others = record.place.is_some() || self.settling.is_none() || self.sets.values().all(|set| set.settled);
        others && self.has_settled(record.source)
    }

    /// Who has which name: who an operator said yes to, who is on record, and who was waiting for a yes when the daemon last ran.
    fn known(&self) -> Known {
        let mut known: Known = self.claims.iter().map(|(name, party)| (name.clone(), gone(party))).collect();
        for (name, record) in &self.records {
            let Some(party) = record.party.clone() else { continue };
            let lives = record.target.is_some() && !record.is_absent();
            known.insert(name.clone(), Holder { party, lives, stands_in: None });
        }
        for (name, ruling) in &self.decisions {
            let record = self.records.get(name);
            // Who was given the yes keeps the name while someone else has it for want of them, unless a source vouches for that one.
            let held = record.is_some_and(|record| {
                record.trusted || record.party.as_ref().is_some_and(|party| trust::same(&ruling.party, party))
            });
            if ruling.decision == Decision::Trusted && ruling.party.origin.is_some() && !held {
                let stands_in = record.and_then(|record| record.party.clone());
                known.insert(name.clone(), Holder { stands_in, ..gone(&ruling.party) });
            }
        }
        known
    }

    /// A scenario is new, or its endpoint changed.
    fn placed(&mut self, name: &ScenarioName, place: &Assignment, now: Now) {
        let vouched = place.endpoint.trust == Trust::Trusted;
        let party = trust::party(&place.endpoint);
        if self.records.get(name).is_some_and(|record| record.is_another(&party, vouched)) {
            self.start_over(name, place, now);
        }
        let new = || Box::new(Scenario::new(name.clone(), place.source, vouched, now));
        let record = self.records.entry(name.clone()).or_insert_with(new);
        let known = record.place.replace(place.clone());
        let gone = record.is_absent();
        record.presence = Presence::Named;
        record.silenced = None;
        record.source = place.source;
        record.trusted = vouched;
        record.party = Some(party);
        self.claims.remove(name);
        self.rule(name, now);
        let Some(record) = self.records.get_mut(name) else { return };
        let respoken = speaks(record, known.as_ref(), place, &self.parts.protocols);
        // A record without an address gets it here, whatever is known of where it was.
        let known = known.filter(|_| record.target.is_some());
        let elsewhere = known.as_ref().is_none_or(|known| known.endpoint.target() != place.endpoint.target());
        let restarted = gone || known.as_ref().is_some_and(|known| assignment::restarted(known, place));
        record.suspect |= restarted;
        if restarted {
            self.sessions.close(name);
        }
        // Whoever may announce must not make us ask at will: who waits for a yes is not asked at once for moving, and not at all for
        // restarting or coming back.
        let gap = if record.is_trusted() {
            self.parts.config.refresh.forced_gap
        } else {
            self.parts.config.refresh.min_interval
        };
        let earliest = record.last_attempt.map_or(now.mono, |(at, _)| at + gap).max(now.mono);
        if elsewhere {
            let target = place.endpoint.target();
            match self.parts.transports.check(&target) {
                Ok(()) => {
                    record.target = Some(target);
                    let at = if record.is_trusted() { now.mono } else { earliest };
                    record.ask_anew(at, now);
                }
                Err(error) => {
                    record.unaskable(&error, now);
                    self.asked(name, now);
                }
            }
        } else if respoken && record.is_trusted() || restarted && (record.is_trusted() || record.offer.is_none()) {
            record.ask_anew(earliest, now);
        } else if restarted {
            let seldom = self.parts.config.refresh.max_interval;
            record.ask_at(record.last_attempt.map_or(now.mono, |(at, _)| at + seldom).max(now.mono), now);
        }
        self.keep(name);
        self.touch(name, now, Settled::Changed);
    }

    /// The name has come to someone else: nothing that was known of the one before may be taken for theirs.
    fn start_over(&mut self, name: &ScenarioName, place: &Assignment, now: Now) {
        let Some(old) = self.records.remove(name) else { return };
        self.sessions.close(name);
        if let Some(wake) = old.wake {
            self.wakes.remove(&(wake, name.clone()));
        }
        self.press.forget(name);
        let mut record = Scenario::new(name.clone(), place.source, place.endpoint.trust == Trust::Trusted, now);
        // What the store has is the other's and goes when it is next brought in line; who waits for an answer gets the next one.
        (record.kept, record.claimed, record.waiters) = (old.kept, old.claimed, old.waiters);
        // To those who follow states it is the name that turns.
        (record.last_attempt, record.told) = (old.last_attempt, old.told);
        self.records.insert(name.clone(), Box::new(record));
    }

    /// No source names it any more: its last address is asked once more before its tools go. Whether it went at once.
    fn departed(&mut self, name: &ScenarioName, now: Now) -> bool {
        let Some(record) = self.records.get_mut(name) else { return false };
        // A source that sees nothing any more gives a hint. An operator who takes an entry out of the list, or switches a source off, has
        // decided.
        let dismissed = match record.source {
            SourceId::Static => true,
            SourceId::Embedded => false,
            source => !self.sets.contains_key(&source),
        };
        match record.presence {
            Presence::Named => {}
            Presence::Leaving | Presence::Unnamed if dismissed => {}
            Presence::Leaving | Presence::Unnamed | Presence::Absent { .. } => return false,
        }
        record.presence = Presence::Leaving;
        let asked = record.may_be_asked() && record.is_trusted() && !dismissed;
        record.ask_anew(now.mono, now);
        if !asked {
            // Nothing of it is published, so there is nothing to ask about.
            record.goes(if dismissed { RemovedBy::Configuration } else { RemovedBy::Source }, now);
        }
        if dismissed {
            record.kept = None;
            // A full queue only means that the next start publishes it until its sources have looked.
            let _ = self.parts.saves.try_send(Save::Forget(name.clone()));
            if let Some(latch) = self.latches.remove(name) {
                self.press.after_publish(move |_| drop(latch));
            }
        }
        self.touch(name, now, Settled::Changed);
        !asked
    }

    /// Forgets who waited under a name and is known under another one now, such as that of the static list, which was read later.
    fn drop_double(&mut self, name: &ScenarioName, now: Now) {
        let Some(record) = self.records.get(name) else { return };
        let Some(party) = record.party.as_ref().filter(|_| !self.decisions.contains_key(name)) else { return };
        let address = record.place.as_ref().filter(|_| record.is_dismissed()).map(|place| address_key(&place.endpoint));
        let now_known = self.places.values().any(|place| {
            let placed = trust::party(&place.endpoint);
            match &address {
                // Several entries of the configuration may be behind one origin.
                Some(address) => *address == address_key(&place.endpoint),
                None => !record.is_trusted() && (placed.same_identity(party) || placed.same_origin(party)),
            }
        });
        if now_known {
            if let Some(wake) = record.wake {
                self.wakes.remove(&(wake, name.clone()));
            }
            self.press.turned(record.forgotten("it is known under another name", now));
            self.records.remove(name);
            self.sessions.close(name);
            self.press.forget(name);
            // A full queue only means that the next start forgets it again.
            let _ = self.parts.saves.try_send(Save::Forget(name.clone()));
        }
    }

    /// Brings a record in line with the operator's decisions.
    pub(super) fn rule(&mut self, name: &ScenarioName, now: Now) {
        let refresh = &self.parts.config.refresh;
        let Some(record) = self.records.get_mut(name) else { return };
        let announced = record.place.as_ref().and_then(|place| place.endpoint.name.as_ref());
        let verdict = trust::judge(&self.decisions, name, record.party.as_ref(), announced, record.trusted);
        record.trust_finding = trust::withheld(name, &verdict, record.trusted).map(Box::new);
        record.note = verdict.note;
        let (was, let_in_before) = (std::mem::replace(&mut record.decision, verdict.decision), record.let_in);
        record.let_in = record.is_trusted();
        let blocked = |decision| decision == Some(Decision::Blocked);
        if blocked(record.decision) {
            record.void();
            // It will not be asked, so nothing waits for it; whoever does is told why when it is touched.
            self.latches.remove(name);
        } else if blocked(was) && record.target.is_some() && record.presence == Presence::Named {
            record.ask_anew(now.mono, now);
        } else if record.target.is_some() && record.is_trusted() && !let_in_before {
            // What it said while it waited is published at once; whether it still says that is asked, if that was long ago. What could not
            // be read, or is being read only in part, is asked for now.
            let unread = record.offer.is_none() || record.last_error.is_some() || record.asking.is_some();
            let gap = if unread { refresh.forced_gap } else { refresh.min_interval };
            let at = record.last_attempt.map_or(now.mono, |(at, _)| at + gap).max(now.mono);
            if unread {
                record.ask_anew(at, now);
            } else if record.next_ask.is_none_or(|(planned, _)| at < planned) {
                record.ask_at(at, now);
            }
        } else if record.target.is_some() && !record.is_trusted() && let_in_before && record.last_attempt.is_some() {
            record.ask_at(now.mono + refresh.max_interval, now);
        }
    }

    /// The operator's decisions changed: one may concern scenarios of several names.
    pub(super) fn rule_all(&mut self, now: Now) {
        for name in self.records.keys().cloned().collect::<Vec<_>>() {
            let before = self.records.get(&name).map(|record| (record.decision, record.note.clone()));
            self.rule(&name, now);
            if self.records.get(&name).map(|record| (record.decision, record.note.clone())) != before {
                self.keep(&name);
                self.touch(&name, now, Settled::Changed);
            }
        }
        // Names are held by whom a yes was given to.
        self.places(now);
    }
}

/// Takes in what a source says that a scenario speaks; what it does not say any more is found out again. Whether that is news of one that
/// was known.
fn speaks(record: &mut Scenario, known: Option<&Assignment>, place: &Assignment, protocols: &Protocols) -> bool {
    let before = record.protocol.as_ref().map(|protocol| protocol.id());
    let said = place.endpoint.protocol.as_deref().and_then(|id| protocols.by_id(id));
    let unsaid = known.is_some_and(|known| known.source == place.source && known.endpoint.protocol.is_some());
    if said.is_some() || unsaid {
        record.protocol = said;
    }
    known.is_some() && record.protocol.as_ref().map(|protocol| protocol.id()) != before
}

fn gone(party: &Party) -> Holder {
    Holder { party: party.clone(), lives: false, stands_in: None }
}
