//! One process file: what its text says. Pure; whether the process lives is decided elsewhere.

use jiff::Timestamp;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

/// The files of a scenario that may name its API, the first usable one wins. The order is that of
/// Vrooli's own `scenario port`.
pub(super) const FILES: [&str; 4] = ["start-api.json", "start-app.json", "api.json", "app.json"];
/// Bytes of a process file that are read; real ones are below one kilobyte.
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// Longest `started_at` that is kept as it is; a longer one is kept as its digest.
const MAX_STARTED_AT: usize = 64;

/// What a process file says, as far as an address needs it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// The process that the file describes.
    pub(super) pid: u32,
    /// Its port; `null` when the step listens nowhere. Judged apart from the process id, since the
    /// port of a dead process is of no interest.
    pub(super) port: Result<Option<u16>, ProcessFileError>,
    /// Distinguishes one start from the next: process id and `started_at`.
    pub(super) boot: String,
    /// When the process was started, if the file says so in a form that is known.
    pub(super) started: Option<Timestamp>,
}

/// Why a process file is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProcessFileError {
    /// The system refused to read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// More than [`MAX_BYTES`].
    #[error("it is larger than {} KiB", MAX_BYTES / 1024)]
    TooLarge,
    /// Not JSON, perhaps only half written.
    #[error("it is not valid JSON: {0}")]
    NotJson(String),
    /// JSON, but not of the shape.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// A field that must be there is not.
    #[error("its field `{0}` is missing")]
    Missing(&'static str),
    /// A field has a value that it cannot have.
    #[error("its field `{field}` is {found}, not {wanted}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// The value, shortened.
        found: String,
        /// What it may be.
        wanted: &'static str,
    },
}

impl Process {
    /// Reads a process file. Fields that an address does not need are not looked at.
    pub(super) fn parse(text: &str) -> Result<Self, ProcessFileError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ProcessFileError::NotJson(error.to_string()))?;
        let Value::Object(fields) = value else {
            return Err(ProcessFileError::NotAnObject);
        };
        let pid = pid(&fields)?;
        let boot = match fields.get("started_at") {
            None | Some(Value::Null) => pid.to_string(),
            Some(Value::String(text)) => format!("{pid} {}", shortened(text)),
            Some(other) => format!("{pid} {}", shortened(&other.to_string())),
        };
        let started = fields
            .get("started_at")
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok());
        Ok(Self {
            pid,
            port: port(&fields),
            boot,
            started,
        })
    }
}

impl ProcessFileError {
    /// Whether the file is unreadable now, so that its earlier content still counts. A whole file
    /// with a wrong field is readable.
    pub(super) fn is_silence(&self) -> bool {
        !matches!(self, Self::Missing(_) | Self::Invalid { .. })
    }

    /// Where in the document, as a JSON pointer.
    pub(super) fn pointer(&self) -> Option<String> {
        match self {
            Self::Missing(field) | Self::Invalid { field, .. } => Some(format!("/{field}")),
            _ => None,
        }
    }
}

fn pid(fields: &Map<String, Value>) -> Result<u32, ProcessFileError> {
    let value = fields.get("pid").ok_or(ProcessFileError::Missing("pid"))?;
    let pid = value
        .as_u64()
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid > 0);
    pid.ok_or_else(|| invalid("pid", value, "a process id"))
}

fn port(fields: &Map<String, Value>) -> Result<Option<u16>, ProcessFileError> {
    let value = fields
        .get("port")
        .ok_or(ProcessFileError::Missing("port"))?;
    if value.is_null() {
        return Ok(None);
    }
    let port = value
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0);
    port.map(Some)
        .ok_or_else(|| invalid("port", value, "a number from 1 to 65535 or null"))
}

fn invalid(field: &'static str, value: &Value, wanted: &'static str) -> ProcessFileError {
    let text = value.to_string();
    let mut found: String = text.chars().take(40).collect();
    if found.len() < text.len() {
        found.push('…');
    }
    ProcessFileError::Invalid {
        field,
        found,
        wanted,
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_STARTED_AT {
        text.to_owned()
    } else {
        format!("{:016x}", xxh3_64(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_file_gives_pid_port_and_boot() {
        let text = r#"{"pid": 41, "pgid": 41, "process_id": "vrooli.develop.files.start-api", "phase": "develop",
            "scenario": "files", "step": "start-api", "command": "./files-api", "working_dir": "/srv/files",
            "log_file": "/var/log/files.log", "port": 15000, "started_at": "2026-01-05T10:00:00Z", "status": "running"}"#;
        let process = Process::parse(text).unwrap();
        let boot = "41 2026-01-05T10:00:00Z".into();
        let started = "2026-01-05T11:00:00+01:00".parse().ok();
        assert_eq!(
            process,
            Process {
                pid: 41,
                port: Ok(Some(15000)),
                boot,
                started
            }
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            (
                "",
                "it is not valid JSON: EOF while parsing a value at line 1 column 0",
            ),
            (
                r#"{"pid": 4"#,
                "it is not valid JSON: EOF while parsing an object at line 1 column 9",
            ),
            ("[1]", "it is not a JSON object"),
            (r#"{"port": 15000}"#, "its field `pid` is missing"),
            (
                r#"{"pid": "41", "port": 15000}"#,
                "its field `pid` is \"41\", not a process id",
            ),
            (
                r#"{"pid": 0, "port": 15000}"#,
                "its field `pid` is 0, not a process id",
            ),
            (
                r#"{"pid": -1, "port": 15000}"#,
                "its field `pid` is -1, not a process id",
            ),
            (
                r#"{"pid": 4294967296, "port": 15000}"#,
                "its field `pid` is 4294967296, not a process id",
            ),
        ] {
            assert_eq!(
                Process::parse(text).unwrap_err().to_string(),
                says,
                "{text}"
            );
        }
    }

    #[test]
    fn ports_are_judged_apart() {
        for (port, expected) in [
            ("1", Ok(Some(1))),
            ("65535", Ok(Some(65535))),
            ("null", Ok(None)),
            (
                "0",
                Err("its field `port` is 0, not a number from 1 to 65535 or null"),
            ),
            (
                "65536",
                Err("its field `port` is 65536, not a number from 1 to 65535 or null"),
            ),
            (
                "15000.5",
                Err("its field `port` is 15000.5, not a number from 1 to 65535 or null"),
            ),
            (
                "\"15000\"",
                Err("its field `port` is \"15000\", not a number from 1 to 65535 or null"),
            ),
        ] {
            let process = Process::parse(&format!(r#"{{"pid": 41, "port": {port}}}"#)).unwrap();
            assert_eq!(
                process.port.map_err(|problem| problem.to_string()),
                expected.map_err(str::to_owned),
                "{port}"
            );
        }
        let none = Process::parse(r#"{"pid": 41}"#).unwrap();
        assert_eq!(none.port.unwrap_err(), ProcessFileError::Missing("port"));
    }

    #[test]
    fn a_boot_is_short_and_differs_with_each_start() {
        let boot = |started: &str| {
            Process::parse(&format!(r#"{{"pid": 41, "started_at": {started}}}"#))
                .unwrap()
                .boot
        };
        let long_a = format!("\"{}a\"", "x".repeat(9000));
        let long_b = format!("\"{}b\"", "x".repeat(9000));
        assert_eq!(boot("null"), "41");
        assert_eq!(boot("1767606000"), "41 1767606000");
        assert_ne!(boot(&long_a), boot(&long_b));
        assert!(boot(&long_a).len() < 100);
    }
}
