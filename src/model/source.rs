//! What is known of a source of scenarios apart from what it finds: its name, its precedence, and
//! what follows from what it says.
//!
//! Each source declares its own [`SourceSpec`], beside its code. No other code names a source.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A source, by its declaration. It is shown and stored by its name. The order is that of
/// precedence: the first wins when two sources name the same scenario.
#[derive(Clone, Copy)]
pub struct SourceId(&'static SourceSpec);

/// What a source declares of itself.
#[derive(Debug)]
pub struct SourceSpec {
    /// Its name in answers, in the state and in the log, such as `vrooli`. No two sources have the
    /// same.
    pub name: &'static str,
    /// Its precedence: the lower one wins. Of two that are equal, the name decides.
    pub rank: u16,
    /// Where it finds scenarios, for people: `in the Vrooli process files`.
    pub found: &'static str,
    /// What it means that it does not name a scenario any more.
    pub absence: SourceAbsence,
    /// Whether it repeats what others on the network announce. Their addresses are never vouched
    /// for, and many that fall silent at once are not believed to be gone.
    pub is_announced: bool,
    /// Whether `callsheet remove` takes its scenarios out of the configuration.
    pub has_entries: bool,
}

/// What it means that a source does not name a scenario any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceAbsence {
    /// An operator took it out: the scenario is removed, for this reason.
    Decision(&'static str),
    /// A hint only: the scenario is removed when it does not answer either. If the source is
    /// switched off, that is a decision.
    Hint,
    /// A hint only, also if the source is not there: the next program may have it again.
    HintAlways,
}

impl SourceId {
    /// A source that the state names, and this program does not have.
    pub const UNKNOWN: Self = Self::new(&SourceSpec {
        name: "unknown",
        rank: u16::MAX,
        found: "by a source that this program does not have",
        absence: SourceAbsence::HintAlways,
        is_announced: false,
        has_entries: false,
    });

    /// The source of this declaration.
    pub const fn new(spec: &'static SourceSpec) -> Self {
        Self(spec)
    }

    /// What it declares.
    pub fn spec(self) -> &'static SourceSpec {
        self.0
    }

    /// The source as it is written in answers.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    fn key(self) -> (u16, &'static str) {
        (self.0.rank, self.0.name)
    }
}

impl PartialEq for SourceId {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for SourceId {}

impl Ord for SourceId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for SourceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for SourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}
