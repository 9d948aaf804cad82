//! The history of tools' definitions: when each changed, and how.
//!
//! It follows what is published, as the log does, and is kept in memory and in the store, bounded
//! in changes of a tool, in tools and in bytes. The tool that changed longest ago is forgotten
//! first. The store gets changes with the counters of tools, at the interval of those.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ChangedDefinition, Snapshot, Touched};
use crate::model::{Tool, ToolId};
use crate::state::{StoredHistory, Write};

/// Changes of one tool that are kept, the latest.
const CHANGES_OF_TOOL_MAX: usize = 20;
/// Tools whose changes are kept, those that changed last; and definitions of tools that are gone.
const TOOLS_MAX: usize = 2_000;
/// Bytes of all changes, as stored.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// One change of a definition, as it is stored and shown. Members are only added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionChange {
    /// When it was published.
    #[serde(with = "time_text")]
    pub at: Timestamp,
    /// The version before, whole.
    pub from: String,
    /// The version since, whole.
    pub to: String,
    /// The parts that differ.
    pub parts: Vec<StoredPart>,
    /// How many more parts differ.
    #[serde(default)]
    pub more: usize,
}

/// A part of a definition that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPart {
    /// Where it is, as a JSON pointer.
    pub pointer: String,
    /// What it was; `None` if it is new.
    pub before: Option<String>,
    /// What it is; `None` if it is gone.
    pub after: Option<String>,
}

/// The histories of all tools.
#[derive(Debug, Default)]
pub(super) struct DefinitionHistories {
    /// Locked while definitions are compared, which takes long where many changed.
    followed: Mutex<FollowedDefinitions>,
    /// Only ever locked for a moment.
    kept: Mutex<Histories>,
}

/// Up to where changes are known.
#[derive(Debug, Default)]
struct FollowedDefinitions {
    catalog: Catalog,
    /// The sequence of its snapshot; `None` before the first one.
    upto: Option<u64>,
    /// The last definitions of tools that are not offered now: one may come back with another.
    gone: GoneTools,
}

#[derive(Debug, Default)]
struct Histories {
    tools: HashMap<ToolId, ToolHistory>,
    bytes: usize,
    /// Whether tools were forgotten that the store may have.
    forgot: bool,
}

/// The last definitions of tools that are not offered now, bounded in tools and in bytes. The one
/// that went first is forgotten first: its return is no change then.
#[derive(Debug, Default)]
struct GoneTools {
    by_id: HashMap<ToolId, GoneTool>,
    order: BTreeMap<u64, ToolId>,
    next: u64,
    bytes: usize,
}

#[derive(Debug)]
struct GoneTool {
    turn: u64,
    tool: Arc<Tool>,
    bytes: usize,
}

impl GoneTools {
    fn add(&mut self, id: &ToolId, tool: &Arc<Tool>) {
        self.take(id);
        let gone = GoneTool {
            turn: self.next,
            tool: Arc::clone(tool),
            bytes: definition_bytes(tool),
        };
        self.next += 1;
        self.bytes += gone.bytes;
        self.order.insert(gone.turn, id.clone());
        self.by_id.insert(id.clone(), gone);
        while self.by_id.len() > TOOLS_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.order.pop_first() else {
                break;
            };
            self.bytes -= self.by_id.remove(&oldest).map_or(0, |gone| gone.bytes);
        }
    }

    fn take(&mut self, id: &ToolId) -> Option<Arc<Tool>> {
        let gone = self.by_id.remove(id)?;
        self.order.remove(&gone.turn);
        self.bytes -= gone.bytes;
        Some(gone.tool)
    }
}

#[derive(Debug, Default)]
struct ToolHistory {
    /// The oldest first.
    changes: Vec<Arc<DefinitionChange>>,
    bytes: usize,
    is_unsaved: bool,
}

impl ToolHistory {
    fn last(&self) -> Option<Timestamp> {
        self.changes.last().map(|change| change.at)
    }
}

impl Histories {
    fn add(&mut self, id: ToolId, change: DefinitionChange, is_unsaved: bool) {
        let history = self.tools.entry(id).or_default();
        self.bytes -= history.bytes;
        history.changes.push(Arc::new(change));
        let too_many = history.changes.len().saturating_sub(CHANGES_OF_TOOL_MAX);
        history.changes.drain(..too_many);
        history.bytes = history.changes.iter().map(|change| bytes_of(change)).sum();
        history.is_unsaved |= is_unsaved;
        self.bytes += history.bytes;
        // Not for each tool of a large list that changes, since all are sorted for it.
        if self.tools.len() > 2 * TOOLS_MAX || self.bytes > 2 * BYTES_MAX {
            self.trim();
        }
    }

