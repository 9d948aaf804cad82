//! Log messages of a tool while its call runs.
//!
//! They go to the caller and never to the log of the daemon.

use crate::model::JsonText;

/// One log message of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLog {
    /// How severe it is.
    pub level: LogLevel,
    /// The part of the scenario that wrote it, if it says so.
    pub logger: Option<String>,
    /// What it says: a JSON string, or any other JSON value.
    pub data: JsonText,
}

/// The severity of a log message (RFC 5424), least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
    /// `alert`
    Alert,
    /// `emergency`
    Emergency,
}

impl CallLog {
    /// A message of one text.
    pub fn new(level: LogLevel, text: &str) -> Self {
        Self {
            level,
            logger: None,
            data: JsonText::known(serde_json::Value::from(text).to_string()),
        }
    }

    /// The message for people: a string without its quotes, any other value as JSON.
    pub fn text(&self) -> String {
        serde_json::from_str::<String>(self.data.get())
            .unwrap_or_else(|_| self.data.get().to_owned())
    }
}

impl LogLevel {
    /// Every level, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}
