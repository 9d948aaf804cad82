//! The stored form of a baseline: one JSON document. Members are only added.
//!
//! An accepted definition is stored with its text only while something else is offered in its
//! place: otherwise the stored manifest of the scenario has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Baseline;
use super::difference::{AcceptedText, StoredVersion};
use super::pin::{AcceptedSince, Deviation, Pin};
use crate::model::{DefinitionVersion, Digest};

/// Bytes of one accepted definition that are stored; of a larger one only the version is.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Bytes of all of them of one scenario.
const TEXTS_BYTES_MAX: usize = 1024 * 1024;

/// A stored baseline cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableBaseline(String);

#[derive(Serialize, Deserialize)]
struct StoredBaseline {
    tools: BTreeMap<String, StoredPin>,
    #[serde(default)]
    instructions: StoredPin,
    #[serde(default)]
    joins_next: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    equal: Option<String>,
}

#[derive(Serialize, Deserialize, Default)]
struct StoredPin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<StoredText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered: Option<StoredText>,
    /// Whether it is gone, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<String>,
    /// Since when what differs is reported where changes are not held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reported_since: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredText {
    version: String,
    since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
}

impl Baseline {
    /// Writes it as it is stored. Computes the versions of all definitions.
    pub fn write(&self) -> String {
        let mut room = TEXTS_BYTES_MAX;
        let tools = self
            .tools
            .iter()
            .map(|(name, pin)| (name.to_string(), StoredPin::new(pin, &mut room)));
        let tools = tools.collect();
        let stored = StoredBaseline {
            tools,
            instructions: StoredPin::new(&self.instructions, &mut room),
            joins_next: self.joins_next,
            equal: self.equal.map(|digest| digest.to_string()),
        };
        // Texts and numbers can always be written.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Keeps no more of the texts than is stored, so that a scenario that is not there holds no
    /// definitions in memory. Computes the versions that are not known yet.
    pub(crate) fn rest(&mut self) {
        let mut room = TEXTS_BYTES_MAX;
        for pin in self.tools.values_mut() {
            pin.rest(&mut room);
        }
        self.instructions.rest(&mut room);
    }

    /// Reads what [`Baseline::write`] wrote.
    ///
    /// # Errors
    ///
    /// It is no such document.
    pub fn read(document: &str) -> Result<Self, UnreadableBaseline> {
        let unreadable = |error: &dyn std::fmt::Display| UnreadableBaseline(error.to_string());
        let stored: StoredBaseline =
            serde_json::from_str(document).map_err(|error| unreadable(&error))?;
        let mut tools = BTreeMap::new();
        for (name, pin) in stored.tools {
            tools.insert(Arc::from(name), pin.read()?);
        }
        // A digest that cannot be read only costs that definitions are compared.
        let equal = stored
            .equal
            .and_then(|digits| u128::from_str_radix(&digits, 16).ok());
        Ok(Self {
            tools,
            instructions: stored.instructions.read()?,
            joins_next: stored.joins_next,
            equal: equal.map(Digest),
        })
    }
}

impl Pin {
    /// Keeps what is stored of it.
    fn rest(&mut self, room: &mut usize) {
        // What was just written can be read.
        if let Ok(stored) = StoredPin::new(self, room).read() {
            *self = Self {
                is_unseen: self.is_unseen,
                ..stored
            };
        }
    }
}

impl StoredPin {
    fn new(pin: &Pin, room: &mut usize) -> Self {
        let text = |version: DefinitionVersion, since: Timestamp, text| StoredText {
            version: version.to_string(),
            since: since.to_string(),
            text,
        };
        let differs = pin.deviation.is_some();
        let accepted = pin.accepted.as_ref().map(|accepted| {
            let kept = differs.then(|| document(&accepted.text, room)).flatten();
            text(accepted.text.version(), accepted.since, kept)
        });
        let offered = pin
            .deviation
            .as_ref()
            .and_then(|deviation| Some(text(deviation.version?, deviation.since, None)));
        let gone = pin.deviation.as_ref().filter(|one| one.version.is_none());
        let reported_since = pin.deviation.as_ref().and_then(|one| one.reported_since);
        Self {
            accepted,
            offered,
            gone: gone.map(|deviation| deviation.since.to_string()),
            reported_since: reported_since.map(|at| at.to_string()),
            changes: pin.changes.iter().map(ToString::to_string).collect(),
        }
    }

    fn read(self) -> Result<Pin, UnreadableBaseline> {
        let accepted = self.accepted.map(|stored| {
            Ok::<_, UnreadableBaseline>(AcceptedSince {
                since: time(&stored.since)?,
                text: AcceptedText::Stored(Box::new(StoredVersion {
                    version: version(&stored.version)?,
                    document: stored.text.map(|text| text.to_string().into()),
                })),
            })
        });
        let reported_since = self.reported_since.map(|at| time(&at)).transpose()?;
        let offered = self.offered.map(|stored| {
            Ok::<_, UnreadableBaseline>(Deviation {
                version: Some(version(&stored.version)?),
                since: time(&stored.since)?,
                reported_since,
                offered: None,
            })
        });
        let gone = self.gone.map(|since| {
            Ok::<_, UnreadableBaseline>(Deviation {
                version: None,
                since: time(&since)?,
                reported_since,
                offered: None,
            })
        });
        let changes = self.changes.iter().map(|at| time(at));
        Ok(Pin {
            accepted: accepted.transpose()?,
            deviation: offered.or(gone).transpose()?.map(Box::new),
            is_unseen: false,
            changes: changes.collect::<Result<_, _>>()?,
        })
    }
}

/// The text of an accepted definition, if there is room for it.
fn document(text: &AcceptedText, room: &mut usize) -> Option<Value> {
    let value = match text {
        AcceptedText::Known(text) => text.document(),
        AcceptedText::Stored(stored) => serde_json::from_str(stored.document.as_deref()?).ok()?,
    };
    let bytes = value.to_string().len();
    if bytes > TEXT_BYTES_MAX.min(*room) {
        return None;
    }
    *room -= bytes;
    Some(value)
}

fn time(text: &str) -> Result<Timestamp, UnreadableBaseline> {
    text.parse()
        .map_err(|error: jiff::Error| UnreadableBaseline(error.to_string()))
}

fn version(text: &str) -> Result<DefinitionVersion, UnreadableBaseline> {
    text.parse()
        .map_err(|error: crate::model::NotAVersion| UnreadableBaseline(error.to_string()))
}