    /// Forgets the tools that changed longest ago, while there are too many.
    fn trim(&mut self) {
        let is_over =
            |tools: usize, bytes: usize| tools > TOOLS_MAX || bytes > BYTES_MAX && tools > 1;
        if !is_over(self.tools.len(), self.bytes) {
            return;
        }
        let mut by_age: Vec<(Option<Timestamp>, ToolId)> = self
            .tools
            .iter()
            .map(|(id, history)| (history.last(), id.clone()))
            .collect();
        by_age.sort_unstable();
        for (_, oldest) in by_age {
            if !is_over(self.tools.len(), self.bytes) {
                break;
            }
            let forgotten = self.tools.remove(&oldest);
            self.bytes -= forgotten.map_or(0, |history| history.bytes);
            self.forgot = true;
        }
    }
}

impl FollowedDefinitions {
    /// What differs in a snapshot from the one before, unless that is known already.
    fn changes(&mut self, snapshot: &Snapshot) -> Vec<ChangedDefinition> {
        if self.upto.is_some_and(|upto| snapshot.sequence <= upto) {
            return Vec::new();
        }
        self.upto = Some(snapshot.sequence);
        let touched = Touched::between(&self.catalog, &snapshot.catalog);
        self.catalog = snapshot.catalog.clone();
        let mut changed = touched.changed_definitions();
        changed.extend(self.came_back(&touched));
        changed
    }

    /// The tools that were not offered for a while and have another definition since.
    fn came_back(&mut self, touched: &Touched) -> Vec<ChangedDefinition> {
        let mut changed = Vec::new();
        for tool in touched.new_tools() {
            if let Some(before) = self.gone.take(&tool.id) {
                changed.extend(ChangedDefinition::between(
                    &tool.id,
                    &before,
                    tool.offered(),
                ));
            }
        }
        for tool in touched.gone_tools() {
            self.gone.add(&tool.id, tool.offered());
        }
        changed
    }
}

impl DefinitionHistories {
    /// Begins with what was stored: the changes, and the definitions from which they go on. What
    /// changed while no daemon ran is a change, too.
    pub(super) fn begin(&self, stored: Vec<StoredHistory>, catalog: Catalog) {
        self.followed.lock().catalog = catalog;
        let mut histories = self.kept.lock();
        for StoredHistory { tool, document, .. } in stored {
            // One that cannot be read was written by another version; the store keeps it.
            let Ok(changes) = serde_json::from_str::<Vec<DefinitionChange>>(&document) else {
                continue;
            };
            for change in changes {
                histories.add(tool.clone(), change, false);
            }
        }
        histories.trim();
    }

    /// Adds what differs in a snapshot from the one before, unless it was added already.
    pub(super) fn follow(&self, snapshot: &Snapshot, at: Timestamp) {
        let mut followed = self.followed.lock();
        let changed = followed.changes(snapshot);
        let mut histories = self.kept.lock();
        for ChangedDefinition {
            id,
            from,
            to,
            difference,
        } in changed
        {
            let part = |part: crate::catalog::ChangedPart| StoredPart {
                pointer: part.pointer,
                before: part.before,
                after: part.after,
            };
            let parts = difference.parts.into_iter().map(part).collect();
            let more = difference.more;
            histories.add(
                id,
                DefinitionChange {
                    at,
                    from: from.to_string(),
                    to: to.to_string(),
                    parts,
                    more,
                },
                true,
            );
        }
        histories.trim();
    }

    /// The changes of a tool that are kept, the latest first.
    pub(super) fn of_tool(&self, id: &ToolId) -> Vec<Arc<DefinitionChange>> {
        let histories = self.kept.lock();
        let changes = histories
            .tools
            .get(id)
            .map(|history| history.changes.iter().rev().cloned().collect());
        changes.unwrap_or_default()
    }

    /// What the store does not have. It counts as stored from now on.
    pub(super) fn unsaved(&self) -> Vec<Write> {
        let mut histories = self.kept.lock();
        let mut writes = Vec::new();
        for (id, history) in histories
            .tools
            .iter_mut()
            .filter(|(_, history)| history.is_unsaved)
        {
            let Some(changed_at) = history.last() else {
                continue;
            };
            history.is_unsaved = false;
            let changes: Vec<&DefinitionChange> =
                history.changes.iter().map(AsRef::as_ref).collect();
            // Texts and numbers can always be written.
            let document = serde_json::to_string(&changes).unwrap_or_default().into();
            writes.push(Write::History(StoredHistory {
                tool: id.clone(),
                changed_at,
                document,
            }));
        }
        if std::mem::take(&mut histories.forgot) {
            writes.push(Write::TrimHistory(histories.tools.len()));
        }
        writes
    }

