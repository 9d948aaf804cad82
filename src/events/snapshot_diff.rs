//! The difference between two snapshots. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{Cursor, Epoch};
use super::message::{CatalogChange, Event, FindingChange, Message};
use crate::catalog::{
    Catalog, Revision, Snapshot, Touched, ViewQuery, difference, findings_between,
};
use crate::model::{Finding, ScenarioName};

/// The changes between two snapshots, from which the messages of each filter are made.
pub(super) struct SnapshotDiff {
    before: Arc<Snapshot>,
    after: Arc<Snapshot>,
    touched: Touched,
    /// The cursor of the change of lists, if there may be one.
    catalog: Option<Cursor>,
    turns: Vec<(ScenarioName, Arc<Message>)>,
    findings: Vec<(Option<ScenarioName>, Arc<Message>)>,
    /// The last cursor that was given out.
    pub(super) last: u64,
    /// Whether changes of states were missed. Readers need a snapshot then.
    pub(super) missed: bool,
}

impl SnapshotDiff {
    /// The changes since `before`, with cursors after `last`. The states come first, then the
    /// lists, then the findings.
    pub(super) fn between(
        epoch: Epoch,
        last: u64,
        before: &Arc<Snapshot>,
        after: &Arc<Snapshot>,
    ) -> Self {
        let mut seq = last;
        let mut place = || {
            seq += 1;
            Cursor { epoch, seq }
        };
        let turns = after.transitions.since(&before.transitions);
        let missed = turns.is_none();
        let turns = turns.unwrap_or_default().into_iter();
        let turns = turns
            .map(|turn| {
                (
                    turn.name.clone(),
                    Message::new(place(), Event::Scenario(turn)),
                )
            })
            .collect();
        let touched = Touched::between(&before.catalog, &after.catalog);
        let may_differ = !touched.is_empty() || before.catalog.scopes_differ(&after.catalog);
        let catalog = may_differ.then(&mut place);
        let findings = findings(before, after, &touched);
        let findings = findings.into_iter().map(|change| {
            let (FindingChange::Added(finding) | FindingChange::Removed(finding)) = &change;
            (
                finding.scenario.clone(),
                Message::new(place(), Event::Finding(change)),
            )
        });
        let findings = findings.collect();
        if missed {
            // The cursor of the snapshot that is published in place of the missed changes.
            place();
        }
        Self {
            before: Arc::clone(before),
            after: Arc::clone(after),
            touched,
            catalog,
            turns,
            findings,
            last: seq,
            missed,
        }
    }

    /// Whether a filter would get more than `most` messages, as far as that is known without
    /// comparing its list.
    pub(super) fn is_beyond(&self, query: &ViewQuery, most: usize) -> bool {
        let covers =
            |name: &ScenarioName| query.scenarios.is_empty() || query.scenarios.contains(name);
        self.turns.len() > most && self.turns.iter().filter(|(name, _)| covers(name)).count() > most
    }

    /// The messages for a filter.
    pub(super) fn messages_for(&self, query: &ViewQuery) -> Vec<Arc<Message>> {
        let covers =
            |name: &ScenarioName| query.scenarios.is_empty() || query.scenarios.contains(name);
        let mut messages: Vec<_> = self
            .turns
            .iter()
            .filter(|(name, _)| covers(name))
            .map(|(_, message)| Arc::clone(message))
            .collect();
        if let Some(place) = self.catalog {
            let difference = difference(
                &self.before.catalog,
                &self.after.catalog,
                &self.touched,
                query,
            );
            if !difference.is_empty() {
                let revision = revision(&self.after.catalog, query);
                let change = CatalogChange {
                    revision,
                    generated_at: self.after.generated_at,
                    difference,
                };
                messages.push(Message::new(place, Event::Catalog(change)));
            }
        }
        let of_filter = self.findings.iter().filter(|(name, _)| match name {
            Some(name) => covers(name),
            None => query.scenarios.is_empty(),
        });
        messages.extend(of_filter.map(|(_, message)| Arc::clone(message)));
        messages
    }
}

/// The revision of the list of this query.
pub(super) fn revision(catalog: &Catalog, query: &ViewQuery) -> Revision {
    if catalog.is_scoped(query) {
        catalog.revision_for(query)
    } else {
        catalog.revision()
    }
}

/// The findings that were removed, then those that were added.
fn findings(before: &Snapshot, after: &Snapshot, touched: &Touched) -> Vec<FindingChange> {
    let [mut old, mut new] = findings_between(&before.catalog, &after.catalog, touched);
    if !Arc::ptr_eq(&before.findings, &after.findings) {
        old.extend(before.findings.iter().cloned());
        new.extend(after.findings.iter().cloned());
    }
    for findings in [&mut old, &mut new] {
        findings.sort_unstable();
        findings.dedup();
    }
    let mut gone: Vec<Finding> = old
        .iter()
        .filter(|finding| new.binary_search(finding).is_err())
        .cloned()
        .collect();
    let mut come: Vec<Finding> = new
        .iter()
        .filter(|finding| old.binary_search(finding).is_err())
        .cloned()
        .collect();
    drop_reworded(&mut gone, &mut come);
    let gone = gone.into_iter().map(FindingChange::Removed);
    gone.chain(come.into_iter().map(FindingChange::Added))
        .collect()
}

/// Removes the pairs that only say the same of the same thing in other words, from both lists.
/// Otherwise a server that writes the time into a malformed manifest would cause an event with each
/// answer.
fn drop_reworded(gone: &mut Vec<Finding>, come: &mut Vec<Finding>) {
    let key = |finding: &Finding| {
        // Without a scenario, only the message says what the finding is about.
        let scenario = finding.scenario.clone()?;
        Some((
            scenario,
            finding.tool.clone(),
            finding.code,
            finding.pointer.clone(),
        ))
    };
    let mut pairs: BTreeMap<_, usize> = BTreeMap::new();
    for key in gone.iter().filter_map(key) {
        *pairs.entry(key).or_default() += 1;
    }
    let mut reworded: BTreeMap<_, usize> = BTreeMap::new();
    come.retain(|finding| {
        let Some(key) = key(finding) else { return true };
        let Some(left) = pairs.get_mut(&key).filter(|left| **left > 0) else {
            return true;
        };
        *left -= 1;
        *reworded.entry(key).or_default() += 1;
        false
    });
    gone.retain(|finding| {
        let Some(left) = key(finding)
            .and_then(|key| reworded.get_mut(&key))
            .filter(|left| **left > 0)
        else {
            return true;
        };
        *left -= 1;
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FindingCode;

    fn finding(scenario: &str, code: FindingCode, message: &str) -> Finding {
        Finding::new(code, message).of_scenario(&scenario.parse().unwrap())
    }

    #[test]
    fn the_same_in_other_words_is_no_change() {
        let stamp = |message| finding("notes", FindingCode::GeneratedAt, message);
        let other = finding("mail", FindingCode::GeneratedAt, "in the future");
        let mut gone = vec![stamp("at 1"), stamp("at 2")];
        let mut come = vec![stamp("at 3"), other.clone()];
        drop_reworded(&mut gone, &mut come);
        assert_eq!(gone, vec![stamp("at 2")]);
        assert_eq!(come, vec![other]);
    }

    #[test]
    fn findings_without_a_scenario_are_identified_by_their_words() {
        let of = |message| Finding::new(FindingCode::SourceFailed, message);
        let mut gone = vec![of("one")];
        let mut come = vec![of("two")];
        drop_reworded(&mut gone, &mut come);
        assert_eq!(gone.len(), 1);
        assert_eq!(come.len(), 1);
    }
}
