//! The decoded offer of a scenario.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::finding::Finding;
use super::pins::HeldTool;
use super::relayed::RelayedOffers;
use super::tool::{Extra, Tool, extra_bytes};

/// A scenario's whole offer (`ToolManifest`), judged well-formed, with its tools sorted by name.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The protocol version as the scenario wrote it, for example `1.0`; empty where its protocol
    /// has none.
    pub protocol_version: Arc<str>,
    /// The scenario that offers it.
    pub scenario: ScenarioInfo,
    /// The tools that are well-formed, sorted bytewise by name, names unique.
    pub tools: Vec<Arc<Tool>>,
    /// The groupings, sorted bytewise by id, ids unique.
    pub categories: Arc<[Category]>,
    /// When the scenario says it made this. Real servers stamp each answer, so this is never a sign
    /// of change.
    pub generated_at: Option<Timestamp>,
    /// Unknown members of the manifest object (`capabilities` among them).
    pub extra: Extra,
    /// What it offers besides tools.
    pub relayed: RelayedOffers,
    /// Over everything above but `generated_at`: equal digests mean equal offers.
    pub digest: Digest,
    /// What its author should know.
    pub sent_findings: SentFindings,
    /// The tools that were taken out of it until an operator accepts them. Not part of the digest.
    pub held: Arc<[HeldTool]>,
}

impl Manifest {
    /// The offer of a scenario of which only its tools are known, sorted by name. It has no digest
    /// before it is [`digested`](Self::digested).
    pub fn new(scenario: ScenarioInfo, tools: Vec<Arc<Tool>>) -> Self {
        Self {
            protocol_version: "".into(),
            scenario,
            tools,
            categories: Arc::default(),
            generated_at: None,
            extra: Extra::default(),
            relayed: RelayedOffers::default(),
            digest: Digest::default(),
            sent_findings: SentFindings::default(),
            held: Arc::default(),
        }
    }

    /// How many bytes of text it has besides its tools, roughly.
    pub(crate) fn bytes_besides_tools(&self) -> usize {
        let ScenarioInfo {
            name,
            version,
            description,
            base_url,
            extra,
        } = &self.scenario;
        let own = [name, version, description].map(|text| text.len());
        let categories = self.categories.iter().map(|category| {
            let texts = [&category.description, &category.icon];
            let texts = texts.map(|text| text.as_ref().map_or(0, |text| text.len()));
            category.id.len()
                + category.name.len()
                + texts.iter().sum::<usize>()
                + extra_bytes(&category.extra)
        });
        own.iter().sum::<usize>()
            + base_url.as_ref().map_or(0, |text| text.len())
            + extra_bytes(extra)
            + extra_bytes(&self.extra)
            + categories.sum::<usize>()
            + self.relayed.bytes()
    }

    /// Whether a protocol version is a revision of MCP: a date, which no other protocol has.
    pub fn is_revision_of_mcp(protocol_version: &str) -> bool {
        let is_place = |(at, byte): (usize, u8)| {
            if matches!(at, 4 | 7) {
                byte == b'-'
            } else {
                byte.is_ascii_digit()
            }
        };
        protocol_version.len() == 10 && protocol_version.bytes().enumerate().all(is_place)
    }
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
    /// No limits: for manifests that were bounded before, or made by the daemon.
    pub const NONE: Self = Self {
        tools: usize::MAX,
        part: usize::MAX,
    };
}

/// What a scenario states about itself (`ScenarioInfo`).
#[derive(Debug, Clone, Default)]
pub struct ScenarioInfo {
    /// The name it gives itself. callsheet lists it under the name that its source gives it, and
    /// reports a difference.
    pub name: Arc<str>,
    /// Its own version, an opaque text.
    pub version: Arc<str>,
    /// For people.
    pub description: Arc<str>,
    /// The address of its API, as it states it.
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

/// What the rules of [`crate::lint`] find in a manifest, with pointers into its document as it was
/// sent. Set once, by the part that has the document, and shared by all clones.
#[derive(Debug, Clone, Default)]
pub struct SentFindings(Arc<OnceLock<Box<[Finding]>>>);

impl SentFindings {
    /// These findings.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self(Arc::new(OnceLock::from(findings.into_boxed_slice())))
    }

    /// The findings; `None` as long as no document was seen that they are about.
    pub fn get(&self) -> Option<&[Finding]> {
        self.0.get().map(AsRef::as_ref)
    }

    /// Takes those of a later document with the same content, unless they are known already.
    pub fn learn(&self, later: &Self) {
        if let Some(findings) = later.get() {
            // The earlier ones stay: the order of a document may change with each answer.
            let _ = self.0.set(findings.into());
        }
    }
}

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
