//! Pins: the definitions of a scenario that were accepted, and what its present ones differ in.
//!
//! Pure: times are arguments. The engine owns the [`Baseline`] of each scenario and stores it; here
//! is decided what a listing means for it. Where changes are held, the catalog gets the manifest
//! that [`listed`] makes: what is not accepted is not in it, so that no reader of the catalog can
//! forget the pins.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::json::JsonText;
use crate::model::{Digest, HeldTool, Manifest, PinMode};

mod difference;
mod finding;
mod pin;
mod stored;

use difference::INSTRUCTIONS;
pub use difference::{AcceptedPin, PinChange, PinDifference, PinSubject, PinnedText};
pub use finding::findings;
pub(super) use finding::of_held;
pub use pin::REPORTED_FOR;
use pin::{Pin, PinLook};
pub use stored::UnreadableBaseline;

/// What was accepted of one scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Baseline {
    tools: BTreeMap<Arc<str>, Pin>,
    instructions: Pin,
    /// Whether the new tools of the next listing count as accepted.
    joins_next: bool,
    /// The digest of the manifest in which no tool differed.
    equal: Option<Digest>,
}

/// What a scenario offers, and when.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// What it listed last.
    pub manifest: &'a Arc<Manifest>,
    /// What happens with definitions that were not accepted.
    pub mode: PinMode,
    /// Whether the listing has all tools: none was left out, and it is not the first one of a
    /// process, which may have listed half of its tools.
    pub is_complete: bool,
    /// Whether it was listed since the baseline was judged last.
    pub is_listing: bool,
    /// The present time.
    pub now: Timestamp,
}

/// How a scenario differs from what was accepted.
#[derive(Debug, Clone, Default)]
pub struct PinVerdict {
    /// What differs: the instructions first, then the tools in order of their names.
    pub differences: Vec<PinDifference>,
    /// When time alone changes this.
    pub until: Option<Timestamp>,
    /// Whether the baseline is another one than before, and has to be stored.
    pub is_changed: bool,
}

/// What was accepted, with its present text.
#[derive(Debug, Clone)]
pub struct PinAcceptance {
    subject: PinSubject,
    offered: Option<PinnedText>,
}

/// What was to be accepted is not what is there now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} changed since it was shown")]
pub struct PinsChanged {
    /// What changed meanwhile.
    pub what: String,
}

impl Baseline {
    /// The baseline of a scenario that was listed for the first time: all that it lists is
    /// accepted.
    pub fn first(manifest: &Manifest, now: Timestamp) -> Self {
        let accepted = |text| Pin::accepted(text, now);
        let tools = manifest.tools.iter().map(|tool| {
            let pin = accepted(PinnedText::Tool(Arc::clone(tool)));
            (Arc::clone(&tool.name), pin)
        });
        let instructions = instructions(manifest).map(PinnedText::Instructions);
        Self {
            tools: tools.collect(),
            instructions: instructions.map(accepted).unwrap_or_default(),
            joins_next: false,
            equal: Some(manifest.digest),
        }
    }

    /// Has the new tools of the next listing accepted: an operator logged in, trusted the scenario,
    /// or changed its entry.
    pub fn await_new_tools(&mut self) {
        self.joins_next = true;
    }

    /// Whether the next listing is awaited for its new tools.
    pub fn awaits_listing(&self) -> bool {
        self.joins_next
    }

    /// How many tools are accepted.
    pub fn accepted_tools(&self) -> usize {
        self.tools.values().filter(|pin| pin.is_accepted()).count()
    }

    /// Compares with what the scenario offers, and notes since when that is so.
    pub fn judge(&mut self, seen: Observation<'_>) -> PinVerdict {
        let before = self.clone();
        self.take_equal(seen.manifest);
        let joins = seen.is_listing && self.joins_next;
        self.joins_next &= !joins;
        let listing = PinLook {
            mode: seen.mode,
            is_complete: seen.is_complete,
            joins,
            now: seen.now,
        };
        let mut verdict = PinVerdict::default();
        let text = instructions(seen.manifest).map(PinnedText::Instructions);
        self.instructions.observe(text, listing);
        verdict.add(PinSubject::Instructions, &self.instructions, listing);
        for tool in &seen.manifest.tools {
            let pin = self.tools.entry(Arc::clone(&tool.name)).or_default();
            pin.observe(Some(PinnedText::Tool(Arc::clone(tool))), listing);
        }
        let offers = |name: &Arc<str>| {
            let tools = &seen.manifest.tools;
            tools.binary_search_by(|tool| tool.name.cmp(name)).is_ok()
        };
        for (name, pin) in &mut self.tools {
            if !offers(name) {
                pin.observe(None, listing);
            }
            verdict.add(PinSubject::Tool(Arc::clone(name)), pin, listing);
        }
        self.tools.retain(|_, pin| !pin.is_empty());
        let is_equal = self.tools.values().all(Pin::is_equal);
        if seen.is_complete || self.equal != Some(seen.manifest.digest) {
            self.equal = is_equal.then_some(seen.manifest.digest);
        }
        verdict.is_changed = *self != before;
        verdict
    }

