//! Pins: what happens when a tool has another definition than the one that was accepted.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What happens with definitions of a scenario that were not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PinMode {
    /// They are not compared.
    Off,
    /// They are listed, and a finding says what differs.
    #[default]
    Warn,
    /// They are neither listed nor called until an operator accepts them.
    Hold,
}

/// A text is no mode of pins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no mode of pins has this name: use `off`, `warn` or `hold`")]
pub struct UnknownPinMode;

/// A tool that is neither listed nor called until an operator accepts its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTool {
    /// The name that its scenario gives it.
    pub name: Arc<str>,
    /// Whether no definition of it was accepted before. Such a tool claims no name; one that
    /// changed keeps the names that it had.
    pub is_new: bool,
}

impl PinMode {
    /// Every mode, the loosest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Warn, Self::Hold];

    /// The mode as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Hold => "hold",
        }
    }
}

impl FromStr for PinMode {
    type Err = UnknownPinMode;

    fn from_str(text: &str) -> Result<Self, UnknownPinMode> {
        let known = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        known.ok_or(UnknownPinMode)
    }
}

impl fmt::Display for PinMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl HeldTool {
    /// Why it cannot be used, in one clause.
    pub fn reason(&self) -> &'static str {
        if self.is_new {
            "it is new, and no operator has accepted it"
        } else {
            "its definition changed, and no operator has accepted the new one"
        }
    }
}