    /// Marks what could not be stored.
    pub(super) fn not_saved(&self, writes: &[Write]) {
        let mut histories = self.kept.lock();
        for write in writes {
            match write {
                Write::History(stored) => {
                    if let Some(history) = histories.tools.get_mut(&stored.tool) {
                        history.is_unsaved = true;
                    }
                }
                Write::TrimHistory(_) => histories.forgot = true,
                _ => {}
            }
        }
    }
}

/// Times are stored as texts (RFC 3339).
mod time_text {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// About the bytes of a definition that is kept.
fn definition_bytes(tool: &Tool) -> usize {
    200 + tool.bytes()
}

/// About the bytes of a change as stored.
fn bytes_of(change: &DefinitionChange) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(4, String::len);
    let part = |part: &StoredPart| part.pointer.len() + text(&part.before) + text(&part.after) + 40;
    200 + change.parts.iter().map(part).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JsonText, VersionCell};

    fn change(second: i64, bytes: usize) -> DefinitionChange {
        let part = StoredPart {
            pointer: "/description".to_owned(),
            before: None,
            after: Some("x".repeat(bytes)),
        };
        let at = Timestamp::from_second(second).unwrap();
        DefinitionChange {
            at,
            from: "a".to_owned(),
            to: "b".to_owned(),
            parts: vec![part],
            more: 0,
        }
    }

    #[test]
    fn the_tools_that_went_first_are_forgotten_first() {
        let mut gone = GoneTools::default();
        let id = |n: usize| -> ToolId { format!("s/t{n}").parse().unwrap() };
        let large = Arc::new(tool("x".repeat(BYTES_MAX / 4)));
        for number in 0..8 {
            gone.add(&id(number), &large);
        }
        assert!(gone.take(&id(0)).is_none());
        assert!(gone.take(&id(7)).is_some());
        let small = Arc::new(tool(String::new()));
        for number in 10..20 + TOOLS_MAX {
            gone.add(&id(number), &small);
        }
        assert_eq!(gone.by_id.len(), TOOLS_MAX);
        assert_eq!(gone.order.len(), TOOLS_MAX);
        assert!(gone.take(&id(19)).is_none());
        for number in 0..20 + TOOLS_MAX {
            gone.take(&id(number));
        }
        assert_eq!(gone.bytes, 0);
    }

    fn tool(description: String) -> Tool {
        Tool {
            name: "t".into(),
            description: description.into(),
            category: None,
            parameters: JsonText::parse("{}").unwrap(),
            metadata: JsonText::parse("{}").unwrap(),
            facts: Arc::default(),
            extra: Box::default(),
            definition: None,
            version: VersionCell::default(),
        }
    }

    #[test]
    fn what_is_kept_is_bounded_in_changes_tools_and_bytes() {
        let histories = DefinitionHistories::default();
        let id = |n: i64| -> ToolId { format!("s/t{n}").parse().unwrap() };
        for second in 0..10_000 {
            histories.kept.lock().add(id(0), change(second, 10), true);
        }
        let kept = histories.of_tool(&id(0));
        assert_eq!(kept.len(), CHANGES_OF_TOOL_MAX);
        assert_eq!(kept[0].at, Timestamp::from_second(9_999).unwrap());
        let last = i64::try_from(TOOLS_MAX).unwrap();
        for tool in 1..=last {
            histories
                .kept
                .lock()
                .add(id(tool), change(10_000 + tool, 10), true);
        }
        histories.kept.lock().trim();
        assert!(
            histories.of_tool(&id(0)).is_empty(),
            "the tool that changed first is forgotten"
        );
        assert_eq!(histories.kept.lock().tools.len(), TOOLS_MAX);
        assert!(matches!(
            histories.unsaved().last(),
            Some(Write::TrimHistory(TOOLS_MAX))
        ));
        histories
            .kept
            .lock()
            .add(id(last), change(99_999, BYTES_MAX), true);
        histories.kept.lock().trim();
        assert_eq!(histories.kept.lock().tools.len(), 1);
        for number in 0..3 * last {
            histories
                .kept
                .lock()
                .add(id(number), change(number, 10), true);
        }
        assert!(
            histories.kept.lock().tools.len() <= 2 * TOOLS_MAX,
            "also while many change at once"
        );
    }
}
