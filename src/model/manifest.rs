//! What a scenario says it offers, decoded.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use xxhash_rust::xxh3::xxh3_64;

use super::text::{Place, SharedText, TextBuffer};
use super::tool::{Extra, Tool};
use super::{JsonText, common};

/// A scenario's whole offer (`ToolManifest`), judged well-formed, with its tools sorted by name.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The protocol version as the scenario wrote it, for example `1.0`; empty where its protocol has none.
    pub protocol_version: Arc<str>,
    /// Who offers it.
    pub scenario: ScenarioInfo,
    /// The tools that are well-formed, sorted bytewise by name, names unique.
    pub tools: Vec<Arc<Tool>>,
    /// The groupings, sorted bytewise by id, ids unique. Shared: whole fleets have the same ones.
    pub categories: Arc<[Category]>,
    /// When the scenario says it made this. Real servers stamp each answer, so this is never a sign of change.
    pub generated_at: Option<Timestamp>,
    /// Unknown members of the manifest object (`capabilities` among them).
    pub extra: Extra,
    /// Over everything above but `generated_at`: equal digests mean equal offers.
    pub digest: Digest,
}

impl Manifest {
    /// The same for a long stay, in as little memory as it takes: what other manifests say too is shared with them, and what only this
    /// one says stands in one block. For a manifest that is put in force, not for each that is read: most answers say nothing new.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.categories = common::categories(self.categories.to_vec());
        let owner = xxh3_64(self.scenario.name.as_bytes());
        let long = |tool: &Tool| {
            [&tool.description, tool.parameters.shared(), tool.metadata.shared()]
                .map(|text| text.len())
                .iter()
                .sum::<usize>()
        };
        let mut buffer = TextBuffer::with_capacity(self.tools.iter().map(|tool| long(tool)).sum());
        // By digest, which is taken once of each text: hashing them whole, and again as the table grows, cost most of the settling.
        let mut known: HashMap<u64, (&str, Spot)> = HashMap::with_capacity(self.tools.len() * 3);
        let mut spots = Vec::with_capacity(self.tools.len());
        for tool in &self.tools {
            let texts: [&str; 3] = [&tool.description, tool.parameters.get(), tool.metadata.get()];
            spots.push(texts.map(|text| {
                let digest = xxh3_64(text.as_bytes());
                if let Some((same, spot)) = known.get(&digest)
                    && *same == text
                {
                    return spot.clone();
                }
                let shared = common::text(text, digest, owner);
                let spot = shared.map_or_else(|| Spot::Here(buffer.put(text)), Spot::Shared);
                known.insert(digest, (text, spot.clone()));
                spot
            }));
        }
        drop(known);
        let block = common::block(buffer.finish());
        let text = |spot| match spot {
            Spot::Here(place) => block.text(&place),
            Spot::Shared(text) => text,
        };
        for (tool, spots) in self.tools.iter_mut().zip(spots) {
            let tool = Arc::make_mut(tool);
            let [description, parameters, metadata] = spots.map(&text);
            tool.description = description;
            tool.parameters = JsonText::known_text(parameters);
            tool.metadata = JsonText::known_text(metadata);
            tool.category = tool.category.as_deref().map(common::name);
        }
        self.tools.shrink_to_fit();
        self
    }

    /// Lets tools that an earlier manifest of the same scenario had share their names with it: the catalog goes on with those that it has.
    pub fn keep_names_of(&mut self, before: &Self) {
        for tool in &mut self.tools {
            let known = before.tools.binary_search_by(|known| known.name.cmp(&tool.name));
            if let (Some(known), Some(tool)) = (known.ok().and_then(|at| before.tools.get(at)), Arc::get_mut(tool)) {
                tool.name = Arc::clone(&known.name);
            }
        }
    }
}

/// Where a text of a settled manifest is.
#[derive(Clone)]
enum Spot {
    /// In the block of the manifest.
    Here(Place),
    /// Where others have it too.
    Shared(SharedText),
}

/// How much of one manifest is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Tools, the first by name.
    pub tools: usize,
    /// Bytes of one tool, and of each other member of the manifest, as written.
    pub part: usize,
}

impl Bounds {
    /// Takes everything: for what was bounded before, or made here.
    pub const NONE: Self = Self { tools: usize::MAX, part: usize::MAX };
}

/// Who a scenario says it is (`ScenarioInfo`).
#[derive(Debug, Clone, Default)]
pub struct ScenarioInfo {
    /// The name it gives itself. callsheet files it under the name it was *asked for as*, and reports a difference.
    pub name: Arc<str>,
    /// Its own version, an opaque text.
    pub version: Arc<str>,
    /// For people.
    pub description: Arc<str>,
    /// Where it says its API is.
    pub base_url: Option<Arc<str>>,
    /// Unknown members.
    pub extra: Extra,
}

/// A grouping of tools (`ToolCategory`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Category {
    /// Identifier that tools refer to.
    pub id: Arc<str>,
    /// For people.
    pub name: Arc<str>,
    /// For people.
    pub description: Option<Arc<str>>,
    /// Icon identifier for a UI.
    pub icon: Option<Arc<str>>,
    /// Where a UI should put it, smallest first.
    pub display_order: Option<i64>,
    /// Unknown members.
    pub extra: Extra,
}

/// A 128-bit digest of content (XXH3). Guards against change, not against forgery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Digest(pub u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}