    /// After a start: the manifest that was stored with the baseline is known to differ in no tool,
    /// so that no version has to be computed.
    fn take_equal(&mut self, manifest: &Manifest) {
        if self.equal != Some(manifest.digest) {
            return;
        }
        for tool in &manifest.tools {
            if let Some(pin) = self.tools.get_mut(&tool.name) {
                pin.share(PinnedText::Tool(Arc::clone(tool)));
            }
        }
    }

    /// What is accepted by these versions, with its texts.
    ///
    /// # Errors
    ///
    /// One of them is not what the scenario offers by now.
    pub fn acceptance(
        manifest: &Manifest,
        shown: &[AcceptedPin],
    ) -> Result<Vec<PinAcceptance>, PinsChanged> {
        let accepted = shown.iter().map(|AcceptedPin { subject, version }| {
            let offered = match subject {
                PinSubject::Instructions => instructions(manifest).map(PinnedText::Instructions),
                PinSubject::Tool(name) => {
                    let tools = &manifest.tools;
                    let at = tools.binary_search_by(|tool| tool.name.cmp(name)).ok();
                    at.map(|at| PinnedText::Tool(Arc::clone(&tools[at])))
                }
            };
            if offered.as_ref().map(PinnedText::version) == *version {
                let subject = subject.clone();
                return Ok(PinAcceptance { subject, offered });
            }
            let what = match subject {
                PinSubject::Instructions => "the text of the instructions".to_owned(),
                PinSubject::Tool(name) => format!("the definition of `{name}`"),
            };
            Err(PinsChanged { what })
        });
        accepted.collect()
    }

    /// Takes over what an operator accepted.
    pub fn accept(&mut self, accepted: &[PinAcceptance], now: Timestamp) {
        for PinAcceptance { subject, offered } in accepted {
            let pin = match subject {
                PinSubject::Instructions => &mut self.instructions,
                PinSubject::Tool(name) => self.tools.entry(Arc::clone(name)).or_default(),
            };
            *pin = offered
                .clone()
                .map(|text| Pin::accepted(text, now))
                .unwrap_or_default();
        }
        self.tools.retain(|_, pin| !pin.is_empty());
        self.equal = None;
    }
}

impl PinVerdict {
    fn add(&mut self, subject: PinSubject, pin: &Pin, listing: PinLook) {
        let until = pin.until(listing).into_iter().chain(self.until).min();
        self.until = until;
        self.differences.extend(pin.difference(subject, listing));
    }

    /// Whether something is held by it in this mode.
    pub fn holds(&self, mode: PinMode) -> bool {
        mode == PinMode::Hold && self.differences.iter().any(PinDifference::is_held)
    }
}

/// The manifest that the catalog gets: without what is held in this mode.
pub fn listed(manifest: &Arc<Manifest>, mode: PinMode, verdict: &PinVerdict) -> Arc<Manifest> {
    if !verdict.holds(mode) {
        return Arc::clone(manifest);
    }
    let held = verdict.differences.iter().filter(|one| one.is_held());
    let mut tools = Vec::new();
    let mut hides_instructions = false;
    for difference in held {
        match &difference.subject {
            PinSubject::Instructions => hides_instructions = true,
            PinSubject::Tool(name) => tools.push(HeldTool {
                name: Arc::clone(name),
                is_new: difference.change == PinChange::New,
            }),
        }
    }
    let mut left = Manifest::clone(manifest);
    let is_held = |name: &Arc<str>| tools.binary_search_by(|held| held.name.cmp(name)).is_ok();
    left.tools.retain(|tool| !is_held(&tool.name));
    if hides_instructions {
        let extra = std::mem::take(&mut left.scenario.extra).into_vec();
        let kept = extra
            .into_iter()
            .filter(|member| *member.0 != *INSTRUCTIONS);
        left.scenario.extra = kept.collect();
    }
    left.held = tools.into();
    Arc::new(left.digested())
}

/// The instructions of a server, if it has some.
fn instructions(manifest: &Manifest) -> Option<Arc<str>> {
    let member = |member: &&(Arc<str>, JsonText)| *member.0 == *INSTRUCTIONS;
    let json = &manifest.scenario.extra.iter().find(member)?.1;
    let text: String = serde_json::from_str(json.get()).ok()?;
    (!text.is_empty()).then(|| text.into())
}
